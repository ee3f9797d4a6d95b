//! [`Transaction`]: several reads and writes that take effect together, or not at all.
//!
//! It is optimistic. Its reads show the state of its beginning; its writes stay with it. The commit writes
//! them as one batch, if the keys and ranges that it relies on have not been written meanwhile; the reads are
//! noted for that. Until then nothing of it is in the store, and nobody waits for it.

mod elsewhere;
mod range;
mod run;
mod writes;

use crate::api::client::Client;
use crate::api::guard::end_of_prefix;
use crate::engine::checks::{Checks, ReadRange};
use crate::engine::moment::Moment;
use crate::engine::{NO_TRANSACTIONS, Pinned, Session};
use crate::types::batch::WriteBatch;
use crate::types::conditions::{Conditions, Must};
use crate::types::error::Error;
use crate::types::isolation::Isolation;
use crate::types::iter::Range;
use crate::types::table::{Table, TableId};
use quipu_parts::record::Content;
use quipu_parts::twin;
use quipu_parts::versions::Snapshot;
use range::Merged;
use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Bound;
use writes::{Write, Writes};

pub use elsewhere::TransactionOn;
pub use writes::Savepoint;

/// Sessions of other tables that a client keeps between transactions.
const KEPT: usize = 16;

/// Reads and writes that take effect together, or not at all: see [`Client::begin`]. Its calls are of the
/// client's table; [`on`](Transaction::on) works with another. Dropping it rolls it back.
///
/// Its own reads show its own writes; nobody else sees them before [`commit`](Transaction::commit).
pub struct Transaction<'c> {
    client: &'c mut Client,
    isolation: Isolation,
    /// The table of its own calls.
    own: TableId,
    /// That of the beginning; `None` if each read shows the newest state.
    state: Option<(Snapshot, Moment)>,
    writes: Writes,
    reads: RefCell<Reads>,
}

/// Reads that a commit relies on.
#[derive(Default)]
struct Reads {
    keys: Conditions,
    ranges: Vec<ReadRange>,
}

impl Client {
    /// Begins a transaction, which reads and writes the client's table, and [others](Transaction::on). See
    /// [`Isolation`] for what it sees of others. [`Store::transact`](crate::Store::transact) repeats one that
    /// met others.
    ///
    /// While it is open, no version of a record is freed that its state shows.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the design has no transactions; [`Error::InsideUpdate`].
    ///
    /// ```
    /// # use quipu::{Design, Isolation, Options, Store};
    /// # let dir = tempfile::tempdir()?;
    /// # let options = Options::new().design(Design::XP).size(16 << 20);
    /// # let store = Store::create(dir.path().join("pool"), &options)?;
    /// let mut client = store.client();
    /// client.put_many(&[("alice", "10"), ("bob", "3")])?;
    /// let mut transaction = client.begin(Isolation::Snapshot)?;
    /// assert_eq!(transaction.get(b"alice")?.as_deref(), Some(&b"10"[..]));
    /// transaction.put(b"alice", b"7")?;
    /// transaction.put(b"bob", b"6")?;
    /// transaction.commit()?;
    /// assert_eq!(client.get(b"bob")?.as_deref(), Some(&b"6"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn begin(&mut self, isolation: Isolation) -> Result<Transaction<'_>, Error> {
        self.admit()?;
        if self.others.len() > KEPT {
            self.others.clear();
        }
        let own = self.session.table().ok_or(Error::Unsupported { what: NO_TRANSACTIONS })?;
        let state = match isolation {
            Isolation::ReadCommitted => None,
            Isolation::Snapshot | Isolation::Serializable => Some(self.session.engine().moment()?),
        };
        let (writes, reads) = (Writes::default(), RefCell::default());
        Ok(Transaction { client: self, isolation, own, state, writes, reads })
    }

    /// The session of a table that was [made ready](Client::make_ready).
    fn session_of(&self, table: TableId) -> &dyn Session {
        let other = self.others.iter().find(|(id, _)| *id == table);
        other.map_or(&*self.session, |(_, session)| &**session)
    }

    fn make_ready(&mut self, table: TableId) -> Result<(), Error> {
        let is_ready = self.session.table() == Some(table) || self.others.iter().any(|(id, _)| *id == table);
        if !is_ready {
            self.others.push((table, self.session.on(table)?));
        }
        Ok(())
    }
}

