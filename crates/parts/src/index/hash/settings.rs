//! Settings and statistics of a hash index.

/// Largest [`HashIndexSettings::bucket_bits`].
pub(super) const BUCKET_BITS_MAX: u32 = 8;

/// The shape of a hash index. It is volatile, so nothing of this is persistent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashIndexSettings {
    /// Hash bits that the directory distinguishes at first, at most 16: two to this power segments.
    pub initial_depth: u32,
    /// Buckets of a segment as a power of two, 1 to 8. Larger segments fill better; smaller ones split
    /// faster.
    pub bucket_bits: u32,
}

impl Default for HashIndexSettings {
    /// 32 segments of 16 KiB: splits need no record up to 16 million keys.
    fn default() -> HashIndexSettings {
        HashIndexSettings { initial_depth: 5, bucket_bits: 8 }
    }
}

impl HashIndexSettings {
    /// One segment of 32 slots, so that a handful of keys splits and displaces. For tests.
    pub fn tiny() -> HashIndexSettings {
        HashIndexSettings { initial_depth: 0, bucket_bits: 2 }
    }
}

/// Statistics of a hash index: its size, and its work so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HashIndexStats {
    /// Bytes allocated: segments in use and in reserve, their metadata, directories, overflow.
    pub bytes: u64,
    /// Segments in use.
    pub segments: u64,
    /// Hash bits that the directory distinguishes.
    pub depth: u32,
    /// Segments split so far.
    pub splits: u64,
    /// Words moved to their other bucket to make room.
    pub displacements: u64,
    /// Records whose hash a split had to ask for.
    pub records_read_by_splits: u64,
    /// References that splits dropped, because the hash of their record was not that of their place any more.
    pub strays: u64,
    /// Slots of the segments in use.
    pub slots: u64,
    /// Keys in overflow chains.
    pub overflowing: u64,
}
