//! A queue on a store: keys are put at its end and taken from its front, as by work that is done once.
//!
//! Each look for the front begins where all that was taken has been: tombstones, gaps, empty nodes. So the
//! run is told in tenths. A store that does not clear them away gets slower from one to the next, or grows.

use super::config::{Config, setting};
use super::drive::Phase;
use super::engine::{Engine, EngineClient, OpenEngine};
use super::error::{BenchError, Fault};
use super::memory::Memory;
use super::progress::Progress;
use super::report::{Row, Sink};
use super::session::{Session, in_new_place};
use super::target::{Target, room};
use crate::workload::SHORTEST_KEY;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Parts of a run that are told alone.
const PARTS: u64 = 10;

/// The pool has room for so many times the keys that are in the queue.
const TIMES: u64 = 8;

/// Fills a queue with the settings' records, and then puts and takes one key in each operation. With a batch,
/// so many keys are put together, and taken by one deletion of their range where the design has such.
/// Hands over a row for each tenth of the operations, and for each design.
///
/// # Errors
/// [`BenchError`] as of other benchmarks; [`BenchError::NoOrder`], before anything runs, if a design keeps no
/// order.
pub fn queue(config: &Config, progress: &dyn Progress, sink: Sink<'_>) -> Result<(), BenchError> {
    config.check()?;
    config.check_order("queue")?;
    let held = TIMES * (config.records + config.batch as u64);
    for &design in &config.designs {
        queue_of(config, &Target::new(config, design, room(config, held, held))?, progress, sink)?;
    }
    Ok(())
}

/// The same on any engine, whatever designs the settings name.
///
/// # Errors
/// As for [`queue`].
pub fn queue_of<E: Engine>(
    config: &Config,
    engine: &E,
    progress: &dyn Progress,
    sink: Sink<'_>,
) -> Result<(), BenchError> {
    config.check_run()?;
    if config.key_size < SHORTEST_KEY {
        return Err(setting("key size", format!("must be at least {SHORTEST_KEY}, to keep records apart")));
    }
    if config.threads > 1 && config.batch > 1 {
        return Err(setting("batch", "must be 1 for several threads, which would take the same keys"));
    }
    let batch = config.batch as u64;
    let calls = config.operations / PARTS / batch;
    if calls == 0 {
        return Err(setting("operations", format!("must be at least {}, for {PARTS} parts", PARTS * batch)));
    }
    let most = config.records + (PARTS * calls + 1) * batch;
    let taken = (0..most).map(|_| AtomicBool::new(false)).collect();
    // It is none of the store's.
    let before = Memory::baseline(config.medium);
    let session = Session { config, progress, target: engine, values: config.values()?, newest: 0, before };
    let all = |opened: E::Opened| {
        let queue = Queue {
            session: &session,
            opened: &opened,
            put: AtomicU64::new(0),
            taken,
            taken_so_far: AtomicU64::new(0),
        };
        queue.fill()?;
        let parts = (1..=PARTS).map(|part| queue.part(&format!("tenth_{part}"), calls));
        let rows = parts.collect::<Result<Vec<_>, _>>()?;
        queue.check_rest()?;
        Ok(rows)
    };
    in_new_place(engine, config.records, all)?.into_iter().for_each(sink);
    Ok(())
}

struct Queue<'a, E: Engine> {
    session: &'a Session<'a, E>,
    opened: &'a E::Opened,
    /// Keys that were put, or are about to be.
    put: AtomicU64,
    /// Which of them were taken.
    taken: Vec<AtomicBool>,
    /// How many these are, which is the number of the key at the front if one thread takes them.
    taken_so_far: AtomicU64,
}

/// One thread's hands.
struct Hands<'q, E: Engine> {
    queue: &'q Queue<'q, E>,
    phase: &'q str,
    client: <E::Opened as OpenEngine>::Client,
    pairs: Vec<(Vec<u8>, Vec<u8>)>,
    front: Vec<Vec<u8>>,
}

