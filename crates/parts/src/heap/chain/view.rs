//! Records in place.

use super::layout::{CHUNK_HEADER, ChainRecord, FIRST_CHUNK, MOVED};
use super::memtable::ChainHeap;
use super::walk::ChainError;
use crate::heap::Reference;
use crate::record::{EXPIRES, Kind};
use crate::space::ZoneId;
use zerocopy::FromBytes;

/// A record of a chunk.
#[derive(Clone, Copy, Debug)]
pub struct RecordFound<'a> {
    /// Its number.
    pub sequence: u64,
    /// Its kind.
    pub kind: Kind,
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// The number that it was first written with.
    pub version: u64,
    /// When it expires, in milliseconds since 1970; 0 for never.
    pub expires: u64,
    /// Where it stands.
    pub reference: Reference,
    /// Bytes that it takes.
    pub len: u64,
}

/// The header of a record within `bytes` that begins there, and its length. `None` if its lengths leave them.
#[inline]
pub(super) fn split_record(bytes: &[u8]) -> Option<(&ChainRecord, u64)> {
    let (header, _) = ChainRecord::ref_from_prefix(bytes).ok()?;
    let len = header.record_len();
    (len <= bytes.len() as u64).then_some((header, len))
}

/// The record that begins there, at byte `at` of the region; its header is within the bytes.
///
/// # Errors
/// [`ChainError::Damaged`] and [`ChainError::Unknown`].
#[inline]
pub(super) fn parse(bytes: &[u8], reference: Reference, at: u64) -> Result<RecordFound<'_>, ChainError> {
    let damaged = || ChainError::Damaged { what: "a record of a chunk", offset: at };
    let (header, len) = split_record(bytes).ok_or_else(damaged)?;
    let (kind, flags) = (header.kind, header.flags);
    let known = Kind::from_byte_in_memtable(kind).filter(|_| flags & !(EXPIRES | MOVED) == 0);
    let kind = known.ok_or(ChainError::Unknown { kind, flags, offset: at })?;
    let key_at = header.key_offset() as usize;
    let value_at = key_at + usize::from(header.key_len.get());
    let value_end = value_at + header.value_len.get() as usize;
    let (sequence, mut fields) = (header.sequence.get(), &bytes[size_of::<ChainRecord>()..key_at]);
    let mut field = |flag, absent| match (flags & flag, fields.split_first_chunk()) {
        (0, _) | (_, None) => absent,
        (_, Some((field, rest))) => {
            fields = rest;
            u64::from_le_bytes(*field)
        }
    };
    let (expires, version) = (field(EXPIRES, 0), field(MOVED, sequence));
    if version > sequence {
        return Err(damaged());
    }
    let (key, value) = (&bytes[key_at..value_at], &bytes[value_at..value_end]);
    Ok(RecordFound { sequence, kind, key, value, version, expires, reference, len })
}

impl ChainHeap {
    /// Where a record stands in the region. A reference that leaves the pool leads beyond the region.
    #[inline]
    pub fn resolve(&self, reference: Reference) -> u64 {
        let shift = self.space.zone_size().trailing_zeros();
        let start = self.space.checked_zone_offset(reference.zone(shift)).unwrap_or(self.region().len());
        start + reference.offset(shift)
    }

    /// The key of the first record in a zone, as a sample of its keys.
    ///
    /// # Safety
    /// The zone is one of a memtable that is not released meanwhile, and has a published record.
    pub unsafe fn first_key(&self, zone: ZoneId) -> Option<Vec<u8>> {
        let shift = self.space.zone_size().trailing_zeros();
        let first = Reference::new(zone, FIRST_CHUNK + CHUNK_HEADER, shift);
        // SAFETY: as the caller promises.
        unsafe { self.record(first) }.ok().map(|record| record.key.to_vec())
    }

    /// The zone of a record.
    #[inline]
    pub fn zone_of(&self, reference: Reference) -> ZoneId {
        reference.zone(self.space.zone_size().trailing_zeros())
    }

    /// The number of a record. Zero if the reference leaves the pool.
    ///
    /// # Safety
    /// The record has been published, and its memtable is not released meanwhile.
    #[inline]
    pub unsafe fn number(&self, reference: Reference) -> u64 {
        // SAFETY: as the caller promises.
        let bytes = unsafe { self.region().bytes(self.resolve(reference), size_of::<u64>() as u64) };
        bytes.and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// A record, without a proof.
    ///
    /// # Errors
    /// [`ChainError::Damaged`] and [`ChainError::Unknown`].
    ///
    /// # Safety
    /// As for [`number`](ChainHeap::number), for as long as the result lives.
    #[inline]
    pub unsafe fn record(&self, reference: Reference) -> Result<RecordFound<'_>, ChainError> {
        let (at, head) = (self.resolve(reference), size_of::<ChainRecord>() as u64);
        // Nothing has proved the length, perhaps, and records end with their zone.
        let room = self.space.zone_size() - reference.offset(self.space.zone_size().trailing_zeros());
        let len = |head: &[u8]| match ChainRecord::ref_from_prefix(head) {
            Ok((header, _)) if header.record_len() <= room => header.record_len(),
            _ => 0,
        };
        // SAFETY: as the caller promises.
        let bytes = unsafe { self.region().bytes_sized(at, head, len) };
        parse(bytes.unwrap_or_default(), reference, at)
    }
}
