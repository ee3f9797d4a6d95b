//! A disk of levels that is full or fails: writes go on until the pool is full, too, and nothing is lost.

use crate::levels::{Model, compare, fill, key, options, value};
use crate::shared::small_disk::on_small_disk;
use quipu::internals::TestForest;
use quipu::{Client, Error, ErrorKind, Levels, Options, Store};
use quipu_lab::sim_levels::{SimFaults, SimForest, SimPublishFault};
use quipu_parts::runs::RunsError;
use std::fs::{self, File};
use std::io::Write;
use std::ops::{Bound, Range};
use std::path::Path;
use std::sync::Arc;

/// Puts keys until one is refused, and returns the refusal.
fn put_until_refused(client: &mut Client, model: &mut Model, numbers: Range<u64>) -> Option<Error> {
    for number in numbers {
        if let Err(error) = client.put(&key(number), &value(number, 1)) {
            return Some(error);
        }
        model.insert(key(number), value(number, 1));
    }
    None
}

/// Deletes some keys, and a range.
fn delete_some(client: &mut Client, model: &mut Model) {
    for number in 0..50 {
        assert_eq!(client.remove(&key(number)).unwrap(), model.remove(&key(number)).is_some());
    }
    let (from, to) = (b"7".to_vec(), b"71".to_vec());
    client.delete_range(Bound::Included(&from), Bound::Excluded(&to)).unwrap();
    model.retain(|key, _| *key < from || *key >= to);
}

/// Works with levels that fail like that from some call on, and returns the refusal of a put.
fn refusal(faults: SimFaults) -> Option<Error> {
    let (folder, forest) = (tempfile::tempdir().unwrap(), SimForest::default());
    // Without a cleaner, each write tries to dump, so the pool is small.
    let options = options().size(4 << 20).cleaner(false).recovery_threads(2).with(|options| {
        options.testing.forest = Some(TestForest(Arc::new(forest.clone())));
    });
    let (pool, mut model) = (folder.path().join("pool"), Model::new());
    let store = Store::create(&pool, &options).unwrap();
    let mut client = store.client();
    fill(&mut client, &mut model, 0..4_000, 1);
    assert!(store.stats().level_files > 0);
    forest.set_faults(SimFaults { lasts: true, ..faults });
    let refused = put_until_refused(&mut client, &mut model, 4_000..12_000);
    compare(&store, &model);
    if refused.is_some() {
        let stats = store.stats();
        assert_eq!(stats.free_bytes, 0, "room is left: {stats:?}");
        delete_some(&mut client, &mut model);
        compare(&store, &model);
    }
    drop(client);
    assert!(store.compact().is_err());
    compare(&store, &model);
    drop(store);
    forest.set_faults(SimFaults::default());
    let mut store = Store::open(&pool, &options).unwrap();
    compare(&store, &model);
    let mut client = store.client();
    assert!(put_until_refused(&mut client, &mut model, 10_000..14_000).is_none());
    delete_some(&mut client, &mut model);
    drop(client);
    store.compact().unwrap();
    compare(&store, &model);
    assert!(store.check(&|_, _| {}).unwrap().is_sound());
    refused
}

#[test]
fn a_full_disk_refuses_writes_when_the_pool_is_full_too() {
    let error = refusal(SimFaults { write: Some(3), ..SimFaults::default() }).unwrap();
    assert!(matches!(error, Error::Levels(RunsError::Full { .. })), "{error}");
    assert_eq!(error.kind(), ErrorKind::Room);
    let publish = Some((2, SimPublishFault::NotNamed));
    let error = refusal(SimFaults { publish, ..SimFaults::default() }).unwrap();
    assert!(matches!(error, Error::Levels(RunsError::Full { .. })), "{error}");
}

#[test]
fn names_that_may_have_changed_stop_the_levels_until_the_next_opening() {
    for fault in [SimPublishFault::PoisonedBefore, SimPublishFault::PoisonedAfter] {
        let error = refusal(SimFaults { publish: Some((2, fault)), ..SimFaults::default() }).unwrap();
        assert!(matches!(error, Error::LevelsStopped { .. }), "{error}");
        assert!(error.to_string().contains("until the store is opened again"), "{error}");
    }
}

#[test]
fn compaction_that_fails_refuses_no_writes() {
    assert!(refusal(SimFaults { compact: Some(1), ..SimFaults::default() }).is_none());
}

#[test]
fn a_store_whose_disk_is_full_goes_on_when_there_is_room() {
    let test = "levels_full::a_store_whose_disk_is_full_goes_on_when_there_is_room";
    on_small_disk(test, "200M", on_a_full_disk);
}

/// The test on a disk of 200 MiB.
fn on_a_full_disk(disk: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let (pool, filler, mut model) = (folder.path().join("pool"), disk.join("filler"), Model::new());
    File::create(&filler).unwrap().write_all(&vec![1; 164 << 20]).unwrap();
    let levels = Levels::Folder(disk.join("levels"));
    let mut store = Store::create(&pool, &options().levels(levels.clone())).unwrap();
    let mut client = store.client();
    let refused = put_until_refused(&mut client, &mut model, 0..80_000).expect("the disk is full");
    assert!(refused.to_string().contains("levels"), "{refused}");
    compare(&store, &model);
    delete_some(&mut client, &mut model);
    compare(&store, &model);
    drop(client);
    if !matches!(refused, Error::LevelsStopped { .. }) {
        // Half of the room comes back while the store is open.
        File::options().write(true).open(&filler).unwrap().set_len(140 << 20).unwrap();
        let refused = put_until_refused(&mut store.client(), &mut model, 30_000..34_000);
        assert!(refused.is_none(), "{refused:?}");
        compare(&store, &model);
    }
    assert!(store.check(&|_, _| {}).unwrap().is_sound());
    drop(store);
    fs::remove_file(&filler).unwrap();
    let mut store = Store::open(&pool, &Options::new().levels(levels)).unwrap();
    compare(&store, &model);
    let refused = put_until_refused(&mut store.client(), &mut model, 34_000..40_000);
    assert!(refused.is_none(), "{refused:?}");
    store.compact().unwrap();
    compare(&store, &model);
    assert!(store.check(&|_, _| {}).unwrap().is_sound());
}
