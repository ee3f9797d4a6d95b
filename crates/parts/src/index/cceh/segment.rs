//! The entries of a segment: finding and writing them, and which of them a reader may believe.

use super::entry::{BUCKET, EMPTY, ENTRIES, ENTRY, VALUE, home};
use super::memory::NodeMemory;
use super::table::CcehIndex;
use crate::index::chain;
use crate::index::directory::{EntryWord, prefix};
use crate::space::SpaceError;

/// The result of a writer's search in the lines of a hash.
pub(super) struct Search {
    /// The entry for whose reference the caller said yes, and that reference.
    pub(super) found: Option<(u64, u64)>,
    /// The first entry that is free.
    pub(super) free: Option<u64>,
}

/// The error for an entry that no run of the index leaves.
#[cold]
pub(super) fn damaged<T>(place: u64) -> Result<T, SpaceError> {
    chain::damaged("an entry of the index", place)
}

/// Some entries of a bucket.
struct Selected {
    bucket: u64,
    mask: u32,
}

impl Iterator for Selected {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        if self.mask == 0 {
            return None;
        }
        let entry = u64::from(self.mask.trailing_zeros());
        self.mask &= self.mask - 1;
        Some(self.bucket + entry * ENTRY)
    }
}

impl<M: NodeMemory> CcehIndex<M> {
    /// The bucket, by its place, that is `distance` behind the one that the hash names.
    #[inline]
    pub(super) fn bucket(&self, segment: u64, hash: u64, distance: u64) -> u64 {
        segment + ((home(hash, self.bucket_mask) + distance) & self.bucket_mask) * BUCKET
    }

    /// The buckets, by their places, in which the hash may stand; the likeliest first.
    #[inline]
    pub(super) fn window(&self, segment: u64, hash: u64) -> impl Iterator<Item = u64> {
        (0..self.probe).map(move |distance| self.bucket(segment, hash, distance))
    }

    /// Whether a hash word is one of this hash, durable or not.
    #[inline]
    pub(super) fn is_of(word: u64, hash: u64) -> bool {
        (word ^ hash) & !M::MARK == 0
    }

    /// The entries of a bucket, by their places, for which `test` says yes. All are tested before the first
    /// is looked at: the processor then predicts one branch a line, and runs ahead to the next line or
    /// lookup.
    #[inline]
    fn select(bucket: u64, test: impl Fn(u64) -> bool) -> Selected {
        let mask = (0..ENTRIES).fold(0, |mask, n| mask | u32::from(test(bucket + n * ENTRY)) << n);
        Selected { bucket, mask }
    }

    /// The entries of a bucket that have this hash.
    #[inline]
    fn of_hash(&self, bucket: u64, hash: u64) -> Selected {
        Self::select(bucket, |place| Self::is_of(self.memory.load(place), hash))
    }

    /// The first reference of this hash, of any key.
    #[inline(always)]
    pub(super) fn first_of_hash(&self, segment: u64, hash: u64) -> Option<u64> {
        for distance in 0..self.probe {
            for place in self.of_hash(self.bucket(segment, hash, distance), hash) {
                let value = self.memory.load(place + VALUE);
                if value != EMPTY {
                    return Some(value);
                }
            }
        }
        None
    }

    /// The values that stand beside this hash.
    #[inline]
    pub(super) fn values_of_hash(&self, segment: u64, hash: u64) -> impl Iterator<Item = u64> {
        let places = self.window(segment, hash).flat_map(move |bucket| self.of_hash(bucket, hash));
        places.map(|place| self.memory.load(place + VALUE))
    }

    /// The words of an entry as they stood beside each other, for a pinned reader without a lock. A value
    /// that has been replaced does not return meanwhile, so one that is there before and after was there all
    /// the time.
    #[inline]
    fn both(&self, place: u64) -> (u64, u64) {
        let mut value = self.memory.load(place + VALUE);
        loop {
            let word = self.memory.load(place);
            let now = self.memory.load(place + VALUE);
            if now == value {
                return (word, value);
            }
            value = now;
        }
    }

