//! The savings of PACMAN's techniques on the medium in the designs `flatstore`, counted exactly on the
//! simulator. The cases are an update and a store that is almost full, each with all techniques and with none
//! (the raw store that the paper measures against).
//!
//! Designs join by their names. An index in the pool adds its own lines and fences, which are listed here.

use crate::shared::cost;

use cost::cost_of;
use quipu::internals::{Techniques, Testing};
use quipu::{Client, Design, Options, Store};
use quipu_bench::workload::Zipfian;
use quipu_medium::Region;
use quipu_medium::sim::{Cost, SimOptions};
use quipu_parts::index::masstree::inner_nodes_visited;
use quipu_parts::reclaim::hot::HotSetSettings;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::borrow::Cow;

const VALUE: usize = 48;
/// As large beside these stores as the usual one is beside a store of millions of keys, and as soon decided.
const HOT_SET: HotSetSettings =
    HotSetSettings { keys: 4 << 10, interval: 1, samples: 32 << 10, shift: 0.5, uniform: 3.0, certain: 4.0 };
const ZONE: u64 = 64 << 10;
/// Of a segment, for its header.
const HEADER_LINE: u64 = 64;

fn designs() -> impl Iterator<Item = Design> {
    Design::ALL.iter().copied().filter(|design| design.name().starts_with("flatstore"))
}

fn store_of(design: Design, techniques: Techniques, len: u64, zone_size: u64) -> Store {
    let region = Region::sim(SimOptions { len, ..SimOptions::default() });
    let options = Options::new()
        .design(design)
        .with(|options| options.techniques = techniques)
        .zone_size(zone_size)
        .cleaner(false)
        .with(|options| options.testing = Testing { hot_set: Some(HOT_SET), ..Testing::default() });
    Store::create_on(region, &options).expect("a new pool")
}

fn small(design: Design, techniques: Techniques) -> (Store, Client) {
    let store = store_of(design, techniques, 8 << 20, ZONE);
    let client = store.client();
    (store, client)
}

fn put(client: &mut Client, number: u64, version: u8) {
    client.put(&number.to_be_bytes(), &[version; VALUE]).expect("room");
}

/// Puts the first key, and tells how many bytes a record takes.
fn record_len(store: &Store, client: &mut Client) -> u64 {
    let before = store.stats().record_bytes;
    put(client, 0, 0);
    store.stats().record_bytes - before
}

fn has_index_in_pm(store: &Store) -> bool {
    store.stats().index_pm_bytes > 0
}

/// The extra cost of an update for an index in the pool: the word of the entry, flushed and fenced before the
/// put returns.
fn lines_and_fences_of_index(store: &Store) -> (u64, u64) {
    if has_index_in_pm(store) { (1, 1) } else { (0, 0) }
}

#[test]
fn an_update_writes_its_record_and_reads_nothing() {
    for design in designs() {
        let (store, mut client) = small(design, Techniques::ALL);
        let len = record_len(&store, &mut client);
        (1..200).for_each(|number| put(&mut client, number, 0));
        let (lines_of_index, fences_of_index) = lines_and_fences_of_index(&store);
        let mut at = HEADER_LINE + store.stats().record_bytes;
        for number in 0..200 {
            let cost = cost_of(&store, || put(&mut client, number, 1));
            let lines = Region::lines(at, len);
            at += len;
            assert_eq!(cost.fences, 1 + fences_of_index, "{design}: {cost:?}");
            assert_eq!(cost.lines_persisted(), lines + lines_of_index, "{design}: its own record: {cost:?}");
            if !has_index_in_pm(&store) {
                assert_eq!(cost.lines_written, lines, "{design}: {cost:?}");
                assert_eq!((cost.reads, cost.lines_read), (0, 0), "{design}: {cost:?}");
            }
        }
        assert_eq!(store.stats().garbage_bytes, 200 * len, "{design}: the old records are known to be dead");
    }
}

/// So that the test above can fail: without the length in the index's word, whoever supersedes a record has
/// to read it.
#[test]
fn a_raw_update_reads_the_old_record() {
    for design in designs() {
        let reads = |techniques| {
            let (store, mut client) = small(design, techniques);
            (0..200).for_each(|number| put(&mut client, number, 0));
            let cost = cost_of(&store, || (0..200).for_each(|number| put(&mut client, number, 1)));
            (cost.reads, cost.lines_read)
        };
        let raw = reads(Techniques::RAW);
        let sized = reads(Techniques { reduce: true, ..Techniques::RAW });
        assert_eq!(raw.0 - sized.0, 200, "{design}: one record each");
        assert!(raw.1 - sized.1 >= 200, "{design}");
    }
}

