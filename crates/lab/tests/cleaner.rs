//! Compaction on real threads: the store's own cleaner, and writers that help it.

use quipu::{Error, Options, Store, Testing, Twin};
use quipu_medium::{Pages, Region};

const ZONES: u64 = 1024;
const ZONE: u64 = 16 << 10;

/// Bytes of a value; with header and key a record has 256.
const VALUE: usize = 216;
const RECORD: u64 = 256;

fn options() -> Options {
    Options { zone_size: Some(ZONE), cleaner: true, ..Options::default() }
}

fn store(options: &Options) -> Store {
    Store::create_on(Region::dram((ZONES + 8) * ZONE, Pages::Ordinary).unwrap(), options).unwrap()
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
    for cleaner in [true, false] {
        let mut store = store(&Options { cleaner, ..options() });
        // 85 per cent of what puts may use.
        let keys = ZONES * ZONE / RECORD * 49 / 50 * 85 / 100;
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

#[test]
fn a_cleaner_that_panics_is_told_of() {
    let testing = Testing { twin: Some(Twin::CleanerPanics), ..Testing::default() };
    let store = store(&Options { testing, ..options() });
    let mut client = store.client();
    client.put(&key(0), &value(0, 0)).unwrap();
    // It is called, at the latest, when the pool has been written once over.
    let refused = (0..2 * ZONES * ZONE / RECORD).find_map(|number| {
        std::thread::yield_now();
        client.put(&key(1 + number % 64), &value(number, 1)).err()
    });
    assert!(matches!(refused, Some(Error::BackgroundFailed)), "{refused:?}");
    assert_eq!(client.get(&key(0)).unwrap(), Some(value(0, 0).to_vec()));
    assert!(matches!(client.delete(&key(0)), Err(Error::BackgroundFailed)));
}
