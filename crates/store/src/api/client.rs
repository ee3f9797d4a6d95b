//! [`Client`]: one thread's access to a store. Writes that look at the old value first are in `decide`.

mod decide;

use crate::api::closures;
use crate::api::guard::{Guard, end_of_prefix};
use crate::api::tables::Snapshot;
use crate::engine::checks::Checks;
use crate::engine::{AT_ONCE, Engine, InPlace};
use crate::types::batch::WriteBatch;
use crate::types::change::Expiry;
use crate::types::conditions::Conditions;
use crate::types::error::Error;
use crate::types::table::{Table, TableId};
use quipu_medium::Node;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

/// One thread's access to a [`Store`](crate::Store): create one for each thread.
///
/// A client owns the segments that it appends to, so clients seldom wait for each other: for the lock of a
/// key, which keys of one stripe share, and for a moment in the index. Every write is durable, in the sense
/// of the store's [`statement`](crate::Store::statement), when its method returns. Dropping a client leaves
/// its segment to the next.
///
/// # Which reads see a write
///
/// - Every later read of the same thread, through this client or another.
/// - Every read of a thread that has learned of the write: by a lock, an atomic, a message, or a join, as for
///   a write to any other memory. So does every read that begins after one that has seen it, by the same
///   rule.
///
/// Comparing clocks is not enough. A read on another processor may begin a few dozen nanoseconds after the
/// write returned and still miss it; 75 ns have been measured. The write is then on its way out of the
/// writer's processor. A thread that has seen a write sees it, or a later one, from then on. The writer's
/// later reads of other memory are not ordered behind the write: it ends like the release of a lock.
pub struct Client {
    pub(super) session: InPlace,
    /// Of other tables, for transactions.
    pub(super) others: Vec<(TableId, InPlace)>,
}

impl Client {
    pub(crate) fn new(engine: &Arc<dyn Engine>, node: Option<Node>) -> Client {
        Client { session: engine.clone().session(node), others: Vec::new() }
    }

    /// Refuses a write [inside of a closure](closures) of its own store.
    #[inline]
    pub(super) fn admit(&self) -> Result<(), Error> {
        closures::refuse(|| self.session.engine())
    }

    #[cfg(test)]
    pub(crate) fn session(&self) -> &dyn crate::engine::Session {
        &*self.session
    }

