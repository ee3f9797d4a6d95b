//! One design being measured: what its phases share.

use super::config::Config;
use super::cost::{DimmMeter, Meter};
use super::drive::{Caller, Outcome, Phase, drive};
use super::engine::{Engine, EngineClient, OpenEngine};
use super::error::{BenchError, Fault};
use super::memory::Memory;
use super::progress::Progress;
use super::report::Row;
use super::roofline::{REPETITIONS, Roof, Roofline};
use crate::workload::{KeyShape, Values};
use quipu::MediumKind;
use quipu_medium::Nearness;
use std::error::Error;
use std::ops::Range;

/// Calls that warm a phase up, at most, per thread.
pub const WARM_UP: u64 = 50_000;

/// Records that are read again, untimed, to see that a phase did what it says.
pub const REREAD: u64 = 100_000;

/// One design in its pool, or another engine in its place.
pub struct Session<'a, E: Engine> {
    /// The settings.
    pub config: &'a Config,
    /// Hears how far it has come.
    pub progress: &'a dyn Progress,
    /// The engine.
    pub target: &'a E,
    /// The shape of values.
    pub values: Values,
    /// Highest version that any value can have.
    pub newest: u64,
    /// DRAM taken before the store was created, where that is measured.
    pub before: Option<Memory>,
}

impl<'a, E: Engine> Session<'a, E> {
    /// The name of the design or engine.
    pub fn design(&self) -> &'a str {
        self.target.name()
    }

    /// A phase of `calls` calls of one operation each.
    pub fn phase<'p>(&'p self, stage: &'p str, calls: u64) -> Phase<'p> {
        let phase = Phase::new(stage, self.config.threads, calls, self.progress);
        Phase { tasks: self.config.medium == MediumKind::Sim && self.config.threads > 1, ..phase }
    }

    /// The same phase, warmed up by a tenth of it. Costs are exact cold, and warming up would count.
    pub fn warmed<'p>(&self, phase: Phase<'p>) -> Phase<'p> {
        let warm_up = (phase.calls / phase.threads as u64 / 10).min(WARM_UP);
        Phase { warm_up: if self.config.medium == MediumKind::Sim { 0 } else { warm_up }, ..phase }
    }

    /// Runs a phase on an open store; the row says what it took, and what the store holds of `left` records
    /// after it.
    pub fn measure<P, C>(
        &self,
        opened: &E::Opened,
        phase: &Phase<'_>,
        left: impl FnOnce() -> u64,
        prepare: P,
    ) -> Result<Row, BenchError>
    where
        P: Fn(usize) -> Result<C, BenchError> + Sync,
        C: Caller,
    {
        let counted = || opened.stats().map_or((0, 0), |stats| (stats.eliminated_writes, stats.cache_hits));
        let before = counted();
        let meter = Meter::start(self.target.simulator());
        let dimms = self.target.simulator().filter(|_| self.config.counts_dimms).map(DimmMeter::new);
        let reached = opened.nearness();
        let outcome = drive(&Phase { dimms: dimms.as_ref(), ..*phase }, |thread| {
            opened.seat(thread)?;
            prepare(thread)
        })?;
        let reached = opened.nearness() - reached;
        let dimms_per_op = dimms.map(|dimms| dimms.dimms(outcome.operations));
        let row = reaching(self.row(phase.stage, meter, outcome), reached);
        let after = counted();
        // Those that warmed up are among them.
        let all = row.ops + phase.warm_up * phase.threads as u64 * phase.operations_per_call;
        let each = |count: u64| (count > 0).then(|| count as f64 / all as f64);
        let (eliminated_per_op, cache_hits_per_op) = (each(after.0 - before.0), each(after.1 - before.1));
        let row = Row { dimms_per_op, eliminated_per_op, cache_hits_per_op, ..row };
        Ok(row.holding(left(), self.before, opened.pool_bytes()))
    }

    /// The row of a phase that took `outcome`, whose histogram ends here: it is the benchmark's memory, not
    /// the store's.
    pub fn row(&self, phase: &str, meter: Meter, outcome: Outcome) -> Row {
        meter.stop(Row::of(self.design(), phase, self.config), &outcome)
    }

    /// A row whose puts were issued in batches, if they were.
    pub fn batched(&self, row: Row) -> Row {
        Row { batch: Some(self.config.batch).filter(|batch| *batch > 1), ..row }
    }

    /// Makes the store's errors the benchmark's.
    #[inline]
    pub fn refused<'p, R>(&self, phase: &'p str) -> impl Fn(R) -> BenchError + use<'a, 'p, E, R>
    where
        R: Error + Send + Sync + 'static,
    {
        // Called for every operation: names are copied only when there is an error.
        let target = self.target;
        move |source| BenchError::refused(target.name(), phase)(source)
    }

    /// Checks the value of a record that must be there.
    #[inline]
    pub fn verify(&self, phase: &str, record: u64, value: Option<&[u8]>) -> Result<(), BenchError> {
        self.verify_up_to(phase, record, value, self.newest).map(drop)
    }

    /// Puts version 0 of a record for each number, from record `first` on: the calls of one thread.
    pub fn loader<'p>(
        &'p self,
        opened: &E::Opened,
        keys: &'p KeyShape,
        phase: &'p str,
        first: u64,
    ) -> impl FnMut(u64) -> Result<(), BenchError> + use<'a, 'p, E> {
        let (mut client, mut key, mut value) = (opened.client(), Vec::new(), Vec::new());
        move |number| {
            keys.fill(first + number, &mut key);
            self.values.fill(first + number, 0, &mut value);
            client.put(&key, &value).map_err(self.refused(phase))
        }
    }

    /// Puts version 0 of these records. All before them are there.
    pub fn load(
        &self,
        opened: &E::Opened,
        keys: &KeyShape,
        phase: &str,
        records: Range<u64>,
    ) -> Result<(), BenchError> {
        let loader = |thread| {
            opened.seat(thread)?;
            Ok(self.loader(opened, keys, phase, records.start))
        };
        drive(&self.phase(phase, records.end - records.start), loader)?;
        self.verify_count(phase, opened, records.end)
    }

    /// A wrong answer of the store.
    #[cold]
    pub fn fault(&self, phase: &str, fault: Fault) -> BenchError {
        BenchError::fault(self.design(), phase, fault)
    }

    /// Checks that `value` is one of the record, of a number up to `newest`, and returns its number.
    // A call would count in every operation that is measured.
    #[inline(always)]
    fn verify_up_to(
        &self,
        phase: &str,
        record: u64,
        value: Option<&[u8]>,
        newest: u64,
    ) -> Result<u64, BenchError> {
        let value = value.ok_or_else(|| self.fault(phase, Fault::Missing(record)))?;
        let checked = self.values.check(record, value, newest);
        checked.map_err(|mismatch| self.fault(phase, Fault::WrongValue(record, mismatch)))
    }

    /// Checks that `value` is the record's value number `expected`, the last one written.
    pub fn verify_last(
        &self,
        phase: &str,
        record: u64,
        value: Option<&[u8]>,
        expected: u64,
    ) -> Result<(), BenchError> {
        let found = self.verify_up_to(phase, record, value, expected)?;
        if found == expected {
            Ok(())
        } else {
            Err(self.fault(phase, Fault::Stale { record, found, expected }))
        }
    }

    /// Checks that the store counts as many records as it acknowledged, if it counts.
    pub fn verify_count(&self, phase: &str, opened: &E::Opened, expected: u64) -> Result<(), BenchError> {
        let wrong = opened.records().filter(|found| *found != expected);
        wrong.map_or(Ok(()), |found| Err(self.fault(phase, Fault::Count { found, expected })))
    }
}

