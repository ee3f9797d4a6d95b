//! The header of a zone that holds segments, and the root, byte by byte.

use crate::index::cceh::entry::BUCKET;
use crate::index::cceh::settings::CcehSettings;
use crate::record::Certifier;
use crate::space::ZoneId;
use quipu_medium::WORD;
use std::mem::offset_of;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const MAGIC: [u8; 4] = *b"QCEH";
/// Segments begin at a multiple of the block that a PM DIMM writes at once.
const MEDIA_BLOCK: u64 = 256;
/// Offset of the link to the next zone.
pub(super) const NEXT: u64 = offset_of!(CcehZoneHeader, next) as u64;
/// Offset of the names.
pub(super) const NAMES: u64 = size_of::<CcehZoneHeader>() as u64;

/// What a zone of an index begins with.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct CcehZoneHeader {
    check: U64,
    magic: [u8; 4],
    zone: U32,
    nonce: U64,
    number: U32,
    bucket_bits: u8,
    probe: u8,
    reserved_a: [u8; 2],
    next: U64,
    reserved_b: [u8; 24],
}

/// What the owner of an index keeps, durably, to find it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct CcehRoot {
    zone: U32,
    reserved: [u8; 4],
    nonce: U64,
}

const _: () = {
    assert!(size_of::<CcehZoneHeader>() == 64 && NEXT == 32 && NAMES == 64);
    assert!(offset_of!(CcehZoneHeader, magic) == 8 && offset_of!(CcehZoneHeader, nonce) == 16);
    assert!(offset_of!(CcehZoneHeader, number) == 24 && offset_of!(CcehZoneHeader, bucket_bits) == 28);
    assert!(size_of::<CcehRoot>() == 16 && offset_of!(CcehRoot, nonce) == 8);
};

impl CcehRoot {
    /// Bytes of a root.
    pub const LEN: usize = size_of::<CcehRoot>();

    pub(super) fn new(zone: ZoneId, nonce: u64) -> CcehRoot {
        CcehRoot { zone: zone.0.into(), reserved: [0; 4], nonce: nonce.into() }
    }

    /// The root as bytes.
    pub fn to_bytes(&self) -> [u8; CcehRoot::LEN] {
        zerocopy::transmute!(*self)
    }

    /// The root of these bytes; whether it names an index is for who opens it to find out.
    pub fn from_bytes(bytes: [u8; CcehRoot::LEN]) -> CcehRoot {
        zerocopy::transmute!(bytes)
    }

    /// The first zone of the index.
    pub fn zone(&self) -> ZoneId {
        ZoneId(self.zone.get())
    }

    pub(super) fn nonce(&self) -> u64 {
        self.nonce.get()
    }
}

impl CcehZoneHeader {
    pub(super) fn new(
        certifier: &Certifier,
        zone: ZoneId,
        nonce: u64,
        number: u32,
        settings: CcehSettings,
    ) -> CcehZoneHeader {
        let mut header = CcehZoneHeader {
            check: 0.into(),
            magic: MAGIC,
            zone: zone.0.into(),
            nonce: nonce.into(),
            number: number.into(),
            bucket_bits: settings.bucket_bits as u8,
            probe: settings.probe as u8,
            reserved_a: [0; 2],
            next: 0.into(),
            reserved_b: [0; 24],
        };
        header.check.set(header.expected_check(certifier));
        header
    }

    fn expected_check(&self, certifier: &Certifier) -> u64 {
        // Headers prove themselves without a life, like those of segments of the heap; the magic tells them apart.
        certifier.check(certifier.life_key(0, 0), 0, &self.as_bytes()[size_of::<U64>()..NEXT as usize])
    }

    /// Whether the header was written for this zone, as this one of the index with this nonce.
    pub(super) fn is_valid(&self, certifier: &Certifier, zone: ZoneId, nonce: u64, number: u32) -> bool {
        let says = self.magic == MAGIC && self.zone == zone.0 && self.nonce == nonce && self.number == number;
        says && self.check.get() == self.expected_check(certifier)
    }

