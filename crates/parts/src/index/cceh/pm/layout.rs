//! The header of a zone that holds segments, and the places of the segments in the zone.

use crate::index::cceh::entry::BUCKET;
use crate::index::cceh::settings::CcehSettings;
use crate::index::chain::{HEADER, Shape, header_fields, root_fields};
use crate::table::Table;
use quipu_medium::WORD;

/// Tells a zone of a CCEH index from those of other indexes.
pub(super) const MAGIC: [u8; 4] = *b"QCEH";
/// Segments begin at a multiple of the block that a PM DIMM writes at once.
const MEDIA_BLOCK: u64 = 256;
/// Offset of the names.
pub(super) const NAMES: u64 = HEADER;

/// The settings as the header of a zone says them.
pub(super) fn shape(settings: CcehSettings) -> Shape {
    [settings.bucket_bits as u8, settings.probe as u8, 0, 0]
}

/// The settings that the header of a zone says, in their ranges.
pub(super) fn settings(shape: Shape) -> CcehSettings {
    let (bucket_bits, probe) = (u32::from(shape[0]), u32::from(shape[1]));
    CcehSettings { initial_depth: 0, bucket_bits, probe }.in_range()
}

/// Where the segments of a zone lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Carving {
    /// Segments in a zone; at least one.
    pub(super) segments: u64,
    /// Offset of the first.
    pub(super) first: u64,
    /// Bytes of each.
    pub(super) segment: u64,
}

impl Carving {
    /// Carves zones of this size; `None` if not even one segment fits.
    pub(super) fn new(zone_size: u64, settings: CcehSettings) -> Option<Carving> {
        let segment = settings.segment_bytes();
        let first = |segments: u64| (NAMES + segments * WORD).next_multiple_of(MEDIA_BLOCK.max(BUCKET));
        let most = zone_size / (segment + WORD);
        let segments =
            (1..=most).rev().find(|segments| first(*segments) + segments * segment <= zone_size)?;
        Some(Carving { segments, first: first(segments), segment })
    }
}

/// The structures with their fields, for the check of `docs/FORMAT.md` against the code.
pub fn format_tables() -> Vec<Table> {
    let shape = [("bucket_bits", 1), ("probe", 1), ("reserved_a", 2)];
    vec![("CcehZoneHeader", header_fields(&shape, None)), ("CcehRoot", root_fields())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_carved_to_the_end_and_not_beyond() {
        for bucket_bits in 0..=10 {
            for zone_size in [4096, 8192, 16 << 10, 1 << 20, 4 << 20] {
                let settings = CcehSettings { initial_depth: 0, bucket_bits, probe: 1 };
                let segment = settings.segment_bytes();
                let Some(carving) = Carving::new(zone_size, settings) else {
                    assert!(segment + MEDIA_BLOCK > zone_size);
                    continue;
                };
                let end = carving.first + carving.segments * segment;
                assert!(end <= zone_size && end + segment + WORD + MEDIA_BLOCK > zone_size, "{carving:?}");
                assert!(carving.first >= NAMES + carving.segments * WORD && carving.first % MEDIA_BLOCK == 0);
            }
        }
    }
}
