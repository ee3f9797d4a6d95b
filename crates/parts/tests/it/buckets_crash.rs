//! Crashes of a bucket index at every operation on the medium, in many of the states that each may leave.
//! They happen while keys come and go, chains get longer, buckets split and zones are added; during recovery;
//! and during creation. The power may fail after a crash of the process, too (`buckets_death` looks closer).
//!
//! The oracle: a write that was acknowledged, or answered to a reader, is there; a write in flight is there
//! whole or not at all. A walk finds the same as lookups; no bucket is lost; the index has exactly the zones
//! that are committed; and it works on. Broken twins show that the oracle can say no.

use crate::buckets::crash;
use crate::buckets::support;
use crate::crashes;
use crate::shared::keyed::{self, by_hash};

use crash::{Index, Subject};
use crashes::{Findings, History, Known, Model, at_each_operation, creation};
use quipu_medium::sim::{Fault, SimArena, Snapshot, sched};
use quipu_parts::epoch::{Collector, Guard};
use quipu_parts::index::InPool;
use quipu_parts::index::buckets::{
    BucketIndex, BucketLocks, BucketSettings, BucketStats, Locking, TableLocks, Unflushed,
};
use quipu_parts::index::{Index as _, IndexError, PmWords};
use quipu_parts::space::Space;
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use support::{COPY, Twin, create, format, get, hash_of, key_of, mix, open, reference, rehash};

const LEN: u64 = 96 << 10;

struct Plan {
    settings: BucketSettings,
    twin: Twin,
    seed: u64,
    /// Keys of each writer.
    keys: u64,
    writers: u64,
    readers: u64,
    steps: u64,
    /// Images of a crash point; 0 for one glance at it.
    budget: usize,
}

/// One writer of twelve keys, with the code as it is.
fn plan(settings: BucketSettings, seed: u64) -> Plan {
    Plan { settings, twin: Twin::Sound, seed, keys: 12, writers: 1, readers: 0, steps: 40, budget: 8 }
}

/// A table of one bucket that keeps its size: all that is more than eight keys is behind it.
fn fixed() -> BucketSettings {
    BucketSettings { buckets: 1, grow: false }
}

/// A reference that takes the place of another one.
struct Move {
    key: u64,
    old: u64,
    new: u64,
}

/// Changes several keys as a cleaner does, acknowledging them all at once after the call of `meanwhile`.
fn move_together<L: Locking>(
    index: &Index<L>,
    guard: &Guard<'_>,
    history: &History,
    moves: &[Move],
    mut unflushed: Vec<Unflushed>,
    meanwhile: &dyn Fn(),
) {
    match moves.split_first() {
        None => {
            meanwhile();
            index.persist(guard, &mut unflushed);
        }
        Some((Move { key, old, new }, others)) => history.write(*key, Some(*new), || {
            let moved = keyed::repoint(index, guard, hash_of(*key), *old, *new);
            unflushed.push(moved.expect("nobody else changes it"));
            move_together(index, guard, history, others, unflushed, meanwhile);
        }),
    }
}

