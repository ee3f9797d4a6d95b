//! Writes that look at the key first, and decide: all of them lock it meanwhile.

use super::{Access, Client};
use crate::change::{Change, Entry, Expiry};
use crate::error::Error;
use crate::slotted::with_slots;
use crate::spine::{Decision, with_logs};

impl Client {
    /// Deletes `key`, and tells whether it was there. An absent key costs nothing in the pool.
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
        match &mut self.access {
            Access::Log { logs, session } => {
                let decide = |old: Option<Entry<'_>>| (Decision::Delete, old.is_some());
                with_logs!(logs, spine => spine.modify::<false, &[u8], _>(session, key, decide))
            }
            Access::Slots { slots, session } => with_slots!(slots, spine => spine.remove(session, key)),
        }
    }

    /// Deletes every key. It costs a [`delete`](Client::delete) for each, with its tombstone where the design has these, and returns
    /// space as those do. Not atomic: readers and a crash may see any part of it done, and a key that is written meanwhile may stay. It
    /// can be called again. To be rid of all at once, create a new pool.
    ///
    /// # Errors
    /// As for [`delete`](Client::delete): the keys before the one that failed are deleted. [`Error::Damaged`] with the records whose keys
    /// cannot be read, after all others have been deleted.
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
        match &mut self.access {
            Access::Log { logs, session } => with_logs!(logs, spine => spine.clear(session)),
            Access::Slots { slots, session } => with_slots!(slots, spine => spine.clear(session)),
        }
    }

    /// Reads the value of `key` and writes what `change` makes of it, with no other write of that key in between.
    /// `None` stands for "absent", before and after. The key is locked meanwhile: keep `change` short, and do not
    /// use other clients in it. It is called again, on what the key has then, if room had to be made for what it gave.
    ///
    /// The new value never expires, and is of any type that lends bytes, but not borrowed from the old one: for these see
    /// [`update_with`](Client::update_with).
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
        mut change: impl FnMut(Option<&[u8]>) -> Option<V>,
    ) -> Result<(), Error> {
        self.modify::<true, _, _>(key, |old| (put_or_delete(change(old.map(|old| old.value))), ()))
    }

    /// Shows what `key` has, its expiry and version too, and carries out the [`Change`] that is made of it, with no other write of that
    /// key in between. Otherwise as [`update`](Client::update). A new value may be
    /// a part of the old one, which is copied once more; bytes from elsewhere are given as a vector.
    ///
    /// # Errors
    /// As for [`put`](Client::put), and [`Error::Unsupported`] if the design has no expiry and the value is to expire.
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
        mut change: impl FnMut(Option<Entry<'_>>) -> Change<'_>,
    ) -> Result<(), Error> {
        self.modify::<true, Vec<u8>, _>(key, |old| match change(old) {
            Change::Keep => (Decision::Keep, ()),
            Change::Put(value, expiry) => (Decision::Put(value.into_owned(), expiry), ()),
            Change::Delete => (Decision::Delete, ()),
        })
    }

    /// Puts `value` if `key` is absent, and tells whether it did.
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
        let decide = |old: Option<Entry<'_>>| match old {
            Some(_) => (Decision::Keep, false),
            None => (Decision::Put(value, Expiry::Never), true),
        };
        self.modify::<false, _, _>(key, decide)
    }

    /// Puts `value` if the [version](Client::version) of `key` is `expected`, and tells whether it did. `None` stands for "absent". The
    /// old value is not read.
    ///
    /// # Errors
    /// As for [`put`](Client::put), and [`Error::Unsupported`] if the design has no versions.
    pub fn put_if_version(&mut self, key: &[u8], expected: Option<u64>, value: &[u8]) -> Result<bool, Error> {
        if matches!(self.access, Access::Slots { .. }) {
            return Err(Error::Unsupported { what: "versions" });
        }
        let decide = |old: Option<Entry<'_>>| match old.and_then(|old| old.version) == expected {
            true => (Decision::Put(value, Expiry::Never), true),
            false => (Decision::Keep, false),
        };
        self.modify::<false, _, _>(key, decide)
    }

    /// Gives `key` the value `new` if its value is `expected`, and tells whether it did. `None` stands for "absent".
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
        self.modify::<true, _, _>(key, |old| {
            if old.map(|old| old.value) != expected {
                return (Decision::Keep, false);
            }
            (put_or_delete(new), true)
        })
    }

    /// Changes eight bytes of a value in place, durably and atomically: `at` bytes into it, as a little-endian number. Returns
    /// what stood there, or `None` if there is no such key. Cheaper than [`update`](Client::update) by all that it does not
    /// copy. Key and page are locked meanwhile: keep `change` short, and do not use the store in it.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the design changes nothing in place; [`Error::NotInPlace`] if the records of the pool have no
    /// fixed size, or the bytes are not inside the value, or not on a multiple of eight of their page; as for
    /// [`delete`](Client::delete).
    pub fn update_in_place(
        &mut self,
        key: &[u8],
        at: u64,
        change: impl Fn(u64) -> u64,
    ) -> Result<Option<u64>, Error> {
        match &mut self.access {
            Access::Log { .. } => Err(Error::Unsupported { what: "updates in place" }),
            Access::Slots { slots, session } => {
                with_slots!(slots, spine => spine.update_in_place(session, key, at, change))
            }
        }
    }

    /// Carries out what is decided on the value of a key. Without `WHOLE` that may be empty.
    fn modify<const WHOLE: bool, V: AsRef<[u8]>, T>(
        &mut self,
        key: &[u8],
        decide: impl FnMut(Option<Entry<'_>>) -> (Decision<V>, T),
    ) -> Result<T, Error> {
        match &mut self.access {
            Access::Log { logs, session } => {
                with_logs!(logs, spine => spine.modify::<WHOLE, V, T>(session, key, decide))
            }
            Access::Slots { slots, session } => {
                with_slots!(slots, spine => spine.modify(session, key, decide))
            }
        }
    }
}

fn put_or_delete<V>(value: Option<V>) -> Decision<V> {
    value.map_or(Decision::Delete, |value| Decision::Put(value, Expiry::Never))
}
