//! [`Model`]: what the keys of one owner must be, and the judge of every answer about them.

use super::call::{Act, Call, Look, Reply, Span, Write};
use super::codec::{Codec, Key, Value, WORD};
use super::hand::{Answer, Shown};
use super::walks::is_within;
use quipu::ErrorKind;
use quipu::designs::Capabilities;
use quipu::internals::RecordForm;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// The two readings of the clock between which a call was made, in milliseconds.
pub(super) type During = (u64, u64);

/// The value of a key.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) value: Arc<[u8]>,
    /// 0 for never.
    expires: u64,
}

/// The keys of a table. They are copied when a moment has them and they change.
pub(super) type Table = Arc<BTreeMap<Vec<u8>, Entry>>;

/// All tables at a moment; `None` for one that was not there.
#[derive(Clone, Debug)]
pub(super) struct Moment(pub(super) Vec<Option<Table>>);

impl Moment {
    /// A table has been dropped: nothing shows its keys any more.
    pub(super) fn forget(&mut self, table: usize) {
        self.0[table] = None;
    }
}

/// See the module's documentation.
pub struct Model {
    pub(super) owner: u8,
    pub(super) owners: u8,
    pub(super) codec: Codec,
    pub(super) can: Capabilities,
    now: Moment,
    /// Values so far that expire, or that a range delete took. As long as nobody writes or sweeps their keys,
    /// the store may count them.
    lingering: u64,
    /// The version that a key had when it was last seen, and whether it was written since.
    versions: BTreeMap<(usize, Vec<u8>), (u64, bool)>,
}

/// Whether a value may be found between two readings of the clock, and whether it may be missed.
fn may(entry: Option<&Entry>, during: During) -> (bool, bool) {
    match entry {
        None => (false, true),
        Some(Entry { expires: 0, .. }) => (true, false),
        Some(Entry { expires, .. }) => (during.0 < *expires, during.1 >= *expires),
    }
}

pub(super) fn fault<T>(what: impl Into<String>) -> Result<T, String> {
    Err(what.into())
}

pub(super) fn shown(value: Option<&[u8]>) -> String {
    value.map_or("nothing".into(), |value| {
        format!("{} bytes from {}", value.len(), value[..value.len().min(8)].escape_ascii())
    })
}

/// Holds an answer about a key against its state.
pub(super) fn fits(
    key: &[u8],
    entry: Option<&Entry>,
    found: Option<&[u8]>,
    during: During,
) -> Result<(), String> {
    let (may_be_there, may_be_absent) = may(entry, during);
    let is_right = match (entry, found) {
        (_, None) => may_be_absent,
        (None, Some(_)) => false,
        (Some(entry), Some(found)) => may_be_there && *entry.value == *found,
    };
    if is_right {
        return Ok(());
    }
    let expires = entry.map_or(0, |entry| entry.expires);
    let what = match (may_be_there, found) {
        (false, Some(_)) => "returned after it was deleted",
        (_, None) => "is lost",
        _ => "has another value",
    };
    fault(format!(
        "key {} {what}: it must be {} (expires {expires}) and is {}, from {} to {}",
        key.escape_ascii(),
        shown(entry.map(|entry| &*entry.value)),
        shown(found),
        during.0,
        during.1
    ))
}

/// Holds a yes or no against the answers that were possible.
fn holds(what: &str, told: bool, (may_yes, may_no): (bool, bool)) -> Result<(), String> {
    if if told { may_yes } else { may_no } { Ok(()) } else { fault(format!("{what} told {told}")) }
}

impl Model {
    /// Of nothing yet: `owner` of so many, from 1 on, each with keys of its own in so many tables, of which
    /// the last is its own too and comes later.
    pub fn new((owner, owners): (u8, u8), codec: Codec, can: Capabilities, tables: usize) -> Model {
        let there = |table: usize| (table == 0 || table + 1 < tables).then(Table::default);
        let now = Moment((0..tables).map(there).collect());
        Model { owner, owners, codec, can, now, lingering: 0, versions: BTreeMap::new() }
    }

    pub(super) fn name(&self, key: Key) -> Vec<u8> {
        self.codec.key(self.owner, key)
    }

    pub(super) fn bytes(&self, key: &[u8], value: Value) -> Vec<u8> {
        self.codec.value(key, value)
    }

