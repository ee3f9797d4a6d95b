//! The basic operations, each alone, over uniformly chosen records.
//!
//! Records have numbers; a key is its number spread over 64 bits, so consecutive inserts are far apart in
//! every index. `insert` puts all records. `get`, `get_many`, `scan` (where keys have an order), `update`,
//! `read_modify_write` and, where a design has it, `update_in_place` choose uniformly. `blind_delete` and
//! `remove` (which tells whether the record was there) share a random order and meet each record at most
//! once. Every value read is checked for its key, its wholeness and its version. After the deletes a sample
//! is read again: the deleted records must be absent and the others present.
//!
//! Keys and values are made ahead of the calls, except those of `get_in_loop` and `update_in_loop`, which are
//! made between two calls. A batch of `get_many` and a scan have theirs made so too.

mod phase;

pub use phase::OpsPhase;

use crate::ahead::{Calls, Request, calls};
use crate::batched::Batched;
use crate::config::Config;
use crate::drive::{Access, Caller, Phase, drive};
use crate::engine::{Engine, EngineClient, OpenEngine};
use crate::error::{BenchError, Fault};
use crate::memory::Memory;
use crate::own_work::OwnWork;
use crate::progress::Progress;
use crate::report::{Row, Sink};
use crate::roofline::{Limits, Roofline};
use crate::scan::{Scan, last_key};
use crate::session::{Bounds, REREAD, Session, WARM_UP, in_new_place};
use crate::target::{Target, room};
use crate::workload::{KeyShape, Permutation, mix};
use quipu::MediumKind;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::ops::RangeInclusive;

/// Keys of a batch.
const BATCH: usize = 32;

/// Records of a scan: always as many, or chosen uniformly from a range.
const SCAN: RangeInclusive<u64> = 100..=100;
const SCAN_SOME: RangeInclusive<u64> = 1..=100;

/// The mean of a range.
fn mean(range: &RangeInclusive<u64>) -> f64 {
    (range.start() + range.end()) as f64 / 2.0
}

/// Version of values that the update phase writes; the load writes version 0.
const UPDATED: u64 = 1;

/// Runs insert, and the phases that the settings name after it, on each design, and hands over a row for each
/// when they are complete.
pub fn ops(config: &Config, progress: &dyn Progress, sink: Sink<'_>) -> Result<(), BenchError> {
    config.check()?;
    let mut roofline = if config.roofline { Some(Roofline::new(config)?) } else { None };
    for &design in &config.designs {
        let rewrites = config.phases.iter().filter(|phase| phase.rewrites()).count() as u64;
        let rewritten = config.operations + WARM_UP * config.threads as u64;
        let writes = config.records + rewrites * rewritten;
        let target = Target::new(config, design, room(config, writes, config.records))?;
        ops_of(config, &target, roofline.as_mut(), progress, sink)?;
    }
    Ok(())
}

/// The same on any engine, whatever designs the settings name. Its limits are measured if there is something
/// to measure them with.
pub fn ops_of<E: Engine>(
    config: &Config,
    engine: &E,
    roofline: Option<&mut Roofline>,
    progress: &dyn Progress,
    sink: Sink<'_>,
) -> Result<(), BenchError> {
    config.check_run()?;
    let (keys, values) = (config.keys()?, config.values()?);
    let before = Memory::baseline(config.medium);
    let session = Session { config, progress, target: engine, values, newest: UPDATED, before };
    let all = |opened| Run { session, keys, opened: &opened }.all(roofline);
    in_new_place(engine, config.records, all)?.into_iter().for_each(sink);
    Ok(())
}

struct Run<'a, E: Engine> {
    session: Session<'a, E>,
    keys: KeyShape,
    opened: &'a E::Opened,
}

type PhaseOf<'a, E> = fn(&Run<'a, E>) -> Result<Row, BenchError>;

/// Which of the limits a phase is compared with.
type Compared = fn(Limits) -> f64;

