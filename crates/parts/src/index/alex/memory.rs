//! Where large leaves have their slots: side by side on large pages, which save most of the translations of
//! addresses that a lookup waits for.
//!
//! An allocator of the library `rlsf` divides chunks among them in constant time and joins what comes back.
//! Chunks go together, when none of them has an array and the index is small. Arrays of small leaves, and
//! all of a small index, come from the system's allocator, so a small index pays for no chunk that is mostly
//! empty.

use super::leaf::MOST_SLOTS;
use super::slots::{BLOCK, Block as SlotBlock};
use crate::index::block::{Block, LARGE_PAGE};
use crate::sync::SpinLock;
use crate::sync::atomic::{AtomicU64, Ordering};
use std::alloc::Layout;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

/// Bytes of the smallest array that lies on large pages.
const LARGE: usize = 16 << 10;
/// An index has so many bytes of arrays before it takes chunks.
const MUCH: u64 = 64 << 20;
/// Bytes of a chunk: a multiple of the largest leaf's with its note, and an end.
const CHUNK: usize = 2 * LARGE_PAGE + 4096;
#[cfg(not(loom))]
const _: () = assert!(
    (2 * LARGE_PAGE).is_multiple_of(MOST_SLOTS / BLOCK * size_of::<SlotBlock>() + NOTE),
    "chunks are filled by the largest leaves"
);

/// Free memory by size: powers of two from 32 bytes to 32 megabytes, in 32 steps each.
type Free = rlsf::Tlsf<'static, u32, u32, 20, { 1 << STEPS_LOG2 }>;
const STEPS_LOG2: u32 = 5;
/// Bytes before an array for the allocator's note; arrays begin at multiples of it.
const NOTE: usize = align_of::<SlotBlock>();

/// The memory of the large leaves of an index.
#[derive(Default)]
pub(super) struct Memory {
    shared: SpinLock<Shared>,
    /// Bytes of all arrays, of whatever memory.
    used: AtomicU64,
    /// All arrays lie in chunks.
    is_eager: bool,
}

#[derive(Default)]
struct Shared {
    free: Free,
    chunks: Vec<Block>,
    /// Arrays in them.
    arrays: usize,
}

impl Memory {
    /// Memory that has all arrays in chunks, for tests.
    pub(super) fn eager() -> Memory {
        Memory { is_eager: true, ..Memory::default() }
    }

    /// Bytes of DRAM: of all chunks, and its own behind an `Arc`.
    pub(super) fn bytes(&self) -> usize {
        let chunks = &self.shared.lock().chunks;
        2 * size_of::<usize>()
            + size_of::<Memory>()
            + chunks.len() * CHUNK
            + chunks.capacity() * size_of::<Block>()
    }

    fn allocate(&self, layout: Layout) -> NonNull<u8> {
        loop {
            {
                let mut shared = self.shared.lock();
                if let Some(memory) = shared.free.allocate(layout) {
                    shared.arrays += 1;
                    return memory;
                }
            }
            // Made without the lock, and touched: the system clears its pages meanwhile.
            let chunk = Block::new(CHUNK, LARGE_PAGE);
            for at in (0..CHUNK).step_by(LARGE_PAGE) {
                // SAFETY: a byte of the chunk, which nobody else knows of.
                unsafe { chunk.base().add(at).write(0) };
            }
            let mut shared = self.shared.lock();
            let memory = NonNull::slice_from_raw_parts(chunk.base(), CHUNK);
            // SAFETY: the chunk is new, and is only dropped behind the lists, when no array is in it.
            let added = unsafe { shared.free.insert_free_block_ptr(memory) };
            debug_assert!(added.is_some(), "a chunk is more than its notes");
            shared.chunks.push(chunk);
        }
    }
}

/// Blocks of slots.
pub(super) struct Blocks {
    first: NonNull<SlotBlock>,
    count: usize,
    memory: Arc<Memory>,
    /// Whether they lie in a chunk.
    are_shared: bool,
}

// SAFETY: it owns its blocks, as a box does, which all threads may share.
unsafe impl Send for Blocks {}
// SAFETY: as above.
unsafe impl Sync for Blocks {}

