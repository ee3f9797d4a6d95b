//! A store as its clients see it: where the types of its walk end.

use super::cached::{self, Reader};
use super::expiry::Successors;
use super::read::Bare;
use super::scan::Ordered;
use super::{Core, Points};
use crate::engine::checks::Checks;
use crate::engine::{self, Decide, Engine, Head, Pinned, Removal, Stretch};
use crate::types::batch::WriteBatch;
use crate::types::change::Expiry;
use crate::types::conditions::Conditions;
use crate::types::error::Error;
use crate::types::iter::{KeyItem, Pair, Versioned};
use quipu_medium::Node;
use quipu_parts::cache::Cache;
use quipu_parts::epoch::{Guard, Participant};
use quipu_parts::index::BothWays;
use quipu_parts::record::Content;
use std::borrow::Cow;
use std::sync::Arc;

/// The ordered walk of a store whose index keeps an order.
pub(crate) type RangeOf<I> = for<'g> fn(
    &'g Core<I>,
    &'g dyn Successors<I>,
    &'g Pinned<'g>,
    Stretch<'g>,
) -> Box<dyn DoubleEndedIterator<Item = Pair<'g>> + 'g>;

/// The ordered walk for any such index.
pub(crate) fn range_of<'g, I: BothWays>(
    core: &'g Core<I>,
    successors: &'g dyn Successors<I>,
    pinned: &'g Pinned<'g>,
    stretch: Stretch<'g>,
) -> Box<dyn DoubleEndedIterator<Item = Pair<'g>> + 'g> {
    Box::new(Ordered::new((core, successors), pinned.to_read(), stretch))
}

/// A walk whose reads are [these](Points), as its clients use it.
pub(crate) trait Walk: Points + Engine + Sized + 'static {
    /// A client's own: its epoch slot, and its means of writing.
    type Own: Send + 'static;

    /// A new client's, which writes to this node, or to where its thread runs.
    fn own(&self, node: Option<Node>) -> Self::Own;

    /// Ends a client.
    fn end(&self, _own: &mut Self::Own) {}

    fn participant(own: &Self::Own) -> &Participant;

    fn check_value(&self, value: &[u8]) -> Result<(), Error>;

    /// Gives a key this value, or deletes it, whatever its old value is.
    fn write_blind(&self, own: &mut Self::Own, content: &Content<'_>) -> Result<(), Error>;

    /// Locks a key, shows its value, and carries out the decision.
    fn modify<D: Decide + ?Sized>(
        &self,
        own: &mut Self::Own,
        key: &[u8],
        decide: &mut D,
    ) -> Result<(), Error>;

    fn put_many(&self, own: &mut Self::Own, pairs: &[(&[u8], &[u8])]) -> Result<(), Error> {
        pairs.iter().try_for_each(|(key, value)| self.write_blind(own, &Content::value(key, value)))
    }

    /// Carries out a batch, if these conditions hold; otherwise [`Error::Conflict`].
    fn write_batch(
        &self,
        _own: &mut Self::Own,
        _batch: &WriteBatch,
        _conditions: &Conditions,
    ) -> Result<(), Error> {
        Err(Error::Unsupported { what: "atomic batches" })
    }
}

fn pin_to_read<W: Walk>(own: &W::Own) -> Guard<'_> {
    W::participant(own).pin_to_read()
}

/// One client of such a store.
pub(crate) struct Client<W: Walk> {
    walk: Arc<W>,
    own: W::Own,
    /// If there is a cache.
    reader: Option<Reader>,
}

impl<W: Walk> Client<W> {
    pub(crate) fn of(walk: Arc<W>, node: Option<Node>) -> Client<W> {
        let (own, reader) = (walk.own(node), walk.core().cache.as_deref().map(Reader::of));
        Client { walk, own, reader }
    }

    fn pin_to_read(&self) -> Guard<'_> {
        pin_to_read::<W>(&self.own)
    }

    /// The cache in front of the index, for a read that is counted.
    #[inline(always)]
    fn cache(&self) -> Option<(&Arc<Cache>, &Reader)> {
        self.walk.core().cache.as_ref().zip(self.reader.as_ref())
    }

    /// Out of the way of reads without a cache.
    #[cold]
    #[inline(never)]
    fn get_by_cache(
        &self,
        (cache, reader): (&Arc<Cache>, &Reader),
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        let found = cached::get_into(&*self.walk, cache, reader, &self.pin_to_read(), key, out);
        self.leave_cache();
        found
    }

    /// Collects garbage of the cache, if there is much. The client is not pinned.
    fn leave_cache(&self) {
        if self.reader.as_ref().is_some_and(Reader::take_collection) {
            W::participant(&self.own).collect();
        }
    }
}

impl<W: Walk> Drop for Client<W> {
    fn drop(&mut self) {
        self.walk.end(&mut self.own);
    }
}

impl<W: Walk> engine::Session for Client<W> {
    fn engine(&self) -> &dyn Engine {
        &*self.walk
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.walk.write_blind(&mut self.own, &Content::value(key, value))
    }

