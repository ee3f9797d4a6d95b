//! The index as its users see it, and its lookups.

use super::lock::{Locking, TableLocks};
use super::numbers::Size;
use super::settings::{BucketSettings, BucketStats, Result, damaged};
use super::slot::{PERSIST, candidates, has_blank, is_key, is_link, is_own, is_there, linked, reference};
use super::zones::{LAST_SLOT, Zones};
use crate::epoch::Guard;
use crate::index::count::Count;
use crate::index::words::{LINE_WORDS, PmWords, Words};
use crate::space::{SpaceError, ZoneId};
use crate::sync::{SpinLock, point};
use quipu_medium::WORD;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A bucket index: hash to reference, with these locks.
///
/// All methods may be called by many threads at once, except that two must not upsert or take the same key at the same time. The
/// guard keeps records from being reused while `matches` looks at them, and their words from becoming those of others.
pub struct BucketIndex<W: Words = PmWords, L: Locking = TableLocks> {
    pub(super) zones: Zones<W, L>,
    pub(super) locks: L,
    /// The [`Size`] of the table, packed: what its word in PM says durably.
    pub(super) size: AtomicU64,
    /// Held by the one who splits. Says how many more keys are to pass before a split that damage has prevented is tried again.
    pub(super) growth: SpinLock<u32>,
    pub(super) growing: AtomicBool,
    pub(super) splits: AtomicU64,
    pub(super) records_read: AtomicU64,
    pub(super) count: Count,
    /// Where the chain of zones ends with a link to one that was not committed.
    pub(super) dangling: SpinLock<Option<u64>>,
}

impl<W: Words, L: Locking> BucketIndex<W, L> {
    pub(super) fn over(zones: Zones<W, L>, buckets: u64, dangling: Option<u64>, is_new: bool) -> Self {
        let size = Size::new(zones.settings.buckets, buckets);
        BucketIndex {
            zones,
            locks: L::default(),
            size: AtomicU64::new(size.pack()),
            growth: SpinLock::default(),
            growing: AtomicBool::new(false),
            splits: AtomicU64::new(0),
            records_read: AtomicU64::new(0),
            count: Count::new(is_new),
            dangling: SpinLock::new(dangling),
        }
    }

    /// How large the table is.
    #[inline]
    pub(super) fn size(&self) -> Size {
        Size::unpack(self.zones.settings.buckets, self.size.load(Ordering::Acquire))
    }

    /// The words of the pool.
    #[inline]
    pub(super) fn words(&self) -> &W {
        &self.zones.words
    }

    /// The settings, every field in its range.
    pub fn settings(&self) -> BucketSettings {
        self.zones.settings
    }

