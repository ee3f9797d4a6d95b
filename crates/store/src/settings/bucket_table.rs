//! The bucket index of a pool of a design `mpkv`.

use crate::settings::image::Image;
use quipu_medium::LINE;
use quipu_parts::index::IndexRoot;
use quipu_parts::index::buckets::BucketSettings;
use quipu_parts::table;
use quipu_parts::table::Table;
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, Unaligned};

/// This table for zones of this size. A growing table begins with no more buckets than one zone has room for.
pub(crate) fn fitted(table: BucketSettings, zone_size: u64) -> BucketSettings {
    let of_zone = zone_size / LINE - 1;
    let buckets = if table.grow { table.buckets.min(of_zone) } else { table.buckets };
    BucketSettings { buckets, ..table }.in_range()
}

/// The settings that a pool of a design `mpkv` keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MpkvSettings {
    pub(crate) table: BucketSettings,
    pub(crate) root: IndexRoot,
}

/// Their image.
#[derive(FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct MpkvImage {
    magic: [u8; 4],
    buckets: U32,
    grow: u8,
    reserved_a: [u8; 7],
    root: IndexRoot,
    reserved_b: [u8; 96],
}

impl Image for MpkvSettings {
    type Layout = MpkvImage;

    fn table() -> Table {
        table!(MpkvImage as "MpkvSettings"; magic, buckets, grow, reserved_a, root, reserved_b)
    }

    fn image(&self) -> MpkvImage {
        let BucketSettings { buckets, grow } = self.table.in_range();
        MpkvImage {
            magic: *b"MPKV",
            // In range there are 2^31 at most.
            buckets: (buckets as u32).into(),
            grow: grow.into(),
            reserved_a: [0; _],
            root: self.root,
            reserved_b: [0; _],
        }
    }

    fn of_image(image: MpkvImage) -> MpkvSettings {
        let table = BucketSettings { buckets: image.buckets.get().into(), grow: image.grow == 1 };
        MpkvSettings { table, root: image.root }
    }

    fn root_mut(&mut self) -> &mut IndexRoot {
        &mut self.root
    }
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
}
