//! Puts and gets for a fixed time: how steady a store is.
//!
//! The mean of a run hides the moments in which a store does something else: compacts, flushes, waits for
//! its disk. So each operation is timed, throughput is told by the second, and operations that stalled are
//! counted beside a control that tells the stalls of the machine (see `stalls`). The benchmark's own work on
//! keys and values is outside of latencies, and inside of the throughput.
//!
//! Threads share all records. A get must find a whole value of its record; which of those that were written
//! is not known where several threads write.

use super::timeline::Timeline;
use super::util::Keys;
use quipu::MediumKind;
use quipu_bench::config::{Config, refuse};
use quipu_bench::cost::Meter;
use quipu_bench::drive::{Access, ENDLESS, Outcome, Phase, drive};
use quipu_bench::engine::{Engine, EngineClient, OpenEngine};
use quipu_bench::error::BenchError;
use quipu_bench::memory::Memory;
use quipu_bench::progress::Progress;
use quipu_bench::report::{EachKind, Row, Sink, Steadiness, Steady};
use quipu_bench::roofline::{Limits, Roofline};
use quipu_bench::session::{Bounds, Session, in_new_place};
use quipu_bench::stalls::{Stalls, beside_control};
use quipu_bench::target::{Target, room};
use quipu_bench::workload::{KeyShape, mix};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The name of the phase.
const PHASE: &str = "steady";

/// Volumes of all records that a pool has room for, where its size is not given.
const VOLUMES: u64 = 2;

/// The load.
#[derive(Clone, Debug)]
pub struct SteadyLoad {
    /// How records are chosen.
    pub keys: Keys,
    /// Per cent of the operations that are puts; the others are gets.
    pub put: u64,
    /// Seconds that it lasts.
    pub seconds: u64,
}

impl Default for SteadyLoad {
    fn default() -> SteadyLoad {
        SteadyLoad { keys: Keys::Uniform, put: 50, seconds: 60 }
    }
}

impl SteadyLoad {
    fn check(&self) -> Result<(), BenchError> {
        refuse([
            (self.put > 100, "put", "must be 0 to 100, in per cent"),
            (self.seconds == 0, "seconds", "must be at least 1"),
        ])?;
        self.keys.check()
    }
}

/// Loads the records into each design and puts and gets for the time of the load. Hands over one row for
/// each design.
///
/// # Errors
/// As for [`ops`](quipu_bench::ops()).
pub fn steady(
    config: &Config,
    load: &SteadyLoad,
    progress: &dyn Progress,
    sink: Sink<'_>,
) -> Result<(), BenchError> {
    config.check()?;
    load.check()?;
    let mut roofline = if config.roofline { Some(Roofline::new(config)?) } else { None };
    for &design in &config.designs {
        let target = Target::new(config, design, room(config, config.records * VOLUMES, 0))?;
        steady_of(config, load, &target, roofline.as_mut(), progress, sink)?;
    }
    Ok(())
}

/// The same on any engine; the designs of the settings do not count. Its limits are measured if there is
/// something to measure them with.
pub fn steady_of<E: Engine>(
    config: &Config,
    load: &SteadyLoad,
    engine: &E,
    roofline: Option<&mut Roofline>,
    progress: &dyn Progress,
    sink: Sink<'_>,
) -> Result<(), BenchError> {
    config.check_run()?;
    load.check()?;
    let values = load.keys.values(config)?;
    // Before the memory of the store is measured.
    let timelines = (0..config.threads).map(|_| Mutex::new(Timeline::new(load.seconds))).collect();
    let before = Memory::baseline(config.medium);
    // Versions are the calls' numbers from 1.
    let newest = ENDLESS * config.threads as u64;
    let session = Session { config, progress, target: engine, values, newest, before };
    let keys = config.keys()?;
    let all = |opened| Run { session, load, keys, timelines, opened: &opened }.all(roofline);
    sink(in_new_place(engine, config.records, all)?);
    Ok(())
}

struct Run<'a, E: Engine> {
    session: Session<'a, E>,
    load: &'a SteadyLoad,
    keys: KeyShape,
    /// One for each thread.
    timelines: Vec<Mutex<Timeline>>,
    opened: &'a E::Opened,
}

