//! How much of each zone is records, and how much of that no longer matters: counters in DRAM, rebuilt by recovery.
//!
//! PACMAN section 3.2: superseding a record costs no write to persistent memory, only a counter. Every write counts, so
//! the counters must not pass between processors with each: they exist several times, each client adds to one of them,
//! and who asks takes the sum.

use crate::space::ZoneId;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Copies of the counters. Clients beyond that share them.
const SHARDS: usize = 4;

/// Which copy of the counters a client adds to; by default the one of those who seldom do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shard(usize);

/// Bytes of one zone's records, as one shard knows them.
#[derive(Default)]
struct ZoneUse {
    /// All records.
    written: AtomicU64,
    /// Those that are superseded or deleted.
    garbage: AtomicU64,
    /// Tombstones, which are live until they may go.
    tombstones: AtomicU64,
}

/// Bytes of records, summed over all clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordBytes {
    /// All records.
    pub written: u64,
    /// Those that are superseded or deleted.
    pub garbage: u64,
    /// Tombstones.
    pub tombstones: u64,
}

/// A segment that may be cleaned, as the heap counts it: one that is sealed, or that a client has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its zone.
    pub zone: ZoneId,
    /// Its life number: the order in which segments were opened.
    pub life: u64,
    /// From which number on it holds tombstones: its life, or below that if it may have copies of older records.
    pub oldest: u64,
    /// Bytes of its records.
    pub written: u64,
    /// Of these, bytes of records that are superseded or deleted.
    pub garbage: u64,
    /// Of these, bytes of records that have expired, as far as is known.
    pub expired: u64,
    /// Of these, bytes of tombstones.
    pub tombstones: u64,
    /// Bytes behind its records that nobody will write any more; none of a segment that still serves whoever comes next.
    pub unused: u64,
}

/// See the module's documentation.
pub(super) struct Usage {
    shards: [Box<[ZoneUse]>; SHARDS],
    next: AtomicUsize,
}

impl Usage {
    pub(super) fn new(zones: u32) -> Usage {
        let shard = || (0..zones).map(|_| ZoneUse::default()).collect();
        Usage { shards: std::array::from_fn(|_| shard()), next: AtomicUsize::new(0) }
    }

    /// A shard for a client.
    pub(super) fn shard(&self) -> Shard {
        Shard(self.next.fetch_add(1, Ordering::Relaxed) % SHARDS)
    }

    fn of(&self, shard: Shard, zone: ZoneId) -> &ZoneUse {
        &self.shards[shard.0][zone.0 as usize]
    }

    /// Counts bytes of records. Only the zone's owner does, so no locked instruction is needed.
    #[inline]
    pub(super) fn add_written(&self, shard: Shard, zone: ZoneId, len: u64) {
        let written = &self.of(shard, zone).written;
        written.store(written.load(Ordering::Relaxed) + len, Ordering::Relaxed);
    }

    /// Counts bytes of a record that no longer matters.
    #[inline]
    pub(super) fn add_garbage(&self, shard: Shard, zone: ZoneId, len: u64) {
        self.of(shard, zone).garbage.fetch_add(len, Ordering::Relaxed);
    }

    /// Counts bytes of a tombstone.
    #[inline]
    pub(super) fn add_tombstone(&self, shard: Shard, zone: ZoneId, len: u64) {
        self.of(shard, zone).tombstones.fetch_add(len, Ordering::Relaxed);
    }

    /// Sets what is known of a zone for which nobody has counted yet.
    pub(super) fn restore(&self, zone: ZoneId, bytes: RecordBytes) {
        let ZoneUse { written, garbage, tombstones } = self.of(Shard::default(), zone);
        written.store(bytes.written, Ordering::Relaxed);
        garbage.store(bytes.garbage, Ordering::Relaxed);
        tombstones.store(bytes.tombstones, Ordering::Relaxed);
    }

    /// Bytes of one zone's records.
    pub(super) fn of_zone(&self, zone: ZoneId) -> RecordBytes {
        self.shards.iter().fold(RecordBytes::default(), |sum, shard| sum + &shard[zone.0 as usize])
    }

    /// Forgets a zone whose records are gone. Nobody counts for it any more.
    pub(super) fn forget(&self, zone: ZoneId) {
        for shard in &self.shards {
            let ZoneUse { written, garbage, tombstones } = &shard[zone.0 as usize];
            for bytes in [written, garbage, tombstones] {
                bytes.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Bytes of all records.
    pub(super) fn total(&self) -> RecordBytes {
        self.shards.iter().flatten().fold(RecordBytes::default(), |sum, zone| sum + zone)
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
