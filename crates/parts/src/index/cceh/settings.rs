//! Settings and statistics of a CCEH index.

use super::entry::{BUCKET, EMPTY, ENTRY, Name};

/// Largest [`CcehSettings::bucket_bits`].
pub(super) const BUCKET_BITS_MAX: u32 = 10;
/// Largest [`CcehSettings::probe`].
const PROBE_MAX: u32 = 64;
/// Largest [`CcehSettings::initial_depth`].
const INITIAL_DEPTH_MAX: u32 = 16;

/// The shape of a CCEH index. In PM it is persistent, except the initial depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CcehSettings {
    /// Hash bits that the directory distinguishes at first: the index starts with two to this power segments,
    /// in PM with no more than the first zone holds. At most 16.
    pub initial_depth: u32,
    /// Buckets of a segment, as a power of two, of 64 bytes each. 0 to 10.
    pub bucket_bits: u32,
    /// Buckets in which an entry may stand: the one that its hash names and those behind it. 1 to 64, but at
    /// most all buckets of a segment. More fill segments better; a lookup of an absent key reads them all.
    pub probe: u32,
}

impl CcehSettings {
    /// Segments of 16 KiB and a probing distance of four lines, as published (FAST'19, sections 3 and 5).
    pub const fn paper() -> CcehSettings {
        CcehSettings { initial_depth: 5, bucket_bits: 8, probe: 4 }
    }

    /// Fewer bytes a record: at most 34, where the published setting takes 45. Segments of 2 KiB do not all
    /// split at the same time, and a distance of six lines fills them better.
    pub const fn dense() -> CcehSettings {
        CcehSettings { initial_depth: 5, bucket_bits: 5, probe: 6 }
    }

    /// One segment of 16 entries, so that a handful of keys splits. For tests.
    pub fn tiny() -> CcehSettings {
        CcehSettings { initial_depth: 0, bucket_bits: 2, probe: 2 }
    }

    /// The settings with every field brought into its range.
    pub fn in_range(self) -> CcehSettings {
        let bucket_bits = self.bucket_bits.min(BUCKET_BITS_MAX);
        CcehSettings {
            initial_depth: self.initial_depth.min(INITIAL_DEPTH_MAX),
            bucket_bits,
            probe: self.probe.clamp(1, PROBE_MAX.min(1 << bucket_bits)),
        }
    }

    /// Bytes of a segment.
    pub fn segment_bytes(self) -> u64 {
        BUCKET << self.bucket_bits
    }

    /// Entries of a segment.
    pub(super) fn entries(self) -> usize {
        (self.segment_bytes() / ENTRY) as usize
    }

    /// The words of a segment without an entry in use, in a memory with this mark.
    pub(super) fn empty_segment(self, mark: u64) -> Vec<u64> {
        [mark, EMPTY].repeat(self.entries())
    }

    /// The segments that an index starts with.
    pub(super) fn initial_names(self) -> impl Iterator<Item = Name> {
        let depth = self.initial_depth;
        (0..1u64 << depth).map(move |number| Name::new(number << 1 << (63 - depth), depth))
    }
}

impl Default for CcehSettings {
    fn default() -> CcehSettings {
        CcehSettings::paper()
    }
}

/// Statistics of a CCEH index: its size, and its work so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CcehStats {
    /// Bytes of DRAM: directories, locks, and segments if they are there, those in reserve included.
    pub bytes: u64,
    /// Bytes of the zones that hold segments in PM.
    pub pm_bytes: u64,
    /// Segments in use.
    pub segments: u64,
    /// Hash bits that the directory distinguishes.
    pub depth: u32,
    /// Segments split since the index was made or opened.
    pub splits: u64,
    /// Entries for which the segments in use have room.
    pub slots: u64,
}
