//! Pools of a few zones, in which everything that holds room back shows at once.

use quipu::internals::Testing;
use quipu::{Client, Design, Error, Options, Stats, Store};
use quipu_medium::{Pages, Region};

const ZONE: u64 = 16 << 10;

fn options() -> Options {
    Options::new().zone_size(ZONE)
}

/// A pool of this many zones.
fn pool(zones: u64) -> (Region, Store) {
    for size in (zones * ZONE..).step_by(4096) {
        let region = Region::dram(size, Pages::Ordinary).unwrap();
        if let Ok(store) = Store::create_on(region.clone(), &options())
            && store.stats().zones >= zones
        {
            assert_eq!(store.stats().zones, zones);
            return (region, store);
        }
    }
    unreachable!("some size has so many zones")
}

#[test]
fn a_put_a_session_fills_segments_and_not_zones() {
    let (region, store) = pool(16);
    drop(store);
    for number in 0..200u64 {
        let store = Store::open_on(region.clone(), &options()).unwrap();
        let mut client = store.client();
        client.put(&number.to_le_bytes(), b"value").unwrap_or_else(|e| panic!("session {number}: {e}"));
        drop(client);
        if number % 2 == 0 {
            store.close().unwrap();
        }
    }
}

/// The debt of compaction, and its stalls of writers, can be seen; where there are none, nothing is counted.
#[test]
fn debt_and_stalls_are_metrics() {
    for design in [Design::QUIPU, Design::FLATSTORE_H, Design::FLATSTORE_PH, Design::VIPER] {
        let region = Region::dram(8 << 20, Pages::Ordinary).unwrap();
        let zone_size = if design == Design::VIPER { None } else { Some(ZONE) };
        let options = options().design(design).with(|options| options.zone_size = zone_size).cleaner(false);
        let store = Store::create_on(region, &options).unwrap();
        let mut client = store.client();
        (0..100u64).for_each(|key| client.put(&key.to_le_bytes(), &[0; 1000]).unwrap());
        let held_up = |stats: Stats| (stats.helped_writes, stats.stalled_writes, stats.stalled_ms);
        let calm = store.stats();
        assert_eq!((calm.owed_zones, held_up(calm)), (0, (0, 0, 0)), "{design}");
        assert_eq!(calm.goal_zones > 0, design != Design::VIPER, "{design}");
        // Garbage enough: writers take steps ahead of their writes, and have no need to wait.
        for round in 0..100 {
            (0..100u64).for_each(|key| client.put(&key.to_le_bytes(), &[round; 1000]).unwrap());
        }
        let busy = store.stats();
        assert!(busy.helped_writes > 0 && busy.freed_segments > 0, "{design}: {busy:?}");
        // And in the end none.
        let full = (100u64..).find(|key| client.put(&key.to_le_bytes(), &[1; 1000]).is_err());
        let full = (full, store.stats());
        assert!(full.1.stalled_writes > busy.stalled_writes, "{design}: {full:?}");
        assert_eq!(full.1.owed_zones > 0, design != Design::VIPER, "{design}: {full:?}");
        assert!(full.1.owed_zones <= full.1.goal_zones, "{design}: {full:?}");
    }
}

#[test]
fn what_clients_leave_behind_is_cleaned() {
    let (_, store) = pool(16);
    for round in 0..2000u64 {
        let mut client = store.client();
        for key in 0..5u64 {
            client
                .put(&key.to_le_bytes(), &[round as u8; 3000])
                .unwrap_or_else(|e| panic!("round {round}: {e}"));
        }
    }
}

#[test]
fn keys_that_come_and_go_leave_nothing() {
    for zones in 3..12 {
        let (_, store) = pool(zones);
        let mut client = store.client();
        for number in 0..20_000u64 {
            client
                .put(&number.to_le_bytes(), &[7; 50])
                .unwrap_or_else(|e| panic!("{zones} zones, put {number}: {e} {:?}", store.stats()));
            client
                .delete(&number.to_le_bytes())
                .unwrap_or_else(|e| panic!("{zones} zones, delete {number}: {e}"));
        }
    }
}

#[test]
fn one_key_is_written_for_ever() {
    for zones in 3..9 {
        let (_, store) = pool(zones);
        let mut client = store.client();
        for number in 0..20_000u64 {
            client
                .put(b"key", &[number as u8; 500])
                .unwrap_or_else(|e| panic!("{zones} zones, round {number}: {e}"));
        }
        for number in 0..20_000u64 {
            client
                .update(b"key", |_| Some([number as u8; 500]))
                .unwrap_or_else(|e| panic!("{zones} zones, update {number}: {e}"));
        }
        for number in 0..1_000u64 {
            let pairs: Vec<_> = (0..20u64).map(|i| (i.to_le_bytes(), [number as u8; 300])).collect();
            client.put_many(&pairs).unwrap_or_else(|e| panic!("{zones} zones, batch {number}: {e}"));
        }
    }
}