    /// For a reader without a lock: the reference of this hash for which `matches` says yes. The answer, yes
    /// or no, is durable. If `EXACT`, every reference that `matches` sees certainly stood beside the hash.
    #[inline]
    pub(super) fn find<const EXACT: bool>(
        &self,
        segment: u64,
        hash: u64,
        matches: &mut impl FnMut(u64) -> bool,
    ) -> Option<u64> {
        for bucket in self.window(segment, hash) {
            for place in self.of_hash(bucket, hash) {
                let (word, value) = if EXACT {
                    self.both(place)
                } else {
                    let value = self.memory.load(place + VALUE);
                    if M::MARK == 0 {
                        if value != EMPTY && matches(value) {
                            return Some(value);
                        }
                        continue;
                    }
                    // Loaded after the value: a writer takes the mark away before it changes that.
                    (self.memory.load(place), value)
                };
                // Of another hash by now: this one was durably removed meanwhile.
                let is_ours = Self::is_of(word, hash) && (value == EMPTY || matches(value));
                if is_ours && M::MARK != 0 && word & M::MARK == 0 {
                    self.help(segment, place, hash);
                }
                if is_ours && value != EMPTY {
                    return Some(value);
                }
            }
        }
        None
    }

    /// Makes an entry durable for a reader that is about to act on it. If no writer is about, its writer has
    /// died, and the entry gets its mark, so that the next reader need not do this again.
    #[cold]
    #[inline(never)]
    fn help(&self, segment: u64, place: u64, hash: u64) {
        let idle = self.locks.try_lock(segment);
        self.memory.help(place, ENTRY);
        let word = self.memory.load(place);
        if idle.is_some() && Self::is_of(word, hash) {
            self.memory.store(place, word | M::MARK);
        }
    }

    /// Whether an entry of a segment is free: it names nothing, or belongs elsewhere since a split.
    #[inline]
    pub(super) fn is_free(&self, place: u64, entry: EntryWord, hash: u64) -> bool {
        let (word, value) = (self.memory.load(place), self.memory.load(place + VALUE));
        let foreign = prefix(word, entry.number()) != prefix(hash, entry.number());
        // A blank entry is damaged, and must not be covered up.
        (value == EMPTY || foreign) && (M::MARK == 0 || word | value != 0)
    }

    /// Whether there are zeros in place of an entry. In memory with marks no run leaves that: an entry that
    /// was never used has one, and of two to the power of 63 hashes one or two are zero without it.
    #[inline]
    pub(super) fn is_blank(&self, place: u64) -> bool {
        M::MARK != 0 && self.memory.load(place) == 0 && self.memory.load(place + VALUE) == EMPTY
    }

    /// Refuses to say that a hash is absent if there are zeros in place of an entry where it may stand.
    #[inline]
    pub(super) fn prove_absent(&self, hash: u64) -> Result<(), SpaceError> {
        if M::MARK == 0 {
            return Ok(());
        }
        let segment = self.directory.entry(hash).place();
        let blank = self.window(segment, hash).find_map(|bucket| self.blank_in(bucket, ENTRIES));
        blank.map_or(Ok(()), damaged)
    }

    /// Refuses a segment, by one of its hashes, that has zeros in place of an entry.
    pub(super) fn prove_segment(&self, hash: u64) -> Result<(), SpaceError> {
        let segment = self.directory.entry(hash).place();
        self.blank_in(segment, self.settings.entries() as u64).map_or(Ok(()), damaged)
    }

    #[inline]
    fn blank_in(&self, first: u64, entries: u64) -> Option<u64> {
        (0..entries).map(|n| first + n * ENTRY).find(|place| self.is_blank(*place))
    }

    /// The first entry of a bucket that is free.
    #[inline]
    fn first_free(&self, bucket: u64, entry: EntryWord, hash: u64) -> Option<u64> {
        Self::select(bucket, |place| self.is_free(place, entry, hash)).next()
    }

    /// Where an entry of this hash would go, if the segment has room for it.
    #[inline]
    pub(super) fn first_free_of(&self, entry: EntryWord, hash: u64) -> Option<u64> {
        self.window(entry.place(), hash).find_map(|bucket| self.first_free(bucket, entry, hash))
    }

