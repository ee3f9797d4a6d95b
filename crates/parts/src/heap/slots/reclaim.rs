//! Getting free space back (section 4.6): the records of a block move together with others, and the block is
//! free.
//!
//! Every record moves as a client would insert it again: placed, made durable, published in place of the old
//! one, and the old one cleared durably before the page of the new one is unlocked. So at no time does a
//! crash find more of a key than two copies with one sequence number, and no deletion of the new copy can
//! leave the old one behind.
//!
//! A record that the index no longer names at this place is left alone. The writer that took it out of the
//! index lets it go, and until then its block is not free. So no slot is cleared that has been given to
//! another record.

use super::chunks::BlockState;
use super::error::SlotError;
use super::format::{Entry, EntryKind};
use super::heap::SlotHeap;
use super::log::FIRST_ENTRY;
use super::offset::Offset;
use super::owner::Owner;
use super::place::{Claim, Record};
use super::{blocks::FreedBlock, locks::PageGuard};

/// A record that has a new place, for the index.
#[derive(Clone, Copy, Debug)]
pub struct Moved<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// Where it was.
    pub from: Offset,
    /// Where it is.
    pub to: Offset,
    /// Bytes of it, those of a value that fills blocks of its own not included.
    pub len: u64,
}

/// The result of reclaiming a block.
#[derive(Debug)]
pub enum Reclaimed {
    /// It is free.
    Freed(FreedBlock),
    /// Clients are about to let records of it go; later it can be freed.
    Kept,
}

impl SlotHeap {
    /// Moves the records of a [victim](SlotHeap::victim) to the cleaner's own block and frees it. `repoint`
    /// makes the index name the new place of a record if it still names the old one, and says whether it did;
    /// it must not wait for pages.
    ///
    /// # Errors
    /// [`SlotError::Full`] if there is no room to move to, and [`SlotError::Damaged`] if a record cannot be
    /// read. Records that have been moved stay moved.
    pub fn reclaim(
        &self,
        cleaner: &mut Owner,
        block: u64,
        mut repoint: impl FnMut(Moved<'_>) -> bool,
    ) -> Result<Reclaimed, SlotError> {
        let mut kept = 0;
        for number in 0..self.pages_of(block)? {
            let guard = self.lock(self.page_at(block, number)?);
            let moved = match self.shape() {
                Some(_) => self.move_slots(&guard, cleaner, &mut repoint),
                None => self.move_entries(&guard, cleaner, &mut repoint),
            };
            kept += moved.inspect_err(|error| self.leave_victim(block, error))?;
        }
        Ok(self.end_victim(block, kept > 0))
    }

    /// Pages of a block: one if its pages are one.
    pub(super) fn pages_of(&self, block: u64) -> Result<u32, SlotError> {
        let is_large = self.page_at(block, 0)?.state.is_large();
        Ok(if is_large { 1 } else { self.chunks.geometry.pages })
    }

    /// Marks a victim as free, durably, unless records of it stay.
    pub(super) fn end_victim(&self, block: u64, keeps_some: bool) -> Reclaimed {
        if keeps_some {
            if let Some(state) = self.chunks.block(block) {
                state.set_state(BlockState::Idle);
            }
            return Reclaimed::Kept;
        }
        self.mark_free(block);
        self.region().fence();
        Reclaimed::Freed(FreedBlock(block))
    }

    /// Leaves a victim as it is: there is no room to move records to, or they cannot be read.
    pub(super) fn leave_victim(&self, block: u64, error: &SlotError) {
        let is_damaged = matches!(error, SlotError::Damaged { .. });
        if let Some(state) = self.chunks.block(block) {
            state.set_state(if is_damaged { BlockState::Damaged } else { BlockState::Idle });
        }
    }

    /// Moves the records of a page of slots. Returns how many stay.
    fn move_slots(
        &self,
        guard: &PageGuard<'_>,
        cleaner: &mut Owner,
        repoint: &mut impl FnMut(Moved<'_>) -> bool,
    ) -> Result<u32, SlotError> {
        let mut record = Vec::new();
        let mut kept = 0;
        for slot in self.set_slots(&guard.page)? {
            let sequence = self.copy_slot(&guard.page, slot, 0, &mut record);
            let Some(shape) = self.shape() else { continue };
            let (key, value) = record.split_at(shape.key as usize);
            let placed = self.place(cleaner, key, value, sequence)?;
            kept += u32::from(!self.exchange(guard, slot, (key, shape.size), &placed, repoint)?);
        }
        Ok(kept)
    }

    /// Moves the records of a log. Returns how many stay.
    fn move_entries(
        &self,
        guard: &PageGuard<'_>,
        cleaner: &mut Owner,
        repoint: &mut impl FnMut(Moved<'_>) -> bool,
    ) -> Result<u32, SlotError> {
        let mut record = Vec::new();
        let mut position = FIRST_ENTRY;
        let mut kept = 0;
        while let Some(entry) = self.read_entry(&guard.page, position)? {
            if entry.set && entry.kind != EntryKind::Part {
                kept +=
                    u32::from(!self.move_entry(guard, position, &entry, cleaner, repoint, &mut record)?);
            }
            position = SlotHeap::behind(position, &entry);
        }
        Ok(kept)
    }

    /// Moves one entry; `false` if it stays.
    pub(super) fn move_entry(
        &self,
        guard: &PageGuard<'_>,
        position: u32,
        entry: &Entry,
        cleaner: &mut Owner,
        repoint: &mut impl FnMut(Moved<'_>) -> bool,
        record: &mut Vec<u8>,
    ) -> Result<bool, SlotError> {
        record.clear();
        let sequence = self.append_entry(&guard.page, position, entry, 0, record);
        let (key, value) = record.split_at(entry.key as usize);
        let placed = self.place_copy(cleaner, entry.kind, Record { key, value, sequence })?;
        self.exchange(guard, position, (key, entry.record_len()), &placed, repoint)
    }

    /// Makes the new copy of a record count in place of the old one, or takes the copy back. The blocks that
    /// a value fills stay with the one that remains.
    fn exchange(
        &self,
        guard: &PageGuard<'_>,
        position: u32,
        (key, len): (&[u8], u64),
        placed: &Claim<'_, '_>,
        repoint: &mut impl FnMut(Moved<'_>) -> bool,
    ) -> Result<bool, SlotError> {
        let from = self.offset_in(&guard.page, position);
        let moved = repoint(Moved { key, from, to: placed.offset(), len });
        if moved {
            self.clear(guard, from)?;
        } else {
            self.clear(&placed.guard, placed.offset())?;
        }
        Ok(moved)
    }
}
