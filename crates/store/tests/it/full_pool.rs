//! A pool that is full of large values, and a user who deletes until a put has room. Each refused put reports
//! how much is missing, and none of them cleans the pool for nothing.

use quipu::{Design, Error, Options, Store};
use quipu_medium::sim::{SimOptions, sched};
use quipu_medium::{Pages, Region};
use std::cell::Cell;

const LARGE: usize = 2 << 20;
const SMALL: u64 = 20_000;

fn small(number: u64) -> Vec<u8> {
    format!("small {number}").into_bytes()
}

#[test]
fn refused_puts_of_a_large_value_do_not_move_all_small_records_again_and_again() {
    for design in [Design::QUIPU, Design::FLATSTORE_M] {
        let region = Region::dram(64 << 20, Pages::Ordinary).expect("memory");
        let options = Options::new().design(design).cleaner(false);
        let store = Store::create_on(region, &options).expect("a pool");
        let mut client = store.client();
        for number in 0..SMALL {
            client.put(&small(number), &[1; 100]).expect("room");
        }
        let full = (0u64..).find_map(|number| client.put(&number.to_le_bytes(), &[2; LARGE]).err());
        let Some(Error::PoolFull { wanted, free, .. }) = full else { panic!("{full:?}") };
        assert!(wanted > free && wanted >= LARGE as u64, "{wanted} bytes are wanted and {free} free");
        assert_eq!(free, store.stats().free_bytes);
        let mut deleted = 0;
        while let Err(error) = client.put(b"one more", &[3; LARGE]) {
            assert!(matches!(error, Error::PoolFull { .. }), "{error}");
            client.delete(&small(deleted)).expect("deletions have a reserve");
            deleted += 1;
            if deleted.is_multiple_of(500) {
                client.delete(&(deleted / 500).to_le_bytes()).expect("deletions have a reserve");
            }
        }
        let moved = store.stats().moved_records;
        // Cleaning once for nothing moves most of them; only the put that has room at last may have to clean.
        assert!(moved <= SMALL, "{design}: {moved} records were moved for {deleted} refused puts");
    }
}

/// A pool of some zones, with a clock that stands still.
fn simulated(design: Design) -> Store {
    let region = Region::sim(SimOptions { len: 2 << 20, ..SimOptions::default() });
    Store::create_on(region, &Options::new().design(design).zone_size(64 << 10)).expect("a pool")
}

/// Nothing has superseded them, but no place is out of reach for their sake.
#[test]
fn records_that_have_expired_make_room_for_a_large_value() {
    for design in [Design::QUIPU, Design::FLATSTORE_M] {
        let store = simulated(design);
        let sim = store.region().simulator().expect("simulated");
        let mut client = store.client();
        let until = sim.now() + 1000;
        let full =
            (0u64..).find_map(|number| client.put_until(&number.to_le_bytes(), &[1; 8000], until).err());
        assert!(matches!(full, Some(Error::PoolFull { .. })), "{full:?}");
        let refused = client.put(b"large", &[2; 1 << 20]);
        assert!(matches!(refused, Err(Error::PoolFull { .. })), "{refused:?}");
        sim.set_now(until + 1);
        client.put(b"large", &[2; 1 << 20]).expect("all others have expired");
    }
}

/// The zones of a value that was deleted are free when the readers of that moment have left: a put that needs
/// them waits.
#[test]
fn zones_that_a_reader_keeps_for_a_moment_are_waited_for() {
    for (design, seed) in [Design::QUIPU, Design::FLATSTORE_M].into_iter().flat_map(|it| [(it, 1), (it, 2)]) {
        let store = simulated(design);
        let (mut client, reader) = (store.client(), store.client());
        let full = (0u64..).find_map(|number| client.put(&number.to_le_bytes(), &[1; 512 << 10]).err());
        assert!(matches!(full, Some(Error::PoolFull { .. })), "{full:?}");
        let stage = Cell::new(0);
        let wait_for = |wanted| {
            while stage.get() < wanted {
                sched::spin();
            }
        };
        let tasks: Vec<Box<dyn FnOnce() + '_>> = vec![
            Box::new(|| {
                let guard = reader.pin();
                stage.set(1);
                wait_for(2);
                (0..500).for_each(|_| sched::spin());
                drop(guard);
            }),
            Box::new(|| {
                wait_for(1);
                client.delete(&0u64.to_le_bytes()).expect("deletions have a reserve");
                stage.set(2);
                client.put(b"large", &[2; 512 << 10]).expect("the reader leaves soon");
            }),
        ];
        sched::run(seed, tasks).expect("nobody waits for ever");
    }
}

/// Records lose their hints when they are moved, so there is more room than they take.
#[test]
fn a_large_value_has_the_room_that_hints_took() {
    let region = Region::dram(16 << 20, Pages::Ordinary).expect("memory");
    let options =
        Options::new().design(Design::FLATSTORE_M).cleaner(false).set("shortcut", "on").expect("a setting");
    let store = Store::create_on(region, &options).expect("a pool");
    let mut client = store.client();
    for number in 0..200_000u64 {
        client.put(&number.to_be_bytes(), &[1; 8]).expect("room");
    }
    for number in (0..200_000u64).step_by(30) {
        client.put(&number.to_be_bytes(), &[2; 8]).expect("room");
    }
    client.put(b"large", &vec![3; 7_700_000]).expect("what hints took is room");
}
