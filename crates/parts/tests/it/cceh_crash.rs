//! Crashes of a CCEH index in PM at every operation on the medium, in many of the states that each may leave.
//! They happen while keys come and go, segments split, the directory doubles and zones are added; during
//! recovery; and during creation. The power may fail after a crash of the process, too.
//!
//! The oracle: a write that was acknowledged, or answered to a reader, is there; a write in flight is there
//! whole or not at all. A walk finds the same as lookups; the index has exactly the zones that are committed;
//! and it works on. Broken twins show that the oracle can say no.

use crate::cceh::crash;
use crate::cceh::support;
use crate::crashes;
use crate::shared::keyed;

use crash::{COPY, Nodes, Subject, Twin, get, hash_of, open, reference};
use crashes::{Findings, History, Known, Model, at_each_operation, creation};
use quipu_medium::sim::{Fault, sched};
use quipu_parts::epoch::{Collector, Guard};
use quipu_parts::index::InPool;
use quipu_parts::index::cceh::{CcehIndex, CcehSettings, NodeMemory, Unflushed};
use quipu_parts::index::{Index as _, IndexError};
use std::cell::Cell;
use std::rc::Rc;
use support::{create, format, mix};

const LEN: u64 = 96 << 10;

/// Four keys fill a segment, and a zone has three of them only.
fn steep() -> CcehSettings {
    CcehSettings { initial_depth: 0, bucket_bits: 4, probe: 1 }
}

/// Segments of two lines, many to a zone.
fn narrow() -> CcehSettings {
    CcehSettings { initial_depth: 1, bucket_bits: 1, probe: 1 }
}

