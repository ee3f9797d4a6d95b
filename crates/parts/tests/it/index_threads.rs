//! The hash index under several threads: a present key is always found, an iteration sees it exactly once,
//! and per key reads never go back, whatever splits and displacements happen meanwhile.

use crate::shared::mix as numbers;

use crate::shared::keyed::ByHash;
use numbers::mix;
use quipu_parts::epoch::{Collector, Guard};
use quipu_parts::index::hash::{Cursor, HashIndex, HashIndexSettings};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const VERSIONS: u64 = 1 << 24;

fn key_of(reference: u64) -> u64 {
    reference / VERSIONS
}

fn version_of(reference: u64) -> u64 {
    reference % VERSIONS
}

fn hash_of(key: u64) -> u64 {
    mix(key)
}

/// Hashes that differ in few bits, so that there is overflow as well.
fn crowded_hash_of(key: u64) -> u64 {
    mix(key % 300) & 0x0000_FFFF_FFFF_FFFF | mix(key % 7) & 0xFFFF_0000_0000_0000
}

fn get(index: &HashIndex, guard: &Guard<'_>, hash_of: fn(u64) -> u64, key: u64) -> Option<u64> {
    index.get(guard, hash_of(key), |reference| key_of(reference) == key)
}

const RESIDENTS: u64 = 300;
const VISITORS: u64 = 6_000;

/// Residents stay (one writer replaces them with rising versions) while visitors come and go, which makes
/// segments split and words move; readers look for residents all the time.
fn residents_are_always_found(settings: HashIndexSettings, hash_of: fn(u64) -> u64, rounds: u64) {
    for round in 0..rounds {
        let collector = Collector::new();
        let index = HashIndex::new(settings);
        let rehash = |reference: u64| hash_of(key_of(reference));
        let acknowledged: Vec<AtomicU64> = (0..RESIDENTS).map(|_| AtomicU64::new(1)).collect();
        {
            let participant = collector.register();
            for key in 0..RESIDENTS {
                index.insert(&participant.pin(), hash_of(key), key * VERSIONS + 1, &rehash);
            }
        }
        let finished = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for reader in 0..2u64 {
                let participant = collector.register();
                let (index, finished, acknowledged) = (&index, &finished, &acknowledged);
                scope.spawn(move || {
                    let mut turn = reader;
                    while !finished.load(Ordering::Relaxed) {
                        let guard = participant.pin();
                        turn += 1;
                        let key = mix(turn) % RESIDENTS;
                        let least = acknowledged[key as usize].load(Ordering::Acquire);
                        let found = get(index, &guard, hash_of, key);
                        let seen =
                            version_of(found.unwrap_or_else(|| panic!("lost key {key}, round {round}")));
                        assert!(seen >= least, "key {key} went back from version {least} to {seen}");
                        assert_eq!(get(index, &guard, hash_of, (1 << 20) + turn % 1000), None);
                    }
                });
            }
            let replacer = collector.register();
            let (index, finished, acknowledged) = (&index, &finished, &acknowledged);
            scope.spawn(move || {
                let mut turn = 0u64;
                while !finished.load(Ordering::Relaxed) {
                    turn += 1;
                    let key = mix(turn << 1) % RESIDENTS;
                    let version = acknowledged[key as usize].load(Ordering::Relaxed);
                    let old = key * VERSIONS + version;
                    assert!(
                        index.replace(&replacer.pin(), hash_of(key), old, old + 1),
                        "key {key} not replaced"
                    );
                    acknowledged[key as usize].store(version + 1, Ordering::Release);
                }
            });
            let walker = collector.register();
            scope.spawn(move || {
                while !finished.load(Ordering::Relaxed) {
                    let guard = walker.pin();
                    let (mut cursor, mut references) = (Cursor::default(), Vec::new());
                    while index.next_batch(&guard, &mut cursor, &mut references) {}
                    let mut seen: HashMap<u64, u64> = HashMap::new();
                    for reference in references {
                        *seen.entry(key_of(reference)).or_default() += 1;
                    }
                    assert!(
                        (0..RESIDENTS).all(|key| seen.get(&key) == Some(&1)),
                        "a walk missed or repeated a key"
                    );
                }
            });
            let visitors = collector.register();
            for key in RESIDENTS..RESIDENTS + VISITORS {
                let guard = visitors.pin();
                index.insert(&guard, hash_of(key), key * VERSIONS + 1, &rehash);
                if key % 3 == 0 {
                    assert!(index.remove(&guard, hash_of(key), key * VERSIONS + 1));
                }
            }
            finished.store(true, Ordering::Relaxed);
        });
        assert_eq!(index.len(), RESIDENTS + VISITORS - VISITORS.div_ceil(3));
        assert!(index.stats().splits > 0);
    }
}

#[test]
fn random_hashes() {
    residents_are_always_found(HashIndexSettings::tiny(), hash_of, 30);
    residents_are_always_found(HashIndexSettings { initial_depth: 1, bucket_bits: 4 }, hash_of, 30);
}

#[test]
fn crowded_hashes() {
    residents_are_always_found(HashIndexSettings::tiny(), crowded_hash_of, 4);
}

/// Several writers of different keys fill, empty and refill the same segments.
#[test]
fn writers_of_different_keys() {
    let collector = Collector::new();
    let index = HashIndex::new(HashIndexSettings::tiny());
    let rehash = |reference: u64| hash_of(key_of(reference));
    const KEYS: u64 = 20_000;
    std::thread::scope(|scope| {
        for writer in 0..4u64 {
            let participant = collector.register();
            let index = &index;
            scope.spawn(move || {
                let own = || (0..KEYS).map(|n| n * 4 + writer);
                for key in own() {
                    index.insert(&participant.pin(), hash_of(key), key * VERSIONS + 1, &rehash);
                }
                for key in own() {
                    let guard = participant.pin();
                    let old = get(index, &guard, hash_of, key).expect("the key was inserted");
                    if key % 8 < 4 {
                        assert!(index.remove(&guard, hash_of(key), old));
                    } else {
                        assert!(index.replace(&guard, hash_of(key), old, old + 1));
                    }
                }
            });
        }
    });
    let guard_owner = collector.register();
    let guard = guard_owner.pin();
    for key in 0..KEYS * 4 {
        let expected = (key % 8 >= 4).then_some(key * VERSIONS + 2);
        assert_eq!(get(&index, &guard, hash_of, key), expected);
    }
    assert_eq!(index.len(), KEYS * 2);
}
