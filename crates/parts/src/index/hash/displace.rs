//! Making room in full buckets.
//!
//! A breadth-first search from the two full buckets over the other buckets of the words in them finds a
//! shortest chain of moves that ends in an empty slot. It visits each bucket at most once and gives up after
//! a few dozen, which at eight slots and two choices is above nine tenths of all slots. Each move copies a
//! word to its other bucket before its old slot is overwritten, so a word is never missing.

use super::probe::SLOTS;
use super::segment::Segment;
use super::settings::BUCKET_BITS_MAX;
use super::slot::{distance, tag_of_word};
use crate::sync::point;
use quipu_medium::arch::prefetch;
use std::sync::atomic::Ordering;

/// Buckets that a search looks into. More would fill segments by a hundredth more, for twice the work.
const REACH: usize = 48;
/// Words of a bit set over the buckets of a segment.
const SEEN_WORDS: usize = (1usize << BUCKET_BITS_MAX).div_ceil(64);

/// A bucket that the search reached, and from where.
#[derive(Clone, Copy, Default)]
struct Step {
    bucket: u16,
    /// The earlier step whose bucket has a word that could move here; a root names itself.
    parent: u16,
    /// The slot of that word.
    slot: u8,
}

/// The buckets reached so far, in the order in which they are looked at.
struct Search {
    steps: [Step; REACH],
    len: usize,
    seen: [u64; SEEN_WORDS],
}

impl Search {
    /// Appends a bucket unless it was reached before.
    fn reach(&mut self, bucket: usize, parent: usize, slot: usize) {
        let (word, bit) = (bucket / 64, 1 << (bucket % 64));
        if self.seen[word] & bit == 0 && self.len < REACH {
            self.seen[word] |= bit;
            self.steps[self.len] = Step { bucket: bucket as u16, parent: parent as u16, slot: slot as u8 };
            self.len += 1;
        }
    }
}

impl Segment<'_> {
    /// Empties a slot of one of two full buckets by moving words to their other buckets, and returns the
    /// slot. A moved word stands in its new place before its old place changes.
    #[inline(never)]
    pub(super) fn make_room(&self, roots: [usize; 2]) -> Option<(usize, usize)> {
        let mut search = Search { steps: [Step::default(); REACH], len: 0, seen: [0; SEEN_WORDS] };
        for root in roots {
            let itself = search.len;
            search.reach(root, itself, 0);
        }
        let mut looked_at = 0;
        while looked_at < search.len {
            let bucket = search.steps[looked_at].bucket as usize;
            // The other buckets are likely not in the cache: their misses overlap.
            let others: [usize; SLOTS] = std::array::from_fn(|slot| {
                bucket ^ distance(tag_of_word(self.buckets[bucket].load(slot)), self.bucket_mask())
            });
            for other in others {
                prefetch(&raw const self.buckets[other]);
            }
            for (slot, other) in others.into_iter().enumerate() {
                if let Some(free) = self.buckets[other].empty_slots().first() {
                    return Some(self.shift(&search, looked_at, slot, (other, free)));
                }
                search.reach(other, looked_at, slot);
            }
            looked_at += 1;
        }
        None
    }

    /// Carries out the moves of a chain, from its empty end back to a root.
    fn shift(&self, search: &Search, mut step: usize, slot: usize, free: (usize, usize)) -> (usize, usize) {
        let _moving = self.meta.moving();
        let mut target = free;
        let mut source = (search.steps[step].bucket as usize, slot);
        let mut moved = 0;
        loop {
            let word = self.buckets[source.0].load(source.1);
            self.buckets[target.0].slots[target.1].store(word, Ordering::Release);
            moved += 1;
            point();
            target = source;
            let Step { parent, slot, .. } = search.steps[step];
            if parent as usize == step {
                break;
            }
            step = parent as usize;
            source = (search.steps[step].bucket as usize, slot as usize);
        }
        self.meta.count_displacements(moved);
        // Clearing the last source here keeps the rule that words move only while the version is odd.
        self.buckets[target.0].slots[target.1].store(super::slot::EMPTY, Ordering::Release);
        target
    }
}
