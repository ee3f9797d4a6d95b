//! Where segments come from.
//!
//! A slab is up to 128 blocks of one segment each, aligned to the size of 128. So the address of a segment
//! alone leads to its metadata: one block of the slab (a few, if segments are tiny) holds 64 bytes for each
//! other block. Dense metadata stays in the near caches, and the directory needs no second pointer. The block
//! that holds it differs from slab to slab, since lines that lie at equal offsets of large pages compete for
//! the same few places of a cache.
//!
//! Slabs start small and double up to the full size. They are freed with the index.

use super::probe::{Bucket, SLOTS};
use super::segment::{Meta, Segment};
use crate::index::block::Block;
use crate::index::directory::EntryWord;
use crate::sync::SpinLock;
use std::ptr::NonNull;

const BLOCKS_LOG2: u32 = 7;
const BLOCKS: usize = 1 << BLOCKS_LOG2;
/// Segments of the smallest slab.
const SEGMENTS_MIN: usize = 16;
/// Places for the metadata block, a power of two below the smallest slab's blocks.
const META_PLACES: usize = 8;

struct Slab {
    block: Block,
    blocks: usize,
    /// The next block that is no segment yet.
    next: usize,
}

/// All segments of an index.
pub(super) struct Slabs {
    bucket_bits: u32,
    bucket_mask: usize,
    segment_shift: u32,
    /// Chooses the first block with metadata by the slab's number.
    place_mask: usize,
    list: SpinLock<Vec<Slab>>,
}

impl Slabs {
    /// No slab yet; segments have `1 << bucket_bits` buckets.
    pub(super) fn new(bucket_bits: u32) -> Slabs {
        let segment_shift = bucket_bits + size_of::<Bucket>().trailing_zeros();
        let room_to_choose = BLOCKS * size_of::<Meta>() <= 1 << segment_shift;
        Slabs {
            bucket_bits,
            bucket_mask: (1 << bucket_bits) - 1,
            segment_shift,
            place_mask: if room_to_choose { META_PLACES - 1 } else { 0 },
            list: SpinLock::default(),
        }
    }

    fn meta_blocks(&self) -> usize {
        ((BLOCKS * size_of::<Meta>()) >> self.segment_shift).max(1)
    }

    /// The first block with metadata, of the slab at this address.
    #[inline]
    fn first_meta_block(&self, slab: usize) -> usize {
        (slab >> (self.segment_shift + BLOCKS_LOG2)) & self.place_mask
    }

    /// The buckets of the segment that an entry names.
    #[inline]
    fn buckets(&self, entry: EntryWord) -> &[Bucket] {
        let first = std::ptr::with_exposed_provenance::<Bucket>(entry.place() as usize);
        // SAFETY: entries name initialised blocks of this size from `allocate`, which live as long as `self`.
        unsafe { std::slice::from_raw_parts(first, 1 << self.bucket_bits) }
    }

    /// One bucket of the segment that an entry names; its number is taken modulo their number.
    #[inline]
    pub(super) fn bucket(&self, entry: EntryWord, number: usize) -> &Bucket {
        let first = std::ptr::with_exposed_provenance::<Bucket>(entry.place() as usize);
        // SAFETY: as in `buckets`; the mask keeps the number below that of the buckets.
        unsafe { &*first.add(number & self.bucket_mask()) }
    }

    /// One less than the buckets of a segment, a power of two.
    #[inline]
    pub(super) fn bucket_mask(&self) -> usize {
        self.bucket_mask
    }

    /// The metadata of the segment that an entry names.
    #[inline]
    pub(super) fn meta(&self, entry: EntryWord) -> &Meta {
        let offset_mask = (1usize << (self.segment_shift + BLOCKS_LOG2)) - 1;
        let segment = entry.place() as usize;
        let (slab, block) = (segment & !offset_mask, (segment & offset_mask) >> self.segment_shift);
        let address = self.meta_address(slab, block);
        // SAFETY: `take_block` initialised the metadata of every block that it handed out, within the slab.
        unsafe { &*std::ptr::with_exposed_provenance::<Meta>(address) }
    }

    #[inline]
    fn meta_address(&self, slab: usize, block: usize) -> usize {
        slab + (self.first_meta_block(slab) << self.segment_shift) + block * size_of::<Meta>()
    }

