//! [`Recorder`]: what transactions are told, and the numbers of their commits.

use super::history::{End, Event, Key, Transaction, Version};
use crate::linear::{Clock, decode, encode};
use quipu::internals::Granted;
use quipu_medium::sim::sched;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

/// Tells callers apart: a thread, and its task on the simulator.
type Caller = (ThreadId, u32);

/// The numbers that were granted to callers, and that nobody has looked at yet: of each item the first.
#[derive(Clone, Default)]
pub(super) struct Grants(Arc<Mutex<HashMap<Caller, Vec<u64>>>>);

fn this() -> Caller {
    (std::thread::current().id(), sched::task_id())
}

/// A lock that is held for no other work, and by nobody who panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Grants {
    /// The listener of a store.
    pub fn listener(&self) -> Granted {
        let all = self.clone();
        Granted(Arc::new(move |numbers| lock(&all.0).entry(this()).or_default().push(*numbers.start())))
    }

    /// Those of this caller since it asked last.
    fn take(&self) -> Vec<u64> {
        lock(&self.0).remove(&this()).unwrap_or_default()
    }
}

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Recorder {
    pub clock: Clock,
    pub grants: Grants,
    transactions: Mutex<Vec<Option<Transaction>>>,
    faults: Mutex<Vec<String>>,
}

/// How a call ended, as the store said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Done,
    Conflict,
    GivenUp,
}

/// A transaction that goes on, or a call.
pub(super) struct Open<'r> {
    recorder: &'r Recorder,
    number: usize,
    is_plain: bool,
    task: u32,
    pub begun: (u64, u64),
    pub events: Vec<Event>,
    writes: usize,
}

impl Recorder {
    /// Begins a transaction, or a call.
    pub fn open(&self, task: u32, is_plain: bool) -> Open<'_> {
        self.grants.take();
        let mut all = lock(&self.transactions);
        all.push(None);
        let number = all.len() - 1;
        Open { recorder: self, number, is_plain, task, begun: (0, 0), events: Vec::new(), writes: 0 }
    }

    /// Everything recorded, and the faults that showed at once.
    pub fn into_parts(self) -> (Vec<Transaction>, Vec<String>) {
        let all = self.transactions.into_inner().unwrap_or_else(PoisonError::into_inner);
        let faults = self.faults.into_inner().unwrap_or_else(PoisonError::into_inner);
        // One whose task failed is not there; nothing can be said of the history then.
        (all.into_iter().flatten().collect(), faults)
    }
}

impl Open<'_> {
    /// The bytes of the next value of a key.
    pub fn put(&mut self, key: Key) -> Vec<u8> {
        let write = self.writes;
        self.writes += 1;
        self.events.push(Event::Write { key, write: Some(write) });
        encode(key, name(Version { writer: self.number, write }))
    }

    /// Notes a deletion.
    pub fn delete(&mut self, key: Key) {
        self.events.push(Event::Write { key, write: None });
    }

    /// Ends it.
    pub fn close(self, ended: (u64, u64), told: Told) {
        let Open { recorder, number, is_plain, task, begun, events, .. } = self;
        let granted = recorder.grants.take();
        let mut own = Transaction { task, is_plain, begun, events, ended, end: End::GivenUp };
        let writes = own.last_writes();
        // A call that deletes what is not there may write nothing.
        let may_skip = is_plain && writes.values().all(Option::is_none);
        let is_whole = match told {
            Told::Done if writes.is_empty() => granted.is_empty(),
            Told::Done => granted.len() == 1 || granted.is_empty() && may_skip,
            Told::Conflict | Told::GivenUp => granted.is_empty(),
        };
        own.end = match told {
            Told::Done => {
                let number = granted.first().copied();
                let numbers = writes.into_keys().filter_map(|key| Some((key, number?)));
                End::Committed(numbers.collect::<BTreeMap<_, _>>())
            }
            Told::Conflict => End::Conflict,
            Told::GivenUp => End::GivenUp,
        };
        if !is_whole {
            let what = format!("a commit is not one item, its numbers are {granted:?}\n  t{number}, {own}");
            lock(&recorder.faults).push(what);
        }
        lock(&recorder.transactions)[number] = Some(own);
    }
}

/// The bits of the number of a write.
const WRITES: u32 = 16;

/// The number that stands for a version in its value.
fn name(Version { writer, write }: Version) -> u64 {
    (writer as u64 + 1) << WRITES | write as u64
}

/// The version that the bytes of a key stand for.
pub(super) fn version(key: Key, bytes: &[u8]) -> Version {
    let name = decode(key, bytes);
    match (name >> WRITES).checked_sub(1) {
        Some(writer) if name != crate::action::NOBODYS => {
            Version { writer: writer as usize, write: (name & ((1 << WRITES) - 1)) as usize }
        }
        _ => Version::NOBODYS,
    }
}