/// The parts of the [benchmark's own work](OwnWork) in an operation of a phase.
type Own = fn(&OwnWork) -> f64;

/// A phase that has run.
type Ran = (Row, Compared, Own);

impl<'a, E: Engine> Run<'a, E> {
    fn all(&self, roofline: Option<&mut Roofline>) -> Result<Vec<Row>, BenchError> {
        let write: Compared = |limits| limits.write_mops;
        let read: Compared = |limits| limits.read_mops;
        let both: Compared = |limits| limits.mixed(1.0, 1.0);
        let scans: Compared = |limits| limits.read_mops / mean(&SCAN);
        let scans_of_some: Compared = |limits| limits.read_mops / mean(&SCAN_SOME);
        let (key, pair): (Own, Own) = (|own| own.key, |own| own.key + own.value);
        let (checked, scanned): (Own, Own) = (|own| own.key + own.check, |own| mean(&SCAN) * own.pair);
        let measured = |phase: &OpsPhase| -> (PhaseOf<'a, E>, Compared, Own) {
            match phase {
                OpsPhase::Get => (Run::get, read, checked),
                OpsPhase::GetInLoop => (Run::get_in_loop, read, checked),
                OpsPhase::GetMany => (Run::get_many, read, checked),
                OpsPhase::Scan => (Run::scan, scans, scanned),
                OpsPhase::ScanSome => (Run::scan_some, scans_of_some, |own| mean(&SCAN_SOME) * own.pair),
                OpsPhase::Update => (Run::update, write, pair),
                OpsPhase::UpdateInLoop => (Run::update_in_loop, write, pair),
                OpsPhase::ReadModifyWrite => {
                    (Run::read_modify_write, both, |own| own.key + own.value + own.check)
                }
                OpsPhase::UpdateInPlace => (Run::update_in_place, write, key),
                OpsPhase::Delete => (Run::delete, write, key),
                OpsPhase::Remove => (Run::remove, write, key),
            }
        };
        let own_work = OwnWork::of(self.session.config, &self.keys, self.session.values);
        let mut bounds = Bounds::begin(roofline)?;
        let mut rows: Vec<Ran> = vec![(self.insert()?, write, pair)];
        bounds.between()?;
        for phase in &self.session.config.phases {
            let can_run = match phase {
                OpsPhase::UpdateInPlace => self.has_updates_in_place(),
                OpsPhase::Scan | OpsPhase::ScanSome => self.opened.is_ordered(),
                // Where keys are made has no cost there.
                OpsPhase::GetInLoop | OpsPhase::UpdateInLoop => self.session.config.medium != MediumKind::Sim,
                _ => true,
            };
            if !can_run {
                continue;
            }
            let (run, limit, own) = measured(phase);
            rows.push((run(self)?, limit, own));
            bounds.between()?;
        }
        let roof = bounds.end()?;
        let with_limits =
            |(row, limit, own): Ran| Row { own_ns: own_work.as_ref().map(own), ..row.against(roof, limit) };
        Ok(rows.into_iter().map(with_limits).collect())
    }

    fn records(&self) -> u64 {
        self.session.config.records
    }

    fn operations(&self) -> u64 {
        self.session.config.operations
    }

    fn key(&self) -> Vec<u8> {
        vec![0; self.keys.length()]
    }

    fn value(&self) -> Vec<u8> {
        vec![0; self.session.values.length()]
    }

    fn random(&self, phase: u64, thread: usize) -> SmallRng {
        SmallRng::seed_from_u64(mix(mix(self.session.config.seed).wrapping_add(phase << 32 | thread as u64)))
    }

    /// A phase of single operations, warmed up.
    fn warmed<'p>(&'p self, name: &'p str) -> Phase<'p> {
        self.session.warmed(self.session.phase(name, self.operations()))
    }

