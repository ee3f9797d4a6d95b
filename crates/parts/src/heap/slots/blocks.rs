//! Handing blocks out and taking them back (sections 4.1 and 4.6), and chunks with them (section 3.2.1).
//!
//! A client gets a block that another has left, or a free one off the queue, or the next one that was never
//! used, from one atomic word. The word has a generation besides the paper's two counters, so that chunks at
//! the end can be given back.
//!
//! Persist order: headers of all pages and of the chunk, then the zone's commit bit. The count of used
//! blocks, then a block's first record. The emptied logs of a free block, then a header that says it is in
//! use, then its first record. A block is durably free before it enters the queue.

use super::chunks::{BlockState, Page};
use super::error::{Damage, SlotError};
use super::format::{BlockKind, ChunkHeader, HEADER_LEN, LOG_START};
use super::free_blocks::FreeBlocks;
use super::heap::SlotHeap;
use super::owner::{Owner, Place, Reach};
use super::victims::Victims;
use crate::space::{Shortage, Space, ZoneId};
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::sync::{SpinGuard, SpinLock, point};
use quipu_medium::{LINE, Node};
use std::sync::atomic::AtomicBool;
use zerocopy::IntoBytes;

/// Bits of the next page in the counter word, and of the next block.
const PAGE_BITS: u32 = 8;
const BLOCK_BITS: u32 = 40;

/// The counter word taken apart.
#[derive(Clone, Copy)]
struct Next {
    generation: u64,
    block: u64,
    page: u32,
}

impl Next {
    fn read(word: u64) -> Next {
        Next {
            generation: word >> (PAGE_BITS + BLOCK_BITS),
            block: word >> PAGE_BITS & ((1 << BLOCK_BITS) - 1),
            page: word as u32 & ((1 << PAGE_BITS) - 1),
        }
    }

    fn word(self) -> u64 {
        (self.generation << BLOCK_BITS | self.block) << PAGE_BITS | u64::from(self.page)
    }
}

/// Blocks that someone may have.
pub(super) struct Supply {
    /// The counters, as [`Next`] reads them.
    next: AtomicU64,
    /// Blocks of all chunks, used or not.
    allocated: AtomicU64,
    /// Chunks; locked while one is added or given back.
    growth: SpinLock<u32>,
    /// Threads that add a chunk at this moment, or give one back.
    growing: AtomicU32,
    /// See [`SlotHeap::takes`].
    pub(super) takes: AtomicU64,
    /// Whether the disk had no room for the last chunk that was to be added.
    refused: AtomicBool,
    /// Free blocks.
    queue: SpinLock<FreeBlocks>,
    /// The length of the queue, for callers that want no more.
    queued: AtomicU64,
    /// So many of which are left to cleaners.
    reserve: usize,
    /// Places in blocks that clients have left.
    pub(super) left: SpinLock<Vec<Place>>,
    /// Where tombstones go for which there is no other room.
    pub(super) last_resort: SpinLock<Owner>,
    /// The nodes that have bytes of the pool.
    pub(super) nodes: Vec<Node>,
    /// Blocks that were worth reclaiming when somebody looked at all.
    pub(super) victims: SpinLock<Victims>,
}

impl Supply {
    /// Whether the pool's bytes lie on several nodes. Then all blocks of a new chunk are free at once, each
    /// in the lane of its node, and nobody takes any off the counter.
    pub(super) fn is_spread(&self) -> bool {
        self.nodes.len() > 1
    }

    /// Blocks that puts leave.
    pub(super) fn reserve(&self) -> u64 {
        self.reserve as u64
    }

    pub(super) fn new(reserve: usize, space: &Space) -> Supply {
        let nodes = space.nodes();
        Supply {
            next: AtomicU64::new(0),
            allocated: AtomicU64::new(0),
            growth: SpinLock::default(),
            growing: AtomicU32::new(0),
            takes: AtomicU64::new(0),
            refused: AtomicBool::new(false),
            queue: SpinLock::new(FreeBlocks::new(nodes.len())),
            nodes,
            queued: AtomicU64::new(0),
            reserve,
            left: SpinLock::default(),
            last_resort: SpinLock::new(Owner::of_last_resort()),
            victims: SpinLock::default(),
        }
    }

