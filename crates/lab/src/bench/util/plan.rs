//! How large pool and zones have to be.
//!
//! Records are asked for, so that the index and the caches are under the same load at every utilization, and the pool is
//! made as large as the utilization demands. Zones are those of the fullest pool of a run, for all its pools.

use super::settings::{Keys, Overwrites};
use crate::bench::config::{Config, setting};
use crate::bench::error::BenchError;
use crate::bench::target::INDEX_PER_RECORD;
use crate::workload::{ETC_SIZES, etc_size};
use quipu::Stats;
use quipu_parts::record::{HEADER, padded};
use std::ops::RangeInclusive;

/// Sizes of zones that a store can have.
const ZONES: RangeInclusive<u64> = 16 << 10..=4 << 20;

/// Bytes for the superblock, and for a zone in the zone table, at most.
const SUPERBLOCK: u64 = 64 << 10;
const TABLE_ENTRY: u64 = 32;

/// Zones begin at multiples of their size, up to this.
const ALIGNMENT: u64 = 2 << 20;

/// Records whose mean size stands for that of all, where sizes vary.
const SAMPLE: u64 = 100_000;

/// Sizes of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plan {
    /// Bytes of a record, with header and alignment, in the mean.
    pub(super) record: f64,
    /// Bytes of a zone.
    pub(super) zone: u64,
    records: u64,
}

/// Bytes of a record whose key and value have so many.
pub(super) fn record(key: usize, value: usize) -> u64 {
    padded(HEADER + (key + value) as u64)
}

/// Bytes of a record in the mean, and of the largest.
fn sizes(config: &Config, keys: Keys) -> (f64, u64) {
    match keys {
        Keys::Etc => {
            let sum: u64 = (0..SAMPLE).map(|number| record(config.key_size, etc_size(number))).sum();
            (sum as f64 / SAMPLE as f64, record(config.key_size, *ETC_SIZES.end()))
        }
        Keys::Uniform | Keys::Zipf(_) => {
            let record = record(config.key_size, config.value_size);
            (record as f64, record)
        }
    }
}

/// A little more segments than there must be, since pools are laid out in whole zones.
fn and_some(segments: u64) -> u64 {
    segments + segments / 50
}

impl Overwrites {
    /// The same for each utilization alone, for who measures something else in between: with the zones of the fullest pool, and as
    /// many segments, up to those that are usual, as so many records fill.
    pub(in crate::bench) fn apart(self, config: &Config) -> Vec<(Config, Overwrites)> {
        let all = self.fitting(config);
        // What cannot be planned is for the run to say.
        let planned = all.keys.first().and_then(|keys| Plan::new(config, &all, *keys).ok());
        let config = Config { zone_size: planned.map(|plan| plan.zone), ..config.clone() };
        let alone =
            |percent: &u64| (config.clone(), Overwrites { utilizations: vec![*percent], ..all.clone() });
        all.utilizations.iter().map(alone).collect()
    }

    /// As many segments, up to those that are usual, as so many records fill in the smallest zones that there are.
    fn fitting(self, config: &Config) -> Overwrites {
        let fullest = self.utilizations.iter().max().copied().unwrap_or(100);
        let (record, _) = self.keys.first().map_or((1.0, 1), |keys| sizes(config, *keys));
        let filled = (config.records as f64 * record) as u64 * 100 / fullest / ZONES.start();
        Overwrites { segments: self.segments.min(filled * 50 / 52), ..self }
    }
}

impl Plan {
    pub(super) fn new(config: &Config, overwrites: &Overwrites, keys: Keys) -> Result<Plan, BenchError> {
        let (record, longest) = sizes(config, keys);
        let fullest = overwrites.utilizations.iter().max().copied().unwrap_or(100);
        let segments = and_some(overwrites.segments);
        let largest = (config.records as f64 * record * 100.0 / (fullest * segments) as f64) as u64;
        let zone = config.zone_size.unwrap_or_else(|| {
            let fitting = if largest == 0 { 0 } else { 1 << largest.ilog2() };
            fitting.clamp(*ZONES.start(), *ZONES.end())
        });
        if zone > largest {
            let needed = (segments * zone * fullest / 100) as f64 / record + 1.0;
            let reason = format!(
                "must be at least {}, to fill {} segments of {zone} bytes",
                needed as u64, overwrites.segments
            );
            return Err(setting("records", reason));
        }
        if longest > zone / 4 {
            let reason =
                format!("is too large for segments of {zone} bytes: a record may take a quarter of one");
            return Err(setting("value size", reason));
        }
        Ok(Plan { record, zone, records: config.records })
    }

