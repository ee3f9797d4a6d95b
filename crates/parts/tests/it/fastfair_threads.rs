//! The FAST&FAIR index under several threads, real ones and those of the simulator's scheduler. While entries
//! shift, nodes split and are removed, a present key is always found, a walk sees it exactly once and in
//! order, and per key reads never go back.

use crate::fastfair::support;

use crate::shared::keyed::ByKey;
use quipu_medium::sim::sched;
use quipu_parts::epoch::{Collector, Guard};
use quipu_parts::index::fastfair::{FastFairIndex, ScanCursor};
use quipu_parts::index::{BothWays, Hint, InOrder};
use std::cell::Cell;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use support::{Keys, create, format, mix, quick};

const VERSIONS: u64 = 1 << 24;

fn version_of(value: u64) -> u64 {
    value % VERSIONS
}

fn get(index: &FastFairIndex, guard: &Guard<'_>, keys: Keys, key: u64) -> Option<u64> {
    index.get(guard, &keys.of(key)).expect("sound")
}

fn insert(index: &FastFairIndex, guard: &Guard<'_>, keys: Keys, key: u64) {
    index.insert(guard, &keys.of(key), key * VERSIONS + 1).expect("room for all");
}

const RESIDENTS: u64 = 200;

/// Residents have numbers that are multiples of this, so that visitors stand between them.
const STRIDE: u64 = 50;

/// Every resident stands in a walk exactly once, and all keys in order, and so against it.
fn walk(index: &FastFairIndex, guard: &Guard<'_>, residents: u64) {
    let (mut cursor, mut last, mut seen) = (ScanCursor::default(), None::<Vec<u8>>, 0);
    let each = |key: &[u8], value: u64| {
        assert!(last.as_ref().is_none_or(|last| &last[..] < key), "a walk is not in order");
        last = Some(key.to_vec());
        let number = value / VERSIONS;
        seen += u64::from(number.is_multiple_of(STRIDE) && number / STRIDE < residents);
    };
    let mut each = each;
    while index.next_in_order(guard, &mut cursor, 10, &mut each).expect("sound") {}
    assert_eq!(seen, residents, "a walk missed a key");

    let (mut cursor, mut last, mut seen) = (index.scan_back_from(Bound::Unbounded), None::<Vec<u8>>, 0);
    let each = |key: &[u8], value: u64| {
        assert!(last.as_ref().is_none_or(|last| &last[..] > key), "a walk back is not in order");
        last = Some(key.to_vec());
        let number = value / VERSIONS;
        seen += u64::from(number.is_multiple_of(STRIDE) && number / STRIDE < residents);
    };
    let mut each = each;
    while index.prev_in_order(guard, &mut cursor, 10, &mut each).expect("sound") {}
    assert_eq!(seen, residents, "a walk back missed a key");
}

