//! The pipeline that moves the live records of a block, where bits in DRAM tell which are dead (PACMAN
//! section 3.3): collect, copy, one fence, repoint the index to the copies.
//! `parts/src/heap/slots/pacman/batch.rs` has the writes to the medium.
//!
//! Writers are not kept out. The index is repointed to a copy if it still names the original; if a writer was
//! faster, the copy is taken back before the original goes. A tombstone moves too, unless the index names a
//! record of its key, which is younger, or no other block can hold an older one. Neither case needs a key's
//! lock: the tombstone's block has no writer, so its deletion has ended. If it may go once, it may go for
//! ever: only reclamation, which runs here, makes older records of a key anew.

use crate::slots::SlotSpine;
use quipu_parts::epoch::Guard;
use quipu_parts::heap::slots::{Batch, Collected, Owner, Reclaimed, SlotError, Victim};
use quipu_parts::index::cceh::NodeMemory;
use quipu_parts::twin;
use std::sync::atomic::Ordering;

/// Records whose entries in the index are prefetched.
const AHEAD: usize = 16;

impl<M: NodeMemory, const REDUCED: bool> SlotSpine<M, REDUCED> {
    /// Moves the live records of a victim to the cleaner's block, and frees the victim.
    pub(in crate::slots) fn evacuate(
        &self,
        cleaner: &mut Owner,
        batch: &mut Batch,
        guard: &Guard<'_>,
        block: u64,
    ) -> Result<Reclaimed, SlotError> {
        // Without the technique, each record has fences of its own.
        let most = if self.heap.settings().techniques.batch { usize::MAX } else { 1 };
        let mut victim = self.heap.evacuate(block);
        while self.heap.collect(&mut victim, most, batch)? {
            self.drop_tombstones(guard, &victim, batch);
            let copied = self.heap.copy(cleaner, batch);
            if twin!(VictimFreedEarly) {
                self.heap.free_victim(&victim, cleaner, |_| true)?;
            }
            self.heap.reveal(batch);
            let repointed = self.repoint(guard, batch);
            self.heap.settle_copies();
            copied.and(repointed).inspect_err(|error| self.heap.give_up(&victim, error))?;
        }
        self.heap.free_victim(&victim, cleaner, |moved| self.moved_alone(guard, moved))
    }

    /// Leaves out tombstones that need not be kept.
    fn drop_tombstones(&self, guard: &Guard<'_>, victim: &Victim, batch: &mut Batch) {
        let gone = batch.drop_tombstones(|key, sequence| {
            let may_go = victim.may_go(sequence) || twin!(TombstoneDroppedEarly);
            !may_go && !self.is_there(guard, self.hash(key), key)
        });
        for tombstone in gone {
            self.heap.note_tombstone_gone(tombstone);
        }
    }

    /// Repoints the index to the copies, where it still names the originals.
    fn repoint(&self, guard: &Guard<'_>, batch: &Batch) -> Result<(), SlotError> {
        let ask = |(key, _): (&[u8], &Collected)| self.index.prefetch_to_write(self.hash(key));
        let mut ahead = batch.records();
        ahead.by_ref().take(AHEAD).for_each(ask);
        // All other copies are settled, also if one of them is damaged.
        let mut outcome = Ok(());
        for (key, copied) in batch.records() {
            ahead.next().into_iter().for_each(ask);
            let Collected { sequence, is_tombstone, from, len, to: Some(to), .. } = *copied else { break };
            let (old, new) = (Self::word_of(from, key), Self::word_of(to, key));
            self.reclaimer.moved.fetch_add(len, Ordering::Relaxed);
            if is_tombstone {
                self.heap.note_tombstone_gone(from);
            } else if self.index.replace(guard, self.hash(key), old, new) {
                // The number counts only if the victim cannot be freed. The records that had died in it by
                // then usually hold back more. Only a victim whose free bytes are all at the ends of pages
                // holds nothing else.
                self.heap.note_dead(from.offset, len, sequence);
            } else if !twin!(LosingCopyKept) {
                outcome = outcome.and(self.heap.void(to));
            }
        }
        outcome
    }
}
