//! The settings of designs that a pool remembers, and their bytes in its superblock.

pub(crate) mod bucket_table;
pub(crate) mod image;
pub(crate) mod offset_map;
pub(crate) mod techniques;
