//! Crashes of a chain at every operation on the medium, in many of the states that each may leave, also while
//! it is recovered, and in runs after that.
//!
//! The oracle: the records that are found are those of all items up to one cut, in the order of the grants,
//! and the cut is not below any number that was acknowledged. Broken twins show that it would notice.

use crate::chain::{format, open, read_all};
use quipu_medium::Region;
use quipu_medium::sim::{Event, Sim, SimArena, SimOptions, Snapshot, sched};
use quipu_parts::commit::ring::Grants;
use quipu_parts::heap::chain::{ChainLog, ChainTwin, Item};
use quipu_parts::record::Content;
use quipu_parts::space::Space;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

const TABLES: u64 = 3;

/// What is known of a pool.
#[derive(Clone, Default)]
struct Model {
    /// Items that were granted, by their last numbers: their first numbers, and what their records have.
    granted: BTreeMap<u64, (u64, u64)>,
    /// All items up to here were acknowledged or seen.
    least: u64,
}

/// Small, seeded, good enough to choose operations.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ (mixed >> 27)) >> 11) % bound
    }
}

/// The records of an item: tables and lengths of values follow from its mark.
fn records(mark: u64) -> impl Iterator<Item = (usize, usize)> {
    let mut random = Random(mark);
    let (count, one_table) = (1 + random.below(4), random.below(3) == 0);
    let first = random.below(TABLES);
    (0..count).map(move |_| {
        let table = if one_table { first } else { random.below(TABLES) };
        (table as usize, 8 * random.below(30) as usize)
    })
}

/// Opens a pool, holds what is found against the model, and returns the log and the cut.
fn recovered(region: &Region, twin: Option<ChainTwin>, model: &Model) -> Result<(ChainLog, u64), String> {
    let (space, _) = Space::open(region.clone()).map_err(|error| error.to_string())?;
    let space = Arc::new(space);
    let (heap, anchor) = open(&space, 0).map_err(|error| error.to_string())?;
    let heap = match twin {
        Some(twin) => heap.broken(twin),
        None => heap,
    };
    let recovered = heap.recover(&anchor).map_err(|error| error.to_string())?;
    let (found, cut) = (read_all(&heap, &recovered), recovered.cut);
    if cut < model.least {
        return Err(format!("the cut is {cut}, and {} was acknowledged", model.least));
    }
    let mut numbers = found.iter();
    for (last, (first, mark)) in model.granted.range(..=cut) {
        // Records of an item stand table by table, in the order in which the tables first came.
        let mut tables: Vec<usize> = Vec::new();
        for (table, _) in records(*mark) {
            if !tables.contains(&table) {
                tables.push(table);
            }
        }
        let in_order = tables.iter().flat_map(|own| records(*mark).filter(move |(table, _)| table == own));
        for ((table, len), number) in in_order.zip(*first..) {
            let Some((found, read)) = numbers.next() else {
                return Err(format!("number {number} is missing below the cut {cut}"));
            };
            let expected = (number, table as u32 + 7, &mark.to_le_bytes()[..], len);
            if (*found, read.subtable, &read.key[..], read.value.len()) != expected {
                return Err(format!("number {number} is {found}: {read:?}"));
            }
        }
        if *last == cut {
            break;
        }
    }
    if let Some((number, _)) = numbers.next() {
        return Err(format!("number {number} is above the cut {cut}, or of no item"));
    }
    if cut != 0 && !model.granted.contains_key(&cut) {
        return Err(format!("the cut {cut} is not the end of an item"));
    }
    Ok((ChainLog::new(heap, Grants::default(), cut), cut))
}

/// One task's items.
fn work(log: &ChainLog, model: &RefCell<Model>, seed: u64, items: u64) {
    let mut item = Item::default();
    for nth in 0..items {
        let mark = seed << 16 | nth;
        item.clear();
        for (table, len) in records(mark) {
            item.chunk(table).push(&Content::value(&mark.to_le_bytes(), &vec![7; len]));
        }
        let granted = |place: &quipu_parts::commit::ring::Place| {
            model.borrow_mut().granted.insert(place.last, (place.first, mark));
        };
        let Ok(last) = log.commit(&mut item, None, granted, |_| {}) else { return };
        let seen = log.visible().max(last);
        let mut model = model.borrow_mut();
        model.least = model.least.max(seen);
    }
}

/// Calls `each` before every operation of `act` on the medium.
fn at_each_operation(region: &Region, each: impl FnMut(&Snapshot) + 'static, act: impl FnOnce()) {
    let mut each = each;
    let sim = region.simulator().expect("simulated").clone();
    sim.set_observer(Some(Box::new(move |sim: &Sim, _: Event| each(&sim.snapshot()))));
    act();
    sim.set_observer(None);
}

/// An exploration of one seed.
#[derive(Clone)]
struct Exploration {
    arena: Rc<RefCell<SimArena>>,
    states: Rc<Cell<usize>>,
    violation: Rc<RefCell<Option<String>>>,
    twin: Option<ChainTwin>,
    budget: usize,
}

