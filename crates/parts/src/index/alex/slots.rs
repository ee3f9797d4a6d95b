//! The slots of a leaf: a gapped array of slices with their words.
//!
//! Each slot has a slice and a word. A gap has the word 0, and a slice that is above that of the slot in use
//! before it and not above that of the next one. So the slices never fall, and a search looks at nothing
//! else. Of slots with the same slice, the last one may have a word; of those with the highest, any.
//!
//! A word moves only by being taken out first, `swap(0)`, under the mark of a change. So a thread that has
//! no lock may change a word by comparing it: where the word is, its key is.

use super::leaf::Entry;
use super::memory::{Blocks, Memory};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::twin;
use quipu_medium::arch::prefetch;
use std::sync::Arc;

/// Slots of a block.
pub(super) const BLOCK: usize = if cfg!(loom) { 2 } else { 8 };

/// A line of slices, and the line of their words beside it.
#[repr(align(128))]
pub(super) struct Block {
    slices: [AtomicU64; BLOCK],
    words: [AtomicU64; BLOCK],
}

/// A word that was found, and its place.
#[derive(Clone, Copy)]
pub(super) struct Found<'g> {
    pub(super) word: u64,
    place: &'g AtomicU64,
}

impl<'g> Found<'g> {
    /// The word of a place.
    #[inline]
    pub(super) fn at(place: &'g AtomicU64) -> Found<'g> {
        Found { word: place.load(Ordering::Acquire), place }
    }

    /// Lets its key have another word if it still has this one. Needs no lock: where a word is, its key is,
    /// since words are only taken out to be moved, and none is used again while the guard is there.
    #[inline]
    pub(super) fn exchange(self, new: u64) -> bool {
        if twin!(WordNotCompared) {
            self.place.store(new, Ordering::Release);
            return true;
        }
        self.place.compare_exchange(self.word, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

impl Block {
    /// A block of gaps.
    pub(super) fn gaps() -> Block {
        Block {
            slices: std::array::from_fn(|_| AtomicU64::new(u64::MAX)),
            words: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

/// The slots of a leaf, and which of them are in use.
pub(super) struct Slots {
    blocks: Blocks,
    /// A bit for each slot in use, for the holder of the lock, and for walks past gaps.
    used: Box<[AtomicU64]>,
}

impl Slots {
    /// So many gaps: at least this many, in whole blocks.
    pub(super) fn new(slots: usize, memory: &Arc<Memory>) -> Slots {
        let blocks = Blocks::new(slots.div_ceil(BLOCK).max(1), memory);
        let used = (blocks.len() * BLOCK).div_ceil(64);
        Slots { blocks, used: (0..used).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Slots.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.blocks.len() * BLOCK
    }

    /// Whether they lie in the memory that leaves share.
    pub(super) fn are_shared(&self) -> bool {
        self.blocks.are_shared()
    }

    /// Bytes of DRAM that are the leaf's own.
    pub(super) fn bytes(&self) -> usize {
        self.blocks.bytes() + size_of_val::<[AtomicU64]>(&self.used)
    }

    #[inline]
    pub(super) fn slice(&self, at: usize) -> u64 {
        self.blocks[at / BLOCK].slices[at % BLOCK].load(Ordering::Relaxed)
    }

    /// The word of a slot, 0 for a gap.
    #[inline]
    pub(super) fn word(&self, at: usize) -> u64 {
        self.place(at).load(Ordering::Acquire)
    }

    /// The slice of a slot and its word, which stood beside each other at one moment, for a reader without
    /// the lock: another key may take the slot unmarked. `None` for a gap.
    #[inline]
    pub(super) fn both(&self, at: usize) -> Option<(u64, Found<'_>)> {
        self.both_around(at, || {})
    }

    /// The same, with something between the looks.
    #[inline(always)]
    fn both_around(&self, at: usize, mut between: impl FnMut()) -> Option<(u64, Found<'_>)> {
        let Block { slices, words } = &self.blocks[at / BLOCK];
        let mut found = Found::at(&words[at % BLOCK]);
        while found.word != 0 {
            between();
            // A slot gets another slice when its word has been taken out: whoever reads the slice finds that
            // at the next look. And a word that has left a slot does not come back to it under a guard.
            let slice = slices[at % BLOCK].load(Ordering::Acquire);
            let now = Found::at(found.place);
            if now.word == found.word || twin!(PairNotProved) {
                return Some((slice, found));
            }
            found = now;
        }
        None
    }

    #[inline]
    fn place(&self, at: usize) -> &AtomicU64 {
        &self.blocks[at / BLOCK].words[at % BLOCK]
    }

    /// Asks for the lines of a slot.
    #[inline]
    pub(super) fn prefetch(&self, at: usize) {
        let block = &self.blocks[at / BLOCK];
        prefetch(&raw const block.slices);
        prefetch(&raw const block.words);
    }

    /// Asks for the slices of the blocks before and behind that of a slot.
    #[inline]
    pub(super) fn prefetch_beside(&self, at: usize) {
        let block = at / BLOCK;
        prefetch(&raw const self.blocks[block.saturating_sub(1)].slices);
        prefetch(&raw const self.blocks[(block + 1).min(self.blocks.len() - 1)].slices);
    }

    /// Asks for the lines that a change of a slot needs besides its slice.
    #[inline]
    pub(super) fn prefetch_to_change(&self, at: usize) {
        prefetch(&raw const self.blocks[at / BLOCK].words);
        prefetch(&raw const self.used[at / 64]);
    }

    /// Slots of a block whose slices are not above this one, and all slots before the block. All of a block
    /// are compared, since a guess at the next branch fails often.
    #[inline]
    fn above_in(&self, block: usize, slice: u64) -> usize {
        let is_below = |other: &AtomicU64| usize::from(other.load(Ordering::Relaxed) <= slice);
        block * BLOCK + self.blocks[block].slices.iter().map(is_below).sum::<usize>()
    }

    /// The first slot whose slice is above this one, looked for from a guess on: in its block, then in blocks
    /// at growing distances, and then by halves. Tells the number of slots if there is none.
    #[inline]
    pub(super) fn above(&self, slice: u64, guess: usize) -> usize {
        let block = guess / BLOCK;
        let above = self.above_in(block, slice);
        let is_beyond = above == (block + 1) * BLOCK && above < self.len();
        if is_beyond || above == block * BLOCK && block > 0 {
            return self.above_from(slice, block, is_beyond);
        }
        above
    }

    /// The same, behind a block or before it.
    fn above_from(&self, slice: u64, block: usize, is_beyond: bool) -> usize {
        let begins_below = |block: usize| self.blocks[block].slices[0].load(Ordering::Relaxed) <= slice;
        // `low` begins below, if it is not the first; `high` does not, if it is not the end.
        let (mut low, mut high, mut step) = (block, block, 1);
        if is_beyond {
            high = self.blocks.len();
            while low + step < high {
                if !begins_below(low + step) {
                    high = low + step;
                    break;
                }
                low += step;
                step *= 2;
            }
        } else {
            low = 0;
            while step <= high {
                if begins_below(high - step) {
                    low = high - step;
                    break;
                }
                high -= step;
                step *= 2;
            }
        }
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if begins_below(middle) { low = middle } else { high = middle }
        }
        self.above_in(low, slice)
    }

    /// The slot in use that has this slice, whose place among the slices is known by
    /// [`above`](Slots::above).
    #[inline]
    pub(super) fn equal(&self, slice: u64, above: usize) -> Option<usize> {
        let last = above.checked_sub(1).filter(|last| self.slice(*last) == slice)?;
        if slice != u64::MAX {
            Some(last)
        } else {
            self.used_up_to(last).filter(|at| self.slice(*at) == slice)
        }
    }

    /// The word of a slot, with its place.
    #[inline]
    pub(super) fn found(&self, at: usize) -> Found<'_> {
        Found::at(self.place(at))
    }

    /// Takes the word out of a slot. The caller has marked a change.
    pub(super) fn take(&self, at: usize) -> u64 {
        if twin!(WordCopied) {
            return self.word(at);
        }
        self.place(at).swap(0, Ordering::AcqRel)
    }

    fn set_slice(&self, at: usize, slice: u64) {
        self.blocks[at / BLOCK].slices[at % BLOCK].store(slice, Ordering::Relaxed);
    }

    fn set_used(&self, at: usize, is_used: bool) {
        let (bits, bit) = (&self.used[at / 64], 1 << (at % 64));
        let now = bits.load(Ordering::Relaxed);
        bits.store(if is_used { now | bit } else { now & !bit }, Ordering::Relaxed);
    }

    /// Fills a gap. The caller holds the lock.
    #[inline]
    pub(super) fn fill(&self, at: usize, slice: u64, word: u64) {
        // A reader that finds the slice finds the mark of the thread that has moved another one from here.
        self.blocks[at / BLOCK].slices[at % BLOCK].store(slice, Ordering::Release);
        // A walk passes slots that are not in use. The thread that has found this word meets it there too.
        self.set_used(at, true);
        // A reader that finds the word finds its slice.
        self.place(at).store(word, Ordering::Release);
    }

    /// Fills gaps from `begin` on with entries in order, each in its place. Nobody else has the slots.
    pub(super) fn load<'e>(&self, begin: usize, entries: impl Iterator<Item = (&'e Entry, u32)>) {
        self.set_gaps(0..begin, 0);
        let (mut next, mut number, mut bits) = (begin, 0, 0u64);
        for ((slice, word), at) in entries {
            let at = at as usize;
            self.set_gaps(next..at + 1, *slice);
            self.place(at).store(*word, Ordering::Relaxed);
            if at / 64 != number {
                self.used[number].store(bits, Ordering::Relaxed);
                (number, bits) = (at / 64, 0);
            }
            bits |= 1 << (at % 64);
            next = at + 1;
        }
        self.used[number].store(bits, Ordering::Relaxed);
    }

    /// Gives gaps before a slot its slice. The caller has marked a change, if there are any.
    pub(super) fn set_gaps(&self, gaps: std::ops::Range<usize>, slice: u64) {
        gaps.for_each(|at| self.set_slice(at, slice));
    }

    /// Makes a slot a gap, whose word has been taken out. It keeps its slice.
    pub(super) fn clear(&self, at: usize) {
        self.set_used(at, false);
    }

    /// Moves the slots from `from` to `gap`, a gap, one step towards it. The caller has marked a change.
    pub(super) fn shift(&self, from: usize, gap: usize) {
        let step = |to: usize, at: usize| {
            let word = self.take(at);
            self.set_slice(to, self.slice(at));
            self.place(to).store(word, Ordering::Release);
        };
        if from < gap {
            (from..gap).rev().for_each(|at| step(at + 1, at));
        } else {
            (gap + 1..=from).for_each(|at| step(at - 1, at));
        }
        self.set_used(gap, true);
        self.set_used(from, false);
    }

    #[inline]
    pub(super) fn is_used(&self, at: usize) -> bool {
        self.used[at / 64].load(Ordering::Relaxed) >> (at % 64) & 1 != 0
    }

    /// The first slot in use from this one on.
    pub(super) fn used_from(&self, at: usize) -> Option<usize> {
        self.find_from(at, 0)
    }

    /// The first gap from this slot on.
    pub(super) fn gap_from(&self, at: usize) -> Option<usize> {
        self.find_from(at, u64::MAX)
    }

    /// The last slot in use up to this one.
    pub(super) fn used_up_to(&self, at: usize) -> Option<usize> {
        self.find_up_to(at, 0)
    }

    /// The last gap up to this slot.
    pub(super) fn gap_up_to(&self, at: usize) -> Option<usize> {
        self.find_up_to(at, u64::MAX)
    }

    /// The first bit from this one on that is set after an exclusive or with `flip`.
    #[inline]
    fn find_from(&self, at: usize, flip: u64) -> Option<usize> {
        let mut mask = u64::MAX << (at % 64);
        for number in at / 64..self.used.len() {
            let bits = (self.used[number].load(Ordering::Relaxed) ^ flip) & mask;
            if bits != 0 {
                return Some(number * 64 + bits.trailing_zeros() as usize).filter(|at| *at < self.len());
            }
            mask = u64::MAX;
        }
        None
    }

    /// The last bit up to this one that is set after an exclusive or with `flip`.
    #[inline]
    fn find_up_to(&self, at: usize, flip: u64) -> Option<usize> {
        let mut mask = u64::MAX >> (63 - at % 64);
        for number in (0..=at / 64).rev() {
            let bits = (self.used[number].load(Ordering::Relaxed) ^ flip) & mask;
            if bits != 0 {
                return Some(number * 64 + 63 - bits.leading_zeros() as usize);
            }
            mask = u64::MAX;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::twin::{Twin, leave_out};

    /// The answer about a slot that another key takes behind the first look.
    fn told_beside_another_key() -> Option<(u64, u64)> {
        let slots = Slots::new(BLOCK, &Arc::new(Memory::default()));
        slots.fill(1, 200, 1);
        let mut is_taken = false;
        let both = slots.both_around(1, || {
            if !std::mem::replace(&mut is_taken, true) {
                assert!(slots.found(1).exchange(0));
                slots.clear(1);
                slots.fill(1, 150, 2);
            }
        });
        both.map(|(slice, found)| (slice, found.word))
    }

    #[test]
    fn a_slice_is_told_with_its_own_word() {
        assert_eq!(told_beside_another_key(), Some((150, 2)));
        let _left_out = leave_out(Some(Twin::PairNotProved));
        assert_eq!(told_beside_another_key(), Some((150, 1)));
    }
}
