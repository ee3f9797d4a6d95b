//! The checkpoint of a clean close: when there is one, when it counts, and when it must not.

use quipu::internals::Testing;
use quipu::{Design, Error, MediumKind, Options, Store};
use quipu_lab::contract::{Contents, verify};
use quipu_medium::sim::SimOptions;
use quipu_medium::{Pages, Region};
use std::path::Path;

/// Zones are small and so is the index, so that its image is shorter than the segments.
fn options(design: Design) -> Options {
    let testing = Testing { tiny_index: true, ..Testing::default() };
    Options::new()
        .design(design)
        .zone_size(16 << 10)
        .recovery_threads(2)
        .with(|options| options.testing = testing)
}

/// Calls a test for each design whose close leaves a checkpoint.
fn each_design(test: impl Fn(Design)) {
    Design::ALL.iter().filter(|design| design.can().checkpoints).for_each(|design| test(*design));
}

fn dram(bytes: u64) -> Region {
    Region::dram(bytes, Pages::Ordinary).expect("memory")
}

/// Puts some keys, and overwrites and deletes some others, and keeps the books.
fn work(store: &Store, round: u64, expected: &mut Contents) {
    let mut client = store.client();
    for number in 0..1000u64 {
        let key = format!("key {}", (number * 7 + round * 300) % 3000).into_bytes();
        if (number + round) % 5 == 4 {
            client.delete(&key).expect("room");
            expected.remove(&key);
        } else {
            let value = vec![round as u8; 20 + number as usize % 90];
            client.put(&key, &value).expect("room");
            expected.insert(key, value);
        }
    }
}

#[test]
fn rounds_of_work_between_closes_are_all_there() {
    each_design(rounds_of_work);
}

fn rounds_of_work(design: Design) {
    let region = dram(4 << 20);
    let mut expected = Contents::new();
    let mut store = Store::create_on(region.clone(), &options(design)).expect("a new pool");
    for round in 0..12 {
        work(&store, round, &mut expected);
        // Every third time the store is not closed, every fourth time compacted before.
        if round % 4 == 3 {
            store.compact().expect("room");
        }
        let closed = round % 3 != 2;
        if closed {
            store.close().expect("closed");
        } else {
            drop(store);
        }
        store = Store::open_on(region.clone(), &options(design)).expect("opened");
        assert_eq!(
            (store.recovery().was_clean, store.recovery().from_checkpoint),
            (closed, closed),
            "{design} {round}"
        );
        let stats = store.stats();
        verify(&mut store, &expected);
        drop(store);
        // The same pool, scanned: nothing was changed, so it is still clean, and the counters are the same.
        let verifying = options(design).verify(true);
        store = Store::open_on(region.clone(), &verifying).expect("opened");
        let scanned = store.stats();
        assert!(!store.recovery().from_checkpoint);
        if closed {
            let counted = |stats: &quipu::Stats| (stats.records, stats.record_bytes, stats.garbage_bytes);
            assert_eq!(counted(&stats), counted(&scanned), "{design}, round {round}");
        }
        verify(&mut store, &expected);
    }
}

/// The state that a kill after one put leaves, on a file.
#[test]
fn after_one_put_the_checkpoint_counts_no_more() {
    each_design(after_one_put);
}

fn after_one_put(design: Design) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pool");
    // Nobody changes the pool while it is copied: a copy takes longer than the moment of a death.
    let options = options(design).size(4 << 20).medium(MediumKind::File).cleaner(false);
    let mut expected = Contents::new();
    let store = Store::create(&path, &options).expect("a new pool");
    work(&store, 0, &mut expected);
    store.close().expect("closed");

    let store = Store::open(&path, &options).expect("opened");
    assert!(store.recovery().from_checkpoint);
    store.client().put(b"one", b"put").expect("room");
    expected.insert(b"one".to_vec(), b"put".to_vec());
    // The file as it is while the store is open is what a killed process leaves.
    let left = std::fs::read(&path).expect("the file");
    drop(store);
    std::fs::write(&path, left).expect("the file");
    let mut store = Store::open(&path, &options).expect("recovered");
    assert!(!store.recovery().from_checkpoint && !store.recovery().was_clean);
    verify(&mut store, &expected);
    // And the next close leaves another.
    store.close().expect("closed");
    let mut store = Store::open(&path, &options).expect("opened");
    assert!(store.recovery().from_checkpoint);
    verify(&mut store, &expected);
}

fn bytes_of(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("the file")
}

#[test]
fn closing_a_store_that_changed_nothing_changes_nothing() {
    each_design(closing_unchanged);
}

fn closing_unchanged(design: Design) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pool");
    let options = options(design).size(4 << 20).medium(MediumKind::File);
    let mut expected = Contents::new();
    let store = Store::create(&path, &options).expect("a new pool");
    work(&store, 0, &mut expected);
    store.close().expect("closed");
    let before = bytes_of(&path);
    for verifies in [false, true, false] {
        let opening = options.clone().verify(verifies);
        let mut store = Store::open(&path, &opening).expect("opened");
        assert_eq!(store.recovery().from_checkpoint, !verifies);
        verify(&mut store, &expected);
        store.close().expect("closed");
        assert!(bytes_of(&path) == before);
    }
}

/// A pool without room for a checkpoint is closed all the same, and scanned at the next open.
#[test]
fn a_full_pool_closes_without_a_checkpoint() {
    each_design(a_full_pool);
}