impl<'c> Transaction<'c> {
    /// The value of `key`.
    ///
    /// # Errors
    /// As for [`Client::get`], and [`Error::TransactionTooOld`].
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.get_in(self.own, key)
    }

    /// The values of many keys: `each` is called with the position and the value of every key, in order.
    ///
    /// # Errors
    /// As for [`get`](Transaction::get).
    pub fn get_many<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        each: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        self.get_many_in(self.own, keys, each)
    }

    /// The value of `key`, which nobody else may write from now on: if somebody does, and commits first, the
    /// commit of this transaction fails. For keys that decide what a transaction writes, and that it does not
    /// write itself; in [`Isolation::Serializable`] all reads are so. Of a key that it has written it is as
    /// [`get`](Transaction::get).
    ///
    /// # Errors
    /// As for [`get`](Transaction::get).
    pub fn get_for_update(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.get_for_update_in(self.own, key)
    }

    /// Gives `key` this value.
    ///
    /// # Errors
    /// As for [`Client::put`]; [`Error::TransactionTooLarge`] if a commit could not hold it besides the
    /// others. The transaction goes on without it.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.put_in(self.own, key, value, 0)
    }

    /// Gives `key` this value until a time; see [`Client::put_until`].
    ///
    /// # Errors
    /// As for [`put`](Transaction::put).
    pub fn put_until(&mut self, key: &[u8], value: &[u8], time: u64) -> Result<(), Error> {
        self.put_in(self.own, key, value, time.max(1))
    }

    /// Deletes `key`, whether it is there or not.
    ///
    /// # Errors
    /// As for [`put`](Transaction::put).
    pub fn delete(&mut self, key: &[u8]) -> Result<(), Error> {
        self.delete_in(self.own, key)
    }

    /// The keys within these bounds with their values, in order; [`rev`](Iterator::rev) goes against it. The
    /// pairs are copies, and nothing is pinned between them. In [`Isolation::ReadCommitted`] each stretch of
    /// keys is that of the moment at which the walk comes there.
    ///
    /// # Errors
    /// Items may be errors as for [`get`](Transaction::get).
    ///
    /// ```
    /// # use quipu::{Design, Isolation, Options, Store};
    /// # use std::ops::Bound::Unbounded;
    /// # let dir = tempfile::tempdir()?;
    /// # let options = Options::new().design(Design::XP).size(16 << 20);
    /// # let store = Store::create(dir.path().join("pool"), &options)?;
    /// # let mut client = store.client();
    /// client.put_many(&[("job/1", "dye"), ("job/2", "weave")])?;
    /// let mut transaction = client.begin(Isolation::Serializable)?;
    /// transaction.delete(b"job/1")?;
    /// transaction.put(b"job/3", b"sew")?;
    /// let keys: Vec<_> = transaction.prefix(b"job/").map(|pair| pair.unwrap().0).collect();
    /// assert_eq!(keys, [&b"job/2"[..], b"job/3"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn range<'t>(&'t self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Range<'t> {
        self.range_in(self.own, from, to)
    }

    /// The keys that begin with these bytes, as [`range`](Transaction::range) shows them.
    pub fn prefix<'t>(&'t self, prefix: &[u8]) -> Range<'t> {
        self.prefix_in(self.own, prefix)
    }

    /// The same calls in another table.
    ///
    /// # Errors
    /// [`Error::TableDropped`], or [`Error::Option`] for a table of another store.
    ///
    /// ```
    /// # use quipu::{Design, Isolation, Options, Store};
    /// # let dir = tempfile::tempdir()?;
    /// # let options = Options::new().design(Design::XP).size(16 << 20);
    /// # let store = Store::create(dir.path().join("pool"), &options)?;
    /// let log = store.create_table("log")?;
    /// let mut client = store.client();
    /// let mut transaction = client.begin(Isolation::default())?;
    /// transaction.put(b"alice", b"7")?;
    /// transaction.on(&log)?.put(b"1", b"alice gave 3")?;
    /// transaction.commit()?;
    /// assert_eq!(client.on(&log)?.pin().keys().count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on(&mut self, table: &Table) -> Result<TransactionOn<'_, 'c>, Error> {
        self.client.make_ready(table.id)?;
        Ok(TransactionOn { table: table.id, transaction: self })
    }

    /// A place to [come back](Transaction::rollback_to) to.
    pub fn savepoint(&mut self) -> Savepoint {
        self.writes.savepoint()
    }

    /// Takes back all writes since a savepoint, which stays; later ones are gone. Reads still count for the
    /// commit.
    ///
    /// # Errors
    /// [`Error::Option`] for a savepoint of another transaction, or one that is gone.
    pub fn rollback_to(&mut self, to: &Savepoint) -> Result<(), Error> {
        self.writes.rollback_to(to)
    }

    /// Carries out all writes, at once and durably. Readers see all of them or none, and so does a store that
    /// is opened after a crash. Without writes nothing is checked: all reads were of one state.
    ///
    /// # Errors
    /// [`Error::Conflict`] if somebody has written what the transaction relies on; otherwise as for
    /// [`Client::write`], and [`Error::TransactionTooOld`]. Nothing is changed then.
    pub fn commit(self) -> Result<(), Error> {
        self.client.admit()?;
        self.check_age()?;
        let Transaction { client, state, writes, reads, .. } = self;
        if writes.is_empty() {
            return Ok(());
        }
        let (mut batch, reads) = (WriteBatch::new(), reads.into_inner());
        writes.each(|table, key, write| match write {
            Write::Put { value, expires } => batch.put_in(table, key, value, *expires),
            Write::Delete => batch.delete_in(table, key),
        });
        let snapshot = state.as_ref().map(|(snapshot, _)| snapshot);
        client.session.commit(&batch, &Checks { keys: &reads.keys, snapshot, ranges: &reads.ranges })
    }

    /// Ends it without any change, as dropping it does.
    pub fn rollback(self) {}
}

