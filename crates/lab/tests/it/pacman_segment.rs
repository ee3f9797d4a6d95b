//! The cost of cleaning one segment in the designs `flatstore`, counted exactly on the simulator: a segment
//! of which it is known which records are live, in a store that holds no other garbage.

use quipu::internals::{Shortcut, Techniques};
use quipu::{Design, Options, Store};
use quipu_bench::workload::mix;
use quipu_medium::Region;
use quipu_medium::sim::{Cost, Event, EventKind, SimOptions};
use quipu_parts::heap::segments::FIRST_RECORD;
use quipu_parts::index::masstree::inner_nodes_visited;
use quipu_parts::space::{Space, ZoneId};
use std::cell::RefCell;
use std::rc::Rc;

const VALUE: usize = 48;
const ZONE: u64 = 64 << 10;
const POOL: u64 = 8 << 20;

/// Lines of FAST&FAIR that a cleaner reads and writes to repoint an entry that it was led to, each counted
/// once per access.
const LINES_OF_LEAF: u64 = 5;

/// Words of an index in the pool that are flushed together.
const FLUSHED_TOGETHER: u64 = 32;

const IN_DRAM: [Design; 2] = [Design::FLATSTORE_H, Design::FLATSTORE_M];
const IN_PM: [Design; 2] = [Design::FLATSTORE_PH, Design::FLATSTORE_FF];

/// The cost of cleaning a segment.
struct Cleaned {
    cost: Cost,
    /// From the first copy on.
    fences: u64,
    /// Records that were in it.
    records: u64,
    hinted: u64,
    inner_nodes: u64,
}

/// Cleans a segment that has so many live records. The store has so many segments, all full, and no garbage
/// but in this one.
fn clean(design: Design, techniques: Techniques, segments: u64, live: u64) -> Cleaned {
    let region = Region::sim(SimOptions { len: POOL, ..SimOptions::default() });
    let sim = region.simulator().expect("simulated").clone();
    let options = Options::new()
        .design(design)
        .with(|options| options.techniques = techniques)
        .zone_size(ZONE)
        .recovery_threads(1)
        .cleaner(false);
    let store = Store::create_on(region.clone(), &options).expect("a new pool");
    let mut client = store.client();
    let mut put = |number: u64, version: u8| {
        client.put(&mix(number).to_be_bytes(), &[version; VALUE]).expect("room");
    };
    put(0, 0);
    let len = store.stats().record_bytes;
    let records = (ZONE - FIRST_RECORD) / len;
    (1..segments * records).for_each(|number| put(number, 0));
    // By now everything has its place in the index.
    (0..records).for_each(|number| put(number, 1));
    assert_eq!(store.compact().expect("room").0, 1, "the first segment, in which nothing is live");
    (live..records).for_each(|number| put(number, 2));
    // So that the last segment is full as well. They stand behind all others in the index, where it has
    // order.
    (0..live).for_each(|number| {
        client.put(&(u64::MAX - live + number).to_be_bytes(), &[0; VALUE]).expect("room");
    });
    drop(client);
    let (before, nodes, cost) = (store.stats(), inner_nodes_visited(), sim.cost());
    let events = Rc::new(RefCell::new(Vec::new()));
    let seen = events.clone();
    sim.set_observer(Some(Box::new(move |_, event| seen.borrow_mut().push(event))));
    let compacted = store.compact();
    sim.set_observer(None);
    let (cost, inner_nodes, stats) = (sim.cost() - cost, inner_nodes_visited() - nodes, store.stats());
    assert_eq!(compacted.expect("room").0, 1, "{design}: one segment");
    assert_eq!(stats.moved_records - before.moved_records, live, "{design}: what is live of it");
    drop(store);
    let (space, _) = Space::examine(region).expect("a pool");
    let start = space.zone_offset(ZoneId(0));
    let is_copy = |event: &Event| {
        let in_zone = event.offset.checked_sub(start).map(|offset| offset % ZONE);
        event.kind == EventKind::WriteNt && in_zone.is_some_and(|offset| offset >= FIRST_RECORD)
    };
    let events = events.take();
    let from = events.iter().position(is_copy).expect("a copy");
    let fences = events[from..].iter().filter(|event| event.kind == EventKind::Fence).count() as u64;
    let hinted = stats.hinted_records - before.hinted_records;
    Cleaned { cost, fences, records, hinted, inner_nodes }
}

