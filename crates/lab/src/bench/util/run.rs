//! A store from its load to its row.

use super::plan::record_of;
use super::requests::{Draw, Requests};
use super::settings::{Keys, Overwrites};
use quipu::{MediumKind, Stats};
use quipu_bench::batched::Batched;
use quipu_bench::cost::Meter;
use quipu_bench::drive::{Access, Outcome, drive};
use quipu_bench::engine::{Engine, EngineClient, OpenEngine};
use quipu_bench::error::BenchError;
use quipu_bench::report::{Compaction, Mixed, Row, Utilized};
use quipu_bench::roofline::{Limits, Roofline};
use quipu_bench::session::{Bounds, Session};
use quipu_bench::workload::KeyShape;
use std::collections::VecDeque;
use std::ops::Range;

/// Windows that have to agree.
const AGREEING: usize = 3;

/// How far apart they may be: the fastest over the slowest.
const AGREEMENT: f64 = 1.05;

/// Windows after which a run ends that does not become steady.
const MOST_WINDOWS: usize = 20;

/// Operations of a window for each write of a pool volume, at most: where puts are rare, windows would not
/// end.
const MOST_PER_WRITE: u64 = 4;

/// A store at work.
pub(super) struct Run<'a, E: Engine> {
    pub(super) session: Session<'a, E>,
    pub(super) overwrites: &'a Overwrites,
    pub(super) keys: Keys,
    /// Per cent of the segments that live records take, where that is limited.
    pub(super) utilization: Option<u64>,
    pub(super) opened: &'a E::Opened,
    pub(super) requests: &'a Requests,
    pub(super) shape: KeyShape,
    pub(super) records: u64,
    /// Writes of one pool volume.
    pub(super) writes: u64,
}

/// A window that is over, or several in a row as one.
struct Window {
    meter: Meter,
    outcome: Outcome,
    /// Bytes of the records that users wrote.
    user_bytes: u64,
    /// Statistics before and after, of a store of our own.
    stats: Option<(Stats, Stats)>,
    /// The number that has to agree: throughput or, where nothing is timed, how little was written.
    pace: f64,
}

impl Window {
    /// This window and the next one as one.
    fn and(self, next: Window) -> Window {
        Window {
            outcome: self.outcome.and(&next.outcome),
            user_bytes: self.user_bytes + next.user_bytes,
            stats: self.stats.zip(next.stats).map(|((before, _), (_, after))| (before, after)),
            ..self
        }
    }

    /// The work of compaction; times and speeds only where they are taken.
    fn compaction(&self, timed: bool) -> Option<Compaction> {
        let (before, after) = self.stats.as_ref()?;
        let moved_bytes = after.moved_bytes - before.moved_bytes;
        let moved_records = after.moved_records - before.moved_records;
        let hinted_records = after.hinted_records - before.hinted_records;
        let cleaned_bytes = (after.freed_segments - before.freed_segments) * after.segment_bytes;
        Some(Compaction {
            segments: 0,
            write_amplification: amplification(self.user_bytes, moved_bytes),
            moved_bytes,
            moved_records,
            moved_by_hint: (moved_records > 0).then(|| hinted_records as f64 / moved_records as f64),
            cleaned_bytes,
            cleaned_bytes_per_second: timed.then(|| cleaned_bytes as f64 / self.outcome.seconds),
            owed_zones: after.owed_zones,
            helped_writes: after.helped_writes - before.helped_writes,
            stalled_writes: after.stalled_writes - before.stalled_writes,
            stalled_ms: timed.then(|| after.stalled_ms - before.stalled_ms),
            reserve_bytes: after.reserve_zones * after.zone_bytes,
            metadata_bytes: after.pool_bytes - after.zones * after.zone_bytes,
        })
    }
}

/// Bytes that users and compaction wrote over those that users wrote, if they wrote any.
fn amplification(user_bytes: u64, moved_bytes: u64) -> Option<f64> {
    (user_bytes > 0).then(|| (user_bytes + moved_bytes) as f64 / user_bytes as f64)
}

/// Operations of a window, at most.
pub(super) fn most_operations(writes: u64, put: u64) -> u64 {
    let all = (writes * 100).checked_div(put).unwrap_or(u64::MAX);
    all.min(writes * MOST_PER_WRITE)
}

