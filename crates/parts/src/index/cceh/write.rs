//! Changing the entry of a key, under the lock of its segment.
//!
//! A writer that makes something durable between the lock and the change takes the lock before its fence. A
//! locked instruction behind a fence waits until that has ended, and all later ones with it; a plain store
//! does not.

use super::entry::EMPTY;
use super::memory::NodeMemory;
use super::table::CcehIndex;
use crate::epoch::Guard;
use crate::index::IndexError;
use crate::index::directory::EntryWord;
use crate::sync::SpinGuard;

/// The segment of a hash, locked until this drops. Its holder waits for no page and for no other segment.
#[must_use = "it is locked for as long as this lives"]
pub struct LockedSegment<'i, M: NodeMemory> {
    index: &'i CcehIndex<M>,
    hash: u64,
    pub(super) entry: EntryWord,
    pub(super) keys: SpinGuard<'i, i64>,
}

/// The state of a hash as a look without a lock saw it, ahead of a change.
#[derive(Clone, Copy, Debug, Default)]
pub enum Sighting {
    /// There was no look, or there was neither the hash nor room for it.
    #[default]
    Nothing,
    /// The first reference of the hash. It may belong to another key.
    Key {
        /// The reference in the entry.
        reference: u64,
    },
    /// No entry of the hash, and where one would go.
    Free {
        /// The segment, as the directory had it before.
        entry: EntryWord,
        /// The entry that was free.
        free: u64,
    },
}

impl<'i, M: NodeMemory> LockedSegment<'i, M> {
    /// Adds a key without a search: its hash was not there in an earlier look, and since then no other thread
    /// can have added the key. `false` if it must be searched for after all; then nothing is changed.
    ///
    /// No split has brought the entry either, as long as the directory is the same.
    #[inline]
    pub fn add_where(&mut self, sighting: Sighting, new: u64) -> bool {
        check_reference(new);
        let (index, hash) = (self.index, self.hash);
        match sighting {
            Sighting::Free { entry, free } if entry == self.entry && index.is_free(free, entry, hash) => {
                index.fill(free, hash, new);
                *self.keys += 1;
                true
            }
            _ => false,
        }
    }

    /// As [`CcehIndex::upsert`].
    ///
    /// # Errors
    /// As there; nothing is changed then.
    ///
    /// # Panics
    /// If the reference is zero.
    #[inline]
    pub fn upsert(
        mut self,
        _guard: &Guard<'_>,
        new: u64,
        mut matches: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>, IndexError> {
        check_reference(new);
        let (index, hash) = (self.index, self.hash);
        loop {
            let search = index.search(self.entry, hash, &mut matches);
            if let Some((place, old)) = search.found {
                index.set_value(place, hash, new);
                return Ok(Some(old));
            }
            if let Some(free) = search.free {
                index.fill(free, hash, new);
                *self.keys += 1;
                return Ok(None);
            }
            index.split_full(hash, self.entry)?;
            drop(self);
            self = index.lock(hash);
        }
    }

    /// Adds a key that was absent under this lock. `false` if the segment had to be split, which unlocks it:
    /// the key must be looked for again, since others may have added it.
    ///
    /// # Errors
    /// As for [`CcehIndex::insert`]; nothing is changed then.
    ///
    /// # Panics
    /// If the reference is zero.
    pub fn add(mut self, _guard: &Guard<'_>, new: u64) -> Result<bool, IndexError> {
        check_reference(new);
        let (index, hash) = (self.index, self.hash);
        match index.search(self.entry, hash, |_| false).free {
            Some(free) => {
                index.fill(free, hash, new);
                *self.keys += 1;
                Ok(true)
            }
            None => index.split_full(hash, self.entry).map(|()| false),
        }
    }

    /// The entry of the hash that names `reference`.
    #[inline]
    pub fn entry_of(self, reference: u64) -> Option<LockedEntry<'i, M>> {
        let (place, _) = self.find(|found| found == reference)?;
        Some(LockedEntry { segment: self, place })
    }

    /// The reference that an entry of the hash names and for which `matches` says yes.
    pub fn named(&self, matches: impl FnMut(u64) -> bool) -> Option<u64> {
        self.find(matches).map(|(_, found)| found)
    }

