//! An engine whose calls are heard: tools that test a program see its calls, and need no change of it.
//!
//! It stands between the façade and any other engine, and hands every call on. A [`Listener`] is told when a
//! call begins, by its thread, and may answer it in place of the store. It is told the answer when the call
//! has ended. Programs that use a store have none of this: there is no listener, and no such engine.

use super::{Decide, Decision, Engine, Head, InForce, InPlace, Pinned, Session, Stretch};
use crate::background::Job;
use crate::engine::bounds::first_of;
use crate::engine::checks::Checks;
use crate::engine::common::Common;
use crate::engine::moment::Moment;
use crate::types::batch::WriteBatch;
use crate::types::change::Entry;
use crate::types::error::Error;
use crate::types::iter::{KeyItem, Pair, Versioned};
use crate::types::reports::CheckReport;
use crate::types::stats::{Activity, Stats};
use crate::types::table::{Table, TableId, TableStats};
use quipu_medium::Node;
use quipu_parts::heap::Clock;
use quipu_parts::record::{Content, Kind};
use quipu_parts::space::CheckpointEntry;
use quipu_parts::versions::Snapshot;
use std::borrow::Cow;
use std::sync::Arc;

/// Hears of the calls of a store and of its clients.
pub trait Listener: Send + Sync {
    /// A call begins. Returns the number by which it is told of the answer. An error is the answer, and
    /// nothing is done.
    ///
    /// # Errors
    /// The answer of the call.
    fn begins(&self, call: &Call<'_>) -> Result<u64, Error>;

    /// The call of this number has ended.
    fn ended(&self, number: u64, answer: Answer<'_>);

    /// Whether the calling thread may do what dropping a client does; otherwise the client is forgotten.
    fn may_drop(&self) -> bool;
}

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Call<'c> {
    /// The name of the method, or of those that are one to a walk.
    pub name: &'static str,
    /// The table of the client, if it was named.
    pub table: Option<&'c str>,
    /// Keys, with the values that they are to get. A name in place of a key, where the call takes one.
    pub items: &'c [(&'c [u8], Option<&'c [u8]>)],
    /// The tables of these keys, one for each, where they may differ from the client's; `None` for that one.
    pub tables: &'c [Option<String>],
    /// Whether a full pool refuses it.
    pub takes_room: bool,
}

/// The answer to a call.
#[derive(Clone, Copy, Debug)]
pub enum Answer<'a> {
    /// It has been done.
    Done,
    /// Yes or no.
    Is(bool),
    /// A value, or that there is none.
    Value(Option<&'a [u8]>),
    /// The value of a key before, and the one after.
    Changed(Option<&'a [u8]>, Option<&'a [u8]>),
    /// It has failed.
    Failed(&'a Error),
}

/// See the module's documentation.
pub(crate) struct Heard {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) listener: Arc<dyn Listener>,
}

impl Heard {
    /// Carries out a call, and tells of it.
    fn hear<T>(
        &self,
        call: &Call<'_>,
        work: impl FnOnce() -> Result<T, Error>,
        answer: impl FnOnce(&T) -> Answer<'_>,
    ) -> Result<T, Error> {
        let number = self.listener.begins(call)?;
        let result = work();
        self.listener.ended(number, result.as_ref().map_or_else(Answer::Failed, answer));
        result
    }

    /// A call to the store.
    fn hear_store<T>(
        &self,
        name: &'static str,
        of: Option<&str>,
        work: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let item = (of.unwrap_or_default().as_bytes(), None);
        let items = if of.is_some() { std::slice::from_ref(&item) } else { &[] };
        let takes_room = name == "create_table";
        self.hear(&Call { name, table: None, items, tables: &[], takes_room }, work, |_| Answer::Done)
    }

    fn name_of(&self, id: TableId) -> Option<String> {
        let tables = self.engine.tables().unwrap_or_default();
        tables.into_iter().find(|table| table.id == id).map(|table| table.name)
    }
}

impl Engine for Heard {
    fn session(self: Arc<Self>, node: Option<Node>) -> InPlace {
        let inner = Some(self.engine.clone().session(node));
        smallbox::smallbox!(HeardSession { inner, heard: self, table: None })
    }

