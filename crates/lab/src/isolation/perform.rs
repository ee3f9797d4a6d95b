//! [`Hand`]: carries transactions and calls out, and records what it is told.

use super::draw::{Call, Keys, Plan, STRIDE, Step};
use super::history::{Event, Key, Level, Look, Version};
use super::record::{Open, Recorder, Told, version};
use crate::linear::{key_bytes, key_number};
use quipu::{Client, Error, ErrorKind, Range, Store, Table, Transaction, WriteBatch};
use std::collections::BTreeMap;
use std::ops::Bound::Included;

/// Bytes of a value that fills memtables.
const FILLING: usize = 1500;

/// One task's access to a store.
pub(super) struct Hand<'h> {
    recorder: &'h Recorder,
    level: Level,
    task: u32,
    tables: &'h [Table],
    /// A client of each table.
    clients: Vec<Client>,
    /// Called between two steps.
    between: &'h dyn Fn(),
}

impl<'h> Hand<'h> {
    pub fn new(
        store: &Store,
        (recorder, level, tables): (&'h Recorder, Level, &'h [Table]),
        task: u32,
        between: &'h dyn Fn(),
    ) -> Result<Hand<'h>, Error> {
        let client = store.client();
        let clients = tables.iter().map(|table| client.on(table)).collect::<Result<Vec<_>, _>>()?;
        Ok(Hand { recorder, level, task, tables, clients, between })
    }

    /// Carries a transaction out.
    pub fn transaction(&mut self, plan: &Plan) -> Result<(), Error> {
        let Hand { recorder, level, task, tables, clients, between } = self;
        let (recorder, clock) = (*recorder, &recorder.clock);
        let mut open = recorder.open(*task, false);
        let begun = clock.stamp();
        let mut own = clients[0].begin(level.isolation())?;
        open.begun = (begun, clock.stamp());
        let mut savepoints = Vec::new();
        for step in &plan.steps {
            between();
            match *step {
                Step::Get(key) => get(&mut own, &mut open, recorder, (tables, key), Look::Get)?,
                Step::GetForUpdate(key) => {
                    get(&mut own, &mut open, recorder, (tables, key), Look::ForUpdate)?;
                }
                Step::Put(key) => put(&mut own, &mut open, (tables, key))?,
                Step::Change(key) => {
                    get(&mut own, &mut open, recorder, (tables, key), Look::Get)?;
                    between();
                    put(&mut own, &mut open, (tables, key))?;
                }
                Step::Delete(key) => {
                    open.delete(key);
                    match table_of(tables, key) {
                        None => own.delete(&key_bytes(key))?,
                        Some(table) => own.on(table)?.delete(&key_bytes(key))?,
                    }
                }
                Step::Scan(keys, front, back) => {
                    let (from, to) = (key_bytes(keys.first), key_bytes(keys.last));
                    let begun = clock.stamp();
                    let states = match table_of(tables, keys.first) {
                        None => told(own.range(Included(&from), Included(&to)), keys, (front, back))?,
                        Some(table) => {
                            told(own.on(table)?.range(Included(&from), Included(&to)), keys, (front, back))?
                        }
                    };
                    let at = (begun, clock.stamp());
                    let read = |(key, saw)| Event::Read { key, saw, look: Look::Range, at };
                    open.events.extend(states.into_iter().map(read));
                }
                Step::Savepoint => savepoints.push((own.savepoint(), open.events.len())),
                Step::RollBackTo(older) => {
                    if let Some(last) = savepoints.len().checked_sub(1 + older) {
                        // Those behind it are gone.
                        savepoints.truncate(last + 1);
                        own.rollback_to(&savepoints[last].0)?;
                        open.events.push(Event::RolledBack { to: savepoints[last].1 });
                    }
                }
            }
        }
        between();
        let begun = clock.stamp();
        let told = match plan.commits {
            true => told_of(own.commit())?,
            false => {
                own.rollback();
                Told::GivenUp
            }
        };
        open.close((begun, clock.stamp()), told);
        Ok(())
    }

    /// Makes a single call.
    pub fn call(&mut self, call: &Call) -> Result<(), Error> {
        let Hand { recorder, task, tables, clients, between, .. } = self;
        between();
        let clock = &recorder.clock;
        let at = |key: Key| (key / STRIDE) as usize;
        if let Call::Fill(table) = call {
            // Nobody reads it, and it needs no record.
            let name = format!("filler {}", clock.stamp());
            return told_of(clients[*table].put(name.as_bytes(), &[7; FILLING])).map(drop);
        }
        let mut open = recorder.open(*task, true);
        let begun = clock.stamp();
        let done = match call {
            Call::Get(key) => {
                let found = clients[at(*key)].get(&key_bytes(*key))?;
                let saw = found.map(|found| version(*key, &found));
                open.events.push(Event::Read { key: *key, saw, look: Look::Get, at: (begun, clock.stamp()) });
                Ok(())
            }
            Call::Put(key) => {
                let value = open.put(*key);
                clients[at(*key)].put(&key_bytes(*key), &value)
            }
            Call::Delete(key) => {
                open.delete(*key);
                clients[at(*key)].delete(&key_bytes(*key))
            }
            Call::DeleteRange(keys) => {
                (keys.first..=keys.last).for_each(|key| open.delete(key));
                let (from, to) = (key_bytes(keys.first), key_bytes(keys.last));
                clients[at(keys.first)].delete_range(Included(&from), Included(&to))
            }
            Call::Batch(writes) => {
                let mut batch = WriteBatch::new();
                for (key, is_put) in writes {
                    let batch = batch.on(&tables[at(*key)]);
                    match is_put {
                        true => batch.put(&key_bytes(*key), &open.put(*key)),
                        false => {
                            open.delete(*key);
                            batch.delete(&key_bytes(*key))
                        }
                    };
                }
                clients[0].write(&batch)
            }
            Call::Update(key) => {
                let (value, mut saw) = (open.put(*key), None);
                let done = clients[at(*key)].update(&key_bytes(*key), |old| {
                    saw = old.map(|old| version(*key, old));
                    Some(value.clone())
                });
                let at = (begun, clock.stamp());
                open.events.insert(0, Event::Read { key: *key, saw, look: Look::ForUpdate, at });
                done
            }
            Call::Fill(_) => Ok(()),
        };
        let told = told_of(done)?;
        open.begun = (begun, clock.stamp());
        let ended = open.begun;
        open.close(ended, told);
        Ok(())
    }

    /// Reads these keys, each by a call.
    pub fn read(&mut self, keys: impl Iterator<Item = Key>) -> Result<(), Error> {
        keys.map(Call::Get).try_for_each(|call| self.call(&call))
    }
}

