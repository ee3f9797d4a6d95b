//! Storage that is set aside for deletions and compaction, so that a full disk is no worse than a full pool.
//!
//! A file takes storage as it fills, and a disk may be full long before the pool is. On a full disk, a zone
//! without storage is of no use. So some free zones have storage at all times: a whole zone for compaction,
//! which then frees other zones with theirs, and the beginning of another zone for deletions. A design whose
//! compaction moves more at a time [keeps more](Space::keep_zones). A released zone keeps its storage, unless
//! that comes in pages and [is not whole](Space::release_unread_zone). No table says which zones have some:
//! the file system is asked, since reserving storage that exists succeeds on a full disk too.
//!
//! While compaction's zone is in use and no other has storage, a deletion takes its own kept zone or none.
//! The next zone with storage is compaction's: a deletion that took it would leave nothing that makes room.
//!
//! In a file on a disk, storage comes in units of 2 MiB ([`quipu_medium::Region::reserve`]). Small zones
//! share one, and each may be used by its own owner once the unit has storage. A kept zone has all units
//! that its kept bytes touch, and none of these is given back, so both uses can proceed. A sealed segment
//! may have given back the unit behind its records. Its zone has less storage then when it is released,
//! and counts as one that has none.

use super::error::SpaceError;
use super::handle::Space;
use super::zone_pool::ZoneId;
use crate::sync::SpinLock;
use quipu_medium::{MediumError, MediumKind, Region};
use std::sync::atomic::{AtomicU64, Ordering};

const NONE: ZoneId = ZoneId(u32::MAX);
/// Bytes of the zone that is kept for a deletion: enough for some thousands of tombstones.
const FOR_DELETIONS: u64 = 64 << 10;
/// Free zones that a deletion must leave.
const FOR_A_DELETION: u32 = 1;
/// Zones that a search tries on a full disk before it gives up. A put tries fewer if no zone has been
/// released since the last search, since no further zone can have storage then. It still tries some, since
/// the disk may have room again.
const MOST_ASKED: usize = 256;
const ASKED_AGAIN: usize = 2;

/// Zones that are kept with storage, unless a design asks for more.
const KEPT: usize = 2;

/// Free zones with storage: the last one has it at its beginning, for deletions, the others have it for their
/// whole length.
pub(super) struct KeptStorage {
    zones: SpinLock<Vec<ZoneId>>,
    /// Zones released so far; and that number, plus one, at the moment when the disk was last found full.
    released: AtomicU64,
    full_at: AtomicU64,
    /// Held by a thread while it takes a zone.
    pub(super) turn: SpinLock<()>,
}

impl Default for KeptStorage {
    fn default() -> KeptStorage {
        let (released, full_at) = (AtomicU64::new(0), AtomicU64::new(0));
        let zones = SpinLock::new(vec![NONE; KEPT]);
        KeptStorage { zones, released, full_at, turn: SpinLock::new(()) }
    }
}

impl KeptStorage {
    /// Whether a zone is kept.
    pub(super) fn has(&self, zone: ZoneId) -> bool {
        self.has_among(zone, usize::MAX)
    }

    /// Whether a zone is among the first `keeps` kept ones. Where none is kept, this takes no lock.
    pub(super) fn has_among(&self, zone: ZoneId, keeps: usize) -> bool {
        keeps > 0 && self.zones.lock().iter().take(keeps).any(|kept| *kept == zone)
    }

    /// Bytes of storage in the kept zone of this number.
    fn len_kept(&self, number: usize, zone_size: u64) -> u64 {
        let is_last = number + 1 == self.zones.lock().len();
        if is_last { FOR_DELETIONS.min(zone_size) } else { zone_size }
    }

    /// Notes that a zone has been released, with its storage.
    pub(super) fn note_release(&self) {
        self.released.fetch_add(1, Ordering::Release);
    }

    /// How many zones a search for storage may try, for a caller that must leave so many zones free. Each try
    /// is a system call, and a put may hold the lock of its key meanwhile: only blind puts look for room
    /// before they lock it. A deletion tries all of them, since it needs less storage.
    pub(super) fn search(&self, leave: u32) -> Search {
        let released = self.released.load(Ordering::Acquire) + 1;
        let is_full = leave > FOR_A_DELETION && self.full_at.load(Ordering::Relaxed) == released;
        Search { released, most: if is_full { ASKED_AGAIN } else { MOST_ASKED }, refused: Vec::new() }
    }

