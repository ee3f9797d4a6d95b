//! The same load on another engine, whose space nobody limits: as papers do with rivals that allocate in
//! place.

use super::requests::Requests;
use super::run::{Run, most_operations};
use super::settings::Overwrites;
use quipu_bench::config::Config;
use quipu_bench::engine::Engine;
use quipu_bench::error::BenchError;
use quipu_bench::memory::Memory;
use quipu_bench::progress::Progress;
use quipu_bench::report::Sink;
use quipu_bench::roofline::Roofline;
use quipu_bench::session::{Session, in_new_place};

/// Loads the records into any engine and overwrites and reads until throughput is steady, for each choice of
/// keys; windows are of as many writes as there are records. Utilizations mean nothing here. Limits are
/// measured if there is something to measure them with.
pub fn util_of<E: Engine>(
    config: &Config,
    overwrites: &Overwrites,
    engine: &E,
    mut roofline: Option<&mut Roofline>,
    progress: &dyn Progress,
    sink: Sink<'_>,
) -> Result<(), BenchError> {
    config.check_run()?;
    overwrites.check()?;
    let records = config.records;
    for &keys in &overwrites.keys {
        let values = keys.values(config)?;
        let operations = most_operations(records, overwrites.put).max(records);
        let requests = Requests::new(keys, config.seed, config.threads, records, operations);
        let before = Memory::baseline(config.medium);
        let row = in_new_place(engine, records, |opened| {
            let run = Run {
                session: Session { config, progress, target: engine, values, newest: 0, before },
                overwrites,
                keys,
                utilization: None,
                opened: &opened,
                requests: &requests,
                shape: config.keys()?,
                records,
                writes: records,
            };
            run.load(0..records)?;
            run.until_steady(roofline.as_deref_mut())
        });
        sink(row?);
    }
    Ok(())
}
