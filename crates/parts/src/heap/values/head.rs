//! The head of a large value, byte by byte.

use crate::space::ZoneId;
use crate::table;
use crate::table::Table;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of a head before its zone numbers.
pub(super) const FIXED: u64 = 24;

/// Bytes of a zone number.
pub(super) const ZONE_NUMBER: u64 = size_of::<U32>() as u64;

/// The fixed part of a head as it stands in PM; the zone numbers follow, 4 bytes each.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct LargeHead {
    len: U64,
    life: U64,
    check: U64,
}

const _: () = assert!(size_of::<LargeHead>() == FIXED as usize);

/// A head taken apart.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    fixed: &'a LargeHead,
    zones: &'a [U32],
}

impl<'a> Head<'a> {
    /// Reads the value of a record of kind [`Large`](crate::record::Kind::Large), in a pool of which a zone
    /// holds `capacity` bytes of a value. `None` if its length and the number of its zones contradict each
    /// other.
    pub fn parse(value: &'a [u8], capacity: u64) -> Option<Head<'a>> {
        let (fixed, zones) = LargeHead::ref_from_prefix(value).ok()?;
        let zones = <[U32]>::ref_from_bytes(zones).ok()?;
        let is_whole = !zones.is_empty() && fixed.len.get().div_ceil(capacity) == zones.len() as u64;
        is_whole.then_some(Head { fixed, zones })
    }

    /// The head of a value of `len` bytes, for a record.
    pub(super) fn encode(len: u64, life: u64, check: u64, zones: &[ZoneId]) -> Vec<u8> {
        let fixed = LargeHead { len: len.into(), life: life.into(), check: check.into() };
        let mut bytes = fixed.as_bytes().to_vec();
        zones.iter().for_each(|zone| bytes.extend_from_slice(&zone.0.to_le_bytes()));
        bytes
    }

    /// Bytes of the value.
    pub fn value_len(&self) -> u64 {
        self.fixed.len.get()
    }

    /// Its life number.
    pub fn life(&self) -> u64 {
        self.fixed.life.get()
    }

    /// The check that its bytes must have.
    pub(super) fn check(&self) -> u64 {
        self.fixed.check.get()
    }

    /// The zones that hold it, in order. They need not exist.
    pub fn zones(&self) -> impl ExactSizeIterator<Item = ZoneId> + use<'a> {
        self.zones.iter().map(|zone| ZoneId(zone.get()))
    }
}

/// The fixed part's fields as (name, offset, size), for the check of `docs/FORMAT.md` against the code.
pub fn format_table() -> Table {
    table!(LargeHead: len, life, check)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_says_what_was_encoded() {
        let zones = [ZoneId(7), ZoneId(3), ZoneId(u32::MAX)];
        let bytes = Head::encode(250, 9, 11, &zones);
        assert_eq!(bytes.len() as u64, FIXED + 3 * ZONE_NUMBER);
        let head = Head::parse(&bytes, 100).expect("three zones of 100 bytes hold 250");
        assert_eq!((head.value_len(), head.life(), head.check()), (250, 9, 11));
        assert_eq!(head.zones().collect::<Vec<_>>(), zones);
    }

    #[test]
    fn a_head_whose_numbers_contradict_each_other_is_none() {
        let bytes = Head::encode(250, 9, 11, &[ZoneId(1), ZoneId(2), ZoneId(3)]);
        for capacity in [50, 83, 125, 250, 1 << 40] {
            assert!(Head::parse(&bytes, capacity).is_none(), "three zones of {capacity} bytes");
        }
        for len in 0..bytes.len() {
            assert!(Head::parse(&bytes[..len], 100).is_none(), "{len} bytes of a head");
        }
        assert!(Head::parse(&Head::encode(0, 9, 11, &[]), 100).is_none(), "nothing in no zone");
        assert!(Head::parse(&Head::encode(0, 9, 11, &[ZoneId(1)]), 100).is_none(), "nothing in a zone");
        assert!(Head::parse(&Head::encode(u64::MAX, 9, 11, &[ZoneId(1)]), 100).is_none());
    }
}
