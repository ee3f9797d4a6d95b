//! The list in DRAM that leads from a block's number to its place (section 3.2.1), and the state in DRAM of
//! each block and page.
//!
//! A zone is a chunk. The list has an entry for every zone that the pool could give, so it never moves under
//! its readers. The state of a chunk's pages is made when the chunk first exists, and stays when the chunk is
//! given back. The version of a page must not begin again while someone may remember the old one.

use super::format::{BlockKind, Seed};
use super::geometry::Geometry;
use super::offset::Offset;
use super::pacman::Dead;
use crate::space::ZoneId;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use quipu_medium::arch::{prefetch, prefetch_to_write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8};

/// The state of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum BlockState {
    /// Its pages are as they were laid out: empty.
    Fresh,
    /// A client writes to it.
    Owned,
    /// A client has left it with room in it.
    Left,
    /// It holds records, and nobody writes to it.
    Idle,
    /// A cleaner moves its records.
    Cleaning,
    /// Marked as free.
    Free,
    /// Part of a value, or about to be.
    Overflow,
    /// It holds bytes that cannot be read.
    Damaged,
}

impl BlockState {
    fn from_byte(byte: u8) -> BlockState {
        use BlockState::*;
        [Fresh, Owned, Left, Idle, Cleaning, Free, Overflow, Damaged][usize::from(byte)]
    }
}

/// Where the number of records stands above their bytes, which are fewer than those of a block.
const LIVE_SHIFT: u32 = 40;
const ONE_LIVE: u64 = 1 << LIVE_SHIFT;

/// A block, as DRAM knows it.
pub(super) struct Block {
    state: AtomicU8,
    kind: AtomicU8,
    /// Records that count, and their bytes below: changed by one instruction.
    count: AtomicU64,
    /// A record names it as part of its value; only recovery asks.
    pub(super) named: AtomicBool,
}

impl Block {
    fn new() -> Block {
        Block {
            state: AtomicU8::new(BlockState::Fresh as u8),
            kind: AtomicU8::new(BlockKind::Pages as u8),
            count: AtomicU64::new(0),
            named: AtomicBool::new(false),
        }
    }

    pub(super) fn state(&self) -> BlockState {
        BlockState::from_byte(self.state.load(Ordering::Acquire))
    }

    pub(super) fn set_state(&self, state: BlockState) {
        self.state.store(state as u8, Ordering::Release);
    }

    /// Goes from one state to another, if it is in the first.
    pub(super) fn advance(&self, from: BlockState, to: BlockState) -> bool {
        self.state.compare_exchange(from as u8, to as u8, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    pub(super) fn is_large(&self) -> bool {
        self.kind.load(Ordering::Acquire) == BlockKind::Large as u8
    }

    pub(super) fn set_kind(&self, kind: BlockKind) {
        self.kind.store(kind as u8, Ordering::Release);
    }

    /// Records that count.
    pub(super) fn live(&self) -> u64 {
        self.count.load(Ordering::Acquire) >> LIVE_SHIFT
    }

    /// Their bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.count.load(Ordering::Acquire) & (ONE_LIVE - 1)
    }

    /// Counts a record that counts from now on, or soon.
    #[inline]
    pub(super) fn add(&self, bytes: u64) {
        self.count.fetch_add(ONE_LIVE + bytes, Ordering::Relaxed);
    }

    /// Counts a record that counts no more.
    #[inline]
    pub(super) fn remove(&self, bytes: u64) {
        self.count.fetch_sub(ONE_LIVE + bytes, Ordering::Relaxed);
    }
}

/// A page, found.
#[derive(Clone, Copy)]
pub(super) struct Page<'h> {
    /// Its first byte in the region.
    pub(super) at: u64,
    /// Its block.
    pub(super) block: u64,
    /// Its number in the block.
    pub(super) page: u32,
    /// Its number in the chunk.
    number: u64,
    pub(super) seed: Seed,
    pub(super) lock: &'h AtomicU32,
    pub(super) state: &'h Block,
}

