//! The record of a run whose design puts all writes of a pool into one order: which call has which numbers,
//! which tables there are, and what readers have seen.
//!
//! A grant comes on the task that makes the call, so the task's call in flight tells what was written.

use super::oracle::{Action, OpId, Outcome, State, Time};
use super::prefix::{Fate, Found, Order, Place, Write};
use super::records::Records;
use quipu::Table;
use quipu::internals::Granted;
use quipu_medium::sim::sched;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};

/// A task with the numbers of an item that it writes.
type Grant = (u32, RangeInclusive<u64>);

/// The grants that nobody has looked at yet.
#[derive(Clone, Default)]
pub(super) struct Grants(Arc<Mutex<Vec<Grant>>>);

impl Grants {
    /// The listener of a store.
    pub(super) fn listener(&self) -> Granted {
        let all = self.0.clone();
        Granted(Arc::new(move |numbers| {
            all.lock().expect("nobody panics with it").push((sched::task_id(), numbers));
        }))
    }

    fn take(&self) -> Vec<Grant> {
        std::mem::take(&mut *self.0.lock().expect("nobody panics with it"))
    }
}

/// The state of all tables of a store, as it was read.
#[derive(Clone, Default)]
pub(super) struct Contents {
    /// The states of all keys; absent in a table that is not there.
    pub(super) states: Vec<State>,
    /// The tables by their slots.
    pub(super) tables: Vec<Option<Table>>,
}

/// The table that has a name.
#[derive(Clone)]
struct Slot {
    /// Its number in the order; that of the last one if there is none now.
    number: Option<usize>,
    table: Option<Table>,
}

/// The states that a crash may leave, for all keys of all tables together.
#[derive(Clone)]
pub(super) struct Prefixes {
    order: Order,
    slots: Vec<Slot>,
    records: Records,
}

impl Prefixes {
    /// Asks whether a crash may leave this, read at that time.
    pub(super) fn judge(&self, contents: &Contents, now: Time) -> Result<(), String> {
        let mut found = Found::new();
        for (at, table) in contents.tables.iter().enumerate() {
            let Some(table) = table else { continue };
            let slot = &self.slots[at];
            let is_known = slot.table.as_ref().is_none_or(|known| known == table);
            let number = slot.number.filter(|_| is_known);
            let fault = || format!("a table called {} is there, which should not", table.name());
            let number = number.ok_or_else(fault)?;
            let keys = (0..self.records.keys).filter(|key| self.records.table(*key) == at);
            found.insert(number, keys.map(|key| (key, contents.states[key])).collect());
        }
        self.order.judge(&found, now).map(drop)
    }
}

/// A call in flight.
struct Call {
    /// Its writes, in order, if it has any effect.
    writes: Vec<Write>,
    /// Its actions, each with its place.
    actions: Vec<(Place, Action)>,
    is_atomic: bool,
    /// Writes that have a number.
    granted: usize,
    /// The first and the last of its numbers.
    numbers: Option<(u64, u64)>,
    /// All items up to here had been acknowledged or seen when it began.
    since: (u64, Time),
}

/// The numbers at which a snapshot may be.
pub(super) struct Held(BTreeSet<u64>);

/// See the module's documentation.
pub(super) struct Ledger {
    order: Order,
    grants: Grants,
    slots: Vec<Slot>,
    records: Records,
    calls: BTreeMap<OpId, Call>,
    /// The calls of tasks.
    current: BTreeMap<u32, OpId>,
    /// Tables that are being created or dropped.
    changing: usize,
    /// Snapshots that are held.
    held: usize,
    fault: Option<String>,
}

impl Ledger {
    /// A record that begins with these contents.
    pub(super) fn new(grants: &Grants, records: Records, contents: &Contents) -> Ledger {
        grants.take();
        let (mut found, mut slots) = (Found::new(), Vec::new());
        for (at, table) in contents.tables.iter().enumerate() {
            // The first is there as soon as there is a pool.
            let number = (at == 0 || table.is_some()).then_some(found.len());
            slots.push(Slot { number, table: table.clone() });
            if let Some(number) = number {
                let keys = (0..records.keys).filter(|key| records.table(*key) == at);
                found.insert(number, keys.map(|key| (key, contents.states[key])).collect());
            }
        }
        Ledger {
            order: Order::new(&found),
            grants: grants.clone(),
            slots,
            records,
            calls: BTreeMap::new(),
            current: BTreeMap::new(),
            changing: 0,
            held: 0,
            fault: None,
        }
    }

    /// Ties the numbers that were granted to the calls that wrote.
    fn catch_up(&mut self) {
        for (task, numbers) in self.grants.take() {
            let call = self.current.get(&task).and_then(|call| self.calls.get_mut(call));
            let Some(call) = call else {
                self.fault.get_or_insert("a write that no call makes".into());
                continue;
            };
            let (first, last) = numbers.into_inner();
            if call.is_atomic {
                self.order.grant(last, call.writes[..].into());
            } else {
                let end = (call.granted + (last - first + 1) as usize).min(call.writes.len());
                let writes = &call.writes[std::mem::replace(&mut call.granted, end)..end];
                self.order.grant_parts(first..=last, writes.into());
            }
            call.numbers = Some((call.numbers.map_or(last, |(first, _)| first), last));
        }
    }

    /// A call begins on this task.
    pub(super) fn begin(&mut self, call: OpId, actions: &[(usize, Action)], is_atomic: bool, now: Time) {
        self.catch_up();
        let actions: Vec<_> = actions.iter().map(|(key, action)| (self.place(*key), *action)).collect();
        let write = |(place, action): &(Place, Action)| Some((*place, action.written()?));
        let writes = actions.iter().filter_map(write).collect();
        let since = (self.order.least(), now);
        self.current.insert(sched::task_id(), call);
        self.calls.insert(call, Call { writes, actions, is_atomic, granted: 0, numbers: None, since });
    }

