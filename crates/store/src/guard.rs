//! [`Guard`]: reads of a store that is pinned, in place where the design allows it, and [`Iter`]: all of it.

use crate::error::Error;
use crate::slotted::{SlotBatch, Slots, with_slots};
use crate::spine::{Batch, Spine};
use quipu_parts::epoch;
use std::borrow::Cow;

/// A pinned store: values are lent out in place, without a copy, where the design keeps them as they are. A value above a
/// quarter of a zone, which may lie in several, is put together, and designs that write in place give copies.
pub struct Guard<'c> {
    spine: Pinned<'c>,
    pinned: epoch::Guard<'c>,
}

impl<'c> Guard<'c> {
    pub(crate) fn of_log(spine: &'c Spine, pinned: epoch::Guard<'c>) -> Guard<'c> {
        Guard { spine: Pinned::Log(spine), pinned }
    }

    pub(crate) fn of_slots(slots: &'c Slots, pinned: epoch::Guard<'c>) -> Guard<'c> {
        Guard { spine: Pinned::Slots(slots), pinned }
    }
}

/// The walk that a guard keeps pinned.
#[derive(Clone, Copy)]
enum Pinned<'c> {
    Log(&'c Spine),
    Slots(&'c Slots),
}

impl Guard<'_> {
    /// The value of `key`, in place.
    ///
    /// # Errors
    /// As for [`Client::get`](crate::Client::get).
    #[inline]
    pub fn get(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>, Error> {
        match self.spine {
            Pinned::Log(spine) => {
                let record = spine.get(&self.pinned, key);
                record.map(|record| spine.value(&self.pinned, &record)).transpose()
            }
            Pinned::Slots(slots) => {
                let mut value = Vec::new();
                let found = with_slots!(slots, spine => spine.get_into(&self.pinned, key, &mut value))?;
                Ok(found.then_some(Cow::Owned(value)))
            }
        }
    }

    /// Every key with its value, in no order. A key that is present throughout appears exactly once; one that is
    /// written meanwhile appears at most once, with a value that it had.
    pub fn iter(&self) -> Iter<'_> {
        let place = match self.spine {
            Pinned::Log(spine) => {
                spine.settle_all(&self.pinned);
                Place::Log(spine, Batch::default())
            }
            Pinned::Slots(slots) => Place::Slots(slots, SlotBatch::default()),
        };
        Iter { pinned: &self.pinned, place }
    }
}

/// Iteration over a pinned store; see [`Guard::iter`].
pub struct Iter<'g> {
    pinned: &'g epoch::Guard<'g>,
    place: Place<'g>,
}

/// How far an iteration has come.
enum Place<'g> {
    Log(&'g Spine, Batch),
    Slots(&'g Slots, SlotBatch),
}

impl<'g> Iterator for Iter<'g> {
    type Item = (Cow<'g, [u8]>, Cow<'g, [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        let (spine, batch) = match &mut self.place {
            Place::Log(spine, batch) => (*spine, batch),
            Place::Slots(slots, batch) => {
                let (key, value) = with_slots!(slots, spine => spine.next_record(self.pinned, batch))?;
                return Some((key.into(), value.into()));
            }
        };
        loop {
            let record = spine.next_record(self.pinned, batch)?;
            if spine.has_expired(&record) {
                continue;
            }
            // As a record that leaves the pool, a value that does is left out; `Client::get` says so.
            if let Ok(value) = spine.value(self.pinned, &record) {
                return Some((Cow::Borrowed(record.key), value));
            }
        }
    }
}

impl<'g> IntoIterator for &'g Guard<'g> {
    type Item = (Cow<'g, [u8]>, Cow<'g, [u8]>);
    type IntoIter = Iter<'g>;

    fn into_iter(self) -> Iter<'g> {
        self.iter()
    }
}