/// A row with lines of other nodes, where there are several.
fn reaching(row: Row, reached: Nearness) -> Row {
    let all = reached.near_lines_read + reached.far_lines_read + reached.near_lines_written;
    if all + reached.far_lines_written == 0 {
        return row;
    }
    let each = |lines: u64| Some(lines as f64 / row.ops as f64);
    Row {
        remote_reads_per_op: each(reached.far_lines_read),
        remote_writes_per_op: each(reached.far_lines_written),
        ..row
    }
}

/// Makes the engine anew, runs something on it, and removes it.
pub fn in_new_place<E: Engine, T>(
    engine: &E,
    records: u64,
    run: impl FnOnce(E::Opened) -> Result<T, BenchError>,
) -> Result<T, BenchError> {
    let result = run(engine.create(records)?);
    engine.remove()?;
    result
}

/// The limits around the phases of one design, if they are asked for.
pub struct Bounds<'a>(Option<&'a mut Roofline>);

impl<'a> Bounds<'a> {
    /// Begins anew, with repetitions before the first phase.
    pub fn begin(roofline: Option<&'a mut Roofline>) -> Result<Bounds<'a>, BenchError> {
        let mut bounds = Bounds(roofline);
        if let Some(roofline) = &mut bounds.0 {
            roofline.restart();
        }
        for _ in 0..REPETITIONS {
            bounds.between()?;
        }
        Ok(bounds)
    }

    /// One more repetition, between two phases.
    pub fn between(&mut self) -> Result<(), BenchError> {
        self.0.as_mut().map_or(Ok(()), |roofline| roofline.repeat().map(drop))
    }

    /// The last repetitions, and what came out.
    pub fn end(mut self) -> Result<Option<Roof>, BenchError> {
        for _ in 0..REPETITIONS {
            self.between()?;
        }
        Ok(self.0.map(|roofline| roofline.limits()))
    }
}
