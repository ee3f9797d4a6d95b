//! The demands on a recovered store: it shows a state that the crash may have left, and takes new work.

use super::bank;
use super::hand::table_name;
use super::history::{Expectation, MemberView};
use super::ledger::Contents;
use super::levels::is_room;
use super::oracle::{State, Time, ValueId, changed, shown};
use super::records::Records;
use quipu::{Error, Guard, Isolation, Store, Table};
use quipu_medium::sim::sched;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::rc::Rc;

/// Every key's state, read one by one and by iteration, which must agree.
pub(super) fn read_all(store: &Store, records: Records) -> Result<Contents, String> {
    let client = store.client();
    let tables = match records.tables {
        1 => store.tables().ok().into_iter().flatten().map(Some).take(1).collect(),
        count => slots(store, count)?,
    };
    let mut states = vec![None; records.keys];
    for table in 0..records.tables {
        let other = match tables.get(table) {
            Some(Some(handle)) if table > 0 => Some(client.on(handle).map_err(|error| error.to_string())?),
            Some(None) => continue,
            _ => None,
        };
        let client = other.as_ref().unwrap_or(&client);
        for key in (0..records.keys).filter(|key| records.table(*key) == table) {
            let value = client.get(&records.key(key)).map_err(|error| error.to_string())?;
            states[key] =
                records.parse_value(value.as_deref()).map_err(|what| format!("key {key}: {what}"))?;
        }
        let seen =
            read_table(&client.pin(), records, (table, 0))?.ok_or("a table that nobody drops is gone")?;
        if seen.iter().any(|(key, state)| *state != states[*key]) {
            return Err(format!("iteration shows {seen:x?}, single reads {states:x?}"));
        }
    }
    Ok(Contents { states, tables })
}

/// The tables of a store by their slots.
fn slots(store: &Store, count: usize) -> Result<Vec<Option<Table>>, String> {
    let mut slots = vec![None; count];
    for table in store.tables().map_err(|error| error.to_string())? {
        let slot = (0..count).find(|slot| table_name(*slot) == table.name());
        match slot.map(|slot| slots[slot].replace(table.clone())) {
            Some(None) => {}
            Some(Some(_)) => return Err(format!("there are two tables called {}", table.name())),
            None => return Err(format!("there is a table called {}, which nobody created", table.name())),
        }
    }
    Ok(slots)
}

/// The states of all keys of a table, by iteration; nothing if it has been dropped. The reader idles for so
/// many turns before it looks at what it has found, which must be there as long as it is pinned.
pub(super) fn read_table(
    pinned: &Guard<'_>,
    records: Records,
    (table, idles): (usize, u32),
) -> Result<Option<Vec<(usize, State)>>, String> {
    let mut seen: BTreeMap<usize, State> =
        (0..records.keys).filter(|key| records.table(*key) == table).map(|key| (key, None)).collect();
    let pairs: Result<Vec<_>, Error> = if table % 2 == 0 {
        let mut pairs = pinned.iter();
        let all = pairs.by_ref().collect();
        pairs.ended().map(|()| all)
    } else {
        // Only designs that keep an order have several tables.
        pinned.range(Bound::Unbounded, Bound::Unbounded).and_then(|all| all.rev().collect())
    };
    let pairs = match pairs {
        Err(Error::TableDropped) => return Ok(None),
        other => other.map_err(|error| error.to_string())?,
    };
    (0..idles).for_each(|_| sched::point());
    for (key, value) in pairs {
        let key = records.parse_key(table, &key).ok_or("iteration shows a key that was never written")?;
        let value = records.parse_value(Some(&value)).map_err(|what| format!("key {key}: {what}"))?;
        if seen.insert(key, value) != Some(None) {
            return Err(format!("iteration shows key {key} twice"));
        }
    }
    Ok(Some(seen.into_iter().collect()))
}

/// Asks the oracles, and whether the sum of all accounts is right, if there are any.
pub(super) fn judged(
    store: &Store,
    records: Records,
    contents: &Contents,
    expectation: &Expectation,
    now: Time,
) -> Result<(), String> {
    let summed = sum_up(store, records, contents, expectation);
    match (compare(contents, expectation, now), summed) {
        (Err(what), Err(sum)) => Err(format!("{what}; {sum}")),
        (compared, summed) => compared.and(summed),
    }
}

