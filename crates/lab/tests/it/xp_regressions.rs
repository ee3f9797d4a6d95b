//! Faults of design `xp` that were found once.

use quipu::internals::Twin;
use quipu::internals::twin::leave_out;
use quipu::{Design, Error, Options, Store, WriteBatch};
use quipu_medium::sim::{SimOptions, sched};
use quipu_medium::{MediumError, Pages, Region};
use std::ops::Bound::{Excluded, Included};

fn options() -> Options {
    Options::new().design(Design::XP).cleaner(false).zone_size(64 << 10)
}

fn store() -> Store {
    Store::create_on(Region::dram(16 << 20, Pages::Ordinary).unwrap(), &options()).unwrap()
}

/// A version that a range tombstone deletes is needed by no snapshot behind it, whatever else the key has.
#[test]
fn a_snapshot_behind_a_range_delete_never_shows_its_keys() {
    let store = store();
    let mut client = store.client();
    client.put(b"k", b"old").unwrap();
    let before = store.snapshot().unwrap();
    client.delete_range(Included(b"a"), Excluded(b"z")).unwrap();
    let behind = store.snapshot().unwrap();
    client.put(b"k", b"new").unwrap();
    assert_eq!(client.pin_at(&before).unwrap().get(b"k").unwrap().as_deref(), Some(&b"old"[..]));
    drop(before);
    for _ in 0..3 {
        store.compact().unwrap();
        assert_eq!(client.pin_at(&behind).unwrap().get(b"k").unwrap(), None);
    }
}

/// A value that expires while a scan goes on may have been overwritten before: the key was never absent.
#[test]
fn a_scan_looks_at_one_time() {
    let region = Region::sim(SimOptions { len: 4 << 20, ..SimOptions::default() });
    let sim = region.simulator().unwrap().clone();
    let store = Store::create_on(region.clone(), &options().zone_size(16 << 10)).unwrap();
    let (mut client, reader) = (store.client(), store.client());
    client.put_until(b"k", b"old", sim.now() + 1000).unwrap();
    let pinned = reader.pin();
    let mut pairs = pinned.iter();
    client.put(b"k", b"new").unwrap();
    sim.set_now(sim.now() + 2000);
    let (key, value) = pairs.next().expect("it is there all the time");
    assert_eq!((&*key, &*value), (&b"k"[..], &b"old"[..]));
}

/// Records of more than half a zone leave rests behind them that a copy leaves again.
#[test]
fn long_records_are_not_rewritten_for_their_rests() {
    let region = Region::sim(SimOptions { len: 1 << 20, ..SimOptions::default() });
    let store = Store::create_on(region, &options().zone_size(16 << 10)).unwrap();
    let mut client = store.client();
    for number in 0..20u8 {
        client.put(&[number; 9 << 10], b"value").unwrap();
    }
    store.compact().unwrap();
    assert_eq!(store.stats().moved_bytes, 0);
}

/// Memtables with range tombstones of one table are recovered by two threads at once.
#[test]
fn no_range_delete_is_lost_in_recovery() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let store = Store::create(&path, &options().size(16 << 20)).unwrap();
    let mut client = store.client();
    let key = |number: u32| format!("key {number:08}").into_bytes();
    (0..800).for_each(|number| client.put(&key(number), &[1; 200]).unwrap());
    for number in 0..800 {
        client.delete_range(Included(&key(number)), Excluded(&key(number + 1))).unwrap();
        client.put(format!("other {number:08}").as_bytes(), &[1; 1000]).unwrap();
    }
    drop(client);
    drop(store);
    let store = Store::open(&path, &options().recovery_threads(2)).unwrap();
    assert_eq!(store.client().pin().prefix(b"key ").unwrap().count(), 0);
    assert_eq!(store.stats().records, 800);
}

