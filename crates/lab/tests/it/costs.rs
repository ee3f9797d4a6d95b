//! The costs of calls on the medium, counted exactly on the simulator: the claims of the design as tests.
//!
//! Counts do not depend on the machine, so a bound that is exceeded by one is a change of the engine and not
//! noise.

use crate::shared::cost;

use cost::cost_of;
use quipu::{Client, Options, Store};
use quipu_lab::contract::value_of;
use quipu_medium::sim::SimOptions;
use quipu_medium::{LINE, Region};

const KEY: usize = 16;
const VALUE: usize = 200;
/// Header, key and value, which need no padding here.
const RECORD: u64 = 240;

fn store_on(len: u64, nodes: u16, zone_size: Option<u64>) -> Store {
    let region = Region::sim(SimOptions { len, nodes, ..SimOptions::default() });
    Store::create_on(region, &Options::new().with(|options| options.zone_size = zone_size)).unwrap()
}

/// A store whose run has begun and whose client has a segment with room.
fn warm() -> (Store, Client) {
    let store = store_on(4 << 20, 1, Some(256 << 10));
    let mut client = store.client();
    client.put(b"first", b"put").unwrap();
    (store, client)
}

fn key(number: u64) -> [u8; KEY] {
    let mut key = [0; KEY];
    key[..8].copy_from_slice(&number.to_be_bytes());
    key
}

fn value(version: u64) -> Vec<u8> {
    value_of(b"cost", version, VALUE)
}

/// Counting has everything published that writers have left to later.
fn settle(store: &Store) {
    store.stats();
}

fn put(client: &mut Client, number: u64, version: u64) {
    client.put(&key(number), &value(version)).unwrap();
}

#[test]
fn a_put_of_a_new_key_is_one_fence_and_the_lines_of_its_record() {
    let (store, mut client) = warm();
    for number in 0..500 {
        let cost = cost_of(&store, || put(&mut client, number, 0));
        assert_eq!((cost.fences, cost.reads), (1, 0), "put {number}: {cost:?}");
        assert!(cost.lines_persisted() <= RECORD.div_ceil(LINE) + 1, "put {number}: {cost:?}");
        assert_eq!(
            cost.words_stored,
            cost.lines_persisted() * 8,
            "nothing but whole lines of the record is written"
        );
    }
}

#[test]
fn a_put_over_an_old_value_reads_its_header_and_key_alone() {
    let (store, mut client) = warm();
    (0..200).for_each(|number| put(&mut client, number, 0));
    settle(&store);
    let mut reads = 0;
    for number in 0..200 {
        let cost = cost_of(&store, || put(&mut client, number, 1));
        assert!(cost.fences == 1 && cost.reads <= 1, "{cost:?}");
        assert!(cost.lines_read <= 2, "header and key are 40 bytes: {cost:?}");
        reads += cost.reads;
    }
    assert_eq!(reads, 198, "the last two old records are still to be read");
    drop(client);
    assert_eq!(cost_of(&store, || settle(&store)).reads, 0, "a client that ends leaves nothing to others");
}

#[test]
fn a_get_reads_its_record_and_changes_nothing() {
    let (store, mut client) = warm();
    (0..200).for_each(|number| put(&mut client, number, number));
    settle(&store);
    let mut out = Vec::new();
    for number in 0..200 {
        let cost = cost_of(&store, || assert!(client.get_into(&key(number), &mut out).unwrap()));
        assert_eq!(out, value(number));
        assert_eq!((cost.fences, cost.words_stored, cost.flushes), (0, 0, 0), "{cost:?}");
        assert_eq!(cost.reads, 1, "{cost:?}");
        assert!(cost.lines_read <= 5, "{cost:?}");
    }
    let keys: Vec<_> = (0..200).map(key).collect();
    let cost = cost_of(&store, || client.get_many(&keys, |_, value| assert!(value.is_some())).unwrap());
    assert_eq!((cost.fences, cost.words_stored, cost.reads), (0, 0, 200), "a batch reads no more: {cost:?}");
}

#[test]
fn a_get_of_a_missing_key_reads_nothing() {
    let (store, mut client) = warm();
    (0..10_000).for_each(|number| put(&mut client, number, 0));
    let cost = cost_of(&store, || {
        for number in 0..10_000 {
            assert_eq!(client.get(&key(1 << 32 | number)).unwrap(), None);
        }
    });
    assert_eq!((cost.fences, cost.words_stored), (0, 0));
    // Sixteen slots whose 16 bits may happen to be those of the key: one record in 4,096 lookups, looked at
    // again before absence is believed.
    assert!(cost.reads <= 20, "{} of 10,000 lookups read a record in vain", cost.reads);
}

#[test]
fn a_delete_reads_nothing_before_it_returns() {
    let (store, mut client) = warm();
    (0..200).for_each(|number| put(&mut client, number, 0));
    settle(&store);
    for number in 0..200 {
        let cost = cost_of(&store, || client.delete(&key(number)).unwrap());
        // It reads the old record of the delete before the last.
        assert!(cost.fences == 1 && cost.reads <= 1, "{cost:?}");
        assert!(cost.lines_persisted() <= 2 && cost.lines_read <= 2, "{cost:?}");
    }
    assert_eq!(store.stats().records, 1);
}

