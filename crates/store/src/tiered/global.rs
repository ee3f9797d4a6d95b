//! The Global Index of a table, and the indexes of memtables that are merged into it.
//!
//! With `merge=direct` writes go into the Global Index at once, and a memtable is a unit of space alone.
//!
//! With `merge=key`, as in the paper, each memtable has an index of its own, which is small enough for the
//! caches. It enters the view as a layer when its memtable is opened. When that has ended, the cleaner merges
//! the layer into the Global Index, some keys at a time, and takes it out of the view. Until then readers may
//! find a version in both, and the first hit counts. The oldest layer is merged first: so the Global Index
//! has all versions up to a number.
//!
//! With `merge=off` layers are merged for a dump or a close alone. Readers then look into each of them, and a
//! Global Index spares them this.
//!
//! Merging reads records, for their numbers, and writes nothing to the medium. No memtable is rewritten then,
//! as in the paper: a copy of an old record would get a number above that of a newer one in a layer. So a
//! pool needs levels.
//!
//! Source: section 3.3 of the paper, where several threads merge ranges of the keys.

use super::Tiers;
use super::rewrite::Worker;
use super::table::Table;
use super::view::{Layer, View};
use crate::options::Merging;
use crate::types::error::Error;
use quipu_parts::epoch::Guard;
use quipu_parts::heap::chain::Memtable;
use quipu_parts::index::{InOrder, Key};
use quipu_parts::twin;
use quipu_parts::versions::{Look, Noted, Version};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Keys that are merged under one guard.
const AT_ONCE: usize = 64;
/// Batches of them, while the worker is held.
const BATCHES: usize = 16;

impl<I: InOrder> Tiers<I> {
    /// Puts the layer of a new memtable on top of those of its table. Nothing has a place in it yet.
    pub(super) fn begin_layer(&self, guard: &Guard<'_>, table: &Table<I>, memtable: u64) {
        if self.merging == Merging::Direct {
            return;
        }
        let layer = Layer::new(memtable - 1, (self.tables.index)(), &self.common.epochs);
        table.views.change(guard, |view| {
            let below = std::mem::replace(&mut view.active, layer);
            view.older.insert(0, below);
        });
        // The memtable before the one that is being filled has ended.
        self.common.bell.ring_now();
    }

    /// Merges some keys of a layer whose memtables have ended. `false` if there is none.
    pub(super) fn merge_some(&self) -> Result<bool, Error> {
        if self.merging != Merging::Key {
            return Ok(false);
        }
        let mut worker = self.rewriter.worker();
        self.log.end_full();
        for table in self.tables.all() {
            if self.merge_next(&mut worker, &table)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Merges all layers of a store whose memtables have ended.
    pub(super) fn merge_all(&self) -> Result<(), Error> {
        let mut worker = self.rewriter.worker();
        for table in self.tables.all() {
            while self.merge_next(&mut worker, &table)? {}
        }
        Ok(())
    }

    /// Merges the layers of a table that are frozen into one.
    pub(super) fn merge_frozen(&self, table: &Table<I>) -> Result<(), Error> {
        loop {
            let mut worker = self.rewriter.worker();
            // Nothing of it is released while the worker is held.
            table.check()?;
            let frozen = table.view(&worker.participant.pin()).frozen.clone();
            let Some((global, layers)) = frozen.split_last() else { return Ok(()) };
            let is_later = twin!(LaterMergedAlone);
            let Some(next) = (if is_later { layers.first() } else { layers.last() }) else { return Ok(()) };
            if self.merge(&mut worker, table, next, global)? && is_later {
                return Ok(());
            }
        }
    }

    /// Merges some keys of the oldest layer of a table that is not frozen, if its memtables have ended.
    fn merge_next(&self, worker: &mut Worker, table: &Table<I>) -> Result<bool, Error> {
        let stack = table.view(&worker.participant.pin()).stack();
        let Some((global, layers)) = stack.split_last() else { return Ok(false) };
        let Some((next, newer)) = layers.split_last() else { return Ok(false) };
        let numbers = next.above + 1..=newer.last().map_or(u64::MAX, |newer| newer.above);
        let is_own = |memtable: &Arc<Memtable>| {
            memtable.subtable() == table.subtable.created && numbers.contains(&memtable.number())
        };
        let own: Vec<Arc<Memtable>> = self.log.memtables().into_iter().filter(is_own).collect();
        if own.iter().any(|memtable| memtable.end().is_none()) {
            return Ok(false);
        }
        let has_ended = self.merge(worker, table, next, global)?;
        if has_ended {
            // A word of the medium, which may be damaged.
            let last = own.iter().map(|memtable| self.log.heap().last_of(memtable)).max().unwrap_or(0);
            global.merged.fetch_max(last.min(self.log.visible()), Ordering::Release);
        }
        Ok(true)
    }

    /// Merges some keys of a layer to which nobody writes into a Global Index to which nobody else writes.
    /// After the last one the layer leaves the view, and the answer is `true`.
    fn merge(
        &self,
        worker: &mut Worker,
        table: &Table<I>,
        layer: &Arc<Layer<I>>,
        global: &Layer<I>,
    ) -> Result<bool, Error> {
        let Worker { participant, writer, .. } = worker;
        let mut next = layer.next.lock();
        let (mut scan, mut noted) = (layer.versions.scan_from(&next), Noted::default());
        let (mut keys, mut batch) = (Vec::new(), Vec::new());
        for _ in 0..BATCHES {
            let (guard, visible) = (participant.pin(), self.log.visible());
            // A damaged record may tell any number, and all of the layer is visible.
            let number_of = |reference| self.told_number(&guard, reference).min(visible);
            let prefetch = |reference| self.region().prefetch(self.log.heap().resolve(reference));
            let mut look = Look { limit: AT_ONCE, up_to: u64::MAX, prefetch, number_of, noted };
            let note = |key: &[u8], versions: &[Version]| {
                let from = keys.len();
                keys.extend_from_slice(key);
                // The oldest first.
                let entry = |version: &Version| (from..keys.len(), *version, None);
                batch.extend(versions.iter().rev().map(entry));
            };
            let has_more = layer.versions.next_with_all(&guard, &mut scan, &mut look, note)?;
            noted = look.noted;
            if !has_more {
                table.views.change(&guard, |view: &mut View<I>| view.forget(layer));
                writer.retired.defer(&guard);
                self.gone.push(layer.clone());
                return Ok(true);
            }
            for (key, _, near) in &mut batch {
                let key = Key { bytes: &keys[key.clone()], hash: 0 };
                *near = global.versions.index().prefetch_to_write(guard.participant(), key);
            }
            self.snapshots.horizon(|| self.log.visible(), &mut writer.horizon);
            let mut before = usize::MAX;
            for (key, version, near) in batch.drain(..) {
                // The others of a key supersede one of the layer, and this has been noted.
                let is_oldest = std::mem::replace(&mut before, key.start) != key.start;
                let key = Key { bytes: &keys[key], hash: 0 };
                let number_of = |reference| number_of(reference).min(version.number.saturating_sub(1));
                let (at, horizon) = ((&guard, key, near), &writer.horizon);
                let superseded =
                    global.versions.insert(at, version, horizon, &mut writer.retired, number_of)?;
                superseded.iter().filter(|_| is_oldest).for_each(|version| self.note_dead(version));
                next.clear();
                next.extend_from_slice(key.bytes);
            }
            // The key behind the last one.
            next.push(0);
            keys.clear();
        }
        Ok(false)
    }
}
