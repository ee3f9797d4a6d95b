//! Numbers of an open store.

use quipu_medium::Region;
use quipu_parts::index::IndexGrowth;
use std::sync::atomic::{AtomicU64, Ordering};

/// Sizes and counts of an open store, exact while no thread writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Keys present; of a pool with levels, those that are in persistent memory. Where ranges can be
    /// deleted, those of one count until they have been swept, which snapshots delay.
    pub records: u64,
    /// Bytes of the pool.
    pub pool_bytes: u64,
    /// Bytes of a zone.
    pub zone_bytes: u64,
    /// Zones of the pool.
    pub zones: u64,
    /// Zones that are free.
    pub free_zones: u64,
    /// Zones, and pieces of zones, that clients have taken from another node since open, since their own had
    /// no room.
    pub spills: u64,
    /// Zones that puts leave free, for deletes and for compaction to move records to.
    pub reserve_zones: u64,
    /// Bytes that puts leave free: those zones, or the blocks that designs with blocks keep for their
    /// cleaners.
    pub reserved_bytes: u64,
    /// Bytes that puts can use besides their open segments: free zones or blocks beyond the reserve.
    pub free_bytes: u64,
    /// The most segments that puts may fill: zones beyond the reserve that the index does not use, or
    /// blocks.
    pub segments: u64,
    /// Segments, or blocks, that are open for records: clients have them, or have left them with room.
    pub open_segments: u64,
    /// Bytes of a segment; of a block, those for records.
    pub segment_bytes: u64,
    /// Bytes of all records in segments: headers, keys, values, padding. Where the index is in the pool,
    /// segments that a crash has left open count soon after the open, when their ends are found.
    pub record_bytes: u64,
    /// Of these, bytes of superseded and deleted records and of tombstones. Where the index is in the pool,
    /// those of earlier runs are found soon after the open.
    pub garbage_bytes: u64,
    /// Of these, bytes of tombstones. They stay until no older record of their keys can be anywhere.
    pub tombstone_bytes: u64,
    /// Bytes of records that compaction has moved since open.
    pub moved_bytes: u64,
    /// Records that compaction has moved since open.
    pub moved_records: u64,
    /// Of these, records with a correct hint at their entry in the index (PACMAN section 3.1).
    pub hinted_records: u64,
    /// Segments that compaction has given back since open.
    pub freed_segments: u64,
    /// Zones beyond the reserve that compaction keeps free for puts; 0 for a design without such a goal.
    pub goal_zones: u64,
    /// Zones that are missing to that goal.
    pub owed_zones: u64,
    /// Writes since open that first helped to compact, since no cleaner did or the cleaner was behind.
    pub helped_writes: u64,
    /// Writes since open that found no room and waited for compaction.
    pub stalled_writes: u64,
    /// How long they waited in total, in milliseconds by the system's clock.
    pub stalled_ms: u64,
    /// How long somebody has kept overwritten records from being freed, in milliseconds: the oldest guard,
    /// scan, snapshot or transaction. 0 if there is none.
    pub oldest_hold_ms: u64,
    /// Puts since open that returned because a concurrent put of the key had overwritten them (MPKV section
    /// 3.3).
    pub eliminated_writes: u64,
    /// Bytes of the zones that large values take.
    pub value_bytes: u64,
    /// Bytes of DRAM that the index takes.
    pub index_bytes: u64,
    /// Bytes of the zones that the index takes, if it is in the pool.
    pub index_pm_bytes: u64,
    /// Bytes of DRAM that the cache in front of the index takes.
    pub cache_bytes: u64,
    /// Reads by key since open, where there is such a cache, and those of them that it has answered. A client
    /// adds its counts about every 32 reads.
    pub cache_reads: u64,
    /// See [`cache_reads`](Stats::cache_reads).
    pub cache_hits: u64,
    /// Records that threads on their node have copied for scans from other nodes.
    pub copied_records: u64,
    /// Splits of the index since open.
    pub index_splits: u64,
    /// Files of levels, below the pool.
    pub level_files: u64,
    /// Bytes of these files.
    pub level_bytes: u64,
    /// Records in these files, superseded ones included.
    pub level_records: u64,
    /// Bytes by which levels are larger than they should be: compaction is behind.
    pub level_debt: u64,
    /// Bytes of DRAM that levels take beside their cache.
    pub level_dram: u64,
    /// Bytes of files that dumps have written since open.
    pub dumped_bytes: u64,
    /// Pauses of writers since open that keep the pace of dumps and of compaction.
    pub paced_writes: u64,
    /// Their total length, in milliseconds.
    pub paced_ms: u64,
    /// Records that splits had to read because the index had used up its stored hash bits.
    pub index_records_read: u64,
}

impl Stats {
    /// Bytes of current records, and of zones of large values.
    pub fn live_bytes(&self) -> u64 {
        self.record_bytes.saturating_sub(self.garbage_bytes) + self.value_bytes
    }

    /// The most bytes that puts may fill.
    pub fn usable_bytes(&self) -> u64 {
        self.segments * self.segment_bytes
    }

    /// The most bytes that puts may fill while [segments are open](Stats::open_segments). No put fails for
    /// want of room as long as the live bytes are under nine tenths of these; in `xp`, under eight tenths.
    /// With large values it may, since they leave more of a segment unused.
    pub fn fillable_bytes(&self) -> u64 {
        self.segments.saturating_sub(self.open_segments) * self.segment_bytes
    }

    /// Utilization: the share of the [usable bytes](Stats::usable_bytes) that are [live](Stats::live_bytes),
    /// 0 to 1.
    pub fn utilization(&self) -> f64 {
        match self.usable_bytes() {
            0 => 0.0,
            usable => self.live_bytes() as f64 / usable as f64,
        }
    }
}

/// How compaction delayed writers. Only a delayed writer counts, so it costs the others nothing.
#[derive(Debug, Default)]
pub(crate) struct StallCounts {
    helped_writes: AtomicU64,
    stalled_writes: AtomicU64,
    stalled_ms: AtomicU64,
}

impl StallCounts {
    /// Counts a write that has helped to compact before it began.
    pub(crate) fn note_help(&self) {
        self.helped_writes.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a write that found no room, and the duration of its `wait`.
    pub(crate) fn waiting<T>(&self, region: &Region, wait: impl FnOnce() -> T) -> T {
        self.stalled_writes.fetch_add(1, Ordering::Relaxed);
        let begin = region.ticks();
        let result = wait();
        self.stalled_ms.fetch_add(region.ticks() - begin, Ordering::Relaxed);
        result
    }

    /// These statistics with these counts.
    pub(crate) fn counted_in(&self, stats: Stats) -> Stats {
        Stats {
            helped_writes: self.helped_writes.load(Ordering::Relaxed),
            stalled_writes: self.stalled_writes.load(Ordering::Relaxed),
            stalled_ms: self.stalled_ms.load(Ordering::Relaxed),
            ..stats
        }
    }
}

/// The activity of a store at this moment, for tools that prove it in the middle of an operation.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Activity {
    /// The index or the heap is growing.
    pub is_growing: bool,
    /// How far the index has grown.
    pub index_growth: IndexGrowth,
    /// Space is being reclaimed.
    pub is_compacting: bool,
    /// Segments of earlier runs are not surveyed yet; the next compaction does it.
    pub is_surveying: bool,
}
