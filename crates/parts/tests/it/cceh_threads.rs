//! The CCEH index under several threads, real ones and those of the simulator's scheduler. While segments
//! split, a present key is always found, an iteration sees it exactly once, and per key reads never go back.

use crate::cceh::support;

use quipu_medium::sim::sched;
use quipu_parts::epoch::{Collector, Guard};
use quipu_parts::index::cceh::{CcehIndex, CcehSettings, Cursor, NodeMemory};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use support::{create, format, mix};

const VERSIONS: u64 = 1 << 24;

fn key_of(reference: u64) -> u64 {
    reference / VERSIONS
}

fn version_of(reference: u64) -> u64 {
    reference % VERSIONS
}

fn get<M: NodeMemory>(index: &CcehIndex<M>, guard: &Guard<'_>, key: u64) -> Option<u64> {
    index.get(guard, mix(key), |reference| key_of(reference) == key)
}

fn insert<M: NodeMemory>(index: &CcehIndex<M>, guard: &Guard<'_>, key: u64) {
    index.insert(guard, mix(key), key * VERSIONS + 1).expect("room for all");
}

const RESIDENTS: u64 = 300;
const VISITORS: u64 = 20_000;

/// Every resident stands in a walk exactly once.
fn walk<M: NodeMemory>(index: &CcehIndex<M>, guard: &Guard<'_>, residents: u64) {
    let (mut cursor, mut references) = (Cursor::default(), Vec::new());
    while index.next_batch(guard, &mut cursor, &mut references) {}
    let mut seen: HashMap<u64, u64> = HashMap::new();
    for (_, reference) in references {
        *seen.entry(key_of(reference)).or_default() += 1;
    }
    assert!((0..residents).all(|key| seen.get(&key) == Some(&1)), "a walk missed or repeated a key");
}

/// Residents stay (one writer replaces them with rising versions) while visitors come and go, which makes
/// segments split; readers look for residents all the time.
fn residents_are_always_found<M: NodeMemory>(index: CcehIndex<M>, visits: u64) {
    let collector = Collector::new();
    let acknowledged: Vec<AtomicU64> = (0..RESIDENTS).map(|_| AtomicU64::new(1)).collect();
    {
        let participant = collector.register();
        (0..RESIDENTS).for_each(|key| insert(&index, &participant.pin(), key));
    }
    let finished = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (index, finished, acknowledged) = (&index, &finished, &acknowledged);
        for reader in 0..2u64 {
            let participant = collector.register();
            scope.spawn(move || {
                let mut turn = reader;
                while !finished.load(Ordering::Relaxed) {
                    let guard = participant.pin();
                    turn += 1;
                    let key = mix(turn) % RESIDENTS;
                    let least = acknowledged[key as usize].load(Ordering::Acquire);
                    let seen =
                        version_of(get(index, &guard, key).unwrap_or_else(|| panic!("lost key {key}")));
                    assert!(seen >= least, "key {key} went back from version {least} to {seen}");
                    assert_eq!(get(index, &guard, (1 << 20) + turn % 1000), None);
                }
            });
        }
        let replacer = collector.register();
        scope.spawn(move || {
            let mut turn = 0u64;
            while !finished.load(Ordering::Relaxed) {
                turn += 1;
                let key = mix(turn << 1) % RESIDENTS;
                let version = acknowledged[key as usize].load(Ordering::Relaxed);
                let old = key * VERSIONS + version;
                assert!(index.replace(&replacer.pin(), mix(key), old, old + 1), "key {key} not replaced");
                acknowledged[key as usize].store(version + 1, Ordering::Release);
            }
        });
        let walker = collector.register();
        scope.spawn(move || {
            while !finished.load(Ordering::Relaxed) {
                walk(index, &walker.pin(), RESIDENTS);
            }
        });
        let visitors = collector.register();
        for key in RESIDENTS..RESIDENTS + visits {
            let guard = visitors.pin();
            insert(index, &guard, key);
            if key % 3 == 0 {
                assert!(index.remove(&guard, mix(key), key * VERSIONS + 1));
            }
        }
        finished.store(true, Ordering::Relaxed);
    });
    assert_eq!(index.len(), RESIDENTS + visits - visits.div_ceil(3));
    assert!(index.stats().splits > 0);
}

