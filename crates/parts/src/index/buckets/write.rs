//! Changing the word of a key, under the lock of its chain, in two phases (MPKV, section 3.2).
//!
//! First the word is stored without its mark, flushed and fenced; then the mark is stored, and not flushed. The paper's readers may set
//! the mark too, so they compare and swap; the holder of the lock need not, since nobody else changes anything but the mark.

use super::lock::Locking;
use super::settings::{Result, damaged};
use super::slot::{
    FREE, PERSIST, WORD_BITS, candidates, deleted_word, has_blank, is_free, is_own, is_there, is_unsettled,
    key_word, reference,
};
use super::table::BucketIndex;
use crate::epoch::Guard;
use crate::index::words::{LINE_WORDS, Words};
use crate::space::SpaceError;
use quipu_medium::{LINE, WORD};

/// The chain of a hash, locked until this drops.
pub(super) struct Held<'i, W: Words, L: Locking> {
    /// First byte of its first bucket.
    pub(super) head: u64,
    /// Number of that.
    pub(super) bucket: u64,
    _lock: L::Exclusive<'i, W>,
}

/// What a writer finds in a chain.
pub(super) struct Search {
    /// The slot of the key, and its reference.
    pub(super) found: Option<(u64, u64)>,
    /// The first slot that is free.
    free: Option<u64>,
    /// The last bucket.
    tail: u64,
}

impl<W: Words, L: Locking> BucketIndex<W, L> {
    /// Locks the chain of a hash.
    #[inline]
    pub(super) fn lock(&self, hash: u64) -> Result<Held<'_, W, L>, SpaceError> {
        loop {
            let bucket = self.size().bucket(hash);
            let held = self.lock_bucket(bucket)?;
            // The bucket may have been split while the lock was not yet ours.
            if self.size().bucket(hash) == bucket {
                return Ok(held);
            }
        }
    }

    /// Locks the chain of a bucket.
    #[inline]
    pub(super) fn lock_bucket(&self, bucket: u64) -> Result<Held<'_, W, L>, SpaceError> {
        let head = self.zones.place(bucket)?;
        Ok(Held { head, bucket, _lock: self.locks.lock(self.words(), head) })
    }

    /// Looks for the reference for which `matches` says yes, and for a free slot. The caller holds the chain. What it finds, that
    /// it finds nothing, and that the slot is free, is durable: another run, or a cleaner, may have left words that are not.
    #[inline]
    pub(super) fn search(
        &self,
        head: u64,
        hash: u64,
        mut matches: impl FnMut(u64) -> bool,
    ) -> Result<Search, SpaceError> {
        let (mut place, mut hops, mut free) = (head, 0, None);
        loop {
            let words = self.words().load_line(place);
            let mut own = candidates(&words, hash) >> L::SLOTS << L::SLOTS;
            while own != 0 {
                let slot = own.trailing_zeros() as usize;
                own &= own - 1;
                let (at, word) = (place + slot as u64 * WORD, words[slot]);
                if !is_own(word, hash) {
                    continue;
                }
                if is_unsettled(word) {
                    self.words().persist(at, WORD);
                    self.words().store(at, word | PERSIST);
                }
                if is_there(word) && matches(reference(word)) {
                    return Ok(Search { found: Some((at, reference(word))), free, tail: place });
                }
            }
            if has_blank(&words[L::SLOTS..]) {
                return damaged("a bucket of the index", place);
            }
            if free.is_none()
                && let Some(slot) = (L::SLOTS..LINE_WORDS).find(|slot| is_free(words[*slot]))
            {
                let at = place + slot as u64 * WORD;
                // A dead process may have left it so. Under another word nobody would see that there is something to make durable.
                if is_unsettled(words[slot]) {
                    self.words().persist(at, WORD);
                }
                free = Some(at);
            }
            match self.behind(place, words[LINE_WORDS - 1], &mut hops)? {
                Some(next) => place = next,
                None => return Ok(Search { found: None, free, tail: place }),
            }
        }
    }

    /// Lets a slot have a word, durably when this returns. The caller holds the chain.
    #[inline]
    pub(super) fn set(&self, slot: u64, word: u64) {
        self.words().store(slot, word);
        self.words().persist(slot, WORD);
        // Not flushed: a mark that is lost costs a reader a flush.
        self.words().store(slot, word | PERSIST);
    }

    /// Lets the key with this hash have `new`: in place of the reference for which `matches` says yes, which it returns, or beside
    /// all others. `rehash` tells the hash of the key of a reference, for a split; neither may call the index.
    ///
    /// # Errors
    /// [`Full`](super::BucketError::Full) or [`Space`](super::BucketError::Space); nothing is changed then.
    ///
    /// # Panics
    /// If `new` is zero or has more than 45 bits.
    #[inline]
    pub fn upsert(
        &self,
        _guard: &Guard<'_>,
        hash: u64,
        new: u64,
        matches: impl FnMut(u64) -> bool,
        rehash: &dyn Fn(u64) -> u64,
    ) -> Result<Option<u64>> {
        check_reference(new);
        let held = self.lock(hash)?;
        let search = self.search(held.head, hash, matches)?;
        let word = key_word(hash, new);
        if let Some((slot, old)) = search.found {
            self.set(slot, word);
            return Ok(Some(old));
        }
        let is_in_head = search.free.is_some_and(|slot| slot / LINE == held.head / LINE);
        match search.free {
            Some(slot) => {
                self.count.add(slot / LINE, 1);
                self.set(slot, word);
            }
            None => {
                self.zones.append(search.tail, held.bucket, &[word | PERSIST])?;
                self.count.add(search.tail / LINE, 1);
            }
        }
        drop(held);
        if !is_in_head && self.zones.settings.grow {
            self.split_next(rehash);
        }
        Ok(None)
    }

    /// Removes the key with this hash for whose reference `matches` says yes, and returns that.
    ///
    /// The slot says that the key is deleted, durably, before it is free: a slot that were simply emptied could not tell a reader
    /// that there is something to make durable. After a crash a mark says no more than that the slot is free.
    ///
    /// # Errors
    /// As for [`get`](BucketIndex::get); nothing is changed then.
    #[inline]
    pub fn take(
        &self,
        _guard: &Guard<'_>,
        hash: u64,
        matches: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>, SpaceError> {
        let held = self.lock(hash)?;
        let Some((slot, old)) = self.search(held.head, hash, matches)?.found else { return Ok(None) };
        self.count.add(slot / LINE, -1);
        self.words().store(slot, deleted_word(hash, old));
        self.words().persist(slot, WORD);
        self.words().store(slot, FREE);
        Ok(Some(old))
    }

    /// Lets the key with this hash have `new` if it still has `old`; says whether it did.
    ///
    /// # Errors
    /// As for [`get`](BucketIndex::get); nothing is changed then.
    ///
    /// # Panics
    /// As for [`upsert`](BucketIndex::upsert).
    #[inline]
    pub fn replace(&self, _guard: &Guard<'_>, hash: u64, old: u64, new: u64) -> Result<bool, SpaceError> {
        check_reference(new);
        let held = self.lock(hash)?;
        let found = self.search(held.head, hash, |reference| reference == old)?.found;
        Ok(found.map(|(slot, _)| self.set(slot, key_word(hash, new))).is_some())
    }
}

#[inline]
pub(super) fn check_reference(reference: u64) {
    assert!(reference != 0 && reference >> WORD_BITS == 0, "a reference has 45 bits, and is not zero");
}
