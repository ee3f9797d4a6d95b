//! A client's own blocks: where it writes next, and what becomes of a block that it leaves (section 4.1).

use super::chunks::{BlockState, Page};
use super::error::SlotError;
use super::format::{BlockKind, LOG_START};
use super::geometry::Geometry;
use super::heap::SlotHeap;
use super::pen::Pen;
use crate::sync::SpinGuard;
use crate::sync::atomic::Ordering;
use quipu_medium::Node;

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
        let page = self.first + self.step;
        // Without the division of a remainder, for every put.
        if page < pages { page } else { page - pages }
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

/// A client's place to write: its own block, and one for records that take most of a block. To be given back
/// by [`SlotHeap::leave`]; if it is dropped instead, nobody writes to its blocks before the next open.
#[derive(Debug)]
#[must_use = "its blocks are to be left"]
pub struct Owner {
    random: u64,
    reach: Reach,
    hot: bool,
    place: Option<Place>,
    large: Option<Place>,
    taken: u64,
    pub(super) pen: Pen,
    /// The node of its blocks; `None` for where its thread runs.
    pub(super) node: Option<Node>,
    /// Blocks of a value that no entry names yet.
    pub(super) overflow: Vec<u64>,
}

impl Owner {
    fn new(seed: u64, reach: Reach) -> Owner {
        let (pen, overflow) = (Pen::default(), Vec::new());
        Owner {
            random: seed,
            reach,
            hot: false,
            place: None,
            large: None,
            taken: 0,
            pen,
            node: None,
            overflow,
        }
    }

    /// An owner that tombstones share.
    pub(super) fn of_last_resort() -> Owner {
        Owner::new(0, Reach::Delete)
    }

    #[inline]
    fn slot(&mut self, large: bool) -> &mut Option<Place> {
        if large { &mut self.large } else { &mut self.place }
    }

    /// An entry of so many bytes stands at the end of the log that it writes to.
    #[inline]
    pub(super) fn grow_tail(&mut self, large: bool, len: u64) {
        if let Some(place) = self.slot(large) {
            place.tail += len;
        }
    }

    /// The next of a sequence of numbers that the seed determines.
    pub(super) fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        crate::record::mix(self.random)
    }

    /// This owner, with blocks of a node.
    pub fn near(self, node: Option<Node>) -> Owner {
        Owner { node, ..self }
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

impl SlotHeap {
    /// As [`take_any_block`](SlotHeap::take_any_block), counted.
    pub(super) fn take_block(
        &self,
        random: u64,
        reach: Reach,
        node: Option<Node>,
    ) -> Result<(u64, u32), SlotError> {
        let taken = self.take_any_block(random, reach, node)?;
        if reach != Reach::Move {
            self.supply.takes.fetch_add(1, Ordering::AcqRel);
        }
        Ok(taken)
    }

    /// Counts how often blocks were taken, but not to move records to.
    pub fn takes(&self) -> u64 {
        self.supply.takes.load(Ordering::Acquire)
    }

    /// A place to write for a client. The seed decides at which pages its blocks, and those of others, are
    /// begun.
    pub fn owner(&self, seed: u64) -> Owner {
        Owner::new(seed, Reach::Put)
    }

    /// A place to write for the hot records of a client.
    pub fn hot_owner(&self, seed: u64) -> Owner {
        Owner { hot: true, ..self.owner(seed) }
    }

    /// A place for the tombstones of clients that have found no other, locked.
    pub fn last_resort(&self) -> SpinGuard<'_, Owner> {
        self.supply.last_resort.lock()
    }

    /// A place to write for a cleaner, which gets at the reserve.
    pub fn cleaner(&self, seed: u64) -> Owner {
        Owner::new(seed, Reach::Move)
    }

    /// Leaves an owner's blocks to the next client that needs one.
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

    /// Lets an owner go on near a node: with a pool of several nodes, it may leave its blocks for that.
    pub fn move_near(&self, owner: &mut Owner, node: Option<Node>) {
        if node != owner.node {
            let Owner { random, reach, hot, taken, .. } = *owner;
            let next = Owner { hot, taken, node, ..Owner::new(random, reach) };
            self.leave(std::mem::replace(owner, next));
        }
    }

    /// Leaves the block where tombstones go that have found no other.
    pub fn leave_last_resort(&self) {
        self.leave(std::mem::replace(&mut *self.last_resort(), Owner::of_last_resort()));
    }

    /// The page that the owner writes to, of another block if it has none.
    ///
    /// Inlined, so that its answer stays in registers; see the head of `place`.
    #[inline(always)]
    pub(super) fn page_for<'h, 'o>(
        &'h self,
        owner: &'o mut Owner,
        large: bool,
    ) -> Result<(Page<'h>, &'o mut Place), SlotError> {
        if owner.slot(large).is_none() {
            self.begin_block(owner, large)?;
        }
        let place = owner.slot(large).as_mut().expect("it was put there if there was none");
        let page = self.page_at(place.block, place.page(self.chunks.geometry.pages))?;
        Ok((page, place))
    }

    /// Gives an owner a block to write to.
    #[cold]
    fn begin_block(&self, owner: &mut Owner, large: bool) -> Result<(), SlotError> {
        let place = match self.take_left(large, Some((owner.hot, owner.node))) {
            Some(place) => place,
            None => match self.take_block(owner.draw(), owner.reach, owner.node) {
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
        Ok(())
    }

    /// A block that another client has left with room in it, for records that are hot or not, and near a
    /// node, if that is asked.
    fn take_left(&self, large: bool, like: Option<(bool, Option<Node>)>) -> Option<Place> {
        let here = like.and_then(|(_, node)| node).or_else(|| self.space.node_here());
        let is_near = |place: &Place| here.is_none() || self.node_of(place.block) == here;
        let mut left = self.supply.left.lock();
        let is_one = |place: &Place| {
            place.large == large && like.is_none_or(|(hot, _)| place.hot == hot && is_near(place))
        };
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
}
