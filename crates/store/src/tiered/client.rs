//! A store of memtables as its clients see it: where the types of the walk end.

use super::read::Found;
use super::scan::Scan;
use super::table::Table;
use super::{Session as Own, Tiers};
use crate::engine::checks::Checks;
use crate::engine::moment::Moment;
use crate::engine::{self, Decide, Engine, Head, InPlace, Pinned, Removal, Stretch};
use crate::types::batch::WriteBatch;
use crate::types::change::Expiry;
use crate::types::error::Error;
use crate::types::iter::{Pair, Versioned};
use crate::types::table::TableId;
use quipu_medium::Node;
use quipu_parts::heap::chain::{CHUNK_HEADER, record_len};
use quipu_parts::index::{Imaged, InOrder};
use quipu_parts::record::Content;
use quipu_parts::versions::Snapshot;
use smallbox::smallbox;
use std::borrow::Cow;
use std::sync::Arc;

/// One client of a store of memtables.
pub(super) struct TieredClient<I: InOrder> {
    pub(super) tiers: Arc<Tiers<I>>,
    own: Own<I>,
}

impl<I: InOrder> TieredClient<I> {
    pub(super) fn of(tiers: Arc<Tiers<I>>, table: Arc<Table<I>>, node: Option<Node>) -> TieredClient<I> {
        let own = tiers.own_session(table, node);
        TieredClient { tiers, own }
    }
}

impl<I: InOrder> Drop for TieredClient<I> {
    fn drop(&mut self) {
        self.tiers.end(&mut self.own);
    }
}

impl<I: InOrder + Imaged + 'static> engine::Session for TieredClient<I> {
    fn engine(&self) -> &dyn Engine {
        &*self.tiers
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.tiers.put(&mut self.own, &Content::value(key, value))
    }

    fn put_until(&mut self, key: &[u8], value: &[u8], time: u64) -> Result<(), Error> {
        self.tiers.put(&mut self.own, &Content { expires: time, ..Content::value(key, value) })
    }

    fn check(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.tiers.check_key(key)?;
        self.tiers.check_value(value)
    }

    fn put_many(&mut self, pairs: &[(&[u8], &[u8])]) -> Result<(), Error> {
        self.tiers.put_many(&mut self.own, pairs)
    }

    fn write(&mut self, batch: &WriteBatch) -> Result<(), Error> {
        self.tiers.write_batch(&mut self.own, batch)
    }

    fn commit(&mut self, batch: &WriteBatch, checks: &Checks<'_>) -> Result<(), Error> {
        self.tiers.commit(&mut self.own, batch, checks)
    }

    fn takes(&self, content: &Content<'_>) -> (u64, u64) {
        (record_len(content), self.tiers.log.heap().longest_chunk() - CHUNK_HEADER)
    }

    fn table(&self) -> Option<TableId> {
        Some(self.own.table.id)
    }

    fn delete_range(&mut self, from: &[u8], to: &[u8]) -> Result<(), Error> {
        self.tiers.delete_range(&mut self.own, from, to)
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool, Error> {
        // The default calls the decision through a pointer; this is compiled for it.
        let mut removal = Removal::default();
        self.tiers.modify(&mut self.own, key, &mut removal)?;
        Ok(removal.was_there)
    }

    fn clear(&mut self) -> Result<(), Error> {
        self.tiers.clear(&mut self.own)
    }

    fn modify(&mut self, key: &[u8], decide: &mut dyn Decide) -> Result<(), Error> {
        self.tiers.modify(&mut self.own, key, decide)
    }

    fn get_into(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Error> {
        let guard = self.own.participant.pin_to_read();
        let show = |found: Found<'_>| {
            out.clear();
            out.extend_from_slice(&found.value);
        };
        let is_there = self.tiers.get(&guard, &self.own.table, key, Moment::NOW, show)?.is_some();
        if !is_there {
            out.clear();
        }
        Ok(is_there)
    }

    fn get_many(
        &self,
        keys: &[&[u8]],
        _copy: &mut Vec<u8>,
        each: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        self.tiers.get_many(&self.own, keys, each)
    }

    fn pin(&self) -> Pinned<'_> {
        Pinned::by_epoch(self.own.participant.pin_to_read())
    }

    fn pin_at(&self, snapshot: &Snapshot, time: u64) -> Result<Pinned<'_>, Error> {
        if !self.tiers.snapshots.have(snapshot) {
            return Err(Error::Option("the snapshot is of another store".into()));
        }
        let at = Moment { number: snapshot.number(), time };
        Ok(Pinned::by_epoch_at(self.own.participant.pin_to_read(), at))
    }

    fn on(&self, table: TableId) -> Result<InPlace, Error> {
        let table = self.tiers.tables.of(table)?;
        Ok(smallbox!(TieredClient::of(self.tiers.clone(), table, self.own.node)))
    }

    fn get<'g>(&'g self, pinned: &'g Pinned<'_>, key: &[u8]) -> Result<Option<Cow<'g, [u8]>>, Error> {
        self.tiers.get(pinned.to_read(), &self.own.table, key, pinned.at, |found| found.value)
    }

    fn get_versioned<'g>(
        &'g self,
        pinned: &'g Pinned<'_>,
        key: &[u8],
    ) -> Result<Option<Versioned<'g>>, Error> {
        let show = |found: Found<'g>| (found.value, found.version);
        self.tiers.get(pinned.to_read(), &self.own.table, key, pinned.at, show)
    }

    fn head(&self, pinned: &Pinned<'_>, key: &[u8]) -> Result<Option<Head>, Error> {
        let show =
            |found: Found<'_>| Head { expiry: Expiry::of_field(found.expires), version: Some(found.version) };
        self.tiers.get(pinned.to_read(), &self.own.table, key, pinned.at, show)
    }

    fn has_versions(&self) -> bool {
        true
    }

    fn pairs<'g>(&'g self, pinned: &'g Pinned<'g>) -> Result<Box<dyn Iterator<Item = Pair<'g>> + 'g>, Error> {
        Ok(Box::new(self.scan(pinned, Stretch::ALL)?))
    }

    fn range<'g>(
        &'g self,
        pinned: &'g Pinned<'g>,
        stretch: Stretch<'g>,
    ) -> Result<Box<dyn DoubleEndedIterator<Item = Pair<'g>> + 'g>, Error> {
        Ok(Box::new(self.scan(pinned, stretch)?))
    }
}

impl<I: InOrder> TieredClient<I> {
    fn scan<'g>(&'g self, pinned: &'g Pinned<'g>, stretch: Stretch<'g>) -> Result<Scan<'g, I>, Error> {
        Scan::new(&self.tiers, (pinned.to_read(), pinned.at), &self.own.table, stretch)
    }
}
