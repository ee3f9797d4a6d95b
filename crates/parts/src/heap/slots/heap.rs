//! [`SlotHeap`]: its parts, and questions to the whole of it.

use super::blocks::Supply;
use super::chunks::{BlockState, Chunks, Page};
use super::error::{Damage, SlotError};
use super::format::{ChunkHeader, HEADER_LEN, Seed, USED_AT};
use super::geometry::{Geometry, SlotShape};
use super::locks::Crossings;
use super::offset::{Offset, SizedOffset};
use super::settings::SlotSettings;
use crate::heap::Clock;
use crate::record::Certifier;
use crate::space::{Space, ZoneId};
use crate::twin;
use quipu_medium::Region;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Pages of slots or logs, grouped in blocks. Shared by all clients, each of which writes to a block of its
/// own. See the module's documentation.
pub struct SlotHeap {
    pub(super) space: Arc<Space>,
    region: Region,
    /// Zones that the heap leaves free for others.
    pub(super) leave: u32,
    pub(super) certifier: Certifier,
    clock: Clock,
    newest_life: u64,
    settings: SlotSettings,
    pub(super) chunks: Chunks,
    pub(super) supply: Supply,
    pub(super) crossings: Crossings,
}

/// The other users of the zones of a heap's pool.
#[derive(Clone, Debug, Default)]
pub struct Neighbor {
    /// Zones that are not the heap's.
    pub zones: Vec<ZoneId>,
    /// Free zones that the heap leaves, so that others can grow.
    pub leave: u32,
}

/// A record's place, and the number that it was written with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// Where it is.
    pub offset: Offset,
    /// Its sequence number.
    pub sequence: u64,
}

/// How much of the heap is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotUsage {
    /// Blocks of all chunks.
    pub allocated_blocks: u64,
    /// Blocks that puts may fill: those, and those of the chunks that free zones would make, but the reserve.
    pub usable_blocks: u64,
    /// Of all blocks, those that were handed out and are not free.
    pub used_blocks: u64,
    /// Of the used blocks, those that clients write to, or have left with room.
    pub open_blocks: u64,
    /// Of the used blocks, those that values fill.
    pub value_blocks: u64,
    /// Records that count.
    pub live_records: u64,
    /// Their bytes, with sequence numbers, length words and alignment. A value that fills blocks of its own
    /// is not in it.
    pub live_bytes: u64,
    /// Bytes that a block has for records.
    pub block_bytes: u64,
}

impl SlotHeap {
    /// The heap in the zones of `space` except for its neighbor's. Where there are chunks already, their
    /// blocks must be [scanned](SlotHeap::scan) and [opened](SlotHeap::open_blocks) before the first record
    /// is placed; this call changes nothing. Only cleaners get at the last `reserve` free blocks.
    ///
    /// Also returns the damage found. A zone without a valid header is not part of the heap.
    ///
    /// # Errors
    /// [`SlotError::Settings`] if the settings and the zones do not go together.
    pub fn new(
        neighbor: &Neighbor,
        space: impl Into<Arc<Space>>,
        certifier: Certifier,
        clock: Clock,
        settings: SlotSettings,
        reserve: usize,
    ) -> Result<(SlotHeap, Vec<Damage>), SlotError> {
        let space: Arc<Space> = space.into();
        let geometry = Geometry::new(&settings, space.zone_size())?;
        let most = u64::from(space.zone_count()) * geometry.blocks_per_chunk;
        if settings.techniques.reduce && most > SizedOffset::most_blocks(geometry.page_bits) {
            return Err(SlotError::Settings {
                reason: "more blocks than a word of the index can name; make pages or blocks larger",
            });
        }
        let chunks = Chunks::new(space.zone_count(), geometry, settings.techniques.reduce);
        let supply = Supply::new(reserve, &space);
        let crossings = Crossings::default();
        let (region, leave) = (space.region().clone(), neighbor.leave);
        let mut heap = SlotHeap {
            space,
            region,
            leave,
            certifier,
            clock,
            newest_life: 0,
            settings,
            chunks,
            supply,
            crossings,
        };
        let damages = heap.find_chunks(&neighbor.zones);
        Ok((heap, damages))
    }

    /// Reads the headers of all committed zones but the neighbor's.
    fn find_chunks(&mut self, others: &[ZoneId]) -> Vec<Damage> {
        let mut damages = Vec::new();
        let mut found = 0;
        let others: BTreeSet<&ZoneId> = others.iter().collect();
        for zone in self.space.committed_zones().into_iter().filter(|zone| !others.contains(zone)) {
            let offset = self.space.zone_offset(zone);
            match self.read_header(zone) {
                Ok(header) => {
                    let chunk = header.chunk.get();
                    let base = self.chunks.geometry.first_block(offset);
                    self.chunks.add(chunk, zone, base, header.seed(&self.certifier));
                    self.newest_life = self.newest_life.max(header.life());
                    found = found.max(chunk + 1);
                }
                Err(damage) => damages.push(damage),
            }
        }
        self.supply.set_chunks(found, self.chunks.geometry.blocks_per_chunk);
        damages
    }

