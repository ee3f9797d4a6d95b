//! Clearing the marks of records that are known to be dead, many under one fence, so that a block holds no tombstones back any
//! more.
//!
//! Nothing has to move for it, and whoever writes to the block goes on; so a client that rests holds nothing back for ever.

use super::chunks::{BlockState, Page};
use super::error::Damage;
use super::format::{EntryKind, SET};
use super::heap::SlotHeap;
use super::log::FIRST_ENTRY;

impl SlotHeap {
    /// Clears the marks of all records that are dead in these blocks, durably. `false` if none of them can be read, or there is
    /// none. Nobody else scrubs, or asks which tombstones may go, meanwhile.
    pub(super) fn scrub(&self, blocks: impl Iterator<Item = u64>) -> bool {
        let mut some = false;
        for block in blocks {
            let (Some(dead), Some(state)) = (self.chunks.dead(block), self.chunks.block(block)) else {
                continue;
            };
            self.clock().begin(&self.space);
            // Before the look at what is dead: what is noted later holds again.
            let held = dead.let_go();
            let pages = if state.is_large() { 1 } else { self.chunks.geometry.pages };
            let mut scrubbed =
                (0..pages).filter_map(|page| self.chunks.page(block, page)).map(|page| self.scrub_page(page));
            if scrubbed.any(|page| page.is_err()) {
                // What it holds back stays so, and if nobody writes to it nobody looks at it again.
                dead.hold(held);
                state.advance(BlockState::Idle, BlockState::Damaged);
            } else {
                some = true;
            }
        }
        self.region().fence();
        some
    }

    /// Clears the marks of what is dead in a page, but for tombstones: what one of them beats may lie here too, and be the last to
    /// arrive. Durable with the next fence.
    fn scrub_page(&self, page: Page<'_>) -> Result<(), Damage> {
        let guard = self.lock(page);
        let mut position = FIRST_ENTRY;
        while let Some(entry) = self.read_entry(&guard.page, position)? {
            let is_record = !matches!(entry.kind, EntryKind::Part | EntryKind::Tombstone);
            if entry.set && is_record && self.is_dead(&guard.page, position) {
                self.clear_mark(&guard.page, position);
            }
            position = SlotHeap::behind(position, &entry);
        }
        Ok(())
    }

    /// Clears the mark of an entry that does not count. Durable with the next fence.
    pub(super) fn clear_mark(&self, page: &Page<'_>, position: u32) {
        let at = page.at + u64::from(position) * 8;
        self.region().store(at, self.region().load(at) & !SET);
        self.region().flush(at, 8);
    }
}