    /// Bytes of a pool in which the records take so many per cent of what puts may use; with room for an index if it is there.
    pub(super) fn pool(&self, utilization: u64, with_index: bool) -> u64 {
        let live = (self.records as f64 * self.record) as u64;
        // The store keeps a fiftieth of its zones back.
        let index = if with_index { self.records * INDEX_PER_RECORD } else { 0 };
        let zones = (live * 100 / utilization + index) * 50 / 49 / self.zone + 1;
        let metadata = SUPERBLOCK + zones * TABLE_ENTRY + self.zone.min(ALIGNMENT);
        (zones * self.zone + metadata).next_multiple_of(4096)
    }

    /// Segments that puts may use of an open pool, at this moment: an index in the pool takes some, and more as it grows.
    pub(super) fn segments(&self, stats: &Stats) -> u64 {
        (stats.zones - stats.reserve_zones).saturating_sub(stats.index_pm_bytes.div_ceil(self.zone))
    }

    /// Records that fill so many per cent of so many segments.
    pub(super) fn records(&self, segments: u64, utilization: u64) -> u64 {
        ((segments * self.zone * utilization) as f64 / 100.0 / self.record) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overwrites(utilizations: &[u64]) -> Overwrites {
        Overwrites { utilizations: utilizations.to_vec(), keys: vec![Keys::Uniform], ..Overwrites::default() }
    }

    fn plan(records: u64, zone_size: Option<u64>, utilizations: &[u64]) -> Result<Plan, BenchError> {
        let config = Config { records, zone_size, ..Config::default() };
        Plan::new(&config, &overwrites(utilizations), Keys::Uniform)
    }

    #[test]
    fn a_pool_has_a_thousand_segments_and_room_for_the_records() {
        for (records, expected) in [(100_000, 16 << 10), (1_000_000, 128 << 10), (100_000_000, 4 << 20)] {
            let plan = plan(records, None, &[50, 90]).unwrap();
            assert_eq!((plan.record, plan.zone), (240.0, expected));
            let usable = plan.pool(90, false) * 49 / 50 / plan.zone;
            assert!(usable >= 1000, "{usable}");
            let filled = plan.records(usable, 90);
            assert!(filled.abs_diff(records) < records / 50, "{records}: {filled}");
            assert!(plan.pool(90, true) >= plan.pool(90, false) + records * INDEX_PER_RECORD);
        }
        assert_eq!(plan(1_000_000, Some(64 << 10), &[50]).unwrap().zone, 64 << 10);
    }

    #[test]
    fn records_of_the_etc_pool_are_planned_with_their_mean() {
        let config = Config { records: 200_000, key_size: 8, ..Config::default() };
        let plan = Plan::new(&config, &overwrites(&[80]), Keys::Etc).unwrap();
        let sum: u64 = (0..200_000).map(|number| record(8, etc_size(number))).sum();
        assert!((plan.record * 200_000.0 / sum as f64 - 1.0).abs() < 0.01, "{}", plan.record);
    }

    #[test]
    fn too_few_records_and_too_large_ones_are_refused() {
        let text = |plan: Result<Plan, BenchError>| plan.unwrap_err().to_string();
        assert!(text(plan(20_000, None, &[50])).starts_with("records must be at least 34"));
        assert!(text(plan(1_000_000, Some(4 << 20), &[90])).starts_with("records must be at least 16"));
        let config = Config { value_size: 5000, ..Config::default() };
        let small = Config { zone_size: Some(16 << 10), ..config };
        assert!(text(Plan::new(&small, &overwrites(&[90]), Keys::Uniform)).starts_with("value size"));
    }

    #[test]
    fn few_records_fill_as_many_segments_as_they_can() {
        for records in [2_000, 20_000, 60_000, 1_000_000] {
            let config = Config { records, ..Config::default() };
            let fitting = overwrites(&[50, 90]).fitting(&config);
            let expected = (records * 240 * 10 / 9 / (16 << 10)).min(1000);
            assert!((expected * 9 / 10..=expected).contains(&fitting.segments), "{}", fitting.segments);
            Plan::new(&config, &fitting, Keys::Uniform).expect("that is what it is for");
        }
    }
}
