//! Changing a record where it is: deleting it (section 4.5 of the paper), and updating eight bytes of it
//! (section 4.4).
//!
//! A whole hash is hardly ever that of another key. So the key is compared only at the record that the index
//! names first for the hash; a call that misses there looks again under the lock of the index's segment.

use super::write::Refusal;
use super::{EXACT, Misses, SlotSession, SlotSpine, exact};
use crate::types::error::Error;
use quipu_parts::commit::StripeGuard;
use quipu_parts::epoch::Guard;
use quipu_parts::heap::slots::{Offset, SizedOffset};
use quipu_parts::index::cceh::NodeMemory;
use quipu_parts::twin;

impl<M: NodeMemory, const REDUCED: bool> SlotSpine<M, REDUCED> {
    /// Deletes a key, and tells whether it was there (section 4.5).
    #[inline]
    pub(crate) fn remove(&self, session: &mut SlotSession, key: &[u8]) -> Result<bool, Error> {
        let hash = self.ask(key);
        self.common.stripes.prefetch(hash);
        self.check_key(key)?;
        self.common.admission.admit()?;
        // A mark needs no room.
        if !REDUCED {
            let _stripe = self.lock(&session.participant, hash);
            return self.unmark(&session.participant.pin(), hash, key);
        }
        loop {
            let stripe = self.lock(&session.participant, hash);
            let refusal = match self.delete(session, &stripe, hash, key) {
                Ok(existed) => return Ok(existed),
                Err(refusal) => refusal,
            };
            drop(stripe);
            self.make_room(refusal, session)?;
        }
    }

    /// Changes eight bytes of a value in place (section 4.4): `at` bytes into it, a little-endian number.
    /// Returns the old number; `None` if there is no such key.
    #[inline]
    pub(crate) fn update_in_place(
        &self,
        session: &mut SlotSession,
        key: &[u8],
        at: u64,
        change: &dyn Fn(u64) -> u64,
    ) -> Result<Option<u64>, Error> {
        let hash = self.ask(key);
        self.common.stripes.prefetch(hash);
        self.common.admission.admit()?;
        // Ahead of the lock, which waits for the change before to have reached the medium.
        if let Some(word) = self.index.candidate(&session.participant.pin(), hash) {
            self.heap.prefetch_to_change(Self::offset_of(word));
        }
        let _stripe = self.lock(&session.participant, hash);
        let guard = session.participant.pin();
        // Keys that are empty or too long match no record, and are refused below.
        if let Some(word) = self.index.candidate(&guard, hash)
            && self.has_begun()
            && let Some(old) = self.heap.update_in_place(Self::offset_of(word), key, at, change)?
        {
            return Ok(Some(old));
        }
        self.check_key(key)?;
        self.find_and(&guard, hash, key, |offset| Ok(self.heap.update_in_place(offset, key, at, change)?))
    }

    /// Changes a record that is found by a search that compares keys, again and again while it moves. The
    /// first change of a run comes here too. `None` if there is no such key.
    #[cold]
    fn find_and<T>(
        &self,
        guard: &Guard<'_>,
        hash: u64,
        key: &[u8],
        mut change: impl FnMut(Offset) -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        let mut misses = Misses::default();
        loop {
            let Some(offset) = self.find(guard, hash, key) else { return Ok(None) };
            self.begin_run();
            if let Some(changed) = change(offset)? {
                return Ok(Some(changed));
            }
            misses.note(&self.heap, offset)?;
        }
    }

    /// The place of a key's record, for a caller that did not find it at the index's first answer. The record
    /// has moved since, or its slot holds another key's record now. Or another key has this hash, which is
    /// very unlikely.
    ///
    /// The lock of the segment keeps each record in its slot during the comparison. Without the lock, a
    /// record could move before each look, so that its slot holds another key's record. A key that is present
    /// would then seem absent.
    #[cold]
    pub(super) fn find(&self, guard: &Guard<'_>, hash: u64, key: &[u8]) -> Option<Offset> {
        if twin!(SecondLookUnlocked) {
            return self.index.get(guard, hash, |word| self.is_record_of(word, key)).map(Self::offset_of);
        }
        self.index.lock(hash).named(|word| self.is_record_of(word, key)).map(Self::offset_of)
    }

    /// Whether a word names a record of this key. Prefetches the lines that a change of that record touches.
    #[inline]
    pub(super) fn is_record_of(&self, word: u64, key: &[u8]) -> bool {
        if REDUCED {
            let exact = exact(key);
            self.heap.prefetch_dead(Self::offset_of(word));
            return word & EXACT == exact && (exact != 0 || self.heap.key_is(Self::offset_of(word), key));
        }
        self.heap.prefetch_to_change(Self::offset_of(word));
        self.heap.key_is(Self::offset_of(word), key)
    }

    /// Deletes a key whose stripe is held, and tells whether it was there.
    pub(super) fn delete(
        &self,
        session: &mut SlotSession,
        stripe: &StripeGuard<'_>,
        hash: u64,
        key: &[u8],
    ) -> Result<bool, Refusal> {
        if REDUCED {
            return self.delete_by_tombstone(session, stripe, hash, key);
        }
        Ok(self.unmark(&session.participant.pin(), hash, key)?)
    }

    /// Deletes a record by its mark.
    #[inline]
    pub(super) fn unmark(&self, guard: &Guard<'_>, hash: u64, key: &[u8]) -> Result<bool, Error> {
        // The first answer of the index is tried without a comparison of keys.
        if let Some(word) = self.index.candidate(guard, hash)
            && self.has_begun()
            && self.unmark_if_named(guard, hash, key, word)?
        {
            return Ok(true);
        }
        let unmark = |offset| {
            let word = Self::word_of(SizedOffset::new(offset, 0), key);
            Ok(self.unmark_if_named(guard, hash, key, word)?.then_some(()))
        };
        Ok(self.find_and(guard, hash, key, unmark)?.is_some())
    }

    /// Deletes the record of a key if it is this word's and has not moved since the index returned the word.
    #[inline(always)]
    fn unmark_if_named(&self, guard: &Guard<'_>, hash: u64, key: &[u8], word: u64) -> Result<bool, Error> {
        let Some(held) = self.heap.hold(Self::offset_of(word)) else { return Ok(false) };
        // The entry is locked and searched before the fence, as for a put, while the record is still on its
        // way from memory.
        let Some(entry) = self.index.lock(hash).entry_of(word) else { return Ok(false) };
        let is_gone = held.key_is(key) && held.delete()?;
        if is_gone {
            entry.remove(guard);
        }
        Ok(is_gone)
    }
}