    /// Removes the key for whose reference `matches` says yes, and returns that.
    #[inline]
    pub fn take(mut self, _guard: &Guard<'_>, matches: impl FnMut(u64) -> bool) -> Option<u64> {
        let (place, old) = self.find(matches)?;
        self.clear(place);
        Some(old)
    }

    #[inline]
    fn clear(&mut self, place: u64) {
        self.index.set_value(place, self.hash, EMPTY);
        *self.keys -= 1;
    }

    #[inline]
    pub(super) fn find(&self, matches: impl FnMut(u64) -> bool) -> Option<(u64, u64)> {
        self.index.search(self.entry, self.hash, matches).found
    }
}

/// An entry whose segment is locked, so that it can be removed later without a search.
#[must_use = "the segment is locked for as long as this lives"]
pub struct LockedEntry<'i, M: NodeMemory> {
    segment: LockedSegment<'i, M>,
    place: u64,
}

impl<M: NodeMemory> LockedEntry<'_, M> {
    /// Removes it.
    #[inline]
    pub fn remove(mut self, _guard: &Guard<'_>) {
        self.segment.clear(self.place);
    }
}

impl<M: NodeMemory> CcehIndex<M> {
    /// Locks the segment that `hash` belongs to.
    #[inline]
    pub fn lock(&self, hash: u64) -> LockedSegment<'_, M> {
        loop {
            let entry = self.directory.entry(hash);
            let keys = self.locks.lock(entry.place());
            // The segment may have split while the lock was not yet ours; then the hash may be elsewhere.
            if self.directory.entry(hash) == entry {
                return LockedSegment { index: self, hash, entry, keys };
            }
        }
    }

    /// Splits the segment of a hash that has no room for it. The caller holds its lock.
    fn split_full(&self, hash: u64, entry: EntryWord) -> Result<(), IndexError> {
        // A split would not make room of damaged entries.
        self.prove_absent(hash)?;
        self.split(hash, entry)
    }

    /// Adds a key that is known to be absent.
    ///
    /// # Errors
    /// [`IndexError::Full`], [`IndexError::Crowded`] or [`IndexError::Space`]; the key is not added then.
    ///
    /// # Panics
    /// If the reference is zero.
    pub fn insert(&self, guard: &Guard<'_>, hash: u64, reference: u64) -> Result<(), IndexError> {
        self.upsert(guard, hash, reference, |_| false).map(|_| ())
    }

    /// Lets the key with this hash name `new`: in place of the reference for which `matches` says yes, which
    /// it returns, or beside all others. One lock and one look at each bucket, for a writer that need not
    /// know the old reference beforehand. `matches` must not call the index.
    ///
    /// # Errors
    /// As for [`insert`](CcehIndex::insert); nothing is changed then.
    ///
    /// # Panics
    /// If the reference is zero.
    #[inline]
    pub fn upsert(
        &self,
        guard: &Guard<'_>,
        hash: u64,
        new: u64,
        matches: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>, IndexError> {
        self.lock(hash).upsert(guard, new, matches)
    }

    /// Removes the key with this hash for whose reference `matches` says yes, and returns that.
    #[inline]
    pub fn take(&self, guard: &Guard<'_>, hash: u64, matches: impl FnMut(u64) -> bool) -> Option<u64> {
        self.lock(hash).take(guard, matches)
    }

    /// Lets the key with this hash name `new` if it still names `old`; says whether it did.
    ///
    /// # Panics
    /// If `new` is zero.
    #[inline]
    pub fn replace(&self, _guard: &Guard<'_>, hash: u64, old: u64, new: u64) -> bool {
        check_reference(new);
        let segment = self.lock(hash);
        let found = segment.find(|reference| reference == old);
        found.map(|(place, _)| self.set_value(place, hash, new)).is_some()
    }

    /// Removes the key with this hash if it still names `old`; says whether it did.
    #[inline]
    pub fn remove(&self, guard: &Guard<'_>, hash: u64, old: u64) -> bool {
        self.take(guard, hash, |reference| reference == old).is_some()
    }
}

pub(super) fn check_reference(reference: u64) {
    assert!(reference != EMPTY, "zero is no reference");
}
