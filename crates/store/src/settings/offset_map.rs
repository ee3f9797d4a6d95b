//! Viper's Offset Map: its place and its shape.
//!
//! The paper keeps it in DRAM and rebuilds it at every open. Its all-PM variant keeps it beside the records
//! (section 5.3.6). Either way it is the same CCEH. The choice belongs to the pool.

use quipu_parts::index::cceh::CcehSettings;

/// The memory of an index. The numbers are those of images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum NodePlace {
    /// DRAM: fast, and rebuilt from the records at every open.
    #[default]
    Dram = 1,
    /// The pool: one fence more for each change, and hardly any DRAM. Every open compares it with the
    /// records.
    Pm = 2,
}

/// The Offset Map of a new pool of design `viper`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetMap {
    /// Where it is kept.
    pub nodes: NodePlace,
    /// Its shape.
    pub shape: CcehSettings,
}

impl Default for OffsetMap {
    /// In DRAM, in the published shape.
    fn default() -> OffsetMap {
        OffsetMap { nodes: NodePlace::Dram, shape: CcehSettings::paper() }
    }
}

/// Least segments of an index in the pool that a zone has room for, without their names.
const SEGMENTS_OF_A_ZONE: u64 = 8;

impl OffsetMap {
    /// This map for zones of this size. In the pool its segments are so small that a zone holds several, with
    /// little left over.
    pub(crate) fn fitted(self, zone_size: u64) -> OffsetMap {
        let with = |bucket_bits| CcehSettings { bucket_bits, ..self.shape }.in_range();
        let fits = |shape: &CcehSettings| shape.segment_bytes() * SEGMENTS_OF_A_ZONE <= zone_size;
        match self.nodes {
            NodePlace::Dram => self,
            NodePlace::Pm => {
                let shape = (0..=self.shape.bucket_bits).rev().map(with).find(fits).unwrap_or(self.shape);
                OffsetMap { shape, ..self }
            }
        }
    }
}

/// The shape of a CCEH index in images: a byte for each number.
pub(crate) fn shape_bytes(shape: CcehSettings) -> [u8; 3] {
    let CcehSettings { initial_depth, bucket_bits, probe } = shape.in_range();
    [initial_depth, bucket_bits, probe].map(|number| number as u8)
}

/// The shape that these bytes of an image say.
pub(crate) fn shape_of(bytes: [u8; 3]) -> CcehSettings {
    let [initial_depth, bucket_bits, probe] = bytes.map(u32::from);
    CcehSettings { initial_depth, bucket_bits, probe }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_fitted_to_small_zones() {
        let shape = CcehSettings::paper();
        let bits = |nodes, zone: u64| OffsetMap { nodes, shape }.fitted(zone).shape.bucket_bits;
        assert_eq!([16, 64, 128, 4096].map(|kib| bits(NodePlace::Pm, kib << 10)), [5, 7, 8, 8]);
        assert_eq!(bits(NodePlace::Dram, 16 << 10), shape.bucket_bits);
    }
}
