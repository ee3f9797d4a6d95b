//! The costs of writes into memtables, counted exactly on the simulator.
//!
//! An item of r records over m tables takes one fence, and a chunk in whole lines for each table. A chunk
//! has a header of 64 bytes. Each record takes 16 bytes, its key and its value, in units of 8.

use crate::shared::cost;

use cost::cost_of;
use quipu::internals::TestForest;
use quipu::{Client, Design, Options, Store, Table, WriteBatch};
use quipu_lab::sim_levels::SimForest;
use quipu_medium::sim::{Cost, SimOptions};
use quipu_medium::{LINE, Region};
use std::sync::Arc;

/// A store with tables, each of which has been written to.
fn warm(tables: usize) -> (Store, Client, Vec<Table>) {
    let region = Region::sim(SimOptions { len: 16 << 20, ..SimOptions::default() });
    let store = Store::create_on(region, &Options::new().design(Design::XP).zone_size(256 << 10)).unwrap();
    let tables: Vec<Table> =
        (0..tables).map(|number| store.create_table(&format!("t{number}")).unwrap()).collect();
    let mut client = store.client();
    client.put(b"first", b"put").unwrap();
    for table in &tables {
        client.on(table).unwrap().put(b"first", b"put").unwrap();
    }
    (store, client, tables)
}

fn chunk(records: u64, key: u64, value: u64) -> u64 {
    (64 + records * (16 + key + value).next_multiple_of(8)).div_ceil(LINE)
}

#[test]
fn a_put_of_a_new_key_is_one_fence_and_the_lines_of_its_chunk() {
    let (store, mut client, _) = warm(0);
    for (number, len) in (0..300u64).zip([32, 0, 200, 101, 24].into_iter().cycle()) {
        let cost = cost_of(&store, || client.put(&number.to_be_bytes(), &vec![7; len]).unwrap());
        assert_eq!((cost.fences, cost.reads), (1, 0), "put {number}: {cost:?}");
        assert_eq!(cost.lines_persisted(), chunk(1, 8, len as u64), "put {number}: {cost:?}");
    }
    // The example of the design: 8 + 32 bytes are two lines.
    assert_eq!(chunk(1, 8, 32), 2);
}

#[test]
fn a_batch_over_tables_is_one_fence_and_the_lines_of_a_chunk_for_each() {
    let (store, mut client, tables) = warm(3);
    for records in [1, 2, 10, 50] {
        let mut batch = WriteBatch::new();
        for table in &tables {
            batch.on(table);
            (0..records).for_each(|number: u64| {
                batch.put(&(records << 32 | number).to_be_bytes(), &[7; 24]);
            });
        }
        let cost = cost_of(&store, || client.write(&batch).unwrap());
        assert_eq!((cost.fences, cost.reads), (1, 0), "{records} records: {cost:?}");
        assert_eq!(cost.lines_persisted(), 3 * chunk(records, 8, 24), "{records} records: {cost:?}");
    }
}

#[test]
fn an_update_of_a_key_with_one_version_reads_a_line_and_others_read_none() {
    let (store, mut client, _) = warm(0);
    client.put(b"key", &[1; 200]).unwrap();
    for (version, reads) in [(2, 1), (3, 0), (4, 0)] {
        let cost = cost_of(&store, || client.put(b"key", &[version; 200]).unwrap());
        assert_eq!((cost.fences, cost.reads), (1, reads), "version {version}: {cost:?}");
    }
    // A snapshot costs nothing on the medium.
    let cost = cost_of(&store, || drop(store.snapshot().unwrap()));
    assert_eq!((cost.fences, cost.lines_persisted()), (0, 0));
}

#[test]
fn a_range_of_any_size_is_deleted_by_one_chunk() {
    let (store, mut client, _) = warm(0);
    for number in 0..1000u64 {
        client.put(&number.to_be_bytes(), &[7; 24]).unwrap();
    }
    let (from, to) = (10u64.to_be_bytes(), 900u64.to_be_bytes());
    let range = (std::ops::Bound::Included(&from[..]), std::ops::Bound::Excluded(&to[..]));
    let cost = cost_of(&store, || client.delete_range(range.0, range.1).unwrap());
    assert_eq!((cost.fences, cost.lines_persisted()), (1, chunk(1, 8, 8)), "{cost:?}");
    assert_eq!(client.pin().keys().count(), 1 + 110);
}

/// The costs of dumps of one record and of 301, each overwritten once, with a choice of the setting `merge`.
fn costs_of_dumps(merge: &str) -> [Cost; 2] {
    let forest = TestForest(Arc::new(SimForest::default()));
    let options = Options::new().design(Design::XP).zone_size(256 << 10).recovery_threads(1);
    let options = options.set("merge", merge).unwrap();
    let options = options.with(|options| options.testing.forest = Some(forest));
    let region = Region::sim(SimOptions { len: 16 << 20, ..SimOptions::default() });
    // The first put is dumped at once, so that there are levels.
    let early = options.clone().with(|options| options.testing.dump_at = Some(1));
    let store = Store::create_on(region.clone(), &early).unwrap();
    for key in [b"a", b"b"] {
        store.client().put(key, b"put").unwrap();
    }
    assert!(store.stats().dumped_bytes > 0);
    store.close().unwrap();
    let store = Store::open_on(region, &options).unwrap();
    let cost_of_dump = |records: u64| {
        let mut client = store.client();
        // Of two versions of a key, one stays.
        for number in (0..records).chain(0..records) {
            client.put(&number.to_be_bytes(), &[7; 200]).unwrap();
        }
        drop(client);
        let dumped = store.stats().dumped_bytes;
        let cost = cost_of(&store, || assert!(store.compact().is_ok()));
        assert!(store.stats().dumped_bytes > dumped);
        cost
    };
    // The first one begins the run.
    cost_of_dump(1);
    [cost_of_dump(1), cost_of_dump(301)]
}

/// A dump reads every line of a record that stays once. The freeze ends the memtable; then the anchor, the
/// word of the table, and the release of the memtable are written, however many records it has. Purge and
/// compaction write nothing.
#[test]
fn a_dump_reads_each_live_line_once_and_writes_a_few_words() {
    let [few, many] = costs_of_dumps("direct");
    // A record of 16 + 8 + 200 bytes begins with a line, behind the header of its chunk.
    assert_eq!(many.lines_read - few.lines_read, 300 * 224u64.div_ceil(LINE), "{few:?} {many:?}");
    assert_eq!((many.fences, many.lines_written), (few.fences, few.lines_written), "{few:?} {many:?}");
}

/// Neither do a layer for a memtable, and its merge into the Global Index.
#[test]
fn merging_the_index_of_a_memtable_writes_nothing() {
    let [[few, many], [_, direct]] = ["key", "direct"].map(costs_of_dumps);
    assert_eq!((many.fences, many.lines_written), (few.fences, few.lines_written), "{few:?} {many:?}");
    assert_eq!((many.fences, many.lines_written), (direct.fences, direct.lines_written));
}
