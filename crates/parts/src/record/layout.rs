//! The fixed part of a record, byte by byte.

use crate::table;
use crate::table::Table;
use std::ops::Range;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of the fixed header.
pub const HEADER: u64 = 24;

/// The bytes that tell a record's length: one word, and so within one line.
pub const LENGTHS: Range<u64> = BODY as u64..HEADER;

/// Where flags and lengths stand in that word; the kind is its lowest byte.
pub(super) const FLAGS_SHIFT: u32 = 8;
pub(super) const KEY_LEN_SHIFT: u32 = 16;
pub(super) const VALUE_LEN_SHIFT: u32 = 32;

/// Where the part of a record begins that is hashed as bytes: behind check and sequence number.
pub(super) const BODY: usize = 16;

pub(super) const SEQUENCE: usize = 8;

/// The fixed header as it stands in PM.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Header {
    /// Keyed hash of the bytes behind this word; see [`super::Certifier`].
    pub check: U64,
    /// The number of this write. It is unique, and later writes of the same key have higher numbers.
    pub sequence: U64,
    /// A [`Kind`].
    pub kind: u8,
    /// Which optional fields follow, and [`COPY`]. A bit that this version does not know makes the record
    /// unknown.
    pub flags: u8,
    /// Bytes of the key, at least 1.
    pub key_len: U16,
    /// Bytes of the value, and of the hint if there is one.
    pub value_len: U32,
}

const _: () = assert!(size_of::<Header>() == HEADER as usize);
const _: () = assert!(std::mem::offset_of!(Header, sequence) == SEQUENCE);
const _: () = assert!(std::mem::offset_of!(Header, kind) == BODY);
const _: () = assert!(std::mem::offset_of!(Header, flags) == BODY + FLAGS_SHIFT as usize / 8);
const _: () = assert!(std::mem::offset_of!(Header, key_len) == BODY + KEY_LEN_SHIFT as usize / 8);
const _: () = assert!(std::mem::offset_of!(Header, value_len) == BODY + VALUE_LEN_SHIFT as usize / 8);

/// Flag of a record that expires. Its field, the first of the optional ones, is the time of expiry in
/// milliseconds since 1970.
pub const EXPIRES: u8 = 1;

/// Bytes of the optional field for the time of expiry.
pub const EXPIRY_FIELD: u64 = 8;

/// Flag of a record with a word in front of its key, behind the expiry. It is a hint, or with [`PARENT`] a
/// parent.
///
/// A *hint* tells where the index had the key when the record was written (PACMAN section 3.1, a *shortcut*).
/// It is a number of [`HINT_BITS`] bits that only the index understands, and it may be stale.
///
/// The value's length includes these bytes. So a program that does not know the flag can still prove the
/// record, and then refuses it by name. If it took the record for invalid bytes, it would lose the record.
pub const LEADING: u8 = 2;

/// Bytes of the word in front of the key.
pub const LEADING_FIELD: u64 = 8;

/// Bits of a hint; those above are zero.
pub const HINT_BITS: u32 = 48;

/// Flag of a record in a file of Nlog, whose word in front of the key names the record of the key before it
/// (NStore section III-D, `h_addr`). Only beside [`LEADING`].
pub const PARENT: u8 = 4;

/// Flag of a record with a [`PARENT`] that a cleaner has copied. Its parent is its original, which has the
/// same number.
pub const COPY: u8 = 8;

/// The meaning of a record. The numbers are frozen. Numbers in between are reserved for range tombstones,
/// merges, transactions and typed values, and are refused until they are defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// The key has this value.
    Value = 1,
    /// The key is deleted.
    Tombstone = 2,
    /// Several records under one check: all of them hold, or none. A frame has no key. Its value is the
    /// records, each with a check of zero.
    Frame = 3,
    /// The key has a value in zones of its own; the record's value is its head (see [`crate::heap::values`]).
    Large = 4,
    /// All keys from the key on, and below the value, are deleted. Only in memtables.
    Range = 5,
    /// Nothing: covers bytes of a segment that are no record, which recovery has skipped and reported.
    Void = 15,
}

impl Kind {
    /// The kind of this number in a memtable, if this version knows it.
    pub(crate) fn from_byte_in_memtable(byte: u8) -> Option<Kind> {
        match byte {
            1 => Some(Kind::Value),
            2 => Some(Kind::Tombstone),
            5 => Some(Kind::Range),
            _ => None,
        }
    }

