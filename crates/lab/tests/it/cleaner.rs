//! Compaction on real threads: the store's own cleaner, and writers that help it.

use quipu::internals::twin::leave_out;
use quipu::internals::{Testing, Twin};
use quipu::{Client, Design, Error, Levels, Options, Store};
use quipu_medium::{MediumKind, Pages, Region};
use quipu_parts::space::Space;
use std::thread;
use std::time::Duration;

const ZONES: u64 = 1024;
const ZONE: u64 = 16 << 10;

/// Bytes of a value; with header and key a record has 256.
const VALUE: usize = 216;
const RECORD: u64 = 256;

fn options() -> Options {
    Options::new().zone_size(ZONE).cleaner(true)
}

fn store(options: &Options) -> Store {
    store_of(ZONES, options)
}

fn store_of(zones: u64, options: &Options) -> Store {
    Store::create_on(Region::dram((zones + 8) * ZONE, Pages::Ordinary).unwrap(), options).unwrap()
}

/// Options for a pool in which so many may compact at a time.
fn compacted_by(compactors: u32) -> Options {
    let testing = Testing { compactors: Some(compactors), ..Testing::default() };
    options().with(|options| options.testing = testing)
}

fn key(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&number.to_le_bytes());
    key
}

fn value(number: u64, version: u64) -> [u8; VALUE] {
    let mut value = [version as u8; VALUE];
    value[..8].copy_from_slice(&(number << 32 | version).to_le_bytes());
    value
}

#[test]
fn nothing_is_lost_while_all_compact() {
    const WRITERS: u64 = 4;
    const ROUNDS: u64 = 12;
    // A record of the one takes whole lines.
    let designs = [(Design::QUIPU, options(), RECORD), (Design::NSTORE, compacted_by(4), RECORD + 64)];
    for (cleaner, (design, options, record)) in
        [true, false].into_iter().flat_map(|cleaner| designs.clone().map(|design| (cleaner, design)))
    {
        let mut store = store(&options.design(design).cleaner(cleaner));
        // 85 per cent of what puts may use.
        let keys = ZONES * ZONE / record * 49 / 50 * 85 / 100;
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let mut client = store.client();
                scope.spawn(move || {
                    for version in 0..=ROUNDS {
                        for number in (writer..keys).step_by(WRITERS as usize) {
                            // Some keys are written often and some seldom, and a few are gone at the end.
                            match (version, number % 8) {
                                (ROUNDS, 7) => client.delete(&key(number)).unwrap(),
                                (0 | ROUNDS, _) | (_, 0..3) => {
                                    client.put(&key(number), &value(number, version)).unwrap();
                                }
                                _ => {}
                            }
                        }
                    }
                });
            }
        });
        let stats = store.stats();
        assert!(stats.freed_segments > ZONES, "{} segments were cleaned", stats.freed_segments);
        let client = store.client();
        for number in 0..keys {
            let found = client.get(&key(number)).unwrap();
            let expected = (number % 8 != 7).then(|| value(number, ROUNDS).to_vec());
            assert_eq!(found, expected, "key {number}");
        }
        drop(client);
        let report = store.check(&|_, _| {}).unwrap();
        assert!(report.is_sound(), "{report:?}");
        store.close().unwrap();
    }
}

/// Puts keys of its own, with values up to so many bytes, until there is no room, then deletes them in
/// another order.
fn fill_and_empty(client: &mut Client, thread: u64, largest: usize) -> Result<(), Error> {
    let name = |number: u64| [thread, number].map(u64::to_le_bytes).concat();
    let mut count = 0;
    loop {
        match client.put(&name(count), &vec![1; 8 + (count as usize * 7919) % largest]) {
            Ok(()) => count += 1,
            Err(Error::PoolFull { .. }) => break,
            Err(error) => return Err(error),
        }
    }
    for number in 0..count {
        let number = if count.is_multiple_of(7919) { number } else { number * 7919 % count };
        client.delete(&name(number))?;
    }
    Ok(())
}

/// Two that compact must not come to a halt, each for want of the zone that the end of the other would give.
#[test]
fn a_full_pool_can_be_emptied_whoever_compacts() {
    let cases = [
        (16, 1, 200, 4),
        (16, 2, 200, 4),
        (16, 4, 200, 4),
        (16, 2, 3000, 12),
        (16, 4, 3000, 12),
        (200, 4, 200, 1),
    ];
    let designs = [Design::QUIPU, Design::NSTORE].into_iter();
    for (design, (zones, compactors, largest, rounds)) in
        designs.flat_map(|design| cases.map(|case| (design, case)))
    {
        let store = store_of(zones, &compacted_by(compactors).design(design));
        for round in 0..rounds {
            std::thread::scope(|scope| {
                for thread in 0..4 {
                    let mut client = store.client();
                    scope.spawn(move || {
                        fill_and_empty(&mut client, thread, largest).unwrap_or_else(|error| {
                            panic!(
                                "{design}, {zones} zones, {compactors} compactors, values up to {largest} bytes, \
                                 round {round}: {error}"
                            )
                        });
                    });
                }
            });
        }
    }
}

/// Deletes of keys that are not there cost a record each, and may use up all but what is kept for moving.
/// That is enough.
#[test]
fn deletes_of_absent_keys_do_not_fill_a_pool_for_ever() {
    delete_absent_keys(0, 8_000);
}

#[test]
#[ignore = "a quarter of a million deletes: cargo test --release -p quipu-lab --test it cleaner:: -- --ignored"]
fn many_deletes_of_absent_keys_do_not_fill_a_pool_for_ever() {
    (0..2).for_each(|seed| delete_absent_keys(seed, 30_000));
}

