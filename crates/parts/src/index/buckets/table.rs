//! The index as its users see it, and its lookups.

use super::lock::{Locking, TableLocks};
use super::numbers::Size;
use super::settings::{BucketSettings, BucketStats};
use super::slot::{PERSIST, candidates, has_blank, is_link, is_own, is_there, linked, reference};
use super::zones::{LAST_SLOT, Zones};
use crate::index::chain::damaged;
use crate::index::count::Count;
use crate::index::words::{LINE_WORDS, PmWords, Words};
use crate::space::SpaceError;
use crate::sync::{SpinLock, point};
use quipu_medium::WORD;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A bucket index: hash to reference, with these locks.
///
/// All methods may be called by many threads at once, except that two must not upsert or take the same key at
/// the same time. The guard keeps records from being reused while `matches` looks at them, and their words
/// from becoming those of others.
pub struct BucketIndex<W: Words = PmWords, L: Locking = TableLocks> {
    pub(super) zones: Zones<W, L>,
    pub(super) locks: L,
    /// The [`Size`] of the table, packed, as its word in PM says durably.
    pub(super) size: AtomicU64,
    /// Held during a split. Counts the keys to pass before a split that damage has prevented is tried again.
    pub(super) growth: SpinLock<u32>,
    pub(super) growing: AtomicBool,
    pub(super) splits: AtomicU64,
    pub(super) records_read: AtomicU64,
    pub(super) count: Count,
}

impl<W: Words, L: Locking> BucketIndex<W, L> {
    pub(super) fn over(zones: Zones<W, L>, buckets: u64, is_new: bool) -> Self {
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

    /// The reference in a chain of the key for which `matches` says yes. The answer, yes or no, is durable.
    #[inline]
    pub(super) fn find(
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
            // Only a reader that has not found the key looks for blanks: a key that was here would be missed.
            if has_blank(&words[L::SLOTS..]) {
                return damaged("a bucket of the index", place);
            }
            match self.behind(place, words[LINE_WORDS - 1], &mut hops)? {
                Some(next) => place = next,
                None => return Ok(None),
            }
        }
    }

    /// Whether the word of a slot is the sought one, durably; it is loaded again if it changes meanwhile.
    ///
    /// The writer of a word without its mark has not made it durable yet. A reader that acts on the word does
    /// that first, be it for a key or for a removal (MPKV, section 3.2). If the word has changed by then, the
    /// reader looks at the *same* slot again, for the mark alone may be new.
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

    /// Makes a word durable for a reader, and gives it its mark; false if it has changed meanwhile.
    #[cold]
    #[inline(never)]
    fn help(&self, slot: u64, word: u64) -> bool {
        point();
        self.words().help(slot, WORD);
        self.words().swap(slot, word, word | PERSIST)
    }

    /// The bucket behind one with this last word, if there is one. The link to it is durable; `hops` counts.
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

    /// The bucket behind one whose last word is `word`, without making the link durable.
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

    /// Tells place and word of every slot of a chain, and returns its last bucket. `SETTLED` makes links
    /// durable.
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

    /// The size of the index, and its work so far.
    pub fn stats(&self) -> BucketStats {
        BucketStats {
            bytes: self.zones.dram_bytes() + self.locks.bytes() + self.count.bytes(),
            pm_bytes: self.zones.chain.pm_bytes(),
            buckets: self.size().buckets,
            overflow: self.zones.overflow_in_use(),
            splits: self.splits.load(Ordering::Relaxed),
            records_read: self.records_read.load(Ordering::Relaxed),
        }
    }
}