    fn clock(&self) -> &Clock {
        self.engine.clock()
    }

    fn common(&self) -> &Common {
        self.engine.common()
    }

    fn jobs(self: Arc<Self>) -> Vec<Job> {
        self.engine.clone().jobs()
    }

    fn limits(&self) -> (u64, u64) {
        self.engine.limits()
    }

    fn create_table(&self, name: &str) -> Result<Table, Error> {
        self.hear_store("create_table", Some(name), || self.engine.create_table(name))
    }

    fn tables(&self) -> Result<Vec<Table>, Error> {
        self.hear_store("tables", None, || self.engine.tables())
    }

    fn drop_table(&self, id: TableId) -> Result<(), Error> {
        let name = self.name_of(id);
        self.hear_store("drop_table", name.as_deref(), || self.engine.drop_table(id))
    }

    fn table_stats(&self, id: TableId) -> Result<TableStats, Error> {
        self.engine.table_stats(id)
    }

    fn snapshot(&self) -> Result<Snapshot, Error> {
        self.hear_store("snapshot", None, || self.engine.snapshot())
    }

    fn moment(&self) -> Result<(Snapshot, Moment), Error> {
        self.hear_store("begin", None, || self.engine.moment())
    }

    fn in_force(&self) -> InForce {
        self.engine.in_force()
    }

    fn stats(&self) -> Stats {
        self.engine.stats()
    }

    fn activity(&self) -> Activity {
        self.engine.activity()
    }

    fn compact(&self) -> Result<(u64, u64), Error> {
        self.hear_store("compact", None, || self.engine.compact())
    }

    fn check(&self, progress: &dyn Fn(usize, usize)) -> Result<CheckReport, Error> {
        self.engine.check(progress)
    }

    fn quiesce(&self) -> Result<(), Error> {
        self.engine.quiesce()
    }

    fn retire(&self) -> Result<CheckpointEntry, Error> {
        self.engine.retire()
    }
}

/// The session of a client whose calls are heard.
struct HeardSession {
    /// Present until it drops.
    inner: Option<InPlace>,
    heard: Arc<Heard>,
    table: Option<String>,
}

impl HeardSession {
    fn inner(&self) -> &dyn Session {
        &**self.inner.as_ref().expect("present until it drops")
    }

    /// A call about one key.
    fn hear<T>(
        &self,
        (name, key): (&'static str, &[u8]),
        work: impl FnOnce(&dyn Session) -> Result<T, Error>,
        answer: impl FnOnce(&T) -> Answer<'_>,
    ) -> Result<T, Error> {
        let item = [(key, None)];
        let items = if key.is_empty() { &[] } else { &item[..] };
        let call = Call { name, table: self.table.as_deref(), items, tables: &[], takes_room: false };
        self.heard.hear(&call, || work(self.inner()), answer)
    }

    /// A call that changes something.
    fn change<T>(
        &mut self,
        (name, takes_room): (&'static str, bool),
        items: &[(&[u8], Option<&[u8]>)],
        work: impl FnOnce(&mut dyn Session) -> Result<T, Error>,
        answer: impl FnOnce(&T) -> Answer<'_>,
    ) -> Result<T, Error> {
        let HeardSession { inner, heard, table } = self;
        let inner = &mut **inner.as_mut().expect("present until it drops");
        heard.hear(
            &Call { name, table: table.as_deref(), items, tables: &[], takes_room },
            || work(inner),
            answer,
        )
    }
}

impl HeardSession {
    /// A call that carries out a batch, perhaps in several tables.
    fn change_batch(
        &mut self,
        name: &'static str,
        batch: &WriteBatch,
        work: impl FnOnce(&mut dyn Session) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let HeardSession { inner, heard, table } = self;
        let inner = &mut **inner.as_mut().expect("present until it drops");
        let named = |(id, _): (Option<TableId>, _)| id.and_then(|id| heard.name_of(id));
        let (items, tables) = (items_of(batch), batch.writes().map(named).collect::<Vec<_>>());
        let call = Call { name, table: table.as_deref(), items: &items, tables: &tables, takes_room: true };
        heard.hear(&call, || work(inner), done)
    }
}

fn done<T>(_: &T) -> Answer<'_> {
    Answer::Done
}

/// The keys of a batch, with the values that they are to get.
fn items_of(batch: &WriteBatch) -> Vec<(&[u8], Option<&[u8]>)> {
    let is_put = |content: &Content<'_>| content.kind == Kind::Value;
    batch.contents().map(|content| (content.key, is_put(&content).then_some(content.value))).collect()
}

fn is(is: &bool) -> Answer<'_> {
    Answer::Is(*is)
}

fn is_some<T>(found: &Option<T>) -> Answer<'_> {
    Answer::Is(found.is_some())
}

