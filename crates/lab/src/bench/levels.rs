//! Reads of a store by where its data are: in its pool, in several runs that dumps have left, or on levels
//! that are compacted to the end.
//!
//! Which of these it is follows from the settings: the size of the pool, and whether a thread compacts. Gets
//! and scans of 100 records choose uniformly from all records, and every value is checked.

use quipu_bench::config::Config;
use quipu_bench::cost::Meter;
use quipu_bench::drive::{Access, Outcome};
use quipu_bench::engine::{Engine, OpenEngine};
use quipu_bench::error::BenchError;
use quipu_bench::memory::Memory;
use quipu_bench::progress::Progress;
use quipu_bench::report::{Row, Sink};
use quipu_bench::scan::{Scan, last_key};
use quipu_bench::session::{Session, in_new_place};
use quipu_bench::target::{Opened, Target, room};
use quipu_bench::workload::{KeyShape, mix};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::time::Instant;

/// Records of a scan, and operations for each: scans take longer than gets.
const SCAN: u64 = 100;
const SCANS: u64 = 10;

/// Loads each design, compacts it to the end if `compacts` (row `compact`, a record an operation), and reads
/// (rows `get` and `scan`).
pub fn levels(
    config: &Config,
    compacts: bool,
    progress: &dyn Progress,
    sink: Sink<'_>,
) -> Result<(), BenchError> {
    config.check()?;
    let (keys, values) = (config.keys()?, config.values()?);
    for &design in &config.designs {
        let target = Target::new(config, design, room(config, config.records, 0))?;
        let before = Memory::baseline(config.medium);
        let session = Session { config, progress, target: &target, values, newest: 0, before };
        let all = |opened| Run { session, keys: &keys, opened: &opened }.all(compacts);
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
    fn all(&self, compacts: bool) -> Result<Vec<Row>, BenchError> {
        self.session.load(self.opened, self.keys, "load", 0..self.session.config.records)?;
        let mut rows = Vec::new();
        if compacts {
            rows.push(self.compact()?);
        }
        rows.extend([self.get()?, self.scan()?]);
        Ok(rows)
    }

    fn compact(&self) -> Result<Row, BenchError> {
        const NAME: &str = "compact";
        let (session, records) = (&self.session, self.session.config.records);
        session.progress.begin(NAME, records);
        let (meter, begin) = (Meter::start(session.target.simulator()), Instant::now());
        self.opened.compact(NAME)?;
        let outcome = Outcome::single(records, begin.elapsed().as_secs_f64());
        session.progress.end();
        Ok(session.row(NAME, meter, outcome).holding(records, session.before, self.opened.pool_bytes()))
    }

    fn random(&self, thread: usize) -> SmallRng {
        SmallRng::seed_from_u64(mix(mix(self.session.config.seed).wrapping_add(thread as u64)))
    }

    fn get(&self) -> Result<Row, BenchError> {
        const NAME: &str = "get";
        let (session, records) = (&self.session, self.session.config.records);
        let phase = session.warmed(session.phase(NAME, session.config.operations));
        session.measure(
            self.opened,
            &phase,
            || records,
            |thread| {
                let (client, mut random) = (self.opened.client(), self.random(thread));
                let (mut key, mut value) = (Vec::new(), Vec::new());
                let refused = session.refused(NAME);
                Ok(move |_| {
                    let record = random.random_range(0..records);
                    self.keys.fill(record, &mut key);
                    let found = client.get_into(&key, &mut value).map_err(&refused)?;
                    session.verify(NAME, record, found.then_some(&value)).map(|()| Access::Get)
                })
            },
        )
    }

    fn scan(&self) -> Result<Row, BenchError> {
        const NAME: &str = "scan";
        let (session, records) = (&self.session, self.session.config.records);
        let phase = session.warmed(session.phase(NAME, session.config.operations.div_ceil(SCANS)));
        let last = last_key(self.keys, records);
        let row = session.measure(
            self.opened,
            &phase,
            || records,
            |thread| {
                let (mut client, mut random) = (self.opened.client(), self.random(thread));
                let mut scan = Scan::new(session, NAME, self.keys, &last);
                Ok(move |_| scan.run(&mut client, random.random_range(0..records), SCAN))
            },
        )?;
        Scan::new(session, NAME, self.keys, &last).all(self.opened, records)?;
        Ok(row)
    }
}
