//! The bytes before the index words of an object pool and of an extent: a description and the list head.
//!
//! The description repeats the superblock, under a check word that the pool's secret seeds. So open finds a
//! superblock that names the wrong place, and metadata that an earlier pool has left on the same device. The
//! list head has a line of its own, since Get changes it all the time and must not cause a flush of anything
//! else.

use super::error::SpaceError;
use super::free_list::{END, FreeListKind, link_to};
use super::superblock::{ExtentEntry, PoolEntry, Superblock};
use quipu_medium::Region;
use twox_hash::XxHash3_64;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// Bytes before the first index word.
pub(super) const HEADER_LEN: u64 = size_of::<PoolHeader>() as u64;
/// Offset of the list head in the header.
pub(super) const HEAD_AT: u64 = std::mem::offset_of!(PoolHeader, head) as u64;
/// Bytes that the check word covers, itself included.
const DESCRIPTION_LEN: usize = HEAD_AT as usize;
const KIND_OBJECTS: u32 = 1;
const KIND_ZONES: u32 = 2;

/// Describes an object pool or the zones of an extent.
#[derive(Clone, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct PoolHeader {
    pub(super) checksum: U64,
    /// First byte of the objects or zones.
    pub(super) objects: U64,
    pub(super) object_size: U64,
    pub(super) count: U64,
    /// Identifier of the object pool, or number of the first zone.
    pub(super) id: U32,
    /// 1 object pool, 2 zones of an extent.
    pub(super) kind: U32,
    pub(super) free_list: U32,
    pub(super) node: U16,
    pub(super) reserved_a: [u8; 18],
    /// First free object: a list head word.
    pub(super) head: U64,
    pub(super) reserved_b: [u8; 56],
}

/// A zone's entry in the zone table.
#[derive(Clone, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct ZoneEntry {
    pub(super) index: U64,
    pub(super) location: U64,
}

const _: () = {
    assert!(size_of::<PoolHeader>() == 128);
    assert!(std::mem::offset_of!(PoolHeader, head) == 64);
    assert!(size_of::<ZoneEntry>() == 16);
};

impl PoolHeader {
    pub(super) fn of_pool(superblock: &Superblock, entry: &PoolEntry) -> PoolHeader {
        let mut header = PoolHeader::new_zeroed();
        header.objects = entry.objects;
        header.object_size = entry.object_size;
        header.count = entry.count;
        header.id = entry.id;
        header.kind.set(KIND_OBJECTS);
        header.free_list = entry.free_list;
        header.sealed(superblock)
    }

    pub(super) fn of_extent(superblock: &Superblock, entry: &ExtentEntry) -> PoolHeader {
        let mut header = PoolHeader::new_zeroed();
        header.objects = entry.zones;
        header.object_size = superblock.zone_size;
        header.count.set(u64::from(entry.zone_count.get()));
        header.id = entry.first_zone;
        header.kind.set(KIND_ZONES);
        header.free_list = superblock.zone_free_list;
        header.node = entry.node;
        header.sealed(superblock)
    }

    fn sealed(mut self, superblock: &Superblock) -> PoolHeader {
        let mut seed = [0; 8];
        seed.copy_from_slice(&superblock.secret[..8]);
        let described = &self.as_bytes()[size_of::<U64>()..DESCRIPTION_LEN];
        let checksum = XxHash3_64::oneshot_with_seed(u64::from_le_bytes(seed), described);
        self.checksum.set(checksum);
        self
    }

    /// Writes the header with the head of a list whose objects are all free. A fence follows.
    pub(super) fn write(mut self, region: &Region, offset: u64, free_list: FreeListKind) {
        self.head.set(if free_list == FreeListKind::Persistent { link_to(0) } else { END });
        region.write_nt(offset, self.as_bytes());
    }

    /// Compares the description on the medium with this one.
    pub(super) fn verify(&self, region: &Region, offset: u64, what: &'static str) -> Result<(), SpaceError> {
        let mut found = PoolHeader::new_zeroed();
        region.read_racing(offset, found.as_mut_bytes());
        if found.as_bytes()[..DESCRIPTION_LEN] == self.as_bytes()[..DESCRIPTION_LEN] {
            Ok(())
        } else {
            Err(SpaceError::Damaged { what, offset })
        }
    }
}
