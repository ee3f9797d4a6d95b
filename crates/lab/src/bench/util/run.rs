//! One pool from its creation to its row.

use super::plan::Plan;
use super::requests::Requests;
use super::settings::{Keys, Overwrites};
use crate::bench::config::{Config, setting};
use crate::bench::cost::Meter;
use crate::bench::drive::{Outcome, drive};
use crate::bench::engine::{Engine, OpenEngine};
use crate::bench::error::BenchError;
use crate::bench::memory::Memory;
use crate::bench::progress::Progress;
use crate::bench::report::{Row, Sink, Utilized};
use crate::bench::roofline::Roofline;
use crate::bench::session::{Bounds, Session};
use crate::bench::target::{Opened, Target};
use crate::workload::KeyShape;
use quipu::MediumKind;
use std::collections::VecDeque;

/// Windows that have to agree.
const AGREEING: usize = 3;

/// How far apart they may be: the fastest over the slowest.
const AGREEMENT: f64 = 1.05;

/// Windows after which a run ends that does not become steady.
const MOST_WINDOWS: usize = 20;

/// Overwrites records at each utilization with each choice of keys, in a pool of its own, and hands over a row for each.
///
/// # Errors
/// [`BenchError`] if a setting is impossible, if the store refuses something, or if any record has not its last value.
pub fn util(
    config: &Config,
    overwrites: &Overwrites,
    progress: &dyn Progress,
    sink: Sink<'_>,
) -> Result<(), BenchError> {
    config.check()?;
    overwrites.check()?;
    if config.pool_size.is_some() {
        return Err(setting("pool size", "follows from records and utilization: leave it out"));
    }
    let plan = Plan::new(config, overwrites)?;
    let config = &Config { zone_size: Some(plan.zone), ..config.clone() };
    let mut roofline = if config.roofline { Some(Roofline::new(config)?) } else { None };
    for &design in &config.designs {
        for &keys in &overwrites.keys {
            for &utilization in &overwrites.utilizations {
                let target = Target::new(config, design, plan.pool(utilization))?;
                let pool = Pool { config, overwrites, progress, plan, target: &target, keys, utilization };
                sink(pool.measure(roofline.as_mut())?);
            }
        }
    }
    Ok(())
}

/// What is measured in one pool.
struct Pool<'a> {
    config: &'a Config,
    overwrites: &'a Overwrites,
    progress: &'a dyn Progress,
    plan: Plan,
    target: &'a Target,
    keys: Keys,
    utilization: u64,
}

/// A pool at work.
struct Run<'a> {
    pool: &'a Pool<'a>,
    session: Session<'a, Target>,
    opened: &'a Opened,
    requests: &'a Requests,
    shape: KeyShape,
    records: u64,
    /// Writes of a window: one pool volume.
    writes: u64,
}

/// A window that is over.
struct Window {
    meter: Meter,
    outcome: Outcome,
    /// Bytes written over bytes of user's records.
    amplification: f64,
    /// What has to agree: its throughput or, where nothing is timed, how little was written.
    pace: f64,
}

impl Pool<'_> {
    fn measure(&self, roofline: Option<&mut Roofline>) -> Result<Row, BenchError> {
        let (shape, values) = (self.config.keys()?, self.config.values()?);
        let volume = self.plan.pool(self.utilization) / self.plan.record;
        let most = volume * self.utilization / 100;
        let requests = Requests::new(self.keys, self.config.seed, self.config.threads, most, volume);
        let before = Memory::baseline(self.config.medium);
        let opened = self.target.create(self.config.records)?;
        let stats = opened.stats();
        let segments = stats.zones - stats.reserve_zones;
        let records = self.plan.records(segments, self.utilization);
        let writes = segments * self.plan.zone / self.plan.record;
        let Pool { config, progress, target, .. } = *self;
        let session = Session { config, progress, target, values, newest: 0, before };
        let run = Run { pool: self, session, opened: &opened, requests: &requests, shape, records, writes };
        let row = run.all(roofline).map(|row| Row {
            utilized: row.utilized.map(|at| Utilized {
                segments,
                reserve_bytes: stats.reserve_zones * stats.zone_bytes,
                metadata_bytes: stats.pool_bytes - stats.zones * stats.zone_bytes,
                ..at
            }),
            ..row
        });
        drop(opened);
        target.remove()?;
        row
    }

    fn stage(&self, what: &str) -> String {
        format!("{} at {} %: {what}", self.keys, self.utilization)
    }
}