    /// The kind of this number in a segment, if this version knows it.
    pub(crate) fn from_byte(byte: u8) -> Option<Kind> {
        match byte {
            1 => Some(Kind::Value),
            2 => Some(Kind::Tombstone),
            3 => Some(Kind::Frame),
            4 => Some(Kind::Large),
            15 => Some(Kind::Void),
            _ => None,
        }
    }
}

impl Header {
    /// Bytes that the whole record takes, padding included.
    #[inline]
    pub fn record_len(&self) -> u64 {
        padded(self.leading_offset() + self.key_len.get() as u64 + self.value_len.get() as u64)
    }

    /// Whether the value lives in zones of its own.
    #[inline]
    pub fn is_large(&self) -> bool {
        self.kind == Kind::Large as u8
    }

    /// Whether a cleaner has made this record of another one, its parent.
    pub fn is_copy(&self) -> bool {
        self.flags & COPY != 0
    }

    /// Offset of the word in front of the key if there is one: behind the expiry.
    #[inline]
    pub(super) fn leading_offset(&self) -> u64 {
        HEADER + u64::from(self.flags & EXPIRES) * EXPIRY_FIELD
    }

    /// Bytes of the word in front of the key; zero without one.
    #[inline]
    pub(super) fn leading_field(&self) -> u64 {
        u64::from(self.flags & LEADING) * (LEADING_FIELD / LEADING as u64)
    }

    /// Offset of the key in the record: behind the optional fields.
    #[inline]
    pub(super) fn key_offset(&self) -> u64 {
        self.leading_offset() + self.leading_field()
    }
}

/// The content of a record, before it has a place.
#[derive(Clone, Copy, Debug)]
pub struct Content<'a> {
    /// The kind of change to the key.
    pub kind: Kind,
    /// The key, within 65,535 bytes.
    pub key: &'a [u8],
    /// The value; with its hint, within 4 GiB.
    pub value: &'a [u8],
    /// When the value expires, in milliseconds since 1970; 0 for never.
    pub expires: u64,
    /// The word in front of the key: a hint or a parent, as `marks` tells, or 0. None in a record of a frame.
    pub leading: u64,
    /// [`LEADING`] if there is one, with [`PARENT`] if that is a parent, and [`COPY`] if this is its copy.
    pub marks: u8,
}

impl<'a> Content<'a> {
    /// A value that does not expire, without a hint.
    #[inline]
    pub fn value(key: &'a [u8], value: &'a [u8]) -> Content<'a> {
        Content { kind: Kind::Value, key, value, expires: 0, leading: 0, marks: 0 }
    }

    /// A deletion.
    #[inline]
    pub fn tombstone(key: &'a [u8]) -> Content<'a> {
        Content { kind: Kind::Tombstone, ..Content::value(key, &[]) }
    }

    /// The same with a hint where the index has the key, in [`HINT_BITS`] bits; 0 for no hint.
    #[inline]
    pub fn hinted(self, hint: u64) -> Content<'a> {
        debug_assert!(hint >> HINT_BITS == 0, "it has more bits than a hint");
        Content { leading: hint, marks: u8::from(hint != 0) * LEADING, ..self }
    }

    /// The same behind the record of the key before it; 0 if there is none.
    #[inline]
    pub fn after(self, parent: u64) -> Content<'a> {
        Content { leading: parent, marks: LEADING | PARENT, ..self }
    }

    /// The same as a copy of this record.
    #[inline]
    pub fn copy_of(self, original: u64) -> Content<'a> {
        Content { leading: original, marks: LEADING | PARENT | COPY, ..self }
    }

    /// The hint, if it has one.
    #[inline]
    pub fn hint(&self) -> Option<u64> {
        (self.marks == LEADING).then_some(self.leading)
    }

    /// Bytes that the record will take, padding included.
    #[inline]
    pub fn record_len(&self) -> u64 {
        self.header().record_len()
    }

    /// Its header, without check and sequence number.
    #[inline]
    pub(super) fn header(&self) -> Header {
        let word = u32::from(self.marks & LEADING) * (LEADING_FIELD / LEADING as u64) as u32;
        Header {
            check: 0.into(),
            sequence: 0.into(),
            kind: self.kind as u8,
            flags: self.marks + u8::from(self.expires != 0) * EXPIRES,
            key_len: (self.key.len() as u16).into(),
            value_len: (self.value.len() as u32 + word).into(),
        }
    }
}

/// Rounds a length up to the record alignment of 8 bytes.
#[inline]
pub const fn padded(len: u64) -> u64 {
    (len + 7) & !7
}

/// The header's fields as (name, offset, size), for the check of `docs/FORMAT.md` against the code.
pub fn format_table() -> Table {
    table!(Header as "RecordHeader"; check, sequence, kind, flags, key_len, value_len)
}
