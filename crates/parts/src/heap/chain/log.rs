//! [`ChainLog`]: the life of an item, from top to bottom.

use super::anchor::Anchor;
use super::chunk::Piece;
use super::item::{Item, ItemPiece, Written};
use super::memtable::{ChainHeap, Memtable, NewMemtable, Supply};
use super::recover::Recovered;
use super::subtable::Subtable;
use super::tail::{Full, Need, Tail};
use super::walk::ChainError;
use crate::commit::Ring;
use crate::commit::ring::{Grants, Place, Poisoned, Turn};
use crate::space::ZoneId;
use crate::sync::{SpinGuard, SpinLock};
use crate::twin;
use std::sync::Arc;

/// Items of a ring that may be under way at once.
const CAPACITY: usize = 64;
/// Numbers that the ring takes from the pool's clock at once, or those of a longer item.
const BLOCK: u64 = 256;

/// A log of items over the memtables of several subtables.
pub struct ChainLog {
    heap: ChainHeap,
    ring: Ring<Tails>,
    /// Held by the thread that makes a zone or a memtable ready.
    preparing: SpinLock<()>,
    /// Memtables that are full and have not ended. It is taken with the turn held, so nobody writes to the
    /// medium while it is.
    full: SpinLock<Vec<Full>>,
    /// Held by the thread that ends memtables, and by one that takes them away.
    ending: SpinLock<()>,
    /// All memtables.
    memtables: SpinLock<Vec<Arc<Memtable>>>,
}

/// The subtables that take writes, by their numbers in this run.
#[derive(Default)]
struct Tails(Vec<Option<TableTail>>);

struct TableTail {
    subtable: u64,
    /// Since the first write of this run.
    tail: Option<Tail>,
}

impl Tails {
    #[inline]
    fn fits(&self, table: usize, len: u64) -> bool {
        let tail = self.0.get(table).and_then(Option::as_ref).and_then(|open| open.tail.as_ref());
        tail.is_some_and(|tail| tail.fits(len))
    }

    #[inline]
    fn of(&mut self, table: usize) -> &mut Tail {
        let open = self.0[table].as_mut().expect("a table that is written to takes writes");
        open.tail.as_mut().expect("a memtable has been made ready")
    }

    /// Takes the end of a table that meets the condition away. The next write opens another memtable.
    fn take_tail(&mut self, table: usize, meets: impl FnOnce(&Tail) -> bool) -> Option<Tail> {
        self.0.get_mut(table)?.as_mut()?.tail.take_if(|tail| meets(tail))
    }

    fn needs(&self, table: usize) -> Result<Option<Need>, ChainError> {
        let open = self.0.get(table).and_then(Option::as_ref).ok_or(ChainError::Dropped)?;
        Ok(open.tail.as_ref().map_or(Some(Need::Memtable(open.subtable)), Tail::needs))
    }

    fn add_memtable(&mut self, table: usize, standby: NewMemtable) {
        let open = self.0[table].as_mut().expect("nobody leaves while something is prepared");
        match &mut open.tail {
            Some(tail) => tail.add_memtable(standby),
            None => open.tail = Some(Tail::new(standby)),
        }
    }
}

impl ChainLog {
    /// A log behind all that was recovered. No subtable takes writes yet.
    pub fn new(heap: ChainHeap, grants: Grants, recovered: Recovered) -> ChainLog {
        let Recovered { cut, memtables, .. } = recovered;
        let memtables = memtables.into_iter().map(|recovered| Arc::new(recovered.memtable)).collect();
        let ring = Ring::new(CAPACITY, grants, cut, Tails::default());
        let [preparing, ending] = [SpinLock::default(), SpinLock::default()];
        ChainLog {
            heap,
            ring,
            preparing,
            full: SpinLock::default(),
            ending,
            memtables: SpinLock::new(memtables),
        }
    }

    /// The heap beneath.
    pub fn heap(&self) -> &ChainHeap {
        &self.heap
    }

    /// The number up to which all items are durable and published.
    #[inline]
    pub fn visible(&self) -> u64 {
        self.ring.visible()
    }

