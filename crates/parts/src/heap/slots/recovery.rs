//! Finding all records again (section 4.7): after a crash and after a close alike.
//!
//! The caller divides the blocks among its threads, [scans](SlotHeap::scan), settles which of two records of
//! a key counts, and [discards](SlotHeap::discard) the others; then the blocks are
//! [opened](SlotHeap::open_blocks). Everything may be cut off by a crash and done again: until the end
//! nothing changes but marks of records that do not count, and blocks without records that become free.
//!
//! Recovery makes durable what it has read before anyone acts on it: after a crash of the process alone,
//! marks and updated words may still be in the processor's cache.

use super::chunks::{BlockState, Page};
use super::error::{Damage, SlotError};
use super::format::{BlockKind, Entry, EntryKind, LOG_START};
use super::geometry::Geometry;
use super::heap::{Location, SlotHeap};
use super::log::FIRST_ENTRY;
use super::offset::{Offset, SizedOffset};
use super::read::Stands;
use crate::sync::atomic::Ordering;
use crate::twin;
use quipu_medium::LINE;
use std::collections::BTreeSet;
use std::ops::Range;

/// A record that a scan found.
#[derive(Clone, Copy, Debug)]
pub struct FoundSlot<'a> {
    /// Where it is.
    pub offset: Offset,
    /// Its key.
    pub key: &'a [u8],
    /// The rest of what is known of it.
    pub stands: Stands,
}

impl FoundSlot<'_> {
    /// Where it is, and its sequence number.
    pub fn location(&self) -> Location {
        Location { offset: self.offset, sequence: self.stands.sequence }
    }

    /// Where it is, with its length.
    pub fn sized(&self) -> SizedOffset {
        SizedOffset::new(self.offset, if self.stands.has_blocks { 0 } else { self.stands.len })
    }
}

impl SlotHeap {
    /// Blocks that a recovery has to look at: all with a lower number.
    pub fn blocks(&self) -> u64 {
        self.supply.allocated()
    }

