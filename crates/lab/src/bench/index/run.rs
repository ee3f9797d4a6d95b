//! The phases: each index over the same records.

use super::keys::{IndexKeys, MOST_OF_DECIMAL8};
use super::load::{IndexLoad, IndexOrder};
use super::records::{Probe, Records, word_of};
use super::{Access, BATCH, Contender, IndexKind, SCANNED};
use quipu::MediumKind;
use quipu_bench::choice::Named;
use quipu_bench::config::{Config, refuse};
use quipu_bench::cost::Meter;
use quipu_bench::drive::{Outcome, Phase, drive};
use quipu_bench::error::{BenchError, Fault};
use quipu_bench::memory::Memory;
use quipu_bench::progress::Progress;
use quipu_bench::report::{Row, Sink};
use quipu_bench::session::WARM_UP;
use quipu_bench::target::touch_dram;
use quipu_medium::Region;
use std::array;
use std::time::Instant;

/// The phases, as rows name them.
pub(super) const INSERT: &str = "insert";
pub(super) const GET: &str = "get";
pub(super) const GET_MANY: &str = "get_many";
pub(super) const SCAN: &str = "scan";
pub(super) const REMOVE: &str = "remove";
pub(super) const BULK_LOAD: &str = "bulk_load";
pub(super) const LOADED_GET: &str = "loaded_get";

/// Of so many records, a scan begins at one.
const PER_SCAN: u64 = 10;
/// Of so many scans, the order of one is checked: each of its records has to be looked at for that.
const PER_CHECK: u64 = 64;
/// Records that are looked for when all are removed.
const ABSENT: u64 = 1_000;

/// Measures indexes, one after another, on each set of keys.
///
/// # Errors
/// A setting out of range, an index's own, and a wrong answer.
pub fn indexes<K: IndexKind>(
    config: &Config,
    load: &IndexLoad,
    kinds: &[K],
    progress: &dyn Progress,
    sink: Sink<'_>,
) -> Result<(), BenchError> {
    config.check_run()?;
    let fewest = (BATCH * config.threads) as u64;
    let has_few_digits = config.records > MOST_OF_DECIMAL8 && load.keys().contains(&IndexKeys::Decimal8);
    refuse([
        (config.records < fewest, "records", "must be at least 32 for each thread, to make a batch"),
        (has_few_digits, "records", "must be at most 100M for decimal8, whose keys have eight digits"),
    ])?;
    for set in load.keys() {
        for order in load.orders() {
            progress.begin(&format!("keys {}", set.name()), config.records);
            let records = Records::new(set, order, config.records, config.seed);
            progress.end();
            let run = IndexRun { config, set, order, records, progress };
            for kind in kinds {
                kind.measure(&run, sink)?;
            }
        }
    }
    Ok(())
}

/// The records of a set of keys, on which indexes are measured.
pub struct IndexRun<'a> {
    pub(super) config: &'a Config,
    set: IndexKeys,
    order: IndexOrder,
    pub(super) records: Records,
    progress: &'a dyn Progress,
}

impl IndexRun<'_> {
    /// Threads at work.
    pub fn threads(&self) -> usize {
        self.config.threads
    }

    /// Measures an index in DRAM that `make` makes empty.
    ///
    /// # Errors
    /// The index's own, and a wrong answer.
    pub fn measure<C: Contender>(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<C, BenchError>,
        sink: Sink<'_>,
    ) -> Result<(), BenchError> {
        self.measure_on(name, None, make, sink)
    }

    /// Measures an index that may be in the pool of a region.
    pub(super) fn measure_on<C: Contender>(
        &self,
        name: &str,
        region: Option<&Region>,
        make: impl FnOnce() -> Result<C, BenchError>,
        sink: Sink<'_>,
    ) -> Result<(), BenchError> {
        let measured = Measured { run: self, name, region };
        if C::ONLY_NUMBERS && !matches!(self.set, IndexKeys::Numbers(_)) {
            sink(Row { not_run: Some("its keys are numbers"), ..measured.row(INSERT) });
            return Ok(());
        }
        if !measured.is_simulated() {
            touch_dram(self.config.records)?;
        }
        let before = Memory::baseline(self.config.medium);
        let index = make()?;
        sink(measured.holding(measured.insert(&index)?, before, &index));
        sink(measured.get(GET, &index)?);
        sink(measured.get_many(&index)?);
        if C::ORDERED {
            sink(measured.scan(&index)?);
        }
        let bulk = if measured.is_simulated() { None } else { index.bulk() };
        sink(measured.remove(&index)?);
        drop(index);
        if let Some(bulk) = bulk {
            let before = Memory::baseline(self.config.medium);
            let (index, row) = measured.load::<C>(&bulk)?;
            sink(measured.holding(row, before, &index));
            sink(measured.get(LOADED_GET, &index)?);
        }
        Ok(())
    }
}

