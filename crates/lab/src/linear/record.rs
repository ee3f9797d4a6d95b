//! [`Clock`] and [`Log`]: recording calls with stamps around them.
//!
//! Stamps come from one shared counter. If a call ended with a lower stamp than another began with, it was
//! over before the other began. Both stamps are steps of the same atomic variable, so the first thread had
//! returned when it drew its own. The reverse is not claimed: calls may look longer than they were, and more
//! may seem to overlap. That hides a violation now and then and never invents one. A clock of the machine
//! would not have the first property without fences of its own.

use super::operation::{Action, Caller, Operation, Outcome, State, Value};
use super::subject::{Subject, Timing, perform};
use super::values::{decode, encode, key_bytes};
use quipu::Error;
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

    fn note(&mut self, key: u64, action: Action, invoked: u64, returned: (u64, Outcome)) {
        let caller = self.caller;
        self.operations.push(Operation { caller, key, action, invoked, returned: Some(returned) });
    }
}
