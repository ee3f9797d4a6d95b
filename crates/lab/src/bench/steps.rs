//! The steps of an operation: the whole beside its steps, each alone.
//!
//! A clock inside of an operation of half a microsecond would measure itself. So the steps are taken one by
//! one: the store's own parts, in the same order and over the same records, without a store around them
//! (figure 12 of Viper, VLDB'21). The result is a guide and no sum: alone, the misses of one call overlap
//! with those of the next, and the whole also locks keys, pins epochs and draws numbers. On the simulator the
//! steps show which of them reads and writes PM.
//!
//! The parts are those of a store of slots; logs have no such benchmark.

use quipu::Design;
use quipu::internals::RecordForm;
use quipu_bench::config::{Config, setting};
use quipu_bench::cost::Meter;
use quipu_bench::drive::{Phase, drive};
use quipu_bench::error::{BenchError, Fault};
use quipu_bench::ops::{OpsPhase, ops};
use quipu_bench::progress::Progress;
use quipu_bench::report::{Row, Sink};
use quipu_bench::target::{bare, format_of_parts, room};
use quipu_bench::workload::{KeyShape, Permutation, Values};
use quipu_medium::Region;
use quipu_parts::epoch::Collector;
use quipu_parts::heap::slots::{Neighbor, Offset, SlotHeap};
use quipu_parts::heap::{Clock, ClockSettings};
use quipu_parts::index::cceh::{CcehIndex, DramNodes};
use quipu_parts::record::Certifier;
use quipu_parts::space::Space;
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers are not drawn here.
const CLOCK: ClockSettings = ClockSettings { block: 1 << 20, handful: 1 };

/// Bytes of a zone.
const ZONE: u64 = 256 << 10;

/// Measures insert, get, update_in_place and remove of the design `viper`, and the steps of each. The rows of
/// steps are named by operation and step.
pub fn steps(config: &Config, progress: &dyn Progress, sink: Sink<'_>) -> Result<(), BenchError> {
    if config.designs != [Design::VIPER] {
        return Err(setting("designs", "must be viper alone: steps are those of its parts"));
    }
    if config.options(Design::VIPER)?.slots.form == RecordForm::Variable {
        return Err(setting("sizes", "must be those of records that fit slots"));
    }
    let phases = vec![OpsPhase::Get, OpsPhase::UpdateInPlace, OpsPhase::Remove];
    let config = &Config { phases, prefilled: 0, operations: config.records, ..config.clone() };
    ops(config, progress, sink)?;
    let parts = Parts::new(config, progress)?;
    parts.insert_records(sink)?;
    parts.insert_map(sink)?;
    parts.find("get: map", sink)?;
    parts.get_records(sink)?;
    parts.update_records(sink)?;
    parts.remove_records(sink)?;
    parts.remove_map(sink)
}

fn refused<E: Error + Send + Sync + 'static>(phase: &str) -> impl Fn(E) -> BenchError {
    BenchError::refused(Design::VIPER.name(), phase)
}

/// Parts of a store, and where the records are.
struct Parts<'a> {
    config: &'a Config,
    progress: &'a dyn Progress,
    region: Region,
    heap: SlotHeap,
    index: CcehIndex<DramNodes>,
    epochs: Collector,
    keys: KeyShape,
    values: Values,
    /// Where each record is.
    offsets: Vec<AtomicU64>,
    /// The order in which they are written. All else meets them by their numbers, and so at random places.
    order: Permutation,
}