    /// Gives `key` this value.
    ///
    /// # Errors
    /// [`Error::KeyEmpty`], [`Error::KeyTooLarge`], [`Error::ValueTooLarge`], [`Error::PoolFull`],
    /// [`Error::RoomHeld`], [`Error::RecordSize`], [`Error::ReadOnly`], [`Error::BackgroundFailed`],
    /// [`Error::InsideUpdate`], or a failure of the medium; the key keeps its old value. After
    /// [`Error::Damaged`], which says that the old value cannot be released, it may have the new one.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let store = quipu::Store::create(dir.path().join("p"), &quipu::Options::new().size(4 << 20))?;
    /// let mut client = store.client();
    /// client.put(b"knot", b"7")?;
    /// assert_eq!(client.get(b"knot")?, Some(b"7".to_vec()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.admit()?;
        self.session.put(key, value)
    }

    /// Gives `key` this value until a time, in milliseconds since 1970 by the pool's clock, which is the
    /// system's but never goes back. From then on the key is absent, and compaction takes its space back; a
    /// time that has passed makes it absent at once.
    ///
    /// # Errors
    /// As for [`put`](Client::put).
    pub fn put_until(&mut self, key: &[u8], value: &[u8], time: u64) -> Result<(), Error> {
        self.admit()?;
        // Zero stands for "never" in a record.
        self.session.put_until(key, value, time.max(1))
    }

    /// Gives `key` this value for a while, to the millisecond; see [`put_until`](Client::put_until).
    ///
    /// # Errors
    /// As for [`put`](Client::put).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = quipu::Store::create(dir.path().join("p"), &quipu::Options::new().size(4 << 20))?;
    /// let mut client = store.client();
    /// client.put_for(b"session", b"open", Duration::from_secs(3600))?;
    /// client.put_for(b"flash", b"!", Duration::ZERO)?;
    /// assert_eq!(client.get(b"session")?, Some(b"open".to_vec()));
    /// assert_eq!(client.get(b"flash")?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn put_for(&mut self, key: &[u8], value: &[u8], time: Duration) -> Result<(), Error> {
        let milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let time = self.session.engine().space().expiry_time().saturating_add(milliseconds);
        self.put_until(key, value, time)
    }

    /// When the value of `key` expires; `None` if there is no value.
    ///
    /// # Errors
    /// As for [`get`](Client::get).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let store = quipu::Store::create(dir.path().join("p"), &quipu::Options::new().size(4 << 20))?;
    /// # let mut client = store.client();
    /// use quipu::Expiry;
    /// client.put_until(b"session", b"open", 4_000_000_000_000)?;
    /// client.put(b"knot", b"7")?;
    /// assert_eq!(client.expiry(b"session")?, Some(Expiry::At(4_000_000_000_000)));
    /// assert_eq!(client.expiry(b"knot")?, Some(Expiry::Never));
    /// assert_eq!(client.expiry(b"missing")?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn expiry(&self, key: &[u8]) -> Result<Option<Expiry>, Error> {
        self.pin().expiry(key)
    }

    /// Whether there is a value of `key`; see [`Guard::contains_key`].
    ///
    /// # Errors
    /// As for [`get`](Client::get).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let store = quipu::Store::create(dir.path().join("p"), &quipu::Options::new().size(4 << 20))?;
    /// # let mut client = store.client();
    /// client.put(b"knot", b"7")?;
    /// assert!(client.contains_key(b"knot")? && !client.contains_key(b"cord")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_key(&self, key: &[u8]) -> Result<bool, Error> {
        self.pin().contains_key(key)
    }

    /// The version of `key`: a number that every write of the key makes higher, across deletions, crashes and
    /// openings too. `None` if there is no value. Compaction leaves it as it is, and so do writes of
    /// other keys. The next write of this key may raise it by any amount.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the design has no versions (`viper`, `viper-pacman`); as for
    /// [`get`](Client::get).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let store = quipu::Store::create(dir.path().join("p"), &quipu::Options::new().size(4 << 20))?;
    /// # let mut client = store.client();
    /// client.put(b"knot", b"7")?;
    /// let seen = client.version(b"knot")?;
    /// assert!(client.put_if_version(b"knot", seen, b"8")?);
    /// assert!(!client.put_if_version(b"knot", seen, b"9")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn version(&self, key: &[u8]) -> Result<Option<u64>, Error> {
        self.pin().version(key)
    }

    /// The value of `key`, copied, and its [version](Client::version), both of one write. With both, a change
    /// of what was read is safe: see [`put_if_version`](Client::put_if_version) and
    /// [`write_if`](Client::write_if).
    ///
    /// # Errors
    /// As for [`version`](Client::version).
    pub fn get_versioned(&self, key: &[u8]) -> Result<Option<(Vec<u8>, u64)>, Error> {
        let found = self.pin().get_versioned(key)?.map(|(value, version)| (value.into_owned(), version));
        Ok(found)
    }

    /// The value of `key`, copied. Another client may write the key before this one does: change what you
    /// have read by [`update`](Client::update), [`write_if`](Client::write_if) or
    /// [`transact`](Client::transact).
    ///
    /// # Errors
    /// [`Error::Damaged`] if the value is large and the headers of its zones no longer prove that they are
    /// its own.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let mut value = Vec::new();
        Ok(self.get_into(key, &mut value)?.then_some(value))
    }

    /// Copies the value of `key` into `out`, replacing its contents, and returns whether there is one.
    /// Allocates nothing once `out` has grown.
    ///
    /// # Errors
    /// As for [`get`](Client::get).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let store = quipu::Store::create(dir.path().join("p"), &quipu::Options::new().size(4 << 20))?;
    /// # let client = store.client();
    /// let mut value = Vec::new();
    /// assert!(!client.get_into(b"missing", &mut value)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn get_into(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Error> {
        self.session.get_into(key, out)
    }

    /// Reads many keys at once, several times faster than one by one, because their cache misses overlap.
    /// `each` is called with the position and the value of every key, in order. Each is the value
    /// at some moment of this call, which may come before the first call of `each`. The moments of later keys
    /// are not earlier than those of the keys before.
    ///
    /// # Errors
    /// As for [`get`](Client::get).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let store = quipu::Store::create(dir.path().join("p"), &quipu::Options::new().size(4 << 20))?;
    /// # let mut client = store.client();
    /// client.put_many(&[("a", "1"), ("b", "2")])?;
    /// let mut found = 0;
    /// client.get_many(&["a", "b", "c"], |_, value| found += value.is_some() as usize)?;
    /// assert_eq!(found, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get_many<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut each: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        let mut copy = Vec::new();
        for (batch, keys) in keys.chunks(AT_ONCE).enumerate() {
            let mut resolved = [&[][..]; AT_ONCE];
            resolved.iter_mut().zip(keys).for_each(|(place, key)| *place = key.as_ref());
            let each = &mut |position, value: Option<&[u8]>| each(batch * AT_ONCE + position, value);
            self.session.get_many(&resolved[..keys.len()], &mut copy, each)?;
        }
        Ok(())
    }

    /// Puts many pairs, with one fence for every 32 of them where the design is a log. Not atomic: after a
    /// crash each pair is there whole or not at all.
    ///
    /// # Errors
    /// As for [`put`](Client::put). Keys and values are checked before anything is written; when the pool
    /// becomes full on the way, the pairs before the one that failed are written.
    pub fn put_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(&mut self, pairs: &[(K, V)]) -> Result<(), Error> {
        self.admit()?;
        for (key, value) in pairs {
            self.session.check(key.as_ref(), value.as_ref())?;
        }
        for pairs in pairs.chunks(AT_ONCE) {
            // Asked for once and checked again, before anything is locked: a caller's `as_ref` may
            // return other bytes each time, and may panic.
            let mut resolved = [(&[][..], &[][..]); AT_ONCE];
            for (place, (key, value)) in resolved.iter_mut().zip(pairs) {
                *place = (key.as_ref(), value.as_ref());
                self.session.check(place.0, place.1)?;
            }
            self.session.put_many(&resolved[..pairs.len()])?;
        }
        Ok(())
    }

    /// Carries out all writes of a batch or, after a crash or an error, none of them. Readers see
    /// them take effect one after the other, within a few microseconds, and in `xp` all at once. No other
    /// write of the same keys comes in between. It takes one fence, however many writes there are.
    ///
    /// # Errors
    /// As for [`put`](Client::put), and [`Error::BatchTooLarge`] for one that no segment can hold.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let store = quipu::Store::create(dir.path().join("p"), &quipu::Options::new().size(4 << 20))?;
    /// # let mut client = store.client();
    /// client.put(b"alice", b"10")?;
    /// let mut batch = quipu::WriteBatch::new();
    /// batch.put(b"alice", b"7").put(b"bob", b"3").delete(b"offer");
    /// client.write(&batch)?;
    /// assert_eq!(client.get(b"bob")?, Some(b"3".to_vec()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write(&mut self, batch: &WriteBatch) -> Result<(), Error> {
        self.admit()?;
        self.session.write(batch)
    }

    /// Carries out a batch as [`write`](Client::write) does, if all of these conditions hold at that moment,
    /// and returns whether they did. With it a program changes several keys by what it has read of them, and
    /// of others: nobody else has written one of these in between. A key that was absent is absent at that
    /// moment, but may have come and gone.
    ///
    /// # Errors
    /// As for [`write`](Client::write).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let store = quipu::Store::create(dir.path().join("p"), &quipu::Options::new().size(4 << 20))?;
    /// # let mut client = store.client();
    /// use quipu::{Conditions, WriteBatch};
    /// client.put_many(&[("alice", [10]), ("bob", [0])])?;
    /// let (mut conditions, mut batch) = (Conditions::new(), WriteBatch::new());
    /// loop {
    ///     conditions.clear();
    ///     batch.clear();
    ///     let mut amount = |key: &[u8]| {
    ///         let (value, version) = client.get_versioned(key)?.unzip();
    ///         conditions.version(key, version);
    ///         Ok::<_, quipu::Error>(value.map_or(0, |value| value[0]))
    ///     };
    ///     let (alice, bob) = (amount(b"alice")?, amount(b"bob")?);
    ///     batch.put(b"alice", &[alice - 3]).put(b"bob", &[bob + 3]);
    ///     if client.write_if(&conditions, &batch)? {
    ///         break;
    ///     }
    /// }
    /// assert_eq!(client.get(b"bob")?, Some(vec![3]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_if(&mut self, conditions: &Conditions, batch: &WriteBatch) -> Result<bool, Error> {
        self.admit()?;
        let checks = Checks { keys: conditions, snapshot: None, ranges: &[] };
        match self.session.commit(batch, &checks) {
            Err(Error::Conflict { .. }) => Ok(false),
            done => done.map(|()| true),
        }
    }

    /// Deletes `key`, whether it is there or not. With an index in DRAM over logs it is as fast as
    /// [`put`](Client::put), because it need not look, and an absent key costs a record in the pool too.
    ///
    /// # Errors
    /// As for [`put`](Client::put); a full pool still has a reserve for deletes.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let store = quipu::Store::create(dir.path().join("p"), &quipu::Options::new().size(4 << 20))?;
    /// # let mut client = store.client();
    /// client.put(b"knot", b"7")?;
    /// client.delete(b"knot")?;
    /// assert_eq!(client.get(b"knot")?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn delete(&mut self, key: &[u8]) -> Result<(), Error> {
        self.admit()?;
        self.session.delete(key)
    }

    /// Pins the store for reads in place. While the guard lives, space that becomes free is not reused: drop
    /// it soon.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let store = quipu::Store::create(dir.path().join("p"), &quipu::Options::new().size(4 << 20))?;
    /// # let mut client = store.client();
    /// client.put(b"knot", b"7")?;
    /// let guard = client.pin();
    /// assert_eq!(guard.get(b"knot")?.as_deref(), Some(&b"7"[..]));
    /// assert_eq!(guard.iter().count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pin(&self) -> Guard<'_> {
        Guard::of(&*self.session)
    }
}