fn fill(client: &mut Client, thread: u64, round: u64) -> u64 {
    for number in 0.. {
        match client.put(&[thread, number].map(u64::to_le_bytes).concat(), &[round as u8; 200]) {
            Ok(()) => {}
            Err(Error::PoolFull { .. }) => return number,
            Err(error) => panic!("{error}"),
        }
    }
    0
}

#[test]
fn a_pool_is_filled_and_emptied_for_ever() {
    for zones in [3, 4, 5, 8, 16] {
        for threads in 1..=4u64 {
            let (_, store) = pool(zones);
            for round in 0..30 {
                // All fill at once, then all empty.
                let counts: Vec<u64> = std::thread::scope(|scope| {
                    let store = &store;
                    let spawned: Vec<_> = (0..threads).map(|thread| scope.spawn(move || {
                        let mut client = store.client();
                        let count = fill(&mut client, thread, round);
                        for number in 0..count {
                            let key = [thread, number].map(u64::to_le_bytes).concat();
                            client.delete(&key).unwrap_or_else(|e| panic!("{zones} zones, {threads} threads, round {round}: delete {number} of {count}: {e}"));
                        }
                        count
                    })).collect();
                    spawned.into_iter().map(|t| t.join().unwrap()).collect()
                });
                let all = counts.iter().sum::<u64>();
                assert!(all >= 60, "{zones} zones, {threads} threads, round {round}: {all} records");
            }
        }
    }
}

