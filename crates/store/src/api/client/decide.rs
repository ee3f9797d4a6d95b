//! Writes that read the key first, and decide. All of them lock it meanwhile.

use super::Client;
use crate::api::closures;
use crate::engine::{Decide, Decision, NO_VERSIONS};
use crate::types::change::{Change, Entry, Expiry};
use crate::types::error::Error;

impl Client {
    /// Deletes `key`, and returns whether it was there. An absent key costs nothing in the pool.
    ///
    /// # Errors
    /// As for [`delete`](Client::delete).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let store = quipu::Store::create(dir.path().join("p"), &quipu::Options::new().size(4 << 20))?;
    /// # let mut client = store.client();
    /// client.put(b"knot", b"7")?;
    /// assert!(client.remove(b"knot")?);
    /// assert!(!client.remove(b"knot")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn remove(&mut self, key: &[u8]) -> Result<bool, Error> {
        self.admit()?;
        self.session.remove(key)
    }

    /// Deletes every key. It costs a [`delete`](Client::delete) for each, with its tombstone where the design
    /// has them, and returns space as those do. It is not atomic: readers and a crash may see any part of it
    /// done, and a key that is written meanwhile may stay. It can be repeated. To delete everything at once,
    /// create a new pool.
    ///
    /// # Errors
    /// As for [`delete`](Client::delete): the keys before the failed one are deleted. [`Error::Damaged`] with
    /// the records whose keys cannot be read, after all other keys have been deleted.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let store = quipu::Store::create(dir.path().join("p"), &quipu::Options::new().size(4 << 20))?;
    /// # let mut client = store.client();
    /// client.put_many(&[("a", "1"), ("b", "2")])?;
    /// client.clear()?;
    /// assert_eq!(client.pin().keys().count(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn clear(&mut self) -> Result<(), Error> {
        self.admit()?;
        self.session.clear()
    }

    /// Reads the value of `key` and writes the value that `change` returns, with no other write of that key
    /// in between. `None` stands for "absent", before and after. If room had to be made for the new value,
    /// `change` is called again, on the value that the key has then.
    ///
    /// The key is locked meanwhile: keep `change` short. It may read the store by other clients, and gets
    /// [`Error::InsideUpdate`] for any other call. It must not wait for a write of another thread, which may
    /// wait for this key.
    ///
    /// Two closures over two stores, each of which writes to the other's store, wait for each other for ever:
    /// choose one order of stores. Another thread's writes of keys that share the lock wait for `change`,
    /// and so do its calls that wait for writers, such as [`compact`](crate::Store::compact).
    ///
    /// The new value never expires. Its type may be any that lends bytes, but it cannot borrow from the old
    /// value: see [`update_with`](Client::update_with) for that.
    ///
    /// # Errors
    /// As for [`put`](Client::put).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let store = quipu::Store::create(dir.path().join("p"), &quipu::Options::new().size(4 << 20))?;
    /// # let mut client = store.client();
    /// for _ in 0..3 {
    ///     client.update(b"count", |old| {
    ///         let count = old.map_or(0, |old| u64::from_le_bytes(old.try_into().unwrap()));
    ///         Some((count + 1).to_le_bytes())
    ///     })?;
    /// }
    /// assert_eq!(client.get(b"count")?, Some(3u64.to_le_bytes().to_vec()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn update<V: AsRef<[u8]>>(
        &mut self,
        key: &[u8],
        change: impl FnMut(Option<&[u8]>) -> Option<V>,
    ) -> Result<(), Error> {
        self.admit()?;
        let mark = closures::mark_of(self.session.engine());
        self.session.modify(key, &mut Update { mark, change, new: None })
    }

    /// Passes the value of `key`, its expiry and its version to `change`, and carries out the [`Change`] that
    /// it returns, with no other write of that key in between. Otherwise it works as
    /// [`update`](Client::update). A new value may be a part of the old one, which is copied once more; other
    /// bytes are given as a vector.
    ///
    /// # Errors
    /// As for [`put`](Client::put), and [`Error::Unsupported`] if the design has no expiry and the value is
    /// to expire.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let store = quipu::Store::create(dir.path().join("p"), &quipu::Options::new().size(4 << 20))?;
    /// # let mut client = store.client();
    /// use quipu::{Change, Entry, Expiry};
    /// client.put_until(b"queue", b"a,b,c", 4_000_000_000_000)?;
    /// // Drops the first of the list, and keeps the time at which the list expires.
    /// client.update_with(b"queue", |old| match old {
    ///     None => Change::Keep,
    ///     Some(Entry { value, expiry, .. }) => match value.iter().position(|byte| *byte == b',') {
    ///         None => Change::Delete,
    ///         Some(comma) => Change::Put(value[comma + 1..].into(), expiry),
    ///     },
    /// })?;
    /// assert_eq!(client.get(b"queue")?, Some(b"b,c".to_vec()));
    /// assert_eq!(client.expiry(b"queue")?, Some(Expiry::At(4_000_000_000_000)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn update_with(
        &mut self,
        key: &[u8],
        change: impl FnMut(Option<Entry<'_>>) -> Change<'_>,
    ) -> Result<(), Error> {
        self.admit()?;
        let mark = closures::mark_of(self.session.engine());
        self.session.modify(key, &mut UpdateWith { mark, change, new: Vec::new() })
    }

    /// Puts `value` if `key` is absent, and returns whether it did.
    ///
    /// # Errors
    /// As for [`put`](Client::put).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let store = quipu::Store::create(dir.path().join("p"), &quipu::Options::new().size(4 << 20))?;
    /// # let mut client = store.client();
    /// assert!(client.put_if_absent(b"owner", b"me")?);
    /// assert!(!client.put_if_absent(b"owner", b"you")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn put_if_absent(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        let accepts = |old: Option<Entry<'_>>| old.is_none();
        self.put_if(
            key,
            PutIf { name: "put_if_absent", accepts, needs_value: false, new: Some(value), done: false },
        )
    }

    /// Puts `value` if the [version](Client::version) of `key` is `expected`, and returns whether it did.
    /// `None` stands for "absent". The old value is not read.
    ///
    /// # Errors
    /// As for [`put`](Client::put), and [`Error::Unsupported`] if the design has no versions.
    pub fn put_if_version(&mut self, key: &[u8], expected: Option<u64>, value: &[u8]) -> Result<bool, Error> {
        if !self.session.has_versions() {
            return Err(Error::Unsupported { what: NO_VERSIONS });
        }
        let accepts = |old: Option<Entry<'_>>| old.and_then(|old| old.version) == expected;
        self.put_if(
            key,
            PutIf { name: "put_if_version", accepts, needs_value: false, new: Some(value), done: false },
        )
    }

    /// Gives `key` the value `new` if its value is `expected`, and returns whether it did. `None` stands for
    /// "absent".
    ///
    /// # Errors
    /// As for [`put`](Client::put).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let store = quipu::Store::create(dir.path().join("p"), &quipu::Options::new().size(4 << 20))?;
    /// # let mut client = store.client();
    /// client.put(b"turn", b"a")?;
    /// assert!(client.compare_and_swap(b"turn", Some(b"a"), Some(b"b"))?);
    /// assert!(!client.compare_and_swap(b"turn", Some(b"a"), None)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compare_and_swap(
        &mut self,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool, Error> {
        let accepts = |old: Option<Entry<'_>>| old.map(|old| old.value) == expected;
        self.put_if(key, PutIf { name: "compare_and_swap", accepts, needs_value: true, new, done: false })
    }

    /// Changes eight bytes of a value in place, durably and atomically: the little-endian number at offset
    /// `at`. Returns the old number, or `None` if there is no such key. It is cheaper than
    /// [`update`](Client::update), since it copies nothing. The key is locked meanwhile, as there. `change`
    /// is called again if another record of its page has changed.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the design updates nothing in place. [`Error::NotInPlace`] if the records of
    /// the pool have no fixed size, or the bytes are not inside the value, or not on a multiple of eight of
    /// their page. Otherwise as for [`delete`](Client::delete).
    pub fn update_in_place(
        &mut self,
        key: &[u8],
        at: u64,
        change: impl Fn(u64) -> u64,
    ) -> Result<Option<u64>, Error> {
        self.admit()?;
        let mark = closures::mark_of(self.session.engine());
        self.session.update_in_place(key, at, &|old| closures::run(mark, || change(old)))
    }

    fn put_if(
        &mut self,
        key: &[u8],
        mut condition: PutIf<'_, impl FnMut(Option<Entry<'_>>) -> bool>,
    ) -> Result<bool, Error> {
        self.admit()?;
        self.session.modify(key, &mut condition)?;
        Ok(condition.done)
    }
}

