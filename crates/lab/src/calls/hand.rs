//! [`Hand`]: carries calls out as a program would, and lets the model judge the answers.

use super::call::{Act, Call, Look, Reply, Write};
use super::codec::{Key, WORD};
use super::model::{Model, Moment};
use quipu::{Change, Client, Error, ErrorKind, Expiry, Guard, Snapshot, Store, Table, WriteBatch};
use std::borrow::Cow;
use std::ops::Bound;
use std::time::Duration;

/// How long a slow walk waits now and then.
const LINGERS: Duration = Duration::from_micros(500);

/// Snapshots that a hand has at most.
const SNAPSHOTS: usize = 3;

/// A key with its value.
pub type Pair = (Vec<u8>, Vec<u8>);

/// The findings of a read of one key, one thing after another.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// Its value.
    pub value: Option<Vec<u8>>,
    /// Whether it was there; `None` if this and the others were not asked.
    pub is_there: Option<bool>,
    /// Its expiry.
    pub expiry: Option<Expiry>,
    /// Its version, in designs that have one.
    pub version: Option<Option<u64>>,
}

/// The findings of a walk from both ends.
#[derive(Clone, Debug, Default)]
pub struct Ends {
    /// From the front.
    pub front: Vec<Pair>,
    /// From the back.
    pub back: Vec<Pair>,
    /// There is nothing else in between.
    pub met: bool,
}

/// The answer to a call.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Nothing.
    Done,
    /// Whether it took effect.
    Did(bool),
    /// Its findings about a key.
    Saw(Shown),
    /// The value of each key.
    Many(Vec<Option<Vec<u8>>>),
    /// All pairs, and all keys.
    All(Vec<Pair>, Vec<Vec<u8>>),
    /// A walk from both ends.
    Ends(Ends),
    /// The word of an update in place, before it.
    Word(Option<u64>),
    /// An answer that is wrong by itself.
    Wrong(String),
    /// An error of this kind, in words.
    Refused(ErrorKind, String),
}

/// A table as a hand has it.
struct Place {
    /// `None` in designs without tables.
    table: Option<Table>,
    client: Client,
}

/// The clients of one owner, and its snapshots, each with what it must show.
pub struct Hand {
    places: Vec<Option<Place>>,
    snapshots: Vec<(Snapshot, Moment)>,
    names: Vec<String>,
    /// The latest reading of the clock, which never goes back.
    clock: u64,
    /// Calls that found no room.
    pub full: u64,
}

impl Hand {
    /// A hand for the tables with these names; the first is the one that every store has.
    ///
    /// # Errors
    /// Those of the store.
    pub fn new(store: &Store, names: &[String]) -> Result<Hand, Error> {
        let mut places = Vec::new();
        for name in names {
            places.push(match store.table(name) {
                Ok(table) => Some(Place { client: store.client().on(&table)?, table: Some(table) }),
                Err(Error::Unsupported { .. }) => Some(Place { client: store.client(), table: None }),
                Err(Error::NoTable { .. }) => None,
                Err(error) => return Err(error),
            });
        }
        Ok(Hand { places, snapshots: Vec::new(), names: names.to_vec(), clock: 0, full: 0 })
    }

    fn now(&mut self, store: &Store) -> u64 {
        self.clock = self.clock.max(store.region().now());
        self.clock
    }

