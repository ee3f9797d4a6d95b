//! Placing records: a client's own block, and the guard between a record's being durable and its being the only one
//! (sections 4.1 and 4.2).

use super::chunks::{BlockState, Page};
use super::error::SlotError;
use super::format::{BlockKind, EntryKind, LOG_START};
use super::geometry::{Geometry, entry_len};
use super::heap::SlotHeap;
use super::locks::PageGuard;
use super::offset::{Offset, SizedOffset};
use super::pen::{Pen, SlotContent};

/// Where a client writes next.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) block: u64,
    /// The page that the block was begun with.
    first: u32,
    /// Pages that are full.
    step: u32,
    /// Where the log of the page ends; slots are found by their bitset.
    pub(super) tail: u64,
    /// The block is one page.
    large: bool,
    /// Hot records lie in it.
    hot: bool,
}

impl Place {
    fn new(block: u64, first: u32, large: bool, hot: bool) -> Place {
        Place { block, first: if large { 0 } else { first }, step: 0, tail: LOG_START, large, hot }
    }

    /// Where the log of its page ends, and how much room is there.
    pub(super) fn tail(&self, geometry: &Geometry) -> (u64, u64) {
        (self.tail, geometry.log_len(self.large) - self.tail)
    }

    /// Goes on to the next page, which begins with an entry of `len` bytes, if there is one.
    pub(super) fn step_with(&mut self, pages: u32, len: u64) -> bool {
        let is_last = self.step + 1 >= pages;
        if !is_last {
            self.step += 1;
            self.tail = LOG_START + len;
        }
        !is_last
    }

    fn page(&self, pages: u32) -> u32 {
        (self.first + self.step) % pages
    }

    fn is_full(&self, pages: u32) -> bool {
        self.step >= if self.large { 1 } else { pages }
    }
}

/// How far into the free blocks that are kept back somebody may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// To none of them.
    Put,
    /// To half of them: a deletion needs little, and makes room.
    Delete,
    /// To all.
    Move,
}

impl Reach {
    /// Blocks that stay, of a reserve of so many.
    pub(super) fn leaves(self, reserve: usize) -> usize {
        match self {
            Reach::Put => reserve,
            Reach::Delete => reserve / 2,
            Reach::Move => 0,
        }
    }
}

/// A client's place to write: its own block, and one for records that take most of a block. To be given back by
/// [`SlotHeap::leave`]; if it is dropped instead, nobody writes to its blocks before the next open.
#[derive(Debug)]
#[must_use = "its blocks are to be left"]
pub struct Owner {
    random: u64,
    reach: Reach,
    hot: bool,
    place: Option<Place>,
    large: Option<Place>,
    taken: u64,
    pen: Pen,
}

impl Owner {
    fn slot(&mut self, large: bool) -> &mut Option<Place> {
        if large { &mut self.large } else { &mut self.place }
    }

    /// The next of a sequence of numbers that the seed determines.
    pub(super) fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        crate::record::mix(self.random)
    }

    /// Blocks that it has begun to write to.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// The block that it writes to, if any.
    pub fn block(&self) -> Option<u64> {
        self.place.as_ref().map(|place| place.block)
    }
}

/// A record that is durable and that nobody can find yet. Its page is locked until this drops: the caller publishes the
/// offset, then lets the old record go, if there was one, and drops this.
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

/// What stands in an entry of a log.
#[derive(Clone, Copy)]
pub(super) struct Content<'a> {
    pub(super) kind: EntryKind,
    pub(super) key: &'a [u8],
    pub(super) body: &'a [u8],
    pub(super) sequence: u64,
}

impl SlotHeap {
    /// A place to write for a client. The seed decides at which pages its blocks, and those of others, are begun.
    pub fn owner(&self, seed: u64) -> Owner {
        let (reach, hot, pen) = (Reach::Put, false, Pen::default());
        Owner { random: seed, reach, hot, place: None, large: None, taken: 0, pen }
    }

    /// A place to write for the hot records of a client.
    pub fn hot_owner(&self, seed: u64) -> Owner {
        Owner { hot: true, ..self.owner(seed) }
    }