impl<E: Engine> Run<'_, E> {
    /// Overwrites and reads until throughput is steady. The records are there.
    pub(super) fn until_steady(&self, roofline: Option<&mut Roofline>) -> Result<Row, BenchError> {
        // Until every segment has been in use once there is nothing to see.
        self.overwrite("filling", 0, 100, self.writes)?;
        let mut bounds = Bounds::begin(roofline)?;
        // Of all windows but the last few only the figures stay: a long run has many, and latencies take
        // memory.
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
            if seconds >= self.overwrites.seconds && (steady || paces.len() >= MOST_WINDOWS) {
                let put = self.overwrites.put as f64 / 100.0;
                let roof = bounds.end()?;
                let mixed = |limits: Limits| limits.mixed(1.0 - put, put);
                let row = self.row(last, mops, steady).against(roof, mixed);
                self.reread()?;
                return Ok(row);
            }
        }
    }

    /// Puts records that are not there.
    pub(super) fn load(&self, records: Range<u64>) -> Result<(), BenchError> {
        self.session.load(self.opened, &self.shape, &self.stage("load"), records)
    }

    /// Deletes the last of the records that are there.
    pub(super) fn unload(&self, records: Range<u64>) -> Result<(), BenchError> {
        let stage = self.stage("deleting surplus");
        let session = &self.session;
        drive(&session.phase(&stage, records.end - records.start), |_| {
            let mut client = self.opened.client();
            let (mut key, _) = self.buffers();
            let stage = &stage;
            Ok(move |number| {
                self.shape.fill(records.start + number, &mut key);
                client.delete(&key).map_err(session.refused(stage))
            })
        })?;
        session.verify_count(&stage, self.opened, records.start)
    }

    fn window(&self, number: u64) -> Result<Window, BenchError> {
        let before = self.opened.stats();
        let meter = Meter::start(self.session.target.simulator());
        let put = self.overwrites.put;
        let outcome =
            self.overwrite(&format!("window {number}"), number, put, most_operations(self.writes, put))?;
        let mut window = Window {
            pace: outcome.mops(),
            meter,
            outcome,
            user_bytes: self.requests.bytes_put(),
            stats: before.zip(self.opened.stats()),
        };
        if self.session.config.medium == MediumKind::Sim {
            let written = window.compaction(false).and_then(|did| did.write_amplification);
            window.pace = 1.0 / written.unwrap_or(1.0);
        }
        Ok(window)
    }

    /// So many operations, of which so many per cent are puts.
    pub(super) fn overwrite(
        &self,
        what: &str,
        window: u64,
        put: u64,
        operations: u64,
    ) -> Result<Outcome, BenchError> {
        let stage = self.stage(what);
        let session = &self.session;
        let phase = session.phase(&stage, operations);
        // Value 0 is that of the load; all windows but the first one are of one length.
        let first = 1 + window * self.writes.max(operations);
        let record = record_of(session.config);
        let bytes = |number| record(self.shape.length(), session.values.length_of(number));
        drive(&phase, |thread| {
            let share = phase.share(thread);
            let drawn = self.requests.draw(Draw {
                thread,
                window,
                records: self.records,
                put,
                values: first + share.start..first + share.end,
                bytes: &bytes,
            });
            let (mut pair, mut value) = (self.buffers(), Vec::new());
            let mut client = Batched::new(self.opened.client(), session.config.batch);
            let stage = &stage;
            Ok(move |number| {
                let request = drawn.requests[(number - share.start) as usize];
                self.shape.fill(request.record, &mut pair.0);
                let answer = if request.is_put {
                    session.values.fill(request.record, request.value, &mut pair.1);
                    client.put(&mut pair).map_err(session.refused(stage))?;
                    client.answer(Access::Put)
                } else {
                    let found = client.get_into(&pair.0, &mut value).map_err(session.refused(stage))?;
                    session.verify_last(stage, request.record, found.then_some(&value), request.value)?;
                    client.answer(Access::Get)
                };
                if number + 1 < share.end {
                    return Ok(answer);
                }
                client.finish(answer).map_err(session.refused(stage))
            })
        })
    }

    fn row(&self, last: VecDeque<Window>, mut mops: Vec<f64>, steady: bool) -> Row {
        let timed = self.session.config.medium != MediumKind::Sim;
        if !timed {
            mops.clear();
        }
        let window = last.into_iter().reduce(Window::and).expect("a run has a window");
        let utilized = Utilized {
            utilization: self.utilization,
            distribution: self.keys.to_string(),
            put: self.overwrites.put,
            windows: mops,
            steady,
            mixed: mixed(&window.outcome).filter(|_| timed),
            compaction: window.compaction(timed),
        };
        let row = self.session.batched(self.session.row("util", window.meter, window.outcome));
        let row = Row { records: self.records, utilized: Some(utilized), ..row };
        row.holding(self.records, self.session.before, self.opened.pool_bytes())
    }

    /// Reads every record, which must have the last value that was written to it.
    pub(super) fn reread(&self) -> Result<(), BenchError> {
        let stage = self.stage("reading back");
        let session = &self.session;
        drive(&session.phase(&stage, self.records), |_| {
            let mut client = self.opened.client();
            let (mut key, mut value) = self.buffers();
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

    fn stage(&self, what: &str) -> String {
        let at = self.utilization.map_or(String::new(), |percent| format!(" at {percent} %"));
        format!("{}{at}: {what}", self.keys)
    }

    /// For a key and a value.
    fn buffers(&self) -> (Vec<u8>, Vec<u8>) {
        (vec![0; self.shape.length()], vec![0; self.session.values.length()])
    }
}

/// Times of gets and puts, if there were both.
fn mixed(outcome: &Outcome) -> Option<Mixed> {
    Some(Mixed {
        get_p50_ns: outcome.percentile_of(Access::Get, 50.0)?,
        get_p99_ns: outcome.percentile_of(Access::Get, 99.0)?,
        put_p50_ns: outcome.percentile_of(Access::Put, 50.0)?,
        put_p99_ns: outcome.percentile_of(Access::Put, 99.0)?,
    })
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

    #[test]
    fn a_window_writes_a_pool_volume_unless_puts_are_rare() {
        let operations = [100, 50, 25, 5, 0].map(|put| most_operations(1000, put));
        assert_eq!(operations, [1000, 2000, 4000, 4000, 4000]);
    }

    #[test]
    fn amplification_is_of_what_users_wrote() {
        assert_eq!(
            [(100, 50), (200, 300)].map(|(user, moved)| amplification(user, moved)),
            [Some(1.5), Some(2.5)]
        );
        assert_eq!(amplification(0, 5), None);
    }
}
