//! [`ChainLog`]: the life of an item, from top to bottom.

use super::chunk::Piece;
use super::item::{Item, ItemPiece, Written};
use super::memtable::ChainHeap;
use super::tail::{Full, Need, Tail};
use super::walk::ChainError;
use crate::commit::Ring;
use crate::commit::ring::{Grants, Place, Poisoned};
use crate::sync::{SpinGuard, SpinLock};
use quipu_medium::Node;

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
    /// Memtables that are full and have not ended.
    full: SpinLock<Vec<Full>>,
}

/// The tails of the subtables, by their numbers in this run.
#[derive(Default)]
struct Tails(Vec<Option<Tail>>);

impl Tails {
    #[inline]
    fn of(&mut self, table: usize) -> &mut Tail {
        self.0[table].as_mut().expect("a table that is written to has a tail")
    }
}

impl ChainLog {
    /// A log behind the number `cut`, without a subtable.
    pub fn new(heap: ChainHeap, grants: Grants, cut: u64) -> ChainLog {
        let ring = Ring::new(CAPACITY, grants, cut, Tails::default());
        ChainLog { heap, ring, preparing: SpinLock::default(), full: SpinLock::default() }
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

    /// Lets a subtable take writes, as number `table` of this run.
    ///
    /// # Errors
    /// [`ChainError::Full`], [`ChainError::NoMemtable`], [`ChainError::Poisoned`].
    pub fn open(&self, table: usize, subtable: u32, node: Option<Node>) -> Result<(), ChainError> {
        let tail = Tail::new(self.heap.open(subtable, node)?);
        let mut turn = self.ring.turn()?;
        let tails = &mut turn.state().0;
        if tails.len() <= table {
            tails.resize_with(table + 1, || None);
        }
        assert!(tails[table].replace(tail).is_none(), "each table has a number of its own");
        Ok(())
    }

    /// Writes an item, waits until it is visible, and returns its last number. Then it has happened, and no
    /// crash takes it back.
    ///
    /// `granted` is told its place in the order, before anything is written. `publish` is shown each chunk
    /// when all are durable. Neither may fail, nor wait for anything but short locks: all later items wait
    /// for it.
    ///
    /// # Errors
    /// [`ChainError::Full`], [`ChainError::NoMemtable`], [`ChainError::TooLong`]: nothing is written then.
    /// [`ChainError::Poisoned`]: it may be written.
    #[inline]
    pub fn commit(
        &self,
        item: &mut Item,
        node: Option<Node>,
        granted: impl FnOnce(&Place),
        publish: impl FnMut(&Written<'_>),
    ) -> Result<u64, ChainError> {
        let last = self.write(item, node, granted, publish)?;
        self.wait(last)?;
        Ok(last)
    }

    /// As [`commit`](ChainLog::commit), but it does not wait for the items before: only when the number that
    /// it returns is [visible](ChainLog::wait), no crash takes it back.
    #[inline]
    pub fn write(
        &self,
        item: &mut Item,
        node: Option<Node>,
        granted: impl FnOnce(&Place),
        mut publish: impl FnMut(&Written<'_>),
    ) -> Result<u64, ChainError> {
        let pieces = item.pieces();
        let mut count = 0;
        for piece in &mut *pieces {
            self.heap.check_len(piece.chunk.len())?;
            piece.chunk.close(self.heap.certifier());
            count += piece.chunk.records();
        }
        let mut needy = None;
        let flight = loop {
            let mut turn = self.ring.turn()?;
            if !turn.has_numbers(count) {
                drop(turn);
                let block = self.heap.clock().draw_block(self.heap.space(), BLOCK.max(count));
                self.ring.turn()?.add_numbers(block);
                continue;
            }
            let lacks = |piece: &&ItemPiece| !turn.state().of(piece.table).fits(piece.chunk.len());
            if let Some(table) = pieces.iter().find(lacks).map(|piece| piece.table) {
                drop(turn);
                self.prepare(table, node)?;
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
            let _ = self.prepare(table, node);
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
            let (spot, full) = tail.place(piece.chunk.len(), next - 1);
            piece.spot = Some(spot);
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

    /// Makes ready what a tail needs, unless another thread has.
    #[cold]
    fn prepare(&self, table: usize, node: Option<Node>) -> Result<(), ChainError> {
        let _alone = self.preparing.lock();
        // Nobody else adds anything, and a tail without anything ready stays in its zone.
        let need = self.ring.turn()?.state().of(table).needs();
        match need {
            None => {}
            Some(Need::Zone(memtable, slot)) => {
                let spare = self.heap.prepare_zone(&memtable, slot, node)?;
                self.ring.turn()?.state().of(table).add_zone(spare);
            }
            Some(Need::Memtable(subtable)) => {
                let standby = self.heap.open(subtable, node)?;
                self.ring.turn()?.state().of(table).add_memtable(standby);
            }
        }
        Ok(())
    }

    /// Waits until a number is visible. Ends memtables that are full, once all of them is visible.
    ///
    /// # Errors
    /// If the ring is poisoned, and the number will not be visible.
    #[inline]
    pub fn wait(&self, number: u64) -> Result<(), Poisoned> {
        self.ring.wait(number)?;
        match self.full.try_lock() {
            Some(full) if !full.is_empty() => self.end_visible(full),
            _ => {}
        }
        Ok(())
    }

    #[cold]
    fn end_visible(&self, mut full: SpinGuard<'_, Vec<Full>>) {
        let visible = self.visible();
        for full in full.extract_if(.., |full| full.last <= visible) {
            self.heap.mark_end(&full.memtable, full.end, full.last);
        }
        self.heap.region().fence();
    }

    /// Ends all memtables, durably. The caller has the log for itself, and nothing is under way.
    ///
    /// # Errors
    /// If the ring is poisoned: what is missing is found when the pool is opened.
    pub fn close(self) -> Result<ChainHeap, Poisoned> {
        let mut turn = self.ring.turn()?;
        let closed = turn.state().0.drain(..).flatten().map(Tail::close);
        let full: Vec<Full> = closed.chain(self.full.lock().drain(..)).collect();
        drop(turn);
        for Full { memtable, last, end } in full {
            // Nothing of it counts: it has no number that it could end with.
            if last == 0 { self.heap.release(&memtable) } else { self.heap.mark_end(&memtable, end, last) }
        }
        self.heap.region().fence();
        Ok(self.heap)
    }
}