    /// Looks for the reference for which `matches` says yes, and for a free entry. The caller holds the lock.
    #[inline]
    pub(super) fn search(&self, entry: EntryWord, hash: u64, mut matches: impl FnMut(u64) -> bool) -> Search {
        let mut free = None;
        for bucket in self.window(entry.place(), hash) {
            for place in self.of_hash(bucket, hash) {
                let (word, value) = (self.memory.load(place), self.memory.load(place + VALUE));
                if M::MARK != 0 && word & M::MARK == 0 {
                    // Left by a writer that died, or its mark was lost.
                    self.memory.persist(place, ENTRY);
                    self.memory.store(place, word | M::MARK);
                }
                if value != EMPTY && matches(value) {
                    return Search { found: Some((place, value)), free };
                }
            }
            free = free.or_else(|| self.first_free(bucket, entry, hash));
        }
        Search { found: None, free }
    }

    /// Makes a segment durable that a dead writer may have left otherwise. The caller holds the lock.
    pub(super) fn settle(&self, segment: u64) {
        if M::MARK == 0 {
            return;
        }
        let places = || (segment..).step_by(ENTRY as usize).take(self.settings.entries());
        // A blank entry is damaged, and stays so.
        let is_unmarked = |place: &u64| self.memory.load(*place) & M::MARK == 0 && !self.is_blank(*place);
        let unmarked = || places().filter(is_unmarked);
        if unmarked().next().is_some() {
            self.memory.persist(segment, self.settings.segment_bytes());
            unmarked().for_each(|place| self.memory.store(place, self.memory.load(place) | M::MARK));
        }
    }

    /// Makes free entries of zeros, durably, before a comparison with the records. The caller holds the lock.
    pub(super) fn renew(&self, segment: u64) {
        let places = || (segment..).step_by(ENTRY as usize).take(self.settings.entries());
        for place in places().filter(|place| self.is_blank(*place)) {
            self.memory.store(place, M::MARK);
            self.memory.persist(place, ENTRY);
        }
    }

    /// Lets an entry of this hash have another value, or [`EMPTY`]. The caller holds the lock.
    #[inline]
    pub(super) fn set_value(&self, place: u64, hash: u64, value: u64) {
        self.store_value(place, hash, value);
        if M::MARK != 0 {
            self.memory.persist(place, ENTRY);
            // Not flushed: a mark that is lost costs a reader a flush.
            self.memory.store(place, hash | M::MARK);
        }
    }

    /// Lets an entry of this hash have another value, not yet durable, which the missing mark says.
    #[inline]
    pub(super) fn store_value(&self, place: u64, hash: u64, value: u64) {
        if M::MARK != 0 {
            self.memory.store(place, hash & !M::MARK);
        }
        self.memory.store(place + VALUE, value);
    }

    /// Makes an entry of a free one. The caller holds the lock.
    ///
    /// An entry that a split has left behind still has a value, which must never stand beside our hash.
    #[inline]
    pub(super) fn fill(&self, place: u64, hash: u64, value: u64) {
        if self.memory.load(place + VALUE) != EMPTY {
            self.memory.store(place + VALUE, EMPTY);
        }
        if M::MARK == 0 {
            self.memory.store(place, hash);
        }
        self.set_value(place, hash, value);
    }

    /// The entries in use of a segment, as (bucket, entry, hash word, value). The caller holds the lock.
    pub(super) fn entries(&self, entry: EntryWord, hash: u64) -> impl Iterator<Item = (u64, u64, u64, u64)> {
        let own = move |word: u64| prefix(word, entry.number()) == prefix(hash, entry.number());
        let places = (0..=self.bucket_mask).flat_map(|bucket| (0..ENTRIES).map(move |slot| (bucket, slot)));
        places.filter_map(move |(bucket, slot)| {
            let place = entry.place() + bucket * BUCKET + slot * ENTRY;
            let (word, value) = (self.memory.load(place), self.memory.load(place + VALUE));
            (value != EMPTY && own(word)).then_some((bucket, slot, word, value))
        })
    }
}
