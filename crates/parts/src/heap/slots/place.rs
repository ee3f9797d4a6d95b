//! Placing records (section 4.2): a claimed place, and the steps of a put there.
//!
//! [`SlotHeap::claim`] finds room and holds the page. The caller then takes these steps, so that the order of
//! a put stands where the put is:
//!
//! | step | durable behind it |
//! |---|---|
//! | [`write`](Claim::write), fence | the record, which does not count yet |
//! | [`mark`](Claim::mark), fence | that it counts |
//! | [`release_old`](Claim::release_old), once the index names the record | that the old record does not |
//! | drop | nothing: the page is let go |
//!
//! Two properties of the processor decide what a caller does between the steps:
//! - A locked instruction behind a fence waits until the fence has ended. So a caller takes its locks before
//!   `write`. Prefetches, and more stores for the fence to cover, go between a step and its fence. Reaching
//!   memory takes as long as a fence, and would hold back the stores of the record if it came first.
//! - A load that takes in more than one earlier store waits until these have left the processor, behind a
//!   fence until that has ended. So a claim is made where it stays, by functions that are inlined, and is
//!   used by reference: a move would store it by words and load it by several.

use super::chunks::Page;
use super::error::SlotError;
use super::format::{Entry, EntryKind};
use super::geometry::{FreeSlot, entry_len};
use super::heap::SlotHeap;
use super::locks::PageGuard;
use super::offset::{Offset, SizedOffset};
use super::overflow::descriptor;
use super::owner::Owner;
use crate::twin;

/// A place for one record, in a page that is held until this drops. Nobody can find the record before the
/// caller publishes its offset. A caller that leaves that to another thread holds the page until every reader
/// of the key would publish it first. As soon as the page is free, a reader with an older offset of this
/// place may read the record.
///
/// Meanwhile the caller must not read, place or delete through the heap, which could wait for this page.
/// [`SlotHeap::key_is`] does not wait.
#[must_use = "the record is to be written, marked and published, or withdrawn"]
pub struct Claim<'h, 'o> {
    pub(super) guard: PageGuard<'h>,
    pub(super) owner: &'o mut Owner,
    sized: SizedOffset,
    form: Form,
}

/// The form of the record in its page.
#[derive(Clone, Copy)]
enum Form {
    /// A slot, with the word of the bitset that has its bit.
    Slot { bits: u64 },
    /// An entry of a log, which may continue on the next page.
    Entry(Entry),
}

/// A record that is to be placed.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// Its value; nothing for a tombstone.
    pub value: &'a [u8],
    /// Its sequence number.
    pub sequence: u64,
}

impl Claim<'_, '_> {
    /// Where the record is.
    #[inline]
    pub fn offset(&self) -> Offset {
        self.sized.offset
    }

    /// Where the record is, with its length; without, if its value fills blocks of its own.
    #[inline]
    pub fn sized(&self) -> SizedOffset {
        self.sized
    }

    /// Writes the record for which the place was claimed. Durable with the next fence.
    #[inline(always)]
    pub fn write(&mut self, record: Record<'_>) {
        match self.form {
            Form::Slot { bits } => {
                let free = FreeSlot { slot: self.offset().position(), bits };
                self.guard.heap().write_slot(&self.guard, &mut self.owner.pen, free, record);
            }
            Form::Entry(entry) if entry.kind == EntryKind::Overflow => {
                let blocks = std::mem::take(&mut self.owner.overflow);
                let value = &descriptor(record.value.len() as u64, &blocks);
                self.write_entry(&entry, Record { value, ..record });
            }
            Form::Entry(entry) => self.write_entry(&entry, record),
        }
    }

    /// Lets the record count, which is durable. That is durable with the next fence.
    #[inline(always)]
    pub fn mark(&mut self) {
        match self.form {
            Form::Slot { bits } => {
                let free = FreeSlot { slot: self.offset().position(), bits };
                self.guard.heap().mark_slot(&self.guard, &mut self.owner.pen, free);
            }
            Form::Entry(entry) => self.mark_entry(&entry),
        }
    }

    /// Writes the record and lets it count, durably, for a caller with nothing to do in between.
    #[inline]
    pub fn persist(&mut self, record: Record<'_>) {
        self.write(record);
        self.persist_mark();
    }

    /// Makes a record that was written count, durably.
    #[inline]
    fn persist_mark(&mut self) {
        self.guard.heap().region().fence();
        self.mark();
        if !twin!(CopyNamedEarly) {
            self.guard.heap().region().fence();
        }
    }

    /// Releases the record that this one has replaced in the index, durably. The caller that took an offset
    /// out of the index releases it, and nobody else, once.
    ///
    /// # Errors
    /// [`SlotError::Damaged`] if there is no record.
    pub fn release_old(&self, old: Offset) -> Result<(), SlotError> {
        let heap = self.guard.heap();
        let blocks = heap.overflow_of(old)?;
        heap.clear_crossing(&self.guard, old)?;
        heap.free_overflow(&blocks);
        Ok(())
    }