    fn place(&self, key: usize) -> Place {
        let number = self.slots[self.records.table(key)].number;
        Place { table: number.expect("nobody works on a table that is not there"), key }
    }

    /// A call returned: these are its outcomes. Those of a reader `at_once` are of one moment.
    pub(super) fn respond(&mut self, call: OpId, outcomes: &[Outcome], at_once: bool, now: Time) {
        self.catch_up();
        let Some(call) = self.calls.remove(&call) else { return };
        let (least, times) = (call.since.0, call.since.1..=now);
        if let Some((first, last)) = call.numbers {
            let is_at_once = call.is_atomic || call.actions.len() == 1;
            for (action, outcome) in call.actions.iter().zip(outcomes).filter(|_| is_at_once) {
                if !self.order.explains(first - 1, *action, *outcome, true, times.clone()) {
                    self.fault
                        .get_or_insert(format!("{action:x?} with number {first} returned {outcome:x?}"));
                }
            }
            return self.order.acknowledge(last);
        }
        // A moment of a whole table is a cut.
        let cuts = if at_once { self.order.cuts(least) } else { self.order.looks(least) };
        let explains = |cut: u64, (action, outcome): &(&(Place, Action), &Outcome)| {
            self.order.explains(cut, **action, **outcome, false, times.clone())
        };
        let all: Vec<_> = call.actions.iter().zip(outcomes).collect();
        let parts: Vec<_> = if at_once { vec![&all[..]] } else { all.chunks(1).collect() };
        let mut seen = least;
        for part in parts {
            match cuts.iter().find(|cut| part.iter().all(|one| explains(**cut, one))) {
                Some(cut) => seen = seen.max(*cut),
                None => {
                    self.fault.get_or_insert(format!("no prefix from number {least} on explains {part:x?}"));
                }
            }
        }
        self.order.acknowledge(seen);
    }

    /// A call returned an error that promises no effect.
    pub(super) fn withdraw(&mut self, call: OpId) {
        self.catch_up();
        if self.calls.remove(&call).is_some_and(|call| call.numbers.is_some()) {
            self.fault.get_or_insert("a call that was refused has written".into());
        }
    }

    /// Takes the fault that came up, if one has.
    pub(super) fn take_fault(&mut self) -> Option<String> {
        self.fault.take()
    }

    /// The table that every pool has.
    pub(super) fn knows_default(&mut self, table: Table) {
        self.slots[0].table = Some(table);
    }

    /// The number of the table of a slot, and the table, if it is there for sure.
    pub(super) fn table(&self, slot: usize) -> Option<(usize, Table)> {
        let Slot { number, table } = self.slots.get(slot)?;
        Some(((*number)?, table.clone()?))
    }

    /// A table is about to be created; `false` if it is there.
    pub(super) fn creates(&mut self, slot: usize) -> bool {
        if self.slots[slot].number.is_some() {
            return false;
        }
        self.changing += 1;
        self.slots[slot] = Slot { number: Some(self.order.create()), table: None };
        true
    }

    /// It was created.
    pub(super) fn created(&mut self, slot: usize, table: Table) {
        self.changing -= 1;
        self.slots[slot].table = Some(table);
        self.order.set_fate(self.slots[slot].number.expect("it is being created"), Fate::There);
    }

    /// A table is about to be dropped.
    pub(super) fn drops(&mut self, slot: usize) {
        self.changing += 1;
        self.order.set_fate(self.slots[slot].number.expect("it is there"), Fate::Dropping);
    }

    /// It was dropped.
    pub(super) fn dropped(&mut self, slot: usize) {
        self.catch_up();
        self.changing -= 1;
        let number = self.slots[slot].number.take().expect("it was being dropped");
        self.slots[slot].table = None;
        self.order.set_fate(number, Fate::Gone);
    }

    /// The number from which on a snapshot may be that is taken now.
    pub(super) fn least(&self) -> u64 {
        self.order.least()
    }

    /// A snapshot was taken, which was begun at that number.
    pub(super) fn hold(&mut self, since: u64) -> Held {
        self.catch_up();
        self.held += 1;
        Held(self.order.cuts(since))
    }

    /// A snapshot is given back.
    pub(super) fn leave(&mut self, held: Held) {
        drop(held);
        self.held -= 1;
    }

    /// A reader of a snapshot has seen these states of keys, in that table, at one of these times.
    pub(super) fn look(
        &mut self,
        Held(cuts): &mut Held,
        table: usize,
        seen: &[(usize, State)],
        times: RangeInclusive<Time>,
    ) {
        self.catch_up();
        let seen: Vec<_> = seen.iter().map(|(key, state)| (Place { table, key: *key }, *state)).collect();
        cuts.retain(|cut| self.order.shows(*cut, &seen, times.clone()));
        match cuts.first() {
            Some(cut) => self.order.acknowledge(*cut),
            None => _ = self.fault.get_or_insert(format!("no prefix is the snapshot that shows {seen:x?}")),
        }
    }

    /// The states that a crash now may leave.
    pub(super) fn prefixes(&mut self) -> Prefixes {
        self.catch_up();
        Prefixes { order: self.order.clone(), slots: self.slots.clone(), records: self.records }
    }

    /// Whether a table is being created or dropped, and whether a snapshot is held.
    pub(super) fn is_busy(&self) -> (bool, bool) {
        (self.changing > 0, self.held > 0)
    }
}
