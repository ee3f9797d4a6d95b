//! How large pool and zones have to be.
//!
//! Records are asked for, so that the index and the caches are under the same load at every utilization, and
//! the pool is made as large as the utilization demands. Zones are those of the fullest pool of a run, for
//! all its pools. A segment is a zone, or a block, of which a zone has many.

use super::settings::{Keys, Overwrites};
use quipu_bench::config::{Config, setting};
use quipu_bench::error::BenchError;
use quipu_bench::target::INDEX_PER_RECORD;
use quipu_bench::workload::{ETC_SIZES, etc_size};
use quipu_parts::heap::slots::{ENTRY_HEAD, RecordForm, SlotSettings, SlotShape};
use quipu_parts::record::{HEADER, padded};
use std::ops::RangeInclusive;

/// Sizes of zones that a store can have.
const ZONES: RangeInclusive<u64> = 16 << 10..=4 << 20;

/// Blocks of a zone at least, and zones of a pool at most, where records stand in blocks: what a zone loses
/// at its ends is little then.
const LEAST_BLOCKS: u64 = 4;
const MOST_CHUNKS: u64 = 16;

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
    /// Of these, bytes of segments.
    used_of_zone: u64,
    records: u64,
}

/// Bytes of a record of the design that is run, by those of its key and its value.
pub(super) fn record_of(config: &Config) -> impl Fn(usize, usize) -> u64 + Sync + use<> {
    let slots = blocks(config);
    move |key, value| match slots.map(|slots| (slots.form, slots.page_size)) {
        None => padded(HEADER + (key + value) as u64),
        Some((RecordForm::Variable, _)) => padded(ENTRY_HEAD + (key + value) as u64),
        Some((RecordForm::Fixed { key, value }, page_size)) => {
            SlotShape::new(page_size.into(), key.into(), value.into()).size
        }
    }
}

/// The blocks of the design that is run, if it has any.
fn blocks(config: &Config) -> Option<SlotSettings> {
    let design = config.designs.first().filter(|design| design.can().has_blocks)?;
    Some(config.options(*design).ok()?.slots)
}

