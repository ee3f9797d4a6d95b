//! Settings and statistics of a bucket index.

use super::numbers::BUCKETS_MAX;

/// Bits of the number of buckets that are kept.
const DIGITS: u32 = 16;

/// The shape of a bucket index, which is persistent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketSettings {
    /// Buckets at first, of eight slots and 64 bytes each: 1 to 2^31, rounded up to sixteen significant bits.
    pub buckets: u64,
    /// Whether the table grows. The paper's does not: its chains get longer instead (MPKV, section 2).
    pub grow: bool,
}

impl BucketSettings {
    /// A table that keeps its size, with room for so many keys in buckets that are full by three quarters.
    pub fn paper(keys: u64) -> BucketSettings {
        BucketSettings { buckets: keys.div_ceil(6), grow: false }
    }

    /// One bucket that grows, so that a handful of keys splits. For tests.
    pub fn tiny() -> BucketSettings {
        BucketSettings { buckets: 1, grow: true }
    }

    /// The settings with every field brought into its range.
    pub fn in_range(self) -> BucketSettings {
        let buckets = self.buckets.clamp(1, BUCKETS_MAX);
        let shift = (buckets.ilog2() + 1).saturating_sub(DIGITS);
        BucketSettings { buckets: buckets.div_ceil(1 << shift) << shift, ..self }
    }
}

impl Default for BucketSettings {
    /// A table that begins with 64 KiB, and grows.
    fn default() -> BucketSettings {
        BucketSettings { buckets: 1024, grow: true }
    }
}

/// Statistics of a bucket index: its size, and its work so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BucketStats {
    /// Bytes of DRAM: locks, counters, and where zones lie.
    pub bytes: u64,
    /// Bytes of the zones in PM.
    pub pm_bytes: u64,
    /// Buckets of the table, those behind them not counted.
    pub buckets: u64,
    /// Buckets that stand behind others.
    pub overflow: u64,
    /// Buckets split since the index was made or opened.
    pub splits: u64,
    /// Records that were read for the sake of splits.
    pub records_read: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_buckets_are_rounded_up_to_what_is_kept() {
        let in_range = |buckets| BucketSettings { buckets, grow: false }.in_range().buckets;
        for exact in [1, 2, 1000, 65_535, 65_536, 65_538, 1 << 31] {
            assert_eq!(in_range(exact), exact);
        }
        assert_eq!((in_range(0), in_range(65_537), in_range(u64::MAX)), (1, 65_538, 1 << 31));
        assert_eq!(in_range((1 << 24) + 1), (1 << 24) + (1 << 9));
        assert_eq!(in_range((1 << 31) - 1), 1 << 31);
    }
}
