//! The life of a write, from top to bottom.

use super::table::Table;
use super::view::{Layer, View};
use super::{Session, Tiers, Writer};
use crate::engine::{Decide, Decision};
use crate::options::Granted;
use crate::types::change::{Entry, Expiry};
use crate::types::error::Error;
use quipu_medium::Node;
use quipu_parts::commit::ring::Place;
use quipu_parts::epoch::Guard;
use quipu_parts::heap::chain::{CHUNK_HEADER, RecordFound, Supply, Written};
use quipu_parts::index::{InOrder, Key};
use quipu_parts::record::{Content, Kind};
use quipu_parts::twin;
use quipu_parts::versions::{RangeTombstone, Version};
use std::cell::Cell;
use std::ptr::from_ref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Why an item is written: how many zones it leaves free depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A put leaves the reserve.
    Put,
    /// A deletion leaves what a rewrite needs: deletions give space back.
    Delete,
    /// A rewrite takes all.
    Move,
}

impl Purpose {
    pub(super) fn of(kind: Kind) -> Purpose {
        if kind == Kind::Tombstone { Purpose::Delete } else { Purpose::Put }
    }
}

/// A place near a key in the index of a layer.
#[derive(Clone, Copy, Default)]
pub(super) struct Near {
    /// Its address.
    layer: usize,
    place: Option<u64>,
}

impl Near {
    /// The place for a write of this key, which is asked for ahead.
    #[inline]
    fn to_write<I: InOrder>(guard: &Guard<'_>, view: &View<I>, key: Key<'_>) -> Near {
        let layer = &*view.active;
        Near {
            layer: from_ref(layer).addr(),
            place: layer.versions.index().prefetch_to_write(guard.participant(), key),
        }
    }

    /// The place, if it is one of this layer. The guard of before has kept that one.
    #[inline]
    pub(super) fn of<I: InOrder>(self, layer: &Layer<I>) -> Option<u64> {
        self.place.filter(|_| self.layer == from_ref(layer).addr())
    }
}

impl<I: InOrder> Tiers<I> {
    /// Writes a record without a look at the old one.
    #[inline]
    pub(super) fn put(&self, session: &mut Session<I>, content: &Content<'_>) -> Result<(), Error> {
        self.check_key(content.key)?;
        self.check_value(content.value)?;
        let (key, purpose) = (self.key(content.key), Purpose::of(content.kind));
        self.with_room(session, &Cell::new(purpose), |tiers, session| {
            let Session { participant, table, writer, node } = session;
            let guard = participant.pin();
            tiers.common.stripes.prefetch(key.hash);
            let near = Near::to_write(&guard, table.view(&guard), key);
            writer.item.clear();
            writer.item.chunk(table.number).push(content);
            let stripe = tiers.lock(key.hash);
            let last = tiers.write(&guard, (&[table], near), writer, (purpose, *node))?;
            drop(stripe);
            tiers.acknowledge(last)
        })
    }

    /// Locks a key, shows its value, and carries out the decision.
    pub(super) fn modify<D: Decide + ?Sized>(
        &self,
        session: &mut Session<I>,
        bytes: &[u8],
        decide: &mut D,
    ) -> Result<(), Error> {
        self.check_key(bytes)?;
        let key = self.key(bytes);
        // Until the decision is known.
        let purpose = Cell::new(Purpose::Delete);
        self.with_room(session, &purpose, |tiers, session| {
            let Session { participant, table, writer, node } = session;
            let guard = participant.pin();
            tiers.common.stripes.prefetch(key.hash);
            let near = Near::to_write(&guard, table.view(&guard), key);
            let stripe = tiers.lock(key.hash);
            let (number, found) = tiers.newest(&guard, table, key, near)?;
            let entry = found.as_ref().map(|found| Entry {
                value: &found.value,
                expiry: Expiry::of_field(found.expires),
                version: Some(found.version),
            });
            let content = match decide.decide(entry) {
                Decision::Put(value, expiry) => {
                    tiers.check_value(value)?;
                    Some(Content { expires: expiry.field(), ..Content::value(bytes, value) })
                }
                Decision::Delete if found.is_some() => Some(Content::tombstone(bytes)),
                Decision::Delete | Decision::Keep => None,
            };
            let last = match content {
                None if twin!(KeptUnawaited) => 0,
                // Its answer tells of a write that may not be visible yet.
                None => number,
                Some(content) => {
                    writer.item.clear();
                    writer.item.chunk(table.number).push(&content);
                    purpose.set(Purpose::of(content.kind));
                    tiers.write(&guard, (&[table], near), writer, (purpose.get(), *node))?
                }
            };
            drop(stripe);
            tiers.acknowledge(last)
        })
    }

