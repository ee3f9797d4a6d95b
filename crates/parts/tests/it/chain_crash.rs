//! Crashes of a chain at every operation on the medium, in many of the states that each may leave, also while
//! it is recovered, and in runs after that.
//!
//! The oracle: the records that are found are those of all items up to one cut, in the order of the grants,
//! and the cut is not below any number that was acknowledged. Memtables that were released are gone as a
//! whole, the oldest first, and nothing else is. Broken twins show that it would notice.

use crate::chain::{Read, certifier, format, open_tables, open_with, read_all, recover};
use crate::crashes::at_each_operation;
use crate::shared::random::Random;
use quipu_medium::Region;
use quipu_medium::sim::{SimArena, SimOptions, Snapshot, sched};
use quipu_parts::commit::ring::{Grants, Place};
use quipu_parts::heap::Reference;
use quipu_parts::heap::chain::anchor::Anchor;
use quipu_parts::heap::chain::{ChainLog, Item, Memtable, Supply, Written};
use quipu_parts::record::Content;
use quipu_parts::space::Space;
use quipu_parts::twin::{Twin, leave_out};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

mod cases;
mod twins;

const TABLES: u64 = 3;

/// The knowledge that a crash must not contradict.
#[derive(Clone, Default)]
struct Model {
    /// Items that were granted, by their last numbers: their first numbers, marks, and the table of their
    /// task, if they may have written to it.
    granted: BTreeMap<u64, (u64, (u64, Option<u64>))>,
    /// All items up to here were acknowledged or seen.
    least: u64,
    /// The table that one task creates, writes to and drops: its number, and its state.
    own: Option<(u64, Own)>,
    /// The memtables of the records of that table, by their numbers.
    held: BTreeMap<u64, u64>,
    /// The records of the memtables that are being released, in order: those of the first so many are gone.
    going: Vec<BTreeSet<u64>>,
    /// Records that are gone with their memtables.
    gone: BTreeSet<u64>,
}

impl Model {
    /// Notes that so many of the memtables that were being released are gone, and that no other will be.
    fn went(&mut self, count: usize) {
        let going = std::mem::take(&mut self.going);
        self.gone.extend(going.into_iter().take(count).flatten());
    }
}

/// A run's kind.
#[derive(Clone, Copy)]
struct Kind {
    broken: Option<Broken>,
    /// Zones of a memtable.
    slots: u32,
    /// Whether the table of one task is dropped. If not, another task releases its memtables.
    drops: bool,
}

impl Kind {
    /// Whether the task of a table releases its memtables.
    fn releases_own(&self) -> bool {
        self.drops || self.broken == Some(Broken::NotVisible)
    }
}

/// What is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    /// The chain leaves out a rule.
    Rule(Twin),
    /// The newest memtables are released first.
    NewestFirst,
    /// Memtables are released when they are full, though they may not be visible.
    NotVisible,
}

/// The state of that table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Own {
    /// It is there.
    Created,
    /// It is there, or it is gone as a whole.
    BeingDropped,
}

/// Bit of the mark of an item that may write to the table of its task.
const HAS_OWN: u64 = 1 << 63;

/// The records of an item: tables and lengths of values follow from its mark.
fn records(mark: u64) -> impl Iterator<Item = (usize, usize)> {
    let (mut random, has_own) = (Random(mark), mark & HAS_OWN != 0);
    let (count, one_table) = (1 + random.below(4), random.below(3) == 0);
    // Half of the records are long ones of the table of its task, which fills memtables so.
    let least = if has_own { 40 } else { 0 };
    let table = move |random: &mut Random| match random.below(TABLES + TABLES * u64::from(has_own)) {
        table @ 0..TABLES => table,
        _ => TABLES,
    };
    let first = table(&mut random);
    (0..count).map(move |_| {
        let table = if one_table { first } else { table(&mut random) };
        (table as usize, 8 * (least + random.below(120 - least)) as usize)
    })
}

/// The records that an item has written, in the order of their numbers: table by table, as they first came.
fn in_order(mark: u64) -> Vec<(usize, usize)> {
    let mut tables: Vec<usize> = Vec::new();
    for (table, _) in records(mark) {
        if !tables.contains(&table) {
            tables.push(table);
        }
    }
    tables.iter().flat_map(|own| records(mark).filter(move |(table, _)| table == own)).collect()
}

