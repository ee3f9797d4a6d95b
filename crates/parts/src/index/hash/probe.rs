//! A bucket, and finding the slots of it that carry a tag.
//!
//! Lookups are independent of each other, so the processor overlaps the cache misses of several, as long as
//! it predicts the way past each. Comparing slot by slot ends in a branch that depends on memory and goes
//! either way. All eight comparisons at once give a mask, and "one match" is a branch that nearly always goes
//! the same way.

use super::slot::EMPTY;
use crate::index::eight;
use std::sync::atomic::{AtomicU64, Ordering};

/// Slots of a bucket.
pub(super) const SLOTS: usize = 8;

/// One cache line of slots.
#[repr(C, align(64))]
pub(super) struct Bucket {
    pub(super) slots: [AtomicU64; SLOTS],
}

impl Bucket {
    /// The word in a slot.
    #[inline]
    pub(super) fn load(&self, slot: usize) -> u64 {
        self.slots[slot].load(Ordering::Acquire)
    }

    /// The slots without an entry.
    #[inline]
    pub(super) fn empty_slots(&self) -> EmptySlots {
        EmptySlots(mask_of_empty(self))
    }

    /// The nonempty words with this tag and their slots; each is loaded again, and may have another tag by
    /// then.
    #[inline]
    pub(super) fn words_with_tag(&self, tag: u64) -> WordsWithTag<'_> {
        WordsWithTag { bucket: self, mask: slots_with_tag(self, tag) }
    }
}

/// Slots of a bucket that are free, at the time they were looked at.
#[derive(Clone, Copy)]
pub(super) struct EmptySlots(u32);

impl EmptySlots {
    /// How many.
    #[inline]
    pub(super) fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// One of them.
    #[inline]
    pub(super) fn first(self) -> Option<usize> {
        (self.0 != 0).then(|| (self.0.trailing_zeros() / 2) as usize)
    }
}

/// See [`Bucket::words_with_tag`].
pub(super) struct WordsWithTag<'a> {
    bucket: &'a Bucket,
    mask: u32,
}

impl<'a> Iterator for WordsWithTag<'a> {
    type Item = (&'a AtomicU64, u64);

    #[inline]
    fn next(&mut self) -> Option<(&'a AtomicU64, u64)> {
        while self.mask != 0 {
            let slot = (self.mask.trailing_zeros() / BITS_PER_SLOT) as usize % SLOTS;
            self.mask &= self.mask - 1;
            let word = self.bucket.load(slot);
            if word != EMPTY {
                return Some((&self.bucket.slots[slot], word));
            }
        }
        None
    }
}

/// Bits of the mask that belong to one slot; only the higher of them is ever set.
const BITS_PER_SLOT: u32 = 2;

/// The mask of slots whose word has this tag.
#[cfg(target_arch = "x86_64")]
#[inline]
fn slots_with_tag(bucket: &Bucket, tag: u64) -> u32 {
    use std::arch::x86_64::{
        _mm_cmpeq_epi16, _mm_movemask_epi8, _mm_packs_epi16, _mm_packs_epi32, _mm_set1_epi16,
    };
    const HIGHER: u32 = 0xAAAA;
    // SAFETY: a bucket is eight words, aligned to their line.
    let [a, b, c, d] = unsafe { eight::load(bucket.slots.as_ptr().cast()) };
    // SAFETY: every x86-64 processor has SSE2, and these are computations on registers.
    unsafe {
        // A tag is the highest quarter of its word. Packing keeps the highest bit of each half.
        let tag = _mm_set1_epi16(tag as i16);
        let low = _mm_packs_epi32(_mm_cmpeq_epi16(a, tag), _mm_cmpeq_epi16(b, tag));
        let high = _mm_packs_epi32(_mm_cmpeq_epi16(c, tag), _mm_cmpeq_epi16(d, tag));
        _mm_movemask_epi8(_mm_packs_epi16(low, high)) as u32 & HIGHER
    }
}

/// The mask of empty slots, two bits to a slot of which the lower is set.
#[cfg(target_arch = "x86_64")]
#[inline]
fn mask_of_empty(bucket: &Bucket) -> u32 {
    // SAFETY: as in `slots_with_tag`.
    eight::equal(unsafe { eight::load(bucket.slots.as_ptr().cast()) }, EMPTY)
}

/// The mask of slots whose word has this tag.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn slots_with_tag(bucket: &Bucket, tag: u64) -> u32 {
    mask_by_slot(bucket, tag)
}

/// The mask, slot by slot, as every processor can compute it.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn mask_by_slot(bucket: &Bucket, tag: u64) -> u32 {
    (0..SLOTS).fold(0, |mask, slot| {
        let equal = super::slot::tag_of_word(bucket.slots[slot].load(Ordering::Relaxed)) == tag;
        mask | u32::from(equal) << (BITS_PER_SLOT * slot as u32 + BITS_PER_SLOT - 1)
    })
}

/// The mask of empty slots, two bits to a slot of which the lower is set.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn mask_of_empty(bucket: &Bucket) -> u32 {
    eight::equal_by_word((0..SLOTS).map(|slot| bucket.load(slot)), EMPTY)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The comparison sees all of the tag and nothing of the reference.
    #[test]
    fn both_masks_agree() {
        let tags = [0, 1, 0x7FFF, 0x8000, 0xFFFF, 0x00FF, 0xFF00];
        let mut state = 1u64;
        for _ in 0..2_000 {
            let slots = std::array::from_fn(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let tag = tags[(state >> 33) as usize % tags.len()];
                let low = tags[(state >> 43) as usize % tags.len()];
                AtomicU64::new(tag << 48 | low << (16 * ((state >> 53) % 3)))
            });
            let bucket = Bucket { slots };
            for tag in tags {
                assert_eq!(slots_with_tag(&bucket, tag), mask_by_slot(&bucket, tag));
            }
        }
    }
}
