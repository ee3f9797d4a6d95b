//! Memtables without a store: an index, and the records that it names (figure 14 of the paper on an LSM
//! engine for transactions on persistent memory, VLDB'21).
//!
//! Records go into memtables in items, as those of the design `xp` do, with one fence an item. Each is then
//! put into the index, which names the record's place. In DRAM the index is Masstree, in place of the paper's
//! radix tree (SPM-D). In the pool it is FAST&FAIR, whose own writes are durable too (FFM). Beside them
//! stands a skip list with its records in DRAM, of which nothing is durable (SLM). All are reached by the
//! same calls. Versions of a key, snapshots and locks are the store's, and not here.
//!
//! Keys are the numbers of the records in eight bytes. They come in their order, each thread having a part of
//! it, or in a random one. A `get` looks for a random key, copies the record's value out and checks it.

use super::chain::{bytes_of_items, chain_log, is_too_long, zone_size};
use crossbeam_skiplist::SkipMap;
use quipu_bench::config::{Config, refuse};
use quipu_bench::cost::Meter;
use quipu_bench::drive::{Phase, drive};
use quipu_bench::error::{BenchError, Fault};
use quipu_bench::memory::Memory;
use quipu_bench::progress::Progress;
use quipu_bench::report::{Row, Sink};
use quipu_bench::session::WARM_UP;
use quipu_bench::target::{INDEX_PER_RECORD, bare, touch_dram};
use quipu_bench::workload::{Permutation, Values, mix};
use quipu_medium::Region;
use quipu_parts::commit::ring::Grants;
use quipu_parts::epoch::{Collector, Participant};
use quipu_parts::heap::Reference;
use quipu_parts::heap::chain::{ChainLog, Item, Supply};
use quipu_parts::index::fastfair::{FastFairIndex, PmWords};
use quipu_parts::index::masstree::Masstree;
use quipu_parts::index::{InPool, Index, IndexError, Key};
use quipu_parts::record::Content;
use quipu_parts::space::Space;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::error::Error;
use std::sync::Arc;

/// The order in which keys come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Ascending; each thread has a part of its own.
    Sequential,
    /// Any.
    Random,
}

/// The memtables, as rows name them.
pub(super) const SPM_D: &str = "SPM-D (Masstree)";
pub(super) const FFM: &str = "FFM (FAST&FAIR)";
pub(super) const SLM: &str = "SLM (skip list)";
/// Those of the paper that are not built.
pub(super) const SPM_P: &str = "SPM-P";
pub(super) const FPM: &str = "FPM";

const NOT_BUILT: [(&str, &str); 2] = [
    (SPM_P, "Masstree has its nodes in DRAM only"),
    (FPM, "no B+-tree with inner nodes in DRAM and unsorted leaves is built"),
];

const INSERT: &str = "insert";
const GET: &str = "get";

type Number = [u8; 8];

/// Inserts the records of the settings into each memtable, in items of their batch, and looks for as many. A
/// row says of each memtable of the paper that is not built why it is not.
pub fn memtables(
    config: &Config,
    order: Order,
    progress: &dyn Progress,
    sink: Sink<'_>,
) -> Result<(), BenchError> {
    config.check_run()?;
    let batch = config.batch as u64;
    refuse([
        (config.key_size != size_of::<Number>(), "key size", "must be 8: keys are numbers"),
        (is_too_long(config, batch), "batch", "must be shorter: an item takes at most a quarter of a zone"),
    ])?;
    let calls = (config.records / batch).max(config.threads as u64);
    let (records, values) = (calls * batch, config.values()?);
    let shuffled = (order == Order::Random).then(|| Permutation::new(records, config.seed));
    let run = Run { config, progress, batch, records, values, shuffled };
    run.in_pm(SPM_D, |_| Ok(Masstree::new()), sink)?;
    run.in_pm(FFM, |space| FastFairIndex::<PmWords>::create(space, (), 0, |_| ()), sink)?;
    if config.medium != quipu::MediumKind::Sim {
        run.measure(SLM, None, || Ok(SkipMap::new()), sink)?;
    }
    for (name, why) in NOT_BUILT {
        sink(Row { not_run: Some(why), ..run.row(name, INSERT) });
    }
    Ok(())
}

