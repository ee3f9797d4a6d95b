//! The bytes of a chain: chunk, record, zone header, memtable and anchor.

use super::anchor::{LevelsState, Paired};
use crate::record::{Certifier, Content, EXPIRES, EXPIRY_FIELD, LifeKey, padded};
use crate::space::{ObjectId, ZoneId};
use crate::table;
use crate::table::Table;
use quipu_medium::LINE;
use std::mem::offset_of;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Offset of a zone's first chunk, and bytes of the zone's header.
pub const FIRST_CHUNK: u64 = 64;
/// Bytes of a chunk's header.
pub const CHUNK_HEADER: u64 = 64;
/// Bytes of a record's header within a chunk.
pub const RECORD_HEADER: u64 = 16;
/// Bytes of the object of a memtable.
pub const MEMTABLE_LEN: u64 = 128;
/// Bytes of the object of the anchor.
pub const ANCHOR_LEN: u64 = 256;

/// Flag of a record: the version that it is a copy of follows.
pub(super) const MOVED: u8 = 2;
/// Bytes of the version of a copy.
pub const VERSION_FIELD: u64 = 8;

/// A chunk that holds records.
pub(super) const DATA: u8 = 1;

/// The header of a chunk, which begins at a multiple of a line. The records follow, and zeros to the end of
/// the last line.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct ChainChunk {
    /// Keyed hash of the words below with the hash of the records, of the memtable's life and the place.
    pub check: U64,
    /// Number of the item's first record.
    pub first: U64,
    /// Last number of the item granted before, of any memtable.
    pub before: U64,
    /// A number up to which all was durable when this item was granted.
    pub floor: U64,
    /// Place of the chunk granted before in this memtable; 0 for none.
    pub prev: U32,
    /// Bytes of the chunk, this header included.
    pub len: U32,
    /// Records of the item.
    pub count: U32,
    /// Records of this chunk.
    pub here: U32,
    /// Records of the item in chunks before this one.
    pub ahead: U32,
    /// Chunks of the item.
    pub pieces: U16,
    /// Which of them this is, from 0.
    pub piece: U16,
    /// [`DATA`]; any other makes the chunk unknown.
    pub kind: u8,
    /// None is defined; any bit makes the chunk unknown.
    pub flags: u8,
    pub reserved: [u8; 6],
}

const _: () = assert!(size_of::<ChainChunk>() == CHUNK_HEADER as usize);
const _: () = assert!(CHUNK_HEADER.is_multiple_of(LINE) && FIRST_CHUNK.is_multiple_of(LINE));

impl ChainChunk {
    /// The check of a chunk whose records have the hash `records`, at this place of a memtable of this life.
    #[inline]
    pub fn expected_check(&self, certifier: &Certifier, life: LifeKey, place: u32, records: u64) -> u64 {
        let hashed = ChainChunk { check: records.into(), ..*self };
        certifier.check(life, u64::from(place), hashed.as_bytes())
    }
}

/// The hash of a chunk's records, in which each number stands as zero. It depends on no place, so that it is
/// ready before the grant.
#[inline]
pub(super) fn hash_of_records(certifier: &Certifier, records: &[u8]) -> u64 {
    certifier.check(certifier.life_key(0, 0), 0, records)
}

/// The header of a record within a chunk. Expiry and version (if flagged), key and value follow, and zeros to
/// a multiple of eight.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct ChainRecord {
    /// The number of this write; zero for the hash of the chunk.
    pub sequence: U64,
    /// A [`Kind`](crate::record::Kind).
    pub kind: u8,
    /// [`EXPIRES`] and [`MOVED`].
    pub flags: u8,
    /// Bytes of the key.
    pub key_len: U16,
    /// Bytes of the value.
    pub value_len: U32,
}

const _: () = assert!(size_of::<ChainRecord>() == RECORD_HEADER as usize);

impl ChainRecord {
    /// The header of this content, without a number; `is_copy` says whether a version follows.
    #[inline]
    pub fn of(content: &Content<'_>, is_copy: bool) -> ChainRecord {
        debug_assert_eq!(content.marks, 0, "nobody cleans a memtable");
        ChainRecord {
            sequence: 0.into(),
            kind: content.kind as u8,
            flags: (u8::from(content.expires != 0) * EXPIRES) | (u8::from(is_copy) * MOVED),
            key_len: (content.key.len() as u16).into(),
            value_len: (content.value.len() as u32).into(),
        }
    }