    /// Carries a call out and has it judged. Calls on what is not there are passed over.
    ///
    /// # Errors
    /// The fault of the answer.
    pub fn perform(
        &mut self,
        store: &Store,
        model: &mut Model,
        table: usize,
        call: &Call,
    ) -> Result<(), String> {
        let is_of_table = !matches!(call, Call::Snapshot | Call::Forget(_) | Call::Turn | Call::Compact);
        if is_of_table && self.places[table].is_none() {
            return Ok(());
        }
        let begun = self.now(store);
        let answer = self.answer(store, model, (table, begun), call);
        let during = (begun, self.now(store));
        let judged = match (answer, call) {
            (Ok(None), _) => return Ok(()),
            (Ok(Some(answer)), Call::LookBack(number, look)) => {
                let (_, moment) = &self.snapshots[number % self.snapshots.len()];
                model.judge_look(moment, table, look, &answer, during)
            }
            (Ok(Some(answer)), Call::Turn) => model.judge(model.tables() - 1, call, &answer, during),
            (Ok(Some(answer)), _) => model.judge(table, call, &answer, during),
            (Err(error), _) => {
                let kind = error.kind();
                if kind == ErrorKind::Room {
                    // Snapshots may hold it.
                    self.snapshots.clear();
                    self.full += 1;
                }
                model.judge(table, call, &Answer::Refused(kind, error.to_string()), during)
            }
        };
        judged.map_err(|what| format!("table {table}: {call:?}: {what}"))
    }

    /// The answer; `None` for a call that cannot be made now.
    fn answer(
        &mut self,
        store: &Store,
        model: &Model,
        (table, now): (usize, u64),
        call: &Call,
    ) -> Result<Option<Answer>, Error> {
        Ok(Some(match call {
            Call::Snapshot => {
                if self.snapshots.len() == SNAPSHOTS {
                    self.snapshots.remove(0);
                }
                self.snapshots.push((store.snapshot()?, model.moment()));
                Answer::Done
            }
            Call::Forget(_) | Call::LookBack(..) if self.snapshots.is_empty() => return Ok(None),
            Call::Forget(number) => {
                self.snapshots.swap_remove(number % self.snapshots.len());
                Answer::Done
            }
            Call::LookBack(number, look) => {
                let (snapshot, _) = &self.snapshots[number % self.snapshots.len()];
                let Some(place) = &self.places[table] else { return Ok(None) };
                self::look(&place.client.pin_at(snapshot)?, model, look)?
            }
            Call::Turn => return self.turn(store, model),
            Call::Compact => {
                store.compact()?;
                Answer::Done
            }
            Call::Batch(entries) => {
                let mut batch = WriteBatch::new();
                for (table, key, write) in entries {
                    let Some(place) = &self.places[*table] else { continue };
                    if let Some(table) = &place.table {
                        batch.on(table);
                    }
                    let key = model.name(*key);
                    match *write {
                        Write::Delete => batch.delete(&key),
                        Write::Put(value, life) => match life.expires(now) {
                            0 => batch.put(&key, &model.bytes(&key, value)),
                            time => batch.put_until(&key, &model.bytes(&key, value), time),
                        },
                    };
                }
                let Some(place) = &mut self.places[table] else { return Ok(None) };
                match place.client.write(&batch) {
                    Err(Error::BatchTooLarge { len, limit }) if len > limit => return Ok(None),
                    done => done?,
                }
                Answer::Done
            }
            _ => {
                let Some(place) = &mut self.places[table] else { return Ok(None) };
                of_table(&mut place.client, model, (table, now), call)?
            }
        }))
    }

    /// The owner's own table comes or goes.
    fn turn(&mut self, store: &Store, model: &Model) -> Result<Option<Answer>, Error> {
        let own = model.tables() - 1;
        match self.places[own].take() {
            Some(Place { table: Some(table), client }) => {
                if let Err(error) = store.drop_table(&table) {
                    self.places[own] = Some(Place { table: Some(table), client });
                    return Err(error);
                }
                // No snapshot shows it any more, and none shows the next one of its name.
                self.snapshots.iter_mut().for_each(|(_, moment)| moment.forget(own));
                Ok(Some(match client.get(b"anything") {
                    Err(Error::TableDropped) => Answer::Did(false),
                    other => Answer::Wrong(format!("a table that was dropped answers {other:?}")),
                }))
            }
            other => {
                self.places[own] = other;
                let table = match store.create_table(&self.names[own]) {
                    // All that the pool has room for are there, or readers still have one that was dropped.
                    Err(Error::Option(_)) => return Ok(None),
                    table => table?,
                };
                self.places[own] = Some(Place { client: store.client().on(&table)?, table: Some(table) });
                Ok(Some(Answer::Did(true)))
            }
        }
    }
}