struct Run<'a> {
    config: &'a Config,
    progress: &'a dyn Progress,
    /// Records of an item.
    batch: u64,
    /// Records in all.
    records: u64,
    values: Values,
    /// The order of the inserts, if it is not that of the keys.
    shuffled: Option<Permutation>,
}

impl Run<'_> {
    fn row(&self, name: &str, phase: &str) -> Row {
        Row { records: self.records, ..Row::of(name, phase, self.config) }
    }

    /// Measures memtables in a pool, with the index that `make` makes there or beside it.
    fn in_pm<I: Index>(
        &self,
        name: &'static str,
        make: impl FnOnce(Arc<Space>) -> Result<I, IndexError>,
        sink: Sink<'_>,
    ) -> Result<(), BenchError> {
        let config = self.config;
        let items = bytes_of_items(config, self.records / self.batch, self.batch);
        let index = if I::DURABLE { self.records * INDEX_PER_RECORD } else { 0 };
        // Two zones for the format, and two for an index to begin with.
        let region = bare(config, items + index + 4 * zone_size(config))?;
        let made = || {
            let log = chain_log(config, &region, items, Grants::Lock, name)?;
            let index = make(log.heap().space().clone()).map_err(refused(name, "create"))?;
            Ok(InPm { name, log, index, epochs: Collector::new() })
        };
        self.measure(name, Some(&region), made, sink)
    }

    fn measure<M: Memtable>(
        &self,
        name: &str,
        region: Option<&Region>,
        make: impl FnOnce() -> Result<M, BenchError>,
        sink: Sink<'_>,
    ) -> Result<(), BenchError> {
        let Config { threads, medium, .. } = *self.config;
        let sim = region.and_then(Region::simulator);
        if sim.is_none() {
            touch_dram(self.records)?;
        }
        let before = Memory::baseline(medium);
        let memtable = make()?;
        let holding = |row: Row| row.holding(self.records, before, memtable.pm_bytes());

        let phase = Phase::new(INSERT, threads, self.records / self.batch, self.progress);
        let meter = Meter::start(sim);
        let outcome = drive(&Phase { operations_per_call: self.batch, ..phase }, |_| {
            let (mut client, mut value) = (memtable.client(), Vec::new());
            Ok(move |call| {
                for number in call * self.batch..(call + 1) * self.batch {
                    let record = self.shuffled.map_or(number, |order| order.at(number));
                    self.values.fill(record, 0, &mut value);
                    client.add(record.to_be_bytes(), &value);
                }
                client.finish()
            })
        })?;
        let row = Row { batch: Some(self.batch as usize), ..self.row(name, INSERT) };
        sink(holding(meter.stop(row, &outcome)));

        let warm_up = if sim.is_some() { 0 } else { (self.records / threads as u64 / 10).min(WARM_UP) };
        let phase = Phase { warm_up, ..Phase::new(GET, threads, self.records, self.progress) };
        let meter = Meter::start(sim);
        let outcome = drive(&phase, |thread| {
            let mut random = SmallRng::seed_from_u64(mix(self.config.seed ^ (thread as u64) << 32));
            let (mut client, mut value) = (memtable.client(), Vec::new());
            Ok(move |_| {
                let record = random.random_range(0..self.records);
                if !client.get(record.to_be_bytes(), &mut value)? {
                    return Err(BenchError::fault(name, GET, Fault::Missing(record)));
                }
                let checked = self.values.check(record, &value, 0);
                let wrong = |mismatch| BenchError::fault(name, GET, Fault::WrongValue(record, mismatch));
                checked.map(drop).map_err(wrong)
            })
        })?;
        sink(holding(meter.stop(self.row(name, GET), &outcome)));
        Ok(())
    }
}

/// A memtable under measurement.
trait Memtable: Sync {
    type Client<'m>: Client
    where
        Self: 'm;

    /// The access of a thread.
    fn client(&self) -> Self::Client<'_>;

    /// Bytes of the zones in use.
    fn pm_bytes(&self) -> u64;
}

