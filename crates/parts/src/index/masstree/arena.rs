//! Where nodes of one type come from: a number names a node for ever, and a node that was given back is only
//! ever used as one of its type again (ATC'22 section 3.1, "same-typed").
//!
//! So any number, however old, torn or invented, can be followed: it names a node, perhaps one of another
//! key, or of none. The memory itself is given back with the arena.
//!
//! Nodes lie in chunks of zeroed memory that grow with the arena: eight of a size, then eight of twice that
//! size. So no more than an eighth of the memory waits for nodes to come, and a number leads to its node by a
//! few instructions and a table that stays in the nearest cache. Pages that no node has used yet are left to
//! the system, which is asked for large ones where they fit.

use crate::sync::SpinLock;
use crate::sync::atomic::{AtomicU64, Ordering};
use quipu_medium::{LINE, prefer_huge_pages};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Chunks of one size are `1 << STEPS_LOG2`.
const STEPS_LOG2: u32 = 3;
/// Nodes of the smallest chunks, as a power of two.
const SMALLEST_LOG2: u32 = if cfg!(loom) { 0 } else { 4 };
/// Chunks there can be.
pub(super) const CHUNKS: usize = place(NUMBERS - 1).0 + 1;
/// Numbers are below this.
pub(super) const NUMBERS: u32 = 1 << 31;
/// Numbers kept for operations that have begun: a long key may need a few thousand nodes.
const RESERVE: u32 = 1 << 20;
/// Bytes of a large page. Chunks of more are aligned to it.
const LARGE: usize = 2 << 20;

/// A type of node, which may be made of zeros.
///
/// # Safety
/// All bytes zero is a valid value, and the type needs no drop.
pub(super) unsafe trait Node: Send + Sync {
    /// A node as zeros would be, where atomics are not made of bytes.
    #[cfg(loom)]
    fn new() -> Self;
}

/// The memory of a chunk, which is given back with it.
pub(super) struct Chunk {
    memory: NonNull<u8>,
    layout: Layout,
    /// The bytes of the layout that are ever touched, without those that only align a large chunk.
    pub(super) bytes: usize,
}

// SAFETY: a chunk is memory that no thread owns; it holds nodes, which all threads may share.
unsafe impl Send for Chunk {}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout. It is dropped with what it is a part of, which no reference to
        // a node outlives, and nodes need no drop.
        unsafe { dealloc(self.memory.as_ptr(), self.layout) };
    }
}

struct State {
    chunks: Vec<Chunk>,
    /// Nodes that were used and are free again.
    free: Vec<u32>,
    /// The lowest number that was never used.
    next: u32,
}

/// All nodes of one type.
pub(super) struct Arena<T> {
    /// Addresses of the first nodes of the chunks; zero where there is none yet.
    chunks: [AtomicU64; CHUNKS],
    state: SpinLock<State>,
    nodes: PhantomData<T>,
}

/// Chunk and place in it of a number below [`NUMBERS`].
#[inline]
pub(super) const fn place(number: u32) -> (usize, usize) {
    let shifted = number + (1 << (STEPS_LOG2 + SMALLEST_LOG2));
    let size_log2 = shifted.ilog2() - STEPS_LOG2;
    let step = (shifted >> size_log2) - (1 << STEPS_LOG2);
    let chunk = ((size_log2 - SMALLEST_LOG2) << STEPS_LOG2) + step;
    (chunk as usize, (shifted & ((1 << size_log2) - 1)) as usize)
}

/// Nodes of a chunk.
pub(super) fn chunk_len(chunk: usize) -> usize {
    1 << (SMALLEST_LOG2 as usize + (chunk >> STEPS_LOG2))
}

impl<T: Node> Arena<T> {
    /// An arena in which only number 0 is in use.
    pub(super) fn new() -> Arena<T> {
        let state = State { chunks: Vec::new(), free: Vec::new(), next: 0 };
        let chunks = std::array::from_fn(|_| AtomicU64::new(0));
        let arena = Arena { chunks, state: SpinLock::new(state), nodes: PhantomData };
        arena.allocate();
        arena
    }

    /// The node of a number that this arena has given out.
    #[inline]
    pub(super) fn get(&self, number: u32) -> &T {
        let (chunk, at) = place(number);
        // The thread that told the number has seen its chunk, and has told so by the same store.
        let first = self.chunks[chunk].load(Ordering::Relaxed);
        self.node(first, at)
    }

    /// The node of any number, if memory for it is there.
    #[inline]
    pub(super) fn find(&self, number: u32) -> Option<&T> {
        if number >= NUMBERS {
            return None;
        }
        let (chunk, at) = place(number);
        let first = self.chunks[chunk].load(Ordering::Acquire);
        (first != 0).then(|| self.node(first, at))
    }

    #[inline]
    fn node(&self, first: u64, at: usize) -> &T {
        debug_assert!(first != 0, "the number of a node was given out");
        let first = std::ptr::with_exposed_provenance::<T>(first as usize);
        // SAFETY: `first` is the first node of a chunk: `find` looked, and callers of `get` have the number
        // from `allocate`. All nodes of a chunk are valid from the start, and live as long as `self`; `place`
        // keeps `at` below their number.
        unsafe { &*first.add(at) }
    }