#[test]
fn real_threads_in_dram() {
    for round in 0..20 {
        let settings = match round % 2 {
            0 => CcehSettings::tiny(),
            _ => CcehSettings { initial_depth: 1, bucket_bits: 4, probe: 4 },
        };
        residents_are_always_found(CcehIndex::in_dram(settings), VISITORS);
    }
}

#[test]
fn real_threads_in_pm() {
    for seed in 0..3 {
        let space = format(2 << 20, seed);
        residents_are_always_found(create(&space, CcehSettings::tiny()).0, VISITORS / 3);
    }
}

/// Several writers of different keys fill, empty and refill the same segments.
#[test]
fn writers_of_different_keys() {
    let collector = Collector::new();
    let index = CcehIndex::in_dram(CcehSettings::tiny());
    const KEYS: u64 = 20_000;
    std::thread::scope(|scope| {
        for writer in 0..4u64 {
            let participant = collector.register();
            let index = &index;
            scope.spawn(move || {
                let own = || (0..KEYS).map(|n| n * 4 + writer);
                own().for_each(|key| insert(index, &participant.pin(), key));
                for key in own() {
                    let guard = participant.pin();
                    let old = get(index, &guard, key).expect("the key was inserted");
                    if key % 8 < 4 {
                        assert!(index.remove(&guard, mix(key), old));
                    } else {
                        assert!(index.replace(&guard, mix(key), old, old + 1));
                    }
                }
            });
        }
    });
    let participant = collector.register();
    let guard = participant.pin();
    for key in 0..KEYS * 4 {
        let expected = (key % 8 >= 4).then_some(key * VERSIONS + 2);
        assert_eq!(get(&index, &guard, key), expected);
    }
    assert_eq!(index.len(), KEYS * 2);
}

/// One schedule: two writers whose keys share segments, a reader of all keys, and a walk.
fn schedule<M: NodeMemory>(index: &CcehIndex<M>, seed: u64) {
    const KEYS: u64 = 12;
    const STEPS: u64 = 60;
    let collector = Collector::new();
    let setup = collector.register();
    (0..KEYS).for_each(|key| insert(index, &setup.pin(), key));
    let acknowledged: Vec<Cell<u64>> = (0..KEYS).map(|_| Cell::new(1)).collect();
    let (acknowledged, collector) = (&acknowledged, &collector);
    let writer = |task: u64| {
        let participant = collector.register();
        move || {
            for step in 0..STEPS {
                let guard = participant.pin();
                let (visitor, key) = (1000 + task * 1000 + step, (mix(step) % (KEYS / 2)) * 2 + task);
                insert(index, &guard, visitor);
                let version = acknowledged[key as usize].get() + 1;
                let matches = |reference| key_of(reference) == key;
                let old = index.upsert(&guard, mix(key), key * VERSIONS + version, matches);
                assert_eq!(old.expect("room"), Some(key * VERSIONS + version - 1));
                acknowledged[key as usize].set(version);
                if step % 2 == 0 {
                    assert!(index.remove(&guard, mix(visitor), visitor * VERSIONS + 1));
                }
            }
        }
    };
    let reader = || {
        let participant = collector.register();
        move || {
            for step in 0..2 * STEPS {
                let guard = participant.pin();
                let key = mix(step ^ seed) % KEYS;
                let least = acknowledged[key as usize].get();
                let seen = version_of(get(index, &guard, key).unwrap_or_else(|| panic!("lost key {key}")));
                assert!(seen >= least, "key {key} went back from version {least} to {seen}");
                assert_eq!(get(index, &guard, 500 + step), None);
            }
        }
    };
    let walker = || {
        let participant = collector.register();
        move || (0..3).for_each(|_| walk(index, &participant.pin(), KEYS))
    };
    let tasks: Vec<Box<dyn FnOnce() + '_>> =
        vec![Box::new(writer(0)), Box::new(writer(1)), Box::new(reader()), Box::new(walker())];
    sched::run(seed, tasks).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    assert_eq!(index.len(), KEYS + STEPS);
}

#[test]
fn scheduled_threads_in_dram() {
    for seed in 0..300 {
        schedule(&CcehIndex::in_dram(CcehSettings::tiny()), seed);
    }
}

#[test]
fn scheduled_threads_in_pm() {
    for seed in 0..60 {
        let space = format(256 << 10, seed);
        schedule(&create(&space, CcehSettings::tiny()).0, seed);
        space.audit().expect("sound");
    }
}