    /// Passes every record of these blocks to `found`; of one key there may be several. Others may scan other
    /// blocks at the same time. The records are durable when this returns, so nobody acts on one before.
    ///
    /// Returns the damage found; the rest of a damaged page is passed over.
    pub fn scan(&self, blocks: Range<u64>, mut found: impl FnMut(&FoundSlot<'_>)) -> Vec<Damage> {
        let mut damages = Vec::new();
        for block in blocks {
            let Some(state) = self.chunks.block(block) else { continue };
            let before = damages.len();
            match self.was_used(block) {
                Ok(true) => damages.extend(self.scan_used(block, &mut found)),
                Ok(false) => continue,
                Err(damage) => damages.push(damage),
            }
            if damages.len() > before {
                state.set_state(BlockState::Damaged);
            }
        }
        self.region().fence();
        damages
    }

    /// Notes the kind of a block that was used, and passes its records to `found`. Durable with the next
    /// fence.
    fn scan_used(&self, block: u64, found: &mut impl FnMut(&FoundSlot<'_>)) -> Vec<Damage> {
        let Some(first) = self.chunks.page(block, 0) else { return Vec::new() };
        let kind = self.kind_of(&first).unwrap_or(BlockKind::Pages);
        first.state.set_kind(kind);
        first.state.set_state(match kind {
            BlockKind::Free => BlockState::Free,
            BlockKind::Overflow => BlockState::Overflow,
            BlockKind::Pages | BlockKind::Large => BlockState::Idle,
        });
        let mut damages = Vec::new();
        if first.state.state() == BlockState::Idle {
            damages = self.scan_pages(block, kind, &mut |page, record| {
                page.state.add(record.stands.len);
                if let Some(dead) = self.chunks.dead(block) {
                    dead.found(record);
                }
                found(record);
            });
        }
        let geometry = &self.chunks.geometry;
        for page in self.chunks.pages(block, geometry.pages).filter(|_| !twin!(PagesUnflushed)) {
            self.region().flush(page.at, geometry.page_size);
        }
        damages
    }

    /// Whether a block was handed out at some time. One that was not is as it was laid out: before anything
    /// else of a block changes, it is durably counted as used.
    ///
    /// # Errors
    /// [`Damage`] if it is not, so the count is one of earlier; or if that does not prove itself.
    fn was_used(&self, block: u64) -> Result<bool, Damage> {
        let Geometry { blocks_per_chunk, pages, shape, .. } = self.chunks.geometry;
        if block % blocks_per_chunk < self.used_of_chunk((block / blocks_per_chunk) as u32)? {
            return Ok(true);
        }
        let words = shape.map_or(1, |shape| shape.bitset_words);
        for page in self.chunks.pages(block, pages) {
            let is_empty =
                (0..words).all(|word| self.region().load(page.at + LOG_START + 8 * u64::from(word)) == 0);
            if self.kind_of(&page) != Some(BlockKind::Pages) || !is_empty {
                return Err(Damage { what: "a page of a block that was never used", offset: page.at });
            }
        }
        Ok(false)
    }

    /// Passes every record of the heap to `found`, except those that are known to be dead, and returns the
    /// damage found, blocks of values that no record names among it. Nobody writes meanwhile.
    pub fn verify(&self, mut found: impl FnMut(&FoundSlot<'_>)) -> Vec<Damage> {
        let mut damages = Vec::new();
        for block in (0..self.blocks()).filter_map(|block| self.chunks.block(block)) {
            block.named.store(false, Ordering::Relaxed);
        }
        for block in 0..self.blocks() {
            let Some(first) = self.chunks.page(block, 0) else { continue };
            // The blocks of a chunk share a count.
            damages.extend(self.was_used(block).err().filter(|damage| damages.last() != Some(damage)));
            match first.state.state() {
                BlockState::Owned | BlockState::Left | BlockState::Idle | BlockState::Damaged => {}
                _ => continue,
            }
            let kind = self.kind_of(&first).unwrap_or(BlockKind::Pages);
            let (before, mut live, mut bytes) = (damages.len(), 0, 0);
            damages.extend(self.scan_pages(block, kind, &mut |page, record| {
                if !self.is_dead(page, record.offset.position()) {
                    (live, bytes) = (live + 1, bytes + record.stands.len);
                    found(record);
                }
            }));
            if damages.len() == before && (live, bytes) != (first.state.live(), first.state.bytes()) {
                damages.push(Damage { what: "the count of what a block holds", offset: first.at });
            }
        }
        for first in (0..self.blocks()).filter_map(|block| self.chunks.page(block, 0)) {
            if first.state.state() == BlockState::Overflow && !first.state.named.load(Ordering::Relaxed) {
                damages.push(Damage { what: "a block of a value that no record names", offset: first.at });
            }
        }
        damages
    }

    /// Whether the block of an offset is one whose records a [scan](SlotHeap::scan) has found: not a free
    /// one, which may be given away, nor part of a value. For a recovery that compares an index with the
    /// records before the blocks are opened.
    pub fn holds_records(&self, offset: Offset) -> bool {
        self.chunks.page_of(offset).is_some_and(|page| page.state.state() == BlockState::Idle)
    }

    /// Passes every record of a block of this kind to `found`. Returns what is damaged; the rest of a damaged
    /// page is passed over.
    fn scan_pages(
        &self,
        block: u64,
        kind: BlockKind,
        found: &mut impl FnMut(&Page<'_>, &FoundSlot<'_>),
    ) -> Vec<Damage> {
        let count = if kind == BlockKind::Large { 1 } else { self.chunks.geometry.pages };
        let mut scan = |page: Page<'_>| self.scan_page(&page, kind, &mut |record| found(&page, record)).err();
        self.chunks.pages(block, count).filter_map(&mut scan).collect()
    }

    fn scan_page(
        &self,
        page: &Page<'_>,
        kind: BlockKind,
        found: &mut impl FnMut(&FoundSlot<'_>),
    ) -> Result<(), Damage> {
        if self.kind_of(page) != Some(kind) {
            return Err(Damage { what: "the header of a page", offset: page.at });
        }
        let mut record = Vec::new();
        let at = |position| self.offset_in(page, position);
        if let Some(shape) = self.shape() {
            for slot in self.set_slots(page)? {
                let sequence = self.copy_slot(page, slot, 0, &mut record);
                let key = &record[..shape.key as usize];
                let stands = Stands { sequence, len: shape.size, is_tombstone: false, has_blocks: false };
                found(&FoundSlot { offset: at(slot), key, stands });
            }
            return Ok(());
        }
        let mut position = FIRST_ENTRY;
        while let Some(entry) = self.read_entry(page, position)? {
            let is_tombstone = entry.kind == EntryKind::Tombstone;
            if is_tombstone && !self.knows_dead() {
                let offset = page.at + u64::from(position) * 8;
                return Err(Damage { what: "a deletion in a pool where marks tell, which", offset });
            }
            if entry.set && entry.kind != EntryKind::Part {
                let has_blocks = entry.kind == EntryKind::Overflow;
                if has_blocks {
                    self.name_blocks(page, position, &entry)?;
                }
                record.clear();
                let sequence = self.append_entry(page, position, &entry, 0, &mut record);
                let stands = Stands { sequence, len: entry.record_len(), is_tombstone, has_blocks };
                found(&FoundSlot { offset: at(position), key: &record[..entry.key as usize], stands });
            }
            position = SlotHeap::behind(position, &entry);
        }
        Ok(())
    }

    /// Notes that the blocks of a value are named.
    fn name_blocks(&self, page: &Page<'_>, position: u32, entry: &Entry) -> Result<(), Damage> {
        let (_, blocks) = self.read_descriptor(page, position, entry)?;
        // A block that is named twice would be given away twice.
        if blocks.iter().collect::<BTreeSet<_>>().len() < blocks.len() {
            return Err(Damage { what: "the blocks of a value", offset: page.at + u64::from(position) * 8 });
        }
        for block in blocks.iter().filter_map(|block| self.chunks.block(*block)) {
            block.named.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Lets go a record that recovery found and that [does not count](SlotHeap::supersedes) beside `winner`,
    /// or not at all, durably. To be called after all scans and before
    /// [`open_blocks`](SlotHeap::open_blocks), by one thread for each key.
    ///
    /// # Errors
    /// [`SlotError::Damaged`] if the loser is no record.
    pub fn discard(&self, loser: Location, winner: Option<Location>) -> Result<(), SlotError> {
        // Copies that reclamation has left share the blocks of their value.
        let is_copy = winner.is_some_and(|winner| winner.sequence == loser.sequence);
        let blocks = if is_copy { Vec::new() } else { self.overflow_of(loser.offset)? };
        let guard = self.lock(self.page_of(loser.offset)?);
        if !twin!(LoserLeft) {
            self.clear(&guard, loser.offset)?;
        }
        for block in blocks.iter().filter_map(|block| self.chunks.block(*block)) {
            block.named.store(false, Ordering::Release);
        }
        Ok(())
    }

    /// Ends recovery: blocks without records become free, durably, and clients may ask for blocks from now
    /// on. Also makes room in a new heap.
    ///
    /// # Errors
    /// [`SlotError::Space`] if the disk is full and the heap is new.
    pub fn open_blocks(&self) -> Result<(), SlotError> {
        let per_chunk = self.chunks.geometry.blocks_per_chunk;
        let chunks = (self.blocks() / per_chunk) as u32;
        let mut next = 0;
        for chunk in 0..chunks {
            let used = match self.used_at(chunk) {
                Some((at, seed)) => {
                    self.region().flush(at / LINE * LINE, LINE);
                    seed.read_used(self.region().load(at), at)?
                }
                // A chunk that is damaged has nothing to give.
                None => per_chunk,
            };
            if used > 0 {
                next = u64::from(chunk) * per_chunk + used;
            }
        }
        self.region().fence();
        if self.supply.is_spread() {
            // All blocks that were never used are free there, by node.
            next = self.blocks();
        }
        let (free, gone) = self.unused_blocks(next);
        if !gone.is_empty() {
            self.clock().begin(&self.space);
            gone.iter().for_each(|block| self.mark_free(*block));
            self.region().fence();
        }
        self.supply.set_next(next);
        self.offer(free.into_iter().chain(gone));
        self.fill_reserve()
    }

    /// The blocks below `next` that nobody uses: those that are free or were never used, and those whose
    /// records are gone but which are not marked as free yet.
    fn unused_blocks(&self, next: u64) -> (Vec<u64>, Vec<u64>) {
        let (mut free, mut gone) = (Vec::new(), Vec::new());
        for number in 0..next {
            let Some(block) = self.chunks.block(number) else { continue };
            match block.state() {
                BlockState::Fresh | BlockState::Free => free.push(number),
                BlockState::Idle if block.live() == 0 => gone.push(number),
                BlockState::Overflow if !block.named.load(Ordering::Acquire) => gone.push(number),
                _ => {}
            }
        }
        (free, gone)
    }
}