fn value<'a>(value: &'a Option<Cow<'_, [u8]>>) -> Answer<'a> {
    Answer::Value(value.as_deref())
}

fn versioned<'a>(found: &'a Option<Versioned<'_>>) -> Answer<'a> {
    Answer::Value(found.as_ref().map(|(value, _)| &**value))
}

impl Session for HeardSession {
    fn engine(&self) -> &dyn Engine {
        &*self.heard
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.change(("put", true), &[(key, Some(value))], |inner| inner.put(key, value), done)
    }

    fn check(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.inner().check(key, value)
    }

    fn put_many(&mut self, pairs: &[(&[u8], &[u8])]) -> Result<(), Error> {
        let items: Vec<_> = pairs.iter().map(|(key, value)| (*key, Some(*value))).collect();
        self.change(("put_many", true), &items, |inner| inner.put_many(pairs), done)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), Error> {
        self.change(("delete", false), &[(key, None)], |inner| inner.delete(key), done)
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool, Error> {
        self.change(("remove", false), &[(key, None)], |inner| inner.remove(key), is)
    }

    fn clear(&mut self) -> Result<(), Error> {
        self.change(("clear", false), &[], |inner| inner.clear(), done)
    }

    fn modify(&mut self, key: &[u8], decide: &mut dyn Decide) -> Result<(), Error> {
        let name = decide.name();
        let mut shown = Shown { decide, old: None, new: None };
        let table = self.table.as_deref();
        let call = Call { name, table, items: &[(key, None)], tables: &[], takes_room: true };
        let number = self.heard.listener.begins(&call)?;
        let result = self.inner.as_mut().expect("present until it drops").modify(key, &mut shown);
        let answer = match &result {
            Ok(()) => Answer::Changed(shown.old.as_deref(), shown.new.as_deref()),
            Err(error) => Answer::Failed(error),
        };
        self.heard.listener.ended(number, answer);
        result
    }

    fn get_into(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Error> {
        let table = self.table.as_deref();
        let call = Call { name: "get", table, items: &[(key, None)], tables: &[], takes_room: false };
        let number = self.heard.listener.begins(&call)?;
        let result = self.inner().get_into(key, out);
        let answer = match &result {
            Ok(found) => Answer::Value(found.then_some(&out[..])),
            Err(error) => Answer::Failed(error),
        };
        self.heard.listener.ended(number, answer);
        result
    }

    fn get_many(
        &self,
        keys: &[&[u8]],
        copy: &mut Vec<u8>,
        each: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        let items: Vec<_> = keys.iter().map(|key| (*key, None)).collect();
        let table = self.table.as_deref();
        let call = Call { name: "get_many", table, items: &items, tables: &[], takes_room: false };
        self.heard.hear(&call, || self.inner().get_many(keys, copy, each), done)
    }

    fn pin(&self) -> Pinned<'_> {
        self.inner().pin()
    }

    fn pin_at(&self, snapshot: &Snapshot, time: u64) -> Result<Pinned<'_>, Error> {
        self.inner().pin_at(snapshot, time)
    }

    fn on(&self, table: TableId) -> Result<InPlace, Error> {
        let inner = Some(self.inner().on(table)?);
        let (heard, table) = (self.heard.clone(), self.heard.name_of(table));
        Ok(smallbox::smallbox!(HeardSession { inner, heard, table }))
    }