/// Holds the records that were found against the items up to the cut. `shared` and `own` are the numbers of
/// the tables.
fn compare(
    found: &BTreeMap<u64, Read>,
    model: &Model,
    cut: u64,
    (shared, own): (&[u64], Option<u64>),
) -> Result<(), String> {
    let mut numbers = found.iter();
    for (first, (mark, written_to)) in model.granted.range(..=cut).map(|(_, (first, item))| (*first, *item)) {
        for ((table, len), number) in in_order(mark).into_iter().zip(first..) {
            let subtable = shared.get(table).copied().or(written_to).expect("it had a table of its own");
            if table as u64 == TABLES && (own != Some(subtable) || model.gone.contains(&number)) {
                continue; // it has been dropped, or its memtable released
            }
            let Some((found, read)) = numbers.next() else {
                return Err(format!("number {number} is missing below the cut {cut}"));
            };
            let expected = (number, subtable, &mark.to_le_bytes()[..], len);
            if (*found, read.subtable, &read.key[..], read.value.len()) != expected {
                let Read { subtable, key, value, .. } = read;
                return Err(format!(
                    "number {number} is {found} of {key:?} in {subtable}, {} bytes",
                    value.len()
                ));
            }
        }
    }
    match numbers.next() {
        Some((number, _)) => Err(format!("number {number} is above the cut {cut}, or of no item")),
        None => Ok(()),
    }
}

/// Opens a pool, holds its records against the model, and returns the log and the model from now on.
fn recovered(region: &Region, kind: Kind, model: &Model) -> Result<(ChainLog, Anchor, Model), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let space = Arc::new(Space::open(region.clone()).map_err(|error| text(&error))?.0);
    let (mut heap, anchor) = open_with(&space, certifier(), kind.slots).map_err(|error| text(&error))?;
    let recovered = recover(&mut heap, &anchor).map_err(|error| text(&error))?;
    let (found, cut) = (read_all(&heap, &recovered), recovered.cut);
    if cut < model.least {
        return Err(format!("the cut is {cut}, and {} was acknowledged", model.least));
    }
    if cut != 0 && !model.granted.contains_key(&cut) {
        return Err(format!("the cut {cut} is not the end of an item"));
    }
    let tables: Vec<u64> =
        heap.subtables().map_err(|error| text(&error))?.iter().map(|table| table.created).collect();
    let (shared, own) = tables.split_at(TABLES as usize);
    let own = match (own, model.own) {
        ([], None | Some((_, Own::BeingDropped))) => None,
        ([only], Some((known, _))) if *only == known => Some(known),
        // Being created.
        ([only], None) => Some(*only),
        (own, known) => return Err(format!("tables {own:?} are there, and known is {known:?}")),
    };
    let is_gone = |numbers: &&BTreeSet<u64>| !numbers.iter().any(|number| found.contains_key(number));
    let mut known = model.clone();
    known.went(model.going.iter().take_while(is_gone).count());
    compare(&found, &known, cut, (shared, own))?;
    let objects = space.pool(1).expect("that of the memtables").committed().len();
    let zones: usize = recovered.memtables.iter().map(|recovered| recovered.memtable.zones().len()).sum();
    if (space.committed_zones().len(), objects) != (zones, recovered.memtables.len()) {
        return Err("zones or memtables have leaked".to_owned());
    }
    // The rest is gone for good, and all that was found stays.
    known.granted.retain(|last, _| *last <= cut);
    known.least = cut;
    known.own = own.map(|created| (created, Own::Created));
    let log = ChainLog::new(heap, Grants::default(), recovered);
    let held = found.iter().filter(|(_, read)| Some(read.subtable) == own);
    known.held = held.map(|(number, read)| (*number, holder(&log, read.reference))).collect();
    Ok((log, anchor, known))
}

/// The number of the memtable that has a record.
fn holder(log: &ChainLog, reference: Reference) -> u64 {
    let (zone, memtables) = (log.heap().zone_of(reference), log.memtables());
    let holder = memtables.iter().find(|memtable| memtable.zones().contains(&zone));
    holder.expect("a zone of records is a memtable's").number()
}

/// Writes an item of this mark. Returns its last number, if there was room.
fn write(
    log: &ChainLog,
    model: &RefCell<Model>,
    item: &mut Item,
    mark: u64,
    own: Option<u64>,
) -> Option<u64> {
    item.clear();
    for (table, len) in records(mark) {
        item.chunk(table).push(&Content::value(&mark.to_le_bytes(), &vec![7; len]));
    }
    let granted = |place: &Place| {
        model.borrow_mut().granted.insert(place.last, (place.first, (mark, own)));
    };
    let publish = |written: &Written<'_>| {
        if written.table as u64 == TABLES {
            for (reference, number) in written.references().zip(written.first..) {
                let holder = holder(log, reference);
                model.borrow_mut().held.insert(number, holder);
            }
        }
    };
    log.write(item, Supply::default(), |_, _| (), granted, publish).ok()
}