    /// Whether a search has ever found the disk full.
    fn was_full(&self) -> bool {
        self.full_at.load(Ordering::Relaxed) != 0
    }

    /// Notes that a search has found the disk full.
    pub(super) fn note_full(&self, search: &Search) {
        self.full_at.store(search.released, Ordering::Relaxed);
    }
}

/// The zones with storage that a Get may take.
#[derive(Clone, Copy)]
pub(super) struct Allowance {
    /// It leaves so many kept zones, the first ones.
    pub(super) leaves: usize,
    /// It takes one of the other kept zones: a deletion, if compaction's is in use and has no successor.
    pub(super) only_kept: bool,
}

pub(super) struct Search {
    released: u64,
    pub(super) most: usize,
    /// Units in which zones begin that have no storage. Other zones in them have none either.
    refused: Vec<u64>,
}

impl Search {
    /// Whether it is known by now that a zone that begins at this offset has no storage.
    pub(super) fn is_refused(&self, region: &Region, offset: u64) -> bool {
        self.refused.contains(&(offset / region.storage_unit()))
    }

    pub(super) fn note_refused(&mut self, region: &Region, offset: u64) {
        self.refused.push(offset / region.storage_unit());
    }
}

impl Space {
    /// Keeps storage in so many zones from now on, for a design whose deletions leave all but few of them
    /// free. It begins with the storage that an earlier handle has kept, where that looked for zones: a use
    /// may need it before this handle has kept any. Called before the first Get.
    pub fn keep_zones(&self, count: u32) {
        if !self.region().is_sparse() || self.region().is_read_only() {
            return;
        }
        let storage = &self.zones.storage;
        *storage.zones.lock() = vec![NONE; count as usize];
        let free = (0..self.zone_count()).rev().map(ZoneId).filter(|zone| self.is_free(*zone));
        for (number, zone) in free.take(count as usize).enumerate() {
            // On a full disk, those behind have none either.
            if self.back_zone(zone, 0, storage.len_kept(number, self.zone_size())).is_err() {
                break;
            }
            storage.zones.lock()[number] = zone;
        }
    }

    /// Ensures that, of the `leave` zones that must stay free, the kept ones have storage.
    ///
    /// A deletion or compaction may take a kept zone at any time. The next Get that leaves zones prepares
    /// another one. A deletion looks for its own kept zone too, which it may then take.
    pub(super) fn keep_storage(&self, leave: u32) -> Result<Allowance, SpaceError> {
        let mut allowance = Allowance { leaves: 0, only_kept: false };
        if !self.region().is_sparse() {
            return Ok(allowance);
        }
        let storage = &self.zones.storage;
        allowance.leaves = storage.zones.lock().len().min(leave as usize);
        let is_deletion = leave == FOR_A_DELETION;
        let wanted = leave.saturating_add(is_deletion.into());
        if self.keeps_storage(wanted) {
            return Ok(allowance);
        }
        let kept = storage.zones.lock().clone();
        let mut search = storage.search(leave);
        for number in (0..kept.len().min(wanted as usize)).filter(|number| !self.is_free(kept[*number])) {
            match self.find_storage(storage.len_kept(number, self.zone_size()), &mut search) {
                // It was released since the first search.
                Ok(Some(zone))
                    if allowance.only_kept && self.back_zone(zone, 0, self.zone_size()).is_ok() =>
                {
                    storage.zones.lock()[0] = zone;
                    allowance.only_kept = false;
                }
                Ok(Some(zone)) => storage.zones.lock()[number] = zone,
                Ok(None) => {}
                Err(SpaceError::Medium(MediumError::DiskFull { .. })) if is_deletion && number == 0 => {
                    allowance.only_kept = true;
                }
                // It may need less.
                Err(SpaceError::Medium(MediumError::DiskFull { .. }))
                    if is_deletion && !allowance.only_kept => {}
                Err(error) => {
                    storage.note_full(&search);
                    return Err(error);
                }
            }
        }
        Ok(allowance)
    }

