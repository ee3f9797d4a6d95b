//! Design `xp` with data larger than its pool: the rest is on levels, in files beside it.

use quipu::internals::twin::leave_out;
use quipu::internals::{TestForest, Twin};
use quipu::{Client, Design, Error, ErrorKind, Levels, Options, Store, WriteBatch};
use quipu_lab::sim_levels::{SimFaults, SimForest};
use quipu_medium::sim::SimOptions;
use quipu_medium::{Pages, Region};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const POOL: u64 = 16 << 20;
const VALUE: usize = 1000;

pub type Model = BTreeMap<Vec<u8>, Vec<u8>>;

pub fn options() -> Options {
    Options::new().design(Design::XP).size(POOL).zone_size(64 << 10)
}

pub fn key(number: u64) -> Vec<u8> {
    // Neighbours are far apart, so that every dump spans all keys.
    format!("{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).into_bytes()
}

pub fn value(number: u64, generation: u64) -> Vec<u8> {
    let mut value = format!("{number} {generation} ").into_bytes();
    value.resize(VALUE, b'.');
    value
}

/// Puts keys with values of a generation, in batches.
pub fn fill(client: &mut Client, model: &mut Model, numbers: impl Iterator<Item = u64>, generation: u64) {
    let numbers: Vec<u64> = numbers.collect();
    for some in numbers.chunks(40) {
        let mut batch = WriteBatch::new();
        for number in some {
            batch.put(&key(*number), &value(*number, generation));
            model.insert(key(*number), value(*number, generation));
        }
        client.write(&batch).unwrap();
    }
}

/// Compares all that a store has with the model: both ways, and key by key.
pub fn compare(store: &Store, model: &Model) {
    let client = store.client();
    let guard = client.pin();
    let found = guard
        .range(Bound::Unbounded, Bound::Unbounded)
        .unwrap()
        .map(|pair| pair.map(|(key, value)| (key.into_owned(), value.into_owned())));
    let found: Vec<_> = found.collect::<Result<_, _>>().unwrap();
    assert_eq!(found.len(), model.len());
    assert!(found.iter().map(|(key, value)| (key, value)).eq(model.iter()));
    let back = guard
        .range(Bound::Unbounded, Bound::Unbounded)
        .unwrap()
        .rev()
        .map(|pair| pair.unwrap().0.into_owned());
    assert!(back.eq(model.keys().rev().cloned()));
    for number in (0..40_000).step_by(97) {
        assert_eq!(client.get(&key(number)).unwrap(), model.get(&key(number)).cloned(), "{number}");
    }
}

pub fn folder_of(pool: &Path) -> PathBuf {
    pool.with_file_name("pool.runs")
}

/// Writes far more than a pool holds and looks at all of it, with a choice of the setting `merge`.
fn holds_more_than_the_pool(merge: &str) {
    let folder = tempfile::tempdir().unwrap();
    let pool = folder.path().join("pool");
    let mut model = Model::new();
    let opened = options().set("merge", merge).unwrap();
    let mut store = Store::create(&pool, &opened).unwrap();
    let mut client = store.client();
    fill(&mut client, &mut model, 0..40_000, 1);
    let snapshot = store.snapshot().unwrap();
    let before = model.clone();
    fill(&mut client, &mut model, (0..40_000).step_by(3), 2);
    for number in (0..40_000).step_by(7) {
        assert_eq!(client.remove(&key(number)).unwrap(), model.remove(&key(number)).is_some());
    }
    let (from, to) = (b"4".to_vec(), b"5".to_vec());
    client.delete_range(Bound::Included(&from), Bound::Excluded(&to)).unwrap();
    model.retain(|key, _| *key < from || *key >= to);
    fill(&mut client, &mut model, (0..40_000).step_by(5), 3);
    let stats = store.stats();
    assert!(stats.level_bytes > 2 * POOL && stats.dumped_bytes > 2 * POOL, "{stats:?}");
    compare(&store, &model);
    let at = client.pin_at(&snapshot).unwrap();
    let kept = at.range(Bound::Unbounded, Bound::Unbounded).unwrap().map(|pair| pair.unwrap().0.into_owned());
    assert!(kept.eq(before.keys().cloned()), "a snapshot keeps its keys on the levels too");
    drop(at);
    drop((client, snapshot));
    assert!(store.check(&|_, _| {}).unwrap().is_sound());
    store.close().unwrap();
    let mut store = Store::open(&pool, &opened).unwrap();
    compare(&store, &model);
    store.compact().unwrap();
    compare(&store, &model);
    let report = store.check(&|_, _| {}).unwrap();
    assert!(report.is_sound() && report.keys == model.len() as u64, "{report:?}");
    // As after a crash of the process. The setting is one of the handle.
    drop(store);
    let store = Store::open(&pool, &Options::new()).unwrap();
    compare(&store, &model);
}

#[test]
fn data_larger_than_the_pool_are_there_in_order_and_after_reopening() {
    holds_more_than_the_pool("direct");
}

#[test]
fn so_they_are_when_each_memtable_has_an_index() {
    holds_more_than_the_pool("key");
}

#[test]
fn so_they_are_when_indexes_are_merged_for_the_dump_alone() {
    holds_more_than_the_pool("off");
}

/// Each version is counted once as superseded: by a write into its layer, or by a merge.
#[test]
fn a_close_merges_the_indexes_of_memtables_into_its_checkpoint() {
    for merge in ["key", "off"] {
        let folder = tempfile::tempdir().unwrap();
        let (pool, options) = (folder.path().join("pool"), options().set("merge", merge).unwrap());
        let store = Store::create(&pool, &options).unwrap();
        let mut client = store.client();
        client.put(b"a", b"first").unwrap();
        assert!(client.remove(b"a").unwrap());
        client.put(b"a", b"second").unwrap();
        // Each round is longer than a memtable.
        for generation in 0..5 {
            fill(&mut client, &mut Model::new(), 0..800, generation);
        }
        drop(client);
        store.close().unwrap();
        let store = Store::open(&pool, &options).unwrap();
        assert!(store.recovery().from_checkpoint, "merge={merge}");
        let default = store.tables().unwrap().remove(0);
        assert_eq!(store.table_stats(&default).unwrap().records, 801, "merge={merge}");
        assert_eq!(store.stats().tombstone_bytes, 0, "merge={merge}");
    }
}

/// A memtable without levels would never be given back.
#[test]
fn indexes_of_memtables_need_levels() {
    let options = options().levels(Levels::Off).set("merge", "key").unwrap();
    let refused = Store::create_on(Region::dram(POOL, Pages::Ordinary).unwrap(), &options).err().unwrap();
    assert!(refused.to_string().contains("--levels"), "{refused}");
}

/// Two threads overwrite a few keys, and two look at them, while memtables are merged and dumped.
#[test]
fn readers_never_go_back_while_memtables_are_merged() {
    const KEYS: usize = 200;
    const ROUNDS: u64 = 150;
    let options = simulated().cleaner(true).set("merge", "key").unwrap();
    let store = store_of(&options);
    let written: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    let has_ended = AtomicBool::new(false);
    let generation = |value: &[u8]| -> u64 {
        let text = std::str::from_utf8(value).unwrap();
        text.split(' ').nth(1).unwrap().parse().unwrap()
    };
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|own| {
                let (mut client, written) = (store.client(), &written);
                scope.spawn(move || {
                    for round in 1..=ROUNDS {
                        for nth in (own..KEYS).step_by(2) {
                            client.put(&key(nth as u64), &value(nth as u64, round)).unwrap();
                            written[nth].store(round, Ordering::Release);
                        }
                    }
                })
            })
            .collect();
        for _ in 0..2 {
            let (client, written, has_ended) = (store.client(), &written, &has_ended);
            scope.spawn(move || {
                while !has_ended.load(Ordering::Relaxed) {
                    for (nth, written) in written.iter().enumerate() {
                        let least = written.load(Ordering::Acquire);
                        let found = client.get(&key(nth as u64)).unwrap();
                        let found = found.map_or(0, |value| generation(&value));
                        assert!(found >= least, "key {nth}: {found}, and {least} was acknowledged before");
                    }
                    let least: Vec<u64> =
                        written.iter().map(|written| written.load(Ordering::Acquire)).collect();
                    let guard = client.pin();
                    let all = guard.range(Bound::Unbounded, Bound::Unbounded).unwrap();
                    let told: BTreeMap<Vec<u8>, u64> = all
                        .map(|pair| pair.map(|(key, value)| (key.into_owned(), generation(&value))).unwrap())
                        .collect();
                    for (nth, least) in least.into_iter().enumerate() {
                        assert!(told.get(&key(nth as u64)).copied().unwrap_or(0) >= least, "key {nth}");
                    }
                }
            });
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        has_ended.store(true, Ordering::Relaxed);
    });
    assert!(store.stats().dumped_bytes > 0, "they were dumped meanwhile");
}