    /// Runs a phase that leaves all records there.
    fn measured<C: Caller>(
        &self,
        phase: &Phase<'_>,
        prepare: impl Fn(usize) -> Result<C, BenchError> + Sync,
    ) -> Result<Row, BenchError> {
        self.session.measure(self.opened, phase, || self.records(), prepare)
    }

    fn insert(&self) -> Result<Row, BenchError> {
        const NAME: &str = "insert";
        let session = &self.session;
        let prefilled = session.config.prefilled;
        if prefilled > 0 {
            let phase = session.phase("prefill", prefilled);
            drive(&phase, |thread| {
                self.opened.seat(thread)?;
                Ok(self.writer(NAME, &phase, thread, 0, |number| number).ahead())
            })?;
        }
        let phase = session.phase(NAME, self.records() - prefilled);
        let row = self.measured(&phase, |thread| {
            Ok(self.writer(NAME, &phase, thread, 0, move |number| prefilled + number).ahead())
        })?;
        session.verify_count(NAME, self.opened, self.records())?;
        Ok(session.batched(row))
    }

    /// The calls of a thread that put this version of their records, in batches if that was asked for.
    fn writer<'r>(
        &'r self,
        name: &'r str,
        phase: &Phase<'_>,
        thread: usize,
        version: u64,
        mut record: impl FnMut(u64) -> u64,
    ) -> impl Calls {
        let (session, end) = (&self.session, phase.share(thread).end);
        let mut client = Batched::new(self.opened.client(), session.config.batch);
        let fill = move |number, request: &mut Request| {
            let record = record(number);
            self.keys.fill(record, &mut request.pair.0);
            session.values.fill(record, version, &mut request.pair.1);
        };
        calls(fill, move |number, request| {
            client.put(&mut request.pair).map_err(session.refused(name))?;
            let answer = client.answer(Access::Put);
            if number + 1 < end {
                return Ok(answer);
            }
            client.finish(answer).map_err(session.refused(name))
        })
    }

    /// Makes the keys of the records that calls are about.
    fn keys_of(&self, mut record: impl FnMut(u64) -> u64) -> impl FnMut(u64, &mut Request) {
        move |number, request| {
            request.record = record(number);
            self.keys.fill(request.record, &mut request.pair.0);
        }
    }

    /// Records chosen uniformly. Each phase has a number and so a type of its own for them, and for the calls
    /// about them: what one phase alone calls, the compiler puts into its loop.
    fn any_record<const PHASE: u64>(&self, thread: usize) -> impl FnMut(u64) -> u64 {
        let mut random = self.random(PHASE, thread);
        move |_| random.random_range(0..self.records())
    }

    fn get(&self) -> Result<Row, BenchError> {
        const NAME: &str = "get";
        self.measured(&self.warmed(NAME), |thread| Ok(self.reader::<1>(NAME, thread).ahead()))
    }

    fn get_in_loop(&self) -> Result<Row, BenchError> {
        const NAME: &str = "get_in_loop";
        self.measured(&self.warmed(NAME), |thread| Ok(self.reader::<7>(NAME, thread).in_loop()))
    }

    /// The calls of a thread that read records chosen uniformly.
    fn reader<'r, const PHASE: u64>(&'r self, name: &'r str, thread: usize) -> impl Calls {
        let session = &self.session;
        let (mut client, mut value) = (self.opened.client(), self.value());
        let refused = session.refused(name);
        calls(self.keys_of(self.any_record::<PHASE>(thread)), move |_, Request { record, pair }| {
            let found = client.get_into(&pair.0, &mut value).map_err(&refused)?;
            session.verify(name, *record, found.then_some(&value))
        })
    }

    fn get_many(&self) -> Result<Row, BenchError> {
        const NAME: &str = "get_many";
        let session = &self.session;
        let phase = session.warmed(session.phase(NAME, self.operations().div_ceil(BATCH as u64)));
        let phase = Phase { operations_per_call: BATCH as u64, ..phase };
        self.measured(&phase, |thread| {
            let mut client = self.opened.client();
            let mut random = self.random(2, thread);
            let (mut keys, mut value) = (vec![self.key(); BATCH], self.value());
            Ok(move |_| {
                let mut records = [0; BATCH];
                for (record, key) in records.iter_mut().zip(&mut keys) {
                    *record = random.random_range(0..self.records());
                    self.keys.fill(*record, key);
                }
                let mut verdict = Ok(());
                let each = |position: usize, found: Option<&[u8]>| {
                    // Copied out, as get does, so that the two do the same work.
                    value.clear();
                    value.extend_from_slice(found.unwrap_or(&[]));
                    let result = session.verify(NAME, records[position], found.is_some().then_some(&value));
                    if result.is_err() {
                        verdict = result;
                    }
                };
                client.get_many(&keys, each).map_err(session.refused(NAME))?;
                verdict
            })
        })
    }

    fn scan(&self) -> Result<Row, BenchError> {
        self.scan_of("scan", SCAN)
    }

    fn scan_some(&self) -> Result<Row, BenchError> {
        self.scan_of("scan_some", SCAN_SOME)
    }

    fn scan_of(&self, name: &str, count: RangeInclusive<u64>) -> Result<Row, BenchError> {
        let session = &self.session;
        let phase = session.warmed(session.phase(name, self.operations().div_ceil(mean(&count) as u64)));
        let last = last_key(&self.keys, self.records());
        let row = self.measured(&phase, |thread| {
            let mut client = self.opened.client();
            let mut random = self.random(6, thread);
            let count = count.clone();
            Ok(Scan::new(session, name, &self.keys, &last).calls(move |scan, _| {
                let record = random.random_range(0..self.records());
                scan.run(&mut client, record, random.random_range(count.clone()))
            }))
        })?;
        Scan::new(session, name, &self.keys, &last).all(self.opened, self.records())?;
        Ok(row)
    }

    fn update(&self) -> Result<Row, BenchError> {
        const NAME: &str = "update";
        let phase = self.warmed(NAME);
        let row = self.measured(&phase, |thread| {
            Ok(self.writer(NAME, &phase, thread, UPDATED, self.any_record::<3>(thread)).ahead())
        })?;
        Ok(self.session.batched(row))
    }

    fn update_in_loop(&self) -> Result<Row, BenchError> {
        const NAME: &str = "update_in_loop";
        let phase = self.warmed(NAME);
        let row = self.measured(&phase, |thread| {
            Ok(self.writer(NAME, &phase, thread, UPDATED, self.any_record::<8>(thread)).in_loop())
        })?;
        Ok(self.session.batched(row))
    }

    /// Copy on write: the value is read, and another put in its place.
    fn read_modify_write(&self) -> Result<Row, BenchError> {
        const NAME: &str = "read_modify_write";
        let session = &self.session;
        let phase = self.warmed(NAME);
        self.measured(&phase, |thread| {
            let (mut client, mut old) = (self.opened.client(), self.value());
            let mut random = self.random(5, thread);
            let fill = move |_, request: &mut Request| {
                request.record = random.random_range(0..self.records());
                self.keys.fill(request.record, &mut request.pair.0);
                session.values.fill(request.record, UPDATED, &mut request.pair.1);
            };
            Ok(calls(fill, move |_, Request { record, pair: (key, value) }| {
                let found = client.get_into(key, &mut old).map_err(session.refused(NAME))?;
                session.verify(NAME, *record, found.then_some(&old))?;
                client.put(key, value).map_err(session.refused(NAME))
            })
            .ahead())
        })
    }

    /// The first eight bytes of a value that can be changed in place: slots begin at multiples of eight, with
    /// their keys.
    fn first_word(&self) -> usize {
        self.keys.length().next_multiple_of(8) - self.keys.length()
    }

    fn has_updates_in_place(&self) -> bool {
        self.opened.updates_in_place() && self.first_word() + 8 <= self.session.values.length()
    }

    /// Eight bytes of the value, by what stood there, so that the value still proves itself.
    fn update_in_place(&self) -> Result<Row, BenchError> {
        const NAME: &str = "update_in_place";
        let session = &self.session;
        let phase = self.warmed(NAME);
        let at = self.first_word();
        self.measured(&phase, |thread| {
            let (mut client, refused) = (self.opened.client(), session.refused(NAME));
            Ok(calls(self.keys_of(self.any_record::<4>(thread)), move |_, Request { record, pair }| {
                let found = client.update_in_place(&pair.0, at, |old| old).map_err(&refused)?;
                found.map(drop).ok_or_else(|| session.fault(NAME, Fault::Missing(*record)))
            })
            .ahead())
        })
    }

    /// Records that delete and remove take away together.
    fn deletes(&self) -> u64 {
        self.operations().min(self.records())
    }

    /// Of these, what delete takes: half, or nothing where it is not measured.
    fn blind_deletes(&self) -> u64 {
        let is_measured = self.session.config.phases.contains(&OpsPhase::Delete);
        if is_measured { self.deletes() / 2 } else { 0 }
    }

    /// The order in which records go: delete takes the first, remove the others.
    fn order(&self) -> Permutation {
        Permutation::new(self.records(), self.session.config.seed)
    }

    fn delete(&self) -> Result<Row, BenchError> {
        const NAME: &str = "blind_delete";
        let session = &self.session;
        let (order, deletes) = (self.order(), self.blind_deletes());
        let phase = session.phase(NAME, deletes);
        let row = session.measure(
            self.opened,
            &phase,
            || self.records() - deletes,
            |_| {
                let (mut client, refused) = (self.opened.client(), session.refused(NAME));
                Ok(calls(self.keys_of(move |position| order.at(position)), move |_, request| {
                    client.delete(&request.pair.0).map_err(&refused)
                })
                .ahead())
            },
        )?;
        session.verify_count(NAME, self.opened, self.records() - deletes)?;
        Ok(row)
    }

    fn remove(&self) -> Result<Row, BenchError> {
        const NAME: &str = "remove";
        let session = &self.session;
        let (order, deleted, deletes) = (self.order(), self.blind_deletes(), self.deletes());
        let phase = session.phase(NAME, deletes - deleted);
        let row = session.measure(
            self.opened,
            &phase,
            || self.records() - deletes,
            |_| {
                let (mut client, refused) = (self.opened.client(), session.refused(NAME));
                let keys = self.keys_of(move |position| order.at(deleted + position));
                Ok(calls(keys, move |_, Request { record, pair }| {
                    let was_there = client.remove(&pair.0).map_err(&refused)?;
                    if was_there { Ok(()) } else { Err(session.fault(NAME, Fault::Missing(*record))) }
                })
                .ahead())
            },
        )?;
        session.verify_count(NAME, self.opened, self.records() - deletes)?;
        self.reread(order, deletes)?;
        Ok(row)
    }

    /// Reads a sample of the deleted and of the remaining records, untimed.
    fn reread(&self, order: Permutation, deletes: u64) -> Result<(), BenchError> {
        const NAME: &str = "reading after deletes";
        let session = &self.session;
        let mut client = self.opened.client();
        let (mut key, mut value) = (self.key(), self.value());
        let step = (self.records() / REREAD).max(1) as usize;
        for position in (0..self.records()).step_by(step) {
            let record = order.at(position);
            self.keys.fill(record, &mut key);
            let found = client.get_into(&key, &mut value).map_err(session.refused(NAME))?;
            if position >= deletes {
                session.verify(NAME, record, found.then_some(&value))?;
            } else if found {
                return Err(session.fault(NAME, Fault::Undead(record)));
            }
        }
        Ok(())
    }
}
