//! Subtables: an object of the pool each. A memtable names its subtable by the number that it was created
//! with, which no other ever has. So the release of one object drops a subtable with all its memtables, and
//! recovery clears away their remains.

use super::anchor::Anchor;
use super::log::ChainLog;
use super::memtable::{ChainHeap, Memtable};
use super::walk::ChainError;
use crate::record::Certifier;
use crate::space::{ObjectId, ObjectPool};
use crate::table;
use crate::table::Table;
use crate::twin;
use quipu_medium::LINE;
use std::sync::Arc;
use zerocopy::little_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of the object of a subtable.
pub const SUBTABLE_LEN: u64 = 256;
/// Bytes of its longest name.
pub const NAME_MAX: usize = 128;

const MAGIC: [u8; 4] = *b"QSUB";

/// The object of a subtable as it stands in PM.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct SubtableObject {
    check: U64,
    magic: [u8; 4],
    name_len: U16,
    reserved_a: [u8; 2],
    /// From the pool's clock.
    created: U64,
    reserved_b: [u8; 40],
    name: [u8; NAME_MAX],
    /// The number that memtables on the levels have at most, and 16 bits of a check: alone in its line.
    flushed: U64,
    reserved_c: [u8; 56],
}

const _: () = assert!(size_of::<SubtableObject>() == SUBTABLE_LEN as usize);
/// The last line is for a word that changes.
const PROVED: std::ops::Range<usize> = 8..FLUSHED_AT;
const FLUSHED_AT: usize = std::mem::offset_of!(SubtableObject, flushed);
/// Bits of its number.
const NUMBER_BITS: u32 = 48;

impl SubtableObject {
    fn new(certifier: &Certifier, object: ObjectId, created: u64, name: &str) -> SubtableObject {
        let mut bytes = SubtableObject {
            check: 0.into(),
            magic: MAGIC,
            name_len: (name.len() as u16).into(),
            reserved_a: [0; 2],
            created: created.into(),
            reserved_b: [0; 40],
            name: [0; NAME_MAX],
            flushed: 0.into(),
            reserved_c: [0; 56],
        };
        bytes.name[..name.len()].copy_from_slice(name.as_bytes());
        bytes.check.set(bytes.expected_check(certifier, object));
        bytes
    }

    fn expected_check(&self, certifier: &Certifier, object: ObjectId) -> u64 {
        certifier.check(certifier.life_key(0, 0), u64::from(object.0), &self.as_bytes()[PROVED])
    }

    /// The number in the last line, if it proves itself.
    fn flushed(&self, certifier: &Certifier) -> Option<u64> {
        let word = self.flushed.get();
        let number = word & ((1 << NUMBER_BITS) - 1);
        (word == flushed_word(certifier, self.created.get(), number)).then_some(number)
    }

    fn name(&self) -> Option<&str> {
        std::str::from_utf8(self.name.get(..usize::from(self.name_len.get()))?).ok()
    }
}

/// The word that tells that all memtables of a subtable up to a number are on its levels; 0 for none.
fn flushed_word(certifier: &Certifier, created: u64, number: u64) -> u64 {
    if number == 0 {
        return 0;
    }
    let proof = certifier.check(certifier.life_key(created, 0), u64::MAX, &number.to_le_bytes());
    number | proof >> NUMBER_BITS << NUMBER_BITS
}

/// A subtable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subtable {
    /// Its number, which no other has.
    pub created: u64,
    /// Its name: 1 to [`NAME_MAX`] bytes.
    pub name: String,
    /// When it was read, all its memtables up to this number were on its levels; 0 for none.
    pub flushed: u64,
    pub(super) object: ObjectId,
}

/// The memtables of a subtable that has been dropped. Nobody finds them any more; when nobody reads them
/// either, they are [released](ChainHeap::release).
pub struct Dropped {
    /// By rising numbers.
    pub memtables: Vec<Arc<Memtable>>,
}

impl ChainHeap {
    fn subtables_pool(&self) -> &ObjectPool {
        self.space.pool(self.pools.subtables).expect("the pool was created with it")
    }