#[test]
fn a_pool_whose_levels_are_missing_or_not_its_own_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let pool = folder.path().join("pool");
    let store = Store::create(&pool, &options()).unwrap();
    fill(&mut store.client(), &mut Model::new(), 0..20_000, 1);
    store.close().unwrap();
    let error = Store::open(&pool, &Options::new().levels(Levels::Off)).unwrap_err();
    assert!(error.to_string().contains("on levels"), "{error}");
    let elsewhere = folder.path().join("elsewhere");
    std::fs::rename(folder_of(&pool), &elsewhere).unwrap();
    let error = Store::open(&pool, &Options::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
    let named = Options::new().levels(Levels::Folder(elsewhere.clone()));
    let store = Store::open(&pool, &named).unwrap();
    assert!(store.client().get(&key(7)).unwrap().is_some());
    store.close().unwrap();
    let other = Store::create(folder.path().join("other"), &options().levels(Levels::Folder(elsewhere)));
    assert!(matches!(other, Err(Error::Levels(_))), "the folder is of another pool");
}

#[test]
fn a_table_that_is_dropped_leaves_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let pool = folder.path().join("pool");
    let store = Store::create(&pool, &options()).unwrap();
    let table = store.create_table("brief").unwrap();
    fill(&mut store.client().on(&table).unwrap(), &mut Model::new(), 0..20_000, 1);
    assert!(store.stats().level_bytes > 0);
    store.drop_table(&table).unwrap();
    assert_eq!(store.stats().level_bytes, 0);
    store.compact().unwrap();
    store.close().unwrap();
    let store = Store::open(&pool, &Options::new()).unwrap();
    assert_eq!(store.tables().unwrap().len(), 1);
    let trees =
        std::fs::read_dir(folder_of(&pool)).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_dir());
    assert_eq!(trees.count(), 0);
}