fn a_full_pool(design: Design) {
    let region = dram(1 << 20);
    let store = Store::create_on(region.clone(), &options(design)).expect("a new pool");
    let mut client = store.client();
    let mut expected = Contents::new();
    // Many records, so that the index takes more than the zones that are kept in reserve.
    // Keys that have little in common.
    let key_of = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    for number in 0.. {
        if client.put(&key_of(number), &[1; 50]).is_err() {
            break;
        }
        expected.insert(key_of(number).to_vec(), vec![1; 50]);
    }
    drop(client);
    store.close().expect("closed");
    let mut store = Store::open_on(region.clone(), &options(design)).expect("opened");
    assert!(store.recovery().was_clean && !store.recovery().from_checkpoint);
    verify(&mut store, &expected);
    // Once there is room, there is one.
    let mut client = store.client();
    for number in (0..expected.len() as u64).step_by(2) {
        assert!(client.remove(&key_of(number)).expect("the reserve"));
        expected.remove(&key_of(number)[..]);
    }
    drop(client);
    store.compact().expect("room");
    store.close().expect("closed");
    let mut store = Store::open_on(region, &options(design)).expect("opened");
    assert!(store.recovery().from_checkpoint);
    verify(&mut store, &expected);
}

#[test]
fn a_full_disk_means_no_checkpoint() {
    each_design(a_full_disk);
}

fn a_full_disk(design: Design) {
    let region = Region::sim(SimOptions { len: 1 << 20, ..SimOptions::default() });
    let options = options(design).recovery_threads(1);
    let store = Store::create_on(region.clone(), &options).expect("a new pool");
    let mut expected = Contents::new();
    let mut client = store.client();
    for key in 0..300u32 {
        client.put(&key.to_le_bytes(), &[1; 50]).expect("room");
        expected.insert(key.to_le_bytes().to_vec(), vec![1; 50]);
    }
    drop(client);
    region.simulator().expect("simulated").fail_reserve_after(0);
    store.close().expect("closed");
    let mut store = Store::open_on(region, &options).expect("opened");
    assert!(store.recovery().was_clean && !store.recovery().from_checkpoint);
    verify(&mut store, &expected);
}

/// The zones that give their storage back are those that a checkpoint lies in.
#[test]
fn a_pool_that_was_trimmed_leaves_another_checkpoint() {
    each_design(|design| {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, options) = (folder.path().join("pool"), options(design).size(4 << 20));
        let mut expected = Contents::new();
        let store = Store::create(&path, &options).expect("a new pool");
        work(&store, 0, &mut expected);
        store.close().expect("closed");
        let mut store = Store::open(&path, &options).expect("a pool");
        assert!(store.recovery().from_checkpoint, "{design}");
        // `xp` keeps all storage that is free in so small a pool.
        let gives_back = store.trim().expect("no client") > 1 << 20;
        assert_eq!(gives_back, design != Design::XP, "{design}");
        store.close().expect("closed");
        let mut store = Store::open(&path, &options).expect("a pool");
        assert!(store.recovery().from_checkpoint, "{design}");
        verify(&mut store, &expected);
    });
}

/// The one place where these bytes stand in the pool.
fn place_of(region: &Region, bytes: &[u8]) -> u64 {
    let mut pool = vec![0; region.len() as usize];
    region.read_racing(0, &mut pool);
    let places: Vec<_> =
        pool.windows(bytes.len()).enumerate().filter(|(_, window)| *window == bytes).collect();
    let [(place, _)] = places[..] else { panic!("{} places", places.len()) };
    place as u64
}

/// A closed pool in which a bit of the key of a record has flipped.
fn with_a_damaged_key(design: Design, key: &[u8], expected: &mut Contents) -> Region {
    let region = dram(4 << 20);
    let store = Store::create_on(region.clone(), &options(design)).expect("a new pool");
    work(&store, 0, expected);
    store.client().put(key, b"its value").expect("room");
    store.close().expect("closed");
    // The image of the index may have the key as well, but not the value behind it.
    let place = place_of(&region, &[key, &b"its value"[..]].concat());
    region.write(place, &[key[0] ^ 1]);
    region
}

/// The image of the index is believed, so that a read is the first to see it.
#[test]
fn a_damaged_key_is_no_absent_one_where_the_index_keeps_keys_or_reads_are_proved() {
    each_design(|design| {
        let key = b"the key that is damaged";
        let region = with_a_damaged_key(design, key, &mut Contents::new());
        for verify_reads in [false, true] {
            let options = options(design).verify_reads(verify_reads);
            let store = Store::open_on(region.clone(), &options).expect("opened");
            assert!(store.recovery().from_checkpoint);
            let mut client = store.client();
            let keeps_keys = [Design::FLATSTORE_M, Design::XP].contains(&design);
            if verify_reads || keeps_keys {
                let is_told = |outcome: Result<(), Error>| matches!(outcome, Err(Error::Damaged(_)));
                assert!(is_told(client.get(key).map(drop)), "{design}");
                assert!(is_told(client.contains_key(key).map(drop)), "{design}");
                if keeps_keys {
                    assert!(is_told(client.put_if_absent(key, b"another").map(drop)), "{design}");
                }
            } else {
                assert_eq!(client.get(key).expect("nobody sees it"), None, "{design}");
            }
        }
    });
}

/// A scan would refuse the whole pool for the one record.
#[test]
fn a_read_that_met_damage_takes_no_checkpoint_away() {
    each_design(|design| {
        let key = b"the key that is damaged";
        let region = with_a_damaged_key(design, key, &mut Contents::new());
        let options = options(design).verify_reads(true);
        for _ in 0..2 {
            let store = Store::open_on(region.clone(), &options).expect("opened");
            assert!(store.recovery().from_checkpoint, "{design}");
            let mut client = store.client();
            client.put(b"another", b"value").expect("room");
            assert!(matches!(client.get(key), Err(Error::Damaged(_))), "{design}");
            assert_eq!(client.get(b"another").expect("sound"), Some(b"value".to_vec()));
            drop(client);
            store.close().expect("closed");
        }
    });
}