/// Log batching (4.1) with separation (3.4): hot and cold records of one batch go to two segments, and become
/// durable together.
#[test]
fn a_batch_of_hot_and_cold_puts_is_one_fence_and_two_segments() {
    const HOT: u64 = 2;
    for design in designs() {
        let testing = Testing { tiny_index: true, ..Testing::default() };
        let options = Options::new()
            .design(design)
            .zone_size(ZONE)
            .cleaner(false)
            .with(|options| options.testing = testing);
        let region = Region::sim(SimOptions { len: 4 << 20, ..SimOptions::default() });
        let store = Store::create_on(region, &options).expect("a new pool");
        let mut client = store.client();
        // Few zones are left in the end: whoever writes then sees to it that what is hot becomes known.
        let mut cold = (HOT..).map(|number| HOT + number % 8192);
        let mut write = |client: &mut Client| {
            for number in cold.by_ref().take(8) {
                [0, 1, number, 0, 1].iter().for_each(|number| put(client, *number, 0));
            }
        };
        while store.stats().freed_segments < 4 {
            write(&mut client);
        }
        let pairs: Vec<_> = (0..32u64)
            .map(|i| (if i % 3 == 0 { i % HOT } else { 10_000 + i }, [i as u8; VALUE]))
            .map(|(number, value)| (number.to_be_bytes(), value))
            .collect();
        let fences_of_index = if has_index_in_pm(&store) { 32 } else { 0 };
        // A step of compaction may come before a batch, or a new segment, or another hot set.
        let is_as_it_should_be = (0..32).any(|_| {
            write(&mut client);
            let cost = cost_of(&store, || client.put_many(&pairs).expect("room"));
            let guard = client.pin();
            let place = |number: u64| match guard.get(&number.to_be_bytes()).expect("a read") {
                Some(Cow::Borrowed(value)) => value.as_ptr() as u64,
                found => panic!("{design}: {number} is {found:?}"),
            };
            // The last ones of each key: with others in between, they would be three times as far from each
            // other.
            let (hot, cold) = (place(0).abs_diff(place(1)), place(10_001).abs_diff(place(10_031)));
            cost.fences <= 1 + fences_of_index && hot < 2 * 96 && cold < 21 * 96
        });
        assert!(is_as_it_should_be, "{design}");
    }
}

/// Bytes that an index in the pool takes for a key, at most.
const MOST_OF_INDEX: u64 = 64;

/// The cost of random writes to a store that is almost full.
struct Steady {
    media_bytes_per_user_byte: f64,
    lines_per_user_byte: f64,
    /// All lines except those of the updates themselves.
    lines_per_cleaned_byte: f64,
    /// The same for a byte that cleaning gives back: what moves is not gained.
    lines_per_reclaimed_byte: f64,
    /// Lines of an update itself, where nothing has to be cleaned.
    lines_per_update: f64,
    /// Bytes cleaned, and bytes that moved, for each that the user wrote.
    cleaned: f64,
    moved: f64,
    inner_nodes_per_moved: f64,
    hinted: f64,
    ns_per_put: f64,
}

const POOL: u64 = 16 << 20;
const SMALL_ZONE: u64 = 32 << 10;

/// Lines written and read.
fn lines(cost: &Cost) -> u64 {
    cost.lines_written + cost.lines_read
}

/// Lines of an update of a store of so many keys with room for all that is written.
fn lines_per_update(design: Design, techniques: Techniques, keys: u64) -> f64 {
    let store = store_of(design, techniques, 4 * POOL, SMALL_ZONE);
    let mut client = store.client();
    let mut random = SmallRng::seed_from_u64(7);
    (0..keys).for_each(|number| put(&mut client, number, 0));
    let zipfian = Zipfian::new(keys, 0.99).expect("a distribution");
    let cost = cost_of(&store, || (0..keys).for_each(|_| put(&mut client, zipfian.draw(&mut random), 1)));
    assert_eq!(store.stats().freed_segments, 0, "there is room");
    lines(&cost) as f64 / keys as f64
}