impl<E: Engine> Run<'_, E> {
    fn all(self, roofline: Option<&mut Roofline>) -> Result<Row, BenchError> {
        let Config { records, medium, .. } = *self.session.config;
        self.session.load(self.opened, &self.keys, "load", 0..records)?;
        let mut bounds = Bounds::begin(roofline)?;
        let meter = Meter::start(self.session.target.simulator());
        let (outcome, control) = beside_control(|| self.operations());
        let outcome = outcome?;
        self.session.verify_count(PHASE, self.opened, records)?;
        bounds.between()?;
        let Run { session, load, timelines, opened, .. } = self;
        let timelines =
            timelines.into_iter().map(|one| one.into_inner().unwrap_or_else(PoisonError::into_inner));
        let timeline = timelines.reduce(Timeline::together).expect("a run has a thread");
        let (by_second, latencies, stalls) = timeline.parts();
        let outcome = outcome.with(latencies);
        let is_timed = medium != MediumKind::Sim;
        let times = is_timed.then(|| steadiness(by_second, &outcome, Stalls::of(&stalls, &control)));
        let steady = Steady { distribution: load.keys.to_string(), put: load.put, times };
        let row = Row { steady: Some(steady), ..session.row(PHASE, meter, outcome) };
        let row = row.holding(records, session.before, opened.pool_bytes());
        let put = load.put as f64 / 100.0;
        Ok(row.against(bounds.end()?, |limits: Limits| limits.mixed(1.0 - put, put)))
    }

    /// Puts and gets until the time is over.
    fn operations(&self) -> Result<Outcome, BenchError> {
        let Run { session, load, keys, .. } = self;
        let Config { records, seed, .. } = *session.config;
        let phase = session.phase(PHASE, records).lasting(Some(load.seconds));
        drive(&Phase { counts_disk: true, ..phase }, |thread| {
            let mut random = SmallRng::seed_from_u64(mix(mix(seed).wrapping_add(thread as u64)));
            let choice = load.keys.choice(records);
            let (mut client, refused) = (self.opened.client(), session.refused(PHASE));
            let (mut key, mut value) = (Vec::new(), Vec::new());
            // The thread's own until its calls are made.
            let mut timeline = self.timelines[thread].lock().unwrap_or_else(PoisonError::into_inner);
            Ok(move |call: u64| {
                let record = choice.draw(&mut random, |record| record);
                keys.fill(record, &mut key);
                if random.random_range(0..100) < load.put {
                    session.values.fill(record, call + 1, &mut value);
                    let begin = Instant::now();
                    client.put(&key, &value).map_err(&refused)?;
                    timeline.note(Access::Put, begin, Instant::now());
                    return Ok(Access::Put);
                }
                let begin = Instant::now();
                let found = client.get_into(&key, &mut value).map_err(&refused)?;
                timeline.note(Access::Get, begin, Instant::now());
                session.verify(PHASE, record, found.then_some(&value))?;
                Ok(Access::Get)
            })
        })
    }
}

/// The times of a run, from its operations by the second.
fn steadiness(by_second: Vec<u64>, outcome: &Outcome, stalls: Stalls) -> Steadiness {
    let mops_by_second: Vec<f64> = by_second.iter().map(|operations| *operations as f64 / 1e6).collect();
    let mut sorted = mops_by_second.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let (slowest, median) = (sorted[0], sorted[sorted.len() / 2]);
    let [get, put] =
        [Access::Get, Access::Put].map(|access| move |percent| outcome.percentile_of(access, percent));
    Steadiness {
        mops_by_second,
        median_second_mops: median,
        slowest_second_mops: slowest,
        slowest_over_median: (median > 0.0).then(|| slowest / median),
        each: EachKind {
            get_p50_ns: get(50.0),
            get_p99_ns: get(99.0),
            get_p999_ns: get(99.9),
            get_max_ns: get(100.0),
            put_p50_ns: put(50.0),
            put_p99_ns: put(99.0),
            put_p999_ns: put(99.9),
            put_max_ns: put(100.0),
        },
        stalls,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_second_stands_beside_the_median_one() {
        let outcome = Outcome::single(0, 1.0);
        let found = steadiness(vec![400, 100, 300, 500, 200], &outcome, Stalls::default());
        assert_eq!(found.mops_by_second, [0.0004, 0.0001, 0.0003, 0.0005, 0.0002], "in the order of time");
        assert_eq!((found.median_second_mops, found.slowest_second_mops), (0.0003, 0.0001));
        assert!((found.slowest_over_median.unwrap() - 1.0 / 3.0).abs() < 1e-9);
        let still = steadiness(vec![0, 0], &outcome, Stalls::default());
        assert_eq!((still.slowest_second_mops, still.slowest_over_median), (0.0, None));
    }

    #[test]
    fn a_load_without_meaning_is_refused() {
        let refused = |load: SteadyLoad| load.check().unwrap_err().to_string();
        assert!(refused(SteadyLoad { put: 101, ..SteadyLoad::default() }).starts_with("put must be"));
        assert!(refused(SteadyLoad { seconds: 0, ..SteadyLoad::default() }).starts_with("seconds must be"));
        let keys = Keys::Zipf(1.0);
        assert!(refused(SteadyLoad { keys, ..SteadyLoad::default() }).starts_with("zipf must be"));
    }
}
