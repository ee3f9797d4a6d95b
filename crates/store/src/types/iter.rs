//! Iterators over a pinned store: [`Iter`] and [`Keys`] in no order, [`Range`] in order and against it.

use crate::types::error::{DamagedPlace, Error, damaged_at};
use std::borrow::Cow;

/// A key with its value, each in place where possible, else a copy.
pub type KeyValue<'g> = (Cow<'g, [u8]>, Cow<'g, [u8]>);

/// A value, in place where possible, with its [version](crate::Client::version).
pub type Versioned<'g> = (Cow<'g, [u8]>, u64);

/// A pair, or the damage in its place.
pub(crate) type Pair<'g> = Result<KeyValue<'g>, Error>;

/// A key, or the damage in its place.
pub(crate) type KeyItem<'g> = Result<Cow<'g, [u8]>, Error>;

/// Items of a walk in no order, and its outcome.
struct Walk<'g, T> {
    items: Box<dyn Iterator<Item = Result<T, Error>> + 'g>,
    /// Records that were left out.
    damage: Vec<DamagedPlace>,
    outcome: Result<(), Error>,
}

impl<'g, T> Walk<'g, T> {
    /// A walk that may have failed to begin.
    fn new(begun: Result<Box<dyn Iterator<Item = Result<T, Error>> + 'g>, Error>) -> Walk<'g, T>
    where
        T: 'g,
    {
        let (items, outcome) = match begun {
            Ok(items) => (items, Ok(())),
            Err(error) => (Box::new(std::iter::empty()) as Box<_>, Err(error)),
        };
        Walk { items, damage: Vec::new(), outcome }
    }

    fn next(&mut self) -> Option<T> {
        while self.outcome.is_ok() {
            match self.items.next()? {
                Ok(item) => return Some(item),
                Err(Error::Damaged(damage)) => self.damage.extend(damage.places),
                Err(error) => self.outcome = Err(error),
            }
        }
        None
    }

    fn ended(self) -> Result<(), Error> {
        self.outcome?;
        damaged_at(self.damage)
    }
}

/// Iteration over a pinned store; see [`Guard::iter`](crate::Guard::iter).
pub struct Iter<'g>(Walk<'g, KeyValue<'g>>);

impl<'g> Iter<'g> {
    pub(crate) fn new(begun: Result<Box<dyn Iterator<Item = Pair<'g>> + 'g>, Error>) -> Self {
        Iter(Walk::new(begun))
    }

    /// Call it after the last pair: it returns an error if the iteration has not shown all pairs.
    ///
    /// # Errors
    /// [`Error::Damaged`] with the records that were left out, because they do not prove themselves
    /// ([`Options::verify_reads`](crate::Options::verify_reads)) or cannot be read. The same error, or a
    /// failure of the allocator, if an index in the pool does not show how to continue.
    /// [`Error::BackgroundFailed`], without any pair, if a write can neither be shown nor left out.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let store = quipu::Store::create(dir.path().join("p"), &quipu::Options::new().size(4 << 20))?;
    /// let client = store.client();
    /// let guard = client.pin();
    /// let mut pairs = guard.iter();
    /// assert_eq!(pairs.by_ref().count(), 0);
    /// pairs.ended()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ended(self) -> Result<(), Error> {
        self.0.ended()
    }
}

impl<'g> Iterator for Iter<'g> {
    type Item = KeyValue<'g>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

/// Iteration over the keys of a pinned store; see [`Guard::keys`](crate::Guard::keys).
pub struct Keys<'g>(Walk<'g, Cow<'g, [u8]>>);

impl<'g> Keys<'g> {
    pub(crate) fn new(begun: Result<Box<dyn Iterator<Item = KeyItem<'g>> + 'g>, Error>) -> Self {
        Keys(Walk::new(begun))
    }

    /// Call it after the last key: it returns an error if the iteration has not shown all keys.
    ///
    /// # Errors
    /// As for [`Iter::ended`].
    pub fn ended(self) -> Result<(), Error> {
        self.0.ended()
    }
}

impl<'g> Iterator for Keys<'g> {
    type Item = Cow<'g, [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

/// Keys with their values in order, from either end; see [`Guard::range`](crate::Guard::range).
pub struct Range<'g> {
    pairs: Box<dyn DoubleEndedIterator<Item = Pair<'g>> + 'g>,
}

impl<'g> Range<'g> {
    pub(crate) fn new(pairs: Box<dyn DoubleEndedIterator<Item = Pair<'g>> + 'g>) -> Self {
        Range { pairs }
    }
}

impl<'g> Iterator for Range<'g> {
    type Item = Result<KeyValue<'g>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.pairs.next()
    }
}

impl DoubleEndedIterator for Range<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.pairs.next_back()
    }
}
