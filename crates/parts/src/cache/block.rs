//! Cached pairs: each is one allocation that never changes. A slot names it by its address and a tag.

use super::Item;
use crate::sync::atomic::{AtomicU64, Ordering};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

/// Bits of an address; those above hold a tag, the highest bits of a hash.
const ADDRESS_BITS: u32 = 48;
pub(super) const TAG_BITS: u32 = u64::BITS - ADDRESS_BITS;
const ADDRESS: usize = (1 << ADDRESS_BITS) - 1;

/// The first bytes of a block. Key and value follow.
pub(super) struct Head {
    hash: u64,
    expires: u64,
    value_len: u32,
    key_len: u16,
    node: u16,
}

/// A block that its holder can reach: it is in a slot, or was a moment ago, and a guard keeps it.
#[derive(Clone, Copy)]
pub(super) struct Block<'g> {
    head: NonNull<Head>,
    reachable: PhantomData<&'g Head>,
}

/// A block that no slot names any more. Its memory is free, and its bytes do not count any more, when this
/// drops: once no reader can reach it.
pub(super) struct Evicted {
    head: NonNull<Head>,
    used: Arc<AtomicU64>,
}

// SAFETY: a block is plain memory, and who holds this has it alone.
unsafe impl Send for Evicted {}

/// Bytes of the block of a pair.
pub(super) fn size(item: &Item<'_>) -> u64 {
    layout(item.key.len(), item.value.len()).size() as u64
}

fn layout(key_len: usize, value_len: usize) -> Layout {
    let bytes = size_of::<Head>() + key_len + value_len;
    Layout::from_size_align(bytes, align_of::<Head>()).expect("a pair is far smaller than an address space")
}

/// Makes a block of a pair, and the word by which a slot names it and owns it. `None` for an address that
/// leaves no room for a tag.
pub(super) fn make(item: &Item<'_>) -> Option<*mut Head> {
    let layout = layout(item.key.len(), item.value.len());
    // SAFETY: the size is not zero, since a head has one.
    let start = unsafe { alloc(layout) };
    let Some(head) = NonNull::new(start.cast::<Head>()) else { handle_alloc_error(layout) };
    if start.addr() & !ADDRESS != 0 {
        // SAFETY: it was allocated with this layout a moment ago.
        unsafe { dealloc(start, layout) };
        return None;
    }
    let (key_len, value_len) = (item.key.len() as u16, item.value.len() as u32);
    // SAFETY: the allocation has the size and alignment of a head, then of the key and the value, and nobody
    // else knows it.
    unsafe {
        head.write(Head { hash: item.hash, expires: item.expires, value_len, key_len, node: item.node });
        let bytes = head.add(1).cast::<u8>();
        bytes.copy_from_nonoverlapping(NonNull::from(item.key).cast(), item.key.len());
        bytes
            .add(item.key.len())
            .copy_from_nonoverlapping(NonNull::from(item.value).cast(), item.value.len());
    }
    Some(head.as_ptr().map_addr(|address| address | tag(item.hash)))
}

/// The tag of a hash, where a slot has it.
fn tag(hash: u64) -> usize {
    (hash >> ADDRESS_BITS << ADDRESS_BITS) as usize
}

impl<'g> Block<'g> {
    /// The block that a slot names, if that has the tag of this hash.
    ///
    /// # Safety
    /// The word was read from a slot by a thread that is pinned, and stays so during `'g`.
    #[inline]
    pub(super) unsafe fn tagged(word: *mut Head, hash: u64) -> Option<Block<'g>> {
        // SAFETY: forwarded.
        if word.addr() & !ADDRESS == tag(hash) { unsafe { Block::of_word(word) } } else { None }
    }

    /// The block that a slot names, if it names one.
    ///
    /// # Safety
    /// As for [`tagged`](Block::tagged).
    #[inline]
    pub(super) unsafe fn of_word(word: *mut Head) -> Option<Block<'g>> {
        let head = NonNull::new(word.map_addr(|address| address & ADDRESS))?;
        Some(Block { head, reachable: PhantomData })
    }

    #[inline]
    fn head(self) -> &'g Head {
        // SAFETY: the block is not freed while a thread that could reach it is pinned, and never changes.
        unsafe { self.head.as_ref() }
    }

    #[inline]
    pub(super) fn hash(self) -> u64 {
        self.head().hash
    }

    pub(super) fn node(self) -> u16 {
        self.head().node
    }

    /// Its bytes.
    pub(super) fn size(self) -> u64 {
        let (key, value) = self.pair();
        layout(key.len(), value.len()).size() as u64
    }

    #[inline]
    pub(super) fn expires(self) -> u64 {
        self.head().expires
    }

    /// Its key and its value.
    #[inline]
    pub(super) fn pair(self) -> (&'g [u8], &'g [u8]) {
        let (key_len, value_len) = (self.head().key_len as usize, self.head().value_len as usize);
        // SAFETY: behind the head are so many initialised bytes of one allocation, as `make` wrote them. They
        // stay as long as the head does.
        let bytes = unsafe {
            NonNull::slice_from_raw_parts(self.head.add(1).cast::<u8>(), key_len + value_len).as_ref()
        };
        bytes.split_at(key_len)
    }
}

impl Evicted {
    /// Its bytes.
    pub(super) fn size(&self) -> u64 {
        // SAFETY: the block is initialised, and never changes.
        let Head { key_len, value_len, .. } = unsafe { self.head.as_ref() };
        layout(*key_len as usize, *value_len as usize).size() as u64
    }

    /// The block of a word that no slot has (any more); `None` for the word of an empty slot.
    ///
    /// # Safety
    /// The word is one of [`make`], and this is called once with it. If it was in a slot, the result is kept
    /// until all threads that were pinned then have left.
    pub(super) unsafe fn of_word(word: *mut Head, used: &Arc<AtomicU64>) -> Option<Evicted> {
        let head = NonNull::new(word.map_addr(|address| address & ADDRESS))?;
        Some(Evicted { head, used: used.clone() })
    }
}

impl Drop for Evicted {
    fn drop(&mut self) {
        // SAFETY: the block is initialised, and whoever holds this has it alone by now.
        let Head { key_len, value_len, .. } = unsafe { self.head.read() };
        let layout = layout(key_len as usize, value_len as usize);
        self.used.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: `make` allocated it with the layout of these lengths.
        unsafe { dealloc(self.head.as_ptr().cast(), layout) };
    }
}