impl Run<'_> {
    fn all(&self, roofline: Option<&mut Roofline>) -> Result<Row, BenchError> {
        self.load()?;
        // Until every segment has been in use once there is nothing to see.
        self.overwrite("filling", 0)?;
        let mut bounds = Bounds::begin(roofline)?;
        // Of all windows but the last few only the figures stay: a long run has many, and latencies take memory.
        let (mut last, mut paces, mut mops) = (VecDeque::new(), Vec::new(), Vec::new());
        let mut seconds = 0.0;
        loop {
            let window = self.window(paces.len() as u64 + 1)?;
            seconds += window.outcome.seconds;
            paces.push(window.pace);
            mops.push(window.outcome.mops());
            last.push_back(window);
            if last.len() > AGREEING {
                last.pop_front();
            }
            bounds.between()?;
            let steady = is_steady(&paces);
            if seconds >= self.pool.overwrites.seconds && (steady || paces.len() >= MOST_WINDOWS) {
                let limit = bounds.end()?.map(|limits| limits.write_mops);
                let row = self.row(last, mops, steady).against(limit);
                self.reread()?;
                return Ok(row);
            }
        }
    }

    fn load(&self) -> Result<(), BenchError> {
        let stage = self.pool.stage("load");
        let session = &self.session;
        drive(&session.phase(&stage, self.records), |_| {
            let mut client = self.opened.client();
            let (mut key, mut value) = (self.key(), self.value());
            let stage = &stage;
            Ok(move |record| {
                self.shape.fill(record, &mut key);
                session.values.fill(record, 0, &mut value);
                client.put(&key, &value).map_err(session.refused(stage))
            })
        })?;
        session.verify_count(&stage, self.opened, self.records)
    }

    fn window(&self, number: u64) -> Result<Window, BenchError> {
        let moved = self.opened.stats().moved_bytes;
        let meter = Meter::start(self.session.target.simulator());
        let outcome = self.overwrite(&format!("window {number}"), number)?;
        let moved = self.opened.stats().moved_bytes - moved;
        let user = self.writes * self.pool.plan.record;
        let amplification = (user + moved) as f64 / user as f64;
        let timed = self.session.config.medium != MediumKind::Sim;
        let pace = if timed { outcome.mops() } else { 1.0 / amplification };
        Ok(Window { meter, outcome, amplification, pace })
    }

    /// One pool volume of writes.
    fn overwrite(&self, what: &str, window: u64) -> Result<Outcome, BenchError> {
        let stage = self.pool.stage(what);
        let session = &self.session;
        let phase = session.phase(&stage, self.writes);
        // Value 0 is that of the load.
        let first = 1 + window * self.writes;
        drive(&phase, |thread| {
            let share = phase.share(thread);
            let drawn =
                self.requests.draw(thread, window, self.records, first + share.start..first + share.end);
            let mut client = self.opened.client();
            let (mut key, mut value) = (self.key(), self.value());
            let stage = &stage;
            Ok(move |number| {
                let record = drawn[(number - share.start) as usize];
                self.shape.fill(record, &mut key);
                session.values.fill(record, first + number, &mut value);
                client.put(&key, &value).map_err(session.refused(stage))
            })
        })
    }

    fn row(&self, last: VecDeque<Window>, mut mops: Vec<f64>, steady: bool) -> Row {
        if self.session.config.medium == MediumKind::Sim {
            mops.clear();
        }
        let write_amplification =
            last.iter().map(|window| window.amplification).sum::<f64>() / last.len() as f64;
        let joined =
            last.into_iter().reduce(|sum, next| Window { outcome: sum.outcome.and(&next.outcome), ..sum });
        let Window { meter, outcome, .. } = joined.expect("a run has a window");
        let row = self.session.row("util", meter, outcome);
        let utilized = Utilized {
            utilization: self.pool.utilization,
            distribution: self.pool.keys.to_string(),
            windows: mops,
            steady,
            write_amplification,
            ..Utilized::default()
        };
        let row = Row { records: self.records, utilized: Some(utilized), ..row };
        row.holding(self.records, self.session.before, self.opened.pool_bytes())
    }

    /// Reads every record, which must have the last value that was written to it.
    fn reread(&self) -> Result<(), BenchError> {
        let stage = self.pool.stage("reading back");
        let session = &self.session;
        drive(&session.phase(&stage, self.records), |_| {
            let client = self.opened.client();
            let (mut key, mut value) = (self.key(), self.value());
            let stage = &stage;
            Ok(move |record| {
                self.shape.fill(record, &mut key);
                let found = client.get_into(&key, &mut value).map_err(session.refused(stage))?;
                let expected = self.requests.newest(record);
                session.verify_last(stage, record, found.then_some(&value), expected)
            })
        })?;
        session.verify_count(&stage, self.opened, self.records)
    }

    fn key(&self) -> Vec<u8> {
        vec![0; self.shape.length()]
    }

    fn value(&self) -> Vec<u8> {
        vec![0; self.session.values.length()]
    }
}

/// Whether the last windows agree.
fn is_steady(paces: &[f64]) -> bool {
    let Some(last) = paces.last_chunk::<AGREEING>() else { return false };
    let (least, most) =
        last.iter().fold((f64::MAX, 0.0f64), |(least, most), pace| (pace.min(least), pace.max(most)));
    most <= least * AGREEMENT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_windows_within_five_per_cent_are_steady() {
        assert!(!is_steady(&[1.0, 1.0]));
        assert!(is_steady(&[1.0, 1.05, 1.02]));
        assert!(!is_steady(&[1.0, 1.06, 1.02]));
        assert!(!is_steady(&[1.0, 1.0, 1.0, 0.9]));
        assert!(is_steady(&[9.0, 1.0, 1.0, 1.0]));
    }
}
