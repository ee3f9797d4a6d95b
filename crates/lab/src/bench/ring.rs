//! The ring and its chain alone, without an index: the price and the gain of order and batching (figure
//! 16 of the paper on an LSM engine for transactions on persistent memory, VLDB'21).
//!
//! Every thread writes items of so many records to one memtable after another, and waits until each is
//! visible. The limit beside is that of items of the same bytes: each thread streams them to a place of its
//! own, with a fence each. It is taken before and after, and the mean counts.

use super::config::{Config, refuse};
use super::cost::Meter;
use super::drive::{Outcome, Phase, drive};
use super::error::BenchError;
use super::progress::Progress;
use super::report::{Row, Sink};
use super::roofline::{Limits, Roof};
use super::target::bare;
use quipu_medium::{LINE, Node, Region};
use quipu_parts::commit::ring::Grants;
use quipu_parts::heap::chain::anchor::Anchor;
use quipu_parts::heap::chain::{
    ANCHOR_LEN, CHUNK_HEADER, ChainError, ChainHeap, ChainLog, ChainPools, Chunk, GroupSettings, Groups,
    Item, MEMTABLE_LEN, RECORD_HEADER, SUBTABLE_LEN, Supply, Written,
};
use quipu_parts::heap::{Clock, ClockSettings};
use quipu_parts::record::{Certifier, Content, padded};
use quipu_parts::space::{FormatOptions, FreeListKind, PoolSpec, SETTINGS_LEN, Space};
use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;

/// How items are formed and granted.
#[derive(Clone, Debug)]
pub struct Items {
    /// Records of an item; each makes a row.
    pub batches: Vec<u64>,
    /// How threads take turns at the grant; each makes a row.
    pub grants: Vec<Grants>,
    /// If given, threads write one record each, and meet in so many buckets: an item has up to the batch.
    pub buckets: Option<usize>,
}

const NAME: &str = "ring";
const CLOCK: ClockSettings = ClockSettings { block: 1 << 20, handful: 64 };
/// Records that a thread makes.
const MADE: u64 = 1000;
const MEMTABLES: u32 = 1;
const ANCHOR: u32 = 2;
const SUBTABLES: u32 = 3;
/// Bytes of a zone, and zones of a memtable: 64 MiB; on the simulator, 256 KiB.
const ZONES: [(u64, u32); 2] = [(4 << 20, 16), (64 << 10, 4)];

/// Writes the records of the settings, once for each batch and each way of granting.
pub fn ring(
    config: &Config,
    items: &Items,
    progress: &dyn Progress,
    sink: Sink<'_>,
) -> Result<(), BenchError> {
    config.check_run()?;
    refuse([
        (items.batches.is_empty() || items.batches.contains(&0), "batch", "must be at least 1"),
        (items.grants.is_empty(), "grants", "must be lock, ticket or both"),
        (items.buckets == Some(0), "buckets", "must be at least 1"),
    ])?;
    let longest = items.batches.iter().map(|batch| len_of(config, *batch)).max().unwrap_or_default();
    let (zone_size, _) = zones(config);
    refuse([(
        longest > zone_size / 4,
        "batch",
        "must be shorter: an item takes at most a quarter of a zone",
    )])?;
    for batch in &items.batches {
        for grants in &items.grants {
            sink(Run { config, items, batch: *batch, grants: *grants, progress }.measure()?);
        }
    }
    Ok(())
}

fn zones(config: &Config) -> (u64, u32) {
    ZONES[usize::from(config.medium == quipu::MediumKind::Sim)]
}

/// Bytes of an item of so many records.
fn len_of(config: &Config, batch: u64) -> u64 {
    let record = padded(RECORD_HEADER + (config.key_size + config.value_size) as u64);
    (CHUNK_HEADER + batch * record).next_multiple_of(LINE)
}

fn refused<E: Error + Send + Sync + 'static>(phase: &str) -> impl Fn(E) -> BenchError {
    BenchError::refused(NAME, phase)
}

struct Run<'a> {
    config: &'a Config,
    items: &'a Items,
    batch: u64,
    grants: Grants,
    progress: &'a dyn Progress,
}