    pub(super) fn moment(&self) -> Moment {
        self.now.clone()
    }

    /// Whether keys have versions.
    pub(super) fn has_versions(&self) -> bool {
        self.can.versions
    }

    /// Whether a table is there.
    fn has(&self, table: usize) -> bool {
        self.now.0[table].is_some()
    }

    /// Whether the owner has a table of its own.
    pub(super) fn tables(&self) -> usize {
        self.now.0.len()
    }

    /// The value of a key at a time.
    pub(super) fn value(&self, table: usize, key: &[u8], now: u64) -> Option<&[u8]> {
        let entry = self.entry(table, key)?;
        may(Some(entry), (now, now)).0.then_some(&*entry.value)
    }

    /// Keys that must be there at a time, and keys that may still be counted.
    pub fn counts(&self, now: u64) -> (u64, u64) {
        let entries = self.now.0.iter().flatten().flat_map(|table| table.values());
        let alive = entries.filter(|entry| may(Some(entry), (now, now)).0).count() as u64;
        (alive, alive + self.lingering)
    }

    fn entry(&self, table: usize, key: &[u8]) -> Option<&Entry> {
        self.now.0[table].as_ref()?.get(key)
    }

    fn change(&mut self, table: usize, change: impl FnOnce(&mut BTreeMap<Vec<u8>, Entry>)) {
        if let Some(keys) = &mut self.now.0[table] {
            change(Arc::make_mut(keys));
        }
    }

    fn put(&mut self, table: usize, key: &[u8], value: Value, expires: u64) {
        let value = self.bytes(key, value).into();
        self.lingering += u64::from(expires > 0);
        self.change(table, |keys| drop(keys.insert(key.to_vec(), Entry { value, expires })));
        self.versions.entry((table, key.to_vec())).and_modify(|(_, is_written)| *is_written = true);
    }

    fn sweep(&mut self, table: usize, is_swept: impl Fn(&[u8]) -> bool) {
        let mut swept = 0;
        self.change(table, |keys| {
            let before = keys.len();
            keys.retain(|key, _| !is_swept(key));
            swept = before - keys.len();
        });
        self.lingering += swept as u64;
    }

    fn take(&mut self, table: usize, key: &[u8]) {
        self.change(table, |keys| drop(keys.remove(key)));
    }

    /// Whether the store may refuse the call for its arguments, and then whether it must.
    fn refuses(&self, table: usize, call: &Call, during: During) -> Option<bool> {
        if !call.is_offered(&self.can) {
            return Some(true);
        }
        let too_long = |value: Value| !self.codec.fits(value, false);
        // Some conditions depend on the time.
        let if_there = |key: Key| may(self.entry(table, &self.name(key)), during);
        let is_timed = |key: Key| if_there(key) == (true, true);
        match call {
            Call::One(key, act) => match *act {
                Act::Put(value, _) | Act::Update(Some(value)) | Act::UpdateWith(Reply::Put(value, _)) => {
                    too_long(value).then_some(true)
                }
                Act::PutIfAbsent(value) => {
                    let (may_be_there, may_be_absent) = if_there(*key);
                    (too_long(value) && may_be_absent).then_some(!may_be_there)
                }
                Act::Swap(right, Some(value)) | Act::PutIfVersion(right, value) => {
                    (too_long(value) && right).then_some(!is_timed(*key))
                }
                Act::Change(_) => {
                    let can = self.can.updates_in_place && self.codec.form != RecordForm::Variable;
                    (!can).then_some(!if_there(*key).1)
                }
                _ => None,
            },
            Call::PutMany(pairs) => pairs.iter().any(|(_, value)| too_long(*value)).then_some(true),
            Call::Batch(entries) => {
                let too_long =
                    |write: &Write| matches!(write, Write::Put(value, _) if !self.codec.fits(*value, true));
                let mut there = entries.iter().filter(|(table, ..)| self.has(*table));
                there.any(|(.., write)| too_long(write)).then_some(true)
            }
            _ => None,
        }
    }