    /// A free node, in no particular state; nobody else is told of it.
    pub(super) fn allocate(&self) -> u32 {
        let mut state = self.state.lock();
        if let Some(number) = state.free.pop() {
            return number;
        }
        let number = state.next;
        let (chunk, at) = place(number);
        if at == 0 {
            let (first, memory) = new_chunk::<T>(chunk_len(chunk));
            state.chunks.push(memory);
            self.chunks[chunk].store(first, Ordering::Release);
        }
        state.next += 1;
        number
    }

    /// Takes a node back. Its number is left in hints alone, which may be wrong.
    pub(super) fn free(&self, number: u32) {
        self.state.lock().free.push(number);
    }

    /// Whether there are numbers left for an operation that needs some.
    pub(super) fn has_room(&self) -> bool {
        let state = self.state.lock();
        state.next < NUMBERS - RESERVE || state.free.len() > RESERVE as usize
    }

    /// Nodes in use, less number 0.
    pub(super) fn in_use(&self) -> u64 {
        let state = self.state.lock();
        u64::from(state.next) - state.free.len() as u64 - 1
    }

    /// Bytes of the chunks and the lists of chunks and free nodes: all but the arena itself.
    pub(super) fn bytes(&self) -> u64 {
        let state = self.state.lock();
        let chunks: usize = state.chunks.iter().map(|chunk| chunk.bytes).sum();
        let lists = state.chunks.capacity() * size_of::<Chunk>() + state.free.capacity() * size_of::<u32>();
        (chunks + lists) as u64
    }

    /// All nodes that are or were in use.
    pub(super) fn each(&mut self) -> impl Iterator<Item = &T> {
        let next = self.state.get_mut().next;
        let arena = &*self;
        (0..next).map(|number| arena.get(number))
    }
}

/// The address of the first node of a new chunk, aligned to lines.
pub(super) fn new_chunk<T: Node>(nodes: usize) -> (u64, Chunk) {
    const { assert!(align_of::<T>() <= LINE as usize) };
    let bytes = nodes * size_of::<T>();
    let align = if bytes > LARGE { LARGE } else { LINE as usize };
    // Aligned by hand: for this alignment the allocator has untouched pages of zeros at hand.
    let layout = Layout::from_size_align(bytes + align, align_of::<u64>()).expect("31 bits of nodes");
    // SAFETY: the size is not zero.
    let memory = unsafe { alloc_zeroed(layout) };
    let Some(memory) = NonNull::new(memory) else { handle_alloc_error(layout) };
    let first = memory.as_ptr().expose_provenance().next_multiple_of(align);
    if align == LARGE {
        // SAFETY: the nodes lie in memory that was just allocated, and nobody else knows of it.
        let nodes =
            unsafe { std::slice::from_raw_parts_mut(std::ptr::with_exposed_provenance_mut(first), bytes) };
        prefer_huge_pages(nodes);
    }
    #[cfg(loom)]
    for at in 0..nodes {
        // SAFETY: the nodes lie in the chunk, which nobody else knows of.
        unsafe { std::ptr::with_exposed_provenance_mut::<T>(first).add(at).write(T::new()) };
    }
    let touched = if align == LARGE { bytes } else { layout.size() };
    (first as u64, Chunk { memory, layout, bytes: touched })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(32))]
    struct Word(AtomicU64);

    // SAFETY: an atomic of zeros.
    unsafe impl Node for Word {
        #[cfg(loom)]
        fn new() -> Word {
            Word(AtomicU64::new(0))
        }
    }

    #[test]
    fn numbers_fill_the_chunks_in_order() {
        let (mut chunk, mut at) = (0, 0);
        for number in 0..1_000_000 {
            assert_eq!(place(number), (chunk, at));
            at += 1;
            if at == chunk_len(chunk) {
                (chunk, at) = (chunk + 1, 0);
            }
        }
    }

    #[test]
    fn nodes_are_their_own_and_come_back() {
        let arena = Arena::<Word>::new();
        let numbers: Vec<u32> = (0..5_000).map(|_| arena.allocate()).collect();
        for number in &numbers {
            assert_eq!(arena.get(*number).0.swap(u64::from(*number), Ordering::Relaxed), 0);
        }
        assert!(
            numbers.iter().all(|number| arena.get(*number).0.load(Ordering::Relaxed) == u64::from(*number))
        );
        assert_eq!(arena.in_use(), 5_000);
        let used = 5_000.0 * size_of::<Word>() as f64;
        assert!((arena.bytes() as f64) < used * 1.13 + 12_000.0, "{} bytes", arena.bytes());
        arena.free(77);
        assert_eq!((arena.in_use(), arena.allocate()), (4_999, 77));
    }

    #[test]
    fn any_number_leads_to_a_node_or_to_nothing() {
        let arena = Arena::<Word>::new();
        let there = |number: &u32| arena.find(*number).is_some();
        assert_eq!((0..10_000).filter(there).count(), 16);
        assert!(![NUMBERS - 1, NUMBERS, u32::MAX].iter().any(there));
    }
}