/// Residents stay (one writer replaces them with rising versions, and a compactor by the batch) while
/// visitors come and go, which makes nodes split and go; readers look for residents all the time.
fn residents_are_always_found(index: FastFairIndex, keys: Keys, visits: u64) {
    let collector = Collector::new();
    let acknowledged: Vec<AtomicU64> = (0..RESIDENTS).map(|_| AtomicU64::new(1)).collect();
    {
        let participant = collector.register();
        (0..RESIDENTS).for_each(|key| insert(&index, &participant.pin(), keys, key * STRIDE));
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
                    let found = get(index, &guard, keys, key * STRIDE);
                    let seen = version_of(found.unwrap_or_else(|| panic!("lost key {key}")));
                    assert!(seen >= least, "key {key} went back from version {least} to {seen}");
                }
            });
        }
        let replacer = collector.register();
        scope.spawn(move || {
            let (mut turn, mut batch) = (0u64, Vec::new());
            while !finished.load(Ordering::Relaxed) {
                turn += 1;
                let guard = replacer.pin();
                let key = mix(turn << 1) % RESIDENTS;
                let version = acknowledged[key as usize].load(Ordering::Relaxed);
                let (bytes, old) = (keys.of(key * STRIDE), key * STRIDE * VERSIONS + version);
                let hint = index.locate(&guard, &bytes).expect("sound");
                if turn % 2 == 0 {
                    let at = index.replace_at_unflushed(&guard, hint, old, old + 1);
                    let by_key = || index.replace_unflushed(&guard, &bytes, old, old + 1).expect("sound");
                    batch.push(at.or_else(by_key).expect("nobody else replaces it"));
                } else {
                    let at = index.replace_at(&guard, hint, old, old + 1);
                    assert!(at || index.replace(&guard, &bytes, old, old + 1).expect("sound"));
                }
                acknowledged[key as usize].store(version + 1, Ordering::Release);
                // Neither a stale nor a forged hint finds what is not there.
                assert!(!index.replace_at(&guard, Hint::from_bits(mix(turn)), old, old));
                if batch.len() == 32 {
                    index.persist_all(batch.drain(..));
                }
            }
            index.persist_all(batch);
        });
        let walker = collector.register();
        scope.spawn(move || {
            while !finished.load(Ordering::Relaxed) {
                walk(index, &walker.pin(), RESIDENTS);
            }
        });
        let visitors: Vec<_> = (0..2u64)
            .map(|visitor| {
                let participant = collector.register();
                scope.spawn(move || {
                    // Rows of neighbours come, and go again.
                    for row in 0..visits / 100 {
                        let numbers = (0..100).map(|n| (row * 100 + n) * 2 + visitor);
                        let visitors = || numbers.clone().filter(|number| !number.is_multiple_of(STRIDE));
                        visitors().for_each(|number| insert(index, &participant.pin(), keys, number));
                        for number in visitors().filter(|number| number % 3 != 0) {
                            let guard = participant.pin();
                            assert!(
                                index
                                    .remove_if(&guard, &keys.of(number), number * VERSIONS + 1)
                                    .expect("sound")
                            );
                        }
                        participant.collect();
                    }
                })
            })
            .collect();
        visitors.into_iter().for_each(|visitor| visitor.join().expect("no panic"));
        finished.store(true, Ordering::Relaxed);
    });
    let participant = collector.register();
    let guard = participant.pin();
    let stay = |n: &u64| !n.is_multiple_of(STRIDE) && n.is_multiple_of(3);
    let rows = visits / 100 * 200;
    assert_eq!(index.len(&guard).expect("sound"), RESIDENTS + (0..rows).filter(stay).count() as u64);
    let audit = index.audit(&guard).expect("sound");
    assert_eq!(audit.keys, index.len(&guard).expect("sound"));
    assert!(index.stats().splits > 0);
}

#[test]
fn real_threads() {
    for keys in [Keys::Rising, Keys::Words, Keys::Mixed] {
        for _ in 0..3 {
            residents_are_always_found(create(&quick(32 << 20, 16 << 10)).0, keys, 10_000);
        }
    }
}

/// Several writers of different keys fill, empty and refill the same nodes, until nothing is left.
#[test]
fn writers_of_different_keys() {
    const KEYS: u64 = 4_000;
    for keys in [Keys::Rising, Keys::Mixed] {
        let collector = Collector::new();
        let index = create(&quick(16 << 20, 16 << 10)).0;
        std::thread::scope(|scope| {
            for writer in 0..4u64 {
                let (participant, index) = (collector.register(), &index);
                scope.spawn(move || {
                    let own = || (0..KEYS).map(|n| n * 4 + writer);
                    for round in 0..3 {
                        own().for_each(|key| insert(index, &participant.pin(), keys, key));
                        for key in own().filter(|key| round == 2 || key % 8 < 4) {
                            let guard = participant.pin();
                            let old = key * VERSIONS + 1;
                            assert!(index.remove_if(&guard, &keys.of(key), old).expect("sound"));
                        }
                        participant.collect();
                    }
                });
            }
        });
        let participant = collector.register();
        assert!(index.keys() == 0);
        (0..8).for_each(|_| _ = participant.collect());
        let (audit, stats) = (index.audit(&participant.pin()).expect("sound"), index.stats());
        assert_eq!(audit.nodes + stats.free_nodes, audit.nodes_all, "{audit:?} {stats:?}");
        assert_eq!(audit.chunks + stats.free_chunks, audit.chunks_all, "{audit:?} {stats:?}");
        assert!(audit.nodes < 60, "{audit:?}");
    }
}

