//! Where keys go when neither their buckets nor a split can take them.
//!
//! A hash cannot tell more than sixteen keys of one hash apart, and an attacker that knows the hash function
//! can aim any number at one bucket. Such keys stand in a chain of blocks at their segment, with their full
//! hashes, so that a search compares references only of real collisions. Blocks are never unlinked while the
//! index lives: readers walk the chain without a lock.

use super::segment::Meta;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

const ENTRIES_PER_BLOCK: usize = 31;

/// A key in the chain. The hash is stored before the reference and read after it.
#[derive(Default)]
pub(super) struct OverflowEntry {
    reference: AtomicU64,
    hash: AtomicU64,
}

/// A piece of a segment's chain.
#[derive(Default)]
pub(super) struct OverflowBlock {
    next: AtomicPtr<OverflowBlock>,
    entries: [OverflowEntry; ENTRIES_PER_BLOCK],
}

impl OverflowEntry {
    /// Hash and reference, or nothing if the entry is free.
    #[inline]
    pub(super) fn load(&self) -> Option<(u64, u64)> {
        let reference = self.reference.load(Ordering::Acquire);
        (reference != 0).then(|| (self.hash.load(Ordering::Relaxed), reference))
    }

    /// Names another reference of the same key.
    pub(super) fn replace(&self, reference: u64) {
        self.reference.store(reference, Ordering::Release);
    }

    /// Frees the entry.
    pub(super) fn clear(&self) {
        self.reference.store(0, Ordering::Release);
    }
}

impl Meta {
    /// All entries of the chain, free ones included.
    pub(super) fn overflow_entries(&self) -> impl Iterator<Item = &OverflowEntry> {
        let first = self.overflow.load(Ordering::Acquire);
        // SAFETY: blocks are published whole and live as long as the index that this metadata belongs to.
        let blocks = std::iter::successors(unsafe { first.as_ref() }, |block| {
            // SAFETY: as above.
            unsafe { block.next.load(Ordering::Acquire).as_ref() }
        });
        blocks.flat_map(|block| block.entries.iter())
    }

    /// Hash and reference of the keys in the chain.
    pub(super) fn overflowing(&self) -> impl Iterator<Item = (u64, u64)> {
        self.overflow_entries().filter_map(OverflowEntry::load)
    }

    /// Adds a key. The caller holds the segment's lock, or alone knows the segment.
    pub(super) fn push_overflow(&self, hash: u64, reference: u64) {
        if let Some(free) = self.overflow_entries().find(|entry| entry.load().is_none()) {
            free.hash.store(hash, Ordering::Relaxed);
            free.reference.store(reference, Ordering::Release);
            return;
        }
        let block = Box::<OverflowBlock>::default();
        block.entries[0].hash.store(hash, Ordering::Relaxed);
        block.entries[0].reference.store(reference, Ordering::Relaxed);
        block.next.store(self.overflow.load(Ordering::Relaxed), Ordering::Relaxed);
        self.overflow.store(Box::into_raw(block), Ordering::Release);
    }

    /// Bytes of the chain.
    pub(super) fn overflow_bytes(&self) -> u64 {
        let blocks = self.overflow_entries().count() / ENTRIES_PER_BLOCK;
        (blocks * size_of::<OverflowBlock>()) as u64
    }

    /// Frees the chain, when nobody else can reach this metadata any more.
    pub(super) fn free_overflow(&mut self) {
        let mut next = std::mem::take(self.overflow.get_mut());
        while !next.is_null() {
            // SAFETY: made by `Box::into_raw` in `push_overflow`; `&mut self` proves that no reader is left.
            let mut block = unsafe { Box::from_raw(next) };
            next = std::mem::take(block.next.get_mut());
        }
    }
}
