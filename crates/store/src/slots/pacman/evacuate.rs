//! The pipeline by which what is live of a block moves, where bits in DRAM tell what is dead (PACMAN section
//! 3.3): collect, copy, one fence, let the index name the copies. `parts/src/heap/slots/pacman/batch.rs` has
//! what the medium sees of it.
//!
//! Writers are not kept out. A copy is named if the original still is; if a writer was faster, the copy is
//! taken back before the original goes. A tombstone moves too, unless a record of its key is named, which is
//! younger, or no other block can hold one that is older. Neither needs the lock of a key: a tombstone in a
//! block that nobody writes to has done its work, and what may go once may go for ever, since no older record
//! of a key is ever made but by reclamation, which is here.

use crate::options::Twin;
use crate::slots::SlotSpine;
use quipu_parts::epoch::Guard;
use quipu_parts::heap::slots::{Batch, Collected, Owner, Reclaimed, SlotError, Victim};
use quipu_parts::index::cceh::NodeMemory;
use std::sync::atomic::Ordering;

/// Records whose entries in the index are asked for ahead.
const AHEAD: usize = 16;

impl<M: NodeMemory, const REDUCED: bool> SlotSpine<M, REDUCED> {
    /// Moves what a victim has to the cleaner's block, and frees it.
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
            if self.twin == Some(Twin::VictimFreedEarly) {
                self.heap.free_victim(&victim, cleaner, |_| true)?;
            }
            self.heap.reveal(batch);
            let repointed = self.repoint(guard, batch);
            self.heap.settle_copies();
            copied.and(repointed).inspect_err(|error| self.heap.give_up(&victim, error))?;
        }
        self.heap.free_victim(&victim, cleaner, |moved| self.moved_alone(guard, moved))
    }

    /// Leaves tombstones out that need not be kept.
    fn drop_tombstones(&self, guard: &Guard<'_>, victim: &Victim, batch: &mut Batch) {
        let gone = batch.drop_tombstones(|key, sequence| {
            let may_go = victim.may_go(sequence) || self.twin == Some(Twin::TombstoneDroppedEarly);
            !may_go && !self.is_there(guard, self.hash(key), key)
        });
        for tombstone in gone {
            self.heap.note_tombstone_gone(tombstone);
        }
    }

    /// Lets the index name the copies, where it still names the originals.
    fn repoint(&self, guard: &Guard<'_>, batch: &Batch) -> Result<(), SlotError> {
        let ask = |(key, _): (&[u8], &Collected)| self.index.prefetch_to_write(self.hash(key));
        let mut ahead = batch.records();
        ahead.by_ref().take(AHEAD).for_each(ask);
        // All that can be settled is, also where one of the copies is damaged.
        let mut outcome = Ok(());
        for (key, copied) in batch.records() {
            ahead.next().into_iter().for_each(ask);
            let Collected { sequence, is_tombstone, from, len, to: Some(to), .. } = *copied else { break };
            let (old, new) = (Self::word_of(from, key), Self::word_of(to, key));
            self.reclaimer.moved.fetch_add(len, Ordering::Relaxed);
            if is_tombstone {
                self.heap.note_tombstone_gone(from);
            } else if self.index.replace(guard, self.hash(key), old, new) {
                // The number counts only if the victim cannot be freed. Most victims hold back more by then,
                // for what had died in them. One whose free bytes are all at the ends of pages holds nothing
                // else.
                self.heap.note_dead(from.offset, len, sequence);
            } else if self.twin != Some(Twin::LosingCopyKept) {
                outcome = outcome.and(self.heap.void(to));
            }
        }
        outcome
    }
}
