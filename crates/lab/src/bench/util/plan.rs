//! How large pool and zones have to be.
//!
//! Records are asked for, so that the index and the caches are under the same load at every utilization, and the pool is
//! made as large as the utilization demands. Zones are those of the fullest pool of a run, for all its pools.

use super::settings::Overwrites;
use crate::bench::config::{Config, setting};
use crate::bench::error::BenchError;
use quipu_parts::record::{HEADER, padded};
use std::ops::RangeInclusive;

/// Segments that a pool has at least: with fewer, the choice of what to clean is a matter of luck.
const SEGMENTS: u64 = 1000;

/// Sizes of zones that a store can have.
const ZONES: RangeInclusive<u64> = 16 << 10..=4 << 20;

/// Bytes for the superblock, and for a zone in the zone table, at most.
const SUPERBLOCK: u64 = 64 << 10;
const TABLE_ENTRY: u64 = 32;

/// Zones begin at multiples of their size, up to this.
const ALIGNMENT: u64 = 2 << 20;

/// Sizes of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plan {
    /// Bytes of a record, with header and alignment.
    pub(super) record: u64,
    /// Bytes of a zone.
    pub(super) zone: u64,
    live: u64,
}

impl Plan {
    pub(super) fn new(config: &Config, overwrites: &Overwrites) -> Result<Plan, BenchError> {
        let record = padded(HEADER + config.record_bytes());
        let live = config.records * record;
        let fullest = overwrites.utilizations.iter().max().copied().unwrap_or(100);
        // A little more than it has to be, since pools are laid out in whole zones.
        let largest = live * 100 / fullest / (SEGMENTS + SEGMENTS / 50);
        let zone = config.zone_size.unwrap_or_else(|| {
            let fitting = if largest == 0 { 0 } else { 1 << largest.ilog2() };
            fitting.clamp(*ZONES.start(), *ZONES.end())
        });
        if zone > largest {
            let needed = (SEGMENTS + SEGMENTS / 50) * zone * fullest / 100 / record + 1;
            let reason = format!("must be at least {needed}, to fill {SEGMENTS} segments of {zone} bytes");
            return Err(setting("records", reason));
        }
        if record > zone / 4 {
            let reason =
                format!("is too large for segments of {zone} bytes: a record may take a quarter of one");
            return Err(setting("value size", reason));
        }
        Ok(Plan { record, zone, live })
    }

    /// Bytes of a pool in which the records take so many per cent of what puts may use.
    pub(super) fn pool(&self, utilization: u64) -> u64 {
        // The store keeps a fiftieth of its zones back.
        let zones = self.live * 100 / utilization * 50 / 49 / self.zone + 1;
        let metadata = SUPERBLOCK + zones * TABLE_ENTRY + self.zone.min(ALIGNMENT);
        (zones * self.zone + metadata).next_multiple_of(4096)
    }

    /// Records that fill so many per cent of so many segments.
    pub(super) fn records(&self, segments: u64, utilization: u64) -> u64 {
        segments * self.zone * utilization / 100 / self.record
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::util::Keys;

    fn plan(records: u64, zone_size: Option<u64>, utilizations: &[u64]) -> Result<Plan, BenchError> {
        let config = Config { records, zone_size, ..Config::default() };
        let keys = vec![Keys::Uniform];
        Plan::new(&config, &Overwrites { utilizations: utilizations.to_vec(), keys, seconds: 0.0 })
    }

    #[test]
    fn a_pool_has_a_thousand_segments_and_room_for_the_records() {
        for (records, expected) in [(100_000, 16 << 10), (1_000_000, 128 << 10), (100_000_000, 4 << 20)] {
            let plan = plan(records, None, &[50, 90]).unwrap();
            assert_eq!((plan.record, plan.zone), (240, expected));
            let usable = plan.pool(90) * 49 / 50 / plan.zone;
            assert!(usable >= SEGMENTS, "{usable}");
            let filled = plan.records(usable, 90);
            assert!(filled.abs_diff(records) < records / 50, "{records}: {filled}");
        }
        assert_eq!(plan(1_000_000, Some(64 << 10), &[50]).unwrap().zone, 64 << 10);
    }

    #[test]
    fn too_few_records_and_too_large_ones_are_refused() {
        let text = |plan: Result<Plan, BenchError>| plan.unwrap_err().to_string();
        assert!(text(plan(20_000, None, &[50])).starts_with("records must be at least 34"));
        assert!(text(plan(1_000_000, Some(4 << 20), &[90])).starts_with("records must be at least 16"));
        let config = Config { value_size: 5000, ..Config::default() };
        let overwrites = Overwrites { utilizations: vec![90], keys: vec![Keys::Uniform], seconds: 0.0 };
        let small = Config { zone_size: Some(16 << 10), ..config };
        assert!(text(Plan::new(&small, &overwrites)).starts_with("value size"));
    }
}
