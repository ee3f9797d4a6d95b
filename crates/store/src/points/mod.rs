//! The common side of walks whose index names records in segments: reads, with one lookup in the index and
//! one in the record and no lock; clients, checks, the scan of a recovery, checkpoints. The walks over
//! [logs](crate::log) and over [files of all clients](crate::nlog) add their ways to write and to clean.
//!
//! A pinned epoch keeps every record that a reader can reach from reuse, and published records never change.
//! A walk may have writes that the index does not know yet. So a read first [settles](Points::settle) the
//! stripe of its key.

mod cached;
pub(crate) mod check;
pub(crate) mod checkpoint;
mod clear;
mod client;
mod decide;
mod each;
mod expiry;
mod near;
mod proved;
mod read;
pub(crate) mod recovery;
mod scan;
mod value;

pub(crate) use cached::cache_of;
pub(crate) use client::{Client, RangeOf, Walk, range_of};
pub(crate) use each::Batch;
pub(crate) use near::{Readers, reader_jobs};
pub(crate) use read::Points;

use crate::engine::common::Common;
use crate::types::error::Error;
use crate::walk::proof::drawn_end;
use quipu_medium::Region;
use quipu_parts::cache::Cache;
use quipu_parts::heap::segments::LogHeap;
use quipu_parts::heap::{Reference, SizedReference};
use quipu_parts::index::{Index, Key, Records};
use quipu_parts::record::{EXPIRY_FIELD, HEADER, Kind, LEADING_FIELD, RecordView};
use std::ops::Range;
use std::sync::Arc;

/// The parts of an open store that reads need.
pub(crate) struct Core<I: Index> {
    pub(crate) heap: LogHeap,
    pub(crate) index: I,
    pub(crate) common: Common,
    /// Whether garbage is counted by record. Words then tell the length of a record, if the index has room
    /// for it, and bits in DRAM tell which records are dead (PACMAN section 3.2).
    pub(crate) sizes_in_words: bool,
    /// Whether reads prove the records that they return (see [`proved`]).
    pub(crate) verifies: bool,
    /// The cache in front of the index, if there is one.
    pub(crate) cache: Option<Arc<Cache>>,
    /// The threads that read for scans on their nodes, if there are any.
    pub(crate) readers: Option<Readers>,
    /// The ordered walk over its keys, if the index keeps an order.
    pub(crate) in_order: Option<RangeOf<I>>,
}

/// A record that the index names, with the word that names it.
#[derive(Clone, Copy)]
pub(crate) struct Located<'g> {
    pub(crate) word: u64,
    pub(crate) record: RecordView<'g>,
}

impl Located<'_> {
    /// Whether the word names a tombstone, which exists in the index only during recovery.
    pub(crate) fn is_tombstone(&self) -> bool {
        reference_of(self.word).tag() == TOMBSTONE
    }
}

/// Tag of a reference whose record is a tombstone. The index never holds one once recovery is over.
pub(crate) const TOMBSTONE: u64 = 1;

/// A reference that tells whether its record is a tombstone.
#[inline]
pub(crate) fn tagged(reference: Reference, kind: Kind) -> Reference {
    if kind == Kind::Tombstone { reference.with_tag(TOMBSTONE) } else { reference }
}

/// The record that a word names, whether it tells the length or not.
#[inline]
pub(crate) fn reference_of(word: u64) -> Reference {
    SizedReference::from_word(word).reference()
}

/// Longest key that any record can hold: its length takes 16 bits.
const KEY_MAX: u64 = u16::MAX as u64;

impl<I: Index> Core<I> {
    pub(crate) fn region(&self) -> &Region {
        self.heap.region()
    }

    /// Longest key of this pool: it must fit a segment beside the longest value that stands in a record, a
    /// time of expiry and a word in front of the key.
    pub(crate) fn key_limit(&self) -> u64 {
        KEY_MAX.min(self.heap.longest_record() - HEADER - EXPIRY_FIELD - LEADING_FIELD - self.inline_limit())
    }

    #[inline]
    pub(crate) fn check_key(&self, key: &[u8]) -> Result<(), Error> {
        let len = key.len() as u64;
        if len == 0 {
            return Err(Error::KeyEmpty { limit: self.key_limit() });
        }
        if len > self.key_limit() {
            return Err(Error::KeyTooLarge { len, limit: self.key_limit() });
        }
        Ok(())
    }

    /// Longest value that stands in its record: a quarter of a segment.
    #[inline]
    pub(crate) fn inline_limit(&self) -> u64 {
        self.heap.space().zone_size() / 4
    }

    /// Refuses values that only zones of their own could hold.
    pub(crate) fn check_inline(&self, value: &[u8]) -> Result<(), Error> {
        let (len, limit) = (value.len() as u64, self.inline_limit());
        if len > limit { Err(Error::ValueTooLarge { len, limit }) } else { Ok(()) }
    }

    /// The word by which the index names a record of this kind and length. It holds the length if it has
    /// room. The word of a large value omits it, since the head must be read when it is superseded.
    #[inline]
    pub(crate) fn word(&self, reference: Reference, kind: Kind, len: u64) -> u64 {
        let reference = tagged(reference, kind);
        if I::WORD_BITS >= SizedReference::BITS && self.sizes_in_words && kind != Kind::Large {
            SizedReference::new(reference, len).word()
        } else {
            reference.word()
        }
    }

    /// The numbers that records of this pool can have.
    pub(crate) fn drawn(&self) -> Range<u64> {
        1..drawn_end(self.heap.space().superblock().clock_ceiling.get())
    }

    /// The key as its index looks for it.
    #[inline(always)]
    pub(crate) fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        Key { bytes, hash: self.hash(bytes) }
    }

    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        I::key_hash(self.heap.certifier(), key)
    }

    /// The key in a record; nothing if a damaged word names none. The caller of an operation of the index is
    /// pinned.
    fn key_in_record(&self, word: u64) -> Option<&[u8]> {
        let offset = self.place_of(word)?;
        // SAFETY: as in `named`.
        let record = unsafe { RecordView::published_key(self.region(), offset) };
        Some(record?.key)
    }
}

impl<I: Index> Records for Core<I> {
    fn hash_of(&self, word: u64) -> u64 {
        self.key_in_record(word).map_or(0, |key| self.hash(key))
    }

    fn key_of(&self, word: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(self.key_in_record(word).unwrap_or_default());
    }
}
