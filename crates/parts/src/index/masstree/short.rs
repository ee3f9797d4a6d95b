//! Short suffixes: where those of up to eight bytes stand, beside the border nodes.
//!
//! Each border node has a row with a place for one short suffix a slot. The rows lie in chunks of as many as
//! the arena's chunks have nodes, so the number of a node leads to its row as it leads to the node. No word
//! of the node names the row, and a lookup asks for the lines of both at once. A chunk of rows is made when
//! one of its nodes needs it first. So keys of up to eight bytes pay nothing for it.
//!
//! A short suffix is written like a slice, before the permutation names its slot. It is read like a slice
//! too: as atomic words, which count only if the version of the node has not changed. So it is copied, and
//! never borrowed. The suffixes of a node that left the tree are overwritten when the node is used again.

use super::arena::{CHUNKS, Chunk, NUMBERS, Node, chunk_len, new_chunk, place};
use super::key::Short;
use super::permutation::SLOTS;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{SpinLock, point};
use quipu_medium::{LINE, arch};

/// Bits of a length.
const LENGTH_BITS: usize = 4;

/// The short suffixes of a border node.
#[repr(C, align(64))]
struct Row {
    words: [AtomicU64; SLOTS],
    /// Four bits for each slot.
    lengths: AtomicU64,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Row>() == 2 * LINE as usize);

// SAFETY: atomics are valid if all their bytes are zero, and need no drop.
unsafe impl Node for Row {
    #[cfg(loom)]
    fn new() -> Row {
        Row { words: Default::default(), lengths: AtomicU64::new(0) }
    }
}

impl Row {
    #[inline]
    fn get(&self, slot: usize) -> Short {
        let lengths = self.lengths.load(Ordering::Relaxed);
        let len = (lengths >> (LENGTH_BITS * slot)) as u8 & 15;
        Short::of_word(self.words[slot].load(Ordering::Relaxed), len)
    }

    fn set(&self, slot: usize, short: Short) {
        let at = LENGTH_BITS * slot;
        let others = self.lengths.load(Ordering::Relaxed) & !(15 << at);
        self.words[slot].store(short.word(), Ordering::Relaxed);
        point();
        self.lengths.store(others | u64::from(short.len()) << at, Ordering::Relaxed);
    }
}

/// The short suffixes of all border nodes.
pub(super) struct Area {
    /// Addresses of the first rows of the chunks; zero where there is none yet.
    chunks: [AtomicU64; CHUNKS],
    made: SpinLock<Vec<Chunk>>,
}

impl Area {
    pub(super) fn new() -> Area {
        Area { chunks: std::array::from_fn(|_| AtomicU64::new(0)), made: SpinLock::new(Vec::new()) }
    }

    /// The row of a node, if memory for it is there.
    #[inline]
    fn find(&self, number: u32) -> Option<&Row> {
        debug_assert!(number < NUMBERS, "the number of a node");
        let (chunk, at) = place(number);
        let first = self.chunks[chunk].load(Ordering::Acquire) as usize;
        if first == 0 {
            return None;
        }
        let first = std::ptr::with_exposed_provenance::<Row>(first);
        // SAFETY: `first` is the first row of this chunk, which `make` has made for `chunk_len(chunk)` rows;
        // `place` keeps `at` below that. All rows are valid from the start, and live as long as `self`.
        Some(unsafe { &*first.add(at) })
    }

    /// Makes the chunk in which the row of a node stands, unless it is there.
    #[cold]
    fn make(&self, number: u32) {
        let (chunk, _) = place(number);
        let mut made = self.made.lock();
        if self.chunks[chunk].load(Ordering::Relaxed) == 0 {
            let (first, memory) = new_chunk::<Row>(chunk_len(chunk));
            made.push(memory);
            self.chunks[chunk].store(first, Ordering::Release);
        }
    }

    /// Bytes of the chunks and of their list.
    pub(super) fn bytes(&self) -> u64 {
        let made = self.made.lock();
        let chunks: usize = made.iter().map(|chunk| chunk.bytes).sum();
        (chunks + made.capacity() * size_of::<Chunk>()) as u64
    }
}

/// The short suffixes of one border node.
#[derive(Clone, Copy)]
pub(super) struct Shorts<'n> {
    area: &'n Area,
    number: u32,
}

impl<'n> Shorts<'n> {
    /// Those of the node of this number.
    #[inline]
    pub(super) fn of(area: &'n Area, number: u32) -> Shorts<'n> {
        Shorts { area, number }
    }

    /// Asks for their lines.
    #[inline]
    pub(super) fn prefetch(self) {
        let Some(row) = self.area.find(self.number) else { return };
        let first = std::ptr::from_ref(row).cast::<u8>();
        arch::prefetch(first);
        arch::prefetch(first.wrapping_add(LINE as usize));
    }

    /// That of a slot. As for slices, it counts with the lock or the version.
    #[inline]
    pub(super) fn get(self, slot: usize) -> Short {
        self.area.find(self.number).map_or(Short::NONE, |row| row.get(slot))
    }

    /// Gives a slot its short suffix, before the permutation names the slot. The caller holds the lock, or is
    /// alone with the node.
    pub(super) fn set(self, slot: usize, short: Short) {
        loop {
            if let Some(row) = self.area.find(self.number) {
                return row.set(slot, short);
            }
            self.area.make(self.number);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn rows_are_made_when_they_are_needed_and_stand_alone() {
        let area = Area::new();
        let short = |number: u32, slot: usize| {
            let bytes = (u64::from(number) << 8 | slot as u64).to_be_bytes();
            Short::of(bytes.get(..1 + (number as usize + slot) % 8).unwrap_or_default())
                .unwrap_or(Short::NONE)
        };
        assert_eq!((Shorts::of(&area, 77).get(3), area.bytes()), (Short::NONE, 0));
        for slot in 0..SLOTS {
            (0..500).for_each(|number| Shorts::of(&area, number).set(slot, short(number, slot)));
        }
        for number in 0..500 {
            assert!((0..SLOTS).all(|slot| Shorts::of(&area, number).get(slot) == short(number, slot)));
        }
        assert!(area.bytes() < 500 * 128 * 5 / 4 + 8_000, "{} bytes", area.bytes());
    }
}
