//! The Global Index of a table, and the indexes of memtables that are merged into it.
//!
//! With `merge=direct` writes go into the Global Index at once, and a memtable is a unit of space alone.
//!
//! With `merge=key`, as in the paper, each memtable has an index of its own, which is small enough for the
//! caches. It enters the view as a layer when its memtable is opened. When that has ended, the cleaner
//! merges the layer into the Global Index, and takes it out of the view. Until then readers may find a
//! version in both, and the first hit counts. The oldest layer is always the first: so the Global Index has
//! all versions up to a number.
//!
//! With `merge=off` they are merged when they are dumped. That is what a Global Index spares readers.
//!
//! Merging reads records, for their numbers, and writes nothing to the medium. No memtable is rewritten
//! then, as in the paper: a copy of an old record would get a number above that of a newer one in a layer.
//! So a pool needs levels.
//!
//! Source: section 3.3 of the paper, where several threads merge ranges of the keys.

use super::Tiers;
use super::rewrite::Worker;
use super::table::Table;
use super::view::{Layer, View};
use crate::options::{Merging, Twin};
use crate::types::error::Error;
use quipu_parts::epoch::Guard;
use quipu_parts::index::{BothWays, Key};
use quipu_parts::versions::{Look, Noted, Version};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Keys that are merged under one guard.
const AT_ONCE: usize = 64;

impl<I: BothWays> Tiers<I> {
    /// Puts the layer of a new memtable on top of those of its table. Nothing has a place in it yet.
    pub(super) fn begin_layer(&self, guard: &Guard<'_>, table: &Table<I>, memtable: u64) {
        if self.merging == Merging::Direct {
            return;
        }
        let layer = Layer::new(memtable - 1, (self.tables.index)(), &self.epochs);
        table.views.change(guard, |view| {
            let below = std::mem::replace(&mut view.active, layer);
            view.older.insert(0, below);
        });
        // The memtable before the one that is being filled has ended.
        self.rewriter.bell.ring_now();
    }

    /// Merges a layer whose memtables have ended into its Global Index. `false` if there is none.
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

    /// Whether a layer will be merged when its memtable has ended.
    pub(super) fn is_to_merge(&self, guard: &Guard<'_>) -> bool {
        let has_more = |table: &Arc<Table<I>>| !table.view(guard).older.is_empty();
        self.merging == Merging::Key && self.tables.all().iter().any(has_more)
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
            let Some(next) = self.choose(layers) else { return Ok(()) };
            self.merge(&mut worker, table, next, global)?;
            if self.twin == Some(Twin::LaterMergedFirst) {
                return Ok(());
            }
        }
    }

    /// Merges the next layer of a table that is not frozen, if its memtables have ended.
    fn merge_next(&self, worker: &mut Worker, table: &Table<I>) -> Result<bool, Error> {
        let stack = table.view(&worker.participant.pin()).stack();
        let Some((global, layers)) = stack.split_last() else { return Ok(false) };
        let Some(next) = self.choose(layers) else { return Ok(false) };
        let newer = layers.iter().take_while(|layer| !Arc::ptr_eq(layer, next)).last();
        let numbers = next.above + 1..=newer.map_or(u64::MAX, |newer| newer.above);
        let memtables = self.log.memtables();
        let mut own = memtables.iter().filter(|memtable| {
            memtable.subtable() == table.subtable.created && numbers.contains(&memtable.number())
        });
        if !own.all(|memtable| memtable.end().is_some()) {
            return Ok(false);
        }
        self.merge(worker, table, next, global)?;
        Ok(true)
    }

    /// The one of some layers, the newest first, that is merged next.
    fn choose<'l>(&self, layers: &'l [Arc<Layer<I>>]) -> Option<&'l Arc<Layer<I>>> {
        if self.twin == Some(Twin::LaterMergedFirst) { layers.first() } else { layers.last() }
    }

    /// Merges a layer to which nobody writes into a Global Index to which nobody else writes.
    fn merge(
        &self,
        worker: &mut Worker,
        table: &Table<I>,
        layer: &Arc<Layer<I>>,
        global: &Layer<I>,
    ) -> Result<(), Error> {
        let Worker { participant, writer, .. } = worker;
        let (mut scan, mut noted, mut has_more) = (layer.versions.scan_from(&[]), Noted::default(), true);
        let (mut keys, mut batch, mut merged) = (Vec::new(), Vec::new(), 0);
        while has_more {
            let guard = participant.pin();
            let number_of = |reference| self.told_number(&guard, reference);
            let prefetch = |reference| self.region().prefetch(self.log.heap().resolve(reference));
            let mut look = Look { limit: AT_ONCE, up_to: u64::MAX, prefetch, number_of, noted };
            has_more = layer.versions.next_with_all(
                &guard,
                &mut scan,
                &mut look,
                |key: &[u8], versions: &[Version]| {
                    let from = keys.len();
                    keys.extend_from_slice(key);
                    // The oldest first.
                    batch.extend(versions.iter().rev().map(|version| (from..keys.len(), *version, None)));
                },
            )?;
            noted = look.noted;
            self.snapshots.horizon(|| self.log.visible(), &mut writer.horizon);
            for (key, _, near) in &mut batch {
                let key = Key { bytes: &keys[key.clone()], hash: 0 };
                *near = global.versions.index().prefetch_to_write(key);
            }
            for (key, version, near) in batch.drain(..) {
                let key = Key { bytes: &keys[key], hash: 0 };
                // Its record may be damaged, and tell any number.
                let number_of = |reference| number_of(reference).min(version.number.saturating_sub(1));
                let at = (&guard, key, near);
                let (horizon, retired) = (&writer.horizon, &mut writer.retired);
                let superseded = global.versions.insert(at, version, horizon, retired, number_of)?;
                superseded.iter().for_each(|version| self.note_dead(version));
                merged = version.number.max(merged);
            }
            keys.clear();
        }
        let guard = participant.pin();
        writer.retired.defer(&guard);
        global.merged.fetch_max(merged, Ordering::Release);
        table.views.change(&guard, |view: &mut View<I>| view.forget(layer));
        self.gone.push(layer.clone());
        Ok(())
    }
}