/// Calls of a client.
fn of_table(
    client: &mut Client,
    model: &Model,
    (table, now): (usize, u64),
    call: &Call,
) -> Result<Answer, Error> {
    let names = |keys: &[Key]| -> Vec<Vec<u8>> { keys.iter().map(|key| model.name(*key)).collect() };
    Ok(match call {
        Call::One(key, act) => one(client, model, (table, now), &model.name(*key), *act)?,
        Call::GetMany(keys) => Answer::Many(get_many(client, &names(keys))?),
        Call::PutMany(pairs) => {
            let keys: Vec<_> = names(&pairs.iter().map(|(key, _)| *key).collect::<Vec<_>>());
            let values = keys.iter().zip(pairs).map(|(key, (_, value))| model.bytes(key, *value));
            let bytes: Vec<_> = keys.iter().zip(values).collect();
            match client.put_many(&bytes) {
                // Pairs before the refused one are written.
                Err(error) if error.kind() == ErrorKind::Room => Answer::Many(get_many(client, &keys)?),
                done => done.map(|()| Answer::Done)?,
            }
        }
        Call::DeleteRange(span) => {
            let (from, to) = model.span(&Look::Range(*span, 0, 0));
            client.delete_range(as_bytes(&from), as_bytes(&to)).map(|()| Answer::Done)?
        }
        Call::DeletePrefix(key, len) => {
            client.delete_prefix(&model.prefix(*key, *len)).map(|()| Answer::Done)?
        }
        Call::Look(look) => self::look(&client.pin(), model, look)?,
        other => unreachable!("{other:?} is no call of a client"),
    })
}