    /// The last number of the newest item, which may not be visible yet.
    ///
    /// # Errors
    /// If the ring is poisoned.
    pub fn granted(&self) -> Result<u64, Poisoned> {
        Ok(self.ring.turn()?.last())
    }

    /// Bytes that are left in the zone that takes the writes of a table; 0 if there is none yet.
    ///
    /// # Errors
    /// If the ring is poisoned.
    pub fn left(&self, table: usize) -> Result<u64, Poisoned> {
        let mut turn = self.ring.turn()?;
        let open = turn.state().0.get(table).and_then(Option::as_ref);
        Ok(open.and_then(|open| open.tail.as_ref()).map_or(0, Tail::left))
    }

    /// Lets a subtable take writes, as number `table` of this run. Nothing is written yet.
    ///
    /// # Errors
    /// [`ChainError::Poisoned`].
    ///
    /// # Panics
    /// If the number is another subtable's.
    pub fn open(&self, table: usize, subtable: u64) -> Result<(), ChainError> {
        let mut turn = self.ring.turn()?;
        let tails = &mut turn.state().0;
        if tails.len() <= table {
            tails.resize_with(table + 1, || None);
        }
        let place = &mut tails[table];
        assert!(place.is_none(), "each table has a number of its own");
        *place = Some(TableTail { subtable, tail: None });
        Ok(())
    }

