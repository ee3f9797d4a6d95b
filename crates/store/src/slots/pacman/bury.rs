//! Superseding and deleting, where bits in DRAM tell which records are dead (PACMAN section 3.2).
//!
//! A writer that supersedes a record does not write to it. The index's word tells the record's length, so the
//! writer does not read it either. A record whose value fills blocks of its own is released as in Viper,
//! since these blocks are free at once.

use crate::slots::write::Refusal;
use crate::slots::{EXACT, SlotSession, SlotSpine, exact};
use crate::types::error::{Error, ErrorKind};
use quipu_parts::commit::StripeGuard;
use quipu_parts::epoch::Guard;
use quipu_parts::heap::slots::{Claim, Offset, Owner, Record, SizedOffset};
use quipu_parts::index::cceh::NodeMemory;

impl<M: NodeMemory, const REDUCED: bool> SlotSpine<M, REDUCED> {
    /// Notes the record that the index named by `old` as dead. A record with the number `by` has superseded
    /// it. Its key is locked.
    #[inline]
    pub(in crate::slots) fn bury(&self, claim: &Claim<'_, '_>, old: u64, by: u64) -> Result<(), Error> {
        let old = SizedOffset::from_word(old);
        match old.told_len() {
            Some(len) => {
                claim.note_old_dead(old.offset, len, by);
                Ok(())
            }
            None => self.bury_unsized(claim, old.offset, by),
        }
    }

    /// Notes a record as dead whose word does not tell its length.
    #[cold]
    fn bury_unsized(&self, claim: &Claim<'_, '_>, old: Offset, by: u64) -> Result<(), Error> {
        match self.heap.stands(old)? {
            Some(record) if !record.has_blocks => claim.note_old_dead(old, record.len, by),
            _ => claim.release_old(old)?,
        }
        Ok(())
    }

    /// Deletes a key whose stripe is held, and tells whether it was there. If there is no room for the
    /// tombstone, the least gain of reclamation is enough.
    pub(in crate::slots) fn delete_by_tombstone(
        &self,
        session: &mut SlotSession,
        stripe: &StripeGuard<'_>,
        hash: u64,
        key: &[u8],
    ) -> Result<bool, Refusal> {
        self.place_tombstone(session, stripe, hash, key)
            .map_err(|error| Refusal { percent: LEAST_PERCENT_FOR_TOMBSTONE, ..error.into() })
    }

    /// Places a tombstone in the client's block, or in the block that is reserved for tombstones.
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
        let tombstone = Record { key, value: &[], sequence: self.draw(numbers, stripe) };
        match self.place_tombstone_of(&guard, owner, hash, tombstone) {
            Err(error) if error.kind() == ErrorKind::Room => {
                self.place_tombstone_of(&guard, &mut self.heap.last_resort(), hash, tombstone)?;
            }
            placed => placed?,
        }
        Ok(true)
    }

    /// The beats of a deletion: those of a put that is published before it returns (`now`).
    #[inline]
    fn place_tombstone_of(
        &self,
        guard: &Guard<'_>,
        owner: &mut Owner,
        hash: u64,
        tombstone: Record<'_>,
    ) -> Result<(), Error> {
        let Record { key, sequence, .. } = tombstone;
        let mut claim = self.heap.claim_tombstone(owner, key, sequence)?;
        let segment = self.index.lock(hash);
        claim.persist(tombstone);
        // The record may have moved since the lookup, and have another word.
        let taken = segment.take(guard, |word| self.is_record_of(word, key));
        debug_assert!(taken.is_some(), "the key is locked");
        taken.map_or(Ok(()), |old| self.bury(&claim, old, sequence))
    }

    /// Whether the index names a record of a key.
    pub(in crate::slots) fn is_there(&self, guard: &Guard<'_>, hash: u64, key: &[u8]) -> bool {
        let found = match exact(key) {
            0 => self.index.get(guard, hash, |word| self.is_record_of(word, key)),
            exact => self.index.get_exact(guard, hash, |word| word & EXACT == exact),
        };
        found.is_some()
    }
}

/// Percent of a block that must be free before it is reclaimed for the sake of a tombstone.
const LEAST_PERCENT_FOR_TOMBSTONE: u8 = 1;

const _: () = assert!(EXACT.count_ones() == 1 && SizedOffset::BITS < u64::BITS, "a bit beside the offset");