    /// Creates a subtable. Durable when this returns; a crash before leaves it or nothing. The caller sees to
    /// it that no two have one name.
    ///
    /// # Errors
    /// [`ChainError::NoSubtable`], [`ChainError::Name`].
    pub fn create_subtable(&self, name: &str) -> Result<Subtable, ChainError> {
        if name.is_empty() || name.len() > NAME_MAX {
            return Err(ChainError::Name { len: name.len() });
        }
        // Drawn first: the draw may begin the run, which must be durable before anything else changes.
        let created = self.clock.draw(&self.space);
        let pool = self.subtables_pool();
        let object = pool.get()?.ok_or(ChainError::NoSubtable { count: pool.count() })?;
        let at = pool.object_offset(object).expect("an object of this pool");
        let bytes = SubtableObject::new(&self.certifier, object, created, name);
        self.region().write(at, bytes.as_bytes());
        self.region().persist(at, SUBTABLE_LEN);
        pool.commit(object);
        Ok(Subtable { created, name: name.to_owned(), flushed: 0, object })
    }

    /// The word of [`ChainLog::note_flushed`].
    pub(super) fn note_flushed(&self, subtable: &Subtable, number: u64) {
        debug_assert!(number >> NUMBER_BITS == 0, "the clock does not come that far");
        let at = self.subtables_pool().object_offset(subtable.object).expect("an object of this pool");
        let at = at + FLUSHED_AT as u64;
        self.region().store(at, flushed_word(&self.certifier, subtable.created, number));
        self.region().persist(at, LINE);
    }

    /// The subtables of the pool, in the order in which they were created.
    ///
    /// # Errors
    /// [`ChainError::Damaged`].
    pub fn subtables(&self) -> Result<Vec<Subtable>, ChainError> {
        let mut tables = self.described_subtables().collect::<Result<Vec<_>, ChainError>>()?;
        tables.sort_by_key(|table| table.created);
        Ok(tables)
    }

    /// The subtables of the pool, or the damage in their places.
    pub fn described_subtables(&self) -> impl Iterator<Item = Result<Subtable, ChainError>> {
        let pool = self.subtables_pool();
        let read = move |object: ObjectId| {
            let at = pool.object_offset(object).expect("an object of this pool");
            let bytes: SubtableObject = self.read(at, SUBTABLE_LEN);
            let is_sound =
                bytes.magic == MAGIC && bytes.check.get() == bytes.expected_check(&self.certifier, object);
            let name = bytes.name().filter(|_| is_sound).map(str::to_owned);
            let damaged = |what| ChainError::Damaged { what, offset: at };
            let name = name.ok_or(damaged("the object of a table"))?;
            let flushed = bytes.flushed(&self.certifier);
            let flushed =
                flushed.ok_or(damaged("the word of a table that names its memtables on the levels"))?;
            Ok(Subtable { created: bytes.created.get(), name, flushed, object })
        };
        pool.committed().into_iter().map(read)
    }
}

impl ChainLog {
    /// Drops a subtable, number `table` of this run: durably when this returns, and a crash before leaves all
    /// of it or nothing. Nobody writes to it any more.
    ///
    /// The anchor is raised first. Items had records in this subtable and in others; without that word, their
    /// missing pieces would look like writes that are lost.
    ///
    /// # Errors
    /// If the ring is poisoned; nothing has changed then.
    pub fn drop_subtable(
        &self,
        table: usize,
        subtable: &Subtable,
        anchor: &Anchor,
    ) -> Result<Dropped, ChainError> {
        let last = self.leave(table)?;
        self.wait(last)?;
        let visible = self.visible();
        let heap = self.heap();
        if !twin!(ThroughNotRaised) {
            anchor.raise(heap.region(), &heap.certifier, visible);
        }
        heap.subtables_pool().release(subtable.object);
        Ok(Dropped { memtables: self.forget(subtable.created) })
    }
}

/// The fields of the object, for the check of `docs/FORMAT.md` against the code.
pub(super) fn format_table() -> Table {
    table!(SubtableObject: check, magic, name_len, reserved_a, created, reserved_b, name, flushed, reserved_c)
}