struct Plan {
    settings: CcehSettings,
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

/// One writer of ten keys, with the code as it is.
fn plan(settings: CcehSettings, seed: u64) -> Plan {
    Plan { settings, twin: Twin::Sound, seed, keys: 10, writers: 1, readers: 0, steps: 30, budget: 8 }
}

/// A reference that takes the place of another one.
struct Move {
    key: u64,
    old: u64,
    new: u64,
}

/// Changes several keys as a cleaner does, acknowledging them all at once.
fn move_together(
    index: &CcehIndex<Nodes>,
    guard: &Guard<'_>,
    history: &History,
    moves: &[Move],
    mut unflushed: Vec<Unflushed>,
) {
    match moves.split_first() {
        None => index.persist(guard, &mut unflushed),
        Some((Move { key, old, new }, others)) => history.write(*key, Some(*new), || {
            let moved = keyed::repoint(index, guard, hash_of(*key), *old, *new);
            unflushed.push(moved.expect("nobody else changes it"));
            move_together(index, guard, history, others, unflushed);
        }),
    }
}

/// Runs writers of keys of their own and readers of all over one index, and explores the crashes at every
/// operation. Returns states, violations, splits and zones.
fn run(plan: &Plan) -> (usize, Vec<String>, u64, usize) {
    let space = format(LEN, plan.seed);
    let (first, root) = create(&space, plan.settings);
    drop(first);
    let index = open(&space, root, plan.settings, plan.twin).expect("just created");
    let subject = Subject { root, settings: plan.settings, twin: plan.twin };
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
                let new = reference(key, step);
                match (old, draw >> 32 & 3) {
                    (Some(old), 0) => {
                        assert!(history.write(key, None, || index.remove(&guard, hash_of(key), old)))
                    }
                    (Some(old), 1) => {
                        assert!(history.write(key, Some(new), || index.replace(
                            &guard,
                            hash_of(key),
                            old,
                            new
                        )));
                    }
                    (Some(old), 2) => {
                        let other = mix(draw) % plan.keys * plan.writers + task;
                        let other = history.now(other).map(|old| (other, old)).filter(|_| other != key);
                        let moves = [Some((key, old)), other].map(|moved| {
                            moved.map(|(key, old)| Move { key, old, new: reference(key, step) })
                        });
                        let moves: Vec<Move> = moves.into_iter().flatten().collect();
                        move_together(index, &guard, history, &moves, Vec::new());
                    }
                    _ => {
                        let matches = |reference| Some(reference) == old;
                        let upsert = || index.upsert(&guard, hash_of(key), new, matches);
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
                history.read(key, || get(index, &guard, key));
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
    let violations = findings.violations.take();
    (findings.states.get(), violations, index.stats().splits, index.memory().zones())
}

#[test]
fn one_writer_survives_a_crash_at_any_operation() {
    for settings in [steep(), narrow(), CcehSettings::tiny()] {
        let plan = plan(settings, 11);
        let (states, violations, splits, _) = run(&plan);
        assert_eq!(violations, Vec::<String>::new());
        assert!(states > 2_000, "{states} states explore too little");
        assert!(splits > 0, "{settings:?} did not split");
    }
}

#[test]
fn splits_doublings_and_new_zones_survive_a_crash_at_any_operation() {
    let (mut all_splits, mut most_zones) = (0, 0);
    for seed in 0..4 {
        let settings = if seed % 2 == 0 { steep() } else { narrow() };
        let plan = Plan { writers: 3, steps: 14, budget: 6, ..plan(settings, seed * 7919) };
        let (_, violations, splits, zones) = run(&plan);
        assert_eq!(violations, Vec::<String>::new(), "seed {seed}");
        (all_splits, most_zones) = (all_splits + splits, most_zones.max(zones));
    }
    assert!(all_splits > 15 && most_zones > 2, "{all_splits} splits, {most_zones} zones");
}

#[test]
fn what_readers_were_told_survives_a_crash() {
    for seed in 0..6 {
        let settings = if seed % 2 == 0 { narrow() } else { steep() };
        let plan = Plan { writers: 2, readers: 2, steps: 10, budget: 6, ..plan(settings, seed * 104_729) };
        let (_, violations, ..) = run(&plan);
        assert_eq!(violations, Vec::<String>::new(), "seed {seed}");
    }
}

/// What takes a rare order of steps to go wrong is looked for in many orders.
#[test]
fn many_schedules_survive_the_worst_crash() {
    for seed in 0..60 {
        let base = Plan { budget: 0, ..plan(narrow(), seed * 3571) };
        let readers = Plan { keys: 1, readers: 3, steps: 20, ..base };
        let splits = Plan { keys: 4, writers: 5, steps: 5, ..plan(narrow(), seed * 5381) };
        for plan in [readers, Plan { budget: 0, ..splits }] {
            let (_, violations, ..) = run(&plan);
            assert_eq!(violations, Vec::<String>::new(), "seed {seed}");
        }
    }
}

/// A cleaner copies what writers of the same keys replace, and readers look on: neither a copy nor a word
/// that came after it is taken for durable too early.
#[test]
fn copies_beside_writers_survive_the_worst_crash() {
    let mut moved = 0;
    for seed in 0..3_000u64 {
        // Few, so that all are at work on the same entry.
        let keys = 1 + seed % 3;
        let space = format(LEN, seed);
        let (first, root) = create(&space, narrow());
        drop(first);
        let index = open(&space, root, narrow(), Twin::Sound).expect("just created");
        let subject = Subject { root, settings: narrow(), twin: Twin::Sound };
        let (history, findings) = (Rc::new(History::default()), Findings::default());
        let (known, found) = (history.clone(), findings.clone());
        let collector = Collector::new();
        let moves = Cell::new(0);
        let (index, history, moves) = (&index, &*history, &moves);
        let writer = collector.register();
        let write = move || {
            for step in 0..24 {
                let guard = writer.pin();
                let key = mix(seed ^ step) % keys;
                let is_own = |found: u64| Some(found & !COPY) == history.now(key);
                if step % 5 == 4 {
                    history.write(key, None, || index.take(&guard, hash_of(key), is_own));
                } else {
                    let new = reference(key, step);
                    let upsert = || index.upsert(&guard, hash_of(key), new, is_own);
                    history.write(key, Some(new), upsert).expect("room");
                }
            }
        };
        let cleaner = collector.register();
        let clean = move || {
            for step in 0..16 {
                let (guard, mut unflushed) = (cleaner.pin(), Vec::new());
                for key in (0..keys).filter(|key| mix(seed << 8 ^ step << 4 ^ key) & 3 > 0) {
                    let Some(old) = history.now(key) else { continue };
                    unflushed.extend(keyed::repoint(index, &guard, hash_of(key), old, old | COPY));
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
                history.read(key, || get(index, &guard, key));
            }
        };
        at_each_operation(
            space.region(),
            move |snapshot| found.glance(snapshot, &subject, &known.model.borrow().clone(), seed),
            || {
                let tasks: Vec<Box<dyn FnOnce() + '_>> =
                    vec![Box::new(write), Box::new(clean), Box::new(read)];
                sched::run(seed, tasks).expect("the run ends");
            },
        );
        assert_eq!(findings.violations.take(), Vec::<String>::new(), "seed {seed}");
        moved += moves.get();
    }
    assert!(moved > 1_500, "{moved} references moved");
}

/// Every twin is convicted by the message for its own fault.
#[test]
fn broken_twins_are_convicted() {
    for (twin, message) in [
        (Twin::ValueFirst, "a walk gives"),
        (Twin::NoHelp, "should be"),
        (Twin::NoFlush, "should be"),
        (Twin::MarkKept, "should be"),
        (Twin::NoBatch, "should be"),
    ] {
        let is_convicted = (0..8).any(|seed| {
            let plan = Plan { twin, writers: 2, readers: 2, steps: 12, ..plan(narrow(), seed) };
            run(&plan).1.iter().any(|violation| violation.contains(message))
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
    let (index, root) = create(&space, steep());
    let findings = Findings::default();
    let sim = space.region().simulator().expect("simulated").clone();
    sim.set_fault(Some(Fault::FenceOmitted { every: 1 }));
    let mut model = Model::new();
    for key in 0..30 {
        index.insert(&guard, hash_of(key), reference(key, 0)).expect("room");
        model.insert(key, Known { now: Some(reference(key, 0)), next: None });
    }
    findings.explore(&sim.snapshot(), &Subject { root, settings: steep(), twin: Twin::Sound }, &model, 1, 20);
    assert!(!findings.violations.take().is_empty());
}

#[test]
fn a_crash_during_creation_leaks_nothing() {
    creation::leaks_nothing(
        || format(LEN, 2),
        |space, keep| drop(CcehIndex::create(space.clone(), narrow(), 0, keep).expect("room")),
        |space, root| match CcehIndex::open(space.clone(), root, 0) {
            Err(IndexError::Absent) => None,
            index => {
                let index = index.expect("sound");
                assert!(index.is_empty());
                Some(index.memory().zones())
            }
        },
    );
}
