//! The records of an item, before and after they have a place.

use super::chunk::Chunk;
use super::tail::Spot;
use super::view::RecordFound;
use crate::heap::Reference;

/// The records of an item, by subtable. It is reused, so that a write allocates nothing once it has grown.
#[derive(Default)]
pub struct Item {
    pieces: Vec<ItemPiece>,
    /// How many of the pieces are in use.
    used: usize,
}

#[derive(Default)]
pub(super) struct ItemPiece {
    pub table: usize,
    pub chunk: Chunk,
    /// Since the grant.
    pub spot: Option<Spot>,
    /// The number of its first record, since the grant.
    pub first: u64,
    /// Since it was written.
    pub reference: Option<Reference>,
}

impl ItemPiece {
    pub fn written(&self) -> Written<'_> {
        let reference = self.reference.expect("it has been written");
        let spot = self.spot.as_ref().expect("it has been placed");
        Written { table: self.table, spot, first: self.first, reference, chunk: &self.chunk }
    }
}

/// A chunk of an item that is durable, for its publication.
pub struct Written<'i> {
    /// Its subtable.
    pub table: usize,
    spot: &'i Spot,
    /// The number of its first record; the others follow.
    pub first: u64,
    reference: Reference,
    chunk: &'i Chunk,
}

impl Written<'_> {
    /// The number of its memtable.
    pub fn memtable(&self) -> u64 {
        self.spot.memtable
    }

    /// The references of its records, in order, as they were added.
    pub fn references(&self) -> impl ExactSizeIterator<Item = Reference> {
        self.chunk.records_in_order().map(|(start, _)| self.reference.plus(start))
    }

    /// Its records, in order, as they were added.
    #[inline]
    pub fn records(&self) -> impl Iterator<Item = RecordFound<'_>> {
        let located = self.chunk.records_in_order();
        located.map(|(start, record)| RecordFound { reference: self.reference.plus(start), ..record })
    }
}

impl Item {
    /// Makes it empty.
    pub fn clear(&mut self) {
        self.used = 0;
    }

    /// Its parts that have records.
    #[inline]
    pub(super) fn pieces(&mut self) -> &mut [ItemPiece] {
        if self.pieces[..self.used].iter().any(|piece| piece.chunk.is_empty()) {
            let (pieces, mut kept) = (&mut self.pieces, 0);
            for at in 0..self.used {
                if !pieces[at].chunk.is_empty() {
                    pieces.swap(at, kept);
                    kept += 1;
                }
            }
            self.used = kept;
        }
        &mut self.pieces[..self.used]
    }

    /// The chunk of a subtable, to add records to.
    pub fn chunk(&mut self, table: usize) -> &mut Chunk {
        let used = self.pieces[..self.used].iter().position(|piece| piece.table == table);
        let at = used.unwrap_or_else(|| {
            if self.used == self.pieces.len() {
                self.pieces.push(ItemPiece::default());
            }
            let piece = &mut self.pieces[self.used];
            piece.table = table;
            piece.chunk.clear();
            self.used += 1;
            self.used - 1
        });
        &mut self.pieces[at].chunk
    }

    /// Adds the records of another item behind its own.
    pub fn append(&mut self, other: &Item) {
        for piece in &other.pieces[..other.used] {
            self.chunk(piece.table).append(&piece.chunk);
        }
    }

    /// Records that it has.
    pub fn records(&self) -> u64 {
        self.pieces[..self.used].iter().map(|piece| piece.chunk.records()).sum()
    }

    /// Whether it has no record.
    pub fn is_empty(&self) -> bool {
        self.records() == 0
    }

    /// Bytes that it takes on the medium.
    pub fn len(&self) -> u64 {
        self.pieces[..self.used].iter().map(|piece| piece.chunk.len()).sum()
    }
}