/// The table of a key, unless it is that of the client.
fn table_of(tables: &[Table], key: Key) -> Option<&Table> {
    (key >= STRIDE).then(|| &tables[(key / STRIDE) as usize])
}

fn get(
    own: &mut Transaction<'_>,
    open: &mut Open<'_>,
    recorder: &Recorder,
    (tables, key): (&[Table], Key),
    look: Look,
) -> Result<(), Error> {
    let (name, begun) = (key_bytes(key), recorder.clock.stamp());
    let found = match (table_of(tables, key), look) {
        (None, Look::ForUpdate) => own.get_for_update(&name)?,
        (None, _) => own.get(&name)?,
        (Some(table), Look::ForUpdate) => own.on(table)?.get_for_update(&name)?,
        (Some(table), _) => own.on(table)?.get(&name)?,
    };
    let at = (begun, recorder.clock.stamp());
    let saw = found.map(|found| version(key, &found));
    open.events.push(Event::Read { key, saw, look, at });
    Ok(())
}

fn put(own: &mut Transaction<'_>, open: &mut Open<'_>, (tables, key): (&[Table], Key)) -> Result<(), Error> {
    let value = open.put(key);
    match table_of(tables, key) {
        None => own.put(&key_bytes(key), &value),
        Some(table) => own.on(table)?.put(&key_bytes(key), &value),
    }
}

/// The states of the keys of which a walk over a range tells: up to so many values from the front, and then
/// from the back. A key that is a stranger, or that comes out of order, has a value that nobody wrote.
fn told(
    mut walk: Range<'_>,
    keys: Keys,
    (front, back): (usize, usize),
) -> Result<BTreeMap<Key, Option<Version>>, Error> {
    // All that is not told yet.
    let (mut first, mut end, mut is_whole) = (keys.first, keys.last + 1, false);
    let mut states = BTreeMap::new();
    for (count, is_back) in [(front, false), (back, true)] {
        for _ in 0..count {
            if is_whole {
                break;
            }
            let Some(pair) = (if is_back { walk.next_back() } else { walk.next() }) else {
                is_whole = true;
                break;
            };
            let (name, value) = pair?;
            match key_number(&name).filter(|key| (first..end).contains(key)) {
                None => {
                    states.insert(keys.first, Some(Version::NOBODYS));
                    return Ok(states);
                }
                Some(key) => {
                    let passed = if is_back { key + 1..end } else { first..key };
                    states.extend(passed.map(|absent| (absent, None)));
                    states.insert(key, Some(version(key, &value)));
                    if is_back { end = key } else { first = key + 1 }
                }
            }
        }
    }
    if is_whole {
        states.extend((first..end).map(|key| (key, None)));
    }
    Ok(states)
}

/// The result of a write. An error that is no refusal ends the run.
fn told_of(done: Result<(), Error>) -> Result<Told, Error> {
    match done {
        Ok(()) => Ok(Told::Done),
        Err(Error::Conflict { .. }) => Ok(Told::Conflict),
        Err(error) if error.kind() == ErrorKind::Again => Ok(Told::GivenUp),
        Err(Error::PoolFull { .. } | Error::RoomHeld { .. }) => Ok(Told::GivenUp),
        Err(error) => Err(error),
    }
}