fn delete_absent_keys(seed: u64, deletes: u64) {
    const ABSENT: u64 = 94;
    let store = store(&options());
    let mut client = store.client();
    let count = (0..).find(|number| client.put(&key(*number), &value(*number, 0)).is_err()).unwrap();
    drop(client);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let mut client = store.client();
            scope.spawn(move || {
                let mut random = seed * 100 + thread + 1;
                for number in 0..deletes {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let there = key((number * 61 + thread * 15) % count);
                    let absent = key(count + number * 4 + thread);
                    let key = if (random >> 33) % 100 < ABSENT { absent } else { there };
                    match client.delete(&key) {
                        Ok(()) => {}
                        Err(Error::PoolFull { .. }) => break,
                        Err(error) => panic!("delete {number}: {error}"),
                    }
                }
            });
        }
    });
    store.compact().unwrap();
    store.client().put(b"room", b"for more").unwrap();
}

/// The zones of large values that have expired, but whose segment is not cleaned to its end, are no leak.
#[test]
fn a_check_between_two_steps_finds_nothing_wrong() {
    let mut store = store_of(64, &compacted_by(1).cleaner(false));
    let mut number = 0u64;
    for round in 0..60u64 {
        let mut client = store.client();
        let name = [1, round].map(u64::to_le_bytes).concat();
        match client.put_for(&name, &[3; 5000], Duration::from_millis(1)) {
            Ok(()) | Err(Error::PoolFull { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        for _ in 0..40 + round % 37 {
            number += 1;
            client.put(&key(number % 1500), &value(number, 1)).unwrap();
        }
        drop(client);
        let report = store.check(&|_, _| {}).unwrap();
        assert!(report.is_sound(), "round {round}: {report:?}");
    }
}

/// A call may wake the cleaner while it is told to leave.
#[test]
fn a_cleaner_leaves_while_clients_call_it() {
    let mut store = store_of(64, &options());
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2u64 {
            let (mut client, stop) = (store.client(), &stop);
            scope.spawn(move || {
                for number in 0u64.. {
                    if stop.load(std::sync::atomic::Ordering::Relaxed) {
                        break;
                    }
                    client.put(&key((thread << 32) | (number % 1000)), &value(number, 1)).unwrap();
                }
            });
        }
        for _ in 0..3000 {
            assert!(matches!(store.check(&|_, _| {}), Err(Error::ClientsOpen { clients: 2 })));
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

/// On a file, raising the clock's ceiling waits for the device. It is raised when half of a block is used up,
/// by the cleaner if there is one.
#[test]
fn on_a_file_the_clock_goes_on_before_a_put_needs_it() {
    let folder = tempfile::tempdir().unwrap();
    for cleaner in [true, false] {
        let testing = Testing { clock_block: Some(4096), handful: Some(4), ..Testing::default() };
        let file = options()
            .size(4 << 20)
            .medium(MediumKind::File)
            .cleaner(cleaner)
            .with(|options| options.testing = testing);
        let store = Store::create(folder.path().join(cleaner.to_string()), &file).unwrap();
        let ceiling = || Space::probe(store.region()).unwrap().clock_ceiling.get();
        let mut client = store.client();
        client.put(&key(0), b"begins the run").unwrap();
        let first = ceiling();
        (0..3000).for_each(|number| client.put(&key(number % 64), b"").unwrap());
        let begun = std::time::Instant::now();
        while ceiling() == first {
            assert!(begun.elapsed() < Duration::from_secs(10), "with 1000 numbers left nobody has raised it");
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_cleaner_that_panics_is_told_of() {
    let region = Region::dram((ZONES + 8) * ZONE, Pages::Ordinary).unwrap();
    let store = Store::create_on(region.clone(), &options().cleaner(false)).unwrap();
    store.client().put(&key(0), &value(0, 0)).unwrap();
    store.close().unwrap();
    // From here on it may panic at any time, since a cleaner looks around when it starts.
    let _left_out = leave_out(Some(Twin::CleanerPanics));
    let store = Store::open_on(region, &options()).unwrap();
    let mut client = store.client();
    // It is called, at the latest, when the pool has been written once over; and then it takes a while to say
    // where it panicked, on a machine that may be busy.
    let begun = std::time::Instant::now();
    let mut writes = (0..).take_while(|number| {
        *number < 2 * ZONES * ZONE / RECORD || begun.elapsed() < std::time::Duration::from_secs(60)
    });
    let refused = writes.find_map(|number| {
        std::thread::yield_now();
        client.put(&key(1 + number % 64), &value(number, 1)).err()
    });
    assert!(matches!(refused, Some(Error::BackgroundFailed)), "{refused:?}");
    assert_eq!(client.get(&key(0)).unwrap(), Some(value(0, 0).to_vec()));
    assert!(matches!(client.delete(&key(0)), Err(Error::BackgroundFailed)));
}

/// The cleaner, and whoever helps, stands still for three seconds in the middle of a step.
#[test]
fn a_cleaner_that_stands_still_is_waited_for() {
    thread::scope(|scope| {
        for design in Design::ALL {
            scope.spawn(move || {
                let _left_out = leave_out(Some(Twin::StepStandsStill));
                let options = Options::new().design(*design).levels(Levels::Off).cleaner(true);
                // Each stands still once.
                let options = options.workers(Design::ALL.len());
                let region = Region::dram(4 << 20, Pages::Ordinary).expect("memory");
                let store = Store::create_on(region, &options).expect("a pool");
                let mut client = store.client();
                for round in 0..20 {
                    for key in 0..500u64 {
                        let wrote = client.put(&key.to_le_bytes(), &[round; 1000]);
                        wrote.unwrap_or_else(|error| panic!("{design}, round {round}: {error}"));
                    }
                }
            });
        }
    });
}
