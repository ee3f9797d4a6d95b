//! Memtables and their log without a store around them, for benchmarks of these parts alone.

use quipu_bench::config::Config;
use quipu_bench::error::BenchError;
use quipu_bench::target::format_of_parts;
use quipu_medium::{LINE, Region};
use quipu_parts::commit::ring::Grants;
use quipu_parts::heap::chain::anchor::Anchor;
use quipu_parts::heap::chain::{
    ANCHOR_LEN, CHUNK_HEADER, ChainError, ChainHeap, ChainLog, ChainPools, MEMTABLE_LEN, RECORD_HEADER,
    SUBTABLE_LEN,
};
use quipu_parts::heap::{Clock, ClockSettings};
use quipu_parts::record::{Certifier, padded};
use quipu_parts::space::{FormatOptions, PoolSpec, Space};
use std::error::Error;
use std::sync::Arc;

const CLOCK: ClockSettings = ClockSettings { block: 1 << 20, handful: 64 };
const MEMTABLES: u32 = 1;
const ANCHOR: u32 = 2;
const SUBTABLES: u32 = 3;
/// Bytes of a zone, and zones of a memtable: 64 MiB; on the simulator, 256 KiB.
const ZONES: [(u64, u32); 2] = [(4 << 20, 16), (64 << 10, 4)];
/// Zones that are begun or made ready, but hold little.
const SPARE: u64 = 8;

fn zones(config: &Config) -> (u64, u32) {
    ZONES[usize::from(config.medium == quipu::MediumKind::Sim)]
}

/// Bytes of a zone.
pub(super) fn zone_size(config: &Config) -> u64 {
    zones(config).0
}

/// Bytes of an item of so many records.
pub(super) fn item_len(config: &Config, records: u64) -> u64 {
    let record = padded(RECORD_HEADER + (config.key_size + config.value_size) as u64);
    (CHUNK_HEADER + records * record).next_multiple_of(LINE)
}

/// Whether items of so many records are too long: one takes at most a quarter of a zone.
pub(super) fn is_too_long(config: &Config, records: u64) -> bool {
    item_len(config, records) > zone_size(config) / 4
}

/// Bytes of zones that so many items of so many records fill, at most.
pub(super) fn bytes_of_items(config: &Config, items: u64, records: u64) -> u64 {
    let zone = zone_size(config);
    let zones = (items * item_len(config, records)).div_ceil(zone - zone / 4) + SPARE;
    zones * zone
}

/// A log of a part's own in a new pool, with table 0 open; `bytes` are for its items.
pub(super) fn chain_log(
    config: &Config,
    region: &Region,
    bytes: u64,
    grants: Grants,
    name: &str,
) -> Result<ChainLog, BenchError> {
    fn refused<E: Error + Send + Sync + 'static>(name: &str) -> impl Fn(E) -> BenchError {
        BenchError::refused(name, "create")
    }
    let (zone_size, slots) = zones(config);
    let memtables = bytes.div_ceil(zone_size).div_ceil(u64::from(slots)) + 4;
    let options = FormatOptions {
        pools: vec![
            PoolSpec { id: MEMTABLES, object_size: MEMTABLE_LEN, count: memtables },
            PoolSpec { id: ANCHOR, object_size: ANCHOR_LEN, count: 1 },
            PoolSpec { id: SUBTABLES, object_size: SUBTABLE_LEN, count: 1 },
        ],
        ..format_of_parts(region, zone_size)
    };
    let space = Arc::new(Space::format(region.clone(), &options).map_err(refused(name))?);
    let certifier = Certifier::new(space.superblock().secret());
    let objects = space.pool(ANCHOR).expect("it was asked for");
    let anchor = objects.get().map_err(refused(name))?.expect("a new pool has one");
    let at = objects.object_offset(anchor).expect("it has just been taken");
    Anchor::create(region, &certifier, at);
    objects.commit(anchor);
    let clock = Clock::resume(&space, CLOCK, false);
    let anchor = Anchor::open(region, &certifier, at).map_err(refused(name))?;
    let pools = ChainPools { memtables: MEMTABLES, subtables: SUBTABLES };
    let mut heap = ChainHeap::new(space.clone(), certifier, clock, pools, slots);
    let table = heap.create_subtable("bench").map_err(refused(name))?;
    let recovered = heap.recover(&anchor, |_| Ok::<_, ChainError>(())).map_err(refused(name))?;
    let log = ChainLog::new(heap, grants, recovered);
    log.open(0, table.created).map_err(refused(name))?;
    Ok(log)
}
