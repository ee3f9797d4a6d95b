//! A store of files as its clients see it: where the types of the walk end.

use super::{NlogSession, NlogSpine};
use crate::engine::{self, Decide, Engine, Head, Pinned, Removal};
use crate::points::{self, Points};
use crate::types::error::Error;
use crate::types::iter::{KeyItem, Pair};
use quipu_medium::Node;
use quipu_parts::index::Imaged;
use quipu_parts::record::Content;
use std::borrow::Cow;
use std::ops::Bound;
use std::sync::Arc;

/// One client of a store of files.
pub(super) struct NlogClient<I: Imaged> {
    spine: Arc<NlogSpine<I>>,
    own: NlogSession,
}

impl<I: Imaged> NlogClient<I> {
    pub(super) fn of(spine: Arc<NlogSpine<I>>, node: Option<Node>) -> NlogClient<I> {
        let own = spine.own_session(node);
        NlogClient { spine, own }
    }
}

impl<I: Imaged> engine::Session for NlogClient<I> {
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
        self.spine.check_inline(value)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), Error> {
        self.spine.write_blind(&mut self.own, &Content::tombstone(key))
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool, Error> {
        let mut removal = Removal::default();
        self.spine.modify(&mut self.own, key, &mut removal)?;
        Ok(removal.was_there)
    }

    fn clear(&mut self) -> Result<(), Error> {
        let NlogClient { spine, own } = self;
        spine.clear(own, NlogSession::pin, |own, key| spine.write_blind(own, &Content::tombstone(key)))
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
        Ok(Box::new(self.spine.pairs(pinned.to_read())))
    }

    fn keys<'g>(
        &'g self,
        pinned: &'g Pinned<'g>,
    ) -> Result<Box<dyn Iterator<Item = KeyItem<'g>> + 'g>, Error> {
        Ok(Box::new(self.spine.keys(pinned.to_read())))
    }

    fn range<'g>(
        &'g self,
        pinned: &'g Pinned<'g>,
        from: Bound<Cow<'g, [u8]>>,
        to: Bound<Cow<'g, [u8]>>,
    ) -> Result<Box<dyn DoubleEndedIterator<Item = Pair<'g>> + 'g>, Error> {
        match self.spine.in_order {
            Some(range) => Ok(range(self.spine.core(), pinned, from, to)),
            None => Err(Error::Unsupported { what: "range scans" }),
        }
    }
}
