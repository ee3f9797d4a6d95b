//! The settings of a pool of memtables.

use crate::settings::image::Image;
use quipu_parts::index::IndexRoot;
use quipu_parts::table;
use quipu_parts::table::Table;
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, Unaligned};

/// The settings that a pool of design `xp` keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TieredSettings {
    /// Zones of a memtable.
    pub(crate) slots: u32,
    /// Always zeros: the index is in DRAM.
    pub(crate) root: IndexRoot,
}

/// Their image.
#[derive(FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct TieredImage {
    magic: [u8; 4],
    slots: U32,
    root: IndexRoot,
    reserved: [u8; 104],
}

impl TieredSettings {
    /// With memtables of so many zones.
    pub(crate) fn new(slots: u32) -> TieredSettings {
        TieredSettings { slots, root: IndexRoot::new_zeroed() }
    }
}

impl Image for TieredSettings {
    type Layout = TieredImage;

    fn table() -> Table {
        table!(TieredImage as "TieredSettings"; magic, slots, root, reserved)
    }

    fn image(&self) -> TieredImage {
        TieredImage { magic: *b"TIER", slots: self.slots.into(), root: self.root, reserved: [0; _] }
    }

    fn of_image(image: TieredImage) -> TieredSettings {
        TieredSettings { slots: image.slots.get(), root: image.root }
    }

    fn root_mut(&mut self) -> &mut IndexRoot {
        &mut self.root
    }
}