impl<'h> Page<'h> {
    #[inline]
    pub(super) fn spot(&self) -> Spot<'h> {
        Spot { at: self.at, lock: self.lock }
    }

    /// Whether two are one.
    pub(super) fn is(&self, other: &Page<'_>) -> bool {
        (self.block, self.page) == (other.block, other.page)
    }

    /// Asks for its lock, to look at it.
    #[inline]
    pub(super) fn prefetch_lock(&self) {
        prefetch(std::ptr::from_ref(self.lock));
    }

    /// Prefetches its lock and the state of its block, to change them.
    #[inline]
    pub(super) fn prefetch_to_change(&self) {
        prefetch_to_write(std::ptr::from_ref(self.lock));
        prefetch_to_write(std::ptr::from_ref(self.state));
    }

    /// The header word of the page for a block of this kind.
    pub(super) fn header_word(&self, kind: BlockKind) -> u64 {
        self.seed.page_word(self.number, kind)
    }

    /// The kind of block that a header word says, if it is the word of this page.
    pub(super) fn kind_of(&self, word: u64) -> Option<BlockKind> {
        self.seed.read_page_word(self.number, word)
    }

    /// The place of an entry at this position, on which its check depends.
    pub(super) fn place(&self, position: u32) -> u64 {
        self.number << 20 | u64::from(position)
    }
}

/// Where a page is, and its lock.
#[derive(Clone, Copy)]
pub(super) struct Spot<'h> {
    /// First byte of the page.
    pub(super) at: u64,
    pub(super) lock: &'h AtomicU32,
}

/// A page and the state of its chunk.
struct Located<'h> {
    chunk: &'h Chunk,
    state: &'h State,
    /// Number of the block in the chunk.
    index: u64,
    /// Number of the page in the chunk.
    number: u64,
    spot: Spot<'h>,
}

/// A chunk's state in DRAM. It stays for the next chunk of this number.
struct State {
    locks: Box<[AtomicU32]>,
    blocks: Box<[Block]>,
    /// One for each block, or none at all.
    dead: Box<[Dead]>,
}

/// A chunk, or the place for one.
#[derive(Default)]
struct Chunk {
    /// First byte of its first block; 0 if there is no such chunk.
    base: AtomicU64,
    zone: AtomicU32,
    seed: AtomicU64,
    state: OnceLock<State>,
}

/// See the module's documentation.
pub(super) struct Chunks {
    list: Box<[Chunk]>,
    pub(super) geometry: Geometry,
    /// Whether dead records are known here, and not by marks.
    pub(super) knows_dead: bool,
}

impl Chunks {
    pub(super) fn new(zones: u32, geometry: Geometry, knows_dead: bool) -> Chunks {
        Chunks { list: (0..zones).map(|_| Chunk::default()).collect(), geometry, knows_dead }
    }

    fn get(&self, chunk: u64) -> Option<(&Chunk, &State, u64)> {
        let chunk = self.list.get(usize::try_from(chunk).ok()?)?;
        let base = chunk.base.load(Ordering::Acquire);
        if base == 0 { None } else { chunk.state.get().map(|state| (chunk, state, base)) }
    }

    /// Whether there is a chunk of this number.
    pub(super) fn exists(&self, chunk: u32) -> bool {
        self.get(u64::from(chunk)).is_some()
    }

    /// Most chunks that there can be.
    pub(super) fn limit(&self) -> u32 {
        self.list.len() as u32
    }

    /// The zone of a chunk.
    pub(super) fn zone(&self, chunk: u32) -> Option<ZoneId> {
        self.get(u64::from(chunk)).map(|(chunk, ..)| ZoneId(chunk.zone.load(Ordering::Acquire)))
    }

