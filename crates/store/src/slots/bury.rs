//! Superseding and deleting, where bits in DRAM tell what is dead (PACMAN section 3.2).
//!
//! Who supersedes a record writes nothing to it: the index's word tells how long it is, so it is not even read. A record whose
//! value fills blocks of its own is released as in Viper, since these blocks are free at once.

use super::{EXACT, SlotSession, SlotSpine, exact};
use crate::types::error::Error;
use quipu_parts::commit::StripeGuard;
use quipu_parts::epoch::Guard;
use quipu_parts::heap::slots::{Fence, Placed, SizedOffset, Steps};
use quipu_parts::index::cceh::{LockedSegment, NodeMemory};

impl<M: NodeMemory, const REDUCED: bool> SlotSpine<M, REDUCED> {
    /// Lets the record go that the index named by `old`, and that one with the number `by` has superseded. Its key is locked.
    #[inline]
    pub(super) fn bury(&self, placed: Placed<'_>, old: u64, by: u64) -> Result<(), Error> {
        let SizedOffset { offset, .. } = SizedOffset::from_word(old);
        match SizedOffset::from_word(old).told_len() {
            Some(len) => {
                placed.note_old_dead(offset, len, by);
                Ok(())
            }
            None => self.bury_unsized(placed, old, by),
        }
    }

    /// The same for one of which the word does not tell how long it is.
    #[cold]
    fn bury_unsized(&self, placed: Placed<'_>, old: u64, by: u64) -> Result<(), Error> {
        let offset = Self::offset_of(old);
        match self.heap.stands(offset)? {
            Some(record) if !record.has_blocks => {
                placed.note_old_dead(offset, record.len, by);
            }
            _ => placed.release_old(offset)?,
        }
        Ok(())
    }

    /// Deletes a key whose stripe is held, and tells whether it was there.
    pub(super) fn delete_by_tombstone(
        &self,
        session: &mut SlotSession,
        stripe: &StripeGuard<'_>,
        hash: u64,
        key: &[u8],
    ) -> Result<bool, Error> {
        loop {
            match self.place_tombstone(session, stripe, hash, key) {
                // As for a put. The least that can be gained is enough.
                Err(error @ Error::PoolFull { .. }) => self.make_space_for_tombstone(error, session)?,
                done => return done,
            }
        }
    }

    fn place_tombstone(
        &self,
        session: &mut SlotSession,
        stripe: &StripeGuard<'_>,
        hash: u64,
        key: &[u8],
    ) -> Result<bool, Error> {
        let SlotSession { participant, owner, numbers, .. } = session;
        let guard = participant.pin();
        if !self.is_there(&guard, hash, key) {
            return Ok(false);
        }
        let sequence = self.draw(numbers, stripe);
        let mut steps =
            Burial { spine: self, guard: &guard, key, hash, sequence, segment: None, failure: None };
        self.heap.place_tombstone_with(owner, key, sequence, &mut steps)?;
        match steps.failure {
            None => Ok(true),
            Some(error) => Err(error),
        }
    }

    /// Whether the index names a record of a key.
    pub(super) fn is_there(&self, guard: &Guard<'_>, hash: u64, key: &[u8]) -> bool {
        let found = match exact(key) {
            0 => self.index.get(guard, hash, |word| self.is_record_of(word, key)),
            exact => self.index.get_exact(guard, hash, |word| word & EXACT == exact),
        };
        found.is_some()
    }

    /// Makes some room for a tombstone, or gives `error` back.
    #[cold]
    fn make_space_for_tombstone(&self, error: Error, session: &mut SlotSession) -> Result<(), Error> {
        self.make_space_or(error, session, 1, LEAST_PERCENT_FOR_TOMBSTONE)
    }
}

/// Percent of a block that must be free before it is reclaimed for the sake of a tombstone.
const LEAST_PERCENT_FOR_TOMBSTONE: u8 = 1;

const _: () = assert!(EXACT.count_ones() == 1 && SizedOffset::BITS < u64::BITS, "a bit beside the offset");

/// The steps of a tombstone.
struct Burial<'s, 'g, M: NodeMemory, const REDUCED: bool> {
    spine: &'s SlotSpine<M, REDUCED>,
    guard: &'g Guard<'g>,
    key: &'g [u8],
    hash: u64,
    sequence: u64,
    /// Locked before the fences, as for a put.
    segment: Option<LockedSegment<'s, M>>,
    failure: Option<Error>,
}

impl<'s, M: NodeMemory, const REDUCED: bool> Steps<'s> for Burial<'s, '_, M, REDUCED> {
    type Outcome = ();

    fn lock(&mut self) {
        self.segment = Some(self.spine.index.lock(self.hash));
    }

    fn ahead(&mut self, _fence: Fence, _placed: SizedOffset) {}

    fn publish(&mut self, placed: Placed<'s>) {
        let segment = self.segment.take().expect("it was locked before");
        // It may have moved since, and be named by another word.
        let taken = segment.take(self.guard, |word| self.spine.is_record_of(word, self.key));
        debug_assert!(taken.is_some(), "the key is locked");
        self.failure = taken.and_then(|old| self.spine.bury(placed, old, self.sequence).err());
    }
}