    /// Judges the answer to a call, and takes its effect over.
    ///
    /// # Errors
    /// The fault of the answer.
    pub fn judge(
        &mut self,
        table: usize,
        call: &Call,
        answer: &Answer,
        during: During,
    ) -> Result<(), String> {
        match (answer, self.refuses(table, call, during)) {
            (Answer::Refused(ErrorKind::Argument, _), Some(_)) => return Ok(()),
            // Some write has found no room; nothing has changed.
            (Answer::Refused(ErrorKind::Room, _), _) => return Ok(()),
            (Answer::Refused(_, why), _) => return fault(format!("it is refused: {why}")),
            (Answer::Wrong(what), _) => return fault(what),
            (_, Some(true)) => return fault("it is not refused"),
            _ => {}
        }
        match (call, answer) {
            (Call::One(key, act), answer) => self.judge_one(table, &self.name(*key), *act, answer, during)?,
            (Call::GetMany(keys), Answer::Many(found)) => self.judge_many(table, keys, found, during)?,
            (Call::PutMany(pairs), Answer::Done) => {
                pairs.iter().for_each(|(key, value)| self.put(table, &self.name(*key), *value, 0));
            }
            (Call::PutMany(pairs), Answer::Many(found)) => self.judge_part(table, pairs, found, during)?,
            (Call::Batch(entries), Answer::Done) => {
                for (table, key, write) in entries {
                    let key = self.name(*key);
                    match *write {
                        Write::Put(value, life) => self.put(*table, &key, value, life.expires(during.0)),
                        Write::Delete => self.take(*table, &key),
                    }
                }
            }
            (Call::DeleteRange(span), Answer::Done) => {
                let (from, to) = self.bounds(*span);
                self.sweep(table, |key| is_within(key, &from, &to));
            }
            (Call::DeletePrefix(key, len), Answer::Done) => {
                let prefix = self.prefix(*key, *len);
                self.sweep(table, |key| key.starts_with(&prefix));
            }
            (Call::Look(look), answer) => {
                self.judge_look(&self.now, table, look, answer, during)?;
                if let (Look::Key(key), Answer::Saw(seen)) = (look, answer) {
                    self.judge_version(table, &self.name(*key), seen)?;
                }
            }
            (Call::Turn, Answer::Did(is_there)) => {
                self.now.0[table] = is_there.then(Table::default);
                self.versions.retain(|(of, _), _| *of != table);
            }
            (Call::Snapshot | Call::Forget(_) | Call::Compact, Answer::Done) => {}
            (_, answer) => return fault(format!("it has the answer {answer:?}")),
        }
        Ok(())
    }

    fn judge_one(
        &mut self,
        table: usize,
        key: &[u8],
        act: Act,
        answer: &Answer,
        during: During,
    ) -> Result<(), String> {
        let entry = self.entry(table, key);
        let (may_be_there, may_be_absent) = may(entry, during);
        match (act, answer) {
            (Act::Get, Answer::Saw(seen)) => {
                Model::judge_shown(key, entry, seen, during)?;
                self.judge_version(table, key, seen)?;
            }
            (Act::Put(value, life), Answer::Done) => self.put(table, key, value, life.expires(during.0)),
            (Act::Delete, Answer::Done) => self.take(table, key),
            (Act::Remove, Answer::Did(did)) => {
                holds("a remove", *did, (may_be_there, may_be_absent))?;
                self.take(table, key);
            }
            (Act::Update(new), Answer::Saw(seen)) => {
                fits(key, entry, seen.value.as_deref(), during)?;
                match new {
                    Some(value) => self.put(table, key, value, 0),
                    None => self.take(table, key),
                }
            }
            (Act::UpdateWith(reply), Answer::Saw(seen)) => {
                Model::judge_shown(key, entry, seen, during)?;
                self.judge_version(table, key, seen)?;
                match reply {
                    Reply::Keep => {}
                    Reply::Put(value, life) => self.put(table, key, value, life.expires(during.0)),
                    Reply::Delete => self.take(table, key),
                }
            }
            (Act::PutIfAbsent(value), Answer::Did(did)) => {
                holds("a put of an absent key", *did, (may_be_absent, may_be_there))?;
                if *did {
                    self.put(table, key, value, 0);
                }
            }
            (Act::Swap(right, _) | Act::PutIfVersion(right, _), Answer::Did(did)) => {
                let is_timed = (may_be_there, may_be_absent) == (true, true);
                holds("a conditional put", *did, (right, !right || is_timed))?;
                match act {
                    Act::Swap(_, Some(value)) | Act::PutIfVersion(_, value) if *did => {
                        self.put(table, key, value, 0)
                    }
                    _ if *did => self.take(table, key),
                    _ => {}
                }
            }
            (Act::Change(number), Answer::Word(old)) => {
                let word = entry.map(|entry| word_of(&entry.value)).transpose()?;
                if *old != word {
                    return fault(format!("it changed {old:?}, which must be {word:?}"));
                }
                if let (Some(old), Some(entry)) = (word, entry) {
                    let (mut value, at) = (entry.value.to_vec(), WORD as usize);
                    value[at..at + 8].copy_from_slice(&old.wrapping_add(number).to_le_bytes());
                    let entry = Entry { value: value.into(), ..*entry };
                    self.change(table, |keys| drop(keys.insert(key.to_vec(), entry)));
                }
            }
            (_, answer) => return fault(format!("it has the answer {answer:?}")),
        }
        Ok(())
    }