    /// A place for the tombstones of all who have found no other.
    pub(super) fn last_resort() -> Owner {
        let (reach, hot, pen) = (Reach::Delete, false, Pen::default());
        Owner { random: 0, reach, hot, place: None, large: None, taken: 0, pen }
    }

    /// A place to write for a cleaner, which gets at the reserve.
    pub fn cleaner(&self, seed: u64) -> Owner {
        Owner { reach: Reach::Move, ..self.owner(seed) }
    }

    /// Leaves an owner's blocks to whoever needs one next.
    pub fn leave(&self, owner: Owner) {
        for place in [owner.place, owner.large].into_iter().flatten() {
            let Some(block) = self.chunks.block(place.block) else { continue };
            if place.is_full(self.chunks.geometry.pages) {
                block.set_state(BlockState::Idle);
            } else {
                block.set_state(BlockState::Left);
                self.supply.left.lock().push(place);
            }
        }
    }

    /// Leaves the block where tombstones go that have found no other.
    pub fn leave_last_resort(&self) {
        self.leave(std::mem::replace(&mut *self.supply.last_resort.lock(), SlotHeap::last_resort()));
    }

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
        self.place_with(owner, key, value, sequence, || ()).map(|(placed, ())| placed)
    }

    /// As [`place`](SlotHeap::place), with a lock that is taken before the first fence of the record, since one behind a fence
    /// waits for it: `lock` is called once there is room for the record, in a page that is held. It must not wait for pages.
    ///
    /// # Errors
    /// As for [`place`](SlotHeap::place).
    #[inline]
    pub fn place_with<L>(
        &self,
        owner: &mut Owner,
        key: &[u8],
        value: &[u8],
        sequence: u64,
        lock: impl FnOnce() -> L,
    ) -> Result<(Placed<'_>, L), SlotError> {
        self.check_size(key.len() as u64, value.len() as u64)?;
        if self.shape().is_some() {
            return self.place_slot(owner, SlotContent { key, value, sequence }, lock);
        }
        if self.home_of(key.len() as u64, value.len() as u64) != Some(Home::Overflow) {
            return self.place_entry(
                owner,
                Content { kind: EntryKind::Plain, key, body: value, sequence },
                lock,
            );
        }
        let blocks = self.write_overflow(owner, value, sequence)?;
        let body = super::overflow::descriptor(value.len() as u64, &blocks);
        let head = Content { kind: EntryKind::Overflow, key, body: &body, sequence };
        self.place_entry(owner, head, lock).inspect_err(|_| self.free_overflow(&blocks))
    }

    /// Writes that a key was deleted, durably when this returns, as [`place_with`](SlotHeap::place_with) writes a record. Where the
    /// owner finds no room, there is some for tombstones alone.
    ///
    /// # Errors
    /// As for [`place`](SlotHeap::place).
    pub fn place_tombstone_with<L>(
        &self,
        owner: &mut Owner,
        key: &[u8],
        sequence: u64,
        lock: impl Fn() -> L,
    ) -> Result<(Placed<'_>, L), SlotError> {
        let tombstone = Content { kind: EntryKind::Tombstone, key, body: &[], sequence };
        match self.place_entry(owner, tombstone, &lock) {
            Err(SlotError::Full { .. }) => {
                self.place_entry(&mut self.supply.last_resort.lock(), tombstone, &lock)
            }
            placed => placed,
        }
    }

    #[inline]
    fn place_slot<L>(
        &self,
        owner: &mut Owner,
        content: SlotContent<'_>,
        lock: impl FnOnce() -> L,
    ) -> Result<(Placed<'_>, L), SlotError> {
        loop {
            let (page, _, pen) = self.page_for(owner, false)?;
            let guard = self.lock(page);
            if let Some(free) = self.free_slot(&guard, pen) {
                let locked = lock();
                self.write_slot(&guard, pen, free, content);
                return Ok((self.placed(guard, free.slot, 0), locked));
            }
            drop(guard);
            self.turn_page(owner, false, content.sequence);
        }
    }

    /// Writes an entry to the log of a page, or of a block that is one page if no page can hold it.
    pub(super) fn place_entry<L>(
        &self,
        owner: &mut Owner,
        content: Content<'_>,
        lock: impl FnOnce() -> L,
    ) -> Result<(Placed<'_>, L), SlotError> {
        let Content { kind, key, body, sequence } = content;
        let len = entry_len(key.len() as u64, body.len() as u64);
        let large = !self.chunks.geometry.fits(false, len);
        loop {
            let (page, place, pen) = self.page_for(owner, large)?;
            let guard = self.lock(page);
            let (tail, room) = place.tail(&self.chunks.geometry);
            let position = (tail / 8) as u32;
            if len <= room {
                let locked = lock();
                if kind == EntryKind::Tombstone
                    && let Some(dead) = self.chunks.dead(guard.page.block)
                {
                    dead.note_tombstone(len, sequence);
                }
                self.write_entry(&guard.page, &mut pen.buffer, (tail, room), content);
                place.tail += len;
                let told = if kind == EntryKind::Overflow { 0 } else { len };
                return Ok((self.placed(guard, position, told), locked));
            }
            let pages = self.chunks.geometry.pages;
            if let Some(parts) = self.parts(&content, large, room)
                && place.step_with(pages, parts.next)
            {
                let next = self.page_at(place.block, (guard.page.page + 1) % pages)?;
                let locked = lock();
                self.write_continued(&guard.page, &next, &mut pen.buffer, (tail, room), content);
                return Ok((self.placed(guard, position, parts.here + parts.next), locked));
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
        let offset = Offset::new(guard.page.block, guard.page.page, position, self.chunks.geometry.pages);
        Placed { heap: self, guard, offset, len }
    }

    /// The page that the owner writes to, of another block if it has none.
    pub(super) fn page_for<'h, 'o>(
        &'h self,
        owner: &'o mut Owner,
        large: bool,
    ) -> Result<(Page<'h>, &'o mut Place, &'o mut Pen), SlotError> {
        if owner.slot(large).is_none() {
            let place = match self.take_left(large, Some(owner.hot)) {
                Some(place) => place,
                None => match self.take_block(owner.draw(), owner.reach) {
                    Ok((block, first)) => {
                        self.prepare(block, if large { BlockKind::Large } else { BlockKind::Pages })?;
                        Place::new(block, first, large, owner.hot)
                    }
                    // Better among others than nowhere.
                    Err(full) => self.take_left(large, None).ok_or(full)?,
                },
            };
            *owner.slot(large) = Some(place);
            owner.taken += 1;
        }
        let Owner { place, large: larger, pen, .. } = owner;
        let place = if large { larger } else { place }.as_mut().expect("it was put there if there was none");
        let page = self.page_at(place.block, place.page(self.chunks.geometry.pages))?;
        Ok((page, place, pen))
    }

    /// A block that another client has left with room in it, for records that are hot or not, if that is asked.
    fn take_left(&self, large: bool, hot: Option<bool>) -> Option<Place> {
        let mut left = self.supply.left.lock();
        let is_one = |place: &Place| place.large == large && hot.is_none_or(|hot| place.hot == hot);
        let place = left.iter().position(is_one)?;
        let place = left.swap_remove(place);
        self.chunks.block(place.block)?.set_state(BlockState::Owned);
        Some(place)
    }

    /// Goes on to the next page, with a record of this number; gives the block up behind its last one.
    pub(super) fn turn_page(&self, owner: &mut Owner, large: bool, sequence: u64) {
        let pages = self.chunks.geometry.pages;
        let slot = owner.slot(large);
        if let Some(place) = slot {
            place.step += 1;
            place.tail = LOG_START;
            if place.is_full(pages) {
                if let Some(dead) = self.chunks.dead(place.block) {
                    dead.fill(sequence);
                }
                if let Some(block) = self.chunks.block(place.block) {
                    block.set_state(BlockState::Idle);
                }
                *slot = None;
            }
        }
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
