//! A log store as its clients see it: where the types of the walk end.

use super::{Session as Own, Spine};
use crate::engine::{self, Decide, Engine, Head, Pinned, Removal};
use crate::points::{self, Points};
use crate::types::batch::WriteBatch;
use crate::types::error::Error;
use crate::types::iter::{KeyItem, Pair};
use quipu_medium::Node;
use quipu_parts::index::Index;
use quipu_parts::record::Content;
use std::borrow::Cow;
use std::ops::Bound;
use std::sync::Arc;

/// One client of a log store.
pub(super) struct LogClient<I: Index> {
    spine: Arc<Spine<I>>,
    own: Own,
}

impl<I: Index> LogClient<I> {
    pub(super) fn of(spine: Arc<Spine<I>>, node: Option<Node>) -> LogClient<I> {
        let own = spine.own_session(node);
        LogClient { spine, own }
    }
}

impl<I: Index> Drop for LogClient<I> {
    fn drop(&mut self) {
        self.spine.end(&mut self.own);
    }
}

impl<I: Index> engine::Session for LogClient<I> {
    fn engine(&self) -> &dyn Engine {
        &*self.spine
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.spine.write_blind(&mut self.own, &Content::value(key, value))
    }

    fn put_until(&mut self, key: &[u8], value: &[u8], time: u64) -> Result<(), Error> {
        self.spine.write_blind(&mut self.own, &Content { expires: time, ..Content::value(key, value) })
    }

    fn check(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.spine.check_key(key)?;
        self.spine.check_value(value)
    }

    fn put_many(&mut self, pairs: &[(&[u8], &[u8])]) -> Result<(), Error> {
        self.spine.put_many(&mut self.own, pairs)
    }

    fn write(&mut self, batch: &WriteBatch) -> Result<(), Error> {
        self.spine.write_batch(&mut self.own, batch)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), Error> {
        self.spine.write_blind(&mut self.own, &Content::tombstone(key))
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool, Error> {
        // The default calls the decision through a pointer; this is compiled for it.
        let mut removal = Removal::default();
        self.spine.modify(&mut self.own, key, &mut removal)?;
        Ok(removal.was_there)
    }

    fn clear(&mut self) -> Result<(), Error> {
        let LogClient { spine, own } = self;
        spine.settle_all(&own.pin())?;
        spine.clear(own, Own::pin, |own, key| spine.write_blind(own, &Content::tombstone(key)))
    }

    fn modify(&mut self, key: &[u8], decide: &mut dyn Decide) -> Result<(), Error> {
        self.spine.modify(&mut self.own, key, decide)
    }

    fn get_into(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Error> {
        self.spine.get_into(&self.own.pin(), key, out)
    }

    fn get_many(
        &self,
        keys: &[&[u8]],
        _copy: &mut Vec<u8>,
        each: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        self.spine.get_many(&self.own.pin(), keys, each)
    }

    fn pin(&self) -> Pinned<'_> {
        Pinned::by_epoch(self.own.pin())
    }

    fn get<'g>(&'g self, pinned: &'g Pinned<'_>, key: &[u8]) -> Result<Option<Cow<'g, [u8]>>, Error> {
        points::get(&*self.spine, pinned, key)
    }

    fn head(&self, pinned: &Pinned<'_>, key: &[u8]) -> Result<Option<Head>, Error> {
        points::head(&*self.spine, pinned, key)
    }

    fn has_versions(&self) -> bool {
        true
    }

    fn pairs<'g>(&'g self, pinned: &'g Pinned<'g>) -> Result<Box<dyn Iterator<Item = Pair<'g>> + 'g>, Error> {
        let guard = pinned.to_read();
        self.spine.settle_all(guard)?;
        Ok(Box::new(self.spine.pairs(guard)))
    }

    fn keys<'g>(
        &'g self,
        pinned: &'g Pinned<'g>,
    ) -> Result<Box<dyn Iterator<Item = KeyItem<'g>> + 'g>, Error> {
        let guard = pinned.to_read();
        self.spine.settle_all(guard)?;
        Ok(Box::new(self.spine.keys(guard)))
    }

    fn range<'g>(
        &'g self,
        pinned: &'g Pinned<'g>,
        from: Bound<Cow<'g, [u8]>>,
        to: Bound<Cow<'g, [u8]>>,
    ) -> Result<Box<dyn DoubleEndedIterator<Item = Pair<'g>> + 'g>, Error> {
        let Some(range) = self.spine.in_order else {
            return Err(Error::Unsupported { what: "range scans" });
        };
        self.spine.settle_known(pinned.to_read())?;
        Ok(range(self.spine.core(), pinned, from, to))
    }
}
