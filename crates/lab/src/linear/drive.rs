//! The calls of one thread in a history: drawn from the seed, and timed so that the threads meet.
//!
//! Threads that merely run at once rarely touch a key at the same moment, least of all on few processors. So
//! before each of their calls they wait for each other and go on together, and an update now and then yields
//! its processor while it holds its key. In a rush they meet only now and then. One thread may then see a
//! value and act on it, all within one call of another thread: a faulty elimination fails on such calls.

use super::record::{Held, Log};
use super::subject::{Subject, Timing};
use crate::action::{Action, Outcome, State};
use quipu::designs::Capabilities;
use quipu::{Error, Store};
use quipu_bench::workload::mix;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Looks at the others' arrival before a waiting thread gives its processor away.
const PATIENCE: u32 = 4096;

/// Where threads wait for each other, until one of them has left for good.
pub(super) struct Meeting {
    threads: usize,
    arrived: AtomicUsize,
    left: AtomicBool,
}

impl Meeting {
    pub fn new(threads: usize) -> Meeting {
        Meeting { threads, arrived: AtomicUsize::new(0), left: AtomicBool::new(false) }
    }

    /// Whether one of them has left.
    pub fn is_left(&self) -> bool {
        self.left.load(Ordering::SeqCst)
    }

    /// Comes to a meeting without waiting for anyone.
    fn pass(&self) {
        self.arrived.fetch_add(1, Ordering::SeqCst);
    }

    /// Waits until all have come to their meeting number `number`, counted from 1.
    fn meet(&self, number: usize) {
        self.pass();
        let mut spins = 0;
        while self.arrived.load(Ordering::SeqCst) < number * self.threads && !self.is_left() {
            // The awaited thread may need this processor. Until that is likely no thread pauses: to be late
            // by the length of a pause is to miss the others' calls.
            spins += 1;
            if spins % PATIENCE == 0 {
                std::thread::yield_now();
            }
        }
    }
}

/// Lets the others go on without this thread, however it ends.
pub(super) struct Leaving<'m>(pub &'m Meeting);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.left.store(true, Ordering::SeqCst);
    }
}

/// Kinds of calls, by their weights: a history leans to one side, since rare meetings of two kinds want many
/// of both.
type Leaning = [u32; 14];

/// Those that every design has.
const LEANINGS: [Leaning; 5] = [
    // get, get_many, put, put_many, remove, delete, put_if_absent, swap, update,
    // batch, scan, delete_range, snapshot, put_until a time that has passed
    [4, 1, 4, 1, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0],
    [8, 2, 4, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    [3, 0, 2, 0, 3, 3, 4, 1, 0, 0, 0, 0, 0, 0],
    [2, 0, 1, 0, 1, 0, 1, 4, 6, 0, 0, 0, 0, 0],
    // The rush.
    [6, 0, 9, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
];

/// Those of designs with batches, with expiry, with an order of keys, and with snapshots and range deletes.
const BATCHES: Leaning = [4, 2, 2, 0, 1, 1, 0, 1, 1, 6, 0, 0, 0, 0];
const EXPIRY: Leaning = [3, 1, 3, 0, 2, 1, 3, 1, 2, 0, 0, 0, 0, 5];
const SCANS: Leaning = [2, 0, 4, 1, 1, 2, 1, 0, 2, 0, 6, 0, 0, 0];
const RANGES: [Leaning; 2] =
    [[2, 0, 4, 1, 1, 1, 1, 1, 3, 1, 2, 4, 2, 0], [1, 0, 4, 1, 0, 1, 0, 0, 2, 2, 1, 1, 5, 0]];

/// The leanings of histories of a design, whose keys have an order or not.
pub(super) fn leanings(can: &Capabilities, has_order: bool) -> Vec<Leaning> {
    let mut leanings = LEANINGS.to_vec();
    leanings.extend(can.batches.then_some(BATCHES));
    leanings.extend(can.expiry.then_some(EXPIRY));
    leanings.extend(has_order.then_some(SCANS));
    if can.tables {
        leanings.extend(RANGES);
    }
    leanings
}

/// The leaning whose threads meet only now and then: in between, one may make several calls during one of
/// another's.
const RUSH: usize = LEANINGS.len() - 1;

/// Calls between two meetings there.
const RUSHING: usize = 4;

/// The common parts of all histories of a lot.
pub(super) struct Driver<'d> {
    pub store: &'d Store,
    pub meeting: &'d Meeting,
    pub leanings: &'d [Leaning],
    pub seed: u64,
    pub keys: u64,
    pub calls: usize,
}

/// One thread's part of a history.
pub(super) struct Course<'d> {
    driver: &'d Driver<'d>,
    thread: u64,
    leaning: usize,
    random: SmallRng,
    /// All keys of the history.
    keys: Vec<u64>,
    last_seen: Vec<State>,
    /// A snapshot, which is read some calls later.
    held: Option<Held>,
    /// Calls made.
    made: usize,
}