/// An index under measurement.
struct Measured<'m> {
    run: &'m IndexRun<'m>,
    name: &'m str,
    region: Option<&'m Region>,
}

impl Measured<'_> {
    fn is_simulated(&self) -> bool {
        self.run.config.medium == MediumKind::Sim
    }

    fn row(&self, phase: &str) -> Row {
        let IndexRun { set, order, config, .. } = self.run;
        Row { keys: Some(set.name()), order: Some(order.name()), ..Row::of(self.name, phase, config) }
    }

    /// No index maps memory past the allocator, so its count is exact.
    fn holding<C: Contender>(&self, row: Row, before: Option<Memory>, index: &C) -> Row {
        let each = |bytes: u64| bytes as f64 / self.run.config.records as f64;
        let (counted, resident) = before.map_or((None, None), |before| Memory::now().witnesses_since(before));
        Row {
            dram_bytes_per_record: counted.map(each),
            resident_bytes_per_record: resident.map(each),
            pm_bytes_per_record: Some(each(index.pm_bytes())),
            ..row
        }
    }

    #[cold]
    fn fault(&self, phase: &str, fault: Fault) -> BenchError {
        BenchError::fault(self.name, phase, fault)
    }

    /// Refuses any answer but this word.
    #[inline(always)]
    fn expect(&self, phase: &str, word: u64, found: Option<u64>) -> Result<(), BenchError> {
        if found == Some(word) { Ok(()) } else { Err(self.wrong(phase, word, found)) }
    }

    #[cold]
    fn wrong(&self, phase: &str, word: u64, found: Option<u64>) -> BenchError {
        let record = word - 1;
        self.fault(phase, found.map_or(Fault::Missing(record), |found| Fault::WrongWord { record, found }))
    }

    /// Makes the calls of a phase on all threads.
    fn phase<'c, C: Contender, F>(
        &self,
        phase: &str,
        (calls, each): (u64, u64),
        index: &'c C,
        begin: impl Fn(C::Access<'c>) -> F + Sync,
    ) -> Result<Row, BenchError>
    where
        F: FnMut(u64) -> Result<(), BenchError>,
    {
        let IndexRun { config, set, progress, .. } = self.run;
        let stage = format!("{}, {}: {phase}", self.name, set.name());
        // Only reads may be repeated.
        let is_read = phase != INSERT && phase != REMOVE;
        let warms = is_read && !self.is_simulated();
        let warm_up = if warms { (calls / config.threads as u64 / 10).min(WARM_UP) } else { 0 };
        let timed = Phase {
            operations_per_call: each,
            warm_up,
            ..Phase::new(&stage, config.threads, calls, *progress)
        };
        let meter = Meter::start(self.region.and_then(Region::simulator));
        let outcome = drive(&timed, |_| Ok(begin(index.access())))?;
        Ok(meter.stop(self.row(phase), &outcome))
    }

    fn insert<C: Contender>(&self, index: &C) -> Result<Row, BenchError> {
        let records = &self.run.records;
        self.phase(INSERT, (records.count(), 1), index, |mut access| {
            move |call| {
                let word = word_of(call);
                match access.insert(records.key(call), word)? {
                    None => Ok(()),
                    Some(found) => Err(self.fault(INSERT, Fault::WrongWord { record: call, found })),
                }
            }
        })
    }

    fn get<C: Contender>(&self, phase: &str, index: &C) -> Result<Row, BenchError> {
        let records = &self.run.records;
        self.phase(phase, (records.count(), 1), index, |mut access| {
            move |call| {
                let Probe { key, word } = records.probe(call);
                let found = access.get(key)?;
                self.expect(phase, word, found)
            }
        })
    }

    fn get_many<C: Contender>(&self, index: &C) -> Result<Row, BenchError> {
        let (records, each) = (&self.run.records, BATCH as u64);
        let row = self.phase(GET_MANY, (records.count() / each, each), index, |mut access| {
            let mut words = Vec::with_capacity(BATCH);
            move |call| {
                let batch: [_; BATCH] = array::from_fn(|at| records.probe(call * each + at as u64));
                words.clear();
                access.get_many(&batch.map(|probe| probe.key), &mut words)?;
                for (probe, found) in batch.iter().zip(&words) {
                    self.expect(GET_MANY, probe.word, *found)?;
                }
                Ok(())
            }
        });
        Ok(Row { batch: Some(BATCH), ..row? })
    }

    fn scan<C: Contender>(&self, index: &C) -> Result<Row, BenchError> {
        let records = &self.run.records;
        let scans = (records.count() / PER_SCAN).max(self.run.config.threads as u64);
        self.phase(SCAN, (scans, 1), index, |mut access| {
            let mut words = Vec::with_capacity(SCANNED);
            move |call| {
                let Probe { key, word } = records.probe(call);
                words.clear();
                access.scan(key, &mut words)?;
                self.expect(SCAN, word, words.first().copied())?;
                if call % PER_CHECK == 0 || words.len() != SCANNED {
                    self.check_scan(&words)?;
                }
                Ok(())
            }
        })
    }

    /// Refuses words that are not in the order of their keys, and a scan that ends too early.
    fn check_scan(&self, words: &[u64]) -> Result<(), BenchError> {
        let records = &self.run.records;
        let keys = || words.iter().map(|word| records.key_of(*word));
        let disorder = keys().zip(keys().skip(1)).position(|(one, next)| one >= next);
        if let Some(at) = disorder {
            return Err(self.fault(SCAN, Fault::Disorder(words[at + 1].wrapping_sub(1))));
        }
        let is_whole = words.len() == SCANNED || keys().next_back().flatten() == Some(records.last());
        let count = Fault::Count { found: words.len() as u64, expected: SCANNED as u64 };
        if is_whole { Ok(()) } else { Err(self.fault(SCAN, count)) }
    }

    fn remove<C: Contender>(&self, index: &C) -> Result<Row, BenchError> {
        let records = &self.run.records;
        let row = self.phase(REMOVE, (records.count(), 1), index, |mut access| {
            move |call| {
                let Probe { key, word } = records.probe(call);
                let found = access.remove(key)?;
                self.expect(REMOVE, word, found)
            }
        })?;
        let mut access = index.access();
        for Probe { key, word } in (0..records.count().min(ABSENT)).map(|number| records.probe(number)) {
            if access.get(key)?.is_some() {
                return Err(self.fault(REMOVE, Fault::Undead(word - 1)));
            }
        }
        Ok(row)
    }

    fn load<C: Contender>(&self, bulk: &C::Bulk) -> Result<(C, Row), BenchError> {
        let records = self.run.config.records;
        self.run.progress.begin(&format!("{}, {}: {BULK_LOAD}", self.name, self.run.set.name()), records);
        let begun = Instant::now();
        let index = C::load(bulk)?;
        let outcome = Outcome::single(records, begun.elapsed().as_secs_f64());
        self.run.progress.end();
        // One thread, whatever the others do.
        Ok((index, Row { threads: 1, ..self.row(BULK_LOAD).timed(&outcome) }))
    }
}
