//! The locks of the segments, in DRAM wherever the segments are.
//!
//! A lock that lay in the segment would be one more line to write in PM, and would have to be undone after a
//! crash. These are striped over the places of the segments, and so many that two busy segments rarely share
//! one. The holder of one takes no second one.

use crate::sync::{SpinGuard, SpinLock};
use quipu_medium::arch::prefetch_to_write;

const STRIPES_LOG2: u32 = 10;

/// One lock, on a line of its own, and the keys that were added under it less those removed.
#[derive(Default)]
#[repr(align(64))]
struct Stripe(SpinLock<i64>);

pub(super) struct Locks(Box<[Stripe]>);

impl Locks {
    pub(super) fn new() -> Locks {
        Locks((0..1 << STRIPES_LOG2).map(|_| Stripe::default()).collect())
    }

    #[inline]
    fn of(&self, segment: u64) -> &SpinLock<i64> {
        let number = segment.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - STRIPES_LOG2);
        &self.0[number as usize].0
    }

    #[inline]
    pub(super) fn prefetch(&self, segment: u64) {
        prefetch_to_write(std::ptr::from_ref(self.of(segment)));
    }

    #[inline]
    pub(super) fn lock(&self, segment: u64) -> SpinGuard<'_, i64> {
        self.of(segment).lock()
    }

    #[inline]
    pub(super) fn try_lock(&self, segment: u64) -> Option<SpinGuard<'_, i64>> {
        self.of(segment).try_lock()
    }

    /// Keys added less keys removed, over all segments.
    pub(super) fn keys(&self) -> i64 {
        self.0.iter().map(|stripe| *stripe.0.lock()).sum()
    }

    pub(super) fn bytes(&self) -> u64 {
        size_of_val::<[Stripe]>(&self.0) as u64
    }
}