    /// Puts some pairs, as few items as hold them.
    pub(super) fn put_many(&self, session: &mut Session<I>, pairs: &[(&[u8], &[u8])]) -> Result<(), Error> {
        let (limit, mut rest) = (self.log.heap().longest_chunk(), pairs);
        while !rest.is_empty() {
            let (mut count, mut len) = (0, CHUNK_HEADER);
            for (key, value) in rest {
                len += Content::value(key, value).record_len();
                if count > 0 && len > limit {
                    break;
                }
                count += 1;
            }
            let (now, later) = rest.split_at(count);
            let table = session.table.clone();
            let contents = now.iter().map(|(key, value)| (&table, Content::value(key, value)));
            self.write_all(session, Purpose::Put, contents)?;
            rest = later;
        }
        Ok(())
    }

    /// Writes, and makes room if there is none. Neither stripes nor pins are held meanwhile.
    #[inline]
    pub(super) fn with_room(
        &self,
        session: &mut Session<I>,
        purpose: &Cell<Purpose>,
        mut write: impl FnMut(&Self, &mut Session<I>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.relieve(session)?;
        let mut search = None;
        loop {
            match write(self, session) {
                Ok(()) => return Ok(()),
                Err(error) => self.find_room(session, purpose.get(), &mut search, error)?,
            }
        }
    }

    /// Writes the records of the writer's item, whose stripes are held, and publishes them. Returns the
    /// number to wait for. A near place is that of an item's only key.
    #[inline]
    pub(super) fn write(
        &self,
        guard: &Guard<'_>,
        (tables, near): (&[&Arc<Table<I>>], Near),
        writer: &mut Writer,
        (purpose, node): (Purpose, Option<Node>),
    ) -> Result<u64, Error> {
        self.refuse_if_full(tables, purpose)?;
        self.snapshots.horizon(|| self.log.visible(), &mut writer.horizon);
        self.write_for(guard, (tables, near), writer, (purpose, node))
    }

    /// Refuses a write of this purpose to these tables if the pool has no room for it.
    #[inline]
    pub(super) fn refuse_if_full(&self, tables: &[&Arc<Table<I>>], purpose: Purpose) -> Result<(), Error> {
        if self.is_full_for(purpose) {
            tables.iter().try_for_each(|table| table.check())?;
            return Err(self.full());
        }
        Ok(())
    }

    /// As [`write`](Tiers::write), where there was room, and the writer's horizon says who reads.
    #[inline]
    pub(super) fn write_for(
        &self,
        guard: &Guard<'_>,
        (tables, near): (&[&Arc<Table<I>>], Near),
        writer: &mut Writer,
        (purpose, node): (Purpose, Option<Node>),
    ) -> Result<u64, Error> {
        let Writer { item, horizon, retired, .. } = writer;
        let supply = Supply { node, leave: self.leaves(purpose) };
        // A panic behind the grant leaves a hole in the order.
        let mourner = self.common.admission.mourner();
        let publish = |written: &Written<'_>| {
            assert!(!twin!(PublicationPanics), "a twin of this store");
            let table = tables.iter().find(|table| table.number == written.table).expect("one of the item's");
            // The view of now: the layer of its memtable may be younger than the guard.
            let layer = table.view(guard).layer_of(written.memtable());
            let near = near.of(layer);
            for record in written.records() {
                let RecordFound { key, value, version, sequence, .. } = record;
                if record.kind == Kind::Range {
                    // The list has one that was copied, until its keys are swept.
                    if version == sequence {
                        let (from, to) = (key.into(), value.into());
                        table.ranges.add(guard, RangeTombstone { from, to, number: sequence });
                    }
                    continue;
                }
                let at = (guard, Key { bytes: key, hash: 0 }, near);
                let is_tombstone = record.kind == Kind::Tombstone;
                if !is_tombstone {
                    table.front.note_put(key);
                }
                let new = Version::new(sequence, record.reference, is_tombstone);
                // A damaged record may tell any number.
                let number_of = |reference| self.told_number(guard, reference).min(sequence - 1);
                let superseded = layer.versions.insert(at, new, horizon, retired, number_of);
                if let Some(version) = superseded.expect("this index never fails") {
                    self.note_dead(&version);
                }
            }
        };
        let granted = |place: &Place| {
            if let Some(Granted(hears)) = self.granted.as_ref().filter(|_| purpose != Purpose::Move) {
                hears(place.first..=place.last);
            }
        };
        let opened = |number: usize, memtable: u64| {
            let table = tables.iter().find(|table| table.number == number).expect("one of the item's");
            self.begin_layer(guard, table, memtable);
        };
        let last = self.log.write(item, supply, opened, granted, publish)?;
        mourner.dismiss();
        Ok(last)
    }

    /// Waits until a write is visible, and so all before it are.
    #[inline]
    pub(super) fn acknowledge(&self, last: u64) -> Result<(), Error> {
        if !twin!(AcknowledgedEarly) && self.log.wait(last)? {
            self.rewriter.has_ended.store(true, Ordering::Release);
            self.common.bell.ring_now();
        }
        Ok(())
    }

    /// Notes that a version is superseded.
    #[inline]
    pub(super) fn note_dead(&self, version: &Version) {
        let heap = self.log.heap();
        heap.usage().note_dead(heap.zone_of(version.reference), version.is_tombstone());
    }
}