impl<'a> Parts<'a> {
    fn new(config: &'a Config, progress: &'a dyn Progress) -> Result<Parts<'a>, BenchError> {
        let bytes = room(config, config.records + config.records / 8, 0);
        let region = bare(config, bytes)?;
        let options = config.options(Design::VIPER)?;
        let format = format_of_parts(&region, ZONE);
        let space = Space::format(region.clone(), &format).map_err(refused("create"))?;
        let certifier = Certifier::new(space.superblock().secret());
        let clock = Clock::resume(&space, CLOCK, false);
        let (heap, _) =
            SlotHeap::new(&Neighbor::default(), space, certifier, clock, options.slots.fitted(ZONE), 0)
                .map_err(refused("create"))?;
        heap.open_blocks().map_err(refused("create"))?;
        Ok(Parts {
            config,
            progress,
            region,
            heap,
            index: CcehIndex::in_dram(options.offset_map.shape),
            epochs: Collector::new(),
            keys: config.keys()?,
            values: config.values()?,
            offsets: (0..config.records).map(|_| AtomicU64::new(0)).collect(),
            order: Permutation::new(config.records, config.seed),
        })
    }

    /// Takes one step for each record, and hands over its row.
    fn measure<P, C>(&self, step: &str, sink: Sink<'_>, prepare: P) -> Result<(), BenchError>
    where
        P: Fn(usize) -> Result<C, BenchError> + Sync,
        C: FnMut(u64) -> Result<(), BenchError>,
    {
        let Config { threads, records, .. } = *self.config;
        let row = Row::of(Design::VIPER.name(), step, self.config);
        let meter = Meter::start(self.region.simulator());
        let outcome = drive(&Phase::new(step, threads, records, self.progress), prepare)?;
        sink(meter.stop(row, &outcome));
        Ok(())
    }

    fn hash(&self, key: &[u8]) -> u64 {
        let certifier = self.heap.certifier();
        // As the store does with an index in DRAM.
        key.try_into()
            .map_or_else(|_| certifier.key_hash(key), |number| certifier.permuted(u64::from_le_bytes(number)))
    }

    fn offset(&self, record: u64) -> Offset {
        Offset::from_word(self.offsets[record as usize].load(Ordering::Relaxed))
    }

    /// Records into pages of the thread's own, durably: lock, slot, record, bit.
    fn insert_records(&self, sink: Sink<'_>) -> Result<(), BenchError> {
        const STEP: &str = "insert: record";
        self.measure(STEP, sink, |thread| {
            let mut owner = self.heap.owner(thread as u64);
            let (mut key, mut value) = (Vec::new(), Vec::new());
            Ok(move |number| {
                let record = self.order.at(number);
                self.keys.fill(record, &mut key);
                self.values.fill(record, 0, &mut value);
                let placed = self.heap.place(&mut owner, &key, &value, number + 1).map_err(refused(STEP))?;
                self.offsets[record as usize].store(placed.offset().word(), Ordering::Relaxed);
                Ok(())
            })
        })
    }

    fn insert_map(&self, sink: Sink<'_>) -> Result<(), BenchError> {
        const STEP: &str = "insert: map";
        self.measure(STEP, sink, |_| {
            let participant = self.epochs.register();
            let mut key = Vec::new();
            Ok(move |record| {
                self.keys.fill(record, &mut key);
                let is_key = |word: u64| self.heap.key_is(Offset::from_word(word - 1), &key);
                let word = self.offset(record).word() + 1;
                let old = self.index.upsert(&participant.pin(), self.hash(&key), word, is_key);
                old.map(drop).map_err(refused(STEP))
            })
        })
    }

    /// From key to offset, with a look at the key in PM where the hash is found.
    fn find(&self, step: &str, sink: Sink<'_>) -> Result<(), BenchError> {
        self.measure(step, sink, |_| {
            let participant = self.epochs.register();
            let mut key = Vec::new();
            Ok(move |record| {
                self.keys.fill(record, &mut key);
                let is_key = |word: u64| self.heap.key_is(Offset::from_word(word - 1), &key);
                let found = self.index.get(&participant.pin(), self.hash(&key), is_key);
                if found.is_some() { Ok(()) } else { Err(missing(step, record)) }
            })
        })
    }

    /// The page's version, the record, the version again.
    fn get_records(&self, sink: Sink<'_>) -> Result<(), BenchError> {
        const STEP: &str = "get: record";
        self.measure(STEP, sink, |_| {
            let (mut key, mut value) = (Vec::new(), Vec::new());
            Ok(move |record| {
                self.keys.fill(record, &mut key);
                let read = self.heap.read_value(self.offset(record), &key, &mut value);
                if read.map_err(refused(STEP))? == Some(true) { Ok(()) } else { Err(missing(STEP, record)) }
            })
        })
    }

    /// The page's lock, the key, the word, its persistence.
    fn update_records(&self, sink: Sink<'_>) -> Result<(), BenchError> {
        const STEP: &str = "update_in_place: record";
        let at = self.config.key_size.next_multiple_of(8) - self.config.key_size;
        self.measure(STEP, sink, |_| {
            let mut key = Vec::new();
            Ok(move |record| {
                self.keys.fill(record, &mut key);
                let old = self.heap.update_in_place(self.offset(record), &key, at as u64, |old| old);
                let old = old.map_err(refused(STEP))?;
                if old.is_some() { Ok(()) } else { Err(missing(STEP, record)) }
            })
        })
    }

    /// The page's lock, the bit, its persistence.
    fn remove_records(&self, sink: Sink<'_>) -> Result<(), BenchError> {
        const STEP: &str = "remove: record";
        self.measure(STEP, sink, |_| {
            Ok(move |record| {
                let deleted = self.heap.delete(self.offset(record)).map_err(refused(STEP))?;
                if deleted.is_some() { Ok(()) } else { Err(missing(STEP, record)) }
            })
        })
    }

    /// From key to nothing. The records are gone, so the offset tells which entry it is.
    fn remove_map(&self, sink: Sink<'_>) -> Result<(), BenchError> {
        const STEP: &str = "remove: map";
        self.measure(STEP, sink, |_| {
            let participant = self.epochs.register();
            let mut key = Vec::new();
            Ok(move |record| {
                self.keys.fill(record, &mut key);
                let word = self.offset(record).word() + 1;
                let removed = self.index.remove(&participant.pin(), self.hash(&key), word);
                if removed { Ok(()) } else { Err(missing(STEP, record)) }
            })
        })
    }
}

fn missing(step: &str, record: u64) -> BenchError {
    BenchError::fault(Design::VIPER.name(), step, Fault::Missing(record))
}