impl Run<'_> {
    /// Records of a call: those of an item, or those that a thread adds to one.
    fn each(&self) -> u64 {
        if self.items.buckets.is_some() { 1 } else { self.batch }
    }

    fn calls(&self) -> u64 {
        (self.config.records / self.each()).max(self.config.threads as u64)
    }

    fn phase<'p>(&'p self, stage: &'p str) -> Phase<'p> {
        let phase = Phase::new(stage, self.config.threads, self.calls(), self.progress);
        Phase { operations_per_call: self.each(), ..phase }
    }

    fn measure(&self) -> Result<Row, BenchError> {
        let config = self.config;
        let (zone_size, slots) = zones(config);
        // Clients that meet may also write alone, a line more each.
        let bytes = self.calls() * len_of(config, self.each());
        let zones = bytes.div_ceil(zone_size - zone_size / 4) + 8;
        let region = bare(config, (zones + 2) * zone_size)?;
        let times = region.simulator().is_none();
        let before = if times { Some(self.limit(&region)?) } else { None };
        let log = self.log(&region, zones.div_ceil(u64::from(slots)) + 4)?;
        let phase = match self.items.buckets {
            Some(_) => format!("groups of up to {}", self.batch),
            None => format!("items of {}", self.batch),
        };
        let name = format!("{NAME} ({})", if self.grants == Grants::Lock { "lock" } else { "ticket" });
        let meter = Meter::start(region.simulator());
        let outcome = match self.items.buckets {
            Some(buckets) => self.groups(&phase, &log, buckets)?,
            None => self.alone(&phase, &log)?,
        };
        let row = meter.stop(Row::of(&name, &phase, config), &outcome);
        let Some(before) = before else { return Ok(row) };
        drop(log);
        let write_mops = (before + self.limit(&region)?) / 2.0;
        let ordinary = Limits { write_mops, read_mops: 0.0 };
        Ok(row.against(Some(Roof { ordinary, huge: None }), |limits| limits.write_mops))
    }

    /// Every thread writes items of its own.
    fn alone(&self, stage: &str, log: &ChainLog) -> Result<Outcome, BenchError> {
        drive(&self.phase(stage), |thread| {
            let (mut made, mut item) = (self.made(thread)?, Item::default());
            Ok(move |_| {
                made.add(self.batch, item.chunk(0));
                log.commit(&mut item, Supply::default(), |_| {}, look).map(drop).map_err(refused(stage))
            })
        })
    }

    /// Threads meet.
    fn groups(&self, stage: &str, log: &ChainLog, buckets: usize) -> Result<Outcome, BenchError> {
        let settings = GroupSettings { buckets, records: self.batch, bytes: 64 << 10, linger: 0 };
        let groups = Groups::new(settings);
        drive(&self.phase(stage), |thread| {
            let (mut made, mut client, groups) = (self.made(thread)?, groups.client(thread), &groups);
            Ok(move |_| {
                client.fill(|item| made.add(1, item.chunk(0)));
                groups
                    .commit(log, &mut client, Supply::default(), |_| {}, look)
                    .map(drop)
                    .map_err(refused(stage))
            })
        })
    }

    fn made(&self, thread: usize) -> Result<Made, BenchError> {
        let (keys, values) = (self.config.keys()?, self.config.values()?);
        let (mut bytes, mut key, mut value) = (Vec::new(), Vec::new(), Vec::new());
        for number in (0..MADE).map(|number| thread as u64 * MADE + number) {
            keys.fill(number, &mut key);
            values.fill(number, 0, &mut value);
            bytes.extend(key.iter().chain(&value));
        }
        let Config { key_size, value_size, .. } = *self.config;
        Ok(Made { bytes, key_size, record: key_size + value_size, next: 0 })
    }

    /// The limit for items of these bytes, in million records a second.
    fn limit(&self, region: &Region) -> Result<f64, BenchError> {
        let len = len_of(self.config, self.each());
        let share = region.len() / self.config.threads as u64 / LINE * LINE;
        let outcome = drive(&self.phase("write limit"), |thread| {
            let (first, mut next, mut bytes) = (thread as u64 * share, 0, vec![0; len as usize]);
            Ok(move |call: u64| {
                bytes[0] = call as u8;
                region.write_lines_nt(first + next, &bytes, 0);
                region.fence();
                next += len;
                if next + len > share {
                    next = 0;
                }
                Ok(())
            })
        })?;
        Ok(outcome.mops())
    }

    fn log(&self, region: &Region, memtables: u64) -> Result<ChainLog, BenchError> {
        const STAGE: &str = "create";
        let (zone_size, slots) = zones(self.config);
        let options = FormatOptions {
            zone_size,
            // No store: nobody opens it as one.
            design: 0,
            settings: [0; SETTINGS_LEN],
            features: &[],
            pools: vec![
                PoolSpec { id: MEMTABLES, object_size: MEMTABLE_LEN, count: memtables },
                PoolSpec { id: ANCHOR, object_size: ANCHOR_LEN, count: 1 },
                PoolSpec { id: SUBTABLES, object_size: SUBTABLE_LEN, count: 1 },
            ],
            nodes: vec![Node(0)],
            free_list: FreeListKind::Volatile,
            secret: [7; 32],
            boot_id: region.boot_id(),
        };
        let space = Arc::new(Space::format(region.clone(), &options).map_err(refused(STAGE))?);
        let certifier = Certifier::new(space.superblock().secret());
        let objects = space.pool(ANCHOR).expect("it was asked for");
        let anchor = objects.get().map_err(refused(STAGE))?.expect("a new pool has one");
        let at = objects.object_offset(anchor).expect("it has just been taken");
        Anchor::create(region, &certifier, at);
        objects.commit(anchor);
        let clock = Clock::resume(&space, CLOCK, false);
        let anchor = Anchor::open(region, &certifier, at).map_err(refused(STAGE))?;
        let pools = ChainPools { memtables: MEMTABLES, subtables: SUBTABLES };
        let mut heap = ChainHeap::new(space.clone(), certifier, clock, pools, slots);
        let table = heap.create_subtable(NAME).map_err(refused(STAGE))?;
        let recovered = heap.recover(&anchor, |_| Ok::<_, ChainError>(())).map_err(refused(STAGE))?;
        let log = ChainLog::new(heap, self.grants, recovered);
        log.open(0, table.created).map_err(refused(STAGE))?;
        Ok(log)
    }
}

/// Records that were made beforehand, so that making them is not measured; a thread goes round them.
struct Made {
    /// Keys and values, one behind the other.
    bytes: Vec<u8>,
    key_size: usize,
    record: usize,
    next: usize,
}

impl Made {
    fn add(&mut self, count: u64, chunk: &mut Chunk) {
        for _ in 0..count {
            if self.next == self.bytes.len() {
                self.next = 0;
            }
            let (key, value) = self.bytes[self.next..][..self.record].split_at(self.key_size);
            chunk.push(&Content::value(key, value));
            self.next += self.record;
        }
    }
}

/// Stands for the index.
fn look(written: &Written<'_>) {
    written.references().for_each(|reference| {
        black_box(reference);
    });
}
