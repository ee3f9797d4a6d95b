//! Judges a crash of a design that puts all writes of a pool into one order: exactly a prefix may be left.
//!
//! Writes go in *items*, which have numbers. A *cut* is a number: the state at it is that of all items up to
//! it, over all tables, and of no other. The state that is found after a crash must be that at one cut. This
//! cut is no lower than any number that was acknowledged, and than what any reader has seen.
//!
//! Pairs of one call that need not stay together may be one item. A crash leaves it wholly or not at all. A
//! reader may have seen a key between two of its puts: it looks at the key first, and at the visible number
//! then.
//!
//! Tables come and go beside that order. One that is being created or dropped may be there or not; if it is
//! there, all of it is.

use super::oracle::{Action, Outcome, State, Time, shown};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::rc::Rc;

/// A key of a table. Tables that had one name, one after the other, have numbers of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Number of the table.
    pub table: usize,
    /// Number of the key.
    pub key: usize,
}

/// A write: where, and the state that it leaves.
pub type Write = (Place, State);

/// The life of a table so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is being created.
    Creating,
    /// Its creation has returned.
    There,
    /// It is being dropped.
    Dropping,
    /// Its drop has returned.
    Gone,
}

/// The states of all keys that were found, by table and key.
pub type Found = BTreeMap<usize, BTreeMap<usize, State>>;

/// All writes so far, in their order, and all tables.
#[derive(Clone, Debug, Default)]
pub struct Order {
    /// The states before the first item; absent ones may be left out.
    base: BTreeMap<Place, State>,
    /// The items by their last numbers.
    items: BTreeMap<u64, Rc<[Write]>>,
    /// The first numbers of those that readers may see in part, by their last ones. Each write has a number.
    parts: BTreeMap<u64, u64>,
    least: u64,
    tables: Vec<Fate>,
}

impl Order {
    /// No items yet: these tables, in these states.
    pub fn new(found: &Found) -> Order {
        let tables = vec![Fate::There; found.keys().next_back().map_or(0, |last| last + 1)];
        let of_table = |(table, states): (&usize, &BTreeMap<usize, State>)| {
            let table = *table;
            states.iter().map(move |(key, state)| (Place { table, key: *key }, *state)).collect::<Vec<_>>()
        };
        Order { base: found.iter().flat_map(of_table).collect(), tables, ..Order::default() }
    }

    /// A table begins; returns its number.
    pub fn create(&mut self) -> usize {
        self.tables.push(Fate::Creating);
        self.tables.len() - 1
    }

    /// The life of a table goes on.
    pub fn set_fate(&mut self, table: usize, fate: Fate) {
        self.tables[table] = fate;
        if fate == Fate::Gone {
            // A drop waits for all writes to its table.
            self.acknowledge(self.last_of(table));
        }
    }

    /// An item is granted its numbers, of which this is the last.
    pub fn grant(&mut self, last: u64, writes: Rc<[Write]>) {
        self.items.insert(last, writes);
    }

    /// The same of an item with these numbers, which readers may see in part.
    pub fn grant_parts(&mut self, numbers: RangeInclusive<u64>, writes: Rc<[Write]>) {
        let (first, last) = numbers.into_inner();
        self.parts.insert(last, first);
        self.grant(last, writes);
    }

    /// All items up to this number were acknowledged or seen, wholly or in part.
    pub fn acknowledge(&mut self, number: u64) {
        let item = if self.part(number).is_empty() { None } else { self.items.range(number..).next() };
        self.least = self.least.max(item.map_or(number, |(last, _)| *last));
    }

    /// The writes of an item up to a number that stands within it.
    fn part(&self, number: u64) -> &[Write] {
        let Some((last, writes)) = self.items.range(number + 1..).next() else { return &[] };
        match self.parts.get(last) {
            Some(first) if *first <= number => &writes[..writes.len().min((number - first + 1) as usize)],
            _ => &[],
        }
    }

    /// All items up to it must survive.
    pub fn least(&self) -> u64 {
        self.least
    }

    /// All cuts from a number on.
    pub fn cuts(&self, since: u64) -> BTreeSet<u64> {
        self.items.range(since + 1..).map(|(last, _)| *last).chain([since]).collect()
    }

    /// The numbers that a reader of one key may have seen from one on: the cuts, and those within items.
    pub fn looks(&self, since: u64) -> BTreeSet<u64> {
        let within = |(last, first): (&u64, &u64)| since.max(*first)..*last;
        self.cuts(since).into_iter().chain(self.parts.range(since + 1..).flat_map(within)).collect()
    }

    /// The state of a key at a cut, or at a number within an item.
    pub fn state(&self, place: Place, cut: u64) -> State {
        let of_place = |writes: &[Write]| writes.iter().rev().find(|write| write.0 == place).copied();
        let mut whole = self.items.range(..=cut).rev();
        let newest = of_place(self.part(cut)).or_else(|| whole.find_map(|(_, writes)| of_place(writes)));
        newest.map_or_else(|| self.base.get(&place).copied().flatten(), |(_, state)| state)
    }

    /// Whether a reader at a cut may have seen all of this, at one time or another of these.
    pub fn shows(&self, cut: u64, seen: &[Write], times: RangeInclusive<Time>) -> bool {
        seen.iter().all(|(place, seen)| {
            let state = self.state(*place, cut);
            times.clone().any(|time| shown(state, time) == *seen)
        })
    }

