//! [`Operation`]: one call on one key as it was seen from outside, and what calls do to a key, one after
//! another.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Names a written value: every write of a history has its own.
pub type Value = u64;

/// Stands for bytes that were read and that nobody can have written. No write may use it.
pub const NOBODYS: Value = u64::MAX;

/// State of a key: absent, or a value.
pub type State = Option<Value>;

/// The caller of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A thread of the run.
    Thread(u32),
    /// The reader after the run, when the store had been opened again.
    Afterwards,
}

/// The effect of a call on its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reads.
    Get,
    /// Writes this value.
    Put(Value),
    /// Takes the value away, and tells whether there was one.
    Remove,
    /// Takes the value away.
    Delete,
    /// Writes this value if the key is absent, and tells whether it did.
    PutIfAbsent(Value),
    /// Replaces the one state by the other if it is the present one, and tells whether it did.
    Swap(State, State),
    /// Reads, and leaves this state, with nothing in between.
    Update(State),
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

impl Action {
    /// The sequential specification: what the action makes of a state, and what it returns then.
    pub fn apply(self, state: State) -> (State, Outcome) {
        match self {
            Action::Get => (state, Outcome::Saw(state)),
            Action::Put(value) => (Some(value), Outcome::Done),
            Action::Remove => (None, Outcome::Did(state.is_some())),
            Action::Delete => (None, Outcome::Done),
            Action::PutIfAbsent(value) => (state.or(Some(value)), Outcome::Did(state.is_none())),
            Action::Swap(expected, new) if state == expected => (new, Outcome::Did(true)),
            Action::Swap(..) => (state, Outcome::Did(false)),
            Action::Update(new) => (new, Outcome::Saw(state)),
        }
    }

    /// The value that it writes, if it writes one.
    pub fn written(self) -> Option<Value> {
        match self {
            Action::Put(value) | Action::PutIfAbsent(value) => Some(value),
            Action::Swap(_, new) | Action::Update(new) => new,
            Action::Get | Action::Remove | Action::Delete => None,
        }
    }
}

/// A call on one key. A call on several keys is one operation for each, all with the stamps of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its caller.
    pub caller: Caller,
    /// Number of the key.
    pub key: u64,
    /// Its action.
    pub action: Action,
    /// A stamp drawn before the call began.
    pub invoked: u64,
    /// A stamp drawn after it had returned, and what it returned; `None` if it never did. Then it may have
    /// taken effect at any time after `invoked`, or never.
    pub returned: Option<(u64, Outcome)>,
}

impl Operation {
    /// The stamp of its end, later than all others if it has none.
    pub fn end(&self) -> u64 {
        self.returned.map_or(u64::MAX, |(stamp, _)| stamp)
    }

    /// Whether it certainly left its key as it was, so that it proves something and changes nothing.
    pub fn is_observer(&self) -> bool {
        match (self.action, self.returned) {
            (Action::Get, _) => true,
            (Action::PutIfAbsent(_) | Action::Swap(..), Some((_, Outcome::Did(did)))) => !did,
            _ => false,
        }
    }
}

/// A state in words.
struct Shown(State);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("nothing"),
            Some(NOBODYS) => f.write_str("bytes that nobody wrote"),
            Some(value) => write!(f, "value {value}"),
        }
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Caller::Thread(number) => write!(f, "thread {number}"),
            Caller::Afterwards => f.write_str("afterwards"),
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Get => f.write_str("get"),
            Action::Put(value) => write!(f, "put value {value}"),
            Action::Remove => f.write_str("remove"),
            Action::Delete => f.write_str("delete"),
            Action::PutIfAbsent(value) => write!(f, "put value {value} if absent"),
            Action::Swap(expected, new) => write!(f, "swap {} for {}", Shown(*expected), Shown(*new)),
            Action::Update(new) => write!(f, "update to {}", Shown(*new)),
        }
    }
}

/// One line: the two stamps, the caller, the action, and what came of it so far as that counts.
impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.returned.map_or_else(|| "?".to_owned(), |(stamp, _)| stamp.to_string());
        write!(f, "{:>6} to {end:>6}  {}: {}", self.invoked, self.caller, self.action)?;
        match self.returned {
            None => f.write_str(", if at all"),
            Some((_, Outcome::Done)) => f.write_str(", done"),
            Some((_, Outcome::Did(true))) => f.write_str(", told yes"),
            Some((_, Outcome::Did(false))) => f.write_str(", told no"),
            Some((_, Outcome::Saw(state))) => write!(f, ", saw {}", Shown(state)),
        }
    }
}