/// Waits for an item.
fn wait(log: &ChainLog, model: &RefCell<Model>, last: u64) {
    log.wait(last).expect("nobody panicked");
    let seen = log.visible().max(last);
    let mut model = model.borrow_mut();
    model.least = model.least.max(seen);
}

/// Releases the memtables of a task's table that have ended, the oldest first.
fn release(log: &ChainLog, anchor: &Anchor, model: &RefCell<Model>, broken: Option<Broken>) {
    let Some((own, _)) = model.borrow().own else { return };
    let mut memtables = log.memtables();
    memtables.retain(|memtable| memtable.subtable() == own);
    let (held, visible) = (model.borrow().held.clone(), log.visible());
    let records = |memtable: &Memtable| -> BTreeSet<u64> {
        let held = held.iter().filter(|(_, holder)| **holder == memtable.number());
        held.map(|(number, _)| *number).collect()
    };
    memtables.retain(|memtable| match broken {
        Some(Broken::NotVisible) => {
            let is_full = Some(&memtable.number()) < held.values().max();
            is_full && records(memtable).last() > Some(&visible)
        }
        _ => memtable.end().is_some(),
    });
    if memtables.is_empty() {
        return;
    }
    memtables.sort_by_key(|memtable| memtable.number());
    model.borrow_mut().going = memtables.iter().map(|memtable| records(memtable)).collect();
    if broken == Some(Broken::NewestFirst) {
        memtables.reverse();
    }
    log.release(&memtables, anchor);
    model.borrow_mut().went(memtables.len());
}

/// One task's items. It may do something after each.
fn work(log: &ChainLog, model: &RefCell<Model>, seed: u64, items: u64, then: impl Fn()) {
    let mut item = Item::default();
    for nth in 0..items {
        let Some(last) = write(log, model, &mut item, seed << 16 | nth, None) else { return };
        wait(log, model, last);
        then();
    }
}

/// Items of a task that has a table of its own for some of the time.
fn work_with_own(
    log: &ChainLog,
    anchor: &Anchor,
    model: &RefCell<Model>,
    (seed, items): (u64, u64),
    kind: Kind,
) {
    const OWN: usize = TABLES as usize;
    let (mut item, heap) = (Item::default(), log.heap());
    for round in 0..2 {
        let known = model.borrow().own;
        let tables = heap.subtables().expect("sound");
        let table = match known {
            Some((known, _)) => tables.into_iter().find(|table| table.created == known).expect("it is there"),
            None => heap.create_subtable("own").expect("room"),
        };
        let created = table.created;
        model.borrow_mut().own = Some((created, Own::Created));
        if round == 0 || kind.drops {
            log.open(OWN, created).expect("nobody panicked");
        }
        for nth in 0..items {
            let mark = HAS_OWN | seed << 16 | round << 8 | nth;
            let Some(last) = write(log, model, &mut item, mark, Some(created)) else { return };
            if nth == 1 && kind.broken != Some(Broken::NotVisible) {
                log.seal(OWN).expect("nobody panicked");
            }
            if kind.releases_own() {
                release(log, anchor, model, kind.broken);
            }
            if nth % 4 == 3 {
                wait(log, model, last);
            }
        }
        if !kind.drops {
            continue;
        }
        model.borrow_mut().own = Some((created, Own::BeingDropped));
        let dropped = log.drop_subtable(OWN, &table, anchor).expect("nobody panicked");
        model.borrow_mut().own = None;
        model.borrow_mut().held.clear();
        dropped.memtables.iter().for_each(|memtable| heap.release(memtable));
    }
}

/// An exploration of one seed.
#[derive(Clone)]
struct Exploration {
    arena: Rc<RefCell<SimArena>>,
    states: Rc<Cell<usize>>,
    violation: Rc<RefCell<Option<String>>>,
    /// The most memtables that a run had in the end, and the most records that it had released.
    memtables: Rc<Cell<usize>>,
    gone: Rc<Cell<usize>>,
    kind: Kind,
    budget: usize,
}

impl Exploration {
    fn new(kind: Kind, budget: usize) -> Exploration {
        let (arena, states, violation, memtables, gone) = Default::default();
        Exploration { arena, states, violation, memtables, gone, kind, budget }
    }

    fn note<T>(&self, outcome: Result<T, String>) -> Option<T> {
        self.states.set(self.states.get() + 1);
        outcome.map_err(|what| self.violation.borrow_mut().get_or_insert(what).truncate(400)).ok()
    }