    /// Sets how many chunks there are, none of whose blocks is to be handed out before recovery says which.
    pub(super) fn set_chunks(&mut self, chunks: u32, blocks_per_chunk: u64) {
        let allocated = u64::from(chunks) * blocks_per_chunk;
        *self.growth.get_mut() = chunks;
        self.allocated.store(allocated, Ordering::Relaxed);
        self.set_next(allocated);
    }

    /// Sets the block that is handed out next, while nobody asks for one.
    pub(super) fn set_next(&self, block: u64) {
        self.next.store(Next { generation: 0, block, page: 0 }.word(), Ordering::Release);
    }

    /// Blocks of all chunks.
    pub(super) fn allocated(&self) -> u64 {
        self.allocated.load(Ordering::Acquire)
    }

    /// Changes the queue.
    pub(super) fn with_queue<T>(&self, change: impl FnOnce(&mut FreeBlocks) -> T) -> T {
        let mut queue = self.queue.lock();
        let done = change(&mut queue);
        self.queued.store(queue.len() as u64, Ordering::Release);
        done
    }

    /// Takes a block of the queue, if that is longer than `least`: one of the lane, or of any.
    fn take(&self, least: usize, lane: usize) -> Option<u64> {
        self.with_queue(|queue| if queue.len() > least { queue.pop(lane) } else { None })
    }

    /// Takes a block of the lane alone, if the queue is longer than `least`.
    fn take_near(&self, least: usize, lane: usize) -> Option<u64> {
        self.with_queue(|queue| if queue.len() > least { queue.pop_near(lane) } else { None })
    }
}

/// A block without records that is durably free, and that someone may still read from by an offset found
/// before. To be [recycled](SlotHeap::recycle) when nobody does any more.
#[derive(Debug)]
#[must_use = "nobody uses the block until it is recycled"]
pub struct FreedBlock(pub(super) u64);

impl SlotHeap {
    /// Puts a freed block on the queue. The caller has waited for its epoch to pass, so no reader with an
    /// older offset is still going to read there.
    pub fn recycle(&self, freed: FreedBlock) {
        self.offer([freed.0]);
    }

    /// Whether a chunk is being added or given back at this moment.
    pub fn growing(&self) -> bool {
        self.supply.growing.load(Ordering::Relaxed) != 0
    }

    /// Free blocks, those never used included, and the reserve not. Free zones count as long as the disk has
    /// room for them. A few loads, exact when nobody takes or frees one.
    #[inline]
    pub fn free_blocks(&self) -> u64 {
        let queued = self.supply.queued.load(Ordering::Acquire).saturating_sub(self.supply.reserve as u64);
        let next = Next::read(self.supply.next.load(Ordering::Acquire)).block;
        let refused = self.supply.refused.load(Ordering::Relaxed);
        let zones = if refused { 0 } else { u64::from(self.zones_to_take()) };
        let unused = self.supply.allocated().saturating_sub(next);
        queued + unused + zones * self.chunks.geometry.blocks_per_chunk
    }

    /// Free blocks that puts leave.
    pub fn reserve(&self) -> u64 {
        self.supply.reserve()
    }

    /// The figures of an error: so many blocks are wanted and not to be had.
    pub fn shortage(&self, blocks: u64) -> Shortage {
        let bytes = |blocks: u64| blocks * self.chunks.geometry.capacity();
        let (wanted, free) = (bytes(blocks), bytes(self.free_blocks()));
        Shortage { zones: self.space.zone_count(), wanted, free, reserved: bytes(self.reserve()) }
    }

    /// Free zones that may become chunks.
    #[inline]
    fn zones_to_take(&self) -> u32 {
        self.space.free_zones().saturating_sub(self.leave)
    }

