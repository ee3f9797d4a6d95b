//! Queues in `xp`: the front of a table, below which scans look no more, and tombstones that go.

use crate::shared::cost;

use cost::cost_of;
use quipu::internals::Twin;
use quipu::internals::twin::leave_out;
use quipu::{Client, Design, Levels, Options, Store};
use quipu_medium::sim::{SimOptions, sched};
use quipu_medium::{Pages, Region};
use std::time::{Duration, Instant};

fn options() -> Options {
    Options::new().design(Design::XP).zone_size(64 << 10).levels(Levels::Off).recovery_threads(1)
}

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// The number of the first key.
fn first(client: &Client) -> Option<u64> {
    let guard = client.pin();
    let first = guard.first().expect("sound");
    first.map(|(key, _)| u64::from_be_bytes(key[..].try_into().expect("eight bytes")))
}

/// A store with a few live keys behind as many dead ones.
fn store_with_front(seed: u64) -> Store {
    let region = Region::sim(SimOptions { len: 4 << 20, seed, ..SimOptions::default() });
    let store = Store::create_on(region, &options().cleaner(false)).expect("a new pool");
    let mut client = store.client();
    (100..150).for_each(|number| client.put(&key(number), b"value").expect("room"));
    (100..140).for_each(|number| client.delete(&key(number)).expect("room"));
    drop(client);
    store
}

/// The first key after one was put below all others, in a schedule of this seed, while another client looked
/// for it.
fn first_in_the_end(seed: u64, twin: Option<Twin>) -> Option<u64> {
    let _left_out = leave_out(twin);
    let store = &store_with_front(seed);
    let look = move || {
        let client = store.client();
        (0..3).for_each(|_| assert!(first(&client).is_some_and(|first| first == 5 || first == 140)));
    };
    let put = move || {
        let mut client = store.client();
        // A look takes many steps more than a put.
        (0..seed % 60).for_each(|_| drop(client.get(&key(145)).expect("sound")));
        client.put(&key(5), b"value").expect("room");
    };
    sched::run(seed, vec![Box::new(look), Box::new(put)]).expect("both come to an end");
    first(&store.client())
}

#[test]
fn a_put_below_the_front_is_found() {
    for seed in 0..60 {
        assert_eq!(first_in_the_end(seed, None), Some(5), "seed {seed}");
    }
    for twin in [Twin::PutNotTold, Twin::FrontBeforePuts] {
        let is_lost = |seed: u64| first_in_the_end(seed, Some(twin)) != Some(5);
        assert!((0..200).any(is_lost), "{twin:?}: nobody noticed");
    }
}

#[test]
fn older_states_and_empty_tables_have_their_own_first_keys() {
    let store = store_with_front(1);
    let snapshot = store.snapshot().expect("a design with snapshots");
    let mut client = store.client();
    (140..150).for_each(|number| client.delete(&key(number)).expect("room"));
    for _ in 0..3 {
        assert_eq!(first(&client), None);
        let guard = client.pin_at(&snapshot).expect("its snapshot");
        assert_eq!(guard.first().expect("sound").map(|(key, _)| key.into_owned()), Some(key(140).to_vec()));
    }
    // Below the front, and at it; and keys that are shorter than what puts compare.
    for number in [120, 110, 109] {
        client.put(&key(number), b"value").expect("room");
        assert_eq!(first(&client), Some(number));
    }
    client.put(&[0], b"value").expect("room");
    let guard = client.pin();
    assert_eq!(guard.first().expect("sound").map(|(key, _)| key.into_owned()), Some(vec![0]));
}

/// Without the front, each look passes all tombstones; without the cleaner they stay.
#[test]
fn a_look_for_the_first_key_does_not_begin_anew() {
    const HELD: u64 = 10;
    let region = Region::sim(SimOptions { len: 4 << 20, ..SimOptions::default() });
    let store = Store::create_on(region, &options().cleaner(false)).expect("a new pool");
    let (mut client, mut reads) = (store.client(), 0);
    for number in 0..2_000 {
        client.put(&key(number), b"value").expect("room");
        let Some(gone) = number.checked_sub(HELD) else { continue };
        reads += cost_of(&store, || assert_eq!(first(&client), Some(gone))).reads;
        client.delete(&key(gone)).expect("room");
    }
    assert!(reads < 2_000 * 100, "{reads} reads for 2,000 looks");
}

/// A pool that has room for all of them: nobody needs what tombstones take, but scans pass over them.
fn tombstones_go(is_beside_snapshots: bool) {
    const ZONES: u64 = 16;
    let region = Region::dram(64 << 20, Pages::Ordinary).expect("memory");
    let store = Store::create_on(region, &options()).expect("a new pool");
    let (mut client, mut snapshot, begun) = (store.client(), None, Instant::now());
    for number in 0..40_000 {
        client.put(&key(number), &[7; 100]).expect("room");
        if let Some(gone) = number.checked_sub(10) {
            client.delete(&key(gone)).expect("room");
        }
        if is_beside_snapshots && number % 100 == 0 {
            // The one before goes when this one is there.
            snapshot = Some(store.snapshot().expect("it has them"));
        }
    }
    let used = || store.stats().zones - store.stats().free_zones;
    while used() > ZONES {
        assert!(begun.elapsed() < Duration::from_secs(60), "{} zones for ten keys", used());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(snapshot.is_some(), is_beside_snapshots);
}

#[test]
fn tombstones_go_though_there_is_room() {
    tombstones_go(false);
}

/// Scans take such, so there nearly always is one.
#[test]
fn tombstones_go_beside_snapshots_that_are_younger() {
    tombstones_go(true);
}
