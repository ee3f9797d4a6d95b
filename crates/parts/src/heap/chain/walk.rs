//! Proving the chunks of a memtable after a crash, and reading their records.

use super::cut::{Fact, Missing};
use super::layout::{CHUNK_HEADER, ChainChunk, DATA, FIRST_CHUNK, MemtableZone, hash_of_records};
use super::memtable::{ChainHeap, Memtable};
use super::usage::Counts;
use super::view::{RecordFound, parse, split_record};
use crate::commit::ring::Poisoned;
use crate::heap::Reference;
use crate::record::LifeKey;
use crate::space::{Shortage, SpaceError, ZoneId};
use quipu_medium::LINE;
use zerocopy::{FromBytes, IntoBytes};

/// Why a chain cannot go on, or cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChainError {
    /// No free zone is left beyond the reserve.
    #[error("the pool is full: {0}")]
    Full(Shortage),
    /// All objects of memtables are in use.
    #[error(
        "all {count} memtables are in use; drop a table, or use a larger pool, or one with smaller zones"
    )]
    NoMemtable {
        /// Memtables of the pool.
        count: u32,
    },
    /// All objects of subtables are in use.
    #[error("all {count} tables are in use; drop one, or use a larger pool, or one with smaller zones")]
    NoSubtable {
        /// Subtables of the pool.
        count: u32,
    },
    /// A subtable has no such name.
    #[error("a table has a name of 1 to 128 bytes, not of {len}")]
    Name {
        /// Bytes of the name.
        len: usize,
    },
    /// The part of an item in one subtable is longer than a zone.
    #[error("writes of {len} bytes at once do not fit a zone, which takes {limit}; make the batch smaller")]
    TooLong {
        /// Bytes of the part.
        len: u64,
        /// Bytes that a zone takes.
        limit: u64,
    },
    /// The subtable takes no writes: it has been dropped.
    #[error("the table has been dropped")]
    Dropped,
    /// Bytes that must prove themselves do not.
    #[error("{what} at byte {offset} is damaged")]
    Damaged {
        /// Their name.
        what: &'static str,
        /// Where they stand.
        offset: u64,
    },
    /// A chunk proves itself, and this version does not know it or a record of it.
    #[error("bytes at {offset} are of kind {kind} with flags {flags:#x}: a newer program wrote them")]
    Unknown {
        /// Its kind.
        kind: u8,
        /// Its flags.
        flags: u8,
        /// Where it stands.
        offset: u64,
    },
    /// Writes that were durable are gone, or some that were cut off came back.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// A thread panicked while it wrote.
    #[error(transparent)]
    Poisoned(#[from] Poisoned),
    /// The allocator or the medium failed.
    #[error(transparent)]
    Space(#[from] SpaceError),
}

/// A chunk that has proved itself.
#[derive(Clone, Copy, Debug)]
pub struct ChunkFound {
    /// The part of its header that the cut asks for.
    pub fact: Fact,
    /// The floor of its item.
    pub floor: u64,
    /// Its place in the memtable.
    pub(super) place: u32,
    /// Place of the chunk before; 0 for none.
    pub(super) prev: u32,
    /// Bytes, in whole lines.
    pub len: u64,
}

impl ChunkFound {
    /// The place behind it.
    pub(super) fn end(&self) -> u32 {
        self.place + (self.len / LINE) as u32
    }
}

/// Bytes that a look behind the end of a walk proves at most, in sizes of a zone: values may be full of bytes
/// that look like headers.
pub(super) const MOST_EFFORT: u64 = 4;

/// A memtable whose chunks end before its end mark.
pub(super) const MISSING: &str = "a chunk before the end of the memtable";

impl ChainHeap {
    /// Proves the chunk at `at`, with so much room up to the end of its zone. `None` if there is none.
    ///
    /// # Errors
    /// [`ChainError::Unknown`].
    ///
    /// # Safety
    /// Nobody writes to the zone meanwhile.
    pub(super) unsafe fn prove(
        &self,
        key: LifeKey,
        place: u32,
        at: u64,
        room: u64,
        scratch: &mut Vec<u8>,
    ) -> Result<Option<ChunkFound>, ChainError> {
        // SAFETY: as the caller promises.
        match unsafe { self.region().bytes_in_pieces(at, room) } {
            Some(bytes) => self.prove_bytes(key, place, at, bytes, scratch),
            None => Ok(None),
        }
    }

    /// As [`prove`](ChainHeap::prove), of the bytes from there to the end of the zone.
    fn prove_bytes(
        &self,
        key: LifeKey,
        place: u32,
        at: u64,
        bytes: &[u8],
        scratch: &mut Vec<u8>,
    ) -> Result<Option<ChunkFound>, ChainError> {
        let room = bytes.len() as u64;
        self.region().note_read(at, CHUNK_HEADER.min(room));
        let Ok((header, _)) = ChainChunk::ref_from_prefix(bytes) else { return Ok(None) };
        let len = u64::from(header.len.get());
        if len <= CHUNK_HEADER || len > room {
            return Ok(None);
        }
        self.region().note_read(at + CHUNK_HEADER, len - CHUNK_HEADER);
        let records = &bytes[CHUNK_HEADER as usize..len as usize];
        scratch.clear();
        scratch.extend_from_slice(records);
        let Some(numbers) = without_numbers(scratch) else { return Ok(None) };
        let hash = hash_of_records(&self.certifier, scratch);
        if header.check.get() != header.expected_check(&self.certifier, key, place, hash) {
            return Ok(None);
        }
        let ChainChunk { kind, flags, .. } = *header;
        if kind != DATA || flags != 0 {
            return Err(ChainError::Unknown { kind, flags, offset: at });
        }
        let fact = Fact {
            first: header.first.get(),
            before: header.before.get(),
            count: header.count.get(),
            here: header.here.get(),
            pieces: header.pieces.get(),
            piece: header.piece.get(),
        };
        if !fact.is_possible(header.ahead.get()) {
            return Err(ChainError::Damaged { what: "the header of a chunk", offset: at });
        }
        let first_here = fact.first + u64::from(header.ahead.get());
        // The numbers of the records follow from the header, and are not in the hash.
        if numbers != (first_here, fact.here) {
            return Ok(None);
        }
        let (floor, prev) = (header.floor.get(), header.prev.get());
        let len = len.next_multiple_of(LINE);
        Ok(Some(ChunkFound { fact, floor, place, prev, len }))
    }

    /// Walks over the chunks of a memtable, in order, through its zones. Ends where a chunk does not prove
    /// itself, where the chain is broken, at `end`, or where `each` fails. Returns the place behind the last
    /// chunk, if there is one.
    ///
    /// # Errors
    /// [`ChainError::Unknown`], [`ChainError::Damaged`], and those of `each`.
    ///
    /// # Safety
    /// Nobody writes to the memtable meanwhile.
    pub(super) unsafe fn walk(
        &self,
        memtable: &Memtable,
        end: Option<u32>,
        mut each: impl FnMut(&ChunkFound, ZoneId, u64) -> Result<(), ChainError>,
    ) -> Result<Option<u32>, ChainError> {
        let (zone_size, mut scratch, mut prev, mut reached) = (self.space.zone_size(), Vec::new(), 0, None);
        for (zone, slot) in memtable.zones().into_iter().zip(0..) {
            let (start, mut offset) = (self.space.zone_offset(zone), FIRST_CHUNK);
            while offset < zone_size {
                let place = memtable.place(slot, offset);
                if end.is_some_and(|end| place >= end) {
                    return Ok(reached);
                }
                let room = zone_size - offset;
                // SAFETY: as the caller promises.
                let found = unsafe { self.prove(memtable.key, place, start + offset, room, &mut scratch) }?;
                let Some(chunk) = found else { break };
                if chunk.prev != prev {
                    return Ok(reached);
                }
                each(&chunk, zone, offset)?;
                (prev, reached) = (place, Some(chunk.end()));
                offset += chunk.len;
            }
            // The next zone goes on only if this one has a chunk: its first one names the last of this.
            if offset == FIRST_CHUNK {
                break;
            }
        }
        Ok(reached)
    }

    /// Shows the floors of chunks that prove themselves behind the end of a walk. A chunk with a floor shows
    /// that all up to it was durable: without this, damage in an open memtable would pass for its end.
    ///
    /// # Safety
    /// Nobody writes to the memtable meanwhile.
    pub(super) unsafe fn floors_behind(
        &self,
        memtable: &Memtable,
        reached: Option<u32>,
        mut each: impl FnMut(u64),
    ) {
        let (zone_size, mut scratch) = (self.space.zone_size(), Vec::new());
        let behind = u64::from(reached.unwrap_or_default()) * LINE;
        for (zone, slot) in memtable.zones().into_iter().zip(0..) {
            let start = self.space.zone_offset(zone);
            let mut offset = behind.saturating_sub(u64::from(slot) * zone_size).max(FIRST_CHUNK);
            let mut effort = MOST_EFFORT * zone_size;
            while offset < zone_size {
                let (place, room) = (memtable.place(slot, offset), zone_size - offset);
                // SAFETY: as the caller promises.
                let claimed = unsafe { self.claimed_len(start + offset, room) };
                let Some(len) = claimed.filter(|len| *len <= effort) else {
                    offset += LINE;
                    continue;
                };
                effort -= len;
                // SAFETY: as the caller promises.
                match unsafe { self.prove(memtable.key, place, start + offset, room, &mut scratch) } {
                    Ok(Some(chunk)) => {
                        each(chunk.floor);
                        offset += chunk.len;
                    }
                    _ => offset += LINE,
                }
            }
        }
    }

    /// Whether a record stands in a chunk that proves itself. The chunk is looked for before the record, and
    /// then from the beginning of its zone. The memtable of the record is not released meanwhile.
    pub fn proves(&self, reference: Reference) -> bool {
        let (zone, zone_size) = (self.zone_of(reference), self.space.zone_size());
        let Some(start) = self.space.checked_zone_offset(zone) else { return false };
        let header: MemtableZone = self.read_unflushed(start, FIRST_CHUNK);
        if !header.is_valid(&self.certifier, zone) {
            return false;
        }
        let (key, slot) = (header.life_key(&self.certifier), u64::from(header.owner().1));
        let wanted = reference.offset(zone_size.trailing_zeros());
        let mut scratch = Vec::new();
        let mut holds = |offset: u64, len: u64| {
            let (at, mut bytes) = (start + offset, vec![0; len as usize]);
            let place = ((slot * zone_size + offset) / LINE) as u32;
            self.region().read_racing(at, &mut bytes);
            let found = self.prove_bytes(key, place, at, &bytes, &mut scratch);
            matches!(found, Ok(Some(_))) && has_record(&scratch, (wanted - offset).wrapping_sub(CHUNK_HEADER))
        };
        // Others may write to the lines before the chunk, which are looked at only if it is damaged.
        let claimed = |offset: u64| {
            let mut header = [0; CLAIM as usize];
            let room = zone_size - offset;
            let header = &mut header[..CLAIM.min(room) as usize];
            self.region().read_racing(start + offset, header);
            claimed_len(header, room)
        };
        let (mut offset, mut effort) = (wanted / LINE * LINE, MOST_EFFORT * zone_size);
        while offset >= FIRST_CHUNK && effort > 0 {
            if let Some(len) = claimed(offset).filter(|len| wanted - offset < *len) {
                if holds(offset, len) {
                    return true;
                }
                effort = effort.saturating_sub(len);
            }
            offset -= LINE;
        }
        if effort > 0 {
            return false;
        }
        // Values may be full of bytes that look like headers.
        let mut offset = FIRST_CHUNK;
        while let Some(len) = claimed(offset).filter(|_| offset < wanted) {
            if wanted - offset < len {
                return holds(offset, len);
            }
            offset += len.next_multiple_of(LINE);
        }
        false
    }

    /// The length that the header of a chunk claims, if it fits.
    ///
    /// # Safety
    /// Nobody writes there meanwhile.
    pub(super) unsafe fn claimed_len(&self, at: u64, room: u64) -> Option<u64> {
        // SAFETY: as the caller promises.
        claimed_len(unsafe { self.region().bytes(at, CLAIM.min(room)) }?, room)
    }

    /// Shows all records of a memtable that has ended, in the order of their numbers.
    ///
    /// # Errors
    /// As for a walk, and [`ChainError::Damaged`] if the chunks end before `end`.
    ///
    /// # Safety
    /// The memtable has ended, so that nobody writes to it, and it is not released as long as the records
    /// shown are in use.
    pub unsafe fn records<'m>(
        &'m self,
        memtable: &Memtable,
        end: u32,
        each: impl FnMut(RecordFound<'m>),
    ) -> Result<(), ChainError> {
        // SAFETY: as the caller promises.
        unsafe { self.chunks_and_records(memtable, end, |_, _| (), each) }
    }

    /// As [`records`](ChainHeap::records), and notes the bytes of their chunks in the counts of the zones.
    ///
    /// # Errors
    /// Likewise.
    ///
    /// # Safety
    /// Likewise.
    pub unsafe fn records_counted<'m>(
        &'m self,
        memtable: &Memtable,
        end: u32,
        each: impl FnMut(RecordFound<'m>),
    ) -> Result<(), ChainError> {
        let count = |zone, bytes| self.usage().note_written(zone, &Counts { bytes, ..Counts::default() });
        // SAFETY: as the caller promises.
        unsafe { self.chunks_and_records(memtable, end, count, each) }
    }

    /// Shows the zones and bytes of chunks, and their records.
    ///
    /// # Safety
    /// As for [`records`](ChainHeap::records).
    unsafe fn chunks_and_records<'m>(
        &'m self,
        memtable: &Memtable,
        end: u32,
        mut chunk_of: impl FnMut(ZoneId, u64),
        mut each: impl FnMut(RecordFound<'m>),
    ) -> Result<(), ChainError> {
        let show = |chunk: &ChunkFound, zone: ZoneId, offset: u64| {
            chunk_of(zone, chunk.len);
            // SAFETY: as the caller promises; the chunk has been proved.
            unsafe { self.records_of(chunk, zone, offset, &mut each) }
        };
        // SAFETY: as the caller promises.
        let reached = unsafe { self.walk(memtable, Some(end), show) }?;
        if reached == Some(end) {
            return Ok(());
        }
        let offset = self.object_offset(memtable.object);
        Err(ChainError::Damaged { what: MISSING, offset })
    }

    /// Shows the records of a chunk that has been proved.
    ///
    /// # Safety
    /// Nobody writes to it, and its memtable is not released as long as the records are in use.
    pub(super) unsafe fn records_of<'m>(
        &'m self,
        chunk: &ChunkFound,
        zone: ZoneId,
        offset: u64,
        mut each: impl FnMut(RecordFound<'m>),
    ) -> Result<(), ChainError> {
        let (at, shift) = (self.space.zone_offset(zone) + offset, self.space.zone_size().trailing_zeros());
        // SAFETY: as the caller promises; the chunk has been proved, so that its bytes are in the zone.
        let bytes = unsafe { self.region().bytes_in_pieces(at, chunk.len) }.expect("proved");
        let mut next = CHUNK_HEADER as usize;
        for _ in 0..chunk.fact.here {
            let here = Reference::new(zone, offset + next as u64, shift);
            let record = parse(&bytes[next..], here, at + next as u64)?;
            next += record.len as usize;
            each(record);
        }
        Ok(())
    }
}

/// Bytes that show whether there may be a chunk: its header, and the number of its first record.
const CLAIM: u64 = CHUNK_HEADER + size_of::<u64>() as u64;

/// The length that a chunk claims which begins with these bytes, if there is so much room.
fn claimed_len(bytes: &[u8], room: u64) -> Option<u64> {
    let (header, rest) = ChainChunk::ref_from_prefix(bytes).ok()?;
    let (len, number) = (u64::from(header.len.get()), u64::from_le_bytes(*rest.first_chunk()?));
    let follows = number == header.first.get().wrapping_add(header.ahead.get().into());
    (len > CHUNK_HEADER && len <= room && header.kind == DATA && follows).then_some(len)
}

/// Whether one of these records begins at that byte.
fn has_record(records: &[u8], wanted: u64) -> bool {
    let mut next = 0;
    while next < wanted {
        let Some((_, len)) = records.get(next as usize..).and_then(split_record) else { return false };
        next += len;
    }
    next == wanted
}

/// Sets the number of each record to zero, and returns the first of them and how many there were. `None` if
/// lengths leave the bytes, or the numbers are not contiguous.
fn without_numbers(records: &mut [u8]) -> Option<(u64, u32)> {
    let (mut next, mut first, mut here) = (0, None, 0u32);
    let mut contiguous = true;
    while next < records.len() {
        let (header, len) = split_record(&records[next..])?;
        let number = header.sequence.get();
        let first = *first.get_or_insert(number);
        contiguous &= number == first.wrapping_add(u64::from(here));
        records[next..next + size_of::<u64>()].copy_from_slice(0u64.as_bytes());
        next += len as usize;
        here += 1;
    }
    first.filter(|_| contiguous).map(|first| (first, here))
}
