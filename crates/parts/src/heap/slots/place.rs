//! Placing records, and the guard between a record's being durable and its being the only one (section 4.2).

use super::error::SlotError;
use super::format::EntryKind;
use super::geometry::entry_len;
use super::heap::SlotHeap;
use super::locks::PageGuard;
use super::offset::{Offset, SizedOffset};
use super::owner::Owner;

/// A record that is durable and that nobody can find yet. Its page is locked until this drops: the caller publishes the
/// offset, then lets the old record go, if there was one, and drops this. Or it sees to it that whoever looks for the key publishes it
/// first, and drops this then, not before: somebody who has an offset of an earlier record in this place could read it.
///
/// Meanwhile the caller must not read, place or delete through the heap: it could wait for the page that it holds.
/// [`SlotHeap::key_is`] does not wait.
#[must_use = "the record is to be published, or withdrawn"]
pub struct Placed<'h> {
    heap: &'h SlotHeap,
    pub(super) guard: PageGuard<'h>,
    offset: Offset,
    /// Bytes of it; none if its value fills blocks of its own.
    len: u64,
}

impl Placed<'_> {
    /// Where the record is.
    #[inline]
    pub fn offset(&self) -> Offset {
        self.offset
    }

    /// Where, with its length.
    #[inline]
    pub fn sized(&self) -> SizedOffset {
        SizedOffset::new(self.offset, self.len)
    }

    /// Lets the record go that this one has replaced in the index: durably, when this returns. Whoever takes an offset
    /// out of the index lets it go, and nobody else, once.
    ///
    /// # Errors
    /// [`SlotError::Damaged`] if there is no record.
    pub fn release_old(&self, old: Offset) -> Result<(), SlotError> {
        let blocks = self.heap.overflow_of(old)?;
        self.heap.clear_crossing(&self.guard, old)?;
        self.heap.free_overflow(&blocks);
        Ok(())
    }

    /// Lets the record go that this one, with the number `by`, has replaced or deleted, where it is [known](SlotHeap::knows_dead)
    /// what is dead: notes that, and nothing else. `len` is that of the old record.
    ///
    /// The page is held until then. Others may write tombstones to the same block, and leave it as done as soon as they have had
    /// the page; whoever then asks what holds the tombstones there back must be told of this one.
    #[inline]
    pub fn note_old_dead(self, old: Offset, len: u64, by: u64) {
        self.heap.note_dead(old, len, by);
    }

    /// Takes the record back, durably when this returns: it was not published.
    ///
    /// # Errors
    /// [`SlotError::Damaged`] if it is no longer what was written.
    pub fn withdraw(self) -> Result<(), SlotError> {
        let blocks = self.heap.overflow_of(self.offset)?;
        self.heap.clear(&self.guard, self.offset)?;
        self.heap.free_overflow(&blocks);
        Ok(())
    }
}

/// A record that is to be placed.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
    /// Its sequence number.
    pub sequence: u64,
}

/// The fences of a record that is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// That behind the record.
    OfRecord,
    /// That behind the bit, or the word, that makes it count.
    OfMark,
}

/// What a caller does while its record is placed.
pub trait Steps<'h> {
    /// What it answers behind the last fence; where speed matters, a word at most. Several would be stored there, and a load that takes
    /// in several of them waits until the fence has ended.
    type Outcome;

    /// Called before the first store of the record, once there is room for it, in a page that is held: takes locks, since one behind a
    /// fence waits for it. It must not wait for pages.
    fn lock(&mut self);

    /// Called behind the stores of the record, and again behind that of its mark, ahead of the fence of each: stores what that is
    /// to cover too, and does what needs no lock, which passes while the stores are under way. `placed` is where the record will be.
    /// For a record that continues on the next page both calls come before its stores.
    ///
    /// To find memory that is needed later takes as long as a fence; asked for before the stores it would hold them back.
    fn ahead(&mut self, fence: Fence, placed: SizedOffset);

    /// Called behind the last fence. What it does without a lock, the processor does while the fences are under way.
    fn publish(&mut self, placed: Placed<'h>) -> Self::Outcome;
}

