//! "Full" is a fact: a write that others hold room back from waits for them, and says who they are.

use quipu::{Client, Design, Error, Holding, Levels, Options, Stats, Store};
use quipu_medium::{Pages, Region};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// As long as a wait may be for one that is not waited for at all, on a busy machine.
const AT_ONCE: Duration = Duration::from_secs(5);

fn options(design: Design) -> Options {
    Options::new().design(design).levels(Levels::Off)
}

fn store_with(options: &Options, mib: u64) -> Store {
    let region = Region::dram(mib << 20, Pages::Ordinary).expect("memory");
    Store::create_on(region, options).expect("a pool")
}

/// Overwrites some keys until a put fails, or until this is more than the pool holds many times.
fn overwrite(client: &mut Client, rounds: u64) -> Result<(), Error> {
    (0..rounds).try_for_each(|round| {
        (0..500u64).try_for_each(|key| client.put(&key.to_le_bytes(), &[round as u8; 1000]))
    })
}

fn all() -> impl Iterator<Item = Design> {
    Design::ALL.iter().copied()
}

/// Nothing could make room, so nothing is waited for.
#[test]
fn a_pool_that_is_full_says_so_at_once() {
    for design in all() {
        let store = store_with(&options(design), 8);
        let mut client = store.client();
        let full = (0u64..).find_map(|key| client.put(&key.to_le_bytes(), &[1; 1000]).err());
        assert!(matches!(full, Some(Error::PoolFull { .. })), "{design}: {full:?}");
        let began = Instant::now();
        let again = client.put(b"another", &[1; 1000]);
        assert!(matches!(again, Err(Error::PoolFull { .. })), "{design}: {again:?}");
        assert!(began.elapsed() < AT_ONCE, "{design}: {:?}", began.elapsed());
    }
}

/// Holds a guard on another thread, in a store whose keys are written anew and anew meanwhile.
fn beside_a_guard(store: &Store, work: impl FnOnce(&mut Client, &(dyn Fn() + Sync))) {
    let (has_pinned, pinned) = mpsc::channel();
    let (drops, dropped) = mpsc::channel::<()>();
    let mut client = store.client();
    overwrite(&mut client, 1).expect("room");
    thread::scope(|scope| {
        let hold = move || {
            let reader = store.client();
            let guard = reader.pin();
            assert!(guard.get(&0u64.to_le_bytes()).expect("sound").is_some());
            has_pinned.send(()).expect("somebody waits");
            // It ends as well if the test fails.
            let _ = dropped.recv();
            assert!(guard.get(&0u64.to_le_bytes()).expect("sound").is_some());
        };
        thread::Builder::new().name("holder".into()).spawn_scoped(scope, hold).expect("a thread");
        pinned.recv().expect("it pins");
        work(&mut client, &move || drops.send(()).expect("it waits"));
    });
}

#[test]
fn a_guard_that_holds_room_back_is_named() {
    for design in all().filter(|design| ![Design::VIPER, Design::VIPER_PACMAN].contains(design)) {
        let wait = Duration::from_millis(200);
        let store = store_with(&options(design).wait_for_room(wait), 4);
        beside_a_guard(&store, |client, drop_it| {
            let refused = overwrite(client, 40).expect_err("nothing is freed");
            let text = refused.to_string();
            let Error::RoomHeld { waited, holder, .. } = refused else { panic!("{design}: {text}") };
            assert!(waited >= wait && waited < wait + AT_ONCE, "{design}: {text}");
            assert_eq!(
                (holder.what, holder.thread_name.as_deref()),
                (Holding::Guard, Some("holder")),
                "{text}"
            );
            assert!(holder.age.expect("known") >= wait, "{design}: {text}");
            assert!(store.stats().oldest_hold_ms >= 200, "{design}: {:?}", store.stats());
            drop_it();
            overwrite(client, 1).unwrap_or_else(|error| panic!("{design}: {error}"));
        });
        assert_eq!(store.stats().oldest_hold_ms, 0, "{design}");
    }
}

#[test]
fn a_guard_that_goes_in_time_is_waited_for() {
    for design in all() {
        let store = store_with(&options(design), 4);
        beside_a_guard(&store, |client, drop_it| {
            thread::scope(|scope| {
                scope.spawn(|| {
                    while store.stats().stalled_writes == 0 {
                        thread::sleep(Duration::from_millis(1));
                    }
                    thread::sleep(Duration::from_millis(300));
                    drop_it();
                });
                overwrite(client, 40).unwrap_or_else(|error| panic!("{design}: {error}"));
            });
        });
    }
}