#[test]
fn a_remove_is_one_fence_and_its_tombstone() {
    let (store, mut client) = warm();
    (0..200).for_each(|number| put(&mut client, number, 0));
    settle(&store);
    for number in 0..200 {
        let cost = cost_of(&store, || assert!(client.remove(&key(number)).unwrap()));
        assert_eq!((cost.fences, cost.reads), (1, 1), "{cost:?}");
        assert!(cost.lines_persisted() <= 2 && cost.lines_read <= 2, "{cost:?}");
        let again = cost_of(&store, || assert!(!client.remove(&key(number)).unwrap()));
        assert_eq!((again.fences, again.words_stored), (0, 0), "there is nothing to delete: {again:?}");
    }
}

#[test]
fn a_batch_of_32_puts_is_one_fence() {
    let (store, mut client) = warm();
    for batch in 0..20 {
        let pairs: Vec<_> =
            (batch * 32..batch * 32 + 32).map(|number| (key(number), value(number))).collect();
        let cost = cost_of(&store, || client.put_many(&pairs).unwrap());
        assert_eq!((cost.fences, cost.reads), (1, 0), "{cost:?}");
        assert!(
            cost.lines_persisted() <= (32 * RECORD).div_ceil(LINE) + 1,
            "neighbours share lines: {cost:?}"
        );
    }
}

#[test]
fn a_large_put_writes_its_bytes_once() {
    let (store, mut client) = warm();
    let value = value_of(b"large", 0, 600 << 10);
    let cost = cost_of(&store, || client.put(b"large", &value).unwrap());
    // The value, a commit for each of its three zones, its head. The reads are words of the zone table.
    assert_eq!((cost.fences, cost.reads), (1 + 3 + 1, 3 * 3), "{cost:?}");
    let lines = (600 << 10) / LINE;
    assert!((lines..lines + 3 * 4 + 4).contains(&cost.lines_persisted()), "{lines} lines: {cost:?}");
    let mut out = Vec::new();
    let cost = cost_of(&store, || assert!(client.get_into(b"large", &mut out).unwrap()));
    assert!(out == value);
    assert_eq!((cost.fences, cost.words_stored), (0, 0));
    assert!(cost.lines_read <= lines + 10, "{cost:?}");
}

#[test]
fn a_call_that_keeps_the_value_writes_nothing() {
    let (store, mut client) = warm();
    put(&mut client, 1, 1);
    let present = cost_of(&store, || assert!(!client.put_if_absent(&key(1), &value(2)).unwrap()));
    let other =
        cost_of(&store, || assert!(!client.compare_and_swap(&key(1), None, Some(&value(2))).unwrap()));
    let absent = cost_of(&store, || assert!(!client.compare_and_swap(&key(2), Some(b"x"), None).unwrap()));
    for cost in [present, other, absent] {
        assert_eq!((cost.fences, cost.words_stored, cost.flushes), (0, 0, 0), "{cost:?}");
    }
}

#[test]
fn opening_segments_adds_little_to_many_puts() {
    const PUTS: u64 = 10_000;
    let store = store_on(8 << 20, 1, Some(64 << 10));
    let mut client = store.client();
    let cost = cost_of(&store, || (0..PUTS).for_each(|number| put(&mut client, number, 0)));
    let fences = cost.fences as f64 / PUTS as f64;
    let media = cost.media_write_bytes as f64 / (PUTS * (KEY + VALUE) as u64) as f64;
    println!("{fences:.4} fences a put, {media:.3} media bytes a user byte");
    assert!((1.0..=1.02).contains(&fences), "{fences} fences a put");
}

#[test]
fn a_pool_takes_little_more_than_its_users_bytes() {
    const RECORDS: u64 = 20_000;
    let store = store_on(16 << 20, 1, None);
    let mut client = store.client();
    (0..RECORDS).for_each(|number| put(&mut client, number, 0));
    let stats = store.stats();
    let used = (stats.zones - stats.free_zones) * stats.zone_bytes;
    let share = used as f64 / (RECORDS * (KEY + VALUE) as u64) as f64;
    println!("{share:.3} bytes of zones a user byte, utilization {:.3}", stats.utilization());
    assert!(share <= 1.15, "{share} bytes of zones a user byte");
}

#[test]
fn a_put_writes_to_the_clients_own_node() {
    for node in [0, 1] {
        let store = store_on(8 << 20, 2, Some(64 << 10));
        store.region().simulator().unwrap().set_node(0, node);
        let mut client = store.client();
        // The run begins in the superblock, which has one place for all nodes.
        put(&mut client, 0, 0);
        let free = store.stats().free_zones;
        let cost = cost_of(&store, || (1..5_000).for_each(|number| put(&mut client, number, 0)));
        assert!(free - store.stats().free_zones >= 15, "segments were opened");
        assert_eq!((cost.remote_lines_written, cost.remote_persists), (0, 0), "node {node}: {cost:?}");
        assert_eq!(cost.remote_lines_read, 0, "node {node}: {cost:?}");
    }
}
