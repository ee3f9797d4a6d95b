//! Changing the word of a key, under the lock of its chain, in two phases (MPKV, section 3.2).
//!
//! First the word is stored without its mark, flushed and fenced; then the mark is stored, and not flushed.
//! The paper's readers may set the mark too, so they compare and swap; the holder of the lock need not, since
//! other threads change nothing but the mark.

use super::lock::Locking;
use super::slot::{
    PERSIST, WORD_BITS, candidates, has_blank, is_free, is_own, is_there, is_unsettled, reference,
};
use super::table::BucketIndex;
use crate::index::chain::damaged;
use crate::index::words::{LINE_WORDS, Words};
use crate::space::SpaceError;
use quipu_medium::WORD;

/// The chain of a hash, locked until this drops.
pub(super) struct Held<'i, W: Words, L: Locking> {
    /// First byte of its first bucket.
    pub(super) head: u64,
    /// Number of that.
    pub(super) bucket: u64,
    _lock: L::Exclusive<'i, W>,
}

/// The result of a writer's search in a chain.
pub(super) struct Search {
    /// The slot of the key, and its reference.
    pub(super) found: Option<(u64, u64)>,
    /// The first slot that is free.
    pub(super) free: Option<u64>,
    /// The last bucket.
    pub(super) tail: u64,
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

    /// Looks for the reference for which `matches` says yes, and for a free slot. The caller holds the chain.
    /// The result, found or not, is durable, and so is the free slot: another run, or a cleaner, may have
    /// left words that are not.
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
                // A dead process may have left it so. Under another word no thread would see that the
                // deletion has to be made durable.
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
}

#[inline]
pub(super) fn check_reference(reference: u64) {
    assert!(reference != 0 && reference >> WORD_BITS == 0, "a reference has 45 bits, and is not zero");
}
