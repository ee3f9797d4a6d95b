//! [`Guard`]: reads of a pinned store, in place where the design allows it.

use crate::api::tables::Snapshot;
use crate::engine::{Head, NO_VERSIONS, Pinned, Session, Stretch, Wanted};
use crate::types::change::Expiry;
use crate::types::error::Error;
use crate::types::iter::{Iter, KeyValue, Keys, Range, Versioned};
use quipu_parts::epoch::{Held, What};
use std::borrow::Cow;
use std::ops::Bound;

/// A pinned store. It lends values in place, without a copy, where the design stores them contiguously. A
/// value above a quarter of a zone may lie in several zones and is assembled; designs that write in place
/// give copies.
pub struct Guard<'c> {
    session: &'c dyn Session,
    /// Ends before the pin.
    held: Option<Held<'c>>,
    pinned: Pinned<'c>,
}

impl<'c> Guard<'c> {
    pub(crate) fn of(session: &'c dyn Session) -> Guard<'c> {
        Guard::under(session, session.pin())
    }

    pub(crate) fn at(session: &'c dyn Session, snapshot: &'c Snapshot) -> Result<Guard<'c>, Error> {
        Ok(Guard::under(session, session.pin_at(&snapshot.0, 0)?))
    }

    fn under(session: &'c dyn Session, pinned: Pinned<'c>) -> Guard<'c> {
        Guard { session, held: pinned.hold(session.engine().region()), pinned }
    }
}