impl Exploration {
    fn new(twin: Option<ChainTwin>, budget: usize) -> Exploration {
        let (arena, states, violation) = Default::default();
        Exploration { arena, states, violation, twin, budget }
    }

    fn note<T>(&self, outcome: Result<T, String>) -> Option<T> {
        self.states.set(self.states.get() + 1);
        outcome.map_err(|what| self.violation.borrow_mut().get_or_insert(what).truncate(400)).ok()
    }

    /// A run of tasks on a pool, and crashes at every so many operations of it.
    fn run(&self, region: &Region, model: &Model, log: ChainLog, seed: u64, depth: u32) {
        let model = Rc::new(RefCell::new(model.clone()));
        let (this, known, mut point) = (self.clone(), model.clone(), 0u64);
        let every = if depth == 0 { 1 } else { 37 };
        at_each_operation(
            region,
            move |snapshot| {
                point += 1;
                if (point + seed).is_multiple_of(every) && this.violation.borrow().is_none() {
                    this.crash(snapshot, &known.borrow(), seed + point, depth);
                }
            },
            || {
                for table in 0..TABLES as usize {
                    if log.open(table, table as u32 + 7, None).is_err() {
                        return;
                    }
                }
                let tasks = (0..3).map(|task| {
                    let (log, model) = (&log, &*model);
                    Box::new(move || work(log, model, seed * 8 + task, 6)) as Box<dyn FnOnce() + '_>
                });
                sched::run(seed, tasks.collect()).expect("the run ends");
            },
        );
    }

    /// Opens crash images, crashes while they are recovered, and lets some work on.
    fn crash(&self, snapshot: &Snapshot, model: &Model, seed: u64, depth: u32) {
        for (image, nth) in snapshot.images(seed, self.budget).zip(0u64..) {
            let boot = || self.arena.borrow_mut().boot(snapshot, &image, seed + nth);
            self.open(&boot(), model, seed, depth, nth % 4 == seed % 4);
        }
        if seed.is_multiple_of(5) {
            let region = self.arena.borrow_mut().boot_process_crash(snapshot, seed);
            self.open(&region, model, seed, depth, true);
        }
    }

    fn open(&self, region: &Region, model: &Model, seed: u64, depth: u32, goes_on: bool) {
        let crashes = Rc::new(RefCell::new(Vec::new()));
        let (noted, mut outcome) = (crashes.clone(), None);
        at_each_operation(
            region,
            move |during| noted.borrow_mut().push(during.clone()),
            || outcome = self.note(recovered(region, self.twin, model)),
        );
        let Some((log, cut)) = outcome else { return };
        let crashes = crashes.take();
        for during in crashes.iter().skip((seed % 5) as usize).step_by(5) {
            for image in during.images(seed, 2) {
                self.note(recovered(&self.arena.borrow_mut().boot(during, &image, seed), self.twin, model));
            }
        }
        if goes_on && depth < 2 {
            // What was cut off is gone for good, and all that was found stays.
            let mut model = model.clone();
            model.granted.retain(|last, _| *last <= cut);
            model.least = cut;
            self.run(region, &model, log, seed.wrapping_mul(31) % 9973 + 1, depth + 1);
        }
    }
}

/// Explores a seed. Returns the states opened, and the first violation.
fn explore(seed: u64, twin: Option<ChainTwin>, budget: usize) -> (usize, Option<String>) {
    let region = Region::sim(SimOptions { len: 256 << 10, seed, ..SimOptions::default() });
    let space = format(region.clone(), 24);
    drop(space);
    let exploration = Exploration::new(twin, budget);
    let (log, _) = recovered(&region, twin, &Model::default()).expect("a new pool");
    exploration.run(&region, &Model::default(), log, seed, 0);
    let violation = exploration.violation.take();
    (exploration.states.get(), violation)
}

#[test]
fn a_crash_leaves_a_prefix_of_all_items() {
    for seed in 1..=3 {
        let (states, violation) = explore(seed, None, 4);
        assert_eq!(violation, None, "seed {seed}");
        assert!(states > 1000, "{states} states explore too little");
    }
}

/// Broken chains, the words that convict each, and seeds that do.
const TWINS: &[(ChainTwin, &[&str], [u64; 3])] = &[
    (ChainTwin::PiecesNotCounted, &["is missing below the cut"], [1, 2, 3]),
    (ChainTwin::OrderNotFollowed, &["number "], [1, 2, 3]),
    (ChainTwin::CutNotDurable, &["accounted for", "above the cut"], [1, 2, 3]),
    (ChainTwin::NotEnded, &["accounted for", "above the cut"], [1, 2, 3]),
];

#[test]
fn broken_chains_are_convicted() {
    for (twin, charges, seeds) in TWINS {
        for seed in seeds {
            let (_, violation) = explore(*seed, Some(*twin), 6);
            let violation = violation.unwrap_or_default();
            let is_charged = charges.iter().any(|charge| violation.contains(charge));
            assert!(is_charged, "{twin:?} is not convicted by seed {seed}: {violation}");
        }
    }
}
