//! Choosing victims where tombstones wait for other blocks, and clearing marks so that they may go.
//!
//! A block full of tombstones counts as full until no other block holds them back (`dead`), and as empty from
//! then on. If they are many, or no block is worth reclaiming, the marks of dead records are cleared in the
//! blocks that hold back the oldest, many under one fence. Nothing has to move for it, and clients go on
//! writing to these blocks; so a client that rests holds nothing back for ever.

use super::dead::HOLDS_NONE;
use crate::heap::slots::choose::{Candidate, Debt, is_clearing_due};
use crate::heap::slots::chunks::{Block, BlockState, Page};
use crate::heap::slots::error::Damage;
use crate::heap::slots::format::{EntryKind, SET};
use crate::heap::slots::heap::SlotHeap;
use crate::heap::slots::log::FIRST_ENTRY;
use crate::heap::slots::victims::Victims;

/// Blocks whose marks are cleared at a time.
const SCRUBBED_TOGETHER: usize = 64;

/// From which numbers on blocks held tombstones back when somebody looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::heap::slots) struct Horizon {
    lowest: u64,
    /// The block that holds from there on.
    block: u64,
    /// The lowest except for that.
    next: u64,
}

impl Default for Horizon {
    fn default() -> Horizon {
        Horizon { lowest: 0, block: u64::MAX, next: 0 }
    }
}

impl Horizon {
    fn of(holds: impl Iterator<Item = (u64, u64)>) -> Horizon {
        let nothing = Horizon { lowest: HOLDS_NONE, block: u64::MAX, next: HOLDS_NONE };
        holds.fold(nothing, |horizon, (from, block)| match horizon {
            Horizon { lowest, .. } if from < lowest => Horizon { lowest: from, block, next: lowest },
            _ => Horizon { next: horizon.next.min(from), ..horizon },
        })
    }

    /// All blocks but this one held back tombstones with this number or a higher one, and no others.
    pub(in crate::heap::slots) fn without(&self, block: u64) -> u64 {
        if block == self.block { self.next } else { self.lowest }
    }
}

impl SlotHeap {
    /// Some blocks that are worth it, the best last. Clears marks before, if [that is due](is_clearing_due).
    /// A caller that wants only empty blocks is closing, and does not wait for more than one round of that.
    pub(in crate::heap::slots) fn best(&self, percent: u8) -> Victims {
        let room = self.blocks() * self.chunks.geometry.capacity();
        let numbered = || (0..self.blocks()).filter_map(|number| Some((number, self.chunks.dead(number)?)));
        // At most once through all blocks, since other clients may make work meanwhile.
        let mut rounds = if percent == 100 { 1 } else { self.blocks() / SCRUBBED_TOGETHER as u64 + 1 };
        let mut is_first = true;
        loop {
            // Only for the tombstones in idle blocks is it certain that the blocks that hold them back are
            // noted. A client may still be at work on its last tombstone, and its block is idle a moment
            // later. So this looks for idle blocks first.
            let idle = self.idle();
            let holds = self.holds();
            let horizon = Horizon::of(holds.iter().copied());
            let now = numbered().map(|(_, dead)| dead.filled()).max().unwrap_or_default() + 1;
            let held = numbered().map(|(number, dead)| dead.tombstones(horizon.without(number)).1).sum();
            let candidates: Vec<Candidate> =
                idle.into_iter().filter_map(|number| self.candidate(number, &horizon)).collect();
            let terms = self.terms(percent, Some(now));
            let debt = Debt { held, room, is_soon_done: holds.len() <= SCRUBBED_TOGETHER, is_first };
            if rounds == 0 || !is_clearing_due(&candidates, &terms, debt) || !self.scrub_first(holds) {
                return self.victims(&candidates, &terms, horizon);
            }
            (rounds, is_first) = (rounds - 1, false);
        }
    }

    /// The blocks that nobody writes to.
    fn idle(&self) -> Vec<u64> {
        let is_idle =
            |number: &u64| self.chunks.block(*number).is_some_and(|block| block.state() == BlockState::Idle);
        (0..self.blocks()).filter(is_idle).collect()
    }

    /// From which numbers on blocks hold tombstones back, and which these are.
    fn holds(&self) -> Vec<(u64, u64)> {
        let hold = |number| {
            let state = self.chunks.block(number)?.state();
            let is_gone = matches!(state, BlockState::Free | BlockState::Fresh);
            Some((self.chunks.dead(number)?.holds(), number))
                .filter(|(from, _)| !is_gone && *from != HOLDS_NONE)
        };
        (0..self.blocks()).filter_map(hold).collect()
    }

    /// Clears marks in the blocks that hold back most. `false` if there is none that can be read.
    fn scrub_first(&self, mut holds: Vec<(u64, u64)>) -> bool {
        let is_damaged = |block: &Block| block.state() == BlockState::Damaged;
        holds.retain(|(_, number)| !self.chunks.block(*number).is_some_and(is_damaged));
        holds.sort_unstable();
        holds.truncate(SCRUBBED_TOGETHER);
        self.scrub(holds.into_iter().map(|(_, number)| number))
    }

    /// Clears the marks of all records that are dead in these blocks, durably. `false` if none of them can be
    /// read, or there is none. Nobody else scrubs, or asks which tombstones may go, meanwhile.
    fn scrub(&self, blocks: impl Iterator<Item = u64>) -> bool {
        let mut some = false;
        for block in blocks {
            let (Some(dead), Some(state)) = (self.chunks.dead(block), self.chunks.block(block)) else {
                continue;
            };
            self.clock().begin(&self.space);
            // Before the look at dead records: those noted later hold again.
            let held = dead.let_go();
            let pages = self.pages_of(block).unwrap_or_default();
            let mut scrubbed = self.chunks.pages(block, pages).map(|page| self.scrub_page(page));
            if scrubbed.any(|page| page.is_err()) {
                // The block holds them back again. A damaged block is not looked at any more.
                dead.hold(held);
                state.advance(BlockState::Idle, BlockState::Damaged);
            } else {
                some = true;
            }
        }
        self.region().fence();
        some
    }

    /// Clears the marks of the dead records of a page, except tombstones: a record that a tombstone beats may
    /// lie here too, and its cleared mark may arrive last. Durable with the next fence.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_does_not_hold_back_its_own_tombstones() {
        let horizon = |holds: &[(u64, u64)]| Horizon::of(holds.iter().map(|(block, from)| (*from, *block)));
        assert_eq!(horizon(&[]).without(3), HOLDS_NONE);
        assert_eq!((horizon(&[(3, 70)]).without(3), horizon(&[(3, 70)]).without(4)), (HOLDS_NONE, 70));
        let some = horizon(&[(1, 50), (2, 30), (3, 40), (4, 30)]);
        assert_eq!([1, 2, 3, 4].map(|block| some.without(block)), [30; 4], "another one does as well");
        let some = horizon(&[(2, 60), (1, 50), (4, 55)]);
        assert_eq!([1, 2, 4].map(|block| some.without(block)), [55, 50, 50]);
    }
}
