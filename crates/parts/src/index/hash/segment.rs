//! A segment: its buckets, its lock, and the version that tells readers when words move.

use super::overflow::OverflowBlock;
use super::probe::{Bucket, SLOTS};
use super::slot::{EMPTY, distance, reference_of, tag_of_hash, word_of};
use crate::sync::{SpinLock, Waiter};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};

/// All of a segment except its slots.
#[repr(C, align(64))]
pub(super) struct Meta {
    /// Odd while words move within or out of the segment.
    version: AtomicU64,
    /// First block of the overflow chain, or null.
    pub(super) overflow: AtomicPtr<OverflowBlock>,
    /// Keys in buckets and overflow; changed under the lock.
    keys: AtomicU32,
    /// Words displaced so far; changed under the lock.
    displacements: AtomicU32,
    /// The lock of all writers of this segment.
    pub(super) state: SpinLock<State>,
}

/// The part of a segment that only writers look at.
pub(super) struct State {
    /// Hash bits that all keys of the segment share.
    pub(super) depth: u32,
    /// Keys in the overflow chain.
    pub(super) overflowing: u32,
}

impl Meta {
    pub(super) fn new(depth: u32) -> Meta {
        Meta {
            version: AtomicU64::new(0),
            overflow: AtomicPtr::default(),
            keys: AtomicU32::new(0),
            displacements: AtomicU32::new(0),
            state: SpinLock::new(State { depth, overflowing: 0 }),
        }
    }

    pub(super) fn keys(&self) -> u32 {
        self.keys.load(Ordering::Relaxed)
    }

    /// The holder of the lock changes the number of keys.
    pub(super) fn set_keys(&self, keys: u32) {
        self.keys.store(keys, Ordering::Relaxed);
    }

    pub(super) fn displacements(&self) -> u32 {
        self.displacements.load(Ordering::Relaxed)
    }

    pub(super) fn count_displacements(&self, moved: u32) {
        self.displacements.store(self.displacements().wrapping_add(moved), Ordering::Relaxed);
    }

    /// The version, once no words move.
    #[inline]
    pub(super) fn settled_version(&self) -> u64 {
        let mut waiter = Waiter::default();
        loop {
            let version = self.version.load(Ordering::Acquire);
            if version.is_multiple_of(2) {
                return version;
            }
            waiter.wait();
        }
    }

    /// Whether no word has moved since [`Self::settled_version`] returned `version`; for all loads before.
    #[inline]
    pub(super) fn is_still(&self, version: u64) -> bool {
        fence(Ordering::Acquire);
        self.version.load(Ordering::Relaxed) == version
    }

    /// Announces that words move until the result drops. The caller holds the lock, or is alone. It nests.
    pub(super) fn moving(&self) -> Moving<'_> {
        let version = self.version.load(Ordering::Relaxed);
        let outermost = version.is_multiple_of(2);
        if outermost {
            self.version.store(version + 1, Ordering::Relaxed);
            // A thread that sees a word move also sees that the version is odd.
            fence(Ordering::Release);
        }
        Moving { meta: self, outermost }
    }
}

/// Words of a segment move while this exists.
pub(super) struct Moving<'a> {
    meta: &'a Meta,
    outermost: bool,
}

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        if self.outermost {
            let version = self.meta.version.load(Ordering::Relaxed);
            self.meta.version.store(version + 1, Ordering::Release);
        }
    }
}

/// A segment as a directory entry shows it. To store, hold the lock, or have the segment unpublished.
#[derive(Clone, Copy)]
pub(super) struct Segment<'a> {
    pub(super) buckets: &'a [Bucket],
    pub(super) meta: &'a Meta,
    pub(super) base: u32,
}

impl<'a> Segment<'a> {
    /// The tag of a hash here, and its two buckets.
    #[inline]
    pub(super) fn places(&self, hash: u64) -> (u64, [usize; 2]) {
        places(hash, self.base, self.bucket_mask())
    }

    #[inline]
    pub(super) fn bucket_mask(&self) -> usize {
        self.buckets.len() - 1
    }

    pub(super) fn slot_count(&self) -> usize {
        self.buckets.len() * SLOTS
    }

    /// The references in the buckets. The caller holds the lock.
    pub(super) fn references_in_buckets(&self) -> impl Iterator<Item = u64> {
        let words = self.buckets.iter().flat_map(|bucket| (0..SLOTS).map(|slot| bucket.load(slot)));
        words.filter(|word| *word != EMPTY).map(reference_of)
    }

    /// Puts a key into the emptier of its two buckets, if need be by moving others; says whether it could.
    ///
    /// Both fill evenly, so hardly any bucket is full before nearly all are, and moving is rare.
    pub(super) fn place(&self, hash: u64, reference: u64) -> bool {
        let (tag, [one, other]) = self.places(hash);
        let [empty, empty_in_other] = [one, other].map(|bucket| self.buckets[bucket].empty_slots());
        let (chosen, empty) =
            if empty.count() >= empty_in_other.count() { (one, empty) } else { (other, empty_in_other) };
        let free = match empty.first() {
            Some(slot) => Some((chosen, slot)),
            None => self.make_room([one, other]),
        };
        match free {
            Some((bucket, slot)) => {
                self.buckets[bucket].slots[slot].store(word_of(tag, reference), Ordering::Release);
                true
            }
            None => false,
        }
    }
}

/// The tag of a hash and its two buckets.
#[inline]
pub(super) fn places(hash: u64, base: u32, bucket_mask: usize) -> (u64, [usize; 2]) {
    let tag = tag_of_hash(hash, base);
    let one = hash as usize & bucket_mask;
    (tag, [one, one ^ distance(tag, bucket_mask)])
}