    /// Asks for the first bucket of the chain in which `hash` stands.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        if let Ok(place) = self.zones.place(self.size().bucket(hash)) {
            self.words().prefetch(place);
        }
    }

    /// Like [`prefetch`](BucketIndex::prefetch), and asks for the lock that a change will take too.
    #[inline]
    pub fn prefetch_to_write(&self, hash: u64) {
        if let Ok(place) = self.zones.place(self.size().bucket(hash)) {
            self.words().prefetch(place);
            self.locks.prefetch(place);
        }
    }

    /// The reference of the key with this hash for which `matches` says yes. What it answers, yes or no, is durable.
    ///
    /// `matches` sees references of keys with this fingerprint; it may see one that has just been replaced, whose record the
    /// guard keeps.
    ///
    /// # Errors
    /// [`SpaceError::Damaged`] if a link leads nowhere.
    #[inline]
    pub fn get(
        &self,
        _guard: &Guard<'_>,
        hash: u64,
        mut matches: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>, SpaceError> {
        loop {
            let bucket = self.size().bucket(hash);
            let head = self.zones.place(bucket)?;
            let found = {
                let _shared = self.locks.share(self.words(), head);
                self.find(head, hash, &mut matches)?
            };
            // A split takes words out of a bucket only after the size has changed. So who finds nothing looks at it again.
            if found.is_some() || self.size().bucket(hash) == bucket {
                return Ok(found);
            }
        }
    }

    #[inline]
    fn find(
        &self,
        head: u64,
        hash: u64,
        matches: &mut impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>, SpaceError> {
        let (mut place, mut hops) = (head, 0);
        loop {
            let mut words = self.words().load_line(place);
            let mut own = candidates(&words, hash) >> L::SLOTS << L::SLOTS;
            while own != 0 {
                let slot = own.trailing_zeros() as usize;
                own &= own - 1;
                let word = &mut words[slot];
                if self.is_answer(place + slot as u64 * WORD, word, hash, matches) {
                    return Ok(Some(reference(*word)));
                }
            }
            // Only for who has not found the key: one that was here would be missed.
            if has_blank(&words[L::SLOTS..]) {
                return damaged("a bucket of the index", place);
            }
            match self.behind(place, words[LINE_WORDS - 1], &mut hops)? {
                Some(next) => place = next,
                None => return Ok(None),
            }
        }
    }

    /// Whether the word of a slot is the one that is looked for, durably; it is loaded again if it changes meanwhile.
    ///
    /// A word without its mark was stored by one who has not made it durable yet. Whoever acts on it does that first: a reader
    /// that has seen a key, or has seen that it was removed (MPKV, section 3.2). If the word has changed by then, the *same* slot is
    /// looked at again, for it may be the mark alone that is new.
    #[inline]
    fn is_answer(&self, slot: u64, word: &mut u64, hash: u64, matches: &mut impl FnMut(u64) -> bool) -> bool {
        while is_own(*word, hash) {
            let is_there = is_there(*word);
            if is_there && !matches(reference(*word)) {
                return false;
            }
            if *word & PERSIST != 0 || self.help(slot, *word) {
                return is_there;
            }
            *word = self.words().load(slot);
        }
        false
    }

    /// Makes a word durable for a reader who is about to act on it, and gives it its mark; false if it has changed meanwhile.
    #[cold]
    #[inline(never)]
    fn help(&self, slot: u64, word: u64) -> bool {
        point();
        self.words().help(slot, WORD);
        self.words().swap(slot, word, word | PERSIST)
    }

    /// The bucket behind one whose last word is `word`, if there is one. What leads there is durable; `hops` counts.
    #[inline]
    pub(super) fn behind(&self, place: u64, word: u64, hops: &mut u64) -> Result<Option<u64>, SpaceError> {
        if !is_link(word) {
            return Ok(None);
        }
        if word & PERSIST == 0 {
            // A link that changes becomes the same one with its mark.
            self.help(place + LAST_SLOT, word);
        }
        self.step(place, word, hops)
    }

    /// The same, without making the link durable.
    fn step(&self, place: u64, word: u64, hops: &mut u64) -> Result<Option<u64>, SpaceError> {
        if !is_link(word) {
            return Ok(None);
        }
        let Some(link) = linked(word) else {
            return damaged("a link between buckets of the index", place + LAST_SLOT);
        };
        *hops += 1;
        if *hops > self.zones.overflow_in_use() {
            return damaged("a chain of buckets of the index, which never ends,", place);
        }
        self.zones.overflow(place + LAST_SLOT, link).map(Some)
    }

    /// Tells place and word of every slot of a chain, and returns the last bucket of it. If `SETTLED`, all links are made durable.
    #[inline]
    pub(super) fn each_slot<const SETTLED: bool>(
        &self,
        head: u64,
        mut each: impl FnMut(u64, u64),
    ) -> Result<u64, SpaceError> {
        let (mut place, mut hops) = (head, 0);
        loop {
            let words = self.words().load_line(place);
            (L::SLOTS..LINE_WORDS).for_each(|slot| each(place + slot as u64 * WORD, words[slot]));
            let last = words[LINE_WORDS - 1];
            let next = if SETTLED {
                self.behind(place, last, &mut hops)?
            } else {
                self.step(place, last, &mut hops)?
            };
            match next {
                Some(next) => place = next,
                None => return Ok(place),
            }
        }
    }

    /// The reference that most likely is the key's: the first of its fingerprint in the first bucket of its chain.
    #[inline]
    pub fn candidate(&self, _guard: &Guard<'_>, hash: u64) -> Option<u64> {
        let head = self.zones.place(self.size().bucket(hash)).ok()?;
        let words = self.words().load_line(head);
        let own = words[L::SLOTS..].iter().find(|word| is_key(**word) && is_own(**word, hash));
        own.map(|word| reference(*word))
    }

    /// Whether a key of this hash has this reference, durably or not. Changes nothing, makes nothing durable, and waits for nobody.
    ///
    /// # Errors
    /// As for [`get`](BucketIndex::get).
    pub fn names(&self, _guard: &Guard<'_>, hash: u64, named: u64) -> Result<bool, SpaceError> {
        loop {
            let bucket = self.size().bucket(hash);
            let mut is_there = false;
            self.each_slot::<false>(self.zones.place(bucket)?, |_, word| {
                is_there |= is_key(word) && is_own(word, hash) && reference(word) == named;
            })?;
            if is_there || self.size().bucket(hash) == bucket {
                return Ok(is_there);
            }
        }
    }

    /// Makes sure, as far as other callers leave it so, that so many keys can be added without an error. For who may not fail later.
    ///
    /// # Errors
    /// [`Full`](super::BucketError::Full) or [`Space`](super::BucketError::Space).
    pub fn make_room(&self, keys: usize) -> Result<()> {
        self.zones.make_room(keys as u64)?;
        if self.zones.settings.grow {
            // A table that cannot grow any more has longer chains, for which there is room now.
            let _ = self.zones.extend_table(self.size().buckets + keys as u64);
        }
        Ok(())
    }

    /// What the index occupies and has done.
    pub fn stats(&self) -> BucketStats {
        BucketStats {
            bytes: self.zones.dram_bytes() + self.locks.bytes() + self.count.bytes(),
            pm_bytes: self.zones.all().len() as u64 * self.zones.chain.space.zone_size(),
            buckets: self.size().buckets,
            overflow: self.zones.overflow_in_use(),
            splits: self.splits.load(Ordering::Relaxed),
            records_read: self.records_read.load(Ordering::Relaxed),
        }
    }

    /// Whether a bucket is being split now.
    pub fn growing(&self) -> bool {
        self.growing.load(Ordering::Relaxed)
    }

    /// Zones of the pool that it has.
    pub fn zones(&self) -> Vec<ZoneId> {
        self.zones.all()
    }
}
