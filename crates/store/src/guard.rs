//! [`Guard`]: reads of a store that is pinned, in place where the design allows it, and [`Iter`]: all of it.

use crate::error::{Damage, DamagedPlace, Error};
use crate::slotted::{SlotBatch, Slots, with_slots};
use crate::spine::{Logs, Pair, with_logs};
use quipu_parts::epoch;
use std::borrow::Cow;
use std::ops::Bound;

/// A pinned store: values are lent out in place, without a copy, where the design keeps them as they are. A value above a
/// quarter of a zone, which may lie in several, is put together, and designs that write in place give copies.
pub struct Guard<'c> {
    spine: Pinned<'c>,
    pinned: epoch::Guard<'c>,
}

impl<'c> Guard<'c> {
    pub(crate) fn of_log(logs: &'c Logs, pinned: epoch::Guard<'c>) -> Guard<'c> {
        Guard { spine: Pinned::Log(logs), pinned }
    }

    pub(crate) fn of_slots(slots: &'c Slots, pinned: epoch::Guard<'c>) -> Guard<'c> {
        Guard { spine: Pinned::Slots(slots), pinned }
    }
}

/// The walk that a guard keeps pinned.
#[derive(Clone, Copy)]
enum Pinned<'c> {
    Log(&'c Logs),
    Slots(&'c Slots),
}

impl Guard<'_> {
    /// The value of `key`, in place.
    ///
    /// # Errors
    /// As for [`Client::get`](crate::Client::get).
    #[inline]
    pub fn get(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>, Error> {
        self.pinned.see_own_writes();
        match self.spine {
            Pinned::Log(logs) => with_logs!(logs, spine => {
                let record = spine.get(&self.pinned, key)?;
                record.map(|record| spine.value(&self.pinned, &record)).transpose()
            }),
            Pinned::Slots(slots) => {
                let mut value = Vec::new();
                let found = with_slots!(slots, spine => spine.get_into(&self.pinned, spine.ask(key), key, &mut value))?;
                Ok(found.then_some(Cow::Owned(value)))
            }
        }
    }

    /// Every key with its value, in no order. A key that is present throughout appears exactly once; one that is
    /// written meanwhile appears at most once, with a value that it had. A damaged record is left out, and a damaged index ends
    /// it early; see [`Iter::ended`].
    pub fn iter(&self) -> Iter<'_> {
        self.pinned.see_own_writes();
        let settled;
        let pairs: Box<dyn Iterator<Item = Pair<'_>> + '_> = match self.spine {
            Pinned::Log(logs) => with_logs!(logs, spine => {
                settled = spine.settle_all(&self.pinned);
                Box::new(spine.pairs(&self.pinned))
            }),
            Pinned::Slots(slots) => {
                settled = with_slots!(slots, spine => spine.settle_all(&self.pinned));
                let mut batch = SlotBatch::default();
                let next = move || {
                    let found = with_slots!(slots, spine => spine.next_record(&self.pinned, &mut batch));
                    found.map(|found| found.map(|(key, value)| (key.into(), value.into())))
                };
                Box::new(std::iter::from_fn(next))
            }
        };
        Iter { pairs, damage: Vec::new(), outcome: settled.map_err(Error::from) }
    }

    /// The keys within these bounds with their values, in the order of their bytes. A key that is present throughout appears exactly
    /// once; one that is written meanwhile appears at most once, with a value that it had. A damaged record is an error in its place, and
    /// the walk goes on behind it; any other error ends it.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the design keeps its keys in no order; and within, as for [`Client::get`](crate::Client::get).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// use quipu::{Design, Options, Store};
    /// use std::ops::Bound::{Excluded, Included};
    /// let options = Options { design: Some(Design::FlatstoreM), size: 4 << 20, ..Options::default() };
    /// let store = Store::create(dir.path().join("p"), &options)?;
    /// let mut client = store.client();
    /// client.put_many(&[("cord", "1"), ("knot", "2"), ("llama", "3")])?;
    /// let guard = client.pin();
    /// let keys: Vec<_> = guard.range(Included(b"d"), Excluded(b"m"))?.map(|pair| pair.unwrap().0).collect();
    /// assert_eq!(keys, [&b"knot"[..], b"llama"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn range<'g>(&'g self, from: Bound<&'g [u8]>, to: Bound<&'g [u8]>) -> Result<Range<'g>, Error> {
        let unordered = Error::Unsupported { what: "range scans" };
        let Pinned::Log(logs) = self.spine else { return Err(unordered) };
        self.pinned.see_own_writes();
        let pairs: Box<dyn Iterator<Item = Pair<'g>> + 'g> = match logs {
            Logs::FlatstoreM(spine) => Box::new(spine.range(&self.pinned, from, to)),
            Logs::FlatstoreFf(spine) => Box::new(spine.range(&self.pinned, from, to)),
            _ => return Err(unordered),
        };
        Ok(Range { pairs })
    }
}

/// Keys with their values in order; see [`Guard::range`].
pub struct Range<'g> {
    pairs: Box<dyn Iterator<Item = Pair<'g>> + 'g>,
}

impl<'g> Iterator for Range<'g> {
    type Item = Result<(Cow<'g, [u8]>, Cow<'g, [u8]>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.pairs.next()
    }
}

/// Iteration over a pinned store; see [`Guard::iter`].
pub struct Iter<'g> {
    pairs: Box<dyn Iterator<Item = Pair<'g>> + 'g>,
    /// Records that were left out.
    damage: Vec<DamagedPlace>,
    outcome: Result<(), Error>,
}

impl Iter<'_> {
    /// Once it has given its last pair, whether it has given all that there are.
    ///
    /// # Errors
    /// [`Error::Damaged`] with the records that were left out, since they do not prove themselves
    /// ([`Options::verify_reads`](crate::Options::verify_reads)) or cannot be read; that or a failure of the
    /// allocator, if an index in the pool does not say how to go on; [`Error::BackgroundFailed`], with no pair at
    /// all, if a write can be neither shown nor left out.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let store = quipu::Store::create(dir.path().join("p"), &quipu::Options { size: 4 << 20, ..Default::default() })?;
    /// let client = store.client();
    /// let guard = client.pin();
    /// let mut pairs = guard.iter();
    /// assert_eq!(pairs.by_ref().count(), 0);
    /// pairs.ended()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ended(self) -> Result<(), Error> {
        self.outcome?;
        match self.damage {
            places if places.is_empty() => Ok(()),
            places => Err(Error::Damaged(Box::new(Damage { places }))),
        }
    }
}

impl<'g> Iterator for Iter<'g> {
    type Item = (Cow<'g, [u8]>, Cow<'g, [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        while self.outcome.is_ok() {
            match self.pairs.next()? {
                Ok(pair) => return Some(pair),
                Err(Error::Damaged(damage)) => self.damage.extend(damage.places),
                Err(error) => self.outcome = Err(error),
            }
        }
        None
    }
}

impl<'g> IntoIterator for &'g Guard<'g> {
    type Item = (Cow<'g, [u8]>, Cow<'g, [u8]>);
    type IntoIter = Iter<'g>;

    fn into_iter(self) -> Iter<'g> {
        self.iter()
    }
}