impl Transaction<'_> {
    /// Pins the state that it reads.
    fn pin<'s>(&'s self, session: &'s dyn Session) -> Result<Pinned<'s>, Error> {
        match &self.state {
            Some((snapshot, moment)) => session.pin_at(snapshot, moment.time),
            None => Ok(session.pin()),
        }
    }

    /// Refuses an answer if the state was no longer held.
    fn check_age(&self) -> Result<(), Error> {
        let now = || self.client.session.engine().region().coarse_ticks();
        let has_ended = self.state.as_ref().is_some_and(|(snapshot, _)| snapshot.has_ended(now));
        if has_ended { Err(Error::TransactionTooOld) } else { Ok(()) }
    }

    fn get_in(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        if let Some(write) = self.writes.get(table, key).filter(|_| !twin!(OwnWritesNotMerged)) {
            return Ok(self.shown(write).map(<[u8]>::to_vec));
        }
        if let (Isolation::Serializable, Some((snapshot, _))) = (self.isolation, &self.state) {
            let must = Must::RestSince(snapshot.number());
            self.reads.borrow_mut().keys.add(Some(table), key, must);
        }
        self.look_up(table, key)
    }

    /// The value of a write of its own, unless it has expired.
    fn shown<'w>(&self, write: &'w Write) -> Option<&'w [u8]> {
        let Write::Put { value, expires } = write else { return None };
        let time = || match &self.state {
            Some((_, moment)) => moment.time,
            None => self.client.session.engine().space().expiry_time(),
        };
        (*expires == 0 || *expires > time()).then_some(&**value)
    }

    /// The value of a key in the store.
    fn look_up(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let session = self.client.session_of(table);
        let pinned = self.pin(session)?;
        let value = session.get(&pinned, key)?.map(|value| value.into_owned());
        self.check_age()?;
        Ok(value)
    }

    fn get_many_in<K: AsRef<[u8]>>(
        &self,
        table: TableId,
        keys: &[K],
        mut each: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        for (position, key) in keys.iter().enumerate() {
            each(position, self.get_in(table, key.as_ref())?.as_deref());
        }
        Ok(())
    }

    fn get_for_update_in(&mut self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        if let Some(write) = self.writes.get(table, key) {
            return Ok(self.shown(write).map(<[u8]>::to_vec));
        }
        let (must, value) = match &self.state {
            Some((snapshot, _)) => (Must::RestSince(snapshot.number()), self.look_up(table, key)?),
            None => {
                let session = self.client.session_of(table);
                let pinned = session.pin();
                let (value, version) = session.get_versioned(&pinned, key)?.unzip();
                (Must::Have(version), value.map(Cow::into_owned))
            }
        };
        self.reads.get_mut().keys.add(Some(table), key, must);
        Ok(value)
    }

    fn put_in(&mut self, table: TableId, key: &[u8], value: &[u8], expires: u64) -> Result<(), Error> {
        let session = self.client.session_of(table);
        session.check(key, value)?;
        let takes = session.takes(&Content { expires, ..Content::value(key, value) });
        self.writes.add(table, key, Write::Put { value: value.into(), expires }, takes)
    }

    fn delete_in(&mut self, table: TableId, key: &[u8]) -> Result<(), Error> {
        let session = self.client.session_of(table);
        session.check(key, &[])?;
        let takes = session.takes(&Content::tombstone(key));
        self.writes.add(table, key, Write::Delete, takes)
    }

    fn range_in<'t>(&'t self, table: TableId, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Range<'t> {
        let (from, to) = (from.map(<[u8]>::to_vec), to.map(<[u8]>::to_vec));
        Range::new(Box::new(Merged::new(self, ReadRange { table, from, to })))
    }

    fn prefix_in<'t>(&'t self, table: TableId, prefix: &[u8]) -> Range<'t> {
        let end = end_of_prefix(prefix);
        let to = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        self.range_in(table, Bound::Included(prefix), to)
    }
}

impl std::fmt::Debug for Transaction<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transaction").field("isolation", &self.isolation).finish_non_exhaustive()
    }
}
