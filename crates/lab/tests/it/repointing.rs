//! Compaction copies records and repoints the index to the copies while writers write the same keys, and
//! locks nobody out. In thousands of schedules of the simulator's scheduler, the results of the writers fit
//! one order. So do reads at the end, after a power failure, and after a compaction then.

use crate::shared::schedule;

use quipu::internals::twin::leave_out;
use quipu::internals::{Techniques, Testing, Twin};
use quipu::{Design, Error, Options, Store};
use quipu_lab::action::Action;
use quipu_lab::linear::{Caller, Clock, Log, Operation, Subject, Timing};
use quipu_medium::sim::SimArena;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use schedule::{Scheduled, Task, options, seeds, unexplained};

/// Keys at which writers and the cleaners meet, and others whose records lie between theirs.
const KEYS: u64 = 3;
const OTHERS: u64 = 8;

const WRITERS: u64 = 2;
const CALLS: u64 = 8;
const COMPACTIONS: usize = 3;

/// The results of schedules.
#[derive(Default)]
struct Shown {
    /// Records that moved while the writers were at work.
    moved: u64,
    /// Histories that no order explains, in words.
    convictions: Vec<String>,
}

fn options_of(design: Design, seed: u64) -> Options {
    let testing = Testing {
        tiny_index: seed.is_multiple_of(2),
        stripes: (seed % 4 < 2).then_some(2),
        handful: seed.is_multiple_of(3).then_some(3),
        compactors: (seed % 8 < 4).then_some(2),
        ..Testing::default()
    };
    let techniques = if seed.is_multiple_of(5) { Techniques::RAW } else { Techniques::ALL };
    options(design, testing).with(|options| options.techniques = techniques)
}

/// The calls of a writer; every value that it writes is its own.
fn write(store: &Store, clock: &Clock, number: u64, seed: u64) -> Result<Vec<Operation>, Error> {
    let mut random = SmallRng::seed_from_u64(seed ^ number << 32);
    let mut client = Subject::new(store.client(), None, 0);
    let mut log = Log::new(clock, Caller::Thread(number as u32));
    let mut value = number * 1000;
    for _ in 0..CALLS {
        value += KEYS;
        let key = random.random_range(0..KEYS);
        let action = match random.random_range(0..12) {
            0..4 => Action::Put(value),
            4 => Action::Delete,
            5 => Action::Remove,
            6 => Action::Update(Some(value)),
            7 => Action::PutIfAbsent(value),
            8 => Action::Get,
            9 => {
                log.get_many(&mut client, &[0, 1, 2], &Timing::FREE)?;
                continue;
            }
            _ => {
                let pairs: Vec<_> = (0..KEYS).map(|key| (key, value + key)).collect();
                log.put_many(&mut client, &pairs, &Timing::FREE)?;
                continue;
            }
        };
        log.call(&mut client, key, action, &Timing::FREE)?;
    }
    Ok(log.into_operations())
}

/// One schedule: what everybody was told, and how many records moved meanwhile.
fn run(options: &Options, arena: &mut SimArena, seed: u64) -> Result<(Vec<Operation>, u64), Error> {
    let mut scheduled = Scheduled::new(options, seed, 1 << 20, KEYS + OTHERS)?;
    let mut tasks: Vec<Task<'_>> = Vec::new();
    for number in 1..=WRITERS {
        tasks.push(Box::new(move |store, clock| write(store, clock, number, seed)));
    }
    tasks.push(Box::new(|store, _| {
        (0..COMPACTIONS).try_for_each(|_| store.compact().map(drop))?;
        Ok(Vec::new())
    }));
    scheduled.run(tasks)?;
    let moved = scheduled.store.stats().moved_records;
    Ok((scheduled.end(arena, KEYS)?, moved))
}

fn explore(design: Design, twin: Option<Twin>, seeds: impl Iterator<Item = u64>, enough: usize) -> Shown {
    let _left_out = leave_out(twin);
    let (mut shown, mut arena) = (Shown::default(), SimArena::new());
    for seed in seeds {
        let (operations, moved) = run(&options_of(design, seed), &mut arena, seed)
            .unwrap_or_else(|error| panic!("{design}, seed {seed}: {error}"));
        shown.moved += moved;
        shown.convictions.extend(unexplained(&format!("{design}, seed {seed}"), operations));
        if shown.convictions.len() >= enough {
            break;
        }
    }
    shown
}

/// Schedules of each design.
const SCHEDULES: u64 = 2000;

fn holds(design: Design) {
    let seeds = seeds(SCHEDULES);
    let schedules = seeds.end - seeds.start;
    let shown = explore(design, None, seeds, 1);
    assert!(shown.convictions.is_empty(), "{}", shown.convictions.concat());
    println!("{design}: {schedules} schedules, {} records moved beside writers", shown.moved);
    assert!(shown.moved >= schedules * OTHERS, "nothing moved: this test sees nothing");
}

#[test]
fn flatstore_h_repoints_only_what_nobody_has_changed() {
    holds(Design::FLATSTORE_H);
}

#[test]
fn flatstore_m_repoints_only_what_nobody_has_changed() {
    holds(Design::FLATSTORE_M);
}

#[test]
fn flatstore_ph_repoints_only_what_nobody_has_changed() {
    holds(Design::FLATSTORE_PH);
}

#[test]
fn flatstore_ff_repoints_only_what_nobody_has_changed() {
    holds(Design::FLATSTORE_FF);
}

#[test]
fn quipu_repoints_only_what_nobody_has_changed() {
    holds(Design::QUIPU);
}

/// So that those above can fail: a cleaner that lets the index name its copy whatever it names by then.
#[test]
fn a_cleaner_that_does_not_compare_is_convicted() {
    for design in
        [Design::FLATSTORE_H, Design::FLATSTORE_M, Design::FLATSTORE_PH, Design::FLATSTORE_FF, Design::QUIPU]
    {
        let shown = explore(design, Some(Twin::RepointedBlindly), 0..SCHEDULES, 1);
        assert!(!shown.convictions.is_empty(), "{design} got away");
    }
}
