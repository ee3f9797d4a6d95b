//! The demands on a recovered store: it shows a state that the crash may have left, and takes new work.

use super::history::{Expectation, MemberView};
use super::oracle::{State, Time, ValueId, changed, shown};
use super::records::Records;
use quipu::Store;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Every key's state, read one by one and by iteration, which must agree.
pub(super) fn read_all(store: &Store, records: Records) -> Result<Vec<State>, String> {
    let client = store.client();
    let mut states = vec![None; records.keys];
    for (key, state) in states.iter_mut().enumerate() {
        let value = client.get(&records.key(key)).map_err(|error| error.to_string())?;
        *state = records.parse_value(value.as_deref()).map_err(|what| format!("key {key}: {what}"))?;
    }
    let mut seen = vec![None; records.keys];
    for (key, value) in &client.pin() {
        let key = records.parse_key(&key).ok_or("iteration shows a key that was never written")?;
        if seen[key].is_some() {
            return Err(format!("iteration shows key {key} twice"));
        }
        seen[key] = records.parse_value(Some(&value))?;
    }
    if seen != states {
        return Err(format!("iteration shows {seen:x?}, single reads {states:x?}"));
    }
    Ok(states)
}

/// Asks the oracle whether a crash may have left these states, which were read at this time.
pub(super) fn compare(states: &[State], expectation: &Expectation, now: Time) -> Result<(), String> {
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

/// A recovered store must take new work.
pub(super) fn works_on(store: &Store, records: Records) -> Result<(), String> {
    let mut client = store.client();
    let (key, name) = (records.key(0), ValueId::from(u32::MAX >> 9));
    let mut value = records.value(name);
    match client.put(&key, &value) {
        Ok(()) => {}
        Err(quipu::Error::PoolFull { .. }) => return Ok(()),
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
        Ok(_) | Err(quipu::Error::PoolFull { .. }) => {
            Ok(Rc::into_inner(store).expect("only this run has it"))
        }
        Err(error) => Err(format!("the recovered store does not compact: {error}")),
    }
}
