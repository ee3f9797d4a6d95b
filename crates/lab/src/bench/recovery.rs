//! How long a store is away: reopening as after a crash of the process, and after a clean close.
//!
//! The pool of a file is mapped anew, so its page faults are part of the time, but its pages are still in the
//! system's cache, as they are when only the process died. After each reopening all records must be counted
//! and a sample is read back, untimed.

use quipu_bench::config::Config;
use quipu_bench::cost::Meter;
use quipu_bench::drive::Outcome;
use quipu_bench::engine::{Engine, OpenEngine};
use quipu_bench::error::BenchError;
use quipu_bench::memory::Memory;
use quipu_bench::progress::Progress;
use quipu_bench::report::{Row, Sink};
use quipu_bench::session::{REREAD, Session, in_new_place};
use quipu_bench::target::{Opened, Target, room};
use quipu_bench::workload::{KeyShape, Permutation};
use std::time::Instant;

/// Loads each design, drops it without closing and reopens it (row `recovery`), then closes and reopens it
/// (row `reopen`). An operation is a record; `threads` recover.
pub fn recovery(config: &Config, progress: &dyn Progress, sink: Sink<'_>) -> Result<(), BenchError> {
    config.check()?;
    if config.roofline {
        let reason = "compares single operations; recovery has none: leave it out".into();
        return Err(BenchError::Setting { setting: "roofline", reason });
    }
    let (keys, values) = (config.keys()?, config.values()?);
    for &design in &config.designs {
        // As many deletions as records take at least the room of a checkpoint.
        let target = Target::new(config, design, room(config, config.records, config.records))?;
        let session = Session { config, progress, target: &target, values, newest: 0, before: None };
        let rows = in_new_place(&target, config.records, |opened| run(&session, &keys, opened))?;
        rows.into_iter().for_each(&mut *sink);
    }
    Ok(())
}

fn run(session: &Session<'_, Target>, keys: &KeyShape, opened: Opened) -> Result<[Row; 2], BenchError> {
    session.load(&opened, keys, "load", 0..session.config.records)?;
    drop(opened);
    let (opened, recovery) = reopen(session, keys, "recovery")?;
    opened.close("close")?;
    let (opened, reopen) = reopen(session, keys, "reopen")?;
    drop(opened);
    Ok([recovery, reopen])
}

fn reopen(session: &Session<'_, Target>, keys: &KeyShape, name: &str) -> Result<(Opened, Row), BenchError> {
    let records = session.config.records;
    let before = Memory::baseline(session.config.medium);
    let meter = Meter::start(session.target.simulator());
    session.progress.begin(name, records);
    let begin = Instant::now();
    let opened = session.target.open(name)?;
    let seconds = begin.elapsed().as_secs_f64();
    session.progress.end();
    let row = session.row(name, meter, Outcome::single(records, seconds));
    let row = row.holding(records, before, opened.pool_bytes());
    session.verify_count(name, &opened, records)?;
    reread(session, keys, &opened, name)?;
    Ok((opened, row))
}

fn reread(
    session: &Session<'_, Target>,
    keys: &KeyShape,
    opened: &Opened,
    name: &str,
) -> Result<(), BenchError> {
    let records = session.config.records;
    let order = Permutation::new(records, session.config.seed);
    let client = opened.client();
    let (mut key, mut value) = (vec![0; keys.length()], Vec::new());
    for position in 0..records.min(REREAD) {
        let record = order.at(position);
        keys.fill(record, &mut key);
        let found = client.get_into(&key, &mut value).map_err(session.refused(name))?;
        session.verify(name, record, found.then_some(&value))?;
    }
    Ok(())
}