impl Blocks {
    /// So many blocks of gaps, or some more.
    pub(super) fn new(count: usize, memory: &Arc<Memory>) -> Blocks {
        let bytes = count * size_of::<SlotBlock>();
        let is_much = memory.used.load(Ordering::Relaxed) >= MUCH;
        let are_shared = memory.is_eager || bytes >= LARGE && is_much;
        let blocks = if are_shared { Blocks::in_chunk(bytes, memory) } else { Blocks::alone(count, memory) };
        memory.used.fetch_add(blocks.size(), Ordering::Relaxed);
        blocks
    }

    fn size(&self) -> u64 {
        size_of_val::<[SlotBlock]>(self) as u64
    }

    fn alone(count: usize, memory: &Arc<Memory>) -> Blocks {
        let blocks: Box<[SlotBlock]> = (0..count).map(|_| SlotBlock::gaps()).collect();
        let first = NonNull::from(Box::leak(blocks)).cast();
        Blocks { first, count, memory: Arc::clone(memory), are_shared: false }
    }

    fn in_chunk(bytes: usize, memory: &Arc<Memory>) -> Blocks {
        // A freed array can hold the next one of its size only if that size is a step of the allocator.
        let step = 1 << ((bytes + NOTE).ilog2() - STEPS_LOG2);
        let count = ((bytes + NOTE).next_multiple_of(step) - NOTE) / size_of::<SlotBlock>();
        let layout = Layout::array::<SlotBlock>(count).expect("a leaf has half a megabyte at most");
        let first = memory.allocate(layout).cast::<SlotBlock>();
        for at in 0..count {
            // SAFETY: the memory is ours, and has room for so many.
            unsafe { first.add(at).write(SlotBlock::gaps()) };
        }
        Blocks { first, count, memory: Arc::clone(memory), are_shared: true }
    }

    /// Whether they lie in the memory that leaves share.
    pub(super) fn are_shared(&self) -> bool {
        self.are_shared
    }

    /// Bytes of the system's allocator.
    pub(super) fn bytes(&self) -> usize {
        if self.are_shared { 0 } else { self.size() as usize }
    }
}

impl Deref for Blocks {
    type Target = [SlotBlock];

    #[inline]
    fn deref(&self) -> &[SlotBlock] {
        // SAFETY: so many blocks were written there, and stay until this drops.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.size(), Ordering::Relaxed);
        if self.are_shared {
            let first = self.first.cast();
            let mut shared = self.memory.shared.lock();
            // SAFETY: of `allocate` of this memory, with this alignment; blocks need no drop.
            unsafe { shared.free.deallocate(first, align_of::<SlotBlock>()) };
            shared.arrays -= 1;
            let is_over = shared.arrays == 0 && self.memory.used.load(Ordering::Relaxed) < MUCH / 2;
            // Lists and chunks, which drop in this order, without the lock.
            let over = is_over.then(|| std::mem::take(&mut *shared));
            drop(shared);
            drop(over);
        } else {
            let blocks = std::ptr::slice_from_raw_parts_mut(self.first.as_ptr(), self.count);
            // SAFETY: of a box of so many blocks.
            drop(unsafe { Box::from_raw(blocks) });
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_their_own_and_come_back_to_where_they_were() {
        let memory = Arc::new(Memory::eager());
        let shared = |count| Blocks::new(count, &memory);
        let sizes = [128, 1000, 4095, 129, 2222, 777, 3000];
        let mut arrays: Vec<Blocks> = (0..60).map(|at| shared(sizes[at % sizes.len()])).collect();
        let mut ranges: Vec<_> = arrays.iter().map(|blocks| blocks.as_ptr_range()).collect();
        ranges.sort_by_key(|range| range.start);
        assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start), "none lies in another one");
        let bytes = memory.bytes();
        let used: u64 = arrays.iter().map(Blocks::size).sum();
        assert!(bytes < used as usize + 2 * CHUNK, "{bytes} bytes of memory for {used} of arrays");
        for round in 0..1_000 {
            let at = round * 7 % arrays.len();
            let count = arrays[at].len();
            drop(arrays.swap_remove(at));
            arrays.push(shared(count));
            assert_eq!(arrays.last().map(|blocks| blocks.len()), Some(count), "a step is its own");
        }
        assert_eq!(memory.bytes(), bytes, "each has found the place of another one");
        drop(arrays);
        assert_eq!(memory.used.load(Ordering::Relaxed), 0);
    }
}
