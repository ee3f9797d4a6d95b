//! Storage that stays set aside for deletions and compaction, so that a full disk is no worse than a full pool.
//!
//! A file takes storage as it fills, and a disk may be full long before the pool is. Then no zone can be taken that has no storage
//! behind it, so two free zones have some at all times: one for compaction, which then frees others with theirs, and the
//! beginning of another one for deletions. A released zone keeps the storage that it had. Which zones have some is not written
//! down: the file system is asked, and setting aside storage that is there already succeeds on a full disk too.

use super::error::SpaceError;
use super::zone_pool::{ZoneId, ZonePool};
use crate::sync::SpinLock;
use quipu_medium::MediumError;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// No zone.
const NONE: u32 = u32::MAX;
/// Bytes of the zone that is kept for a deletion: some thousands of tombstones.
const FOR_DELETIONS: u64 = 64 << 10;
/// Zones that a deletion leaves.
const FOR_A_DELETION: u32 = 1;
/// Zones that are asked for storage on a full disk, before that is told; and by puts, as long as none has been released since then,
/// which could have some: the disk itself may have room again, and the first zone tells.
const MOST_ASKED: usize = 256;
const ASKED_AGAIN: usize = 2;

/// How many zones are kept.
pub(super) const KEPT: usize = 2;

/// Free zones with storage behind them: the first has it behind all of it, for compaction, the second at its beginning.
pub(super) struct KeptStorage {
    zones: [AtomicU32; KEPT],
    /// Zones released so far, and how many they were when the disk was full last; one more than that.
    released: AtomicU64,
    full_at: AtomicU64,
    /// Held by the thread that takes a zone.
    pub(super) turn: SpinLock<()>,
}

impl Default for KeptStorage {
    fn default() -> KeptStorage {
        let (released, full_at) = (AtomicU64::new(0), AtomicU64::new(0));
        KeptStorage {
            zones: [const { AtomicU32::new(NONE) }; KEPT],
            released,
            full_at,
            turn: SpinLock::new(()),
        }
    }
}

impl KeptStorage {
    /// Whether a zone is one of the first so many that are kept.
    pub(super) fn has(&self, zone: ZoneId, keeps: usize) -> bool {
        self.zones[..keeps].iter().any(|kept| kept.load(Ordering::Relaxed) == zone.0)
    }

    /// A zone has been released, with the storage that it has.
    pub(super) fn note_release(&self) {
        self.released.fetch_add(1, Ordering::Release);
    }

    /// A search for a zone with storage by somebody who leaves so many zones: how many may be asked. Each is a system call, and a
    /// put may hold the lock of its key: only blind ones look for room before they take it. A deletion asks all, since it needs less.
    pub(super) fn search(&self, leave: u32) -> Search {
        let released = self.released.load(Ordering::Acquire) + 1;
        let is_full = leave > FOR_A_DELETION && self.full_at.load(Ordering::Relaxed) == released;
        Search { released, most: if is_full { ASKED_AGAIN } else { MOST_ASKED } }
    }

    /// A search has found that the disk is full.
    pub(super) fn note_full(&self, search: &Search) {
        self.full_at.store(search.released, Ordering::Relaxed);
    }
}

/// See [`KeptStorage::search`].
pub(super) struct Search {
    released: u64,
    pub(super) most: usize,
}

impl ZonePool {
    /// Sees to it that, of so many zones that are to be left, those that are kept have storage, and returns how many these are.
    ///
    /// A deletion or compaction may take one of them at any time; then the next one who leaves zones sees to another.
    pub(super) fn keep_storage(&self, leave: u32) -> Result<usize, SpaceError> {
        if !self.region.is_sparse() {
            return Ok(0);
        }
        let (keeps, search) = (KEPT.min(leave as usize), self.storage.search(leave));
        for (number, kept) in self.storage.zones[..keeps].iter().enumerate() {
            if self.is_free(ZoneId(kept.load(Ordering::Relaxed))) {
                continue;
            }
            let len = if number == 0 { self.zone_size() } else { FOR_DELETIONS.min(self.zone_size()) };
            // The last ones, which are taken last; on a full disk the first ones, which have been used.
            let others = |zone: &ZoneId| self.is_free(*zone) && !self.storage.has(*zone, KEPT);
            let last = (0..self.count()).rev().map(ZoneId).filter(others).take(KEPT);
            let mut outcome = Ok(());
            for zone in last.chain((0..self.count()).map(ZoneId).filter(others)).take(search.most) {
                outcome = self.back(zone, 0, len);
                if outcome.is_ok() {
                    kept.store(zone.0, Ordering::Relaxed);
                    break;
                }
            }
            match outcome {
                // A deletion may have what is left: it makes room in the long run.
                Err(SpaceError::Medium(MediumError::DiskFull { .. })) if leave == FOR_A_DELETION => {
                    return Ok(0);
                }
                outcome => outcome.inspect_err(|_| self.storage.note_full(&search))?,
            }
        }
        Ok(keeps)
    }

    /// See [`super::Space::discard_free_zones`].
    pub(super) fn discard_free(&self) -> Result<u64, SpaceError> {
        if !self.region.is_sparse() {
            return Ok(0);
        }
        let free = (0..self.count()).map(ZoneId).filter(|zone| self.is_free(*zone));
        let mut discarded = 0;
        for zone in free.filter(|zone| !self.storage.has(*zone, KEPT)) {
            let start = self.offset(zone).expect("the zone belongs to this pool");
            self.region.discard(start, self.zone_size())?;
            discarded += self.zone_size();
        }
        // There is room for what is kept now, unless the disk is full of something else; then the next put sees to it.
        let _ = self.keep_storage(u32::MAX);
        Ok(discarded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_searched_through_once_for_each_release() {
        let storage = KeptStorage::default();
        let first = storage.search(2);
        assert_eq!(first.most, MOST_ASKED);
        // Released while the search was under way: the next one has to look for it.
        storage.note_release();
        storage.note_full(&first);
        let second = storage.search(2);
        assert_eq!(second.most, MOST_ASKED);
        storage.note_full(&second);
        assert_eq!((storage.search(2).most, storage.search(1).most), (ASKED_AGAIN, MOST_ASKED));
        storage.note_release();
        assert_eq!(storage.search(2).most, MOST_ASKED);
    }
}
