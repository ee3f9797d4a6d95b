//! [`Clock`] and [`Log`]: recording calls with stamps around them.
//!
//! Stamps come from one shared counter. If a call ended with a lower stamp than another began with, it was
//! over before the other began. Both stamps are steps of the same atomic variable, so the first thread had
//! returned when it drew its own. The reverse is not claimed: calls may look longer than they were, and more
//! may seem to overlap. That hides a violation now and then and never invents one. A clock of the machine
//! would not have the first property without fences of its own.

use super::operation::{Caller, Operation};
use super::subject::{Subject, Timing, perform};
use super::values::{decode, encode, key_bytes, key_number};
use crate::action::{Action, NOBODYS, Outcome, State, Value};
use quipu::{Error, Guard, Snapshot, Store, WriteBatch};
use std::ops::Bound::Included;
use std::sync::atomic::{AtomicU64, Ordering};

/// Hands out stamps to all threads of a history.
#[derive(Default)]
pub struct Clock(AtomicU64);

impl Clock {
    /// A stamp higher than all before.
    pub fn stamp(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }
}

/// The operations of one caller, in order.
pub struct Log<'c> {
    clock: &'c Clock,
    caller: Caller,
    operations: Vec<Operation>,
}

impl<'c> Log<'c> {
    /// An empty record.
    pub fn new(clock: &'c Clock, caller: Caller) -> Log<'c> {
        Log { clock, caller, operations: Vec::new() }
    }

    /// Everything recorded.
    pub fn into_operations(self) -> Vec<Operation> {
        self.operations
    }

    /// Does `action` to key number `key`, and records it.
    ///
    /// # Errors
    /// Those of the store; the call had no effect then and is not recorded.
    pub fn call(
        &mut self,
        subject: &mut Subject,
        key: u64,
        action: Action,
        timing: &Timing<'_>,
    ) -> Result<Outcome, Error> {
        let (invoked, returned, outcome) = perform(subject, self.clock, key, action, timing)?;
        self.note(key, action, invoked, (returned, outcome));
        Ok(outcome)
    }

    /// Reads many keys in one call.
    ///
    /// # Panics
    /// If there is not one answer for each key.
    pub fn get_many(
        &mut self,
        subject: &mut Subject,
        keys: &[u64],
        timing: &Timing<'_>,
    ) -> Result<(), Error> {
        let names: Vec<Vec<u8>> = keys.iter().map(|key| key_bytes(*key)).collect();
        (timing.ready)();
        let invoked = self.clock.stamp();
        let mut found = Vec::with_capacity(names.len());
        subject.client()?.get_many(&names, |_, value| found.push(value.map(<[u8]>::to_vec)))?;
        let returned = self.clock.stamp();
        assert_eq!(found.len(), keys.len(), "get_many answers once for each key");
        for (key, found) in keys.iter().zip(found) {
            let saw: State = found.map(|found| decode(*key, &found));
            self.note(*key, Action::Get, invoked, (returned, Outcome::Saw(saw)));
        }
        Ok(())
    }

    /// Writes many keys in one call.
    ///
    /// # Errors
    /// Those of the store. Some pairs may be written then, which the record does not tell: give the history
    /// up.
    pub fn put_many(
        &mut self,
        subject: &mut Subject,
        pairs: &[(u64, Value)],
        timing: &Timing<'_>,
    ) -> Result<(), Error> {
        let bytes: Vec<_> =
            pairs.iter().map(|(key, value)| (key_bytes(*key), encode(*key, *value))).collect();
        (timing.ready)();
        let invoked = self.clock.stamp();
        subject.client()?.put_many(&bytes)?;
        let returned = self.clock.stamp();
        for (key, value) in pairs {
            self.note(*key, Action::Put(*value), invoked, (returned, Outcome::Done));
        }
        Ok(())
    }

    /// Writes neighbouring keys in one batch: values, or deletions.
    ///
    /// # Errors
    /// Those of the store.
    pub fn write(
        &mut self,
        subject: &mut Subject,
        states: &[(u64, State)],
        timing: &Timing<'_>,
    ) -> Result<(), Error> {
        let mut batch = WriteBatch::new();
        for (key, state) in states {
            match state {
                Some(value) => batch.put(&key_bytes(*key), &encode(*key, *value)),
                None => batch.delete(&key_bytes(*key)),
            };
        }
        (timing.ready)();
        let invoked = self.clock.stamp();
        subject.client()?.write(&batch)?;
        let returned = self.clock.stamp();
        for (key, state) in states {
            let action = state.map_or(Action::Delete, Action::Put);
            self.note(*key, action, invoked, (returned, Outcome::Done));
        }
        Ok(())
    }

    /// Deletes neighbouring keys, which ascend, in one call.
    ///
    /// # Errors
    /// Those of the store.
    pub fn delete_range(
        &mut self,
        subject: &mut Subject,
        keys: &[u64],
        timing: &Timing<'_>,
    ) -> Result<(), Error> {
        let (first, last) = ends(keys);
        (timing.ready)();
        let invoked = self.clock.stamp();
        subject.client()?.delete_range(Included(&first), Included(&last))?;
        let returned = self.clock.stamp();
        for key in keys {
            self.note(*key, Action::Delete, invoked, (returned, Outcome::Done));
        }
        Ok(())
    }

    /// Reads neighbouring keys, which ascend, by a scan: up, or down.
    ///
    /// # Errors
    /// Those of the store.
    pub fn scan(
        &mut self,
        subject: &mut Subject,
        (keys, is_up): (&[u64], bool),
        timing: &Timing<'_>,
    ) -> Result<(), Error> {
        (timing.ready)();
        let invoked = self.clock.stamp();
        let states = in_range(&subject.client()?.pin(), keys, is_up)?;
        let returned = self.clock.stamp();
        self.note_all(keys, &states, (invoked, returned));
        Ok(())
    }

    /// Takes a snapshot.
    ///
    /// # Errors
    /// Those of the store.
    pub fn hold(&mut self, store: &Store, timing: &Timing<'_>) -> Result<Held, Error> {
        (timing.ready)();
        let invoked = self.clock.stamp();
        let snapshot = store.snapshot()?;
        Ok(Held { snapshot, stamps: (invoked, self.clock.stamp()) })
    }

    /// Reads neighbouring keys, which ascend, as they were when a snapshot was taken: by a scan, and by key.
    ///
    /// # Errors
    /// Those of the store.
    pub fn look(
        &mut self,
        subject: &mut Subject,
        (held, keys): (&Held, &[u64]),
        timing: &Timing<'_>,
    ) -> Result<(), Error> {
        (timing.ready)();
        let guard = subject.client()?.pin_at(&held.snapshot)?;
        let by_scan = in_range(&guard, keys, true)?;
        let by_key = keys.iter().map(|key| {
            let found = guard.get(&key_bytes(*key))?;
            Ok(found.map(|found| decode(*key, &found)))
        });
        let by_key = by_key.collect::<Result<Vec<_>, Error>>()?;
        self.note_all(keys, &by_scan, held.stamps);
        self.note_all(keys, &by_key, held.stamps);
        Ok(())
    }

    fn note_all(&mut self, keys: &[u64], states: &[State], (invoked, returned): (u64, u64)) {
        for (key, state) in keys.iter().zip(states) {
            self.note(*key, Action::Get, invoked, (returned, Outcome::Saw(*state)));
        }
    }

    fn note(&mut self, key: u64, action: Action, invoked: u64, returned: (u64, Outcome)) {
        let caller = self.caller;
        self.operations.push(Operation { caller, key, action, invoked, returned: Some(returned) });
    }
}

/// A snapshot, with the stamps around the call that took it. Its contents are of a moment between them,
/// whenever they are read.
pub struct Held {
    snapshot: Snapshot,
    stamps: (u64, u64),
}

/// The names of the first and the last of some keys.
fn ends(keys: &[u64]) -> (Vec<u8>, Vec<u8>) {
    let [first, .., last] = keys else { return (key_bytes(keys[0]), key_bytes(keys[0])) };
    (key_bytes(*first), key_bytes(*last))
}

/// The states of neighbouring keys, which ascend, by a scan. One that comes twice, or out of order, has a
/// value that nobody wrote. So has the first if a stranger comes.
fn in_range(guard: &Guard<'_>, keys: &[u64], is_up: bool) -> Result<Vec<State>, Error> {
    let (first, last) = ends(keys);
    let mut states = vec![None; keys.len()];
    let mut before = None;
    let mut range = guard.range(Included(&first), Included(&last))?;
    while let Some(pair) = if is_up { range.next() } else { range.next_back() } {
        let (name, value) = pair?;
        let at = key_number(&name).and_then(|key| keys.binary_search(&key).ok());
        let follows = match (before, at) {
            (Some(before), Some(at)) => {
                if is_up {
                    before < at
                } else {
                    at < before
                }
            }
            (_, at) => at.is_some(),
        };
        let at = at.unwrap_or(0);
        states[at] = Some(if follows { decode(keys[at], &value) } else { NOBODYS });
        before = Some(at);
    }
    Ok(states)
}