    /// Takes a block, and the page to begin with: one of the node, or of where the caller runs, if there is
    /// one. `random` decides where the next client begins.
    pub(super) fn take_any_block(
        &self,
        random: u64,
        reach: Reach,
        node: Option<Node>,
    ) -> Result<(u64, u32), SlotError> {
        let pages = u64::from(self.chunks.geometry.pages);
        let drawn = if self.settings().random_first_page { (random % pages) as u32 } else { 0 };
        let node = node.or_else(|| self.space.node_here());
        let lane = self.lane(node);
        if let Some(block) = self.supply.take_near(self.supply.reserve, lane) {
            return Ok((block, drawn));
        }
        let fresh = match self.supply.is_spread() {
            false => self.take_fresh(drawn),
            true => self.take_of_several(node, lane).map(|block| Some((block?, drawn))),
        };
        if let Ok(Some(fresh)) = fresh {
            return Ok(fresh);
        }
        // The reserve is for a full disk too.
        match self.supply.take(reach.leaves(self.supply.reserve), lane) {
            Some(block) => Ok((block, drawn)),
            None => fresh?.ok_or_else(|| SlotError::Full(self.shortage(1))),
        }
    }

    /// A block of a new chunk, in a pool of several nodes, or a free one of another node. Without a zone on
    /// the node, blocks of others come before new chunks.
    fn take_of_several(&self, node: Option<Node>, lane: usize) -> Result<Option<u64>, SlotError> {
        let Supply { reserve, .. } = self.supply;
        let has_zone = |near: Node| self.space.parts().any(|(node, _, free)| node == near && free > 0);
        loop {
            let seen = self.supply.allocated();
            let grow = || self.grow(self.supply.growth.lock(), seen, node);
            let near = if node.is_some_and(has_zone) { grow() } else { Ok(false) };
            // Somebody else may have taken them already.
            if let (Ok(true), Some(block)) = (&near, self.supply.take_near(reserve, lane)) {
                return Ok(Some(block));
            }
            if let Some(block) = self.supply.take(reserve, lane) {
                if self.node_of(block) != node {
                    self.space.note_spill();
                }
                return Ok(Some(block));
            }
            if !near? && !grow()? {
                return Ok(None);
            }
        }
    }

    /// The next block that was never used; more are allocated if it is one of the last.
    fn take_fresh(&self, drawn: u32) -> Result<Option<(u64, u32)>, SlotError> {
        let supply = &self.supply;
        loop {
            point();
            let word = supply.next.load(Ordering::Acquire);
            let next = Next::read(word);
            let allocated = supply.allocated();
            if next.block >= allocated {
                if self.grow(supply.growth.lock(), allocated, None)? {
                    continue;
                }
                return Ok(None);
            }
            let after = Next { block: next.block + 1, page: drawn, ..next }.word();
            point();
            if supply.next.compare_exchange(word, after, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                let percent = u64::from(self.settings().fill_percent);
                if (next.block + 1) * 100 > allocated * percent {
                    // Ahead of need: no other thread waits for it, and if it fails, the client that needs it
                    // is told.
                    let _ = supply.growth.try_lock().map(|chunks| self.grow(chunks, allocated, None));
                }
                return Ok(Some((next.block, next.page)));
            }
        }
    }

    /// Adds a chunk, of the node if it has a zone, unless someone has since `seen` blocks were counted.
    /// `false` if no zone is left.
    fn grow(&self, mut chunks: SpinGuard<'_, u32>, seen: u64, node: Option<Node>) -> Result<bool, SlotError> {
        // Less than were seen, if chunks were given back meanwhile.
        let now = self.supply.allocated();
        if now > seen {
            return Ok(true);
        }
        if *chunks == self.chunks.limit() || self.zones_to_take() == 0 {
            return Ok(false);
        }
        self.supply.growing.fetch_add(1, Ordering::Relaxed);
        // Drawn first: the draw may begin the run, which must be durable before anything else changes.
        let life = self.draw();
        let zone = self.space.get_zone(node, self.leave);
        if let Ok(Some(zone)) = zone {
            self.lay_out(*chunks, zone, life);
        }
        self.supply.growing.fetch_sub(1, Ordering::Relaxed);
        self.supply.refused.store(zone.is_err(), Ordering::Relaxed);
        if zone?.is_none() {
            return Ok(false);
        }
        *chunks += 1;
        let allocated = now + self.chunks.geometry.blocks_per_chunk;
        if self.supply.is_spread() {
            self.supply.set_next(allocated);
            self.offer(now..allocated);
        }
        self.supply.allocated.store(allocated, Ordering::Release);
        Ok(true)
    }

