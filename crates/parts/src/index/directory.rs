//! The directory of extendible hashing: from the top bits of a hash to its segment.
//!
//! An entry is one word: where the segment is, and in the low six bits a number that the index needs as soon
//! as it knows the segment. These bits are free, because segments are aligned to lines. The current array is
//! named the same way, with the shift in the low bits. So a lookup makes two loads here, and the first is
//! always in the nearest cache.
//!
//! Entries and the array change under the directory's lock, which is taken after a segment's lock.

use crate::sync::{SpinLock, point};
use quipu_medium::LINE;
use std::sync::atomic::{AtomicU64, Ordering};

const ENTRIES_PER_LINE: usize = 8;
const SHIFT_MASK: u64 = 63;
const NUMBER_MASK: u64 = LINE - 1;

/// Aligns the arrays to lines, which frees the low bits of their addresses.
#[repr(C, align(64))]
struct Line([AtomicU64; ENTRIES_PER_LINE]);

/// All arrays there were, the current one last. They only add up to twice the current one.
type Arrays = Vec<Box<[Line]>>;

/// A directory entry: where a segment is, and the number of the index, below 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryWord(u64);

impl EntryWord {
    pub(super) fn new(place: u64, number: u32) -> EntryWord {
        debug_assert!(place & NUMBER_MASK == 0 && u64::from(number) <= NUMBER_MASK);
        EntryWord(place | u64::from(number))
    }

    /// The segment's first byte: an address, or an offset in a region.
    #[inline]
    pub(super) fn place(self) -> u64 {
        self.0 & !NUMBER_MASK
    }

    /// The number that the index has noted for the segment.
    #[inline]
    pub(super) fn number(self) -> u32 {
        (self.0 & NUMBER_MASK) as u32
    }
}

/// From hashes to segments.
pub(super) struct Directory {
    /// Address of the current array of entries, with 63 - depth in the low bits.
    current: AtomicU64,
    arrays: SpinLock<Arrays>,
}

fn new_array(depth: u32, entry: impl Fn(usize) -> u64) -> Box<[Line]> {
    let lines = (1usize << depth).div_ceil(ENTRIES_PER_LINE);
    let line = |line| Line(std::array::from_fn(|i| AtomicU64::new(entry(line * ENTRIES_PER_LINE + i))));
    (0..lines).map(line).collect()
}

fn name(array: &[Line], depth: u32) -> u64 {
    array.as_ptr().expose_provenance() as u64 | u64::from(63 - depth)
}

impl Directory {
    /// A directory of these segments, each with its depth, in the order of their hashes.
    ///
    /// # Panics
    /// If they do not divide all hashes among them.
    pub(super) fn new(segments: impl Iterator<Item = (EntryWord, u32)> + Clone) -> Directory {
        let depth = segments.clone().map(|(_, depth)| depth).max().unwrap_or_default();
        let mut entries = Vec::with_capacity(1 << depth);
        for (entry, of_segment) in segments {
            entries.resize(entries.len() + (1 << (depth - of_segment)), entry.0);
        }
        assert_eq!(entries.len(), 1 << depth, "the segments divide all hashes among them");
        // A line may have room for more entries than there are; no hash leads to those.
        let array = new_array(depth, |i| entries[i % entries.len()]);
        Directory { current: AtomicU64::new(name(&array, depth)), arrays: SpinLock::new(vec![array]) }
    }

    /// The entry that covers `hash`.
    #[inline]
    pub(super) fn entry(&self, hash: u64) -> EntryWord {
        let current = self.current.load(Ordering::Acquire);
        let index = (hash >> 1) >> (current & SHIFT_MASK);
        let array = std::ptr::with_exposed_provenance::<AtomicU64>((current & !SHIFT_MASK) as usize);
        // SAFETY: the array has 1 << depth entries and `index` has depth bits; arrays live as long as `self`.
        EntryWord(unsafe { &*array.add(index as usize) }.load(Ordering::Acquire))
    }

    /// Hash bits that the directory distinguishes.
    pub(super) fn depth(&self) -> u32 {
        63 - (self.current.load(Ordering::Relaxed) & SHIFT_MASK) as u32
    }

    /// Bytes of all arrays.
    pub(super) fn bytes(&self) -> u64 {
        self.arrays.lock().iter().map(|array| size_of_val::<[Line]>(array) as u64).sum()
    }

    /// Publishes a split: of the hashes that share the upper `depth` bits of `hash`, those whose next bit is
    /// clear go to `low` from now on and the others to `high`. The caller holds the lock of the segment that
    /// had both.
    pub(super) fn publish_split(&self, hash: u64, depth: u32, low: EntryWord, high: EntryWord) {
        let mut arrays = self.arrays.lock();
        let mut directory_depth = self.depth();
        if directory_depth == depth {
            let array = {
                let old = arrays.last().expect("a directory has an array");
                let entry = |i: usize| {
                    let line = old.get(i / 2 / ENTRIES_PER_LINE)?;
                    Some(line.0[i / 2 % ENTRIES_PER_LINE].load(Ordering::Relaxed))
                };
                new_array(depth + 1, |i| entry(i).unwrap_or_default())
            };
            directory_depth += 1;
            let current = name(&array, directory_depth);
            arrays.push(array);
            point();
            self.current.store(current, Ordering::Release);
        }
        let array = arrays.last().expect("a directory has an array");
        let half = 1usize << (directory_depth - depth - 1);
        let first = (prefix(hash, depth) as usize) << (directory_depth - depth);
        for i in first..first + 2 * half {
            let entry = if i < first + half { low } else { high };
            array[i / ENTRIES_PER_LINE].0[i % ENTRIES_PER_LINE].store(entry.0, Ordering::Release);
        }
    }
}

/// The bits of `hash` above the lowest `64 - depth`, for any depth from 0 to 63.
#[inline]
pub(super) fn prefix(hash: u64, depth: u32) -> u64 {
    (hash >> 1) >> (63 - depth)
}

/// Bit `depth` of a hash, counted from the top: the one that a split of that depth consumes.
#[inline]
pub(super) fn split_bit(hash: u64, depth: u32) -> bool {
    (hash >> (63 - depth)) & 1 != 0
}

/// The lowest hash behind the segment of this depth that begins with `start`; `None` behind the last.
pub(super) fn following(start: u64, depth: u32) -> Option<u64> {
    if depth == 0 { None } else { start.checked_add(1 << (64 - depth)) }
}

/// A segment may be this much deeper than even hashes would make it, ...
const DEPTH_SLACK: u32 = 8;
/// ... and in a small index at least this deep, ...
const DEPTH_FLOOR: u32 = 16;
/// ... but never deeper than this, so that a hash has bits left to tell the keys of a segment apart.
pub(super) const DEPTH_MAX: u32 = 40;

/// Depth that no segment of an index of so many passes. Where equal prefixes have made a segment far deeper
/// than the others, depth does not help much, and each further split could double the directory.
pub(super) fn deepest(segments: u64) -> u32 {
    (segments.max(1).ilog2() + DEPTH_SLACK).clamp(DEPTH_FLOOR, DEPTH_MAX)
}
