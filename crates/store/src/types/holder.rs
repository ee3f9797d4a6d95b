//! [`Holder`]: the one that keeps room from being used again.

use quipu_medium::Region;
use quipu_parts::epoch::{self, What};
use std::fmt;
use std::time::Duration;

/// A guard, scan, snapshot, transaction or call that keeps room from being used again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// The kind of hold.
    pub what: Holding,
    /// The system's number of the thread that took it.
    pub thread: Option<u32>,
    /// The name of that thread, if it is still running.
    pub thread_name: Option<String>,
    /// How long it has been held.
    pub age: Option<Duration>,
}

/// The kinds of hold that keep room from being used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Holding {
    /// A [`Guard`](crate::Guard).
    Guard,
    /// A guard under which a scan runs.
    Scan,
    /// A [`Snapshot`](crate::Snapshot).
    Snapshot,
    /// A [`Transaction`](crate::Transaction).
    Transaction,
    /// A call of another thread that has not returned.
    Call,
    /// Other writers, which take the room that becomes free, or still work to free it.
    Writers,
}

impl Holder {
    /// This holder, or somebody of whom no more is known than `what`.
    pub(crate) fn seen(region: &Region, holder: Option<epoch::Holder>, what: Holding) -> Holder {
        let Some(epoch::Holder { what, thread, since }) = holder else {
            return Holder { what, thread: None, thread_name: None, age: None };
        };
        let what = match what {
            What::Guard => Holding::Guard,
            What::Scan => Holding::Scan,
            What::Snapshot => Holding::Snapshot,
            What::Transaction => Holding::Transaction,
        };
        let age = Duration::from_millis(region.ticks().saturating_sub(since));
        Holder { what, thread: Some(thread), thread_name: region.thread_name(thread), age: Some(age) }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, remedy) = match self.what {
            Holding::Guard => ("a guard (Client::pin)", "drop it"),
            Holding::Scan => ("a scan", "end it"),
            Holding::Snapshot => ("a snapshot (Store::snapshot)", "drop it"),
            Holding::Transaction => {
                ("a transaction", "end it, give transactions an age (Options::transaction_age)")
            }
            Holding::Call => ("a call of another thread, which has not returned,", "wait for it"),
            Holding::Writers => {
                return f.write_str("other writers take what is freed; write again, or with fewer threads");
            }
        };
        f.write_str(what)?;
        if let Some(thread) = self.thread {
            write!(f, " of thread {thread}")?;
        }
        if let Some(name) = &self.thread_name {
            write!(f, " ({name})")?;
        }
        if let Some(age) = self.age {
            write!(f, ", {:.1} s old,", age.as_secs_f64())?;
        }
        write!(
            f,
            " keeps overwritten records from being freed; {remedy}, or wait longer (Options::wait_for_room)"
        )
    }
}