/// Options of a pool in memory, above simulated levels.
fn simulated() -> Options {
    options().cleaner(false).with(|options| {
        options.testing.forest = Some(TestForest(Arc::new(SimForest::default())));
    })
}

fn store_of(options: &Options) -> Store {
    Store::create_on(Region::dram(POOL, Pages::Ordinary).unwrap(), options).unwrap()
}

/// The keys of a store after all of them were deleted and written again, and levels were compacted.
fn written_again(twin: Option<Twin>) -> usize {
    let folder = tempfile::tempdir().unwrap();
    // Two files a dump, of which the second has no range tombstones.
    let options = options().cleaner(false).recovery_threads(2);
    let _left_out = leave_out(twin);
    let store = Store::create(folder.path().join("pool"), &options).unwrap();
    let mut client = store.client();
    fill(&mut client, &mut Model::new(), 0..20_000, 1);
    // The keys are swept, and the levels told, when newer ones are there already.
    let snapshot = store.snapshot().unwrap();
    client.delete_range(Bound::Unbounded, Bound::Unbounded).unwrap();
    fill(&mut client, &mut Model::new(), 0..20_000, 2);
    drop(snapshot);
    client.delete_range(Bound::Included(b"x"), Bound::Unbounded).unwrap();
    fill(&mut client, &mut Model::new(), 20_000..40_000, 2);
    drop(client);
    let client = store.client();
    (0..20_000).filter(|number| client.get(&key(*number)).unwrap() == Some(value(*number, 2))).count()
}

/// Runs that lie wholly in the range of a range delete are dropped, if nothing in them is newer.
#[test]
fn a_range_delete_drops_no_newer_runs() {
    assert_eq!(written_again(None), 20_000);
    assert!(written_again(Some(Twin::NewerRunsDropped)) < 20_000, "the twin drops them");
}

/// The keys that a scan tells which begins before a dump and goes on behind it.
fn told_beside_a_dump(twin: Option<Twin>) -> usize {
    let _left_out = leave_out(twin);
    let store = store_of(&simulated());
    fill(&mut store.client(), &mut Model::new(), 0..10_000, 1);
    let (client, mut writer) = (store.client(), store.client());
    fill(&mut writer, &mut Model::new(), 10_000..10_100, 1);
    let guard = client.pin();
    let scan = guard.range(Bound::Unbounded, Bound::Unbounded).unwrap();
    let dumped = store.stats().dumped_bytes;
    // The guard keeps the room that is given back, so little more may be written.
    // Keys of their own: memtables of superseded records would be rewritten in place of a dump.
    for number in 20_000.. {
        if store.stats().dumped_bytes > dumped {
            break;
        }
        writer.put(&key(number), &value(number, 1)).unwrap();
    }
    scan.filter(Result::is_ok).count()
}