    fn get<'g>(&'g self, pinned: &'g Pinned<'_>, key: &[u8]) -> Result<Option<Cow<'g, [u8]>>, Error> {
        self.hear(("get", key), |_| self.inner().get(pinned, key), value)
    }

    fn get_versioned<'g>(
        &'g self,
        pinned: &'g Pinned<'_>,
        key: &[u8],
    ) -> Result<Option<Versioned<'g>>, Error> {
        self.hear(("get", key), |_| self.inner().get_versioned(pinned, key), versioned)
    }

    fn head(&self, pinned: &Pinned<'_>, key: &[u8]) -> Result<Option<Head>, Error> {
        self.hear(("look_up", key), |inner| inner.head(pinned, key), is_some)
    }

    fn pairs<'g>(&'g self, pinned: &'g Pinned<'g>) -> Result<Box<dyn Iterator<Item = Pair<'g>> + 'g>, Error> {
        self.hear(("iter", b""), |_| self.inner().pairs(pinned), done)
    }

    fn keys<'g>(
        &'g self,
        pinned: &'g Pinned<'g>,
    ) -> Result<Box<dyn Iterator<Item = KeyItem<'g>> + 'g>, Error> {
        self.hear(("keys", b""), |_| self.inner().keys(pinned), done)
    }

    fn has_versions(&self) -> bool {
        self.inner().has_versions()
    }

    fn put_until(&mut self, key: &[u8], value: &[u8], time: u64) -> Result<(), Error> {
        let put = |inner: &mut dyn Session| inner.put_until(key, value, time);
        self.change(("put_until", true), &[(key, Some(value))], put, done)
    }

    fn delete_range(&mut self, from: &[u8], to: &[u8]) -> Result<(), Error> {
        let bounds = [(from, None), (to, None)];
        self.change(("delete_range", false), &bounds, |inner| inner.delete_range(from, to), done)
    }

    fn write(&mut self, batch: &WriteBatch) -> Result<(), Error> {
        self.change_batch("write", batch, |inner| inner.write(batch))
    }

    fn commit(&mut self, batch: &WriteBatch, checks: &Checks<'_>) -> Result<(), Error> {
        self.change_batch("commit", batch, |inner| inner.commit(batch, checks))
    }

    fn takes(&self, content: &Content<'_>) -> (u64, u64) {
        self.inner().takes(content)
    }

    fn table(&self) -> Option<TableId> {
        self.inner().table()
    }

    fn update_in_place(
        &mut self,
        key: &[u8],
        at: u64,
        change: &dyn Fn(u64) -> u64,
    ) -> Result<Option<u64>, Error> {
        let update = |inner: &mut dyn Session| inner.update_in_place(key, at, change);
        self.change(("update_in_place", false), &[(key, None)], update, is_some)
    }

    fn range<'g>(
        &'g self,
        pinned: &'g Pinned<'g>,
        stretch: Stretch<'g>,
    ) -> Result<Box<dyn DoubleEndedIterator<Item = Pair<'g>> + 'g>, Error> {
        let (first, last) = (first_of(&stretch.from).to_vec(), first_of(&stretch.to).to_vec());
        let table = self.table.as_deref();
        let call = Call {
            name: "range",
            table,
            items: &[(&first, None), (&last, None)],
            tables: &[],
            takes_room: false,
        };
        self.heard.hear(&call, || self.inner().range(pinned, stretch), done)
    }
}

impl Drop for HeardSession {
    fn drop(&mut self) {
        if !self.heard.listener.may_drop() {
            std::mem::forget(self.inner.take());
        }
    }
}

/// A decision of which the values are kept.
struct Shown<'d> {
    decide: &'d mut dyn Decide,
    old: Option<Vec<u8>>,
    new: Option<Vec<u8>>,
}

impl Decide for Shown<'_> {
    fn needs_value(&self) -> bool {
        true
    }

    fn decide(&mut self, old: Option<Entry<'_>>) -> Decision<'_> {
        let Shown { decide, old: before, new: after } = self;
        *before = old.map(|old| old.value.to_vec());
        let decision = decide.decide(old);
        *after = match decision {
            Decision::Keep => before.clone(),
            Decision::Put(value, _) => Some(value.to_vec()),
            Decision::Delete => None,
        };
        decision
    }
}
