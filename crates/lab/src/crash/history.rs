//! The record of a run: which operations began and returned, kept as one oracle a key.

use super::bank::Bank;
use super::ledger::{Held, Ledger, Prefixes};
use super::oracle::{Action, KeyOracle, OpId, Outcome, State, Time, shown};
use quipu::Table;
use std::collections::{BTreeMap, BTreeSet};

/// States that one key may have after a crash; what they show is a question of the time at which it is read.
#[derive(Clone, Debug)]
pub struct KeyView {
    /// Under every rule.
    pub allowed: BTreeSet<State>,
    /// If what reads returned did not count: tells a lost write from a read that showed too much.
    pub allowed_but_for_reads: BTreeSet<State>,
    /// States that the key certainly had at some time: going back to one is a lost write.
    pub past: BTreeSet<State>,
}

/// States of a key if an atomic batch in flight has taken effect, and if not.
#[derive(Clone, Debug)]
pub struct MemberView {
    /// Number of the key.
    pub key: usize,
    /// With the batch.
    pub with: BTreeSet<State>,
    /// Without it.
    pub without: BTreeSet<State>,
}

/// The states that a crash at one moment may leave, for all keys.
#[derive(Clone)]
pub struct Expectation {
    /// By key number.
    pub keys: Vec<KeyView>,
    /// Grows with every operation that ended: equal numbers within a run mean equal expectations of what must
    /// stay.
    pub version: u64,
    /// The atomic batches in flight, by their keys.
    pub atomic: Vec<Vec<MemberView>>,
    /// A call that writes several records was in flight, so that a later one may arrive and an earlier one
    /// not.
    pub batch_in_flight: bool,
    /// The prefixes of all writes, of a design that promises one.
    pub(super) prefixes: Option<Prefixes>,
    /// The sums of all accounts, in a run of transfers.
    pub(super) sums: Option<Vec<u64>>,
}

impl Expectation {
    /// Whether a key may have a value that has expired at this time.
    pub fn has_expired(&self, now: Time) -> bool {
        let has_expired = |state: &State| *state != shown(*state, now);
        self.keys.iter().any(|key| key.allowed.iter().any(has_expired))
    }
}

struct KeyHistory {
    strict: KeyOracle,
    without_reads: KeyOracle,
    past: BTreeSet<State>,
}

/// Records the operations of a run as they happen.
pub struct Recorder {
    keys: Vec<KeyHistory>,
    now: Time,
    next_op: OpId,
    version: u64,
    in_flight: BTreeMap<OpId, Call>,
    read_ahead: bool,
    /// A reader that is judged iterates over keys in no order.
    scanning: bool,
    /// Of a design with one order over all writes.
    ledger: Option<Ledger>,
    /// Of a run of transfers.
    bank: Option<Bank>,
    /// Set when what an operation returned cannot be explained, crash or no crash.
    pub inexplicable: Option<String>,
}

/// An operation in flight, with its part on each key that it touches.
struct Call {
    parts: Vec<(usize, OpId, Action)>,
    is_atomic: bool,
    /// It deletes all keys of a range.
    is_range: bool,
}

/// Names an operation in flight.
pub struct Running(OpId);

impl Recorder {
    /// A record that begins with these states, at this time.
    pub(super) fn new(initial: &[State], now: Time, ledger: Option<Ledger>) -> Recorder {
        let keys = initial
            .iter()
            .map(|state| KeyHistory {
                strict: KeyOracle::new(*state, now),
                without_reads: KeyOracle::new(*state, now),
                past: BTreeSet::from([*state]),
            })
            .collect();
        Recorder {
            keys,
            now,
            next_op: 0,
            version: 0,
            in_flight: BTreeMap::new(),
            read_ahead: false,
            scanning: false,
            ledger,
            bank: None,
            inexplicable: None,
        }
    }

    /// The same with a bank.
    pub(super) fn with_bank(self, bank: Option<Bank>) -> Recorder {
        Recorder { bank, ..self }
    }

    /// The clock shows the next time.
    pub fn advance(&mut self) -> Time {
        self.now += 1;
        for key in &mut self.keys {
            key.strict.advance(self.now);
            key.without_reads.advance(self.now);
        }
        self.now
    }

    /// The time of the clock.
    pub fn now(&self) -> Time {
        self.now
    }

