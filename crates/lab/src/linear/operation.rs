//! [`Operation`]: one call on one key as it was seen from outside.

use crate::action::{Action, Outcome, Shown};
use std::fmt;

/// The caller of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A thread of the run.
    Thread(u32),
    /// The reader after the run, when the store had been opened again.
    Afterwards,
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

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Caller::Thread(number) => write!(f, "thread {number}"),
            Caller::Afterwards => f.write_str("afterwards"),
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