    /// Makes a chunk of a zone: headers of all pages and its own durable, then the commit bit.
    fn lay_out(&self, chunk: u32, zone: ZoneId, life: u64) {
        let geometry = &self.chunks.geometry;
        let mut nonce = [0; 8];
        self.region().entropy(&mut nonce);
        let life = (life, u64::from_le_bytes(nonce));
        let header = ChunkHeader::new(&self.certifier, zone, life, chunk, geometry.blocks_per_chunk);
        let start = self.space.zone_offset(zone);
        self.region().write(start, header.as_bytes());
        self.region().flush(start, HEADER_LEN);
        let base = geometry.first_block(start);
        let seed = header.seed(&self.certifier);
        let pages = geometry.blocks_per_chunk * u64::from(geometry.pages);
        for number in 0..pages {
            let word = seed.page_word(number, BlockKind::Pages);
            self.write_header(base + number * geometry.page_size, word);
        }
        self.region().fence();
        self.space.commit_zone(zone);
        self.chunks.add(chunk, zone, base, seed);
    }

    /// Writes a page's header word, and no records behind it. Durable with the next fence.
    fn write_header(&self, at: u64, word: u64) {
        let words = self.chunks.geometry.shape.map_or(1, |shape| shape.bitset_words);
        let mut bytes = vec![0; (LOG_START + u64::from(words) * 8) as usize];
        bytes[..8].copy_from_slice(&word.to_le_bytes());
        self.region().write(at, &bytes);
        self.region().flush(at, bytes.len() as u64);
    }

    /// Sets the kind of block in a page's header. Durable with the next fence.
    fn set_page_word(&self, page: &Page<'_>, kind: BlockKind) {
        self.region().store(page.at, page.header_word(kind));
        self.region().flush(page.at, 8);
    }

    /// Makes a block that was taken ready for records of this kind: empty, counted as used, and not free,
    /// durably.
    pub(super) fn prepare(&self, block: u64, kind: BlockKind) -> Result<(), SlotError> {
        let first = self.page_at(block, 0)?;
        let was_free = first.state.state() != BlockState::Fresh;
        // From here on a failing thread leaves a block that nobody takes until recovery.
        first.state.set_state(BlockState::Owned);
        if was_free {
            self.empty(block);
        }
        if let Some(dead) = self.chunks.dead(block) {
            dead.reset();
        }
        let per_chunk = self.chunks.geometry.blocks_per_chunk;
        // Its fence is also that of the emptied pages.
        self.count_used((block / per_chunk) as u32, block % per_chunk + 1)?;
        if was_free || kind != BlockKind::Pages {
            self.set_page_word(&first, kind);
            self.region().fence();
        }
        first.state.set_kind(kind);
        Ok(())
    }

    /// Empties the pages of a free block; it stays free. Durable with the next fence.
    fn empty(&self, block: u64) {
        for number in 0..self.chunks.geometry.pages {
            let Some(page) = self.chunks.page(block, number) else { return };
            // A reader that is still here must notice.
            let _held = self.lock(page);
            let kind = if number == 0 { BlockKind::Free } else { BlockKind::Pages };
            self.write_header(page.at, page.header_word(kind));
        }
    }

    /// Counts the first `blocks` of a chunk as used, durably.
    fn count_used(&self, chunk: u32, blocks: u64) -> Result<(), Damage> {
        let Some((at, seed)) = self.used_at(chunk) else { return Ok(()) };
        let mut word = self.region().load(at);
        while seed.read_used(word, at)? < blocks {
            match self.region().compare_exchange(at, word, seed.used_word(blocks)) {
                Ok(_) => break,
                Err(found) => word = found,
            }
        }
        // Also where another client has counted further: its flush need not have reached its fence.
        self.region().flush(at / LINE * LINE, LINE);
        self.region().fence();
        Ok(())
    }

