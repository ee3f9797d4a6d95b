//! The record of a run: which operations began and returned, kept as one oracle a key.

use super::oracle::{Action, KeyOracle, OpId, Outcome, State, Time, shown};
use std::collections::BTreeSet;

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
#[derive(Clone, Debug)]
pub struct Expectation {
    /// By key number.
    pub keys: Vec<KeyView>,
    /// Grows with every returned operation: equal numbers within a run mean equal expectations of what must
    /// stay.
    pub version: u64,
    /// The atomic batches in flight, by their keys.
    pub atomic: Vec<Vec<MemberView>>,
    /// A call that writes several records was in flight, so that a later one may arrive and an earlier one
    /// not.
    pub batch_in_flight: bool,
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

fn is_batch(parts: &[(usize, OpId, Action)]) -> bool {
    parts.iter().filter(|(_, _, action)| matches!(action, Action::Put(_))).count() > 1
}

fn changes(parts: &[(usize, OpId, Action)]) -> usize {
    parts.iter().filter(|(_, _, action)| matches!(action, Action::Change(_))).count()
}

/// Records the operations of a run as they happen.
pub struct Recorder {
    keys: Vec<KeyHistory>,
    now: Time,
    next_op: OpId,
    version: u64,
    batches_in_flight: usize,
    changes_in_flight: usize,
    /// The keys and operations of the atomic batches in flight.
    atomic: Vec<Vec<(usize, OpId)>>,
    read_ahead: bool,
    /// Set when what an operation returned cannot be explained, crash or no crash.
    pub inexplicable: Option<String>,
}

/// An operation in flight, on the keys that it touches.
pub struct Running {
    parts: Vec<(usize, OpId, Action)>,
}

impl Running {
    fn first_op(&self) -> Option<OpId> {
        self.parts.first().map(|(_, op, _)| *op)
    }
}

impl Recorder {
    /// A record that begins with these states, at this time.
    pub fn new(initial: &[State], now: Time) -> Recorder {
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
            batches_in_flight: 0,
            changes_in_flight: 0,
            atomic: Vec::new(),
            read_ahead: false,
            inexplicable: None,
        }
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
        let running = self.invoke(actions);
        self.atomic.push(running.parts.iter().map(|(key, op, _)| (*key, *op)).collect());
        running
    }

    fn end_atomic(&mut self, running: &Running) {
        let is_it = |batch: &Vec<(usize, OpId)>| batch.first().map(|(_, op)| *op) == running.first_op();
        self.atomic.retain(|batch| !is_it(batch));
    }

    /// An operation begins; it does each action to its key.
    pub fn invoke(&mut self, actions: &[(usize, Action)]) -> Running {
        let mut parts = Vec::with_capacity(actions.len());
        for (key, action) in actions {
            let op = self.next_op;
            self.next_op += 1;
            self.keys[*key].strict.invoke(op, *action);
            if *action != Action::Get {
                self.keys[*key].without_reads.invoke(op, *action);
            }
            parts.push((*key, op, *action));
        }
        self.batches_in_flight += is_batch(&parts) as usize;
        self.changes_in_flight += changes(&parts);
        Running { parts }
    }

    /// The operation returned; one outcome for each of its actions.
    pub fn respond(&mut self, running: Running, outcomes: &[Outcome]) {
        self.version += 1;
        self.batches_in_flight -= is_batch(&running.parts) as usize;
        self.changes_in_flight -= changes(&running.parts);
        self.end_atomic(&running);
        for ((key, op, action), outcome) in running.parts.into_iter().zip(outcomes) {
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
        self.batches_in_flight -= is_batch(&running.parts) as usize;
        self.changes_in_flight -= changes(&running.parts);
        self.end_atomic(&running);
        for (key, op, _) in running.parts {
            self.keys[key].strict.withdraw(op);
            self.keys[key].without_reads.withdraw(op);
        }
    }

    /// The states that a crash now may leave.
    pub fn expectation(&self) -> Expectation {
        let keys = self
            .keys
            .iter()
            .map(|key| KeyView {
                allowed: key.strict.allowed(),
                allowed_but_for_reads: key.without_reads.allowed(),
                past: key.past.clone(),
            })
            .collect();
        let member = |(key, op): &(usize, OpId)| {
            let oracle = &self.keys[*key].strict;
            MemberView {
                key: *key,
                with: oracle.allowed_if(*op, true),
                without: oracle.allowed_if(*op, false),
            }
        };
        let atomic = self.atomic.iter().map(|batch| batch.iter().map(member).collect()).collect();
        Expectation { keys, version: self.version, atomic, batch_in_flight: self.batches_in_flight > 0 }
    }

    /// Whether, since the last call, a read returned what an operation in flight had written: a moment to
    /// crash.
    pub fn take_read_ahead(&mut self) -> bool {
        std::mem::take(&mut self.read_ahead)
    }

    /// Whether a value is being changed in place.
    pub fn is_changing(&self) -> bool {
        self.changes_in_flight > 0
    }

    /// Operations that have returned.
    pub fn version(&self) -> u64 {
        self.version
    }
}