/// Nothing but to have the record.
pub struct Alone;

impl<'h> Steps<'h> for Alone {
    type Outcome = Placed<'h>;

    fn lock(&mut self) {}

    fn ahead(&mut self, _fence: Fence, _placed: SizedOffset) {}

    fn publish(&mut self, placed: Placed<'h>) -> Placed<'h> {
        placed
    }
}

/// What stands in an entry of a log.
#[derive(Clone, Copy)]
pub(super) struct Content<'a> {
    pub(super) kind: EntryKind,
    pub(super) key: &'a [u8],
    pub(super) body: &'a [u8],
    pub(super) sequence: u64,
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

    /// Blocks that [`place`](SlotHeap::place) needs at most for a record, if the owner has no room for it.
    pub fn blocks_for(&self, key: u64, value: u64) -> u64 {
        let overflows = self.shape().is_none() && self.home_of(key, value) == Some(Home::Overflow);
        1 + if overflows { value.div_ceil(self.chunks.geometry.overflow_capacity()) } else { 0 }
    }

    /// Writes a record, durably when this returns: for two fences and, seldom, those of a new block. The sequence numbers of
    /// a key must rise in the order in which its records are published, so they are drawn under a lock of the key.
    ///
    /// # Errors
    /// [`SlotError::Full`] if no block is left, [`SlotError::WrongSize`] or [`SlotError::Unfit`] if the record has no
    /// place in this heap.
    pub fn place(
        &self,
        owner: &mut Owner,
        key: &[u8],
        value: &[u8],
        sequence: u64,
    ) -> Result<Placed<'_>, SlotError> {
        self.place_with(owner, Record { key, value, sequence }, &mut Alone)
    }

    /// As [`place`](SlotHeap::place), with what the caller does at its [steps](Steps).
    ///
    /// # Errors
    /// As for [`place`](SlotHeap::place).
    #[inline]
    pub fn place_with<'h, S: Steps<'h>>(
        &'h self,
        owner: &mut Owner,
        record: Record<'_>,
        steps: &mut S,
    ) -> Result<S::Outcome, SlotError> {
        let Record { key, value, sequence } = record;
        self.check_size(key.len() as u64, value.len() as u64)?;
        if self.shape().is_some() {
            return self.place_slot(owner, record, steps);
        }
        if self.home_of(key.len() as u64, value.len() as u64) != Some(Home::Overflow) {
            let content = Content { kind: EntryKind::Plain, key, body: value, sequence };
            return self.place_entry(owner, content, steps);
        }
        let blocks = self.write_overflow(owner, value, sequence)?;
        let body = super::overflow::descriptor(value.len() as u64, &blocks);
        let head = Content { kind: EntryKind::Overflow, key, body: &body, sequence };
        self.place_entry(owner, head, steps).inspect_err(|_| self.free_overflow(&blocks))
    }

    /// Writes that a key was deleted, durably when this returns, as [`place_with`](SlotHeap::place_with) writes a record. Where
    /// the owner finds no room, there is some for tombstones alone.
    ///
    /// # Errors
    /// As for [`place`](SlotHeap::place).
    pub fn place_tombstone_with<'h, S: Steps<'h>>(
        &'h self,
        owner: &mut Owner,
        key: &[u8],
        sequence: u64,
        steps: &mut S,
    ) -> Result<S::Outcome, SlotError> {
        let tombstone = Content { kind: EntryKind::Tombstone, key, body: &[], sequence };
        match self.place_entry(owner, tombstone, steps) {
            Err(SlotError::Full { .. }) => {
                self.place_entry(&mut self.supply.last_resort.lock(), tombstone, steps)
            }
            placed => placed,
        }
    }

    #[inline]
    fn place_slot<'h, S: Steps<'h>>(
        &'h self,
        owner: &mut Owner,
        record: Record<'_>,
        steps: &mut S,
    ) -> Result<S::Outcome, SlotError> {
        loop {
            let (page, _, pen) = self.page_for(owner, false)?;
            let guard = self.lock(page);
            if let Some(free) = self.free_slot(&guard, pen) {
                steps.lock();
                let placed = self.placed(guard, free.slot, 0);
                let sized = placed.sized();
                self.write_slot(&placed.guard, pen, free, record, |fence| steps.ahead(fence, sized));
                return Ok(steps.publish(placed));
            }
            drop(guard);
            self.turn_page(owner, false, record.sequence);
        }
    }

    /// Writes an entry to the log of a page, or of a block that is one page if no page can hold it.
    pub(super) fn place_entry<'h, S: Steps<'h>>(
        &'h self,
        owner: &mut Owner,
        content: Content<'_>,
        steps: &mut S,
    ) -> Result<S::Outcome, SlotError> {
        let Content { kind, key, body, sequence } = content;
        let len = entry_len(key.len() as u64, body.len() as u64);
        let large = !self.chunks.geometry.fits(false, len);
        loop {
            let (page, place, pen) = self.page_for(owner, large)?;
            let guard = self.lock(page);
            let (tail, room) = place.tail(&self.chunks.geometry);
            let position = (tail / 8) as u32;
            if len <= room {
                steps.lock();
                if kind == EntryKind::Tombstone
                    && let Some(dead) = self.chunks.dead(guard.page.block)
                {
                    dead.note_tombstone(len, sequence);
                }
                let told = if kind == EntryKind::Overflow { 0 } else { len };
                let placed = self.placed(guard, position, told);
                let (page, sized) = (&placed.guard.page, placed.sized());
                let ahead = |fence| steps.ahead(fence, sized);
                self.write_entry(page, &mut pen.buffer, (tail, room), content, ahead);
                place.tail += len;
                return Ok(steps.publish(placed));
            }
            let pages = self.chunks.geometry.pages;
            if let Some(parts) = self.parts(&content, large, room)
                && place.step_with(pages, parts.next)
            {
                let next = self.page_at(place.block, (guard.page.page + 1) % pages)?;
                steps.lock();
                let placed = self.placed(guard, position, parts.here + parts.next);
                for fence in [Fence::OfRecord, Fence::OfMark] {
                    steps.ahead(fence, placed.sized());
                }
                self.write_continued(&placed.guard.page, &next, &mut pen.buffer, (tail, room), content);
                return Ok(steps.publish(placed));
            }
            drop(guard);
            self.turn_page(owner, large, sequence);
        }
    }

    /// The lengths of the entries of a record whose value may continue on the next page, with so much room on this one.
    pub(super) fn parts(&self, content: &Content<'_>, large: bool, room: u64) -> Option<Parts> {
        let here = entry_len(content.key.len() as u64, 0);
        let next = entry_len(0, content.body.len() as u64);
        let may_continue = content.kind == EntryKind::Plain && !large && !content.body.is_empty();
        let fits = here <= room && self.chunks.geometry.fits(false, next);
        (may_continue && fits).then_some(Parts { here, next })
    }

    fn placed<'h>(&'h self, guard: PageGuard<'h>, position: u32, len: u64) -> Placed<'h> {
        let offset = Offset::new(guard.page.block, guard.page.page, position, self.chunks.geometry.page_bits);
        Placed { heap: self, guard, offset, len }
    }

    /// Where a record of these sizes goes, if anywhere.
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

/// Bytes of the two entries of a record whose value continues on the next page.
pub(super) struct Parts {
    pub(super) here: u64,
    pub(super) next: u64,
}

/// Where a record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    /// In one block.
    Block,
    /// Its value fills blocks of its own.
    Overflow,
}