#[test]
fn counters_agree_with_a_recount() {
    for (threads, compactors) in [(1, 1), (4, 1), (4, 2), (7, 3)] {
        let (region, store) = pool(40);
        store.close().unwrap();
        let testing = Testing { compactors: Some(compactors), ..Testing::default() };
        // Writers take all steps: a cleaner's may come between the counts.
        let options = options().cleaner(false).with(|options| options.testing = testing);
        let mut store = Store::open_on(region.clone(), &options).unwrap();
        std::thread::scope(|scope| {
            let store = &store;
            for thread in 0..threads as u64 {
                scope.spawn(move || {
                    let mut client = store.client();
                    for round in 0..8_000u64 {
                        let key = ((round * 7 + thread * 3) % 300).to_le_bytes();
                        let value = vec![round as u8; 100 + (round % 7) as usize * 90];
                        let outcome = match (round * 31 + thread) % 11 {
                            0 | 1 => client.delete(&key),
                            2 => client.remove(&key).map(|_| ()),
                            3 => client.update(&key, |_| Some(&value)),
                            4 => client.put_many(&[
                                (key, &value),
                                ((round % 300).to_le_bytes(), &value),
                                (key, &value),
                            ]),
                            5 if round % 100 == 0 => {
                                client = store.client();
                                store.compact().map(|_| ())
                            }
                            _ => client.put(&key, &value),
                        };
                        match outcome {
                            Ok(()) | Err(Error::PoolFull { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                });
            }
        });
        // It ends what compaction has begun, and so does closing.
        assert!(store.check(&|_, _| {}).unwrap().is_sound());
        let counted = store.stats();
        // Closing seals what is open, and no record is given up. Nothing has a copy now, so recovery counts
        // what is there.
        store.close().unwrap();
        let store = Store::open_on(region, &options.verify(true)).unwrap();
        let recounted = store.stats();
        assert_eq!(counted.record_bytes, recounted.record_bytes, "{threads}");
        assert_eq!(counted.garbage_bytes, recounted.garbage_bytes, "{threads}");
        assert_eq!(counted.records, recounted.records);
    }
}

#[test]
fn runs_that_die_in_the_middle_of_compaction_do_not_use_the_reserve_up() {
    let key_of = |number: u64| number.to_le_bytes();
    for zones in [3, 4, 5, 6, 8, 12] {
        let (region, store) = pool(zones);
        let mut client = store.client();
        let mut keys = 0;
        while client.put(&key_of(keys), &[1; 200]).is_ok() {
            keys += 1;
        }
        drop(client);
        drop(store);
        let mut random = zones;
        for session in 0..2_000u64 {
            // Nothing is closed: what was open is sealed by the next recovery, wherever it ended.
            let store = Store::open_on(region.clone(), &options()).unwrap();
            let mut client = store.client();
            for _ in 0..session % 13 {
                random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let key = key_of((random >> 33) % keys);
                if (random >> 60) % 2 == 0 {
                    client.delete(&key).unwrap_or_else(|e| {
                        panic!("{zones} zones, session {session}: {e} {:?}", store.stats())
                    });
                } else {
                    // The pool began full; there may be no room beside the tombstones.
                    let put = client.put(&key, &[session as u8; 200]);
                    assert!(matches!(put, Ok(()) | Err(Error::PoolFull { .. })), "{put:?}");
                }
            }
        }
        let store = Store::open_on(region.clone(), &options()).unwrap();
        let mut client = store.client();
        for number in 0..keys {
            client
                .delete(&key_of(number))
                .unwrap_or_else(|e| panic!("{zones} zones, {number}: {e} {:?}", store.stats()));
        }
        client.put(b"again", &[1; 200]).unwrap_or_else(|e| panic!("{zones} zones: {e} {:?}", store.stats()));
    }
}

#[test]
fn a_client_that_rests_does_not_keep_all_tombstones() {
    let (_, store) = pool(32);
    let mut resting = store.client();
    resting.put(b"resting", b"1").unwrap();
    let mut client = store.client();
    for number in 0..100_000u64 {
        client
            .put(&number.to_le_bytes(), &[7; 50])
            .unwrap_or_else(|e| panic!("put {number}: {e} {:?}", store.stats()));
        client.delete(&number.to_le_bytes()).unwrap_or_else(|e| panic!("delete {number}: {e}"));
        if number.is_multiple_of(30_000) {
            // It finds its segment gone, and goes on.
            resting.put(b"resting", &number.to_le_bytes()).unwrap();
        }
    }
    assert_eq!(client.get(b"resting").unwrap(), Some(90_000u64.to_le_bytes().to_vec()));
    drop((resting, client));
    let mut store = store;
    assert!(store.check(&|_, _| {}).unwrap().is_sound());
}

/// Fills a pool with records of 240 bytes, which leave nothing of a segment unused, and returns how many
/// there are.
fn fill_exactly(client: &mut Client) -> u64 {
    (0..).find(|number: &u64| client.put(&number.to_le_bytes(), &[1; 208]).is_err()).unwrap()
}

/// A reader keeps victims from being free. The use of the last zone meanwhile must not be needed if the run
/// dies then.
#[test]
fn a_crash_under_a_reader_leaves_a_zone_to_move_records_to() {
    for zones in [3, 4, 6, 9] {
        let (region, store) = pool(zones);
        let keys = fill_exactly(&mut store.client());
        drop(store);
        let mut random = zones;
        for session in 0..25 {
            let store = Store::open_on(region.clone(), &options()).unwrap();
            let (reader, mut client) = (store.client(), store.client());
            client.delete(&0u64.to_le_bytes()).unwrap_or_else(|e| {
                panic!("{zones} zones, session {session}: {e} {:?} {:?}", store.stats(), store.recovery())
            });
            let _guard = reader.pin();
            for _ in 0..200 {
                random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let key = ((random >> 33) % keys).to_le_bytes();
                let done = match (random >> 60) % 4 {
                    0 => client.put(&key, &[session; 208]),
                    1 => client.put_for(&key, &[session; 200], std::time::Duration::ZERO),
                    _ => client.delete(&key),
                };
                if done.is_err() {
                    break;
                }
            }
        }
    }
}

/// A tombstone of a key that was not there has a segment of its own, with nothing to clean in the whole pool,
/// and the end of the run seals it.
#[test]
fn whoever_deletes_little_in_each_session_can_go_on() {
    for (zones, is_closed) in [3, 4, 8, 100].into_iter().flat_map(|zones| [(zones, true), (zones, false)]) {
        let (region, mut store) = pool(zones);
        let keys = fill_exactly(&mut store.client());
        for session in 0..40u64 {
            if is_closed {
                store.close().unwrap();
            } else {
                drop(store);
            }
            store = Store::open_on(region.clone(), &options()).unwrap();
            let mut client = store.client();
            client.delete(&(keys + session).to_le_bytes()).unwrap_or_else(|e| {
                panic!("{zones} zones, closed: {is_closed}, session {session}: {e} {:?}", store.stats())
            });
        }
    }
}

#[test]
fn what_the_end_of_a_run_cuts_off_is_filled_by_the_next() {
    let (region, mut store) = pool(3);
    let keys = fill_exactly(&mut store.client());
    (0..keys).for_each(|key| store.client().delete(&key.to_le_bytes()).unwrap());
    for key in 0..keys / 2 {
        store.close().unwrap();
        store = Store::open_on(region.clone(), &options()).unwrap();
        store.client().put(&key.to_le_bytes(), &[1; 208]).unwrap_or_else(|e| {
            panic!("{key} of {keys}: {e} {:?}", store.stats());
        });
    }
}

/// Zones that wait for a reader are of no use to a writer that needs none.
#[test]
fn what_needs_no_zone_does_not_wait_for_readers() {
    let (_, store) = pool(16);
    let mut client = store.client();
    let keys = fill_exactly(&mut client);
    let reader = store.client();
    let _guard = reader.pin();
    // Until something waits for the guard.
    while client.put(b"more", &[2; 208]).is_ok() {}
    let began = std::time::Instant::now();
    for key in (0..keys).take(20) {
        assert!(!client.put_if_absent(&key.to_le_bytes(), b"another").unwrap());
        assert!(client.remove(&key.to_le_bytes()).unwrap());
    }
    // Each that waits does so for 100 ms.
    assert!(began.elapsed() < std::time::Duration::from_secs(1), "{:?}", began.elapsed());
}