    /// Whether an action at a cut, at one of these times, returns this. One that writes nothing must also
    /// keep its key as it was.
    pub fn explains(
        &self,
        cut: u64,
        (place, action): (Place, Action),
        outcome: Outcome,
        writes: bool,
        mut times: RangeInclusive<Time>,
    ) -> bool {
        let state = self.state(place, cut);
        times.any(|time| {
            let (new, answer) = action.apply(state, time);
            let is_kept = shown(new, time) == shown(state, time);
            answer == outcome && (writes || is_kept)
        })
    }

    /// The last number of a table's items.
    fn last_of(&self, table: usize) -> u64 {
        let touches = |writes: &Rc<[Write]>| writes.iter().any(|(place, _)| place.table == table);
        self.items.iter().rev().find(|(_, writes)| touches(writes)).map_or(0, |(last, _)| *last)
    }

    /// Whether a crash may leave this, read at that time. Returns the cut.
    ///
    /// # Errors
    /// The fault in words.
    pub fn judge(&self, found: &Found, now: Time) -> Result<u64, String> {
        let mut least = self.least;
        for (table, fate) in self.tables.iter().enumerate() {
            match (fate, found.contains_key(&table)) {
                (Fate::There, false) => return Err(format!("table {table}, which was created, is gone")),
                (Fate::Gone, true) => return Err(format!("table {table}, which was dropped, is there")),
                (Fate::Dropping, false) => least = least.max(self.last_of(table)),
                _ => {}
            }
        }
        let (mut states, mut next) = (self.base.clone(), 0);
        for cut in self.cuts(least) {
            let items = self.items.range(next..=cut);
            states.extend(items.flat_map(|(_, writes)| writes.iter().copied()));
            next = cut + 1;
            let is_there = |(table, keys): (&usize, &BTreeMap<usize, State>)| {
                keys.iter().all(|(key, state)| {
                    let place = Place { table: *table, key: *key };
                    shown(states.get(&place).copied().flatten(), now) == *state
                })
            };
            if found.iter().all(is_there) {
                return Ok(cut);
            }
        }
        Err(self.fault(found, now, least))
    }

    /// The reason why no cut explains what was found.
    fn fault(&self, found: &Found, now: Time, least: u64) -> String {
        let all = self.cuts(0);
        let places = found.iter().flat_map(|(table, keys)| {
            keys.iter().map(|(key, state)| (Place { table: *table, key: *key }, *state))
        });
        let mut fitting: BTreeMap<Place, BTreeSet<u64>> = BTreeMap::new();
        for (place, state) in places {
            let fits: BTreeSet<u64> =
                all.iter().copied().filter(|cut| self.shows(*cut, &[(place, state)], now..=now)).collect();
            let Place { table, key } = place;
            match fits.last() {
                None if state.is_some() && self.is_of_another(place, state) => {
                    return format!("key {key} of table {table}: found {state:x?}, a write to another table");
                }
                None => {
                    return format!("key {key} of table {table}: found {state:x?}, which it has not had");
                }
                Some(last) if *last < least && self.next_write(place, *last).is_some_and(|n| n <= least) => {
                    return format!(
                        "key {key} of table {table}: found {state:x?}, as it was before writes up to number \
                         {least}, which were acknowledged or seen"
                    );
                }
                Some(_) => _ = fitting.insert(place, fits),
            }
        }
        for (last, writes) in &self.items {
            let fits = |write: &&Write| fitting.get(&write.0);
            let is_there = |fits: &BTreeSet<u64>| fits.iter().all(|cut| cut >= last);
            let is_not = |fits: &BTreeSet<u64>| fits.iter().all(|cut| cut < last);
            let mut of_item = writes.iter().filter_map(|write| fits(&write));
            if of_item.clone().any(is_there) && of_item.any(is_not) {
                return format!("the item of number {last} is there in part: {writes:x?}");
            }
        }
        for last in self.items.keys() {
            let later = |(_, fits): &(&Place, &BTreeSet<u64>)| fits.iter().all(|cut| cut > last);
            let without = |(_, fits): &(&Place, &BTreeSet<u64>)| fits.iter().all(|cut| cut < last);
            if let (Some((place, _)), Some((lacks, _))) =
                (fitting.iter().find(later), fitting.iter().find(without))
            {
                return format!("a hole at number {last}: {lacks:?} lacks it, {place:?} has a later write");
            }
        }
        format!("no prefix of all writes from number {least} on is this: {found:x?}")
    }

    /// The number of the first write to a place behind a cut.
    fn next_write(&self, place: Place, cut: u64) -> Option<u64> {
        let touches = |writes: &Rc<[Write]>| writes.iter().any(|write| write.0 == place);
        self.items.range(cut + 1..).find(|(_, writes)| touches(writes)).map(|(last, _)| *last)
    }

    /// Whether this state was written to the same key of another table.
    fn is_of_another(&self, place: Place, state: State) -> bool {
        let is_it = |(other, written): &Write| other.table != place.table && *written == state;
        self.items.values().flat_map(|writes| writes.iter()).any(is_it)
            || self.base.iter().any(|(other, written)| is_it(&(*other, *written)))
    }
}

#[cfg(test)]
#[path = "prefix_tests.rs"]
mod tests;
