//! How many bytes of each zone are records, and how many of those are garbage: counters in DRAM, rebuilt by
//! recovery.
//!
//! Superseding a record costs no write to persistent memory, only a counter (PACMAN section 3.2). Every write
//! counts, so the counters must not move between processors with each write. There are several copies: each
//! client adds to one of them, and readers sum them.

use super::log::LogHeap;
use crate::heap::Reference;
use crate::space::ZoneId;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Copies of the counters. With more clients, several share a copy.
const SHARDS: usize = 4;

/// The copy of the counters that a client adds to. The default one is for threads that seldom count.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shard(usize);

/// Bytes of one zone's records, as one shard knows them.
#[derive(Default)]
struct ZoneUse {
    /// All records.
    written: AtomicU64,
    /// Superseded or deleted records.
    garbage: AtomicU64,
    /// Tombstones, which are live until they may be dropped.
    tombstones: AtomicU64,
}

/// Bytes of records, summed over all clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordBytes {
    /// All records.
    pub written: u64,
    /// Superseded or deleted records.
    pub garbage: u64,
    /// Tombstones.
    pub tombstones: u64,
}

/// A segment that may be cleaned: a sealed one, or one that a client has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its zone.
    pub zone: ZoneId,
    /// Its life number: the order in which segments were opened.
    pub life: u64,
    /// The number from which on it holds tombstones: its life, or less if it may have copies of older
    /// records.
    pub oldest: u64,
    /// Bytes of its records.
    pub written: u64,
    /// Of these, bytes of superseded or deleted records.
    pub garbage: u64,
    /// Of these, bytes of records that are known to have expired.
    pub expired: u64,
    /// Of these, bytes of tombstones.
    pub tombstones: u64,
    /// Bytes behind its records that will never be written; none for a segment that a client may still
    /// continue.
    pub unused: u64,
}

pub(super) struct Usage {
    shards: [Box<[ZoneUse]>; SHARDS],
    next: AtomicUsize,
}

impl Usage {
    pub(super) fn new(zones: u32) -> Usage {
        let shard = || (0..zones).map(|_| ZoneUse::default()).collect();
        Usage { shards: std::array::from_fn(|_| shard()), next: AtomicUsize::new(0) }
    }

    #[inline]
    fn of(&self, shard: Shard, zone: ZoneId) -> &ZoneUse {
        &self.shards[shard.0][zone.0 as usize]
    }

    /// Sets the counters of a zone that no client counts for.
    pub(super) fn restore(&self, zone: ZoneId, bytes: RecordBytes) {
        for (shard, zones) in self.shards.iter().enumerate() {
            let RecordBytes { written, garbage, tombstones } =
                if shard == 0 { bytes } else { Default::default() };
            let counters = &zones[zone.0 as usize];
            counters.written.store(written, Ordering::Relaxed);
            counters.garbage.store(garbage, Ordering::Relaxed);
            counters.tombstones.store(tombstones, Ordering::Relaxed);
        }
    }

    /// Bytes of one zone's records.
    pub(super) fn of_zone(&self, zone: ZoneId) -> RecordBytes {
        self.shards.iter().fold(RecordBytes::default(), |sum, shard| sum + &shard[zone.0 as usize])
    }

    /// Bytes of all records.
    pub(super) fn total(&self) -> RecordBytes {
        self.shards.iter().flatten().fold(RecordBytes::default(), |sum, zone| sum + zone)
    }
}

impl LogHeap {
    /// The counters that a client will add to.
    pub fn shard(&self) -> Shard {
        Shard(self.usage.next.fetch_add(1, Ordering::Relaxed) % SHARDS)
    }

    /// Counts record bytes of a zone. Only the zone's owner does, so no locked instruction is needed.
    #[inline]
    pub fn note_written(&self, shard: Shard, zone: ZoneId, len: u64) {
        let written = &self.usage.of(shard, zone).written;
        written.store(written.load(Ordering::Relaxed) + len, Ordering::Relaxed);
    }

    /// Counts bytes of a record that no longer matters.
    #[inline]
    pub fn note_garbage(&self, shard: Shard, reference: Reference, len: u64) {
        let zone = reference.zone(self.zone_shift());
        self.usage.of(shard, zone).garbage.fetch_add(len, Ordering::Relaxed);
    }

    /// Counts bytes of a tombstone.
    #[inline]
    pub fn note_tombstone(&self, shard: Shard, reference: Reference, len: u64) {
        let zone = reference.zone(self.zone_shift());
        self.usage.of(shard, zone).tombstones.fetch_add(len, Ordering::Relaxed);
    }

    /// Bytes of all records.
    pub fn usage(&self) -> RecordBytes {
        self.usage.total()
    }

    /// Bytes of a segment's records that are not known to be garbage.
    pub fn live_bytes(&self, zone: ZoneId) -> u64 {
        let RecordBytes { written, garbage, .. } = self.usage.of_zone(zone);
        written.saturating_sub(garbage)
    }
}

impl std::ops::Add<&ZoneUse> for RecordBytes {
    type Output = RecordBytes;

    fn add(self, zone: &ZoneUse) -> RecordBytes {
        RecordBytes {
            written: self.written + zone.written.load(Ordering::Relaxed),
            garbage: self.garbage + zone.garbage.load(Ordering::Relaxed),
            tombstones: self.tombstones + zone.tombstones.load(Ordering::Relaxed),
        }
    }
}