impl Client {
    /// Deletes all keys within these bounds, at once, however many there are: one write, which happens wholly
    /// or not at all. Their space comes back afterwards.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a design without range deletes; [`Error::KeyTooLarge`] for a bound that is
    /// longer than any key; otherwise as for [`delete`](Client::delete).
    ///
    /// ```
    /// # use quipu::{Design, Options, Store};
    /// # use std::ops::Bound;
    /// # let dir = tempfile::tempdir()?;
    /// # let options = Options::new().design(Design::XP).size(16 << 20);
    /// # let store = Store::create(dir.path().join("pool"), &options)?;
    /// let mut client = store.client();
    /// client.put_many(&[("2025-12", "a"), ("2026-01", "b"), ("2026-02", "c")])?;
    /// client.delete_range(Bound::Unbounded, Bound::Excluded(b"2026"))?;
    /// assert_eq!(client.pin().keys().count(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn delete_range(&mut self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Result<(), Error> {
        self.admit()?;
        let behind = |key: &[u8]| [key, &[0]].concat();
        let from = match from {
            Bound::Unbounded => Vec::new(),
            Bound::Included(key) => key.to_vec(),
            Bound::Excluded(key) => behind(key),
        };
        let to = match to {
            Bound::Unbounded => Vec::new(),
            // No key is below the empty one.
            Bound::Excluded(b"") => return Ok(()),
            Bound::Included(key) => behind(key),
            Bound::Excluded(key) => key.to_vec(),
        };
        self.session.delete_range(&from, &to)
    }

    /// Deletes all keys that begin with these bytes, as [`delete_range`](Client::delete_range) does.
    ///
    /// # Errors
    /// As for [`delete_range`](Client::delete_range).
    pub fn delete_prefix(&mut self, prefix: &[u8]) -> Result<(), Error> {
        let end = end_of_prefix(prefix);
        let to = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        self.delete_range(Bound::Included(prefix), to)
    }

    /// Reads the state of a snapshot.
    ///
    /// # Errors
    /// [`Error::Option`] for a snapshot of another store; [`Error::Unsupported`] for a design without
    /// snapshots.
    pub fn pin_at<'c>(&'c self, snapshot: &'c Snapshot) -> Result<Guard<'c>, Error> {
        Guard::at(&*self.session, snapshot)
    }

    /// Another client, for a table; see [`Store::create_table`](crate::Store::create_table).
    ///
    /// # Errors
    /// [`Error::TableDropped`]; [`Error::Unsupported`] for a design without tables.
    pub fn on(&self, table: &Table) -> Result<Client, Error> {
        Ok(Client { session: self.session.on(table.id)?, others: Vec::new() })
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}
