//! The header of a segment, byte by byte, and its end mark. The zones of a large value have the same header
//! with another magic.

use crate::record::{Certifier, LifeKey};
use crate::space::ZoneId;
use crate::table;
use crate::table::Table;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Offset of a segment's first record, and bytes of its header.
pub const FIRST_RECORD: u64 = 64;

pub(super) const END_MARK: u64 = 40;
/// Offsets of the words that only files of [`crate::heap::nlog`] have.
const CLUSTER: u64 = 48;
pub(in crate::heap) const HIGH_WATER: u64 = 56;

/// The use of a committed zone, which the magic of its header tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::heap) enum Role {
    /// A log of records.
    Segment,
    /// A piece of a large value.
    Value,
}

impl Role {
    fn magic(self) -> [u8; 4] {
        match self {
            Role::Segment => *b"QSEG",
            Role::Value => *b"QVAL",
        }
    }
}

/// The header as it stands in PM.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct SegmentHeader {
    check: U64,
    magic: [u8; 4],
    zone: U32,
    life: U64,
    run: U64,
    nonce: U64,
    end_mark: U64,
    cluster: U64,
    high_water: U64,
}

const _: () = assert!(size_of::<SegmentHeader>() == FIRST_RECORD as usize);
const _: () = assert!(std::mem::offset_of!(SegmentHeader, end_mark) == END_MARK as usize);
const _: () = assert!(std::mem::offset_of!(SegmentHeader, cluster) == CLUSTER as usize);
const _: () = assert!(std::mem::offset_of!(SegmentHeader, high_water) == HIGH_WATER as usize);

impl SegmentHeader {
    /// The header of a zone that begins a life.
    pub(in crate::heap) fn open(
        certifier: &Certifier,
        role: Role,
        zone: ZoneId,
        life: u64,
        nonce: u64,
        run: u64,
    ) -> SegmentHeader {
        let mut header = SegmentHeader {
            check: 0.into(),
            magic: role.magic(),
            zone: zone.0.into(),
            life: life.into(),
            run: run.into(),
            nonce: nonce.into(),
            end_mark: 0.into(),
            cluster: 0.into(),
            high_water: 0.into(),
        };
        header.check.set(header.expected_check(certifier));
        header
    }

    /// The same with the words of a file of [`crate::heap::nlog`], which prove themselves.
    pub(in crate::heap) fn of_file(mut self, cluster: u64, high_water: u64) -> SegmentHeader {
        self.cluster.set(cluster);
        self.high_water.set(high_water);
        self
    }

    fn expected_check(&self, certifier: &Certifier) -> u64 {
        // The check of a header depends on no life: the header defines it.
        certifier.check(certifier.life_key(0, 0), 0, &self.as_bytes()[8..END_MARK as usize])
    }

    /// Whether the header was written for this zone in this role.
    pub(in crate::heap) fn is_valid(&self, certifier: &Certifier, role: Role, zone: ZoneId) -> bool {
        self.says(role, zone) && self.check.get() == self.expected_check(certifier)
    }

    /// Whether this is the header of a freed segment in this zone: its check is the complement of the right
    /// one.
    pub(super) fn is_given_up(&self, certifier: &Certifier, zone: ZoneId) -> bool {
        self.says(Role::Segment, zone) && self.check.get() == !self.expected_check(certifier)
    }

    /// Whether the header names this role and this zone, without proof.
    pub(in crate::heap) fn says(&self, role: Role, zone: ZoneId) -> bool {
        self.magic == role.magic() && self.zone.get() == zone.0
    }

    /// The life number.
    pub(crate) fn life(&self) -> u64 {
        self.life.get()
    }

    /// The random number that makes the life differ from every other of its number.
    pub(in crate::heap) fn nonce(&self) -> u64 {
        self.nonce.get()
    }

    /// The contribution of the life to the checks of its records.
    pub(in crate::heap) fn life_key(&self, certifier: &Certifier) -> LifeKey {
        certifier.life_key(self.life.get(), self.nonce.get())
    }

    pub(super) fn end_mark(&self) -> u64 {
        self.end_mark.get()
    }

    /// The words that only files of [`crate::heap::nlog`] have: that of the cluster, and the high water.
    pub(in crate::heap) fn file_words(&self) -> (u64, u64) {
        (self.cluster.get(), self.high_water.get())
    }
}

/// The end mark of a segment of this life that ends at `end`.
pub(super) fn end_mark(certifier: &Certifier, life: LifeKey, end: u64) -> u64 {
    (end >> 3) | (certifier.check_word(life, end) as u64) << 32
}

/// The end that a mark states: `Ok(None)` for an open segment, an error for a damaged mark.
pub(super) fn read_end_mark(certifier: &Certifier, life: LifeKey, mark: u64) -> Result<Option<u64>, ()> {
    if mark == 0 {
        return Ok(None);
    }
    let end = (mark & 0xffff_ffff) << 3;
    if end_mark(certifier, life, end) == mark { Ok(Some(end)) } else { Err(()) }
}

/// The header's fields as (name, offset, size), for the check of `docs/FORMAT.md` against the code.
pub fn format_table() -> Table {
    table!(SegmentHeader: check, magic, zone, life, run, nonce, end_mark, cluster, high_water)
}
