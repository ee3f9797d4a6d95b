//! Crashes of a FAST&FAIR index at every operation on the medium, in many of the states that each may leave.
//! They happen while keys come and go, entries shift, nodes split or vanish, references are replaced by the
//! batch, zones are added; in recovery and creation; and as power failures after process crashes.
//!
//! The oracle: a write that was acknowledged, or answered to a reader, is there; one in flight is there whole
//! or not at all. A walk finds the same as lookups, in order; every node, chunk and zone is in use or free;
//! and it works on. Broken twins show that the oracle can say no.

use crate::crashes;
use crate::fastfair::crash;
use crate::fastfair::support;

use crate::shared::keyed::ByKey;
use crash::{Subject, Twin, open, reference};
use crashes::{Findings, History, Known, Model, at_each_operation, creation};
use quipu_medium::sim::{Fault, SimArena, sched};
use quipu_parts::epoch::Collector;
use quipu_parts::index::InPool;
use quipu_parts::index::IndexError;
use quipu_parts::index::fastfair::{FastFairIndex, FastFairStats};
use quipu_parts::space::Space;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use support::{Keys, create, format, mix};

const LEN: u64 = 256 << 10;
const ZONE: u64 = 4 << 10;

/// What a writer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    All,
    /// Adds the keys behind the residents.
    Fill,
    /// Removes the residents, from the highest key to the lowest.
    Drain,
}

/// How a crash point is looked at.
#[derive(Clone, Copy, Debug)]
enum Look {
    /// The image in which nothing arrived that need not have.
    Glance,
    /// So many images.
    Skim(usize),
    /// So many images, crashes during their recovery, and work after it.
    Explore(usize),
}

#[derive(Clone, Copy)]
struct Plan {
    keys: Keys,
    twin: Twin,
    seed: u64,
    /// Keys that are there before the exploration begins.
    residents: u64,
    /// Keys of each writer; the lowest are among the residents.
    own: u64,
    writers: u64,
    readers: u64,
    steps: u64,
    work: Work,
    look: Look,
}

/// One writer over a leaf that is nearly full, with the code as it is.
fn plan(keys: Keys, seed: u64) -> Plan {
    Plan {
        keys,
        twin: Twin::Sound,
        seed,
        residents: 26,
        own: 50,
        writers: 1,
        readers: 0,
        steps: 36,
        work: Work::All,
        look: Look::Explore(6),
    }
}