/// A record and its copy are both written for a moment.
#[test]
fn records_that_are_rewritten_count_once() {
    for seed in 0..20 {
        let region = Region::sim(SimOptions { len: 2 << 20, seed, ..SimOptions::default() });
        let store = Store::create_on(region, &options().zone_size(16 << 10)).unwrap();
        let (mut client, table) = (store.client(), store.table("default").unwrap());
        for number in 0..400u32 {
            client.put(&number.to_be_bytes(), &[1; 100]).unwrap();
        }
        (0..200u32).for_each(|number| client.put(&number.to_be_bytes(), &[2; 100]).unwrap());
        let compact = || _ = store.compact().unwrap();
        let count = || {
            for _ in 0..100 {
                assert_eq!((store.stats().records, store.table_stats(&table).unwrap().records), (400, 400));
            }
        };
        sched::run(seed, vec![Box::new(compact), Box::new(count)]).unwrap();
        assert!(store.stats().moved_records > 0);
    }
}

/// Two pools number their tables alike.
#[test]
fn a_handle_of_another_store_is_refused() {
    let (one, mut two) = (store(), store());
    let (own, _other) = (one.create_table("a").unwrap(), two.create_table("b").unwrap());
    let mut batch = WriteBatch::new();
    batch.on(&own).put(b"k", b"v");
    let refused = [
        two.client().on(&own).map(drop),
        two.client().write(&batch),
        two.table_stats(&own).map(drop),
        two.drop_table(&own),
    ];
    for error in refused {
        assert!(matches!(&error, Err(Error::Option(text)) if text.contains("another store")), "{error:?}");
    }
    assert_eq!(two.tables().unwrap().len(), 2);
    assert!(two.check(&|_, _| {}).unwrap().is_sound());
}

/// The index may forget a deleted key before the memtable of its records is released.
#[test]
fn a_check_knows_keys_that_are_forgotten() {
    let mut store = store();
    let mut client = store.client();
    client.put(b"a", b"1").unwrap();
    client.delete(b"a").unwrap();
    client.put(b"b", b"1").unwrap();
    client.put(b"c", b"1").unwrap();
    client.put(b"c", b"2").unwrap();
    drop(client);
    let snapshot = store.snapshot().unwrap();
    store.compact().unwrap();
    let report = store.check(&|_, _| {}).unwrap();
    assert!(report.is_sound(), "{}", report.damage);
    drop(snapshot);
}

/// A panic behind the grant leaves a hole in the order: nothing may be written behind it.
#[test]
fn a_write_that_panics_ends_all_writing() {
    let region = Region::sim(SimOptions { len: 16 << 20, ..SimOptions::default() });
    let store = Store::create_on(region.clone(), &options()).unwrap();
    store.client().put(b"a", b"1").unwrap();
    store.close().unwrap();
    let left_out = leave_out(Some(Twin::PublicationPanics));
    let store = Store::open_on(region.clone(), &options()).unwrap();
    let mut client = store.client();
    let write = std::panic::AssertUnwindSafe(|| client.put(b"b", b"2"));
    std::panic::catch_unwind(write).expect_err("it publishes");
    let refused = [
        client.put(b"c", b"3"),
        client.delete_range(Included(b"a"), Excluded(b"z")),
        store.compact().map(drop),
        store.create_table("t").map(drop),
    ];
    assert!(refused.iter().all(Result::is_err), "{refused:?}");
    assert_eq!(client.get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
    drop(client);
    assert!(store.close().is_err(), "it leaves no clean mark");
    drop(left_out);
    let store = Store::open_on(region, &options()).unwrap();
    assert!(!store.recovery().was_clean);
    let mut client = store.client();
    let get = |key: &[u8]| client.get(key).unwrap();
    assert_eq!((get(b"a"), get(b"c")), (Some(b"1".to_vec()), None));
    assert!(get(b"b").is_none_or(|value| value == b"2"), "it was in flight");
    client.put(b"c", b"3").unwrap();
}

/// Free zones without storage behind them are no room.
#[test]
fn a_full_disk_is_told_and_nobody_waits_for_it() {
    let region = Region::sim(SimOptions { len: 4 << 20, ..SimOptions::default() });
    let sim = region.simulator().unwrap().clone();
    let store = Store::create_on(region.clone(), &options().zone_size(16 << 10)).unwrap();
    let mut client = store.client();
    sim.fail_reserve_after(2);
    let refused = (0..1000u64).find_map(|number| client.put(&number.to_le_bytes(), &[1; 700]).err());
    assert!(matches!(refused, Some(Error::Medium(MediumError::DiskFull { .. }))), "{refused:?}");
    assert!(client.get(&0u64.to_le_bytes()).unwrap().is_some());
}
