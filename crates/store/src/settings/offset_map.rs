//! Viper's Offset Map: where it is kept, in which shape, and how the superblock remembers both.
//!
//! The paper keeps it in DRAM and rebuilds it at every open; its all-PM variant keeps it beside the records (section 5.3.6).
//! Either way it is the same CCEH. A pool is opened as it was created, so the choice is part of it.

use quipu_parts::index::cceh::{CcehRoot, CcehSettings};
use quipu_parts::table;
use quipu_parts::table::Table;
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// What the nodes of an index lie in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum NodePlace {
    /// DRAM: fast, and rebuilt from the records at every open.
    #[default]
    Dram,
    /// The pool: one fence more for each change, hardly any DRAM, and compared with the records at every open.
    Pm,
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

/// Segments of an index in the pool that a zone has room for at least, but for their names.
const SEGMENTS_OF_A_ZONE: u64 = 8;

/// The Offset Map as it stands in the superblock, behind the settings of the heap.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct OffsetMapImage {
    nodes: u8,
    initial_depth: u8,
    bucket_bits: u8,
    probe: u8,
    reserved_a: [u8; 4],
    root: [u8; CcehRoot::LEN],
    reserved_b: [U64; 5],
}

const NODES_DRAM: u8 = 1;
const NODES_PM: u8 = 2;

const _: () = assert!(size_of::<OffsetMapImage>() == OffsetMap::LEN);

impl OffsetMap {
    /// The same with segments so small, if they are in the pool, that a zone is carved into some without much being left over.
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

    /// Bytes in the superblock.
    pub(crate) const LEN: usize = 64;

    /// The bytes for the superblock; an index that is not in the pool, or not yet, has a root of zeros.
    pub(crate) fn encode(&self, root: [u8; CcehRoot::LEN]) -> [u8; OffsetMap::LEN] {
        let CcehSettings { initial_depth, bucket_bits, probe } = self.shape.in_range();
        let image = OffsetMapImage {
            nodes: match self.nodes {
                NodePlace::Dram => NODES_DRAM,
                NodePlace::Pm => NODES_PM,
            },
            initial_depth: initial_depth as u8,
            bucket_bits: bucket_bits as u8,
            probe: probe as u8,
            reserved_a: [0; 4],
            root,
            reserved_b: [0.into(); 5],
        };
        zerocopy::transmute!(image)
    }

    /// What these bytes say, with the root of the index; `None` if that is nothing that this release knows.
    pub(crate) fn decode(bytes: [u8; OffsetMap::LEN]) -> Option<(OffsetMap, CcehRoot)> {
        let image: OffsetMapImage = zerocopy::transmute!(bytes);
        let nodes = match image.nodes {
            NODES_DRAM if image.root == [0; CcehRoot::LEN] => NodePlace::Dram,
            NODES_PM => NodePlace::Pm,
            _ => return None,
        };
        let [initial_depth, bucket_bits, probe] =
            [image.initial_depth, image.bucket_bits, image.probe].map(u32::from);
        let map = OffsetMap { nodes, shape: CcehSettings { initial_depth, bucket_bits, probe } };
        // What is not looked at is not known either: nothing may hide there.
        (map.encode(image.root) == bytes).then_some((map, CcehRoot::from_bytes(image.root)))
    }
}

/// The fields in the superblock as (name, offset, size), for the check of `docs/FORMAT.md` against the code.
#[doc(hidden)]
pub fn offset_map_table() -> Table {
    table!(OffsetMapImage as "OffsetMap"; nodes, initial_depth, bucket_bits, probe, reserved_a, root, reserved_b)
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

    #[test]
    fn it_survives_the_superblock_and_every_byte_is_looked_at() {
        for nodes in [NodePlace::Dram, NodePlace::Pm] {
            for shape in [CcehSettings::paper(), CcehSettings::dense(), CcehSettings::tiny()] {
                let root = if nodes == NodePlace::Pm { [7; CcehRoot::LEN] } else { [0; CcehRoot::LEN] };
                let map = OffsetMap { nodes, shape };
                let bytes = map.encode(root);
                let decoded = OffsetMap::decode(bytes).expect("the same");
                assert_eq!((decoded.0, decoded.1.to_bytes()), (map, root));
                for at in 0..OffsetMap::LEN {
                    let mut other = bytes;
                    other[at] ^= 0x40;
                    assert_ne!(OffsetMap::decode(other), Some(decoded), "byte {at} says nothing");
                }
            }
        }
        assert_eq!(OffsetMap::decode([0; OffsetMap::LEN]), None);
    }
}