/// Runs writers of keys of their own and readers of all over one index, and explores the crashes at every
/// operation. Returns states, violations, and the index's statistics.
fn run(plan: Plan) -> (usize, Vec<String>, FastFairStats) {
    let space = format(LEN, ZONE, plan.seed);
    let (first, root) = create(&space);
    let collector = Collector::new();
    let history = Rc::new(History::default());
    {
        let participant = collector.register();
        for key in 0..plan.residents {
            let insert = || first.insert(&participant.pin(), &plan.keys.of(key), reference(key, 0));
            history.write(key, Some(reference(key, 0)), insert).expect("room");
        }
    }
    let mut highest: Vec<u64> = (0..plan.residents).collect();
    highest.sort_by_key(|key| std::cmp::Reverse(plan.keys.of(*key)));
    drop(first);
    let index = open(&space, root, plan.twin).expect("just created");
    let subject = Subject { root, keys: plan.keys, twin: plan.twin };
    let findings = Findings::default();
    let (known, found, point) = (history.clone(), findings.clone(), Cell::new(plan.seed));
    let writer = |task: u64| {
        let (participant, index, history) = (collector.register(), &index, &*history);
        let highest = &highest;
        move || {
            for step in 1..=plan.steps {
                participant.collect();
                let guard = participant.pin();
                let draw = mix(plan.seed ^ task << 32 ^ step);
                let key = match plan.work {
                    Work::All => draw % plan.own * plan.writers + task,
                    Work::Fill => plan.residents + step,
                    Work::Drain => highest[((step - 1) * plan.writers + task) as usize],
                };
                let (old, new, bytes) = (history.now(key), reference(key, step), plan.keys.of(key));
                match (old, draw >> 32 & 3) {
                    (Some(old), way) if way == 0 || plan.work == Work::Drain => {
                        let remove = || index.remove_if(&guard, &bytes, old);
                        assert!(history.write(key, None, remove).expect("sound"));
                    }
                    (Some(old), 3) => {
                        let replace = || {
                            let hint = index.locate(&guard, &bytes).expect("sound");
                            let at = index.replace_at_unflushed(&guard, hint, old, new);
                            let by_key = || index.replace_unflushed(&guard, &bytes, old, new).expect("sound");
                            let replaced = at.or_else(by_key).expect("nobody else writes this key");
                            index.persist_all([replaced]);
                        };
                        history.write(key, Some(new), replace);
                    }
                    _ => {
                        let upsert = || index.upsert(&guard, &bytes, new);
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
                let key = mix(plan.seed ^ task << 40 ^ step) % (plan.own * plan.writers);
                history.read(key, || index.get(&guard, &plan.keys.of(key)).expect("sound"));
            }
        }
    };
    at_each_operation(
        space.region(),
        move |snapshot| {
            point.set(point.get() + 1);
            let model = known.model.borrow().clone();
            match plan.look {
                Look::Glance => found.glance(snapshot, &subject, &model, point.get()),
                Look::Skim(budget) => found.skim(snapshot, &subject, &model, point.get(), budget),
                Look::Explore(budget) => found.explore(snapshot, &subject, &model, point.get(), budget),
            }
        },
        || {
            let writers = (0..plan.writers).map(|task| Box::new(writer(task)) as Box<dyn FnOnce() + '_>);
            let readers = (0..plan.readers).map(|task| Box::new(reader(task)) as Box<dyn FnOnce() + '_>);
            sched::run(plan.seed, writers.chain(readers).collect()).expect("the run ends");
        },
    );
    let violations = findings.violations.take();
    (findings.states.get(), violations, index.stats())
}

fn assert_sound(plan: Plan) -> (usize, FastFairStats) {
    let (states, violations, stats) = run(plan);
    assert_eq!(violations, Vec::<String>::new(), "{:?}, seed {}", plan.keys, plan.seed);
    (states, stats)
}

fn one_writer_survives_a_crash_at_any_operation(keys: Keys) {
    let (states, stats) = assert_sound(plan(keys, 11));
    assert!(states > 2_000, "{states} states explore too little");
    assert!(stats.splits > 0, "{keys:?} did not split");
}

#[test]
fn a_writer_of_words_survives_a_crash_at_any_operation() {
    one_writer_survives_a_crash_at_any_operation(Keys::Words);
}

#[test]
fn a_writer_of_rising_keys_survives_a_crash_at_any_operation() {
    one_writer_survives_a_crash_at_any_operation(Keys::Rising);
}

#[test]
fn a_writer_of_mixed_keys_survives_a_crash_at_any_operation() {
    one_writer_survives_a_crash_at_any_operation(Keys::Mixed);
}

#[test]
fn leaves_that_go_survive_a_crash_at_any_operation() {
    for keys in [Keys::Rising, Keys::Mixed] {
        let drain =
            Plan { residents: 62, steps: 62, work: Work::Drain, look: Look::Explore(2), ..plan(keys, 7919) };
        let (_, stats) = assert_sound(drain);
        assert!(stats.removals > 0, "{keys:?}: {stats:?}");
    }
}

#[test]
fn leaves_that_go_under_readers_and_writers_survive_a_crash() {
    for seed in 0..6 {
        let keys = [Keys::Rising, Keys::Mixed][seed as usize % 2];
        let base =
            Plan { residents: 64, writers: 2, readers: 2, own: 32, steps: 32, ..plan(keys, seed * 31) };
        let (_, stats) = assert_sound(Plan { work: Work::Drain, look: Look::Skim(2), ..base });
        assert!(stats.removals > 0, "{keys:?}: {stats:?}");
    }
}

/// A split leaves the upper entries where they were until they are durably gone. Were they not, their chunks
/// could be another key's by the time of a crash, and that key would be there twice.
#[test]
fn a_key_is_not_found_where_another_was_kept_before() {
    let key = |number: u64| format!("a key of more than eight bytes: {number:06}").into_bytes();
    let collector = Collector::new();
    let participant = collector.register();
    let space = format(LEN, ZONE, 3);
    let (index, root) = create(&space);
    // Not in order, so that the leaf is shared evenly.
    for number in (0..30).map(|n| 1000 + n * 7 % 30) {
        index.insert(&participant.pin(), &key(number), number).expect("room");
    }
    assert_eq!(index.stats().splits, 1);
    for number in 1018..1030 {
        assert_eq!(index.take(&participant.pin(), &key(number)).expect("sound"), Some(number));
    }
    (0..8).for_each(|_| _ = participant.collect());
    // So many that the last line which is written is full, and says nothing of where the node ends.
    for number in 0..7 {
        index.insert(&participant.pin(), &key(number), number + 1).expect("room");
    }
    let sim = space.region().simulator().expect("simulated").clone();
    let snapshot = sim.snapshot();
    for image in snapshot.images(1, 20) {
        let region = SimArena::new().boot(&snapshot, &image, 1);
        let index = FastFairIndex::open(Arc::new(Space::open(region).expect("a pool").0), root, 0)
            .expect("the index");
        let audit = index.audit(&participant.pin()).expect("in order");
        assert_eq!(audit.keys, 7 + 18);
    }
}

fn inner_nodes_that_split_and_go_survive_a_crash(keys: Keys) {
    let enough = keys_for_two_inner_nodes(keys);
    let base = Plan { look: Look::Skim(4), ..plan(keys, 5) };
    let fill = Plan { residents: enough - 4, work: Work::Fill, steps: 8, ..base };
    let (_, stats) = assert_sound(fill);
    assert_eq!(stats.levels, 3, "{keys:?}: {stats:?}");
    let drain = Plan { residents: enough + 2, work: Work::Drain, steps: 40, ..base };
    let (_, stats) = assert_sound(drain);
    assert!(stats.removals > 1, "{keys:?}: {stats:?}");
}

#[test]
fn inner_nodes_of_rising_keys_survive_a_crash_at_any_operation() {
    inner_nodes_that_split_and_go_survive_a_crash(Keys::Rising);
}

#[test]
fn inner_nodes_of_long_keys_survive_a_crash_at_any_operation() {
    inner_nodes_that_split_and_go_survive_a_crash(Keys::Long);
}

/// So many that the root has no room for another leaf.
fn keys_for_two_inner_nodes(keys: Keys) -> u64 {
    let space = format(LEN, ZONE, 1);
    let (index, _) = create(&space);
    let collector = Collector::new();
    let participant = collector.register();
    let mut count = 0;
    while index.stats().levels < 3 {
        index.insert(&participant.pin(), &keys.of(count), reference(count, 0)).expect("room");
        count += 1;
    }
    count
}

#[test]
fn several_writers_survive_a_crash_at_any_operation() {
    for seed in 0..4 {
        let keys = [Keys::Words, Keys::Mixed][seed as usize % 2];
        assert_sound(Plan {
            writers: 3,
            own: 16,
            steps: 12,
            look: Look::Explore(3),
            ..plan(keys, seed * 7907)
        });
    }
}

#[test]
fn what_readers_were_told_survives_a_crash() {
    for seed in 0..4 {
        let keys = [Keys::Words, Keys::Mixed][seed as usize % 2];
        let readers = Plan {
            writers: 2,
            readers: 2,
            own: 18,
            steps: 10,
            look: Look::Explore(3),
            ..plan(keys, seed * 104_729)
        };
        assert_sound(readers);
    }
}

/// What takes a rare order of steps to go wrong is looked for in many orders.
#[test]
fn many_schedules_survive_the_worst_crash() {
    for seed in 0..24 {
        let base = Plan { look: Look::Glance, residents: 27, ..plan(Keys::Words, seed * 3571) };
        assert_sound(Plan { own: 3, readers: 3, steps: 12, ..base });
        assert_sound(Plan { own: 10, writers: 4, readers: 1, steps: 8, ..base });
    }
}

/// Every twin is convicted by the message for its own fault.
#[test]
fn broken_twins_are_convicted() {
    for (twin, message) in [
        (Twin::ShiftNotFlushed, "should be"),
        (Twin::NoFlush, "should be"),
        (Twin::NoHelp, "should be"),
        (Twin::NoFence, "should be"),
    ] {
        let is_convicted = (0..32).any(|seed| {
            let readers = if twin == Twin::NoHelp { 3 } else { 0 };
            let base = Plan { twin, readers, own: 4, residents: 4, steps: 16, ..plan(Keys::Words, seed) };
            let plan = if readers == 0 { Plan { own: 24, residents: 16, ..base } } else { base };
            run(plan).1.iter().any(|violation| violation.contains(message))
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
    let space = format(LEN, ZONE, 5);
    let (index, root) = create(&space);
    let findings = Findings::default();
    let sim = space.region().simulator().expect("simulated").clone();
    sim.set_fault(Some(Fault::FenceOmitted { every: 1 }));
    let mut model = Model::new();
    for key in 0..60 {
        index.insert(&guard, &Keys::Words.of(key), reference(key, 0)).expect("room");
        model.insert(key, Known { now: Some(reference(key, 0)), next: None });
    }
    let subject = Subject { root, keys: Keys::Words, twin: Twin::Sound };
    findings.explore(&sim.snapshot(), &subject, &model, 1, 20);
    assert!(!findings.violations.take().is_empty());
}

#[test]
fn a_crash_during_creation_leaks_nothing() {
    creation::leaks_nothing(
        || format(LEN, ZONE, 2),
        |space, keep| drop(FastFairIndex::create(space.clone(), (), 0, keep).expect("room")),
        |space, root| match FastFairIndex::open(space.clone(), root, 0) {
            Err(IndexError::Absent) => None,
            index => {
                let index = index.expect("sound");
                assert!(index.keys() == 0);
                Some(index.zones())
            }
        },
    );
}