fn steady(design: Design, techniques: Techniques, percent: u64) -> Steady {
    let store = store_of(design, techniques, POOL, SMALL_ZONE);
    let mut client = store.client();
    let len = record_len(&store, &mut client);
    // An index in the pool takes some of it.
    let entry = if has_index_in_pm(&store) { MOST_OF_INDEX * percent / 100 } else { 0 };
    let keys = store.stats().zones * SMALL_ZONE * percent / 100 / (len + entry);
    let mut random = SmallRng::seed_from_u64(7);
    (0..keys).for_each(|number| put(&mut client, number, 0));
    let zipfian = Zipfian::new(keys, 0.99).expect("a distribution");
    (0..keys).for_each(|_| put(&mut client, zipfian.draw(&mut random), 1));
    let (before, nodes) = (store.stats(), inner_nodes_visited());
    let cost = cost_of(&store, || (0..keys).for_each(|_| put(&mut client, zipfian.draw(&mut random), 2)));
    let (stats, nodes) = (store.stats(), inner_nodes_visited() - nodes);
    let moved = (stats.moved_records - before.moved_records).max(1) as f64;
    let user = (keys * (8 + VALUE as u64)) as f64;
    let lines_per_update = lines_per_update(design, techniques, keys);
    let cleaned = ((stats.freed_segments - before.freed_segments) * SMALL_ZONE) as f64;
    let moved_bytes = (stats.moved_bytes - before.moved_bytes) as f64;
    let lines_of_cleaning = lines(&cost) as f64 - lines_per_update * keys as f64;
    Steady {
        media_bytes_per_user_byte: cost.media_write_bytes as f64 / user,
        lines_per_user_byte: lines(&cost) as f64 / user,
        lines_per_cleaned_byte: lines_of_cleaning / cleaned,
        lines_per_reclaimed_byte: lines_of_cleaning / (cleaned - moved_bytes),
        lines_per_update,
        cleaned: cleaned / user,
        moved: moved_bytes / user,
        inner_nodes_per_moved: nodes as f64 / moved,
        hinted: (stats.hinted_records - before.hinted_records) as f64 / moved,
        ns_per_put: cost.estimate_ns() / keys as f64,
    }
}

/// The most lines that compaction may read and write for each byte, as a share of the raw store's: for a byte
/// of a victim, and for one that is given back.
///
/// Where the index is in the pool both are far below a half. Where it is in DRAM the medium is only spared
/// the keys and values of dead records, and live ones, of which victims have fewer. For a byte given back, at
/// 80 and 90 %, it is 0.36 and 0.28 of raw in flatstore-m, whose cold records lose their shortcuts when they
/// move, and are shorter then. In flatstore-h it is 0.49 and 0.59. For a byte of a victim it is 0.47 and
/// 0.51, 0.54 and 0.61.
fn most_of_raw(design: Design) -> (f64, f64) {
    match design {
        design if design.can().index_in_pool => (0.4, 0.4),
        Design::FLATSTORE_M => (0.52, 0.5),
        _ => (0.62, 0.61),
    }
}

/// With batches (3.3) a victim is cleaned at once, without them a record before each write, while more of it
/// dies; with hot records apart (3.4) it has fewer live ones. In flatstore-h the two come to 1.63 bytes moved
/// a user byte at 80 % where its raw store moves 1.93, and 4.52 and 4.69 at 90 %.
///
/// `QUIPU_UTILIZATIONS=80,90` measures both.
#[test]
fn pm_bytes_written_per_user_byte_are_reported() {
    let asked = std::env::var("QUIPU_UTILIZATIONS").unwrap_or("80".into());
    let utilizations: Vec<u64> = asked.split(',').map(|percent| percent.parse().expect("per cent")).collect();
    for design in designs() {
        for &percent in &utilizations {
            let [raw, all] =
                [Techniques::RAW, Techniques::ALL].map(|techniques| steady(design, techniques, percent));
            for (name, row) in [("raw", &raw), ("PACMAN", &all)] {
                println!(
                    "{design} {percent} % {name}: media bytes {:.2}, lines {:.4}, cleaned bytes {:.2} and moved bytes {:.2} a \
                     user byte; {:.4} lines a cleaned byte, {:.4} a byte given back, {:.2} an update; {:.2} inner nodes a moved record, hinted {:.2}; \
                     {:.0} ns a put by the model",
                    row.media_bytes_per_user_byte,
                    row.lines_per_user_byte,
                    row.cleaned,
                    row.moved,
                    row.lines_per_cleaned_byte,
                    row.lines_per_reclaimed_byte,
                    row.lines_per_update,
                    row.inner_nodes_per_moved,
                    row.hinted,
                    row.ns_per_put,
                );
            }
            assert!(
                all.lines_per_update < raw.lines_per_update,
                "{design} {percent} %: {}",
                all.lines_per_update
            );
            let shares = [
                all.lines_per_cleaned_byte / raw.lines_per_cleaned_byte,
                all.lines_per_reclaimed_byte / raw.lines_per_reclaimed_byte,
            ];
            let (of_cleaned, of_reclaimed) = most_of_raw(design);
            assert!(
                shares[0] <= of_cleaned && shares[1] <= of_reclaimed,
                "{design} {percent} %: {shares:?} of raw"
            );
            assert!(all.moved < raw.moved, "{design} {percent} %: {} moved, raw {}", all.moved, raw.moved);
            assert!(all.lines_per_user_byte < 0.8 * raw.lines_per_user_byte, "{design} {percent} %");
            assert!(all.ns_per_put < 0.6 * raw.ns_per_put, "{design} {percent} %");
            if design == Design::FLATSTORE_M {
                // Its lines are in DRAM; what a cleaner saves there are visits of inner nodes.
                assert!(
                    all.hinted > 0.0 && all.inner_nodes_per_moved * 2.0 < raw.inner_nodes_per_moved,
                    "{percent} %"
                );
            }
        }
    }
}