    fn put_until(&mut self, key: &[u8], value: &[u8], time: u64) -> Result<(), Error> {
        self.walk.write_blind(&mut self.own, &Content { expires: time, ..Content::value(key, value) })
    }

    fn check(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.walk.core().check_key(key)?;
        self.walk.check_value(value)
    }

    fn put_many(&mut self, pairs: &[(&[u8], &[u8])]) -> Result<(), Error> {
        self.walk.put_many(&mut self.own, pairs)
    }

    fn write(&mut self, batch: &WriteBatch) -> Result<(), Error> {
        self.walk.write_batch(&mut self.own, batch, &Conditions::default())
    }

    fn commit(&mut self, batch: &WriteBatch, checks: &Checks<'_>) -> Result<(), Error> {
        // It has no transactions, and so nothing but conditions.
        self.walk.write_batch(&mut self.own, batch, checks.keys)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), Error> {
        self.walk.write_blind(&mut self.own, &Content::tombstone(key))
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool, Error> {
        // The default calls the decision through a pointer; this is compiled for it.
        let mut removal = Removal::default();
        self.walk.modify(&mut self.own, key, &mut removal)?;
        Ok(removal.was_there)
    }

    fn clear(&mut self) -> Result<(), Error> {
        let Client { walk, own, .. } = self;
        walk.settle_all(&pin_to_read::<W>(own))?;
        walk.core()
            .clear(&**walk, own, pin_to_read::<W>, |own, key| walk.write_blind(own, &Content::tombstone(key)))
    }

    fn modify(&mut self, key: &[u8], decide: &mut dyn Decide) -> Result<(), Error> {
        self.walk.modify(&mut self.own, key, decide)
    }

    fn get_into(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Error> {
        match self.cache() {
            None => Points::get_into(&*self.walk, &self.pin_to_read(), key, out),
            Some(cache) => self.get_by_cache(cache, key, out),
        }
    }

    fn get_many(
        &self,
        keys: &[&[u8]],
        _copy: &mut Vec<u8>,
        each: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        let Some((cache, reader)) = self.cache() else {
            return Points::get_many(&*self.walk, &self.pin_to_read(), keys, &mut Bare, each);
        };
        let shown = cached::get_many(&*self.walk, cache, reader, &self.pin_to_read(), keys, each);
        self.leave_cache();
        shown
    }

    fn pin(&self) -> Pinned<'_> {
        self.leave_cache();
        Pinned::by_epoch(self.pin_to_read())
    }

    fn get<'g>(&'g self, pinned: &'g Pinned<'_>, key: &[u8]) -> Result<Option<Cow<'g, [u8]>>, Error> {
        let guard = pinned.to_read();
        let cached =
            self.cache().and_then(|(cache, reader)| cached::value(&*self.walk, cache, reader, guard, key));
        if let Some(value) = cached {
            return Ok(Some(Cow::Borrowed(value)));
        }
        let record = Points::get::<true>(&*self.walk, guard, key)?;
        record.map(|record| self.walk.core().value(guard, &record)).transpose()
    }

    fn get_versioned<'g>(
        &'g self,
        pinned: &'g Pinned<'_>,
        key: &[u8],
    ) -> Result<Option<Versioned<'g>>, Error> {
        let guard = pinned.to_read();
        let Some(record) = Points::get::<true>(&*self.walk, guard, key)? else { return Ok(None) };
        let version = record.header.sequence.get();
        Ok(Some((self.walk.core().value(guard, &record)?, version)))
    }

    fn head(&self, pinned: &Pinned<'_>, key: &[u8]) -> Result<Option<Head>, Error> {
        let record = Points::get::<false>(&*self.walk, pinned.to_read(), key)?;
        Ok(record.map(|record| Head {
            expiry: Expiry::of_field(record.expires),
            version: Some(record.header.sequence.get()),
        }))
    }

    fn has_versions(&self) -> bool {
        true
    }

    fn pairs<'g>(&'g self, pinned: &'g Pinned<'g>) -> Result<Box<dyn Iterator<Item = Pair<'g>> + 'g>, Error> {
        let guard = pinned.to_read();
        self.walk.settle_all(guard)?;
        Ok(Box::new(Points::pairs(&*self.walk, guard)))
    }

    fn keys<'g>(
        &'g self,
        pinned: &'g Pinned<'g>,
    ) -> Result<Box<dyn Iterator<Item = KeyItem<'g>> + 'g>, Error> {
        let guard = pinned.to_read();
        self.walk.settle_all(guard)?;
        Ok(Box::new(Points::keys(&*self.walk, guard)))
    }

    fn range<'g>(
        &'g self,
        pinned: &'g Pinned<'g>,
        stretch: Stretch<'g>,
    ) -> Result<Box<dyn DoubleEndedIterator<Item = Pair<'g>> + 'g>, Error> {
        let Some(range) = self.walk.core().in_order else {
            return Err(Error::Unsupported { what: "range scans" });
        };
        self.walk.settle_known(pinned.to_read())?;
        Ok(range(self.walk.core(), &*self.walk, pinned, stretch))
    }
}