    /// Notes that this record, with the number `by`, has replaced or deleted an old one of `len` bytes, in a
    /// heap that [knows dead records](SlotHeap::knows_dead). Nothing is written to the old record.
    ///
    /// The page is held meanwhile. Once others get it, they may write tombstones to the same block and leave
    /// it as done; a cleaner then asks which blocks hold these tombstones back.
    #[inline]
    pub fn note_old_dead(&self, old: Offset, len: u64, by: u64) {
        self.guard.heap().note_dead(old, len, by);
    }

    /// Takes the record back, durably: it was not published.
    ///
    /// # Errors
    /// [`SlotError::Damaged`] if it is no longer what was written.
    pub fn withdraw(&self) -> Result<(), SlotError> {
        let heap = self.guard.heap();
        let blocks = heap.overflow_of(self.offset())?;
        heap.clear(&self.guard, self.offset())?;
        heap.free_overflow(&blocks);
        Ok(())
    }
}

impl SlotHeap {
    /// Longest key, and longest value that can stand beside it, in bytes.
    pub fn limits(&self) -> (u64, u64) {
        match self.shape() {
            Some(shape) => (shape.key, shape.value),
            None => {
                // Half of a block is left to the list of the blocks of a value.
                let key = (self.chunks.geometry.block_size / 2).min(super::settings::MAX_KEY);
                (key, self.chunks.geometry.longest_value(key))
            }
        }
    }

    /// Whether a record can stand in this heap.
    ///
    /// # Errors
    /// [`SlotError::WrongSize`] or [`SlotError::Unfit`] if not.
    pub fn check_size(&self, key: u64, value: u64) -> Result<(), SlotError> {
        match self.shape() {
            Some(shape) if (shape.key, shape.value) != (key, value) => {
                Err(SlotError::WrongSize { key: shape.key, value: shape.value })
            }
            Some(_) => Ok(()),
            None => self.home_of(key, value).map(drop).ok_or(SlotError::Unfit { key, value }),
        }
    }

    /// Blocks that [`claim`](SlotHeap::claim) needs at most for a record, if the owner has no room for it.
    pub fn blocks_for(&self, key: u64, value: u64) -> u64 {
        let overflows = self.shape().is_none() && self.home_of(key, value) == Some(Home::Overflow);
        1 + if overflows { value.div_ceil(self.chunks.geometry.overflow_capacity()) } else { 0 }
    }

    /// Claims a place for a record of a [size that fits](SlotHeap::check_size): a slot, or an entry of a log.
    /// An entry may continue on the next page, or its value may fill blocks of its own, which are written
    /// here. The caller then writes and marks this very record: recovery finds nothing in a page behind a
    /// claim that was dropped before. The sequence numbers of a key must rise in the order in which its
    /// records are published, so they are drawn under a lock of the key.
    ///
    /// # Errors
    /// [`SlotError::Full`] if no block is left, [`SlotError::Unfit`] if no page can ever hold the record.
    #[inline(always)]
    pub fn claim<'h, 'o>(
        &'h self,
        owner: &'o mut Owner,
        record: Record<'_>,
    ) -> Result<Claim<'h, 'o>, SlotError> {
        let (key, value) = (record.key.len() as u64, record.value.len() as u64);
        if self.shape().is_some() {
            debug_assert!(self.check_size(key, value).is_ok(), "another size would run into the next slot");
            return self.claim_slot(owner, record.sequence);
        }
        // One call for all kinds of entries: a claim that a function out of line returned would have to be
        // copied.
        let (kind, body) = match self.home_of(key, value).ok_or(SlotError::Unfit { key, value })? {
            Home::Block => (EntryKind::Plain, value),
            Home::Overflow => (EntryKind::Overflow, self.write_overflow(owner, record)?),
        };
        self.claim_entry(owner, kind, (key, body), record.sequence)
    }

    /// Claims a place for a tombstone, which says that a key was deleted. Where an owner finds no room, there
    /// is [some](SlotHeap::last_resort) for tombstones alone.
    ///
    /// # Errors
    /// [`SlotError::Full`] if no block is left.
    #[inline]
    pub fn claim_tombstone<'h, 'o>(
        &'h self,
        owner: &'o mut Owner,
        key: &[u8],
        sequence: u64,
    ) -> Result<Claim<'h, 'o>, SlotError> {
        self.claim_entry(owner, EntryKind::Tombstone, (key.len() as u64, 0), sequence)
    }