    /// The settings of the index.
    pub(super) fn settings(&self) -> CcehSettings {
        let (bucket_bits, probe) = (u32::from(self.bucket_bits), u32::from(self.probe));
        CcehSettings { initial_depth: 0, bucket_bits, probe }
    }
}

/// Where the segments of a zone lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Carving {
    /// Segments in a zone; at least one.
    pub(super) segments: u64,
    /// Offset of the first.
    pub(super) first: u64,
    /// Bytes of each.
    pub(super) segment: u64,
}

impl Carving {
    /// Carves zones of this size; `None` if not even one segment fits.
    pub(super) fn new(zone_size: u64, settings: CcehSettings) -> Option<Carving> {
        let segment = settings.segment_bytes();
        let first = |segments: u64| (NAMES + segments * WORD).next_multiple_of(MEDIA_BLOCK.max(BUCKET));
        let most = zone_size / (segment + WORD);
        let segments =
            (1..=most).rev().find(|segments| first(*segments) + segments * segment <= zone_size)?;
        Some(Carving { segments, first: first(segments), segment })
    }
}

/// Fields of a structure as (name, offset, size).
pub type Fields = Vec<(&'static str, usize, usize)>;

/// The structures with their fields, for the check of `docs/FORMAT.md` against the code.
pub fn format_tables() -> Vec<(&'static str, Fields)> {
    vec![
        (
            "CcehZoneHeader",
            vec![
                ("check", offset_of!(CcehZoneHeader, check), 8),
                ("magic", offset_of!(CcehZoneHeader, magic), 4),
                ("zone", offset_of!(CcehZoneHeader, zone), 4),
                ("nonce", offset_of!(CcehZoneHeader, nonce), 8),
                ("number", offset_of!(CcehZoneHeader, number), 4),
                ("bucket_bits", offset_of!(CcehZoneHeader, bucket_bits), 1),
                ("probe", offset_of!(CcehZoneHeader, probe), 1),
                ("reserved_a", offset_of!(CcehZoneHeader, reserved_a), 2),
                ("next", offset_of!(CcehZoneHeader, next), 8),
                ("reserved_b", offset_of!(CcehZoneHeader, reserved_b), 24),
            ],
        ),
        (
            "CcehRoot",
            vec![
                ("zone", offset_of!(CcehRoot, zone), 4),
                ("reserved", offset_of!(CcehRoot, reserved), 4),
                ("nonce", offset_of!(CcehRoot, nonce), 8),
            ],
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_carved_to_the_end_and_not_beyond() {
        for bucket_bits in 0..=10 {
            for zone_size in [4096, 8192, 16 << 10, 1 << 20, 4 << 20] {
                let settings = CcehSettings { initial_depth: 0, bucket_bits, probe: 1 };
                let segment = settings.segment_bytes();
                let Some(carving) = Carving::new(zone_size, settings) else {
                    assert!(segment + MEDIA_BLOCK > zone_size);
                    continue;
                };
                let end = carving.first + carving.segments * segment;
                assert!(end <= zone_size && end + segment + WORD + MEDIA_BLOCK > zone_size, "{carving:?}");
                assert!(carving.first >= NAMES + carving.segments * WORD && carving.first % MEDIA_BLOCK == 0);
            }
        }
    }

    #[test]
    fn a_root_is_its_bytes() {
        let root = CcehRoot::new(ZoneId(7), 0x0102_0304_0506_0708);
        assert_eq!(CcehRoot::from_bytes(root.to_bytes()), root);
        assert_eq!(root.to_bytes()[..4], [7, 0, 0, 0]);
        assert_eq!(root.to_bytes()[8..], [8, 7, 6, 5, 4, 3, 2, 1]);
    }
}