/// Asks the oracles whether a crash may have left these contents, which were read at this time.
pub(super) fn compare(contents: &Contents, expectation: &Expectation, now: Time) -> Result<(), String> {
    if let Some(prefixes) = &expectation.prefixes {
        prefixes.judge(contents, now)?;
    }
    let states = &contents.states;
    let allows = |allowed: &BTreeSet<State>, state: State| {
        allowed.iter().any(|possible| shown(*possible, now) == state)
    };
    for (key, (state, view)) in states.iter().zip(&expectation.keys).enumerate() {
        if allows(&view.allowed, *state) {
            continue;
        }
        let fault = if allows(&view.allowed_but_for_reads, *state) {
            "a read before the crash returned what the crash took away"
        } else if view.past.contains(state) {
            "an acknowledged write is lost"
        } else {
            "a write came back that an earlier crash had undone, or one that never was"
        };
        let possible: BTreeSet<State> = view.allowed.iter().map(|state| shown(*state, now)).collect();
        return Err(format!("key {key}: {fault}: found {state:x?}, possible are {possible:x?}"));
    }
    for batch in &expectation.atomic {
        let all = |allowed: fn(&MemberView) -> &BTreeSet<State>| {
            batch.iter().all(|member| allows(allowed(member), states[member.key]))
        };
        if !all(|member| &member.with) && !all(|member| &member.without) {
            let found: Vec<_> = batch.iter().map(|member| (member.key, states[member.key])).collect();
            return Err(format!("an atomic batch is there in part: of its keys, found {found:x?}"));
        }
    }
    Ok(())
}

/// Sums up all accounts of a run of transfers by a transaction, which must see what single reads have seen.
fn sum_up(
    store: &Store,
    records: Records,
    contents: &Contents,
    expectation: &Expectation,
) -> Result<(), String> {
    let Some(sums) = &expectation.sums else { return Ok(()) };
    let failed = |error: Error| error.to_string();
    let (mut client, mut values) = (store.client(), Vec::new());
    let mut transaction = client.begin(Isolation::Snapshot).map_err(failed)?;
    for table in contents.tables.iter().flatten() {
        let on = transaction.on(table).map_err(failed)?;
        for pair in on.range(Bound::Unbounded, Bound::Unbounded) {
            values.push(pair.map_err(failed)?.1.into_owned());
        }
    }
    transaction.commit().map_err(failed)?;
    let states: Result<Vec<_>, String> =
        values.iter().map(|value| records.parse_value(Some(value))).collect();
    let (found, single) = (bank::sum(&states?), bank::sum(&contents.states));
    if found != single {
        return Err(format!("a transaction finds the sum {found}, single reads {single}"));
    }
    if !sums.contains(&found) {
        return Err(format!("the sum of all accounts is {found}, possible are {sums:?}"));
    }
    Ok(())
}

/// A recovered store must take new work.
pub(super) fn works_on(store: &Store, records: Records) -> Result<(), String> {
    let mut client = store.client();
    let (key, name) = (records.key(0), ValueId::from(u32::MAX >> 9));
    let mut value = records.value(name);
    match client.put(&key, &value) {
        Ok(()) => {}
        Err(error) if is_room(&error) => return Ok(()),
        Err(error) => return Err(format!("the recovered store does not take a put: {error}")),
    }
    if let Some(at) = records.word().filter(|_| store.design().can().updates_in_place) {
        match client.update_in_place(&key, at, |word| changed(word, 1)) {
            Ok(Some(word)) if word == name => value = records.value(changed(name, 1)),
            other => return Err(format!("the recovered store does not change a value in place: {other:?}")),
        }
    }
    let found = client.get(&key).map_err(|error| error.to_string())?;
    if found.as_deref() != Some(&value[..]) {
        return Err("the recovered store does not return what was put".into());
    }
    match client.remove(&key) {
        Ok(true) => Ok(()),
        other => Err(format!("the recovered store does not delete what was put: {other:?}")),
    }
}

/// Lets a recovered store find out what recovery has left to later, by a compaction, while who has the stage
/// may look at it.
pub(super) fn surveyed(store: Store, stage: &RefCell<Option<Rc<Store>>>) -> Result<Store, String> {
    let store = Rc::new(store);
    *stage.borrow_mut() = Some(store.clone());
    let compacted = store.compact();
    *stage.borrow_mut() = None;
    match compacted {
        Err(error) if !is_room(&error) => Err(format!("the recovered store does not compact: {error}")),
        _ => Ok(Rc::into_inner(store).expect("only this run has it")),
    }
}
