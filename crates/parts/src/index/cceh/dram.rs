//! Segments in DRAM.
//!
//! They are carved from chunks that start small and double up to two megabytes, aligned to their size, so
//! that large pages fit beneath them. Segments are never given back: an extendible hash index does not
//! shrink.
//!
//! A large page is cleared by the system when it is touched first, which takes as long as hundreds of puts.
//! So when little is left of a chunk, the index asks for a spare one, and a thread in the background touches
//! it.

use super::entry::Name;
use super::memory::NodeMemory;
use crate::index::IndexError;
use crate::index::block::{Block, LARGE_PAGE};
use crate::sync::SpinLock;
use quipu_medium::arch;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Bytes of the largest chunks: a large page.
const CHUNK_MAX: usize = LARGE_PAGE;
/// Segments of the smallest chunk.
const SEGMENTS_MIN: usize = 16;
/// A spare chunk is wanted when less is left of the last one: enough for the time to touch it.
const LITTLE: usize = CHUNK_MAX / 4;
/// Bytes of the smallest pages.
const PAGE: usize = 4 << 10;

struct Chunk {
    block: Block,
    /// Bytes that are segments already.
    used: usize,
}

/// Memory of an index in DRAM.
pub struct DramNodes {
    segment_bytes: usize,
    chunks: SpinLock<Vec<Chunk>>,
    spare: SpinLock<Option<Chunk>>,
    /// Changed while the spare one is locked.
    wants_spare: AtomicBool,
}

impl DramNodes {
    /// No segment yet; all will be of this size.
    pub(super) fn new(segment_bytes: u64) -> DramNodes {
        DramNodes {
            segment_bytes: segment_bytes as usize,
            chunks: SpinLock::default(),
            spare: SpinLock::default(),
            wants_spare: AtomicBool::new(false),
        }
    }

    fn new_chunk(&self, segments: usize) -> Chunk {
        let most = CHUNK_MAX / self.segment_bytes;
        let bytes = segments.clamp(SEGMENTS_MIN.min(most), most) * self.segment_bytes;
        Chunk { block: Block::new(bytes, bytes.next_power_of_two()), used: 0 }
    }

    /// Asks for a spare chunk, if there is none.
    #[cold]
    fn want_spare(&self) {
        let spare = self.spare.lock();
        self.wants_spare.store(spare.is_none(), Ordering::Relaxed);
    }

    /// A word of a segment.
    #[inline]
    fn word(&self, place: u64) -> &AtomicU64 {
        // SAFETY: the index asks only for aligned words within segments that `allocate` gave it, which live
        // as long as `self` and are initialised there; since then they are changed only through these
        // atomics.
        unsafe { &*std::ptr::with_exposed_provenance::<AtomicU64>(place as usize) }
    }
}

impl NodeMemory for DramNodes {
    const MARK: u64 = 0;

    #[inline]
    fn load(&self, place: u64) -> u64 {
        self.word(place).load(Ordering::Acquire)
    }

    #[inline]
    fn store(&self, place: u64, word: u64) {
        self.word(place).store(word, Ordering::Release);
    }

    #[inline]
    fn prefetch(&self, place: u64) {
        arch::prefetch(std::ptr::without_provenance::<u64>(place as usize));
    }

    #[inline]
    fn prefetch_to_write(&self, place: u64) {
        arch::prefetch_to_write(std::ptr::without_provenance::<u64>(place as usize));
    }

    fn allocate(&self, _name: Name, words: &[u64]) -> Result<u64, IndexError> {
        assert_eq!(size_of_val(words), self.segment_bytes, "a segment is allocated whole");
        let mut chunks = self.chunks.lock();
        let is_full = |chunk: &Chunk| chunk.used == chunk.block.bytes();
        if chunks.last().is_none_or(is_full) {
            let segments = chunks.iter().map(|chunk| chunk.used / self.segment_bytes).sum();
            let spare = self.spare.lock().take();
            chunks.push(spare.unwrap_or_else(|| self.new_chunk(segments)));
        }
        let chunk = chunks.last_mut().expect("one has been pushed if there was none");
        // SAFETY: a chunk is a multiple of segments, so one more fits behind those in use; the words fill it
        // exactly by the assertion, and nobody has been told of it.
        let segment = unsafe {
            let segment = chunk.block.base().cast::<u64>().add(chunk.used / size_of::<u64>());
            segment.copy_from_nonoverlapping(NonNull::from(words).cast(), words.len());
            segment
        };
        chunk.used += self.segment_bytes;
        if chunk.block.bytes() == CHUNK_MAX && CHUNK_MAX - chunk.used < LITTLE {
            self.want_spare();
        }
        Ok(segment.as_ptr().expose_provenance() as u64)
    }

    #[inline]
    fn wants_memory(&self) -> bool {
        self.wants_spare.load(Ordering::Relaxed)
    }

    fn prepare_memory(&self) {
        let chunk = self.new_chunk(CHUNK_MAX / self.segment_bytes);
        for page in (0..chunk.block.bytes()).step_by(PAGE) {
            // SAFETY: inside of the chunk, which nobody else knows of.
            unsafe { chunk.block.base().add(page).write_volatile(0) };
        }
        let mut spare = self.spare.lock();
        // Two may have come at a time.
        let second = spare.replace(chunk);
        self.wants_spare.store(false, Ordering::Relaxed);
        drop((spare, second));
    }

    fn dram_bytes(&self) -> u64 {
        let chunks = self.chunks.lock();
        let spare = self.spare.lock();
        chunks.iter().chain(&*spare).map(|chunk| chunk.block.bytes() as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spare_chunk_is_wanted_when_little_is_left_and_then_used() {
        const SEGMENT: usize = 64 << 10;
        let nodes = DramNodes::new(SEGMENT as u64);
        let words = vec![1; SEGMENT / size_of::<u64>()];
        let name = Name { start: 0, depth: 0 };
        let allocate = |count: usize| {
            for _ in 0..count {
                nodes.allocate(name, &words).expect("memory");
            }
            (nodes.dram_bytes(), nodes.wants_memory())
        };
        // Two chunks have sixteen segments each, the third thirty-two and is of full size.
        let smaller = 32 * SEGMENT as u64;
        assert_eq!(allocate(32), (smaller, false));
        let full = smaller + CHUNK_MAX as u64;
        assert_eq!(allocate(24), (full, false));
        assert_eq!(allocate(1), (full, true));
        nodes.prepare_memory();
        assert_eq!(allocate(7), (full + CHUNK_MAX as u64, false), "it is counted before it is used");
        assert_eq!(allocate(1), (full + CHUNK_MAX as u64, false), "and used before another is made");
        assert_eq!(allocate(31), (full + CHUNK_MAX as u64, true));
        assert_eq!(allocate(1), (full + 2 * CHUNK_MAX as u64, true), "nobody has made one");
        nodes.prepare_memory();
        nodes.prepare_memory();
        assert_eq!(allocate(0), (full + 3 * CHUNK_MAX as u64, false), "a second spare one is given back");
    }
}
