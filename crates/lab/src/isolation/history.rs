//! [`History`]: transactions as they were seen from outside, and the order that the store gave their writes.
//!
//! Each value names its write ([`Version`]), so a read tells what it saw. An absent key does not tell which
//! deletion it is of, or whether there was none; the judge allows for all of them.
//!
//! *The order of versions* of a key is that of the numbers under which the store granted the commits. It
//! tells them by itself ([`Granted`](quipu::internals::Granted)), on the thread that commits. This order
//! is no guess: recovery and every read follow it. A judge may rely on it, since an answer that contradicts
//! the numbers is a fault of the store, whatever other order might explain it.

use quipu_bench::choice::Named;
use std::collections::BTreeMap;
use std::fmt;

/// Number of a key. Keys of a table are neighbours, and ascend.
pub type Key = u64;

/// Two stamps of a clock, drawn before a call and behind it.
pub type Span = (u64, u64);

/// The level of the transactions of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Each read shows the newest state.
    ReadCommitted,
    /// Reads show the state of the beginning, and the first to commit a key succeeds.
    Snapshot,
    /// As if the transactions had come one after the other.
    Serializable,
}

/// Names a write of a history, and so the value that it left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Number of the transaction.
    pub writer: usize,
    /// Which of its writes, from 0.
    pub write: usize,
}

impl Version {
    /// Stands for bytes that nobody wrote.
    pub const NOBODYS: Version = Version { writer: usize::MAX, write: 0 };
}

/// How a key was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// By key.
    Get,
    /// By key, and nobody may write the key before the commit.
    ForUpdate,
    /// Within a range. That reads every key of the range which there can be, also absent ones.
    Range,
}

/// A step of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A key was read.
    Read {
        /// The key.
        key: Key,
        /// Its value; `None` if it was absent.
        saw: Option<Version>,
        /// How it was read.
        look: Look,
        /// When.
        at: Span,
    },
    /// A key was written: its value, or a deletion.
    Write {
        /// The key.
        key: Key,
        /// The number of the write, if it is a value.
        write: Option<usize>,
    },
    /// The writes from this event on were taken back.
    RolledBack {
        /// Number of the event.
        to: usize,
    },
}

/// How a transaction ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It committed: the numbers of the keys that it wrote, in the one order over all writes.
    Committed(BTreeMap<Key, u64>),
    /// The store refused the commit, as others had written what it relied on.
    Conflict,
    /// It was given up by its client, or refused for another reason.
    GivenUp,
}

/// A transaction, or a single call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// The task, or thread.
    pub task: u32,
    /// A single call without a transaction around it. Its reads show one state between its stamps, and what
    /// it reads for an update is the state that it replaces.
    pub is_plain: bool,
    /// When it began. The whole of a single call.
    pub begun: Span,
    /// Its steps, in order.
    pub events: Vec<Event>,
    /// When its last call was under way: the commit. The whole of a single call.
    pub ended: Span,
    /// The result.
    pub end: End,
}

/// All transactions on a store that was empty before.
#[derive(Clone, Debug)]
pub struct History {
    /// The level of all that are not single calls.
    pub level: Level,
    /// The transactions by their numbers, in any order.
    pub transactions: Vec<Transaction>,
}

impl Transaction {
    /// The numbers of the keys that it wrote, if it committed.
    pub fn numbers(&self) -> Option<&BTreeMap<Key, u64>> {
        if let End::Committed(numbers) = &self.end { Some(numbers) } else { None }
    }

    /// The lowest of these numbers; `None` if it left nothing.
    pub fn first_number(&self) -> Option<u64> {
        self.numbers()?.values().copied().min()
    }

    /// The write of each key that counts at its commit.
    pub fn last_writes(&self) -> BTreeMap<Key, Option<usize>> {
        let mut own = Own::default();
        self.events.iter().for_each(|event| own.follow(event));
        own.0.into_iter().map(|(_, key, write)| (key, write)).collect()
    }

    /// Its reads, each with the write of its own that answers it, if one does.
    pub fn reads(&self) -> impl Iterator<Item = (Read, Option<Option<usize>>)> {
        let mut own = Own::default();
        self.events.iter().filter_map(move |event| {
            own.follow(event);
            let Event::Read { key, saw, look, at } = *event else { return None };
            Some((Read { key, saw, look, at }, own.of(key)))
        })
    }
}

/// A read of a key.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    /// The key.
    pub key: Key,
    /// Its value; `None` if it was absent.
    pub saw: Option<Version>,
    /// How it was read.
    pub look: Look,
    /// When.
    pub at: Span,
}

/// The writes of a transaction so far that were not taken back: the number of the event, the key, the write.
#[derive(Default)]
struct Own(Vec<(usize, Key, Option<usize>)>, usize);

impl Own {
    fn follow(&mut self, event: &Event) {
        match *event {
            Event::Write { key, write } => self.0.push((self.1, key, write)),
            Event::RolledBack { to } => self.0.retain(|(at, ..)| *at < to),
            Event::Read { .. } => {}
        }
        self.1 += 1;
    }

    fn of(&self, key: Key) -> Option<Option<usize>> {
        self.0.iter().rev().find(|(_, written, _)| *written == key).map(|(.., write)| *write)
    }
}

impl Level {
    /// All of them, the weakest first.
    pub const ALL: [Level; 3] = [Level::ReadCommitted, Level::Snapshot, Level::Serializable];

    /// That of the interface.
    pub fn isolation(self) -> quipu::Isolation {
        match self {
            Level::ReadCommitted => quipu::Isolation::ReadCommitted,
            Level::Snapshot => quipu::Isolation::Snapshot,
            Level::Serializable => quipu::Isolation::Serializable,
        }
    }
}

impl Named for Level {
    const KIND: &'static str = "level";
    const EVERY: &'static [Level] = &Level::ALL;

    fn name(&self) -> &'static str {
        match self {
            Level::ReadCommitted => "read-committed",
            Level::Snapshot => "snapshot",
            Level::Serializable => "serializable",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Version::NOBODYS => f.write_str("bytes that nobody wrote"),
            Version { writer, write } => write!(f, "t{writer}.{write}"),
        }
    }
}

/// A state of a key, in words.
pub(super) struct Shown(pub Option<Version>);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(version) => version.fmt(f),
            None => f.write_str("nothing"),
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Read { key, saw, look, .. } => {
                let how = match look {
                    Look::Get => "get",
                    Look::ForUpdate => "get for update",
                    Look::Range => "range",
                };
                write!(f, "{how} {key}: {}", Shown(*saw))
            }
            Event::Write { key, write: Some(write) } => write!(f, "put {key} (.{write})"),
            Event::Write { key, write: None } => write!(f, "delete {key}"),
            Event::RolledBack { to } => write!(f, "back to {to}"),
        }
    }
}

/// One line: the stamps of the beginning and the end, the task, the steps, and what came of it.
impl fmt::Display for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_plain { "call" } else { "transaction" };
        let Transaction { begun, ended, task, .. } = self;
        write!(f, "{} to {}, task {task}, {kind}: ", begun.0, ended.1)?;
        for event in &self.events {
            write!(f, "{event}; ")?;
        }
        match &self.end {
            End::Committed(_) => match self.first_number() {
                Some(number) => write!(f, "commit, number {number}"),
                None => f.write_str("commit"),
            },
            End::Conflict => f.write_str("conflict"),
            End::GivenUp => f.write_str("given up"),
        }
    }
}