    /// An operation begins that does all its actions or none. No key comes twice.
    pub fn invoke_atomic(&mut self, actions: &[(usize, Action)]) -> Running {
        self.begin(actions, true)
    }

    /// The same, by one write that deletes all of these keys.
    pub fn invoke_range(&mut self, actions: &[(usize, Action)]) -> Running {
        let Running(call) = self.begin(actions, true);
        self.in_flight.get_mut(&call).expect("it has begun").is_range = true;
        Running(call)
    }

    /// An operation begins; it does each action to its key.
    pub fn invoke(&mut self, actions: &[(usize, Action)]) -> Running {
        self.begin(actions, false)
    }

    fn begin(&mut self, actions: &[(usize, Action)], is_atomic: bool) -> Running {
        let (call, mut parts) = (self.next_op, Vec::with_capacity(actions.len()));
        for (op, (key, action)) in (call + 1..).zip(actions) {
            self.keys[*key].strict.invoke(op, *action);
            if *action != Action::Get {
                self.keys[*key].without_reads.invoke(op, *action);
            }
            parts.push((*key, op, *action));
        }
        self.next_op += 1 + parts.len() as OpId;
        if let Some(ledger) = &mut self.ledger {
            ledger.begin(call, actions, is_atomic, self.now);
        }
        self.in_flight.insert(call, Call { parts, is_atomic, is_range: false });
        Running(call)
    }

    fn end(&mut self, running: Running) -> Vec<(usize, OpId, Action)> {
        self.in_flight.remove(&running.0).expect("an operation ends once").parts
    }

    /// The operation returned; one outcome for each of its actions.
    pub fn respond(&mut self, running: Running, outcomes: &[Outcome]) {
        self.returned(running, outcomes, false);
    }

    /// A reader returned, who saw all keys at one moment.
    pub fn respond_at_once(&mut self, running: Running, outcomes: &[Outcome]) {
        self.returned(running, outcomes, true);
    }

    fn returned(&mut self, running: Running, outcomes: &[Outcome], at_once: bool) {
        self.version += 1;
        if let Some(ledger) = &mut self.ledger {
            ledger.respond(running.0, outcomes, at_once, self.now);
            if let Some(fault) = ledger.take_fault() {
                self.inexplicable.get_or_insert(fault);
            }
        }
        for ((key, op, action), outcome) in self.end(running).into_iter().zip(outcomes) {
            let history = &mut self.keys[key];
            let mut explained = history.strict.respond(op, *outcome);
            if action != Action::Get {
                explained &= history.without_reads.respond(op, *outcome);
            }
            self.read_ahead |= action == Action::Get && history.strict.has_effects_in_flight();
            let now = history.strict.allowed();
            if now.len() == 1 {
                history.past.extend(now);
            }
            if !explained && self.inexplicable.is_none() {
                self.inexplicable = Some(format!(
                    "{action:x?} on key {key} returned {outcome:x?}, which no order of the operations explains"
                ));
            }
        }
    }

    /// The operation returned an error that promises no effect.
    pub fn withdraw(&mut self, running: Running) {
        if let Some(ledger) = &mut self.ledger {
            ledger.withdraw(running.0);
        }
        let parts = self.end(running);
        // An image that was allowed by its effect is allowed no longer.
        self.version += u64::from(parts.iter().any(|(_, _, action)| *action != Action::Get));
        for (key, op, _) in parts {
            self.keys[key].strict.withdraw(op);
            self.keys[key].without_reads.withdraw(op);
        }
    }

    /// The operation returned an error, and each of its writes has taken effect by now, or never will.
    pub fn break_off(&mut self, running: Running) {
        self.version += 1;
        for (key, op, _) in self.end(running) {
            self.keys[key].strict.break_off(op);
            self.keys[key].without_reads.break_off(op);
        }
    }