    /// Places a record, durably, for a caller with nothing to do between the steps.
    ///
    /// # Errors
    /// As for [`check_size`](SlotHeap::check_size) and [`claim`](SlotHeap::claim).
    pub fn place<'h, 'o>(
        &'h self,
        owner: &'o mut Owner,
        key: &[u8],
        value: &[u8],
        sequence: u64,
    ) -> Result<Claim<'h, 'o>, SlotError> {
        self.check_size(key.len() as u64, value.len() as u64)?;
        let record = Record { key, value, sequence };
        let mut claim = self.claim(owner, record)?;
        claim.persist(record);
        Ok(claim)
    }

    /// Places a copy of an entry of a log, durably. Its body is copied as it is: both name the same blocks,
    /// if they name any.
    pub(super) fn place_copy<'h, 'o>(
        &'h self,
        owner: &'o mut Owner,
        kind: EntryKind,
        copy: Record<'_>,
    ) -> Result<Claim<'h, 'o>, SlotError> {
        let kind = if kind == EntryKind::Overflow { kind } else { EntryKind::Plain };
        let lens = (copy.key.len() as u64, copy.value.len() as u64);
        let mut claim = self.claim_entry(owner, kind, lens, copy.sequence)?;
        if let Form::Entry(entry) = claim.form {
            claim.write_entry(&entry, copy);
        }
        claim.persist_mark();
        Ok(claim)
    }

    /// Claims a free slot.
    #[inline(always)]
    fn claim_slot<'h, 'o>(&'h self, owner: &'o mut Owner, sequence: u64) -> Result<Claim<'h, 'o>, SlotError> {
        loop {
            let (page, _) = self.page_for(owner, false)?;
            let guard = self.lock(page);
            if let Some(FreeSlot { slot, bits }) = self.free_slot(&guard, &mut owner.pen) {
                let sized = SizedOffset::new(self.offset_in(&guard.page, slot), 0);
                return Ok(Claim { guard, owner, sized, form: Form::Slot { bits } });
            }
            drop(guard);
            self.turn_page(owner, false, sequence);
        }
    }

    /// Claims the end of the log of a page, or of a block that is one page if no page can hold the entry.
    #[inline(always)]
    fn claim_entry<'h, 'o>(
        &'h self,
        owner: &'o mut Owner,
        kind: EntryKind,
        (key, body): (u64, u64),
        sequence: u64,
    ) -> Result<Claim<'h, 'o>, SlotError> {
        let mut entry = Entry { kind, key, body, set: true };
        let (guard, tail, _) = match self.room_for(owner, &mut entry, sequence, |page| self.lock(page), || ())
        {
            Ok(room) => room,
            Err(error) => return Err(self.abandon_overflow(owner, error)),
        };
        let told = if kind == EntryKind::Overflow { 0 } else { entry.record_len() };
        let sized = SizedOffset::new(self.offset_in(&guard.page, (tail / 8) as u32), told);
        Ok(Claim { guard, owner, sized, form: Form::Entry(entry) })
    }

    /// The page where an owner's next entry goes, as `hold` holds it, where its log ends, and the room from
    /// there. An entry that does not fit may be made one that continues on the next page, to which the owner
    /// goes on then. Otherwise `leave` is called, and the owner takes another page.
    #[inline(always)]
    pub(super) fn room_for<'h, H>(
        &'h self,
        owner: &mut Owner,
        entry: &mut Entry,
        sequence: u64,
        hold: impl Fn(Page<'h>) -> H,
        mut leave: impl FnMut(),
    ) -> Result<(H, u64, u64), SlotError> {
        let geometry = &self.chunks.geometry;
        let large = !geometry.fits(false, entry.len());
        loop {
            let (page, place) = self.page_for(owner, large)?;
            let held = hold(page);
            let (tail, room) = place.tail(geometry);
            if entry.len() <= room {
                return Ok((held, tail, room));
            }
            let part = entry_len(0, entry.body);
            let may_continue = entry.kind == EntryKind::Plain && !large && entry.body > 0;
            if may_continue
                && entry_len(entry.key, 0) <= room
                && geometry.fits(false, part)
                && place.step_with(geometry.pages, part)
            {
                entry.kind = EntryKind::Continued;
                return Ok((held, tail, room));
            }
            drop(held);
            leave();
            self.turn_page(owner, large, sequence);
        }
    }

    /// Where a record of these sizes goes, if anywhere.
    #[inline]
    fn home_of(&self, key: u64, value: u64) -> Option<Home> {
        let geometry = &self.chunks.geometry;
        if key == 0 || key > super::settings::MAX_KEY {
            return None;
        }
        if geometry.fits(true, entry_len(key, value)) {
            return Some(Home::Block);
        }
        let body = geometry.descriptor_len(value);
        geometry.fits(true, entry_len(key, body)).then_some(Home::Overflow)
    }
}

/// Where a record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    /// In one block.
    Block,
    /// Its value fills blocks of its own.
    Overflow,
}