    /// Offset of the key in the record.
    #[inline]
    pub fn key_offset(&self) -> u64 {
        let moved = u64::from(self.flags & MOVED) / u64::from(MOVED) * VERSION_FIELD;
        RECORD_HEADER + u64::from(self.flags & EXPIRES) * EXPIRY_FIELD + moved
    }

    /// Bytes of the record, with its padding.
    #[inline]
    pub fn record_len(&self) -> u64 {
        padded(self.key_offset() + u64::from(self.key_len.get()) + u64::from(self.value_len.get()))
    }
}

/// Bytes of a record of this content, with its padding.
pub fn record_len(content: &Content<'_>) -> u64 {
    ChainRecord::of(content, false).record_len()
}

/// The header of a memtable's zone. It is durable before the zone is committed.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct MemtableZone {
    check: U64,
    magic: [u8; 4],
    zone: U32,
    life: U64,
    run: U64,
    nonce: U64,
    /// The object of its memtable.
    owner: U32,
    /// Which of the memtable's zones this is, from 0.
    slot: U32,
    reserved: [u8; 16],
}

const _: () = assert!(size_of::<MemtableZone>() == FIRST_CHUNK as usize);

const ZONE_MAGIC: [u8; 4] = *b"QMTZ";

impl MemtableZone {
    pub fn new(certifier: &Certifier, zone: ZoneId, owner: ObjectId, slot: u32, life: &Life) -> MemtableZone {
        let mut header = MemtableZone {
            check: 0.into(),
            magic: ZONE_MAGIC,
            zone: zone.0.into(),
            life: life.number.into(),
            run: life.run.into(),
            nonce: life.nonce.into(),
            owner: owner.0.into(),
            slot: slot.into(),
            reserved: [0; 16],
        };
        header.check.set(header.expected_check(certifier));
        header
    }

    fn expected_check(&self, certifier: &Certifier) -> u64 {
        certifier.check(certifier.life_key(0, 0), 0, &self.as_bytes()[8..])
    }

    /// Whether this is the header of that zone.
    pub fn is_valid(&self, certifier: &Certifier, zone: ZoneId) -> bool {
        self.magic == ZONE_MAGIC
            && self.zone.get() == zone.0
            && self.check.get() == self.expected_check(certifier)
    }

    /// The key of the checks of its chunks.
    pub fn life_key(&self, certifier: &Certifier) -> LifeKey {
        certifier.life_key(self.life.get(), self.nonce.get())
    }

    /// The number of its memtable.
    pub fn life(&self) -> u64 {
        self.life.get()
    }

    /// The object that it names, and its slot there.
    pub fn owner(&self) -> (ObjectId, u32) {
        (ObjectId(self.owner.get()), self.slot.get())
    }

    /// Whether it was written in this life of its memtable. If not, the memtable's object has another owner
    /// since.
    pub fn is_of(&self, life: &Life) -> bool {
        (self.life.get(), self.nonce.get()) == (life.number, life.nonce)
    }
}

/// The life of a memtable, which differs from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Life {
    /// From the pool's clock; it is the memtable's number too.
    pub number: u64,
    /// Random.
    pub nonce: u64,
    /// The run that opened it.
    pub run: u64,
}

/// The object of a memtable, in two lines: the first is written before the object is committed, the second
/// when the memtable is ended.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct MemtableObject {
    check: U64,
    magic: [u8; 4],
    reserved_a: [u8; 4],
    /// The number of its subtable.
    subtable: U64,
    number: U64,
    nonce: U64,
    run: U64,
    reserved_b: [u8; 16],
    /// Where the last chunk ends, with a proof; zero while the memtable is open.
    end: U64,
    /// The last number of the item that its last chunk belongs to.
    last: U64,
    reserved_c: [u8; 48],
}

const _: () = assert!(size_of::<MemtableObject>() == MEMTABLE_LEN as usize);
/// Bytes that the check covers, behind it.
const PROVED: std::ops::Range<usize> = 8..offset_of!(MemtableObject, end);
const _: () = assert!(PROVED.end.is_multiple_of(LINE as usize));
/// Offsets of the words that are stored alone.
pub(super) const END_AT: u64 = offset_of!(MemtableObject, end) as u64;
pub(super) const LAST_AT: u64 = offset_of!(MemtableObject, last) as u64;

const MEMTABLE_MAGIC: [u8; 4] = *b"QMEM";