    /// The header of a zone, if it is one of a chunk that there can be and is not yet.
    fn read_header(&self, zone: ZoneId) -> Result<ChunkHeader, Damage> {
        let offset = self.space.zone_offset(zone);
        let mut bytes = [0; HEADER_LEN as usize];
        self.region().read_racing(offset, &mut bytes);
        let header: ChunkHeader = zerocopy::transmute!(bytes);
        let (chunk, blocks) = (header.chunk.get(), u64::from(header.blocks.get()));
        let is_possible = header.is_valid(&self.certifier, zone)
            && blocks == self.chunks.geometry.blocks_per_chunk
            && chunk < self.chunks.limit()
            && !self.chunks.exists(chunk);
        let damaged = Damage { what: "the header of a chunk", offset };
        if !is_possible {
            return Err(damaged);
        }
        let used = header.seed(&self.certifier).read_used(header.used(), offset + USED_AT)?;
        if used <= blocks { Ok(header) } else { Err(damaged) }
    }

    /// The offset of a position of a page.
    #[inline]
    pub(super) fn offset_in(&self, page: &Page<'_>, position: u32) -> Offset {
        Offset::new(page.block, page.page, position, self.chunks.geometry.page_bits)
    }

    /// A page that a caller of the heap has named.
    #[inline]
    pub(super) fn page_of(&self, offset: Offset) -> Result<Page<'_>, SlotError> {
        let bits = self.chunks.geometry.page_bits;
        self.page_at(offset.block(bits), offset.page(bits))
    }

    /// A page that there should be.
    #[inline]
    pub(super) fn page_at(&self, block: u64, page: u32) -> Result<Page<'_>, SlotError> {
        let missing =
            SlotError::Damaged { what: "a reference to a block that does not exist, number", offset: block };
        self.chunks.page(block, page).ok_or(missing)
    }

    /// The newest life of the chunks that were there at the start. The clock must [pass](Clock::pass) it
    /// before the first draw, if it is a number that the clock can have drawn.
    pub fn newest_life(&self) -> u64 {
        self.newest_life
    }

    /// Where the page of an offset begins in the pool, to name it to people; 0 if there is no such page.
    pub fn page_start(&self, offset: Offset) -> u64 {
        self.chunks.page_of(offset).map_or(0, |page| page.at)
    }

    /// Where the count of used blocks of a chunk stands, and the seed of its check, if there is such a chunk.
    pub(super) fn used_at(&self, chunk: u32) -> Option<(u64, Seed)> {
        let (zone, seed) = (self.chunks.zone(chunk)?, self.chunks.seed(chunk)?);
        Some((self.space.zone_offset(zone) + USED_AT, seed))
    }

    /// Blocks of a chunk that have been handed out at some time: all below this number.
    pub(super) fn used_of_chunk(&self, chunk: u32) -> Result<u64, Damage> {
        self.used_at(chunk).map_or(Ok(0), |(at, seed)| seed.read_used(self.region().load(at), at))
    }

    /// The allocator beneath.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// The region beneath.
    #[inline]
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Zones that are chunks.
    pub fn zones(&self) -> usize {
        (0..self.chunks.limit()).filter(|chunk| self.chunks.exists(*chunk)).count()
    }

    /// The pool's certifier.
    #[inline]
    pub fn certifier(&self) -> &Certifier {
        &self.certifier
    }

    /// The pool's clock.
    #[inline]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Draws the next sequence number.
    #[inline]
    pub fn draw(&self) -> u64 {
        self.clock.draw(&self.space)
    }

    /// The settings.
    #[inline]
    pub fn settings(&self) -> &SlotSettings {
        &self.settings
    }

    /// How a page of slots is divided; `None` if pages are logs.
    pub fn shape(&self) -> Option<SlotShape> {
        self.chunks.geometry.shape
    }

    /// Whether `a` counts and `b` does not, where both are records of one key.
    pub fn supersedes(&self, a: Location, b: Location) -> bool {
        if twin!(TiesByBlock) {
            return a.offset > b.offset;
        }
        (a.sequence, a.offset) > (b.sequence, b.offset)
    }

    /// How much is in use, summed over all blocks.
    pub fn usage(&self) -> SlotUsage {
        let allocated = self.supply.allocated();
        let geometry = &self.chunks.geometry;
        let still = u64::from(self.space().free_zones()) * geometry.blocks_per_chunk;
        let mut usage = SlotUsage {
            allocated_blocks: allocated,
            usable_blocks: (allocated + still).saturating_sub(self.supply.reserve()),
            block_bytes: geometry.capacity(),
            ..SlotUsage::default()
        };
        for block in (0..allocated).filter_map(|block| self.chunks.block(block)) {
            usage.used_blocks += u64::from(!matches!(block.state(), BlockState::Free | BlockState::Fresh));
            usage.open_blocks += u64::from(matches!(block.state(), BlockState::Owned | BlockState::Left));
            usage.value_blocks += u64::from(block.state() == BlockState::Overflow);
            usage.live_records += block.live();
            usage.live_bytes += block.bytes();
        }
        usage
    }
}