    /// A free zone that is not kept, with storage behind its first `len` bytes; `None` if all are kept.
    fn find_storage(&self, len: u64, search: &mut Search) -> Result<Option<ZoneId>, SpaceError> {
        let storage = &self.zones.storage;
        // Less may be wanted than before, so zones are tried again.
        search.refused.clear();
        // First the last zones, which Get takes last. On a full disk then the first ones, which have been
        // used before.
        let others = |zone: &ZoneId| self.is_free(*zone) && !storage.has(*zone);
        let last = (0..self.zone_count()).rev().map(ZoneId).filter(others).take(storage.zones.lock().len());
        let (mut outcome, mut asked) = (Ok(None), 0);
        for zone in last.chain((0..self.zone_count()).map(ZoneId).filter(others)) {
            let offset = self.zone_offset(zone);
            if search.is_refused(self.region(), offset) {
                continue;
            }
            outcome = self.back_zone(zone, 0, len).map(|()| Some(zone));
            asked += 1;
            if outcome.is_ok() || asked == search.most {
                break;
            }
            search.note_refused(self.region(), offset);
        }
        outcome
    }

    /// Keeps storage anew in so many free zones where somebody has taken it, if the disk has some.
    pub(crate) fn renew_storage(&self, leave: u32) {
        if self.region().is_sparse() {
            let _turn = self.zones.storage.turn.lock();
            // A use that needs it meets the error.
            let _ = self.keep_storage(leave);
        }
    }

    /// Whether the storage that is kept in so many free zones was prepared, and is there: until then, a use
    /// that must leave them free takes nothing that came from it.
    pub fn keeps_storage(&self, leave: u32) -> bool {
        let is_kept = |zone: &ZoneId| self.is_free(*zone);
        !self.region().is_sparse() || self.zones.storage.zones.lock().iter().take(leave as usize).all(is_kept)
    }

    /// Gives the storage of free zones back to the file system, except the kept storage that deletions and
    /// compaction need on a full disk. On a disk, storage goes in [units](quipu_medium::Region::discard),
    /// and only those in which nothing else lies. Returns their bytes. Meanwhile the caller takes and
    /// releases no zones, and the zone table that shows them free is already on the device.
    ///
    /// # Errors
    /// [`SpaceError::Medium`] if the system refused.
    pub fn discard_free_zones(&self) -> Result<u64, SpaceError> {
        if !self.region().is_sparse() {
            return Ok(0);
        }
        let is_idle = |zone| self.is_free(zone) && !self.zones.storage.has(zone);
        let mut discarded = 0;
        for range in self.zones.idle_ranges(is_idle) {
            discarded += self.region().discard(range.start, range.end - range.start)?;
        }
        // There is room for the kept storage now, unless other files fill the disk; then the next put tries
        // again.
        let _ = self.keep_storage(u32::MAX);
        Ok(discarded)
    }

    /// Release of a zone that nobody reads any more, not even its header.
    ///
    /// In a file in memory, storage comes in pages. On a full file system, zones with storage at their
    /// beginning alone would have all of it, and compaction no whole zone. So a zone that cannot have all of
    /// its storage gives back what it has, and this says so. The caller [renews](Space::renew_storage) what
    /// is kept then: a put would take the pages otherwise.
    ///
    /// # Panics
    /// As for [`release_zone`](Space::release_zone).
    pub(crate) fn release_unread_zone(&self, zone: ZoneId) -> bool {
        let (region, storage) = (self.region(), &self.zones.storage);
        // Of all parts: a part on a disk beside one in memory may not have the cleared bit yet.
        let is_in_memory = region.kind() == MediumKind::Dram && region.is_sparse();
        let mut gave_back = false;
        self.release_zone_after(zone, || {
            let (start, len) = (self.zone_offset(zone), self.zone_size());
            if is_in_memory
                && (storage.was_full() || !self.keeps_storage(u32::MAX))
                && region.data_len(start, len) < len
                && !storage.has(zone)
                && self.back_zone(zone, 0, len).is_err()
            {
                // Where the system refuses, the zone keeps the storage that it has.
                gave_back = region.discard(start, len).is_ok();
            }
        });
        gave_back
    }

    /// Gives back what was set aside [behind](quipu_medium::Region::discard_rest) the first `from` bytes of a
    /// zone. Until the zone is taken again nobody stores to it, except
    /// to [overwrite](quipu_medium::Region::overwrite) words.
    pub(crate) fn discard_rest(&self, zone: ZoneId, from: u64) {
        // Where the system refuses, the zone has more storage than it needs.
        let _ = self.region().discard_rest(self.zone_offset(zone), self.zone_size(), from);
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
        // A zone was released while the search ran, so the next search must look for it.
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
