//! Reopening a store that was overwritten for long: records lie in no order any more, and garbage is
//! everywhere.

use super::pool::{Pool, plans};
use super::settings::Overwrites;
use quipu_bench::config::Config;
use quipu_bench::cost::Meter;
use quipu_bench::drive::Outcome;
use quipu_bench::engine::{Engine, OpenEngine};
use quipu_bench::error::BenchError;
use quipu_bench::memory::Memory;
use quipu_bench::progress::Progress;
use quipu_bench::report::{Row, Sink};
use std::time::Instant;

/// Loads each design up to each utilization, overwrites half as many records as there are, abandons the store
/// and reopens it (row `recovery`, whose operations are the records). Then every record must have its last
/// value.
pub fn recovery_of_overwritten(
    config: &Config,
    overwrites: &Overwrites,
    progress: &dyn Progress,
    sink: Sink<'_>,
) -> Result<(), BenchError> {
    for (design, keys, plan) in plans(config, overwrites)? {
        for &utilization in &overwrites.utilizations {
            let config = &Config { designs: vec![design], zone_size: Some(plan.zone), ..config.clone() };
            let pool = Pool { config, overwrites, progress, plan, design, keys, utilization };
            sink(pool.reopen()?);
        }
    }
    Ok(())
}

impl Pool<'_> {
    fn reopen(&self) -> Result<Row, BenchError> {
        let (target, requests) = (self.target()?, self.requests());
        let opened = target.create(self.config.records)?;
        let run = self.loaded(&target, &opened, &requests, None)?;
        let records = run.records;
        run.overwrite("disorder", 0, 100, records / 2)?;
        drop(opened);
        let before = Memory::baseline(self.config.medium);
        let meter = Meter::start(target.simulator());
        let begin = Instant::now();
        let opened = target.open("recovery")?;
        let outcome = Outcome::single(records, begin.elapsed().as_secs_f64());
        let run = self.run(&target, &opened, &requests, before, records)?;
        let row = Row { records, ..run.session.row("recovery", meter, outcome) };
        let row = row.holding(records, before, opened.pool_bytes());
        let read = run.reread();
        drop(opened);
        target.remove()?;
        read.map(|()| row)
    }
}