/// One schedule: two writers whose keys share nodes, a reader of all keys, and a walk.
fn schedule(index: &FastFairIndex, keys: Keys, seed: u64) {
    const KEYS: u64 = 12;
    const STEPS: u64 = 30;
    let collector = Collector::new();
    let setup = collector.register();
    (0..KEYS).for_each(|key| insert(index, &setup.pin(), keys, key * STRIDE));
    let acknowledged: Vec<Cell<u64>> = (0..KEYS).map(|_| Cell::new(1)).collect();
    let (acknowledged, collector) = (&acknowledged, &collector);
    let writer = |task: u64| {
        let participant = collector.register();
        move || {
            let mut batch = Vec::new();
            for step in 0..STEPS {
                participant.collect();
                let guard = participant.pin();
                let (visitor, key) = (step * STRIDE / 2 + 1 + task, (mix(step) % (KEYS / 2)) * 2 + task);
                insert(index, &guard, keys, visitor);
                let version = acknowledged[key as usize].get() + 1;
                let (bytes, new) = (keys.of(key * STRIDE), key * STRIDE * VERSIONS + version);
                if step % 3 == 0 {
                    let replaced = index.replace_unflushed(&guard, &bytes, new - 1, new).expect("sound");
                    batch.push(replaced.expect("nobody else replaces it"));
                } else {
                    let old = index.upsert(&guard, &bytes, new).expect("room");
                    assert_eq!(old, Some(new - 1));
                }
                acknowledged[key as usize].set(version);
                if step % 2 == 0 {
                    assert!(
                        index.remove_if(&guard, &keys.of(visitor), visitor * VERSIONS + 1).expect("sound")
                    );
                }
                if batch.len() > 3 {
                    index.persist_all(batch.drain(..));
                }
            }
            index.persist_all(batch);
        }
    };
    let reader = || {
        let participant = collector.register();
        move || {
            for step in 0..2 * STEPS {
                let guard = participant.pin();
                let key = mix(step ^ seed) % KEYS;
                let least = acknowledged[key as usize].get();
                let found = get(index, &guard, keys, key * STRIDE);
                let seen = version_of(found.unwrap_or_else(|| panic!("lost key {key}")));
                assert!(seen >= least, "key {key} went back from version {least} to {seen}");
                assert_eq!(get(index, &guard, keys, 100_000 + step), None);
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
    let audit = index.audit(&setup.pin()).expect("sound");
    assert_eq!(audit.keys, KEYS + STEPS);
}

#[test]
fn scheduled_threads() {
    for seed in 0..150 {
        let keys = [Keys::Rising, Keys::Words, Keys::Mixed][seed as usize % 3];
        let space = format(256 << 10, 4 << 10, seed);
        schedule(&create(&space).0, keys, seed);
        space.audit().expect("sound");
    }
}

/// Readers of the keys that a split moves, in many orders of steps: a key is in one of the two leaves at all
/// times.
#[test]
fn readers_of_a_leaf_that_splits() {
    let collector = Collector::new();
    for seed in 0..1_500 {
        let space = format(64 << 10, 4 << 10, seed);
        let (index, _) = create(&space);
        let key = |number: u64| number.to_be_bytes();
        // Not in order, so that the leaf is shared evenly; and full.
        for number in (0..29).map(|n| 2 * (n * 7 % 29)) {
            index.insert(&collector.register().pin(), &key(number), number + 1).expect("room");
        }
        let (index, collector) = (&index, &collector);
        let reader = |task: u64| {
            move || {
                let participant = collector.register();
                for step in 0..4 {
                    let number = 56 - 2 * (mix(seed << 8 | task << 4 | step) % 12);
                    let found = index.get(&participant.pin(), &key(number)).expect("sound");
                    assert_eq!(found, Some(number + 1), "seed {seed}");
                }
            }
        };
        let writer = move || _ = index.insert(&collector.register().pin(), &key(33), 1).expect("room");
        let tasks: Vec<Box<dyn FnOnce() + '_>> =
            vec![Box::new(writer), Box::new(reader(0)), Box::new(reader(1)), Box::new(reader(2))];
        sched::run(seed, tasks).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(index.stats().splits, 1);
    }
}

/// Writers on their way to a leaf that goes, and is used again for others: in many orders of steps.
#[test]
fn writers_on_the_way_to_a_leaf_that_goes() {
    const SIDE: u64 = 1_000;
    let collector = Collector::new();
    let mut removals = 0;
    for seed in 0..2_000 {
        let space = format(64 << 10, 4 << 10, seed);
        let (index, _) = create(&space);
        let key = |number: u64| number.to_be_bytes();
        // Three leaves, full but for the last, which has two keys.
        for number in 0..58 {
            index.insert(&collector.register().pin(), &key(number * 100), number + 1).expect("room");
        }
        let (index, collector) = (&index, &collector);
        let remover = move || {
            let participant = collector.register();
            for number in [57, 56] {
                assert!(index.remove_if(&participant.pin(), &key(number * 100), number + 1).expect("sound"));
            }
            (0..3).for_each(|_| _ = participant.collect());
            // These split the first leaf, and so use a node.
            for number in 0..3 {
                index.insert(&participant.pin(), &key(number * 100 + 50), SIDE).expect("room");
            }
        };
        let adder = move || {
            let participant = collector.register();
            for number in 0..2 {
                index.insert(&participant.pin(), &key(5_650 + number), SIDE).expect("room");
                let found = index.get(&participant.pin(), &key(5_650 + number)).expect("sound");
                assert_eq!(found, Some(SIDE), "seed {seed}");
            }
        };
        let tasks: Vec<Box<dyn FnOnce() + '_>> = vec![Box::new(remover), Box::new(adder)];
        sched::run(seed, tasks).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let audit = index.audit(&collector.register().pin()).expect("sound");
        assert_eq!(audit.keys, 56 + 5, "seed {seed}");
        removals += index.stats().removals;
    }
    assert!(removals > 100, "{removals} removals");
}

/// A leaf that is split off, filled, emptied and gone before the one who split it has told the parent.
#[test]
fn a_leaf_that_goes_before_its_parent_is_told() {
    let collector = Collector::new();
    for seed in 0..3_000 {
        let space = format(64 << 10, 4 << 10, seed);
        let (index, _) = create(&space);
        let key = |number: u64| number.to_be_bytes();
        // The last of three leaves is full, and gives its last key to a fourth.
        for number in 0..85 {
            index.insert(&collector.register().pin(), &key(number), number + 1).expect("room");
        }
        let (index, collector) = (&index, &collector);
        let adder = move || _ = index.insert(&collector.register().pin(), &key(85), 86).expect("room");
        let remover = move || {
            let removed = index.remove_if(&collector.register().pin(), &key(84), 85);
            assert!(removed.expect("sound"));
        };
        let tasks: Vec<Box<dyn FnOnce() + '_>> = vec![Box::new(adder), Box::new(remover)];
        sched::run(seed, tasks).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let audit = index.audit(&collector.register().pin());
        assert_eq!(audit.unwrap_or_else(|error| panic!("seed {seed}: {error}")).keys, 85);
    }
}

/// Walks that are held up between finding an entry and reading its key: chunks are nobody else's before they
/// are done.
#[test]
fn chunks_under_a_walk_are_not_used_again() {
    let collector = Collector::new();
    for seed in 0..400 {
        let space = format(64 << 10, 4 << 10, seed);
        let (index, _) = create(&space);
        let key = |number: u64| format!("a key of more than eight bytes: {number:06}").into_bytes();
        for number in 0..6 {
            index.insert(&collector.register().pin(), &key(number), number + 1).expect("room");
        }
        let (index, collector) = (&index, &collector);
        let walker = move || {
            let participant = collector.register();
            for _ in 0..4 {
                let mut cursor = ScanCursor::default();
                let each = |bytes: &[u8], value: u64| assert_eq!(bytes, key(value - 1), "seed {seed}");
                while index.next_in_order(&participant.pin(), &mut cursor, 100, each).expect("sound") {}
            }
        };
        let writer = move || {
            let participant = collector.register();
            for number in 0..12 {
                assert!(index.remove_if(&participant.pin(), &key(number), number + 1).expect("sound"));
                (0..3).for_each(|_| _ = participant.collect());
                index.insert(&participant.pin(), &key(number + 6), number + 7).expect("room");
            }
        };
        let tasks: Vec<Box<dyn FnOnce() + '_>> = vec![Box::new(writer), Box::new(walker)];
        sched::run(seed, tasks).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

/// One schedule in which rows of keys come and go, so that leaves and inner nodes leave the tree under
/// readers and a walk.
fn rows(index: &FastFairIndex, keys: Keys, seed: u64) {
    const ROW: u64 = 90;
    const LOW: u64 = 5;
    let collector = Collector::new();
    let setup = collector.register();
    // Residents are the first and the last keys; the rows between them belong to the writers.
    for key in (0..LOW).chain(2 * ROW + LOW..2 * ROW + 2 * LOW) {
        insert(index, &setup.pin(), keys, key);
    }
    (LOW..2 * ROW + LOW).for_each(|key| insert(index, &setup.pin(), keys, key));
    let collector = &collector;
    let writer = |task: u64| {
        let participant = collector.register();
        move || {
            for round in 0..2 {
                for n in 0..ROW {
                    let key = LOW + if seed.is_multiple_of(2) { task * ROW + n } else { 2 * n + task };
                    assert!(
                        index
                            .remove_if(&participant.pin(), &keys.of(key), key * VERSIONS + 1)
                            .expect("sound")
                    );
                }
                participant.collect();
                for n in 0..ROW * (1 - round) {
                    let key = LOW + if seed.is_multiple_of(2) { task * ROW + n } else { 2 * n + task };
                    insert(index, &participant.pin(), keys, key);
                }
            }
        }
    };
    let reader = |task: u64| {
        let participant = collector.register();
        move || {
            for step in 0..150 {
                let guard = participant.pin();
                let low = mix(step ^ seed ^ task << 32) % (2 * LOW);
                let key = if low < LOW { low } else { low + 2 * ROW };
                assert!(get(index, &guard, keys, key).is_some(), "lost key {key}");
                drop(guard);
                participant.collect();
            }
        }
    };
    let tasks: Vec<Box<dyn FnOnce() + '_>> =
        vec![Box::new(writer(0)), Box::new(writer(1)), Box::new(reader(0)), Box::new(reader(1))];
    sched::run(seed, tasks).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let audit = index.audit(&setup.pin()).expect("sound");
    assert_eq!(audit.keys, 2 * LOW);
    (0..8).for_each(|_| _ = setup.collect());
    let stats = index.stats();
    assert_eq!(audit.nodes + stats.free_nodes, audit.nodes_all, "{audit:?} {stats:?}");
    assert!(stats.removals > 0);
}

#[test]
fn nodes_that_go_under_scheduled_threads() {
    for seed in 0..40 {
        let keys = [Keys::Rising, Keys::Mixed][seed as usize / 2 % 2];
        let space = format(256 << 10, 4 << 10, seed);
        rows(&create(&space).0, keys, seed);
    }
}
