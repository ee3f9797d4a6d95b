//! [`Action`]: the effect of a call on one key, and its answer. This is the sequential specification by which
//! [`linear`](crate::linear) and [`crash`](crate::crash) judge.

use quipu_medium::sim::START_OF_TIME;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Names a value. The lower half names its write, the upper half the last change to it in place, 0 if there
/// was none. Each write and each change of a history has a name of its own, out of the same numbers.
pub type Value = u64;

/// Stands for bytes that were read and that nobody can have written. No write may use it.
pub const NOBODYS: Value = u64::MAX;

/// Names a change to a value in place.
pub type ChangeId = u32;

/// The value that a change in place makes of another: the write that both come from stays.
pub fn changed(value: Value, change: ChangeId) -> Value {
    value & Value::from(ChangeId::MAX) | Value::from(change) << ChangeId::BITS
}

/// Where the name of a write says when its value expires, in a field of this many bits.
const EXPIRY_SHIFT: u32 = 27;
const EXPIRY_BITS: u32 = 4;
const EXPIRY_FIELD: Value = ((1 << EXPIRY_BITS) - 1) << EXPIRY_SHIFT;

/// Time in steps of the simulated clock, from 0 at its start.
pub type Time = u64;

/// The last time at which a value may expire.
pub const LAST_EXPIRY: Time = (1 << EXPIRY_BITS) - 1;

/// Milliseconds of a step.
const STEP_MS: u64 = 1000;

/// The milliseconds of the clock at this time.
pub fn milliseconds(time: Time) -> u64 {
    START_OF_TIME + time * STEP_MS
}

/// The name of a write whose value expires at this time, 1 or later.
pub fn expiring(value: Value, time: Time) -> Value {
    lasting(value) | time.clamp(1, LAST_EXPIRY) << EXPIRY_SHIFT
}

/// The name of a write whose value stays.
pub fn lasting(value: Value) -> Value {
    value & !EXPIRY_FIELD
}

/// When a value expires, if ever.
pub fn expiry(value: Value) -> Option<Time> {
    let time = (value & EXPIRY_FIELD) >> EXPIRY_SHIFT;
    (time != 0).then_some(time)
}

/// State of a key: absent, or a value. A value that has expired is a state of its own, which [shows](shown)
/// as absent.
pub type State = Option<Value>;

/// The state that a read finds at this time.
pub fn shown(state: State, now: Time) -> State {
    state.filter(|value| expiry(*value).is_none_or(|time| time > now))
}

/// The answer of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Outcome {
    /// Nothing.
    Done,
    /// Whether it took effect, or found something.
    Did(bool),
    /// The state that it read.
    Saw(State),
}

/// The effect of an operation on one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// Reads.
    Get,
    /// Writes this value.
    Put(Value),
    /// Deletes, without a look.
    Delete,
    /// Writes this value with a time of expiry that has passed.
    Expire(Value),
    /// Deletes, and tells whether there was a value.
    Remove,
    /// Reads, and leaves this state, with nothing in between.
    Update(State),
    /// Writes this value if the key is absent.
    PutIfAbsent(Value),
    /// Replaces one state by another if it is the present one.
    Swap(State, State),
    /// Changes the value in place, if there is one, and tells what it was.
    Change(ChangeId),
}

impl Action {
    /// The state that it writes, if it writes at all.
    pub fn written(self) -> Option<State> {
        match self {
            Action::Get | Action::Change(_) => None,
            Action::Put(value) | Action::PutIfAbsent(value) => Some(Some(value)),
            Action::Delete | Action::Expire(_) | Action::Remove => Some(None),
            Action::Swap(_, new) | Action::Update(new) => Some(new),
        }
    }

    /// The sequential specification: the state that the action leaves at this time, and its answer.
    pub fn apply(self, state: State, now: Time) -> (State, Outcome) {
        let seen = shown(state, now);
        match self {
            Action::Get => (state, Outcome::Saw(seen)),
            Action::Put(value) => (Some(value), Outcome::Done),
            Action::Delete | Action::Expire(_) => (None, Outcome::Done),
            Action::Remove => (None, Outcome::Did(seen.is_some())),
            Action::Update(new) => (new, Outcome::Saw(seen)),
            Action::PutIfAbsent(value) => (seen.or(Some(value)), Outcome::Did(seen.is_none())),
            Action::Swap(expected, new) if seen == expected => (new, Outcome::Did(true)),
            Action::Swap(..) => (state, Outcome::Did(false)),
            Action::Change(change) => (seen.map(|value| changed(value, change)), Outcome::Saw(seen)),
        }
    }
}

/// A state in words.
pub(crate) struct Shown(pub State);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("nothing"),
            Some(NOBODYS) => f.write_str("bytes that nobody wrote"),
            Some(value) => write!(f, "value {value}"),
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Get => f.write_str("get"),
            Action::Put(value) => write!(f, "put value {value}"),
            Action::Expire(value) => write!(f, "put value {value}, which has expired"),
            Action::Change(change) => write!(f, "change {change} in place"),
            Action::Remove => f.write_str("remove"),
            Action::Delete => f.write_str("delete"),
            Action::PutIfAbsent(value) => write!(f, "put value {value} if absent"),
            Action::Swap(expected, new) => write!(f, "swap {} for {}", Shown(*expected), Shown(*new)),
            Action::Update(new) => write!(f, "update to {}", Shown(*new)),
        }
    }
}