impl Course<'_> {
    /// A thread's part of history number `history`, before its first call.
    pub fn new<'d>(driver: &'d Driver<'d>, thread: u64, history: u64) -> Course<'d> {
        let shared = mix(driver.seed ^ mix(history));
        let first = history * driver.keys;
        Course {
            driver,
            thread,
            leaning: shared as usize % driver.leanings.len(),
            random: SmallRng::seed_from_u64(mix(shared ^ thread)),
            keys: Vec::from_iter(first..first + driver.keys),
            last_seen: vec![None; driver.keys as usize],
            held: None,
            made: 0,
        }
    }

    /// Makes the next call; all threads come to meeting number `meeting` for it. Behind the last one it reads
    /// the snapshot that it still holds, if any.
    pub fn call(&mut self, meeting: usize, subject: &mut Subject, log: &mut Log<'_>) -> Result<(), Error> {
        self.draw_call(meeting, subject, log)?;
        match self.held.take_if(|_| self.made == self.driver.calls) {
            Some(held) => log.look(subject, (&held, &self.keys), &Timing::FREE),
            None => Ok(()),
        }
    }

    fn draw_call(&mut self, meeting: usize, subject: &mut Subject, log: &mut Log<'_>) -> Result<(), Error> {
        let Course { driver, leaning, random, keys: all, .. } = self;
        let (call, rushes) = (self.made, *leaning == RUSH);
        self.made += 1;
        // One key is hotter than the others.
        let key_number = random.random_range(0..driver.keys) * random.random_range(0..2);
        let mut written = (self.thread * driver.calls as u64 + call as u64) * driver.keys;
        let mut value = || {
            written += 1;
            written
        };
        let delay = random.random_range(0..3) * random.random_range(0..100u32);
        let pauses = random.random_ratio(1, 3);
        let ready = || {
            if rushes && call % RUSHING != 0 {
                return driver.meeting.pass();
            }
            driver.meeting.meet(meeting);
            // Fractions of a microsecond: mistakes hide at every distance between two calls.
            (0..delay).for_each(|step| _ = std::hint::black_box(step));
        };
        let pause = || {
            if pauses {
                std::thread::yield_now();
            }
        };
        let timing = &Timing { ready: &ready, pause: &pause };
        let seen = &mut self.last_seen[key_number as usize];
        let action = match draw(&driver.leanings[*leaning], random) {
            0 => Action::Get,
            1 => return log.get_many(subject, all, timing),
            2 => Action::Put(value()),
            3 => {
                let pairs = Vec::from_iter(all.iter().map(|key| (*key, value())));
                return log.put_many(subject, &pairs, timing);
            }
            4 => Action::Remove,
            5 => Action::Delete,
            6 => Action::PutIfAbsent(value()),
            7 => Action::Swap(*seen, random.random_ratio(3, 4).then(value)),
            8 => Action::Update(random.random_ratio(4, 5).then(value)),
            9 => {
                let states = all.iter().map(|key| (*key, random.random_ratio(3, 4).then(&mut value)));
                return log.write(subject, &Vec::from_iter(states), timing);
            }
            10 => return log.scan(subject, (all, random.random_ratio(1, 2)), timing),
            11 => return log.delete_range(subject, all, timing),
            13 => Action::Expire(value()),
            // Writes of others meanwhile do not show.
            _ => match self.held.take() {
                None => {
                    self.held = Some(log.hold(driver.store, timing)?);
                    return Ok(());
                }
                Some(held) => return log.look(subject, (&held, all), timing),
            },
        };
        let outcome = log.call(subject, all[key_number as usize], action, timing)?;
        *seen = match (action, outcome) {
            (Action::Get, Outcome::Saw(state)) => state,
            (Action::PutIfAbsent(_) | Action::Swap(..), Outcome::Did(false)) => *seen,
            _ => action.written().flatten(),
        };
        Ok(())
    }
}

/// The number of a weight, drawn in proportion.
fn draw(weights: &[u32], random: &mut SmallRng) -> usize {
    let mut rest = random.random_range(0..weights.iter().sum());
    for (number, weight) in weights.iter().enumerate() {
        if rest < *weight {
            return number;
        }
        rest -= weight;
    }
    weights.len() - 1
}