    /// The seed of a chunk's checks, from its life.
    pub(super) fn seed(&self, chunk: u32) -> Option<Seed> {
        self.get(u64::from(chunk)).map(|(chunk, ..)| Seed(chunk.seed.load(Ordering::Acquire)))
    }

    /// Makes a chunk known whose pages have been laid out. Nobody else adds one of this number meanwhile.
    pub(super) fn add(&self, chunk: u32, zone: ZoneId, base: u64, seed: Seed) {
        let Geometry { blocks_per_chunk, pages, .. } = self.geometry;
        let entry = &self.list[chunk as usize];
        let state = entry.state.get_or_init(|| State {
            locks: (0..blocks_per_chunk * u64::from(pages)).map(|_| AtomicU32::new(0)).collect(),
            blocks: (0..blocks_per_chunk).map(|_| Block::new()).collect(),
            dead: (0..blocks_per_chunk)
                .filter(|_| self.knows_dead)
                .map(|_| Dead::new(self.geometry.block_size))
                .collect(),
        });
        for block in &state.blocks {
            block.set_kind(BlockKind::Pages);
            block.set_state(BlockState::Fresh);
        }
        entry.zone.store(zone.0, Ordering::Relaxed);
        entry.seed.store(seed.0, Ordering::Relaxed);
        entry.base.store(base, Ordering::Release);
    }

    /// Forgets a chunk. The state of its pages stays.
    pub(super) fn remove(&self, chunk: u32) {
        self.list[chunk as usize].base.store(0, Ordering::Release);
    }

    /// The block of this number, if its chunk exists.
    #[inline]
    pub(super) fn block(&self, block: u64) -> Option<&Block> {
        let (chunk, index) = self.geometry.chunk_of(block);
        let (_, state, _) = self.get(chunk)?;
        state.blocks.get(index as usize)
    }

    /// The dead records of the block of this number, if they are known here.
    #[inline]
    pub(super) fn dead(&self, block: u64) -> Option<&Dead> {
        let (chunk, index) = self.geometry.chunk_of(block);
        let (_, state, _) = self.get(chunk)?;
        state.dead.get(index as usize)
    }

    /// Where the page of this number is.
    #[inline(always)]
    fn locate(&self, block: u64, page: u32) -> Option<Located<'_>> {
        let Geometry { pages, page_size, .. } = self.geometry;
        let (number, index) = self.geometry.chunk_of(block);
        let (chunk, state, base) = self.get(number)?;
        let number = index * u64::from(pages) + u64::from(page);
        // Blocks have their pages without a gap.
        let at = base + number * page_size;
        let lock = state.locks.get(number as usize).filter(|_| page < pages)?;
        Some(Located { chunk, state, index, number, spot: Spot { at, lock } })
    }

    /// The page of this number.
    #[inline]
    pub(super) fn page(&self, block: u64, page: u32) -> Option<Page<'_>> {
        let Located { chunk, state, index, number, spot: Spot { at, lock } } = self.locate(block, page)?;
        let (seed, state) = (Seed(chunk.seed.load(Ordering::Acquire)), state.blocks.get(index as usize)?);
        Some(Page { at, block, page, number, seed, lock, state })
    }

    /// The first `count` pages of a block.
    pub(super) fn pages(&self, block: u64, count: u32) -> impl Iterator<Item = Page<'_>> {
        (0..count).filter_map(move |page| self.page(block, page))
    }

    /// The page that an offset leads to.
    #[inline]
    pub(super) fn page_of(&self, offset: Offset) -> Option<Page<'_>> {
        let bits = self.geometry.page_bits;
        self.page(offset.block(bits), offset.page(bits))
    }

    /// Place and lock of the page that an offset leads to, for a change of one record.
    #[inline(always)]
    pub(super) fn spot_of(&self, offset: Offset) -> Option<Spot<'_>> {
        let bits = self.geometry.page_bits;
        self.locate(offset.block(bits), offset.page(bits)).map(|located| located.spot)
    }
}