/// It cannot go while its thread waits.
#[test]
fn a_guard_of_the_same_thread_is_not_waited_for() {
    for design in [Design::QUIPU, Design::NSTORE, Design::XP] {
        let store = store_with(&options(design), 4);
        let (mut client, reader) = (store.client(), store.client());
        let guard = reader.pin();
        let began = Instant::now();
        let refused = overwrite(&mut client, 40).expect_err("nothing is freed");
        assert!(
            matches!(&refused, Error::RoomHeld { holder, .. } if holder.what == Holding::Guard),
            "{refused}"
        );
        assert!(began.elapsed() < AT_ONCE, "{design}: {:?}", began.elapsed());
        drop(guard);
        overwrite(&mut client, 1).expect("the guard has gone");
    }
}

/// The zones in use.
fn used(stats: Stats) -> u64 {
    stats.zones - stats.free_zones
}

/// A snapshot holds what was in use when it was taken, and no more.
#[test]
fn a_snapshot_that_stays_holds_what_it_found() {
    let store = store_with(&options(Design::XP).wait_for_room(Duration::from_millis(300)), 8);
    let mut client = store.client();
    overwrite(&mut client, 1).expect("room");
    let (snapshot, before) = (store.snapshot().expect("xp has them"), used(store.stats()));
    let mut most = 0;
    for round in 0..60 {
        overwrite(&mut client, 1).unwrap_or_else(|error| panic!("round {round}: {error}"));
        most = most.max(used(store.stats()));
    }
    assert!(before < most, "{before} zones, and {most}");
    let guard = client.pin_at(&snapshot).expect("its store's");
    for key in 0..500u64 {
        assert_eq!(guard.get(&key.to_le_bytes()).expect("sound").as_deref(), Some(&[0; 1000][..]));
    }
}

/// What a snapshot needs leaves no room for what is there now.
#[test]
fn a_snapshot_that_holds_room_back_is_named() {
    let store = store_with(&options(Design::XP).wait_for_room(Duration::from_millis(200)), 4);
    let mut client = store.client();
    let keys = store.stats().fillable_bytes() * 7 / 10 / 1100;
    let mut round = |value: u8| (0..keys).try_for_each(|key| client.put(&key.to_le_bytes(), &[value; 1000]));
    round(1).expect("room");
    let snapshot = store.snapshot().expect("xp has them");
    let refused = round(2).expect_err("there is no room for both");
    assert!(
        matches!(&refused, Error::RoomHeld { holder, .. } if holder.what == Holding::Snapshot),
        "{refused}"
    );
    drop(snapshot);
    round(3).expect("the snapshot has gone");
}

/// Snapshots that overlap for ever stop nothing: each sees what was there when it was taken.
#[test]
fn snapshots_that_overlap_for_ever_stop_no_writer() {
    let store = store_with(&options(Design::XP), 4);
    let mut client = store.client();
    let mut held = Vec::new();
    for round in 0..400u64 {
        for number in round * 100..(round + 1) * 100 {
            let key = if number % 40 == 0 { 1_000_000 + number % 1_000 } else { number * 7 % 200 };
            let wrote = client.put(&key.to_be_bytes(), &[round as u8; 100]);
            wrote.unwrap_or_else(|error| panic!("put {number}: {error}"));
        }
        held.push(store.snapshot().expect("xp has them"));
        if held.len() > 3 {
            held.remove(0);
        }
    }
    assert!(store.stats().freed_segments > 0, "{:?}", store.stats());
}

/// Clients that scan again and again, of whom one is always at it.
#[test]
fn clients_that_scan_stop_no_writer() {
    let store = store_with(&options(Design::XP).zone_size(16 << 10), 4);
    let (stop, scans) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let client = store.client();
                while !stop.load(Ordering::Relaxed) {
                    assert!(client.pin().iter().count() < 5_000);
                    scans.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut client = store.client();
        let wrote = (0..60_000u64).try_for_each(|number| {
            let key = if number % 40 == 0 { 1_000_000 + number % 4_000 } else { number * 7 % 200 };
            client.put(&key.to_be_bytes(), &[number as u8; 100])
        });
        stop.store(true, Ordering::Relaxed);
        wrote.unwrap_or_else(|error| panic!("{error}"));
    });
    assert!(scans.into_inner() > 0);
}

/// A file to be cleaned waits for the readers of the moment when it was chosen. When they leave, no writer
/// tells the cleaner.
#[test]
fn a_cleaner_goes_on_once_readers_have_left_though_nobody_writes() {
    let store = store_with(&options(Design::NSTORE).set("gc-threshold", "20").expect("a setting"), 64);
    beside_a_guard(&store, |client, drop_it| {
        overwrite(client, 20).expect("room");
        // It has looked for work, and found only what waits.
        thread::sleep(Duration::from_millis(100));
        assert_eq!(store.stats().freed_segments, 0, "the reader may read all of them");
        drop_it();
        let began = Instant::now();
        while store.stats().freed_segments < 2 {
            assert!(began.elapsed() < AT_ONCE, "the cleaner sleeps");
            thread::sleep(Duration::from_millis(10));
        }
    });
}