/// Bytes of a record in the mean, and of the largest.
fn sizes(config: &Config, keys: Keys) -> (f64, u64) {
    let record = record_of(config);
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

fn block_size(slots: SlotSettings) -> u64 {
    u64::from(slots.page_size) * u64::from(slots.pages_per_block)
}

/// A little more segments than there must be, since pools are laid out in whole zones.
fn and_some(segments: u64) -> u64 {
    segments + segments / 50
}

impl Overwrites {
    /// The overwrites for each utilization alone, so that others can be measured in between. Each has the
    /// zones of the fullest pool, and as many segments, up to the usual number, as the run's records fill.
    pub(in crate::bench) fn apart(self, config: &Config) -> Vec<(Config, Overwrites)> {
        let all = self.fitting(config);
        // The run tells the fault of a load that cannot be planned.
        let planned = all.keys.first().and_then(|keys| Plan::new(config, &all, *keys).ok());
        let config = Config { zone_size: planned.map(|plan| plan.zone), ..config.clone() };
        let alone =
            |percent: &u64| (config.clone(), Overwrites { utilizations: vec![*percent], ..all.clone() });
        all.utilizations.iter().map(alone).collect()
    }

    /// As many segments, up to those that are usual, as so many records fill in the smallest zones that there
    /// are.
    fn fitting(self, config: &Config) -> Overwrites {
        let fullest = self.utilizations.iter().max().copied().unwrap_or(100);
        let (record, _) = self.keys.first().map_or((1.0, 1), |keys| sizes(config, *keys));
        let smallest = blocks(config).map_or(*ZONES.start(), block_size);
        let filled = (config.records as f64 * record) as u64 * 100 / fullest / smallest;
        Overwrites { segments: self.segments.min(filled * 50 / 52), ..self }
    }
}

impl Plan {
    pub(super) fn new(config: &Config, overwrites: &Overwrites, keys: Keys) -> Result<Plan, BenchError> {
        let (record, longest) = sizes(config, keys);
        let fullest = overwrites.utilizations.iter().max().copied().unwrap_or(100);
        let segments = and_some(overwrites.segments);
        let largest = (config.records as f64 * record * 100.0 / (fullest * segments) as f64) as u64;
        let block = blocks(config).map(block_size);
        let fitting = |bytes: u64| if bytes == 0 { 0 } else { 1 << bytes.ilog2() };
        let zone = config.zone_size.unwrap_or_else(|| match block {
            Some(block) => {
                let least = (LEAST_BLOCKS * block).next_power_of_two();
                fitting(largest * segments / MOST_CHUNKS).clamp(least, least.max(*ZONES.end()))
            }
            None => fitting(largest).clamp(*ZONES.start(), *ZONES.end()),
        });
        let segment = block.unwrap_or(zone);
        if segment > largest {
            let needed = (segments * segment * fullest / 100) as f64 / record + 1.0;
            let reason = format!(
                "must be at least {}, to fill {} segments of {segment} bytes",
                needed as u64, overwrites.segments
            );
            return Err(setting("records", reason));
        }
        if longest > segment / 4 {
            let reason =
                format!("is too large for segments of {segment} bytes: a record may take a quarter of one");
            return Err(setting("value size", reason));
        }
        // The first block of a zone begins at a multiple of its size.
        let used_of_zone = block.map_or(zone, |block| (zone - block) / block * block);
        Ok(Plan { record, zone, used_of_zone, records: config.records })
    }

    /// Bytes of a pool in which the records take so many per cent of what puts may use; with room for an
    /// index if it is there.
    pub(super) fn pool(&self, utilization: u64, with_index: bool) -> u64 {
        let live = (self.records as f64 * self.record) as u64;
        // The store keeps a fiftieth of its zones back.
        let index = if with_index { self.records * INDEX_PER_RECORD } else { 0 };
        let zones = (live * 100 / utilization + index) * 50 / 49 / self.used_of_zone + 1;
        let metadata = SUPERBLOCK + zones * TABLE_ENTRY + self.zone.min(ALIGNMENT);
        (zones * self.zone + metadata).next_multiple_of(4096)
    }

    /// Records that fill so many per cent of so many bytes.
    pub(super) fn records(&self, bytes: u64, utilization: u64) -> u64 {
        ((bytes * utilization) as f64 / 100.0 / self.record) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu::Design;

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
            let filled = plan.records(usable * plan.zone, 90);
            assert!(filled.abs_diff(records) < records / 50, "{records}: {filled}");
            assert!(plan.pool(90, true) >= plan.pool(90, false) + records * INDEX_PER_RECORD);
        }
        assert_eq!(plan(1_000_000, Some(64 << 10), &[50]).unwrap().zone, 64 << 10);
    }

    #[test]
    fn blocks_are_segments_and_a_zone_has_many() {
        for (design, record) in [(Design::VIPER_PACMAN, 72.0), (Design::VIPER, 64.0)] {
            let sizes = Config { key_size: 8, value_size: 48, ..Config::default() };
            let config = Config { designs: vec![design], records: 500_000, ..sizes };
            let plan = Plan::new(&config, &overwrites(&[90]), Keys::Uniform).unwrap();
            let block = 6 * 4096;
            assert_eq!((plan.record, plan.zone), (record, 2 << 20));
            assert!(plan.used_of_zone < plan.zone && plan.used_of_zone + 2 * block > plan.zone);
            let blocks = plan.pool(90, false) / plan.zone * plan.used_of_zone / block;
            assert!(blocks > 1000 && plan.records(blocks * block, 90) > 500_000, "{blocks}");
        }
    }

    #[test]
    fn records_of_the_etc_pool_are_planned_with_their_mean() {
        let config = Config { records: 200_000, key_size: 8, ..Config::default() };
        let plan = Plan::new(&config, &overwrites(&[80]), Keys::Etc).unwrap();
        let record = record_of(&config);
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