/// A scan goes over the layers and the levels of one moment.
#[test]
fn a_scan_beside_a_dump_misses_nothing() {
    assert_eq!(told_beside_a_dump(None), 10_100);
    assert!(told_beside_a_dump(Some(Twin::LevelsOfAnotherView)) < 10_100, "the twin misses keys");
}

/// The keys that are left when all have been deleted, and others were written since.
fn left_by_a_range_delete(twin: Option<Twin>) -> usize {
    let _left_out = leave_out(twin);
    let store = store_of(&simulated());
    let mut client = store.client();
    fill(&mut client, &mut Model::new(), 0..20_000, 1);
    client.delete_range(Bound::Unbounded, Bound::Unbounded).unwrap();
    fill(&mut client, &mut Model::new(), 20_000..40_000, 1);
    (0..20_000).filter(|number| client.get(&key(*number)).unwrap().is_some()).count()
}

/// A range tombstone stays in the list until the levels have none of its keys.
#[test]
fn a_range_delete_takes_the_keys_of_the_levels() {
    assert_eq!(left_by_a_range_delete(None), 0);
    assert!(left_by_a_range_delete(Some(Twin::RangeForgottenEarly)) > 0, "the twin forgets it");
}

/// Levels are merged beside writers, and not only when a store is opened or compacted.
#[test]
fn a_compactor_merges_what_dumps_have_left() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path().join("pool"), &options().size(2 << 20)).unwrap();
    let (mut client, mut model) = (store.client(), Model::new());
    for generation in 0..12 {
        fill(&mut client, &mut model, 0..2000, generation);
    }
    // All generations are there, unless they were merged.
    let most = 6 * 2000 * VALUE as u64;
    let deadline = Instant::now() + Duration::from_secs(20);
    while store.stats().level_bytes > most && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(10));
    }
    let stats = store.stats();
    assert!(stats.dumped_bytes > most, "{} bytes were dumped", stats.dumped_bytes);
    assert!(stats.level_bytes <= most, "{} files of {} bytes", stats.level_files, stats.level_bytes);
}

/// A store over levels is compacted while a memtable is being rewritten, and the disk of the levels is full
/// then: the layer is frozen and stays. Returns what was wrong of its keys after further puts.
fn found_behind_a_freeze(twin: Option<Twin>) -> Vec<String> {
    let _left_out = leave_out(twin);
    let forest = SimForest::default();
    let options = options().cleaner(false).zone_size(16 << 10).with(|options| {
        options.testing.forest = Some(TestForest(Arc::new(forest.clone())));
    });
    let region = Region::sim(SimOptions { len: 512 << 10, ..SimOptions::default() });
    let store = Store::create_on(region, &options).unwrap();
    let (mut client, mut model) = (store.client(), Model::new());
    let mut put = |number: u64, key: u64| {
        let (key, value) = (self::key(key), number.to_le_bytes().to_vec());
        client.put(&key, &value).map(|()| model.insert(key, value)).map(drop)
    };
    // Three of five keys are some that come often, so that most of a memtable is garbage.
    let mut numbers = 1..60_000;
    let is_due = || store.stats().level_files > 0 && store.activity().is_compacting;
    while !is_due() {
        let number = numbers.next().expect("a writer rewrites before that");
        put(number, if number % 5 < 2 { number } else { number % 32 }).unwrap();
    }
    forest.set_faults(SimFaults { write: Some(1), lasts: true, ..SimFaults::default() });
    assert!(store.compact().is_err(), "the disk is full");
    // They use the zones that were released.
    while let Some(Ok(())) = numbers.next().map(|number| put(number, number)) {}
    let client = store.client();
    let wrong = model.iter().filter_map(|(key, value)| match client.get(key) {
        Ok(Some(found)) if found == *value => None,
        found => Some(format!("{found:?} in place of {value:?}")),
    });
    wrong.collect()
}

/// A freeze takes the memtable that is being rewritten away from the rewriter: its records are in a layer
/// that takes no copies.
#[test]
fn nothing_of_a_frozen_layer_is_rewritten() {
    let found = found_behind_a_freeze(None);
    assert!(found.is_empty(), "{found:?}");
    assert!(!found_behind_a_freeze(Some(Twin::FrozenWhileRewritten)).is_empty());
}