impl<E: Engine> Queue<'_, E> {
    fn hands<'q>(&'q self, phase: &'q str) -> Hands<'q, E> {
        let batch = self.session.config.batch;
        let pairs = vec![(Vec::new(), Vec::new()); batch];
        Hands { queue: self, phase, client: self.opened.client(), pairs, front: Vec::new() }
    }

    fn fill(&self) -> Result<(), BenchError> {
        let mut hands = self.hands("fill");
        while self.put.load(Ordering::Relaxed) < self.session.config.records {
            hands.put()?;
        }
        Ok(())
    }

    fn part(&self, name: &str, calls: u64) -> Result<Row, BenchError> {
        let session = self.session;
        let phase = Phase { operations_per_call: session.config.batch as u64, ..session.phase(name, calls) };
        let row = session.measure(
            self.opened,
            &phase,
            || self.left(),
            |_| {
                let mut hands = self.hands(name);
                Ok(move |_| {
                    hands.put()?;
                    hands.take()
                })
            },
        )?;
        Ok(session.batched(row))
    }

    /// Checks that all is there that was put and not taken, and nothing else: by a scan, since a count of
    /// keys may have those of a range that was deleted a moment ago.
    fn check_rest(&self) -> Result<(), BenchError> {
        const PHASE: &str = "rest";
        let (session, mut verdict) = (self.session, Ok(()));
        let found = self.opened.client().scan(&[], usize::MAX, |key, value| {
            let number = number_of(key);
            let is_taken =
                || self.taken.get(number as usize).is_none_or(|taken| taken.load(Ordering::Relaxed));
            let checked = match is_taken() {
                true => Err(session.fault(PHASE, Fault::Undead(number))),
                false => session.verify(PHASE, number, Some(value)),
            };
            verdict = std::mem::replace(&mut verdict, Ok(())).and(checked);
        });
        let found = found.map_err(session.refused(PHASE))? as u64;
        verdict?;
        let expected = self.left();
        if found == expected { Ok(()) } else { Err(session.fault(PHASE, Fault::Count { found, expected })) }
    }

    /// Keys that are in it, while nobody is at work.
    fn left(&self) -> u64 {
        self.put.load(Ordering::Relaxed) - self.taken_so_far.load(Ordering::Relaxed)
    }

    /// Notes that a key was taken, which nobody else has taken.
    fn note_taken(&self, phase: &str, key: &[u8]) -> Result<(), BenchError> {
        let number = number_of(key);
        let fault = |fault| Err(self.session.fault(phase, fault));
        match self.taken.get(number as usize) {
            None => return fault(Fault::Disorder(number)),
            Some(taken) if taken.swap(true, Ordering::Relaxed) => return fault(Fault::Undead(number)),
            Some(_) => {}
        }
        let expected = self.taken_so_far.fetch_add(1, Ordering::Relaxed);
        if self.session.config.threads == 1 && number != expected {
            return fault(Fault::Missing(expected));
        }
        Ok(())
    }
}

impl<E: Engine> Hands<'_, E> {
    /// Puts the next keys at the end.
    fn put(&mut self) -> Result<(), BenchError> {
        let Hands { queue, phase, client, pairs, .. } = self;
        let session = queue.session;
        let first = queue.put.fetch_add(pairs.len() as u64, Ordering::Relaxed);
        for (number, (key, value)) in (first..).zip(pairs.iter_mut()) {
            fill(number, session.config.key_size, key);
            session.values.fill(number, 0, value);
        }
        let done = match pairs.as_slice() {
            [(key, value)] => client.put(key, value),
            pairs => client.put_many(pairs),
        };
        done.map_err(session.refused(phase))
    }

    /// Takes as many keys from the front. Another thread may be faster.
    fn take(&mut self) -> Result<(), BenchError> {
        let Hands { queue, phase, client, pairs, front } = self;
        let (session, count) = (queue.session, pairs.len());
        let refused = session.refused(phase);
        loop {
            front.clear();
            let mut verdict = Ok(());
            let found = client.scan(&[], count, |key, value| {
                let checked = session.verify(phase, number_of(key), Some(value));
                verdict = std::mem::replace(&mut verdict, Ok(())).and(checked);
                front.push(key.to_vec());
            });
            found.map_err(&refused)?;
            verdict?;
            if front.len() < count {
                let missing = queue.taken_so_far.load(Ordering::Relaxed) + front.len() as u64;
                return Err(session.fault(phase, Fault::Missing(missing)));
            }
            let is_mine = match front.as_slice() {
                [key] => client.remove(key).map_err(&refused)?,
                keys => client.delete_run(keys).map(|()| true).map_err(&refused)?,
            };
            if is_mine {
                return front.iter().try_for_each(|key| queue.note_taken(phase, key));
            }
        }
    }
}

/// Writes the key of a number over `out`: keys rise with their numbers.
fn fill(number: u64, length: usize, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&number.to_be_bytes());
    out.resize(length, 0);
}

fn number_of(key: &[u8]) -> u64 {
    key.first_chunk().map_or(0, |word| u64::from_be_bytes(*word))
}
