//! Reads and writes beside reclamation: what it costs those who work on.
//!
//! A store is loaded and a third of its records deleted, at random, so that every block or segment has holes.
//! Then reads (and, on another store, inserts of new records) are measured twice: alone, and while one more
//! thread reclaims all that has holes (section 5.3.8 of Viper, VLDB'21). On the simulator, which runs one
//! thread, only reclamation itself is counted.

use quipu::MediumKind;
use quipu_bench::config::Config;
use quipu_bench::cost::Meter;
use quipu_bench::drive::{Outcome, drive};
use quipu_bench::engine::{Engine, EngineClient, OpenEngine};
use quipu_bench::error::BenchError;
use quipu_bench::memory::Memory;
use quipu_bench::progress::Progress;
use quipu_bench::report::{Row, Sink};
use quipu_bench::session::{Session, in_new_place};
use quipu_bench::target::{Opened, Target, room};
use quipu_bench::workload::{KeyShape, Permutation, mix};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::time::Instant;

/// One record in so many is deleted.
const DELETED: u64 = 3;

/// Measures gets and inserts of each design, alone and beside reclamation, and hands over a row for each and
/// for reclamation itself, of which an operation is a block, or segment, that became free.
pub fn reclaim(config: &Config, progress: &dyn Progress, sink: Sink<'_>) -> Result<(), BenchError> {
    // No cleaner may begin before it is asked.
    let config = &Config { cleaner: false, ..config.clone() };
    config.check()?;
    // Inserts add records, alone and beside reclamation.
    let keys = config.keys_of(config.records + 2 * config.operations)?;
    let values = config.values()?;
    for &design in &config.designs {
        let works = if config.medium == MediumKind::Sim {
            &[Work::Nothing][..]
        } else {
            &[Work::Gets, Work::Inserts][..]
        };
        for &work in works {
            let writes = config.records + 2 * config.operations;
            let target = Target::new(config, design, room(config, writes, config.records / DELETED))?;
            let before = Memory::baseline(config.medium);
            let session = Session { config, progress, target: &target, values, newest: 0, before };
            let all = |opened| Run { session, keys: &keys, opened: &opened }.all(work);
            in_new_place(&target, config.records, all)?.into_iter().for_each(&mut *sink);
        }
    }
    Ok(())
}

/// The work beside reclamation.
#[derive(Clone, Copy)]
enum Work {
    Gets,
    Inserts,
    Nothing,
}

struct Run<'a> {
    session: Session<'a, Target>,
    keys: &'a KeyShape,
    opened: &'a Opened,
}

impl Run<'_> {
    fn all(&self, work: Work) -> Result<Vec<Row>, BenchError> {
        self.load()?;
        let operations = self.session.config.operations;
        let (alone, beside) = match work {
            Work::Nothing => return Ok(vec![self.reclamation("reclaim")?]),
            Work::Gets => (
                self.gets("get", 1)?,
                self.beside("reclaim beside get", || self.gets("get beside reclaim", 2))?,
            ),
            Work::Inserts => (
                self.inserts("insert", 0)?,
                self.beside("reclaim beside insert", || self.inserts("insert beside reclaim", operations))?,
            ),
        };
        Ok([alone].into_iter().chain(beside).collect())
    }

    fn records(&self) -> u64 {
        self.session.config.records
    }

    /// The order in which records are deleted: a third of them is.
    fn order(&self) -> (Permutation, u64) {
        (Permutation::new(self.records(), self.session.config.seed), self.records() / DELETED)
    }

    fn left(&self) -> u64 {
        self.records() - self.order().1
    }

    /// Puts all records, and deletes a third.
    fn load(&self) -> Result<(), BenchError> {
        let session = &self.session;
        session.load(self.opened, self.keys, "load", 0..self.records())?;
        let (order, deleted) = self.order();
        drive(&session.phase("deleting", deleted), |_| {
            let (mut client, mut key) = (self.opened.client(), Vec::new());
            Ok(move |position| {
                self.keys.fill(order.at(position), &mut key);
                EngineClient::delete(&mut client, &key).map_err(session.refused("deleting"))
            })
        })?;
        session.verify_count("deleting", self.opened, self.left())
    }

    /// New records, from the `earlier`th that is new.
    fn inserts(&self, name: &str, earlier: u64) -> Result<Row, BenchError> {
        let (session, first) = (&self.session, self.records() + earlier);
        let phase = session.phase(name, session.config.operations);
        let left = self.left() + earlier + session.config.operations;
        let loader = |_| Ok(session.loader(self.opened, self.keys, name, first));
        let row = session.measure(self.opened, &phase, || left, loader)?;
        session.verify_count(name, self.opened, left)?;
        Ok(row)
    }

    /// Reads of records that were not deleted.
    fn gets(&self, name: &str, round: u64) -> Result<Row, BenchError> {
        let session = &self.session;
        let phase = session.warmed(session.phase(name, session.config.operations));
        let (order, deleted) = self.order();
        session.measure(
            self.opened,
            &phase,
            || self.left(),
            |thread| {
                let client = self.opened.client();
                let seed = mix(session.config.seed).wrapping_add(round << 32 | thread as u64);
                let mut random = SmallRng::seed_from_u64(mix(seed));
                let (mut key, mut value) = (Vec::new(), Vec::new());
                Ok(move |_| {
                    let record = order.at(random.random_range(deleted..self.records()));
                    self.keys.fill(record, &mut key);
                    let found = client.get_into(&key, &mut value).map_err(session.refused(name))?;
                    session.verify(name, record, found.then_some(&value))
                })
            },
        )
    }

    /// Work, and beside it reclamation, which begins with it and may last longer or less long.
    fn beside(
        &self,
        name: &str,
        work: impl FnOnce() -> Result<Row, BenchError>,
    ) -> Result<Vec<Row>, BenchError> {
        std::thread::scope(|scope| {
            let reclaimer = scope.spawn(|| self.reclamation(name));
            let row = work();
            let reclaimed = reclaimer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok(vec![row?, reclaimed?])
        })
    }

    fn reclamation(&self, name: &str) -> Result<Row, BenchError> {
        let meter = Meter::start(self.session.target.simulator());
        let begin = Instant::now();
        let freed = self.opened.compact(name)?;
        let outcome = Outcome::single(freed.max(1), begin.elapsed().as_secs_f64());
        Ok(Row { threads: 1, ops: freed, ..self.session.row(name, meter, outcome) })
    }
}