fn get_many(client: &Client, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Error> {
    let mut found = Vec::with_capacity(keys.len());
    client.get_many(keys, |position, value| {
        // A model that misses an answer tells.
        if position == found.len() {
            found.push(value.map(<[u8]>::to_vec));
        }
    })?;
    Ok(found)
}

fn one(
    client: &mut Client,
    model: &Model,
    (table, now): (usize, u64),
    key: &[u8],
    act: Act,
) -> Result<Answer, Error> {
    let done = |()| Answer::Done;
    Ok(match act {
        Act::Get => {
            let mut out = b"from before".to_vec();
            let value = client.get_into(key, &mut out)?.then_some(out);
            match client.get(key)? {
                // Between the two it may have expired.
                Some(again) if value.as_ref() != Some(&again) => {
                    return Ok(Answer::Wrong("get and get_into differ".into()));
                }
                _ => {}
            }
            let (is_there, expiry) = (Some(client.contains_key(key)?), client.expiry(key)?);
            Answer::Saw(Shown { value, is_there, expiry, version: version_of(client.version(key))? })
        }
        Act::Put(value, life) => match life.expires(now) {
            0 => client.put(key, &model.bytes(key, value)).map(done)?,
            time => client.put_until(key, &model.bytes(key, value), time).map(done)?,
        },
        Act::Delete => client.delete(key).map(done)?,
        Act::Remove => Answer::Did(client.remove(key)?),
        Act::Update(new) => {
            let (new, mut seen) = (new.map(|value| model.bytes(key, value)), None);
            client.update(key, |old| {
                seen = old.map(<[u8]>::to_vec);
                new.clone()
            })?;
            Answer::Saw(Shown { value: seen, ..Shown::default() })
        }
        Act::UpdateWith(reply) => {
            let mut seen = Shown::default();
            client.update_with(key, |old| {
                seen = Shown {
                    value: old.map(|old| old.value.to_vec()),
                    is_there: Some(old.is_some()),
                    expiry: old.map(|old| old.expiry),
                    version: model.has_versions().then_some(old.and_then(|old| old.version)),
                };
                match reply {
                    Reply::Keep => Change::Keep,
                    Reply::Delete => Change::Delete,
                    Reply::Put(value, life) => {
                        let expiry = match life.expires(now) {
                            0 => Expiry::Never,
                            time => Expiry::At(time),
                        };
                        Change::Put(Cow::Owned(model.bytes(key, value)), expiry)
                    }
                }
            })?;
            Answer::Saw(seen)
        }
        Act::PutIfAbsent(value) => Answer::Did(client.put_if_absent(key, &model.bytes(key, value))?),
        Act::Swap(right, new) => {
            let held = model.value(table, key, now);
            let expected = if right { held } else { Some(&b"nobody wrote this"[..]) };
            let new = new.map(|value| model.bytes(key, value));
            Answer::Did(client.compare_and_swap(key, expected, new.as_deref())?)
        }
        Act::PutIfVersion(right, value) => {
            let held = version_of(client.version(key))?.flatten();
            let expected = if right { held } else { Some(held.unwrap_or(6) + 1) };
            Answer::Did(client.put_if_version(key, expected, &model.bytes(key, value))?)
        }
        Act::Change(number) => {
            Answer::Word(client.update_in_place(key, WORD, |old| old.wrapping_add(number))?)
        }
    })
}

/// A version, where the design has versions.
fn version_of(version: Result<Option<u64>, Error>) -> Result<Option<Option<u64>>, Error> {
    match version {
        Err(Error::Unsupported { .. }) => Ok(None),
        version => version.map(Some),
    }
}

fn as_bytes(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

/// A walk that is slow: what it has pinned must stay although others go on meanwhile. Its pattern decides.
fn linger(pattern: u64, step: usize) {
    match (pattern % 7, step % 64) {
        (3, 0) => std::thread::sleep(LINGERS),
        (3 | 5, 8) => std::thread::yield_now(),
        _ => {}
    }
}

/// A read through a guard.
fn look(guard: &Guard<'_>, model: &Model, look: &Look) -> Result<Answer, Error> {
    let owned = |(key, value): (Cow<'_, [u8]>, Cow<'_, [u8]>)| (key.into_owned(), value.into_owned());
    Ok(match look {
        Look::Key(key) => {
            let key = model.name(*key);
            let value = guard.get(&key)?.map(Cow::into_owned);
            let (is_there, expiry) = (Some(guard.contains_key(&key)?), guard.expiry(&key)?);
            Answer::Saw(Shown { value, is_there, expiry, version: version_of(guard.version(&key))? })
        }
        Look::All(pattern) => {
            let (mut pairs, mut keys) = (guard.iter(), guard.keys());
            let mut found = Vec::new();
            for (step, pair) in pairs.by_ref().enumerate() {
                found.push(owned(pair));
                linger(*pattern, step);
            }
            let all = Answer::All(found, keys.by_ref().map(Cow::into_owned).collect());
            pairs.ended().and(keys.ended())?;
            all
        }
        Look::End(is_last) => {
            let pair = if *is_last { guard.last()? } else { guard.first()? };
            let (met, pair) = (pair.is_none(), pair.map(owned));
            let (front, back) = if *is_last { (None, pair) } else { (pair, None) };
            Answer::Ends(Ends { front: front.into_iter().collect(), back: back.into_iter().collect(), met })
        }
        Look::Range(_, most, pattern) | Look::Prefix(_, most, pattern) => {
            let (from, to) = model.span(look);
            let prefix;
            let mut range = match look {
                Look::Prefix(key, len, _) => {
                    prefix = model.prefix(*key, *len);
                    guard.prefix(&prefix)?
                }
                _ => guard.range(as_bytes(&from), as_bytes(&to))?,
            };
            // A prefix is gone through whole.
            let most = if let Look::Range(..) = look { *most } else { usize::MAX };
            let mut ends = Ends::default();
            for step in 0..most {
                let is_front = pattern >> (step % 64) & 1 == 1;
                let Some(pair) = (if is_front { range.next() } else { range.next_back() }) else {
                    ends.met = true;
                    break;
                };
                if is_front { &mut ends.front } else { &mut ends.back }.push(owned(pair?));
                linger(*pattern, step);
            }
            Answer::Ends(ends)
        }
    })
}