    /// Marks a block as free. Durable with the next fence. In DRAM it keeps its kind until it is used again:
    /// a late reader with an older offset finds its pages as they were.
    pub(super) fn mark_free(&self, block: u64) {
        if let Some(first) = self.chunks.page(block, 0) {
            self.set_page_word(&first, BlockKind::Free);
            first.state.set_state(BlockState::Free);
        }
    }

    /// Marks blocks as free, durably, that were passed over and that nobody has written to: those of the
    /// reserve. So the next recovery finds nothing to do. Nobody else uses the heap, and the run has begun.
    pub fn settle_unused(&self) {
        let per_chunk = self.chunks.geometry.blocks_per_chunk;
        for number in 0..self.supply.allocated() {
            // One that is not counted as used is taken for fresh by the next recovery, and has to look like
            // that.
            let used = self.used_of_chunk((number / per_chunk) as u32);
            let is_counted = used.is_ok_and(|used| number % per_chunk < used);
            let is_fresh = self.chunks.block(number).is_some_and(|block| block.state() == BlockState::Fresh);
            if is_counted && is_fresh {
                self.mark_free(number);
            }
        }
        self.region().fence();
    }

    /// Fills the reserve, as far as there are blocks. A heap that has some does without where the disk is
    /// full.
    pub(super) fn fill_reserve(&self) -> Result<(), SlotError> {
        while self.supply.queued.load(Ordering::Acquire) < self.supply.reserve as u64 {
            let has_more = match self.supply.is_spread() {
                false => {
                    self.take_fresh(0).map(|fresh| fresh.inspect(|(block, _)| self.offer([*block])).is_some())
                }
                true => self.grow(self.supply.growth.lock(), self.supply.allocated(), None),
            };
            match has_more {
                Ok(true) => {}
                Err(error) if self.supply.allocated() == 0 => return Err(error),
                Ok(false) | Err(_) => break,
            }
        }
        Ok(())
    }

    /// Gives chunks back to the space that nobody uses any of, from the end of the list on (section 4.6).
    /// Returns how many.
    ///
    /// Free blocks that have been recycled count as unused. The reserve stays.
    pub fn release_tail(&self) -> u32 {
        let mut chunks = self.supply.growth.lock();
        let mut released = 0;
        self.supply.growing.fetch_add(1, Ordering::Relaxed);
        while *chunks > 0 && self.withdraw_blocks(*chunks - 1) {
            *chunks -= 1;
            let zone = self.chunks.zone(*chunks);
            self.chunks.remove(*chunks);
            if let Some(zone) = zone {
                self.space.release_zone(zone);
            }
            released += 1;
        }
        self.supply.growing.fetch_sub(1, Ordering::Relaxed);
        released
    }

    /// Takes all blocks of the last chunk out of circulation, if all of them are unused.
    fn withdraw_blocks(&self, chunk: u32) -> bool {
        let supply = &self.supply;
        let per_chunk = self.chunks.geometry.blocks_per_chunk;
        let first = u64::from(chunk) * per_chunk;
        if !self.chunks.exists(chunk) {
            return false;
        }
        let mut queue = supply.queue.lock();
        // A client that sees the lower count takes nothing of this chunk; one that saw the higher count
        // changes the word before this does.
        supply.allocated.store(first, Ordering::Release);
        loop {
            point();
            let word = supply.next.load(Ordering::Acquire);
            let next = Next::read(word);
            let here = queue.count_from(first);
            let taken = next.block.saturating_sub(first) as usize;
            if here < taken || queue.len() - here < supply.reserve {
                supply.allocated.store(first + per_chunk, Ordering::Release);
                return false;
            }
            let block = next.block.min(first);
            let after = Next { generation: (next.generation + 1) & 0xffff, block, ..next }.word();
            if supply.next.compare_exchange(word, after, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                queue.cut(first);
                supply.queued.store(queue.len() as u64, Ordering::Release);
                return true;
            }
        }
    }
}
