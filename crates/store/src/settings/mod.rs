//! The settings of designs. Those that a pool keeps have images in its superblock.

pub(crate) mod bucket_table;
pub(crate) mod files;
pub(crate) mod image;
pub(crate) mod memtables;
pub(crate) mod offset_map;
pub(crate) mod slots;
pub(crate) mod techniques;

use image::Image;
use quipu_parts::table::Table;

/// The fields of every image.
#[doc(hidden)]
pub fn settings_tables() -> Vec<Table> {
    vec![
        bucket_table::MpkvSettings::table(),
        files::NstoreSettings::table(),
        memtables::TieredSettings::table(),
        slots::PoolSettings::table(),
        techniques::FlatSettings::table(),
    ]
}