/// Runs writers of keys of their own and readers of all over one index, and explores the crashes at every
/// operation. Returns states, violations, and the index's statistics.
fn run<L: Locking>(plan: &Plan) -> (usize, Vec<String>, BucketStats) {
    let space = format(LEN, plan.seed);
    let (first, root) = create::<L>(&space, plan.settings);
    drop(first);
    let index: Index<L> = open(&space, root, plan.twin).expect("just created");
    let subject = Subject { root, twin: plan.twin, locks: PhantomData::<L> };
    let history = Rc::new(History::default());
    let findings = Findings::default();
    let (known, found, point) = (history.clone(), findings.clone(), Cell::new(plan.seed));
    let budget = plan.budget;
    let collector = Collector::new();
    let writer = |task: u64| {
        let (participant, index, history) = (collector.register(), &index, &*history);
        move || {
            for step in 0..plan.steps {
                let guard = participant.pin();
                let draw = mix(plan.seed ^ task << 32 ^ step);
                let key = draw % plan.keys * plan.writers + task;
                let old = history.now(key);
                let (new, is_it) = (reference(key, step), |reference| Some(reference) == old);
                match (old, draw >> 32 & 3) {
                    (Some(_), 0) => {
                        let taken = history
                            .write(key, None, || index.take(&guard, by_hash(hash_of(key)), None, is_it));
                        assert_eq!(taken.expect("sound"), old);
                    }
                    (Some(old), 1) => {
                        let replace =
                            || index.replace(&guard, by_hash(hash_of(key)), old, new).expect("sound");
                        assert!(history.write(key, Some(new), replace));
                    }
                    (Some(old), 2) => {
                        let other = mix(draw) % plan.keys * plan.writers + task;
                        let other = history.now(other).map(|old| (other, old)).filter(|_| other != key);
                        let moves = [Some((key, old)), other].map(|moved| {
                            moved.map(|(key, old)| Move { key, old, new: reference(key, step) })
                        });
                        let moves: Vec<Move> = moves.into_iter().flatten().collect();
                        move_together(index, &guard, history, &moves, Vec::new(), &|| ());
                    }
                    _ => {
                        let upsert =
                            || index.upsert(&guard, by_hash(hash_of(key)), new, None, is_it, &rehash);
                        assert_eq!(history.write(key, Some(new), upsert).expect("room"), old);
                    }
                }
            }
        }
    };
    let reader = |task: u64| {
        let (participant, index, history) = (collector.register(), &index, &*history);
        move || {
            for step in 0..plan.steps * 2 {
                let guard = participant.pin();
                let key = mix(plan.seed ^ task << 40 ^ step) % (plan.keys * plan.writers);
                history.read(key, || get(index, &guard, key).expect("sound"));
            }
        }
    };
    at_each_operation(
        space.region(),
        move |snapshot| {
            point.set(point.get() + 1);
            let model = known.model.borrow().clone();
            match budget {
                0 => found.glance(snapshot, &subject, &model, point.get()),
                _ => found.explore(snapshot, &subject, &model, point.get(), budget),
            }
        },
        || {
            let writers = (0..plan.writers).map(|task| Box::new(writer(task)) as Box<dyn FnOnce() + '_>);
            let readers = (0..plan.readers).map(|task| Box::new(reader(task)) as Box<dyn FnOnce() + '_>);
            sched::run(plan.seed, writers.chain(readers).collect()).expect("the run ends");
        },
    );
    (findings.states.get(), findings.violations.take(), index.stats())
}

#[test]
fn one_writer_survives_a_crash_at_any_operation() {
    for settings in [fixed(), BucketSettings::tiny()] {
        let (states, violations, stats) = run::<TableLocks>(&plan(settings, 11));
        assert_eq!(violations, Vec::<String>::new());
        assert!(states > 2_000, "{states} states explore too little");
        assert!(stats.overflow > 0 && settings.grow == (stats.splits > 0), "{stats:?}");
    }
}

#[test]
fn splits_and_links_and_new_zones_survive_a_crash_at_any_operation() {
    let mut all = BucketStats::default();
    for seed in 0..4 {
        let base = plan(BucketSettings::tiny(), seed * 7919);
        let plan = Plan { writers: 3, steps: 16, budget: 6, ..base };
        let (_, violations, stats) = run::<TableLocks>(&plan);
        assert_eq!(violations, Vec::<String>::new(), "seed {seed}");
        all.splits += stats.splits;
        all.overflow += stats.overflow;
    }
    assert!(all.splits > 15 && all.overflow > 3, "{all:?}");
}

#[test]
fn what_readers_were_told_survives_a_crash() {
    for seed in 0..6 {
        let settings = if seed % 2 == 0 { BucketSettings::tiny() } else { fixed() };
        let plan = Plan { writers: 2, readers: 2, steps: 10, budget: 6, ..plan(settings, seed * 104_729) };
        let (_, violations, _) = run::<TableLocks>(&plan);
        assert_eq!(violations, Vec::<String>::new(), "seed {seed}");
    }
}

/// Whatever the locks in the buckets are at a crash, they are free at the next open.
#[test]
fn an_index_with_locks_in_its_buckets_survives_a_crash_at_any_operation() {
    for seed in 0..2 {
        let settings = if seed % 2 == 0 { BucketSettings::tiny() } else { fixed() };
        let plan = Plan { writers: 2, readers: 1, steps: 14, budget: 4, ..plan(settings, seed * 31_337) };
        let (_, violations, stats) = run::<BucketLocks>(&plan);
        assert_eq!(violations, Vec::<String>::new(), "seed {seed}");
        assert!(stats.overflow > 0);
    }
}

/// What takes a rare order of steps to go wrong is looked for in many orders.
#[test]
fn many_schedules_survive_the_worst_crash() {
    for seed in 0..60 {
        let base = Plan { budget: 0, ..plan(BucketSettings::tiny(), seed * 3571) };
        let readers = Plan { keys: 1, readers: 3, steps: 20, ..base };
        let splits = Plan { budget: 0, writers: 5, steps: 7, ..plan(BucketSettings::tiny(), seed * 5381) };
        for plan in [readers, splits] {
            let (_, violations, _) = run::<TableLocks>(&plan);
            assert_eq!(violations, Vec::<String>::new(), "seed {seed}");
        }
    }
}

/// A cleaner copies records that writers of the same keys replace, other keys come and go so that words move
/// to other buckets, and readers look on. Neither a copy nor a later word is taken for durable too early.
#[test]
fn copies_beside_writers_survive_the_worst_crash() {
    let mut moved = 0;
    for seed in 0..1_000u64 {
        // Few, so that all are at work on the same word.
        let keys = 1 + seed % 3;
        let space = format(LEN, seed);
        let (first, root) = create::<TableLocks>(&space, BucketSettings::tiny());
        drop(first);
        let index: Index = open(&space, root, Twin::Sound).expect("just created");
        let subject = Subject { root, twin: Twin::Sound, locks: PhantomData::<TableLocks> };
        let (history, findings) = (Rc::new(History::default()), Findings::default());
        let (known, found) = (history.clone(), findings.clone());
        let collector = Collector::new();
        let moves = Cell::new(0);
        let (index, history, moves) = (&index, &*history, &moves);
        let writer = collector.register();
        let write = move || {
            for step in 0..24 {
                let guard = writer.pin();
                let key = if step % 3 == 2 { keys + step } else { mix(seed ^ step) % keys };
                let is_own = |found: u64| Some(found & !COPY) == history.now(key);
                if step % 5 == 4 {
                    history
                        .write(key, None, || index.take(&guard, by_hash(hash_of(key)), None, is_own))
                        .expect("sound");
                } else {
                    let new = reference(key, step);
                    let upsert = || index.upsert(&guard, by_hash(hash_of(key)), new, None, is_own, &rehash);
                    history.write(key, Some(new), upsert).expect("room");
                }
            }
        };
        let visitors = collector.register();
        let visit = move || {
            for key in 100..114 {
                let guard = visitors.pin();
                let upsert = || {
                    let is_own = |found| key_of(found) == key;
                    index.upsert(&guard, by_hash(hash_of(key)), reference(key, 0), None, is_own, &rehash)
                };
                history.write(key, Some(reference(key, 0)), upsert).expect("room");
            }
        };
        let cleaner = collector.register();
        let clean = move || {
            for step in 0..16 {
                let (guard, mut unflushed) = (cleaner.pin(), Vec::new());
                for key in (0..keys).filter(|key| mix(seed << 8 ^ step << 4 ^ key) & 3 > 0) {
                    let Some(old) = history.now(key) else { continue };
                    let moved = keyed::repoint(index, &guard, hash_of(key), old, old | COPY);
                    unflushed.extend(moved);
                }
                moves.set(moves.get() + unflushed.len());
                index.persist(&guard, &mut unflushed);
            }
        };
        let reader = collector.register();
        let read = move || {
            for step in 0..40 {
                let guard = reader.pin();
                let key = mix(seed << 16 ^ step) % keys;
                history.read(key, || get(index, &guard, key).expect("sound"));
            }
        };
        at_each_operation(
            space.region(),
            move |snapshot| found.glance(snapshot, &subject, &known.model.borrow().clone(), seed),
            || {
                let tasks: Vec<Box<dyn FnOnce() + '_>> =
                    vec![Box::new(write), Box::new(visit), Box::new(clean), Box::new(read)];
                sched::run(seed, tasks).expect("the run ends");
            },
        );
        assert_eq!(findings.violations.take(), Vec::<String>::new(), "seed {seed}");
        moved += moves.get();
    }
    assert!(moved > 500, "{moved} references moved");
}

/// Words that wait for their flush move to other buckets: whichever place counts after a crash, no older word
/// comes back in the other.
#[test]
fn words_that_wait_for_a_flush_survive_splits() {
    for seed in 0..60 {
        let space = format(LEN, seed);
        let (first, root) = create::<TableLocks>(&space, BucketSettings::tiny());
        drop(first);
        let index: Index = open(&space, root, Twin::Sound).expect("just created");
        let subject = Subject { root, twin: Twin::Sound, locks: PhantomData::<TableLocks> };
        let (history, findings) = (Rc::new(History::default()), Findings::default());
        let (known, found) = (history.clone(), findings.clone());
        let collector = Collector::new();
        let participant = collector.register();
        let guard = participant.pin();
        let add = |key: u64| {
            let upsert =
                || index.upsert(&guard, by_hash(hash_of(key)), reference(key, 0), None, |_| false, &rehash);
            assert_eq!(history.write(key, Some(reference(key, 0)), upsert).expect("room"), None);
        };
        // In several buckets: what is added to one makes another one split.
        let keys = seed * 50..seed * 50 + 24;
        keys.clone().for_each(add);
        let splits = index.stats().splits;
        // Few, since a lookup of a key flushes the others of its fingerprint.
        let moves = keys.step_by(5).map(|key| Move { key, old: reference(key, 0), new: reference(key, 1) });
        let moves: Vec<Move> = moves.collect();
        let glance = move |snapshot: &_| {
            found.glance(snapshot, &subject, &known.model.borrow().clone(), seed);
        };
        at_each_operation(space.region(), glance, || {
            let meanwhile = || (seed * 50 + 24..seed * 50 + 40).for_each(add);
            move_together(&index, &guard, &history, &moves, Vec::new(), &meanwhile);
        });
        assert_eq!(findings.violations.take(), Vec::<String>::new(), "seed {seed}");
        assert!(index.stats().splits > splits, "{:?}", index.stats());
    }
}

/// Every twin is convicted by the message for its own fault.
#[test]
fn broken_twins_are_convicted() {
    for (twin, message) in [
        (Twin::NoHelp, "should be"),
        (Twin::NoFlush, "should be"),
        (Twin::MarkedAtOnce, "should be"),
        (Twin::NoBatch, "should be"),
        (Twin::NoDeletedMark, "should be"),
        (Twin::LeftBehind, "a walk gives"),
        // What was never written is no bucket.
        (Twin::BucketNotFlushed, "of the index"),
    ] {
        let is_convicted = (0..8).any(|seed| {
            let settings = BucketSettings::tiny();
            let plan = Plan { twin, writers: 2, readers: 2, steps: 14, ..plan(settings, seed) };
            run::<TableLocks>(&plan).1.iter().any(|violation| violation.contains(message))
        });
        assert!(is_convicted, "{twin:?} passes for sound");
    }
}

/// A medium that leaves out fences is a twin of every step that needs one.
#[test]
fn fences_that_do_nothing_are_noticed() {
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    let space = format(LEN, 5);
    let (index, root) = create::<TableLocks>(&space, BucketSettings::tiny());
    let findings = Findings::default();
    let sim = space.region().simulator().expect("simulated").clone();
    sim.set_fault(Some(Fault::FenceOmitted { every: 1 }));
    let mut model = Model::new();
    for key in 0..30 {
        index
            .upsert(&guard, by_hash(hash_of(key)), reference(key, 0), None, |_| false, &rehash)
            .expect("room");
        model.insert(key, Known { now: Some(reference(key, 0)), next: None });
    }
    let subject = Subject { root, twin: Twin::Sound, locks: PhantomData::<TableLocks> };
    findings.explore(&sim.snapshot(), &subject, &model, 1, 20);
    assert!(!findings.violations.take().is_empty());
}

/// Two splits that are cut off one after the other may leave a word twice in the new bucket, to which no hash
/// leads. A proof of the index must not take that for damage.
#[test]
fn a_split_that_is_cut_off_twice_leaves_a_sound_index() {
    /// Adds keys until a bucket splits, and returns a crash before each operation of that.
    fn cut_off(space: &Arc<Space>, index: &Index, keys: Range<u64>) -> Vec<Snapshot> {
        let (participant, splits) = (Collector::new().register(), index.stats().splits);
        for key in keys {
            let cuts = Rc::new(RefCell::new(Vec::new()));
            let note = cuts.clone();
            at_each_operation(
                space.region(),
                move |cut| note.borrow_mut().push(cut.clone()),
                || {
                    let new = reference(key, 0);
                    let upsert = index.upsert(
                        &participant.pin(),
                        by_hash(hash_of(key)),
                        new,
                        None,
                        |_| false,
                        &rehash,
                    );
                    upsert.expect("room");
                },
            );
            if index.stats().splits > splits {
                return cuts.take();
            }
        }
        panic!("no bucket has split");
    }

    let space = format(LEN, 17);
    let (first, root) = create::<TableLocks>(&space, BucketSettings::tiny());
    drop(first);
    let arena = RefCell::new(SimArena::default());
    let boot = |cut: &Snapshot| {
        let region = arena.borrow_mut().boot(cut, &cut.everything(), 1);
        let (space, _) = Space::open(region).expect("sound");
        let space = Arc::new(space);
        let index: Index = open(&space, root, Twin::Sound).expect("sound");
        (space, index)
    };
    let index: Index = open(&space, root, Twin::Sound).expect("just created");
    let mut proved = 0;
    let splits = (0..6).flat_map(|split| cut_off(&space, &index, split * 40..split * 40 + 40));
    for once in splits {
        for gone in 0..16 {
            let (space, index) = boot(&once);
            let participant = Collector::new().register();
            // The words that follow it move to other slots.
            let is_it = |found| key_of(found) == gone;
            index.take(&participant.pin(), by_hash(hash_of(gone)), None, is_it).expect("sound");
            for twice in cut_off(&space, &index, 1000..1040) {
                boot(&twice).1.audit(|_| true).expect("sound");
                proved += 1;
            }
        }
    }
    assert!(proved > 1000, "{proved}");
}

#[test]
fn a_crash_during_creation_leaks_nothing() {
    // In one zone, and in three.
    for buckets in [1, 150] {
        creation::leaks_nothing(
            || format(LEN, 2),
            |space, keep| {
                let settings = BucketSettings { buckets, grow: true };
                let index: BucketIndex<PmWords> =
                    BucketIndex::create(space.clone(), settings, 0, keep).expect("room");
                drop(index);
            },
            |space, root| match BucketIndex::<PmWords>::open(space.clone(), root, 0) {
                Err(IndexError::Absent) => None,
                index => {
                    let index = index.expect("sound");
                    assert!(keyed::len(&index).expect("sound") == 0);
                    Some(index.zones())
                }
            },
        );
    }
}
