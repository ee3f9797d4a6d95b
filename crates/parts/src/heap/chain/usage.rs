//! Counts of what zones hold, in DRAM, for the choice of memtables to rewrite.
//!
//! A record is *dead* when a later one of its key counts. Only records are counted, so that nobody reads one
//! to learn its length; the bytes of the dead are estimated by the average of their zone.

use crate::space::ZoneId;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The counts of each zone of a pool.
pub struct Usage(Box<[ZoneUse]>);

#[derive(Default)]
struct ZoneUse {
    bytes: AtomicU32,
    packed: AtomicU32,
    records: AtomicU32,
    tombstones: AtomicU32,
    dead: AtomicU32,
    expiring: AtomicU32,
    expires: AtomicU64,
}

/// Counts of a zone.
const COUNTS: usize = 6;

impl ZoneUse {
    fn counts(&self) -> [&AtomicU32; COUNTS] {
        [&self.bytes, &self.packed, &self.records, &self.tombstones, &self.dead, &self.expiring]
    }
}

/// The counts of a zone, as they are written down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SavedCounts {
    /// Bytes of chunks, bytes of records, records, tombstones, superseded records, records that expire.
    pub counts: [u32; COUNTS],
    /// When the last of these does.
    pub expires: u64,
}

/// The part of a chunk, or of a record, in the counts of its zone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Bytes, in whole lines.
    pub bytes: u64,
    /// Bytes of records alone.
    pub packed: u64,
    /// Records.
    pub records: u64,
    /// Those that delete their keys.
    pub tombstones: u64,
    /// Those that expire.
    pub expiring: u64,
    /// When the last of them does, in milliseconds since 1970.
    pub expires: u64,
}

/// The contents of zones, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Bytes of chunks.
    pub bytes: u64,
    /// Bytes of records alone.
    pub packed: u64,
    /// Records, tombstones included.
    pub records: u64,
    /// Tombstones that are not superseded.
    pub tombstones: u64,
    /// Records that are superseded.
    pub dead: u64,
    /// Records that have expired, as far as all of their zone have; superseded ones included.
    pub expired: u64,
}

impl Held {
    /// Bytes of so many of its records, about, without the headers of their chunks.
    pub fn bytes_of(&self, records: u64) -> u64 {
        let all = u128::from(self.packed) * u128::from(records);
        all.checked_div(self.records.into()).unwrap_or_default() as u64
    }

    /// Records that are not superseded.
    pub fn live(&self) -> u64 {
        self.records.saturating_sub(self.dead)
    }

    fn and(self, other: Held) -> Held {
        Held {
            bytes: self.bytes + other.bytes,
            packed: self.packed + other.packed,
            records: self.records + other.records,
            tombstones: self.tombstones + other.tombstones,
            dead: self.dead + other.dead,
            expired: self.expired + other.expired,
        }
    }
}

impl Usage {
    pub(super) fn new(zones: u32) -> Usage {
        Usage((0..zones).map(|_| ZoneUse::default()).collect())
    }

    /// Notes a chunk or a record of a zone.
    #[inline]
    pub fn note_written(&self, zone: ZoneId, counts: &Counts) {
        let held = &self.0[zone.0 as usize];
        let add = |count: &AtomicU32, more: u64| {
            count.fetch_add(more as u32, Ordering::Relaxed);
        };
        add(&held.bytes, counts.bytes);
        add(&held.packed, counts.packed);
        add(&held.records, counts.records);
        if counts.tombstones != 0 {
            add(&held.tombstones, counts.tombstones);
        }
        if counts.expiring != 0 {
            add(&held.expiring, counts.expiring);
            held.expires.fetch_max(counts.expires, Ordering::Relaxed);
        }
    }

    /// Notes that a record of this zone is superseded; `deletes` says whether it is a tombstone.
    #[inline]
    pub fn note_dead(&self, zone: ZoneId, deletes: bool) {
        let held = &self.0[zone.0 as usize];
        held.dead.fetch_add(1, Ordering::Relaxed);
        if deletes {
            held.tombstones.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The contents of a zone at this time.
    pub fn of(&self, zone: ZoneId, now: u64) -> Held {
        let held = &self.0[zone.0 as usize];
        let read = |count: &AtomicU32| u64::from(count.load(Ordering::Relaxed));
        let have_expired = held.expires.load(Ordering::Relaxed) <= now;
        Held {
            bytes: read(&held.bytes),
            packed: read(&held.packed),
            records: read(&held.records),
            tombstones: read(&held.tombstones),
            dead: read(&held.dead),
            expired: if have_expired { read(&held.expiring) } else { 0 },
        }
    }

    /// The contents of all of these zones at this time.
    pub fn of_all(&self, zones: impl IntoIterator<Item = ZoneId>, now: u64) -> Held {
        zones.into_iter().map(|zone| self.of(zone, now)).fold(Held::default(), Held::and)
    }

    /// The counts of a zone, to be [restored](Usage::restore).
    pub fn save(&self, zone: ZoneId) -> SavedCounts {
        let held = &self.0[zone.0 as usize];
        let counts = held.counts().map(|count| count.load(Ordering::Relaxed));
        SavedCounts { counts, expires: held.expires.load(Ordering::Relaxed) }
    }

    /// Takes up the counts of a zone.
    pub fn restore(&self, zone: ZoneId, saved: &SavedCounts) {
        let SavedCounts { counts, expires } = *saved;
        let held = &self.0[zone.0 as usize];
        held.counts().into_iter().zip(counts).for_each(|(own, count)| own.store(count, Ordering::Relaxed));
        held.expires.store(expires, Ordering::Relaxed);
    }

    /// Forgets a zone, which is about to be given back.
    pub(super) fn forget(&self, zone: ZoneId) {
        self.restore(zone, &SavedCounts::default());
    }
}
