//! The longer suffixes of a border node: the bytes of its keys behind their slices, where they are more than
//! eight.
//!
//! They stand in a block of memory that the node names, one behind the other, each with its length before it:
//!
//! ```text
//! block  | capacity 32 | used 32 | place of the suffix of slot 0 | .. of slot 14 | suffix | suffix | ... |
//! suffix | length 16 | bytes |
//! ```
//!
//! Bytes are written once, behind all others, before anyone is told of them; so readers need no lock and no
//! copy. The suffix of a key that is gone stays until the block is full. Then the suffixes still in use go to
//! a new block, and the old one is freed when nobody reads it any more.

use super::permutation::SLOTS;
use crate::sync::atomic::{AtomicU32, Ordering};
use quipu_medium::{LINE, arch};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::ptr::NonNull;

const LENGTH: usize = size_of::<u16>();
/// Bytes of a block that are asked for at once.
const PREFETCHED: usize = 256;
/// Room for later suffixes: this part of the bytes in use, ...
const SPARE_PART: usize = 3;
/// ... but no more than this.
const SPARE_MAX: usize = 256;

#[repr(C)]
struct Header {
    /// Bytes of the block.
    capacity: u32,
    /// Bytes of it that are in use or have been.
    used: AtomicU32,
    /// Where each slot's suffix begins; zero if it has none.
    places: [AtomicU32; SLOTS],
}

/// A block of suffixes, which is there for `'b`.
#[derive(Clone, Copy)]
pub(super) struct Suffixes<'b> {
    header: NonNull<Header>,
    block: PhantomData<&'b Header>,
}

impl<'b> Suffixes<'b> {
    /// The block of this address, as [`address`](Suffixes::address) gave it; nothing if it is zero.
    ///
    /// # Safety
    /// The block has not been freed, nor will it be before the end of `'b`.
    #[inline]
    pub(super) unsafe fn from_address(address: u64) -> Option<Suffixes<'b>> {
        let header = NonNull::new(std::ptr::with_exposed_provenance_mut(address as usize))?;
        Some(Suffixes { header, block: PhantomData })
    }

    /// Asks for the first lines of the block of this address, in which the suffixes of most nodes are.
    #[inline]
    pub(super) fn prefetch(address: u64) {
        let block = std::ptr::without_provenance::<u8>(address as usize);
        (0..PREFETCHED).step_by(LINE as usize).for_each(|at| arch::prefetch(block.wrapping_add(at)));
    }

    /// The address, never zero.
    pub(super) fn address(self) -> u64 {
        self.header.as_ptr().expose_provenance() as u64
    }

    /// A block of these suffixes, with some room for more; it is there until somebody frees it.
    pub(super) fn new<'s>(suffixes: impl Iterator<Item = (usize, &'s [u8])> + Clone) -> Suffixes<'b> {
        let bytes: usize = suffixes.clone().map(|(_, suffix)| LENGTH + suffix.len()).sum();
        let spare = (bytes / SPARE_PART).min(SPARE_MAX);
        let layout = layout(size_of::<Header>() + bytes + spare);
        // SAFETY: the size is not zero.
        let Some(block) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
        let header = Header {
            // At most fifteen suffixes of less than 64 KiB each.
            capacity: layout.size() as u32,
            used: AtomicU32::new(size_of::<Header>() as u32),
            places: Default::default(),
        };
        let block = Suffixes { header: block.cast(), block: PhantomData };
        // SAFETY: the block is ours alone, aligned for the header and larger.
        unsafe { block.header.write(header) };
        suffixes.for_each(|(slot, suffix)| _ = block.push(slot, suffix));
        block
    }

    #[inline]
    fn header(self) -> &'b Header {
        // SAFETY: the block is there for `'b`; `new` wrote its header, which changes only through its
        // atomics.
        unsafe { self.header.as_ref() }
    }

    /// Bytes of the block.
    pub(super) fn bytes(self) -> u64 {
        u64::from(self.header().capacity)
    }

    /// The suffix of a slot; empty if it has none in this block.
    #[inline]
    pub(super) fn get(self, slot: usize) -> &'b [u8] {
        let place = self.header().places[slot].load(Ordering::Acquire) as usize;
        if place == 0 {
            return &[];
        }
        // SAFETY: `push` wrote length and bytes at this place, within the block, before it told of it, and
        // nobody writes there again. The block is there for `'b`.
        unsafe {
            let suffix = self.header.cast::<u8>().add(place);
            let len = suffix.cast::<u16>().read_unaligned();
            std::slice::from_raw_parts(suffix.add(LENGTH).as_ptr(), usize::from(len))
        }
    }

    /// Gives a slot its suffix; false, without a change, if there is no room. One thread at a time does this.
    pub(super) fn push(self, slot: usize, suffix: &[u8]) -> bool {
        let header = self.header();
        let place = header.used.load(Ordering::Relaxed) as usize;
        let end = place + LENGTH + suffix.len();
        if end > header.capacity as usize {
            return false;
        }
        // SAFETY: the bytes from `place` to `end` lie in the block, unpublished, and no other thread pushes.
        unsafe {
            let target = self.header.cast::<u8>().add(place);
            target.cast::<u16>().write_unaligned(suffix.len() as u16);
            target.add(LENGTH).copy_from_nonoverlapping(NonNull::from(suffix).cast(), suffix.len());
        }
        header.used.store(end as u32, Ordering::Relaxed);
        header.places[slot].store(place as u32, Ordering::Release);
        true
    }

    /// Frees the block.
    ///
    /// # Safety
    /// Nobody uses it or a suffix of it, or will, and it has not been freed.
    pub(super) unsafe fn free(self) {
        let layout = layout(self.header().capacity as usize);
        // SAFETY: allocated by `new` with this layout, and freed once by the caller's word.
        unsafe { dealloc(self.header.as_ptr().cast(), layout) };
    }
}

/// The layout of a block of at least so many bytes.
fn layout(bytes: usize) -> Layout {
    let align = align_of::<Header>();
    Layout::from_size_align(bytes.next_multiple_of(align), align).expect("fifteen suffixes of 64 KiB at most")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_read_as_they_were_pushed_and_a_full_block_refuses() {
        let long = vec![7u8; 65_527];
        let block = Suffixes::new([(0, &b"first"[..]), (14, &long)].into_iter());
        assert_eq!((block.get(0), block.get(14), block.get(3)), (&b"first"[..], &long[..], &[][..]));
        assert!(block.push(3, b"third") && block.push(0, b"again"));
        assert_eq!((block.get(0), block.get(3)), (&b"again"[..], &b"third"[..]));
        assert!(!block.push(4, &long) && block.get(4).is_empty());
        assert!(block.bytes() >= 65_527 && block.bytes() < 66_200);
        // SAFETY: nobody else knows of it.
        unsafe { block.free() };
    }
}
