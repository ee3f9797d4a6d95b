//! Indexes in the pool, and the settings of each in the superblock.

use crate::settings::bucket_table::MpkvSettings;
use crate::settings::image::Image;
use crate::settings::techniques::FlatSettings;
use quipu_parts::index::buckets::{BucketIndex, BucketSettings, Locking};
use quipu_parts::index::cceh::{CcehIndex, CcehSettings, PmNodes};
use quipu_parts::index::fastfair::FastFairIndex;
use quipu_parts::index::{InPool, PmWords};

/// An index that survives a crash by itself.
pub(crate) trait Rooted: InPool {
    /// Its settings in the superblock.
    type Remembered: Image;

    /// The remembered shape, or the smallest.
    fn shape(remembered: &Self::Remembered, is_tiny: bool) -> Self::Settings;
}

impl Rooted for CcehIndex<PmNodes> {
    type Remembered = FlatSettings;

    fn shape(remembered: &FlatSettings, is_tiny: bool) -> CcehSettings {
        if is_tiny { CcehSettings::tiny() } else { remembered.shape }
    }
}

impl Rooted for FastFairIndex {
    type Remembered = FlatSettings;

    fn shape(_remembered: &FlatSettings, _is_tiny: bool) {}
}

impl<L: Locking> Rooted for BucketIndex<PmWords, L> {
    type Remembered = MpkvSettings;

    fn shape(remembered: &MpkvSettings, is_tiny: bool) -> BucketSettings {
        if is_tiny { BucketSettings::tiny() } else { remembered.table }
    }
}
