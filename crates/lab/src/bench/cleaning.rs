//! Updates beside the store's own cleaners, and how long these work on.
//!
//! A store is loaded, and three quarters of its records are updated once each, in random order (figure 15 of
//! NStore, IEEE TC 2025). Row `update` tells what cleaning costs the writers. Row `at rest` tells when the
//! cleaners rested, what they had moved, and what the store holds then. The pool has room for all that is
//! written, so that nothing is cleaned but what the store's settings ask for. On the simulator, which runs no
//! cleaner, all files that have dead records are cleaned on request, and row `at rest` has the costs of that.

use quipu::MediumKind;
use quipu_bench::config::Config;
use quipu_bench::cost::Meter;
use quipu_bench::drive::Outcome;
use quipu_bench::engine::{Engine, EngineClient, OpenEngine};
use quipu_bench::error::BenchError;
use quipu_bench::memory::Memory;
use quipu_bench::progress::Progress;
use quipu_bench::report::{Row, Sink};
use quipu_bench::session::{Session, in_new_place};
use quipu_bench::target::{Opened, Target, room};
use quipu_bench::workload::{KeyShape, Permutation};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Cleaners that have moved and freed nothing for so long rest.
const REST: Duration = Duration::from_millis(300);

/// Between two looks at them.
const LOOK: Duration = Duration::from_millis(2);

/// The phase that ends when the cleaners rest.
const AT_REST: &str = "at rest";

/// Version of the values that updates write.
const UPDATED: u64 = 1;

/// Measures updates of each design beside its cleaners, and the time until these rest. Hands over a row for
/// each; an operation of both is an update.
pub fn cleaning(config: &Config, progress: &dyn Progress, sink: Sink<'_>) -> Result<(), BenchError> {
    let config = &Config { cleaner: true, operations: (config.records * 3 / 4).max(1), ..config.clone() };
    config.check()?;
    let (keys, values) = (config.keys()?, config.values()?);
    for &design in &config.designs {
        // Copies of records need room too, until the files that these were in are free.
        let writes = 2 * (config.records + config.operations);
        let target = Target::new(config, design, room(config, writes, 0))?;
        let before = Memory::baseline(config.medium);
        let session = Session { config, progress, target: &target, values, newest: UPDATED, before };
        let all = |opened| Run { session, keys: &keys, opened: &opened }.all();
        in_new_place(&target, config.records, all)?.into_iter().for_each(&mut *sink);
    }
    Ok(())
}

struct Run<'a> {
    session: Session<'a, Target>,
    keys: &'a KeyShape,
    opened: &'a Opened,
}

impl Run<'_> {
    fn all(&self) -> Result<[Row; 2], BenchError> {
        let (session, records) = (&self.session, self.session.config.records);
        session.load(self.opened, self.keys, "load", 0..records)?;
        let (before, begin) = (self.work_done(), Instant::now());
        let update = self.update()?;
        let meter = Meter::start(session.target.simulator());
        let seconds = if session.config.medium == MediumKind::Sim {
            self.opened.compact(AT_REST)?;
            0.0
        } else {
            (self.rest() - begin).as_secs_f64()
        };
        let outcome = Outcome::single(session.config.operations, seconds);
        let row = session.row(AT_REST, meter, outcome);
        let moved = (self.work_done().0 - before.0) as f64 / session.config.operations as f64;
        let row = Row { moved_per_op: Some(moved), ..row };
        let row = row.holding(records, session.before, self.opened.pool_bytes());
        session.verify_count(AT_REST, self.opened, records)?;
        self.reread()?;
        Ok([update, row])
    }

    /// Records moved and segments freed.
    fn work_done(&self) -> (u64, u64) {
        self.opened.stats().map_or((0, 0), |stats| (stats.moved_records, stats.freed_segments))
    }

    /// The order of the updates, and of the records that keep their first value.
    fn order(&self) -> Permutation {
        Permutation::new(self.session.config.records, self.session.config.seed)
    }

    fn update(&self) -> Result<Row, BenchError> {
        const NAME: &str = "update";
        let (session, order) = (&self.session, self.order());
        let phase = session.phase(NAME, session.config.operations);
        session.measure(
            self.opened,
            &phase,
            || session.config.records,
            |_| {
                let (mut client, mut key, mut value) = (self.opened.client(), Vec::new(), Vec::new());
                Ok(move |position| {
                    let record = order.at(position);
                    self.keys.fill(record, &mut key);
                    session.values.fill(record, UPDATED, &mut value);
                    EngineClient::put(&mut client, &key, &value).map_err(session.refused(NAME))
                })
            },
        )
    }

    /// Waits until the cleaners rest, and tells when they last did something: not before the last update.
    fn rest(&self) -> Instant {
        let (mut last, mut done) = (Instant::now(), self.work_done());
        while last.elapsed() < REST {
            sleep(LOOK);
            let now = self.work_done();
            if now != done {
                (last, done) = (Instant::now(), now);
            }
        }
        last
    }

    /// Reads every record, untimed: cleaning has lost none, and brought back no first value.
    fn reread(&self) -> Result<(), BenchError> {
        const NAME: &str = "reading back";
        let (session, order) = (&self.session, self.order());
        let mut client = self.opened.client();
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for position in 0..session.config.records {
            let record = order.at(position);
            self.keys.fill(record, &mut key);
            let found =
                EngineClient::get_into(&mut client, &key, &mut value).map_err(session.refused(NAME))?;
            let version = if position < session.config.operations { UPDATED } else { 0 };
            session.verify_last(NAME, record, found.then_some(&value), version)?;
        }
        Ok(())
    }
}
