//! Building a chunk in DRAM.

use super::layout::{CHUNK_HEADER, ChainChunk, ChainRecord, DATA, hash_of_records};
use super::tail::Spot;
use super::usage::Counts;
use super::view::{RecordFound, parse};
use crate::commit::ring::Place;
use crate::heap::Reference;
use crate::record::{Certifier, Content, EXPIRES, Kind};
use quipu_medium::LINE;
use zerocopy::IntoBytes;

/// The records of an item for one memtable, in the form in which they go to the medium. It is reused, so
/// that a write allocates nothing once it has grown.
///
/// The long part is done before the grant: the records and their hash. Behind it, only their numbers and the
/// header are filled in.
#[derive(Default)]
pub struct Chunk {
    /// Header and records; once closed, zeros to the end of the last line.
    bytes: Vec<u8>,
    /// Where each record begins.
    starts: Vec<u32>,
    /// Records that delete their keys.
    tombstones: u64,
    /// Records that expire, and when the last of them does.
    expiring: u64,
    expires: u64,
    /// Hash of the records, once closed.
    records_hash: u64,
}

/// The part of an item that a chunk is.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// Which chunk of the item, from 0.
    pub piece: u16,
    /// Chunks of the item.
    pub pieces: u16,
    /// The number of the chunk's first record.
    pub first_here: u64,
}

impl Chunk {
    /// Makes it empty.
    pub fn clear(&mut self) {
        self.starts.clear();
        (self.tombstones, self.expiring, self.expires) = (0, 0, 0);
        self.bytes.truncate(CHUNK_HEADER as usize);
        self.bytes.resize(CHUNK_HEADER as usize, 0);
    }

    /// Adds a record.
    #[inline]
    pub fn push(&mut self, content: &Content<'_>) {
        self.add(content, None);
    }

    /// Adds a deletion of all keys from this one on, and below `to`, if that is not empty.
    pub fn push_range(&mut self, from: &[u8], to: &[u8]) {
        self.push(&Content { kind: Kind::Range, ..Content::value(from, to) });
    }

    /// Adds a copy of a record, which keeps its version.
    pub fn push_copy(&mut self, content: &Content<'_>, version: u64) {
        self.add(content, Some(version));
    }

    #[inline]
    fn add(&mut self, content: &Content<'_>, version: Option<u64>) {
        let Chunk { bytes, starts, tombstones, expiring, expires, .. } = self;
        *tombstones += u64::from(content.kind != Kind::Value);
        *expires = (*expires).max(content.expires);
        *expiring += u64::from(content.expires != 0);
        if bytes.is_empty() {
            bytes.resize(CHUNK_HEADER as usize, 0);
        }
        let (start, header) = (bytes.len(), ChainRecord::of(content, version.is_some()));
        starts.push(start as u32);
        bytes.extend_from_slice(header.as_bytes());
        if header.flags & EXPIRES != 0 {
            bytes.extend_from_slice(&content.expires.to_le_bytes());
        }
        if let Some(version) = version {
            bytes.extend_from_slice(&version.to_le_bytes());
        }
        bytes.extend_from_slice(content.key);
        bytes.extend_from_slice(content.value);
        let end = start + header.record_len() as usize;
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
    }

    /// Adds the records of another chunk that is not closed, behind its own.
    pub fn append(&mut self, other: &Chunk) {
        if other.is_empty() {
            return;
        }
        if self.is_empty() {
            self.clear();
        }
        self.tombstones += other.tombstones;
        self.expiring += other.expiring;
        self.expires = self.expires.max(other.expires);
        let moved = self.bytes.len() as u32 - CHUNK_HEADER as u32;
        self.starts.extend(other.starts.iter().map(|start| start + moved));
        self.bytes.extend_from_slice(&other.bytes[CHUNK_HEADER as usize..]);
    }

    /// Records that it has.
    #[inline]
    pub fn records(&self) -> u64 {
        self.starts.len() as u64
    }

    /// Its part in the counts of its zone.
    #[inline]
    pub(super) fn counts(&self) -> Counts {
        Counts {
            bytes: self.len(),
            packed: self.bytes() - CHUNK_HEADER,
            records: self.records(),
            tombstones: self.tombstones,
            expiring: self.expiring,
            expires: self.expires,
        }
    }

    /// Whether it has none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Bytes of header and records.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Bytes that it takes on the medium, in whole lines.
    #[inline]
    pub fn len(&self) -> u64 {
        (self.bytes.len() as u64).next_multiple_of(LINE)
    }

    /// Ends the long part: no record may be added any more.
    #[inline]
    pub fn close(&mut self, certifier: &Certifier) {
        assert!(!self.is_empty(), "an item has no empty piece");
        self.records_hash = hash_of_records(certifier, &self.bytes[CHUNK_HEADER as usize..]);
    }

    /// Fills in the decisions of the grant, and returns the lines to write.
    #[inline]
    pub(super) fn stamp(&mut self, certifier: &Certifier, spot: &Spot, place: &Place, piece: Piece) -> &[u8] {
        let (len, lines) = (self.bytes.len(), self.len());
        for (start, number) in self.starts.iter().zip(piece.first_here..) {
            let at = *start as usize;
            self.bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        let mut header = ChainChunk {
            check: 0.into(),
            first: place.first.into(),
            before: place.before.into(),
            floor: place.floor.into(),
            prev: spot.prev.into(),
            len: (len as u32).into(),
            count: ((place.last - place.first + 1) as u32).into(),
            here: (self.starts.len() as u32).into(),
            ahead: ((piece.first_here - place.first) as u32).into(),
            pieces: piece.pieces.into(),
            piece: piece.piece.into(),
            kind: DATA,
            flags: 0,
            reserved: [0; 6],
        };
        header.check.set(header.expected_check(certifier, spot.life, spot.place, self.records_hash));
        self.bytes[..CHUNK_HEADER as usize].copy_from_slice(header.as_bytes());
        self.bytes.resize(lines as usize, 0);
        &self.bytes
    }

    /// The records in order, and how far each is from the beginning of the chunk.
    #[inline]
    pub(super) fn records_in_order(&self) -> impl ExactSizeIterator<Item = (u64, RecordFound<'_>)> {
        let nowhere = Reference::from_word(0);
        self.starts.iter().map(move |start| {
            let record = parse(&self.bytes[*start as usize..], nowhere, 0).expect("it was pushed");
            (u64::from(*start), record)
        })
    }
}