    /// Writes an item, waits until it is visible, and returns its last number. Then it has happened, and no
    /// crash takes it back; the item is empty. An item without records is nothing.
    ///
    /// `granted` is told its place in the order, before anything is written. `publish` is shown each chunk
    /// when all are durable. Neither may fail, nor wait for anything but short locks: all later items wait
    /// for it.
    ///
    /// # Errors
    /// [`ChainError::Full`], [`ChainError::NoMemtable`], [`ChainError::TooLong`], [`ChainError::Dropped`]:
    /// nothing is written then. [`ChainError::Poisoned`]: it may be written.
    #[inline]
    pub fn commit(
        &self,
        item: &mut Item,
        supply: Supply,
        granted: impl FnOnce(&Place),
        publish: impl FnMut(&Written<'_>),
    ) -> Result<u64, ChainError> {
        let last = self.write(item, supply, |_, _| (), granted, publish)?;
        item.clear();
        self.wait(last)?;
        Ok(last)
    }

    /// As [`commit`](ChainLog::commit), but it does not wait for the items before: only when the number that
    /// it returns is [visible](ChainLog::wait), no crash takes it back. The item is left as it is.
    ///
    /// `opened` is told the tables and numbers of memtables, before anything gets a place in them.
    #[inline]
    pub fn write(
        &self,
        item: &mut Item,
        supply: Supply,
        opened: impl Fn(usize, u64),
        granted: impl FnOnce(&Place),
        mut publish: impl FnMut(&Written<'_>),
    ) -> Result<u64, ChainError> {
        let pieces = item.pieces();
        let mut count = 0;
        for piece in &mut *pieces {
            self.heap.check_len(piece.chunk.bytes())?;
            piece.chunk.close(self.heap.certifier());
            count += piece.chunk.records();
        }
        if count == 0 {
            return Ok(self.visible());
        }
        let (mut needy, mut block) = (None, None);
        let flight = loop {
            let mut turn = self.ring.turn()?;
            if let Some(block) = block.take() {
                turn.add_numbers(block);
            }
            if !turn.has_numbers(count) {
                drop(turn);
                block = Some(self.heap.clock().draw_block(self.heap.space(), BLOCK.max(count)));
                continue;
            }
            let lacks = |piece: &&ItemPiece| !turn.state().fits(piece.table, piece.chunk.len());
            if let Some(table) = pieces.iter().find(lacks).map(|piece| piece.table) {
                drop(turn);
                self.prepare(table, supply, &opened)?;
                continue;
            }
            break turn.grant(count, |tails, place| needy = self.place(tails, pieces, place)).0;
        };
        granted(flight.place());
        self.write_pieces(pieces, flight.place());
        pieces.iter().for_each(|piece| publish(&piece.written()));
        let last = flight.place().last;
        flight.done();
        if let Some(table) = needy {
            // Ahead of need; if there is no room, only the item that needs it fails.
            let _ = self.prepare(table, supply, &opened);
        }
        Ok(last)
    }

    /// Chooses the places of an item. Returns a table of which something should be made ready.
    #[inline]
    fn place(&self, tails: &mut Tails, pieces: &mut [ItemPiece], place: &Place) -> Option<usize> {
        let (mut needy, mut next) = (None, place.first);
        for piece in pieces {
            let tail = tails.of(piece.table);
            piece.first = next;
            next += piece.chunk.records();
            let (spot, full) = tail.place(piece.chunk.len(), place.last);
            piece.spot = Some(spot);
            let counts = piece.chunk.counts();
            self.heap.usage().note_written(spot.zone, &counts);
            if counts.expiring != 0 {
                self.heap.space().note_expiring();
            }
            if !tail.is_ready() {
                needy = Some(piece.table);
            }
            if let Some(full) = full {
                self.full.lock().push(full);
            }
        }
        needy
    }

    /// Writes the chunks of an item. They are durable when this returns.
    #[inline]
    fn write_pieces(&self, pieces: &mut [ItemPiece], place: &Place) {
        let count = pieces.len() as u16;
        for (ItemPiece { chunk, spot, first, reference, .. }, nth) in pieces.iter_mut().zip(0..) {
            let spot = spot.as_ref().expect("it has been placed");
            let piece = Piece { piece: nth, pieces: count, first_here: *first };
            *reference = Some(self.heap.write(chunk, spot, place, piece));
        }
        self.heap.region().fence();
    }

    /// Makes ready the zone or memtable that a tail needs, unless another thread has.
    #[cold]
    fn prepare(&self, table: usize, supply: Supply, opened: &dyn Fn(usize, u64)) -> Result<(), ChainError> {
        let _alone = self.preparing.lock();
        // Nobody else adds anything, and a tail without anything ready stays in its zone.
        let need = self.ring.turn()?.state().needs(table)?;
        match need {
            None => {}
            Some(Need::Zone(memtable, slot)) => {
                let spare = self.heap.prepare_zone(&memtable, slot, supply)?;
                self.ring.turn()?.state().of(table).add_zone(spare);
            }
            Some(Need::Memtable(subtable)) => {
                let standby = self.heap.open(subtable, supply)?;
                self.memtables.lock().push(standby.memtable.clone());
                opened(table, standby.memtable.number());
                self.ring.turn()?.state().add_memtable(table, standby);
            }
        }
        Ok(())
    }

    /// Waits until a number is visible. Ends memtables that are full, once all of them is visible, and tells
    /// whether there was one.
    ///
    /// # Errors
    /// If the ring is poisoned before.
    #[inline]
    pub fn wait(&self, number: u64) -> Result<bool, Poisoned> {
        self.ring.wait(number)?;
        let is_due = self.full.try_lock().is_some_and(|full| !full.is_empty());
        let alone = is_due.then(|| self.ending.try_lock()).flatten();
        Ok(alone.is_some_and(|alone| self.end_visible(&alone)))
    }

    /// Ends the memtables that are full and visible, which another thread may have left.
    pub fn end_full(&self) {
        self.end_visible(&self.ending.lock());
    }

    #[cold]
    fn end_visible(&self, _alone: &SpinGuard<'_, ()>) -> bool {
        let visible = if twin!(EndedUnseen) { u64::MAX } else { self.visible() };
        let is_ripe = |full: &&Full| full.last <= visible;
        let ripe: Vec<Full> = self.full.lock().iter().filter(is_ripe).cloned().collect();
        if ripe.is_empty() {
            return false;
        }
        ripe.iter().for_each(|full| self.heap.mark_end(&full.memtable, full.end, full.last));
        self.heap.region().fence();
        let has_ended = |full: &Full| ripe.iter().any(|other| Arc::ptr_eq(&other.memtable, &full.memtable));
        self.full.lock().retain(|full| !has_ended(full));
        ripe.iter().for_each(|full| self.heap.trim(&full.memtable, full.end));
        true
    }

    /// Ends the memtable that a table writes to, once all of it is visible. The next write opens another
    /// one.
    ///
    /// # Errors
    /// If the ring is poisoned.
    pub fn seal(&self, table: usize) -> Result<(), Poisoned> {
        let alone = self.preparing.lock();
        let mut turn = self.ring.turn()?;
        let tail = turn.state().take_tail(table, Tail::has_chunks);
        let Some(last) = tail.as_ref().map(Tail::last) else { return Ok(()) };
        self.close_tail(turn, tail);
        drop(alone);
        self.ring.wait(last)?;
        self.end_full();
        Ok(())
    }

    /// Ends all memtables of a table, and draws a number from the pool's clock that they are below and all
    /// later ones are above. `begin` is told it before any of the later ones is there. Returns the last
    /// number of the items of before, which are visible then.
    ///
    /// # Errors
    /// If the ring is poisoned.
    pub fn freeze(&self, table: usize, begin: impl FnOnce(u64)) -> Result<u64, Poisoned> {
        let last = self.begin_to_freeze(table, begin)?;
        self.ring.wait(last)?;
        self.end_full();
        Ok(last)
    }

    /// A [freeze](ChainLog::freeze) that does not wait.
    ///
    /// # Errors
    /// If the ring is poisoned.
    #[doc(hidden)]
    pub fn begin_to_freeze(&self, table: usize, begin: impl FnOnce(u64)) -> Result<u64, Poisoned> {
        // Nobody opens a memtable meanwhile.
        let alone = self.preparing.lock();
        let boundary = self.heap.clock().draw(self.heap.space());
        begin(boundary);
        let mut turn = self.ring.turn()?;
        let (last, tail) = (turn.last(), turn.state().take_tail(table, |_| true));
        self.close_tail(turn, tail);
        drop(alone);
        Ok(last)
    }

    /// Ends the appending to a memtable, and gives up memtables without a chunk.
    fn close_tail(&self, turn: Turn<'_, Tails>, tail: Option<Tail>) {
        let has_chunks = tail.as_ref().is_some_and(Tail::has_chunks);
        let (full, unused) = tail.map(Tail::close).unzip();
        let empty = if has_chunks {
            self.full.lock().extend(full);
            None
        } else {
            full.map(|full| full.memtable)
        };
        drop(turn);
        let unused = unused.flatten().map(|standby| standby.memtable);
        unused.into_iter().chain(empty).for_each(|memtable| self.give_up(&memtable));
    }

    /// Releases a memtable.
    fn give_up(&self, memtable: &Arc<Memtable>) {
        self.memtables.lock().retain(|other| !Arc::ptr_eq(other, memtable));
        self.heap.release(memtable);
    }

    /// Ends the writes to a subtable, and returns a number that none of them is above. Its memtables do not
    /// end.
    pub(super) fn leave(&self, table: usize) -> Result<u64, Poisoned> {
        let _alone = self.preparing.lock();
        let mut turn = self.ring.turn()?;
        let open = turn.state().0.get_mut(table).and_then(Option::take);
        // A zone that was ready is the memtable's.
        open.and_then(|open| open.tail).map(Tail::close);
        Ok(turn.last())
    }

    /// Takes the memtables of a subtable out of the log.
    pub(super) fn forget(&self, subtable: u64) -> Vec<Arc<Memtable>> {
        let _alone = self.ending.lock();
        self.full.lock().retain(|full| full.memtable.subtable() != subtable);
        self.memtables.lock().extract_if(.., |memtable| memtable.subtable() == subtable).collect()
    }

    /// Whether a zone or a memtable is being made ready.
    pub fn is_preparing(&self) -> bool {
        self.preparing.try_lock().is_none()
    }

    /// Zones that are ready for memtables, and not theirs yet.
    ///
    /// # Errors
    /// If the ring is poisoned.
    pub fn spare_zones(&self) -> Result<Vec<ZoneId>, Poisoned> {
        let mut turn = self.ring.turn()?;
        let tails = turn.state().0.iter().flatten().filter_map(|open| open.tail.as_ref());
        Ok(tails.filter_map(Tail::spare_zone).collect())
    }

    /// Where a memtable that has not ended ends now: behind its last chunk. `None` if it has none.
    ///
    /// # Errors
    /// If the ring is poisoned.
    pub fn end_so_far(&self, memtable: &Arc<Memtable>) -> Result<Option<u32>, Poisoned> {
        let mut turn = self.ring.turn()?;
        let full = self.full.lock();
        let ended = full.iter().find(|full| Arc::ptr_eq(&full.memtable, memtable)).map(|full| full.end);
        let tails = turn.state().0.iter().flatten().filter_map(|open| open.tail.as_ref());
        Ok(memtable.end().or(ended).or_else(|| tails.filter_map(|tail| tail.end_of(memtable)).next()))
    }

    /// All memtables, those that are written to included.
    pub fn memtables(&self) -> Vec<Arc<Memtable>> {
        self.memtables.lock().clone()
    }

    /// Notes that all items that are visible now are durable, though parts of them may leave the pool.
    fn raise_through(&self, anchor: &Anchor) {
        if !twin!(ThroughNotRaised) {
            anchor.raise(self.heap.region(), self.heap.certifier(), self.visible());
        }
    }

    /// Notes that the memtables of a subtable up to a number are on its levels: the [anchor](Anchor) first,
    /// and then the word of the subtable. Durable when this returns, and a crash before leaves the old word
    /// or the new. Recovery releases these memtables.
    pub fn note_flushed(&self, subtable: &Subtable, number: u64, anchor: &Anchor) {
        self.raise_through(anchor);
        let number = match twin!(FlushedByObject) {
            false => number,
            true => {
                let memtables = self.memtables();
                let own = memtables.iter().filter(|memtable| {
                    memtable.subtable() == subtable.created && memtable.number() <= number
                });
                own.map(|memtable| u64::from(memtable.object.0) + 1).max().unwrap_or_default()
            }
        };
        self.heap.note_flushed(subtable, number);
    }

    /// Releases memtables that have ended, whose records are all superseded, and that nobody reads any more.
    /// The anchor is raised first, as for a [drop](ChainLog::drop_subtable).
    pub fn release(&self, memtables: &[Arc<Memtable>], anchor: &Anchor) {
        if memtables.is_empty() {
            return;
        }
        self.raise_through(anchor);
        for memtable in memtables {
            self.give_up(memtable);
        }
    }

    /// Ends all memtables, durably, and gives back zones and memtables that are ready and unused. No table
    /// takes writes from then on. The caller has the log for itself, and nothing is under way.
    ///
    /// # Errors
    /// If the ring is poisoned: the next open cuts the log.
    pub fn close(&self) -> Result<(), Poisoned> {
        let tables = std::mem::take(&mut self.ring.turn()?.state().0);
        let tails = tables.into_iter().flatten().filter_map(|open| open.tail);
        let (closed, unused): (Vec<Full>, Vec<_>) = tails.map(Tail::close).unzip();
        // One without a number has nothing that counts.
        let (empty, closed): (Vec<Full>, Vec<Full>) = closed.into_iter().partition(|full| full.last == 0);
        let full: Vec<Full> = closed.into_iter().chain(self.full.lock().drain(..)).collect();
        full.iter().for_each(|full| self.heap.mark_end(&full.memtable, full.end, full.last));
        self.heap.region().fence();
        full.iter().for_each(|full| self.heap.trim(&full.memtable, full.end));
        let unused = unused.into_iter().flatten().map(|standby| standby.memtable);
        let empty = empty.into_iter().map(|empty| empty.memtable);
        unused.chain(empty).for_each(|memtable| self.give_up(&memtable));
        Ok(())
    }
}
