//! The bucket index of a new pool of a design `mpkv`, and how the superblock remembers it.

use crate::settings::image::Remembered;
use quipu_medium::LINE;
use quipu_parts::index::IndexRoot;
use quipu_parts::index::buckets::BucketSettings;
use quipu_parts::space::SETTINGS_LEN;
use quipu_parts::table;
use quipu_parts::table::Table;
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The same with no more buckets at first, if the table grows, than a zone has room for behind its header.
pub(crate) fn fitted(table: BucketSettings, zone_size: u64) -> BucketSettings {
    let of_zone = zone_size / LINE - 1;
    let buckets = if table.grow { table.buckets.min(of_zone) } else { table.buckets };
    BucketSettings { buckets, ..table }.in_range()
}

/// What the superblock remembers of a pool of a design `mpkv`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MpkvSettings {
    pub(crate) table: BucketSettings,
    /// The root of the index; zeros before it is made.
    pub(crate) root: [u8; IndexRoot::LEN],
}

/// The same as it stands there.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct MpkvImage {
    magic: [u8; 4],
    buckets: U32,
    grow: u8,
    reserved_a: [u8; 7],
    root: [u8; IndexRoot::LEN],
    reserved_b: [u8; 96],
}

const _: () = assert!(size_of::<MpkvImage>() == SETTINGS_LEN);

const MAGIC: [u8; 4] = *b"MPKV";

impl Remembered for MpkvSettings {
    fn encode(&self) -> [u8; SETTINGS_LEN] {
        let BucketSettings { buckets, grow } = self.table.in_range();
        let image = MpkvImage {
            magic: MAGIC,
            // In range there are 2^31 at most.
            buckets: (buckets as u32).into(),
            grow: grow.into(),
            reserved_a: [0; _],
            root: self.root,
            reserved_b: [0; _],
        };
        zerocopy::transmute!(image)
    }

    fn decode(bytes: &[u8; SETTINGS_LEN]) -> Option<MpkvSettings> {
        let image: MpkvImage = zerocopy::transmute!(*bytes);
        let table = BucketSettings { buckets: image.buckets.get().into(), grow: image.grow != 0 };
        let settings = MpkvSettings { table, root: image.root };
        // What is not looked at is not known either: nothing may hide there.
        (settings.encode() == *bytes).then_some(settings)
    }

    fn root(&self) -> IndexRoot {
        IndexRoot::from_bytes(self.root)
    }

    fn with_root(self, root: IndexRoot) -> MpkvSettings {
        MpkvSettings { root: root.to_bytes(), ..self }
    }
}

/// The fields in the superblock as (name, offset, size), for the check of `docs/FORMAT.md` against the code.
#[doc(hidden)]
pub fn mpkv_table() -> Table {
    table!(MpkvImage as "MpkvSettings"; magic, buckets, grow, reserved_a, root, reserved_b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_grows_begins_in_one_zone() {
        let buckets = |grow, buckets| fitted(BucketSettings { buckets, grow }, 16 << 10).buckets;
        assert_eq!((buckets(true, 1 << 20), buckets(true, 10), buckets(false, 1 << 20)), (255, 10, 1 << 20));
        let in_largest = fitted(BucketSettings { buckets: 1 << 20, grow: true }, 4 << 20).buckets;
        assert_eq!(in_largest, 65_535);
    }

    #[test]
    fn they_survive_the_superblock_and_every_byte_is_looked_at() {
        for table in [BucketSettings::default(), BucketSettings::paper(1 << 30), BucketSettings::tiny()] {
            let settings = MpkvSettings { table: table.in_range(), root: [7; _] };
            let bytes = settings.encode();
            assert_eq!(MpkvSettings::decode(&bytes), Some(settings));
            for at in 0..SETTINGS_LEN {
                let mut other = bytes;
                other[at] ^= 0x40;
                assert_ne!(MpkvSettings::decode(&other), Some(settings), "byte {at} says nothing");
            }
        }
        assert_eq!(MpkvSettings::decode(&[0; _]), None);
    }
}