/// See [`Client::update`].
struct Update<F, V> {
    mark: usize,
    change: F,
    new: Option<V>,
}

impl<V: AsRef<[u8]>, F: FnMut(Option<&[u8]>) -> Option<V>> Decide for Update<F, V> {
    fn needs_value(&self) -> bool {
        true
    }

    fn decide(&mut self, old: Option<Entry<'_>>) -> Decision<'_> {
        let Update { mark, change, new } = self;
        closures::run(*mark, || {
            *new = change(old.map(|old| old.value));
            put_or_delete(new.as_ref().map(AsRef::as_ref))
        })
    }
}

/// See [`Client::update_with`].
struct UpdateWith<F> {
    mark: usize,
    change: F,
    new: Vec<u8>,
}

impl<F: FnMut(Option<Entry<'_>>) -> Change<'_>> Decide for UpdateWith<F> {
    fn name(&self) -> &'static str {
        "update_with"
    }

    fn needs_value(&self) -> bool {
        true
    }

    fn decide(&mut self, old: Option<Entry<'_>>) -> Decision<'_> {
        match closures::run(self.mark, || (self.change)(old)) {
            Change::Keep => Decision::Keep,
            Change::Delete => Decision::Delete,
            Change::Put(value, expiry) => {
                self.new = value.into_owned();
                Decision::Put(&self.new, expiry)
            }
        }
    }
}

/// Puts or deletes a key if its present value is accepted, and returns whether it did.
struct PutIf<'v, F> {
    name: &'static str,
    accepts: F,
    needs_value: bool,
    new: Option<&'v [u8]>,
    done: bool,
}

impl<F: FnMut(Option<Entry<'_>>) -> bool> Decide for PutIf<'_, F> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn needs_value(&self) -> bool {
        self.needs_value
    }

    fn decide(&mut self, old: Option<Entry<'_>>) -> Decision<'_> {
        self.done = (self.accepts)(old);
        if self.done { put_or_delete(self.new) } else { Decision::Keep }
    }
}

fn put_or_delete(value: Option<&[u8]>) -> Decision<'_> {
    value.map_or(Decision::Delete, |value| Decision::Put(value, Expiry::Never))
}