    /// The segment that an entry names.
    #[inline]
    pub(super) fn segment(&self, entry: EntryWord) -> Segment<'_> {
        Segment { buckets: self.buckets(entry), meta: self.meta(entry), base: entry.number() }
    }

    /// A new, empty segment that nobody else knows yet.
    pub(super) fn allocate(&self, depth: u32, base: u32) -> EntryWord {
        let block = self.take_block(depth);
        // SAFETY: `take_block` gave us all of these bytes, and no one has been told of them.
        unsafe { block.as_ptr().cast::<u8>().write_bytes(0, 1 << self.segment_shift) };
        EntryWord::new(block.as_ptr().expose_provenance() as u64, base)
    }

    /// A new segment that nobody else knows yet, its slots in order filled with these words: as many as there
    /// are slots, none beyond that, and zeros if they are fewer.
    pub(super) fn allocate_filled(
        &self,
        depth: u32,
        base: u32,
        words: impl Iterator<Item = u64>,
    ) -> EntryWord {
        let block = self.take_block(depth);
        let slots = (1 << self.bucket_bits) * SLOTS;
        let mut filled = 0;
        words.take(slots).for_each(|word| {
            // SAFETY: `filled` is below `slots`, and all slots are ours, as in `allocate`, and aligned to
            // lines.
            unsafe { block.as_ptr().add(filled).write(word) };
            filled += 1;
        });
        // SAFETY: the slots from `filled` to the last are ours as well.
        unsafe { block.as_ptr().add(filled).write_bytes(0, slots - filled) };
        EntryWord::new(block.as_ptr().expose_provenance() as u64, base)
    }

    /// Takes a block for a new segment, with its metadata made. Its slots are not initialised.
    fn take_block(&self, depth: u32) -> NonNull<u64> {
        let mut list = self.list.lock();
        loop {
            if let Some(slab) = list.last_mut()
                && let Some(block) = self.next_segment_block(slab)
            {
                let slab_address = slab.block.base().as_ptr().expose_provenance();
                let meta =
                    std::ptr::with_exposed_provenance_mut::<Meta>(self.meta_address(slab_address, block));
                // SAFETY: the block and its metadata lie in the slab, and no one has been told of them.
                return unsafe {
                    meta.write(Meta::new(depth));
                    slab.block.base().add(block << self.segment_shift).cast()
                };
            }
            let blocks = list.iter().map(|slab| slab.blocks).sum::<usize>().max(1 << depth.min(BLOCKS_LOG2));
            list.push(self.new_slab(blocks));
        }
    }

    /// Takes the slab's next block, skipping those of the metadata.
    fn next_segment_block(&self, slab: &mut Slab) -> Option<usize> {
        let first_meta = self.first_meta_block(slab.block.base().as_ptr().addr());
        if slab.next == first_meta {
            slab.next += self.meta_blocks();
        }
        if slab.next >= slab.blocks {
            return None;
        }
        slab.next += 1;
        Some(slab.next - 1)
    }

    fn new_slab(&self, segments: usize) -> Slab {
        let blocks = (segments.max(SEGMENTS_MIN) + self.meta_blocks()).min(BLOCKS);
        let block = Block::new(blocks << self.segment_shift, BLOCKS << self.segment_shift);
        Slab { block, blocks, next: 0 }
    }

    /// Calls `visit` with the metadata of every segment.
    pub(super) fn for_each_meta(&self, mut visit: impl FnMut(&Meta)) {
        for slab in self.list.lock().iter() {
            for meta in self.metas(slab) {
                // SAFETY: `metas` gives addresses of initialised metadata.
                visit(unsafe { &*meta });
            }
        }
    }

    fn metas(&self, slab: &Slab) -> impl Iterator<Item = *mut Meta> {
        let address = slab.block.base().as_ptr().expose_provenance();
        let first_meta = self.first_meta_block(address);
        let reserved = first_meta..first_meta + self.meta_blocks();
        (0..slab.next)
            .filter(move |block| !reserved.contains(block))
            .map(move |block| std::ptr::with_exposed_provenance_mut(self.meta_address(address, block)))
    }

    /// Bytes of all slabs, with the blocks that are no segments yet.
    pub(super) fn bytes(&self) -> u64 {
        self.list.lock().iter().map(|slab| slab.block.bytes() as u64).sum()
    }
}

impl Drop for Slabs {
    fn drop(&mut self) {
        let list = std::mem::take(self.list.get_mut());
        for slab in &list {
            for meta in self.metas(slab) {
                // SAFETY: initialised metadata, ours alone by `&mut self`; it owns nothing but the chain.
                unsafe { (*meta).free_overflow() };
            }
        }
    }
}
