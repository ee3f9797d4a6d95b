//! The pools of our own stores, one for each row.

use super::plan::Plan;
use super::requests::Requests;
use super::run::{Run, most_operations};
use super::settings::{Keys, Overwrites};
use quipu::Design;
use quipu_bench::config::{Config, setting};
use quipu_bench::engine::{Engine, OpenEngine};
use quipu_bench::error::BenchError;
use quipu_bench::memory::Memory;
use quipu_bench::progress::Progress;
use quipu_bench::report::{Compaction, Row, Sink, Utilized};
use quipu_bench::roofline::Roofline;
use quipu_bench::session::Session;
use quipu_bench::target::{Opened, Target};

/// Overwrites records, and reads some where that is asked for, at each utilization with each choice of keys,
/// in a pool of its own, and hands over a row for each.
///
/// # Errors
/// [`BenchError`] if a setting is impossible, if the store refuses something, or if any record has not its
/// last value.
pub fn util(
    config: &Config,
    overwrites: &Overwrites,
    progress: &dyn Progress,
    sink: Sink<'_>,
) -> Result<(), BenchError> {
    let plans = plans(config, overwrites)?;
    let mut roofline = if config.roofline { Some(Roofline::new(config)?) } else { None };
    for (design, keys, plan) in plans {
        for &utilization in &overwrites.utilizations {
            let config = &Config { designs: vec![design], zone_size: Some(plan.zone), ..config.clone() };
            let pool = Pool { config, overwrites, progress, plan, design, keys, utilization };
            sink(pool.measure(roofline.as_mut())?);
        }
    }
    Ok(())
}

/// The plan for each design and each choice of keys, if all can be run.
pub(super) fn plans(
    config: &Config,
    overwrites: &Overwrites,
) -> Result<Vec<(Design, Keys, Plan)>, BenchError> {
    config.check()?;
    overwrites.check()?;
    if config.pool_size.is_some() {
        return Err(setting("pool size", "follows from records and utilization: leave it out"));
    }
    let of_design = |design: &Design| {
        let config = Config { designs: vec![*design], ..config.clone() };
        let of = |keys: &Keys| Ok((*design, *keys, Plan::new(&config, overwrites, *keys)?));
        overwrites.keys.iter().map(of).collect::<Vec<_>>()
    };
    config.designs.iter().flat_map(of_design).collect()
}

/// A measurement in one pool.
pub(super) struct Pool<'a> {
    pub(super) config: &'a Config,
    pub(super) overwrites: &'a Overwrites,
    pub(super) progress: &'a dyn Progress,
    pub(super) plan: Plan,
    pub(super) design: Design,
    pub(super) keys: Keys,
    pub(super) utilization: u64,
}

impl Pool<'_> {
    fn measure(&self, roofline: Option<&mut Roofline>) -> Result<Row, BenchError> {
        let (target, requests) = (self.target()?, self.requests());
        let before = Memory::baseline(self.config.medium);
        let opened = target.create(self.config.records)?;
        let run = self.loaded(&target, &opened, &requests, before)?;
        let segments = opened.stats().map_or(0, |stats| stats.segments);
        let row = run.until_steady(roofline).map(|row| Row {
            utilized: row.utilized.map(|at| Utilized {
                compaction: at.compaction.map(|did| Compaction { segments, ..did }),
                ..at
            }),
            ..row
        });
        drop(opened);
        target.remove()?;
        row
    }

    fn bytes(&self) -> u64 {
        self.plan.pool(self.utilization, self.config.has_index_in_pm())
    }

    pub(super) fn target(&self) -> Result<Target, BenchError> {
        Target::new(self.config, self.design, self.bytes())
    }

    /// Room for the requests of the largest window.
    pub(super) fn requests(&self) -> Requests {
        let volume = (self.bytes() as f64 / self.plan.record) as u64;
        let most = volume * self.utilization / 100;
        let operations = most_operations(volume, self.overwrites.put).max(volume);
        Requests::new(self.keys, self.config.seed, self.config.threads, most, operations)
    }

    /// A run over an open pool, for the records that are there.
    pub(super) fn run<'r>(
        &'r self,
        target: &'r Target,
        opened: &'r Opened,
        requests: &'r Requests,
        before: Option<Memory>,
        records: u64,
    ) -> Result<Run<'r, Target>, BenchError> {
        let Pool { config, overwrites, progress, plan, keys, .. } = *self;
        let values = keys.values(config)?;
        let writes = volume(opened) as f64 / plan.record;
        Ok(Run {
            session: Session { config, progress, target, values, newest: 0, before },
            overwrites,
            keys,
            utilization: Some(self.utilization),
            opened,
            requests,
            shape: config.keys()?,
            records,
            writes: writes as u64,
        })
    }

    /// The same, after it has been loaded up to the utilization. In parts: an index in the pool takes
    /// segments as it grows. It may have grown with the last of them, and then they were too many.
    pub(super) fn loaded<'r>(
        &'r self,
        target: &'r Target,
        opened: &'r Opened,
        requests: &'r Requests,
        before: Option<Memory>,
    ) -> Result<Run<'r, Target>, BenchError> {
        let mut records = 0;
        loop {
            let full = self.plan.records(volume(opened), self.utilization);
            if records > full {
                self.run(target, opened, requests, before, records)?.unload(full..records)?;
                records = full;
            }
            let left = full - records;
            let run = self.run(target, opened, requests, before, records)?;
            if left == 0 {
                return Ok(run);
            }
            let part = if left <= full / 64 { left } else { left * 3 / 4 };
            run.load(records..records + part)?;
            records += part;
        }
    }
}

/// Bytes that puts may fill, at this moment: an index in the pool takes some, and more as it grows.
fn volume(opened: &Opened) -> u64 {
    opened.stats().map_or(0, |stats| stats.segments * stats.segment_bytes)
}