    /// The states that a crash now may leave.
    pub fn expectation(&mut self) -> Expectation {
        let keys = self
            .keys
            .iter()
            .map(|key| KeyView {
                allowed: key.strict.allowed(),
                allowed_but_for_reads: key.without_reads.allowed(),
                past: key.past.clone(),
            })
            .collect();
        let member = |(key, op, _): &(usize, OpId, Action)| {
            let oracle = &self.keys[*key].strict;
            MemberView {
                key: *key,
                with: oracle.allowed_if(*op, true),
                without: oracle.allowed_if(*op, false),
            }
        };
        let atomic = self.in_flight.values().filter(|call| call.is_atomic);
        let atomic = atomic.map(|call| call.parts.iter().map(member).collect()).collect();
        let is_put = |(_, _, action): &&(usize, OpId, Action)| matches!(action, Action::Put(_));
        let batch_in_flight =
            self.in_flight.values().any(|call| call.parts.iter().filter(is_put).count() > 1);
        let prefixes = self.ledger.as_mut().map(Ledger::prefixes);
        let sums = self.bank.as_ref().map(Bank::sums);
        Expectation { keys, version: self.version, atomic, batch_in_flight, prefixes, sums }
    }

    /// Whether, since the last call, a read returned what an operation in flight had written: a moment to
    /// crash.
    pub fn take_read_ahead(&mut self) -> bool {
        std::mem::take(&mut self.read_ahead)
    }

    /// Whether a value is being changed in place.
    pub fn is_changing(&self) -> bool {
        let is_change = |(_, _, action): &(usize, OpId, Action)| matches!(action, Action::Change(_));
        self.in_flight.values().any(|call| call.parts.iter().any(is_change))
    }

    /// Whether a range of keys is being deleted.
    pub fn is_deleting_range(&self) -> bool {
        self.in_flight.values().any(|call| call.is_range)
    }

    /// An iteration begins; `false` if another one is being judged.
    pub(super) fn begin_scan(&mut self) -> bool {
        !std::mem::replace(&mut self.scanning, true)
    }

    /// The one that is judged has ended.
    pub(super) fn end_scan(&mut self) {
        self.scanning = false;
    }

    /// A table is about to be dropped, and all its keys with it.
    pub(super) fn drop_begins(&mut self, slot: usize, keys: &[(usize, Action)]) -> Running {
        // No write of a key: the order of all writes has no place for it.
        let ledger = self.ledger.take();
        let running = self.begin(keys, false);
        self.ledger = ledger;
        self.ledger.as_mut().expect("only such a design has tables").drops(slot);
        running
    }

    /// It was dropped.
    pub(super) fn drop_ends(&mut self, slot: usize, running: Running, outcomes: &[Outcome]) {
        self.ledger.as_mut().expect("only such a design has tables").dropped(slot);
        self.respond(running, outcomes);
    }

    /// A table was created.
    pub(super) fn created(&mut self, slot: usize, table: Table) {
        self.version += 1;
        self.ledger.as_mut().expect("only such a design has tables").created(slot, table);
    }

    /// A reader of a snapshot has seen these states of keys in a table of this number, since that time.
    pub(super) fn look(&mut self, held: &mut Held, table: usize, seen: &[(usize, State)], since: Time) {
        self.version += 1;
        let ledger = self.ledger.as_mut().expect("only such a design has snapshots");
        ledger.look(held, table, seen, since..=self.now);
    }

    /// The record of the order of all writes.
    pub(super) fn ledger(&mut self) -> Option<&mut Ledger> {
        self.ledger.as_mut()
    }

    /// The bank of a run of transfers.
    pub(super) fn bank(&mut self) -> &mut Bank {
        self.bank.as_mut().expect("only transfers ask for it")
    }

    /// Transactions that have committed.
    pub(super) fn commits(&self) -> u32 {
        self.bank.as_ref().map_or(0, Bank::commits)
    }

    /// Whether a table is being created or dropped, and whether somebody holds a snapshot.
    pub(super) fn tables_and_snapshots(&self) -> (bool, bool) {
        self.ledger.as_ref().map(Ledger::is_busy).unwrap_or_default()
    }

    /// Operations that have returned.
    pub fn version(&self) -> u64 {
        self.version
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A crash before it may have left what the operation would have done, and none after it may.
    #[test]
    fn a_write_that_is_withdrawn_makes_another_expectation_and_a_read_does_not() {
        let mut recorder = Recorder::new(&[Some(1)], 0, None);
        for (action, changes) in [(Action::Put(2), true), (Action::Get, false)] {
            let running = recorder.invoke(&[(0, action)]);
            let before = recorder.expectation();
            recorder.withdraw(running);
            let after = recorder.expectation();
            assert_eq!(before.version != after.version, changes);
            assert_eq!(before.keys[0].allowed != after.keys[0].allowed, changes);
        }
    }
}
