//! The DRAM that a record costs while the index grows: the worst at 3, 4, .. 8 million records, and at a
//! sixty-fourth of that. There it is the same except for the parts that an index has only once.

#[path = "it/shared/mod.rs"]
#[expect(dead_code, reason = "shared with tests that need more")]
mod shared;
#[path = "it/cceh/support.rs"]
#[expect(dead_code, reason = "nothing here is in PM")]
mod support;

use quipu_parts::epoch::Collector;
use quipu_parts::index::cceh::{CcehIndex, CcehSettings, CcehStats};
use support::mix;

/// Bytes of an entry.
const ENTRY: f64 = 16.0;

/// The worst of `bytes` per record at 3, 4, .. 8 times `unit` records.
fn worst(settings: CcehSettings, unit: u64, bytes: impl Fn(&CcehStats) -> f64) -> f64 {
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    let index = CcehIndex::in_dram(settings);
    let mut worst = 0.0f64;
    for n in 1..=8 * unit {
        index.insert(&guard, mix(n), n).expect("keyed hashes");
        if n >= 3 * unit && n.is_multiple_of(unit) {
            worst = worst.max(bytes(&index.stats()) / n as f64);
        }
    }
    worst
}

fn of_entries(stats: &CcehStats) -> f64 {
    stats.slots as f64 * ENTRY
}

#[test]
fn segments_are_as_full_as_they_should_be() {
    let unit = 1_000_000 / 64;
    let (paper, dense) =
        (worst(CcehSettings::paper(), unit, of_entries), worst(CcehSettings::dense(), unit, of_entries));
    assert!(paper <= 46.0 && dense <= 34.0, "{paper:.2} and {dense:.2} bytes of entries a record");
    assert!(dense < paper - 8.0, "the dense setting saves too little: {dense:.2} of {paper:.2}");
}

#[test]
#[ignore = "takes many seconds: cargo test --release -p quipu-parts --test cceh_memory -- --ignored --nocapture"]
fn bytes_of_a_record_at_millions() {
    for (settings, limit) in [(CcehSettings::paper(), 46.0), (CcehSettings::dense(), 34.0)] {
        let worst = worst(settings, 1_000_000, |stats| stats.bytes as f64);
        println!("{settings:?}: {worst:.2} bytes a record at worst");
        assert!(worst <= limit, "{worst:.2} bytes a record are more than {limit}");
    }
}