    /// A run of tasks on a pool, and crashes at every so many operations of it.
    fn run(&self, region: &Region, model: &Model, (log, anchor): (ChainLog, Anchor), seed: u64, depth: u32) {
        let model = Rc::new(RefCell::new(model.clone()));
        let (this, known, mut point) = (self.clone(), model.clone(), 0u64);
        let (switches, gone) = (self.memtables.clone(), self.gone.clone());
        let (every, kind) = (if depth == 0 { 9 } else { 101 }, self.kind);
        at_each_operation(
            region,
            move |snapshot| {
                point += 1;
                if (point + seed).is_multiple_of(every) && this.violation.borrow().is_none() {
                    this.crash(snapshot, &known.borrow(), seed * 1009 + point, depth);
                }
            },
            move || {
                open_tables(&log, TABLES as usize);
                {
                    let (log, anchor, model) = (&log, &anchor, &*model);
                    let shared = (0..2).map(|task| {
                        let then = move || {
                            if task == 0 && !kind.releases_own() {
                                release(log, anchor, model, kind.broken);
                            }
                        };
                        Box::new(move || work(log, model, seed * 8 + task, 6, then)) as Box<dyn FnOnce() + '_>
                    });
                    let own = move || work_with_own(log, anchor, model, (seed * 8 + 2, 4), kind);
                    let tasks = shared.chain([Box::new(own) as Box<dyn FnOnce() + '_>]);
                    sched::run(seed, tasks.collect()).expect("the run ends");
                }
                let memtables = log.heap().space().pool(1).expect("that of the memtables").committed();
                switches.set(switches.get().max(memtables.len()));
                gone.set(gone.get().max(model.borrow().gone.len()));
                log.close().expect("nobody panicked");
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

    fn open(&self, region: &Region, before: &Model, seed: u64, depth: u32, goes_on: bool) {
        let crashes = Rc::new(RefCell::new(Vec::new()));
        let (noted, mut outcome) = (crashes.clone(), None);
        at_each_operation(
            region,
            move |during| noted.borrow_mut().push(during.clone()),
            || outcome = self.note(recovered(region, self.kind, before)),
        );
        let Some((log, anchor, model)) = outcome else { return };
        let (crashes, behind) = (crashes.take(), region.simulator().expect("simulated").snapshot());
        let during = crashes.iter().skip((seed % 5) as usize).step_by(5).map(|during| (during, before));
        // Also when it has recovered, and what it has told is known.
        for (during, known) in during.chain([(&behind, &model)]) {
            for image in during.images(seed, 2) {
                self.note(recovered(&self.arena.borrow_mut().boot(during, &image, seed), self.kind, known));
            }
        }
        // The process may die again while it recovers, and go on with words that are only in the cache.
        for during in crashes.iter().skip((seed % 7) as usize).step_by(7).filter(|_| goes_on && depth == 0) {
            let region = self.arena.borrow_mut().boot_process_crash(during, seed);
            self.open(&region, before, seed + 1, depth + 1, true);
        }
        if goes_on && depth < 2 {
            self.run(region, &model, (log, anchor), seed.wrapping_mul(31) % 9973 + 1, depth + 1);
        }
    }
}

/// Whether the table of one task is dropped, and whether the processor has writes past its caches.
type Shape = (bool, bool);

/// Explores a seed. Returns the states opened, and the first violation.
fn explore(
    seed: u64,
    broken: Option<Broken>,
    (drops, streams): Shape,
    budget: usize,
) -> (usize, Option<String>) {
    let region = Region::sim(SimOptions { len: 512 << 10, seed, streams, ..SimOptions::default() });
    let space = format(region.clone(), 60);
    drop(space);
    // Memtables of one zone fill up, and those of two have another one ready.
    let kind = Kind { broken, slots: 2 - (seed % 2) as u32, drops };
    let exploration = Exploration::new(kind, budget);
    let _left_out = leave_out(match broken {
        Some(Broken::Rule(rule)) => Some(rule),
        _ => None,
    });
    let (log, anchor, model) = recovered(&region, kind, &Model::default()).expect("a new pool");
    exploration.run(&region, &model, (log, anchor), seed, 0);
    let violation = exploration.violation.take();
    let fills_up = kind.slots > 1 || exploration.memtables.get() > 6;
    assert!(violation.is_some() || fills_up, "memtables fill up, and others follow");
    assert!(violation.is_some() || broken.is_some() || exploration.gone.get() > 8, "memtables are released");
    (exploration.states.get(), violation)
}

#[test]
fn a_crash_leaves_a_prefix_of_all_items() {
    for (seed, drops, streams) in [(3, true, true), (4, true, false), (3, false, false), (4, false, true)] {
        let (states, violation) = explore(seed, None, (drops, streams), 2);
        assert_eq!(violation, None, "seed {seed}");
        assert!(states > 10_000, "{states} states explore too little");
    }
}