/// Lines written and read.
fn lines(cost: &Cost) -> u64 {
    cost.lines_written + cost.lines_read
}

/// The same for the index alone: with an index in DRAM the same segment is cleaned, record by record.
fn lines_of_index(in_pm: &Cleaned, in_dram: &Cleaned) -> u64 {
    assert_eq!(in_pm.records, in_dram.records, "the same segment");
    lines(&in_pm.cost) - lines(&in_dram.cost)
}

/// One fence for all copies (3.3), one for every 32 words in PM and one for the rest of them, and two for the
/// freed zone: its header is durable before the zone table. The raw store moves one record after the other.
#[test]
fn a_cleaned_segment_takes_three_fences_and_one_for_each_32_words_in_pm() {
    for design in IN_DRAM.into_iter().chain(IN_PM) {
        for live in [1, 31, 32, 33, 64, 500] {
            let words = if IN_PM.contains(&design) { live } else { 0 };
            let cleaned = clean(design, Techniques::ALL, 2, live);
            assert_eq!(cleaned.fences, 1 + words.div_ceil(FLUSHED_TOGETHER) + 2, "{design}: {live} live");
            let raw = clean(design, Techniques::RAW, 2, live);
            assert_eq!(raw.fences, live + words + 2, "{design} raw: {live} live");
        }
    }
}

/// Nothing has moved in the index since the records were written, so every hint is right (3.1).
#[test]
fn where_every_hint_is_right_no_inner_node_is_read() {
    for (segments, live) in [(2, 200), (5, 200), (5, 640)] {
        let [dram, pm] = [Design::FLATSTORE_M, Design::FLATSTORE_FF]
            .map(|design| clean(design, Techniques::ALL, segments, live));
        for cleaned in [&dram, &pm] {
            assert_eq!(cleaned.hinted, live, "all records have hints, and all hints are right");
        }
        assert_eq!(dram.inner_nodes, 0);
        // However high the tree is: what is read of the leaf, and the line of the entry that is written.
        assert_eq!(lines_of_index(&pm, &dram), LINES_OF_LEAF * live, "{segments} segments, {live} live");
        // So that this can fail.
        let without = Techniques { shortcut: Shortcut::Off, ..Techniques::ALL };
        let [dram, pm] =
            [Design::FLATSTORE_M, Design::FLATSTORE_FF].map(|design| clean(design, without, segments, live));
        assert!(dram.hinted == 0 && dram.inner_nodes >= live);
        assert!(lines_of_index(&pm, &dram) > 2 * LINES_OF_LEAF * live);
    }
}

/// Reads of an index in the pool for each record that compaction moves, of a segment that is live to four
/// fifths: at most half of what the raw store reads. Of an index in DRAM, the visits of inner nodes.
#[test]
fn a_moved_record_takes_half_the_reads_of_the_index() {
    let live = 640;
    for (in_pm, in_dram) in IN_PM.into_iter().zip(IN_DRAM) {
        let [raw, all] = [Techniques::RAW, Techniques::ALL].map(|techniques| {
            let (pm, dram) = (clean(in_pm, techniques, 5, live), clean(in_dram, techniques, 5, live));
            let ns = pm.cost.estimate_ns() / live as f64;
            let read = pm.cost.lines_read - dram.cost.lines_read;
            let lines = read as f64 / live as f64;
            let nodes = dram.inner_nodes as f64 / live as f64;
            println!(
                "{in_pm} {techniques:?}: {lines:.2} lines read of the index a moved record, {ns:.0} ns by the model; {in_dram}: \
                 {nodes:.2} inner nodes"
            );
            (lines, nodes)
        });
        assert!(all.0 <= raw.0 / 2.0, "{in_pm}: {} lines, raw {}", all.0, raw.0);
        assert!(all.1 <= raw.1 / 2.0, "{in_dram}: {} inner nodes, raw {}", all.1, raw.1);
    }
}
