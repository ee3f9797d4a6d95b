//! A slot store as its clients see it: where the types of the walk end.

use super::{SlotSession, SlotSpine};
use crate::engine::{Decide, Engine, Head, Pinned, Session};
use crate::types::change::Expiry;
use crate::types::error::Error;
use crate::types::iter::{KeyItem, Pair};
use quipu_medium::Node;
use quipu_parts::index::cceh::NodeMemory;
use std::borrow::Cow;
use std::sync::Arc;

/// One client of a slot store.
pub(super) struct SlotClient<M: NodeMemory, const REDUCED: bool> {
    spine: Arc<SlotSpine<M, REDUCED>>,
    own: SlotSession,
}

impl<M: NodeMemory, const REDUCED: bool> SlotClient<M, REDUCED> {
    pub(super) fn of(spine: Arc<SlotSpine<M, REDUCED>>, node: Option<Node>) -> SlotClient<M, REDUCED> {
        let own = spine.own_session(node);
        SlotClient { spine, own }
    }
}

impl<M: NodeMemory, const REDUCED: bool> Drop for SlotClient<M, REDUCED> {
    fn drop(&mut self) {
        self.spine.end(&mut self.own);
    }
}

impl<M: NodeMemory, const REDUCED: bool> Session for SlotClient<M, REDUCED> {
    fn engine(&self) -> &dyn Engine {
        &*self.spine
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.spine.put(&mut self.own, key, value)
    }

    fn check(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.spine.check_sizes(key, value)
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool, Error> {
        self.spine.remove(&mut self.own, key)
    }

    fn clear(&mut self) -> Result<(), Error> {
        self.spine.clear(&mut self.own)
    }

    fn modify(&mut self, key: &[u8], decide: &mut dyn Decide) -> Result<(), Error> {
        self.spine.modify(&mut self.own, key, decide)
    }

    fn update_in_place(
        &mut self,
        key: &[u8],
        at: u64,
        change: &dyn Fn(u64) -> u64,
    ) -> Result<Option<u64>, Error> {
        self.spine.update_in_place(&mut self.own, key, at, change)
    }

    fn get_into(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Error> {
        let hash = self.spine.ask(key);
        self.spine.get_into(&self.own.pin(), hash, key, out)
    }

    fn get_many(
        &self,
        keys: &[&[u8]],
        copy: &mut Vec<u8>,
        each: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        self.spine.get_many(&self.own.pin(), keys, copy, each)
    }

    fn pin(&self) -> Pinned<'_> {
        Pinned::by_epoch(self.own.pin())
    }

    fn get<'g>(&'g self, pinned: &'g Pinned<'_>, key: &[u8]) -> Result<Option<Cow<'g, [u8]>>, Error> {
        let mut value = Vec::new();
        let found = self.spine.get_into(pinned.to_read(), self.spine.ask(key), key, &mut value)?;
        Ok(found.then_some(Cow::Owned(value)))
    }

    fn head(&self, pinned: &Pinned<'_>, key: &[u8]) -> Result<Option<Head>, Error> {
        let found = self.spine.contains(pinned.to_read(), key)?;
        Ok(found.then_some(Head { expiry: Expiry::Never, version: None }))
    }

    fn pairs<'g>(&'g self, pinned: &'g Pinned<'g>) -> Result<Box<dyn Iterator<Item = Pair<'g>> + 'g>, Error> {
        let pairs = self.spine.each(pinned.to_read(), SlotSpine::record_of)?;
        Ok(Box::new(pairs.map(|found| found.map(|(key, value)| (key.into(), value.into())))))
    }

    fn keys<'g>(
        &'g self,
        pinned: &'g Pinned<'g>,
    ) -> Result<Box<dyn Iterator<Item = KeyItem<'g>> + 'g>, Error> {
        let keys = self.spine.each(pinned.to_read(), SlotSpine::key_of)?;
        Ok(Box::new(keys.map(|found| found.map(Cow::Owned))))
    }
}