    fn judge_many(
        &self,
        table: usize,
        keys: &[Key],
        found: &[Option<Vec<u8>>],
        during: During,
    ) -> Result<(), String> {
        if found.len() != keys.len() {
            return fault(format!("{} answers for {} keys", found.len(), keys.len()));
        }
        keys.iter().zip(found).try_for_each(|(key, found)| {
            let key = self.name(*key);
            fits(&key, self.entry(table, &key), found.as_deref(), during)
        })
    }

    /// A full pool took some of the pairs: each key is as it was, or has a value that was put.
    fn judge_part(
        &mut self,
        table: usize,
        pairs: &[(Key, Value)],
        found: &[Option<Vec<u8>>],
        during: During,
    ) -> Result<(), String> {
        for ((key, _), found) in pairs.iter().zip(found) {
            let name = self.name(*key);
            let put = pairs.iter().filter(|(other, _)| other == key).map(|(_, value)| *value);
            let put = put.into_iter().find(|value| found.as_ref() == Some(&self.bytes(&name, *value)));
            match put {
                Some(value) => self.put(table, &name, value, 0),
                None => fits(&name, self.entry(table, &name), found.as_deref(), during)?,
            }
        }
        Ok(())
    }

    /// Judges what a reading of one key has shown, one thing after another.
    pub(super) fn judge_shown(
        key: &[u8],
        entry: Option<&Entry>,
        seen: &Shown,
        during: During,
    ) -> Result<(), String> {
        fits(key, entry, seen.value.as_deref(), during)?;
        let possible = may(entry, during);
        let Some(is_there) = seen.is_there else { return Ok(()) };
        holds("contains_key", is_there, possible)?;
        holds("the expiry", seen.expiry.is_some(), possible)?;
        let expires = entry.map(|entry| entry.expires);
        match seen.expiry {
            Some(expiry) if Some(expiry.time().unwrap_or(0)) != expires => {
                fault(format!("it expires at {expiry:?}, not {expires:?}"))
            }
            _ => seen.version.map_or(Ok(()), |version| holds("the version", version.is_some(), possible)),
        }
    }

    /// Each write of a key makes its version higher, and nothing else changes it.
    fn judge_version(&mut self, table: usize, key: &[u8], seen: &Shown) -> Result<(), String> {
        let Some(Some(version)) = seen.version else { return Ok(()) };
        let before = self.versions.insert((table, key.to_vec()), (version, false));
        match before {
            Some((before, true)) if version <= before => {
                fault(format!("it has version {version} after a write, and had {before}"))
            }
            Some((before, false)) if version != before => {
                fault(format!("it has version {version} without a write, and had {before}"))
            }
            _ => Ok(()),
        }
    }

    fn bounds(&self, span: Span) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        (span.from.map(|key| self.name(key)), span.to.map(|key| self.name(key)))
    }

    pub(super) fn span(&self, look: &Look) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        match look {
            Look::Range(span, ..) => self.bounds(*span),
            _ => (Bound::Unbounded, Bound::Unbounded),
        }
    }

    /// The first bytes of a key, the owner's at least.
    pub(super) fn prefix(&self, key: Key, len: usize) -> Vec<u8> {
        let mut name = self.name(key);
        name.truncate(len.max(1));
        name
    }
}

fn word_of(value: &[u8]) -> Result<u64, String> {
    let word = value[WORD as usize..].first_chunk().ok_or("the value has no such word")?;
    Ok(u64::from_le_bytes(*word))
}