impl Guard<'_> {
    /// The value of `key`, in place.
    ///
    /// # Errors
    /// As for [`Client::get`](crate::Client::get).
    #[inline]
    pub fn get(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>, Error> {
        self.session.get(&self.pinned, key)
    }

    /// Whether `key` has a value, without reading it.
    ///
    /// # Errors
    /// As for [`Client::get`](crate::Client::get).
    pub fn contains_key(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(self.head(key)?.is_some())
    }

    /// When the value of `key` expires; `None` if there is no value.
    ///
    /// # Errors
    /// As for [`Client::get`](crate::Client::get).
    pub fn expiry(&self, key: &[u8]) -> Result<Option<Expiry>, Error> {
        Ok(self.head(key)?.map(|head| head.expiry))
    }

    /// The version of `key`; `None` if there is no value. See [`Client::version`](crate::Client::version).
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the design has no versions; as for [`Client::get`](crate::Client::get).
    pub fn version(&self, key: &[u8]) -> Result<Option<u64>, Error> {
        if !self.session.has_versions() {
            return Err(Error::Unsupported { what: NO_VERSIONS });
        }
        Ok(self.head(key)?.and_then(|head| head.version))
    }

    /// The value of `key` and its version, both of one write, for [`Conditions`](crate::Conditions).
    ///
    /// # Errors
    /// As for [`version`](Guard::version).
    pub fn get_versioned(&self, key: &[u8]) -> Result<Option<Versioned<'_>>, Error> {
        self.session.get_versioned(&self.pinned, key)
    }

    /// Every key with its value, in no order. A key that is present throughout appears exactly once. A key
    /// that is written meanwhile appears at most once, with a value that it had. A damaged record is left
    /// out, and a damaged index ends the iteration early; see [`Iter::ended`].
    pub fn iter(&self) -> Iter<'_> {
        self.scans();
        Iter::new(self.session.pairs(&self.pinned))
    }

    /// Every key, in no order, exactly those of [`iter`](Guard::iter). Values are not read, except where
    /// [reads are proved](crate::Options::verify_reads).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let store = quipu::Store::create(dir.path().join("p"), &quipu::Options::new().size(4 << 20))?;
    /// let mut client = store.client();
    /// client.put(b"knot", b"7")?;
    /// let guard = client.pin();
    /// let mut keys = guard.keys();
    /// assert_eq!(keys.next().as_deref(), Some(&b"knot"[..]));
    /// assert_eq!(keys.next(), None);
    /// keys.ended()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn keys(&self) -> Keys<'_> {
        self.scans();
        Keys::new(self.session.keys(&self.pinned))
    }

    /// The keys within these bounds with their values, in the order of their bytes. [`rev`](Iterator::rev)
    /// and [`next_back`](DoubleEndedIterator::next_back) go against it, and both ends may advance until they
    /// meet. A key that is present throughout appears exactly once. A key that is written meanwhile appears
    /// at most once, with a value that it had. A damaged record is an error in its place, and the walk
    /// continues behind it; any other error ends the walk.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the design keeps no order of keys; items may be errors as for
    /// [`Client::get`](crate::Client::get).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// use quipu::{Design, Options, Store};
    /// use std::ops::Bound::{Excluded, Included};
    /// let options = Options::new().design(Design::FLATSTORE_M).size(4 << 20);
    /// let store = Store::create(dir.path().join("p"), &options)?;
    /// let mut client = store.client();
    /// client.put_many(&[("cord", "1"), ("knot", "2"), ("llama", "3")])?;
    /// let guard = client.pin();
    /// let keys: Vec<_> = guard.range(Included(b"d"), Excluded(b"m"))?.map(|pair| pair.unwrap().0).collect();
    /// assert_eq!(keys, [&b"knot"[..], b"llama"]);
    /// let last = guard.range(Included(b"d"), Excluded(b"m"))?.next_back();
    /// assert_eq!(last.unwrap()?.0, &b"llama"[..]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn range<'g>(&'g self, from: Bound<&'g [u8]>, to: Bound<&'g [u8]>) -> Result<Range<'g>, Error> {
        self.ordered(from.map(Cow::Borrowed), to.map(Cow::Borrowed), Wanted::ALL)
    }

    /// Calls `each` with up to `count` keys and their values, in order, from this key on, and returns how
    /// many they were: fewer only at the end. As [`range`](Guard::range), for callers who know how many they
    /// want: few records behind these are read.
    ///
    /// # Errors
    /// As for [`range`](Guard::range). A damaged record ends the scan, behind the keys before it.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # use quipu::{Design, Options, Store};
    /// # let options = Options::new().design(Design::FLATSTORE_M).size(4 << 20);
    /// # let store = Store::create(dir.path().join("p"), &options)?;
    /// let mut client = store.client();
    /// client.put_many(&[("cord", "1"), ("knot", "2"), ("llama", "3")])?;
    /// let mut values = Vec::new();
    /// let found = client.pin().scan(b"d", 10, |_key, value| values.extend_from_slice(value))?;
    /// assert_eq!((found, &values[..]), (2, &b"23"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn scan(
        &self,
        from: &[u8],
        count: usize,
        mut each: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, Error> {
        let mut found = 0;
        let from = Bound::Included(Cow::Borrowed(from));
        for pair in self.ordered(from, Bound::Unbounded, Wanted(count))?.take(count) {
            let (key, value) = pair?;
            each(&key, &value);
            found += 1;
        }
        Ok(found)
    }

    /// The keys that begin with these bytes, as [`range`](Guard::range) shows them; an empty prefix selects
    /// all keys.
    ///
    /// # Errors
    /// As for [`range`](Guard::range).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # use quipu::{Design, Options, Store};
    /// # let options = Options::new().design(Design::FLATSTORE_M).size(4 << 20);
    /// # let store = Store::create(dir.path().join("p"), &options)?;
    /// let mut client = store.client();
    /// client.put_many(&[("job/1", "weave"), ("job/2", "dye"), ("joke", "!")])?;
    /// let guard = client.pin();
    /// assert_eq!(guard.prefix(b"job/")?.count(), 2);
    /// let newest = guard.prefix(b"job/")?.next_back();
    /// assert_eq!(newest.unwrap()?.0, &b"job/2"[..]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prefix<'g>(&'g self, prefix: &'g [u8]) -> Result<Range<'g>, Error> {
        let end = end_of_prefix(prefix).map_or(Bound::Unbounded, |end| Bound::Excluded(Cow::Owned(end)));
        self.ordered(Bound::Included(Cow::Borrowed(prefix)), end, Wanted::ALL)
    }

    /// The lowest key with its value.
    ///
    /// # Errors
    /// As for [`range`](Guard::range).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # use quipu::{Design, Options, Store};
    /// # let options = Options::new().design(Design::FLATSTORE_M).size(4 << 20);
    /// # let store = Store::create(dir.path().join("p"), &options)?;
    /// let mut client = store.client();
    /// client.put_many(&[("cord", "1"), ("knot", "2")])?;
    /// let guard = client.pin();
    /// let (first, last) = (guard.first()?, guard.last()?);
    /// assert_eq!(first.unwrap().0, &b"cord"[..]);
    /// assert_eq!(last.unwrap().0, &b"knot"[..]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn first(&self) -> Result<Option<KeyValue<'_>>, Error> {
        self.ordered(Bound::Unbounded, Bound::Unbounded, Wanted(1))?.next().transpose()
    }

    /// The highest key with its value; see [`first`](Guard::first).
    ///
    /// # Errors
    /// As for [`range`](Guard::range).
    pub fn last(&self) -> Result<Option<KeyValue<'_>>, Error> {
        self.ordered(Bound::Unbounded, Bound::Unbounded, Wanted(1))?.next_back().transpose()
    }

    fn head(&self, key: &[u8]) -> Result<Option<Head>, Error> {
        self.session.head(&self.pinned, key)
    }

    fn ordered<'g>(
        &'g self,
        from: Bound<Cow<'g, [u8]>>,
        to: Bound<Cow<'g, [u8]>>,
        wanted: Wanted,
    ) -> Result<Range<'g>, Error> {
        self.scans();
        Ok(Range::new(self.session.range(&self.pinned, Stretch { from, to, wanted })?))
    }

    fn scans(&self) {
        self.held.iter().for_each(|held| held.becomes(What::Scan));
    }
}

/// The lowest key above all keys that begin with these bytes; `None` if there is none.
pub(crate) fn end_of_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

impl<'g> IntoIterator for &'g Guard<'g> {
    type Item = KeyValue<'g>;
    type IntoIter = Iter<'g>;

    fn into_iter(self) -> Iter<'g> {
        self.iter()
    }
}
