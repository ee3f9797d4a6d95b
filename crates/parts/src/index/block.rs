//! Blocks of DRAM in which an index has its segments.

use quipu_medium::prefer_huge_pages;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Bytes of a large page.
pub(super) const LARGE_PAGE: usize = 2 << 20;

/// Memory of its own, not initialised, which is freed with it.
pub(super) struct Block {
    base: NonNull<u8>,
    layout: Layout,
}

// SAFETY: no thread owns the memory of a block; once published, its contents are atomic or under locks.
unsafe impl Send for Block {}

impl Block {
    /// So many bytes, not zero, aligned to a power of two; on large pages where these fit.
    pub(super) fn new(bytes: usize, align: usize) -> Block {
        assert!(bytes > 0, "a block has bytes");
        let layout = Layout::from_size_align(bytes, align).expect("a block is a few megabytes at most");
        // SAFETY: the size is not zero.
        let Some(base) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
        if bytes >= LARGE_PAGE {
            // SAFETY: just allocated with this size, and nobody else knows of it.
            prefer_huge_pages(unsafe { std::slice::from_raw_parts_mut(base.as_ptr().cast(), bytes) });
        }
        Block { base, layout }
    }

    /// The first byte.
    pub(super) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// How many bytes there are.
    pub(super) fn bytes(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; its users end with its owner.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
    }
}