impl MemtableObject {
    pub fn new(certifier: &Certifier, object: ObjectId, subtable: u64, life: &Life) -> MemtableObject {
        let mut bytes = MemtableObject {
            check: 0.into(),
            magic: MEMTABLE_MAGIC,
            reserved_a: [0; 4],
            subtable: subtable.into(),
            number: life.number.into(),
            nonce: life.nonce.into(),
            run: life.run.into(),
            reserved_b: [0; 16],
            end: 0.into(),
            last: 0.into(),
            reserved_c: [0; 48],
        };
        bytes.check.set(bytes.expected_check(certifier, object));
        bytes
    }

    fn expected_check(&self, certifier: &Certifier, object: ObjectId) -> u64 {
        certifier.check(certifier.life_key(0, 0), u64::from(object.0), &self.as_bytes()[PROVED])
    }

    /// Whether this is the object of a memtable, in that place.
    pub fn is_valid(&self, certifier: &Certifier, object: ObjectId) -> bool {
        self.magic == MEMTABLE_MAGIC && self.check.get() == self.expected_check(certifier, object)
    }

    pub fn life(&self) -> Life {
        Life { number: self.number.get(), nonce: self.nonce.get(), run: self.run.get() }
    }

    pub fn subtable(&self) -> u64 {
        self.subtable.get()
    }

    /// Where the memtable ends, as a place, and its last number. `Ok(None)` while it is open.
    ///
    /// # Errors
    /// If the mark is damaged.
    pub fn end(&self, certifier: &Certifier, life: LifeKey) -> Result<Option<(u32, u64)>, ()> {
        let (end, last) = (self.end.get(), self.last.get());
        match end {
            0 => Ok(None),
            _ if end == end_mark(certifier, life, end as u32, last) => Ok(Some((end as u32, last))),
            _ => Err(()),
        }
    }
}

/// The end mark of a memtable that ends at this place with this number: the place, and half of a check.
pub(super) fn end_mark(certifier: &Certifier, life: LifeKey, place: u32, last: u64) -> u64 {
    let proof = certifier.check(life, u64::MAX, &[u64::from(place), last].map(u64::to_le_bytes).concat());
    u64::from(place) | proof >> 32 << 32
}

/// One of the two copies of the anchor; the valid one of the higher generation counts.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct MemtableAnchor {
    check: U64,
    magic: [u8; 4],
    pub generation: U32,
    /// All items up to it are durable, though chunks of them may have left persistent memory since.
    pub through: U64,
    /// The state that the levels may have reached; see [`Paired`](super::anchor::Paired).
    pub raised: [U64; 2],
    /// The state that the levels have reached.
    pub confirmed: [U64; 2],
    reserved: [u8; 8],
}

const _: () = assert!(size_of::<MemtableAnchor>() == LINE as usize);

const ANCHOR_MAGIC: [u8; 4] = *b"QANC";

impl MemtableAnchor {
    pub fn new(certifier: &Certifier, generation: u32, through: u64, levels: Paired) -> MemtableAnchor {
        let words = |state: LevelsState| [state.number.into(), state.mark.into()];
        let mut copy = MemtableAnchor {
            check: 0.into(),
            magic: ANCHOR_MAGIC,
            generation: generation.into(),
            through: through.into(),
            raised: words(levels.raised),
            confirmed: words(levels.confirmed),
            reserved: [0; 8],
        };
        copy.check.set(copy.expected_check(certifier));
        copy
    }

    fn expected_check(&self, certifier: &Certifier) -> u64 {
        certifier.check(certifier.life_key(0, 0), 0, &self.as_bytes()[8..])
    }

    pub fn is_valid(&self, certifier: &Certifier) -> bool {
        self.magic == ANCHOR_MAGIC && self.check.get() == self.expected_check(certifier)
    }

    /// The states of the levels.
    pub fn levels(&self) -> Paired {
        let state = |[number, mark]: [U64; 2]| LevelsState { number: number.get(), mark: mark.get() };
        Paired { raised: state(self.raised), confirmed: state(self.confirmed) }
    }
}

/// The fields of all these structures, for the check of `docs/FORMAT.md` against the code.
pub fn format_tables() -> Vec<Table> {
    vec![
        table!(ChainChunk: check, first, before, floor, prev, len, count, here, ahead, pieces, piece, kind, flags, reserved),
        table!(ChainRecord: sequence, kind, flags, key_len, value_len),
        table!(MemtableZone: check, magic, zone, life, run, nonce, owner, slot, reserved),
        table!(MemtableObject: check, magic, reserved_a, subtable, number, nonce, run, reserved_b, end, last, reserved_c),
        super::subtable::format_table(),
        table!(MemtableAnchor: check, magic, generation, through, raised, confirmed, reserved),
    ]
}