trait Client {
    /// Adds a record to the item of this moment.
    fn add(&mut self, key: Number, value: &[u8]);

    /// All that was added counts when this returns.
    fn finish(&mut self) -> Result<(), BenchError>;

    /// Copies a value out; `false` if there is none.
    fn get(&mut self, key: Number, out: &mut Vec<u8>) -> Result<bool, BenchError>;
}

/// Makes the errors of parts the benchmark's.
fn refused<E: Error + Send + Sync + 'static>(name: &str, phase: &str) -> impl Fn(E) -> BenchError {
    move |error| BenchError::refused(name, phase)(error)
}

/// An index over records in memtables of a pool.
struct InPm<I> {
    name: &'static str,
    log: ChainLog,
    index: I,
    epochs: Collector,
}

struct PmClient<'m, I> {
    memtable: &'m InPm<I>,
    participant: Participant,
    item: Item,
}

impl<I: Index> Memtable for InPm<I> {
    type Client<'m> = PmClient<'m, I>;

    fn client(&self) -> PmClient<'_, I> {
        PmClient { memtable: self, participant: self.epochs.register(), item: Item::default() }
    }

    fn pm_bytes(&self) -> u64 {
        let space = self.log.heap().space();
        space.committed_zones().len() as u64 * space.zone_size()
    }
}

/// An index that has the keys looks for them by their bytes.
fn by_bytes(key: &[u8]) -> Key<'_> {
    Key { bytes: key, hash: 0 }
}

impl<I: Index> Client for PmClient<'_, I> {
    #[inline]
    fn add(&mut self, key: Number, value: &[u8]) {
        // As the store does for the records of a batch.
        self.memtable.index.prefetch_to_write(&self.participant, by_bytes(&key));
        self.item.chunk(0).push(&Content::value(&key, value));
    }

    fn finish(&mut self) -> Result<(), BenchError> {
        let InPm { name, log, index, .. } = self.memtable;
        let guard = self.participant.pin();
        let room = index.make_room(&guard, self.item.records() as usize, size_of::<Number>());
        room.map_err(refused(name, INSERT))?;
        let (mut published, no_hash) = (Ok(()), |_| unreachable!("the index has keys"));
        let committed = log.commit(
            &mut self.item,
            Supply::default(),
            |_| {},
            |written| {
                for record in written.records() {
                    let word = record.reference.word();
                    let put = index.upsert(&guard, by_bytes(record.key), word, None, |_| true, &no_hash);
                    if let Err(error) = put {
                        published = Err(error);
                    }
                }
            },
        );
        committed.map_err(refused(name, INSERT))?;
        published.map_err(refused(name, INSERT))
    }

    #[inline]
    fn get(&mut self, key: Number, out: &mut Vec<u8>) -> Result<bool, BenchError> {
        let InPm { name, log, index, .. } = self.memtable;
        let guard = self.participant.pin_to_read();
        let word = index.get(&guard, by_bytes(&key), |_| true).map_err(refused(name, GET))?;
        let Some(word) = word else { return Ok(false) };
        // SAFETY: the index names records that are published, and no memtable is released.
        let record = unsafe { log.heap().record(Reference::from_word(word)) };
        let record = record.map_err(refused(name, GET))?;
        out.clear();
        out.extend_from_slice(record.value);
        Ok(record.key == key)
    }
}

/// Keys and values in DRAM.
type Skips = SkipMap<Number, Box<[u8]>>;

impl Memtable for Skips {
    type Client<'m> = &'m Skips;

    fn client(&self) -> &Skips {
        self
    }

    fn pm_bytes(&self) -> u64 {
        0
    }
}

impl Client for &Skips {
    #[inline]
    fn add(&mut self, key: Number, value: &[u8]) {
        self.insert(key, value.into());
    }

    fn finish(&mut self) -> Result<(), BenchError> {
        Ok(())
    }

    #[inline]
    fn get(&mut self, key: Number, out: &mut Vec<u8>) -> Result<bool, BenchError> {
        let Some(entry) = SkipMap::get(self, &key) else { return Ok(false) };
        out.clear();
        out.extend_from_slice(entry.value());
        Ok(true)
    }
}
