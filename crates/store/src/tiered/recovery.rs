//! Opening a pool: creating the objects of a new one, or finding a prefix of all writes and its indexes.
//!
//! [`ChainHeap::recover`] finds the cut and settles what a crash left open. Then the records of all memtables
//! go into the indexes, the highest number of a key winning, by several threads, a memtable each. Nothing in
//! the pool depends on the indexes.

use super::Tiers;
use super::table::{DEFAULT, Table};
use crate::background;
use crate::engine::site::{Existing, Holes};
use crate::types::error::{DamagedPlace, Error, damaged_at};
use crate::types::reports::RecoveryReport;
use crate::walk::proof::{all_damage, refuse_number};
use quipu_parts::epoch::Guard;
use quipu_parts::heap::chain::anchor::Anchor;
use quipu_parts::heap::chain::{ChainHeap, Counts, Memtable, RecordFound, Recovered, SavedCounts, Survey};
use quipu_parts::index::{InOrder, Key};
use quipu_parts::record::Kind;
use quipu_parts::space::{ObjectId, SpaceError, ZoneId};
use quipu_parts::sync::SpinLock;
use quipu_parts::twin;
use quipu_parts::versions::{Horizon, RangeList, RangeTombstone, Retired, Version};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The object pool of the anchor.
pub(super) const ANCHOR: u32 = 2;

/// Records whose way to the index overlaps.
const AT_ONCE: usize = 16;

/// Creates the anchor and the default table of a pool that has no zone in use. A crash may cut it off, and
/// the next open repeats it.
pub(super) fn create(heap: &ChainHeap) -> Result<(), Error> {
    let space = heap.space();
    let anchors = space.pool(ANCHOR).ok_or_else(no_anchor)?;
    if anchors.committed().is_empty() {
        // The run begins, durably, before anything else changes.
        heap.clock().begin(space);
        let object = anchors.get()?.ok_or_else(no_anchor)?;
        let at = anchors.object_offset(object).ok_or_else(no_anchor)?;
        Anchor::create(space.region(), heap.certifier(), at);
        anchors.commit(object);
    }
    if heap.subtables()?.is_empty() {
        heap.create_subtable(DEFAULT)?;
    }
    Ok(())
}

/// Whether the creation of a pool was cut off.
pub(super) fn is_unfinished(heap: &ChainHeap) -> Result<bool, Error> {
    let space = heap.space();
    let anchors = space.pool(ANCHOR).ok_or_else(no_anchor)?;
    let lacks = anchors.committed().is_empty() || heap.subtables()?.is_empty();
    Ok(lacks && space.committed_zones().is_empty())
}

/// The anchor of a pool.
pub(super) fn anchor(heap: &ChainHeap) -> Result<Anchor, Error> {
    let space = heap.space();
    let anchors = space.pool(ANCHOR).ok_or_else(no_anchor)?;
    let at = anchors.object_offset(ObjectId(0)).filter(|_| anchors.check(ObjectId(0)));
    Ok(Anchor::open(space.region(), heap.certifier(), at.ok_or_else(no_anchor)?)?)
}

fn no_anchor() -> Error {
    SpaceError::Geometry { what: "the anchor of the memtables is missing" }.into()
}

/// Recovers the memtables of a mapped pool.
pub(super) fn recover(
    heap: &mut ChainHeap,
    anchor: &Anchor,
    pool: &mut Existing<'_>,
) -> Result<Recovered, Error> {
    let space = heap.space().clone();
    let mut places = Vec::new();
    if pool.holes == Holes::AreLost {
        // Of an item that is lost in part, the rest would have to go, and all items behind it.
        places.push(DamagedPlace::after_a_crash(&space));
    }
    heap.recover(anchor, |survey: &Survey| {
        refuse_number(&space, survey.highest)?;
        if pool.found.was_clean && survey.left_open > 0 {
            places.push(DamagedPlace { what: "the end mark of a memtable".into(), offset: 0, len: 0 });
        }
        damaged_at(all_damage(&space, std::mem::take(&mut places)))?;
        // Nothing was changed until here.
        space.repair(&mut pool.found);
        Ok(())
    })
}

/// Takes up a mapped pool by its checkpoint.
pub(super) fn resume(
    heap: &ChainHeap,
    pool: &mut Existing<'_>,
    recovered: &Recovered,
    counts: &[(ZoneId, SavedCounts)],
) -> Result<RecoveryReport, Error> {
    refuse_number(heap.space(), recovered.survey.highest)?;
    heap.clock().pass(recovered.survey.highest);
    counts.iter().for_each(|(zone, counts)| heap.usage().restore(*zone, counts));
    heap.space().repair(&mut pool.found);
    Ok(RecoveryReport {
        was_clean: pool.found.was_clean,
        from_checkpoint: true,
        segments: recovered.memtables.len(),
        reclaimed: pool.found.leaked_reclaimed as usize,
        ..RecoveryReport::default()
    })
}

impl<I: InOrder> Tiers<I> {
    /// Fills the indexes from the memtables, by so many threads.
    pub(super) fn fill(
        &self,
        left_open: usize,
        threads: usize,
        pool: &Existing<'_>,
    ) -> Result<RecoveryReport, Error> {
        let (memtables, tables) = (self.log.memtables(), self.tables.all());
        let (next, done, records) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicU64::new(0));
        let (failure, ranges) = (SpinLock::new(None), SpinLock::new(Vec::new()));
        background::in_parallel(threads.clamp(1, memtables.len().max(1)), |_| {
            let (participant, mut retired) = (self.common.epochs.register(), Retired::default());
            while let Some(memtable) = memtables.get(next.fetch_add(1, Ordering::Relaxed)) {
                let named = |table: &&Arc<Table<I>>| table.subtable.created == memtable.subtable();
                let table = tables.iter().find(named).expect("recovery releases the others");
                match self.take_in(&participant.pin(), table, memtable, &mut retired, &ranges) {
                    Ok(found) => records.fetch_add(found, Ordering::Relaxed),
                    Err(error) => {
                        *failure.lock() = Some(error);
                        break;
                    }
                };
                (pool.progress)(done.fetch_add(1, Ordering::Relaxed) + 1, memtables.len());
            }
            retired.defer(&participant.pin());
        });
        if let Some(error) = failure.lock().take() {
            return Err(error);
        }
        let (ranges, participant) = (std::mem::take(&mut *ranges.lock()), self.common.epochs.register());
        for table in &tables {
            let own = ranges.iter().filter(|(id, _)| *id == table.subtable.created);
            let mut own: Vec<RangeTombstone> = own.map(|(_, range)| range.clone()).collect();
            let (guard, mut retired) = (participant.pin(), Retired::default());
            if let Some(levels) = &table.view(&guard).levels {
                own.extend(levels.ranges()?);
                // Copies, and those that are on both.
                own.sort_unstable_by_key(|range| range.number);
                own.dedup_by_key(|range| range.number);
            }
            if !own.is_empty() {
                let swept = self.sweep_recovered(&guard, table, &RangeList::new(own.clone()), &mut retired);
                retired.defer(&guard);
                swept?;
            }
            if !table.view(&guard).is_alone() {
                table.ranges.found(&guard, own);
            }
        }
        Ok(RecoveryReport {
            was_clean: pool.found.was_clean,
            segments: memtables.len(),
            records: records.into_inner(),
            sealed: left_open,
            reclaimed: pool.found.leaked_reclaimed as usize,
            ..RecoveryReport::default()
        })
    }

    /// Takes the records of a memtable into the index of its table, and returns how many there are.
    fn take_in<'m>(
        &'m self,
        guard: &Guard<'_>,
        table: &Table<I>,
        memtable: &Memtable,
        retired: &mut Retired,
        ranges: &SpinLock<Vec<(u64, RangeTombstone)>>,
    ) -> Result<u64, Error> {
        let end = memtable.end().expect("recovery has ended all memtables");
        let (mut batch, mut count) = (Vec::with_capacity(AT_ONCE), 0);
        let versions = &table.view(guard).active.versions;
        let each = |record: RecordFound<'m>| {
            count += 1;
            let deletes = record.kind != Kind::Value;
            let zone = self.log.heap().zone_of(record.reference);
            let counts = Counts {
                bytes: 0,
                packed: record.len,
                records: 1,
                tombstones: deletes.into(),
                expiring: (record.expires != 0).into(),
                expires: record.expires,
            };
            self.log.heap().usage().note_written(zone, &counts);
            if record.kind == Kind::Range {
                let (from, to) = (record.key.into(), record.value.into());
                let is_renewed = twin!(RangeCopyRenewed);
                let number = if is_renewed { record.sequence } else { record.version };
                let range = RangeTombstone { from, to, number };
                ranges.lock().push((table.subtable.created, range));
                return;
            }
            versions.index().prefetch(guard.participant(), Key { bytes: record.key, hash: 0 });
            batch.push((record.key, Version::new(record.sequence, record.reference, deletes)));
            if batch.len() == AT_ONCE {
                batch.drain(..).for_each(|(key, version)| self.adopt(guard, table, key, version, retired));
            }
        };
        // SAFETY: recovery runs before the store is handed out, so nobody writes or releases.
        unsafe { self.log.heap().records_counted(memtable, end, each) }?;
        batch.drain(..).for_each(|(key, version)| self.adopt(guard, table, key, version, retired));
        Ok(count)
    }

    /// Takes a record into the index of its table, the highest number of a key winning.
    pub(super) fn adopt(
        &self,
        guard: &Guard<'_>,
        table: &Table<I>,
        bytes: &[u8],
        version: Version,
        retired: &mut Retired,
    ) {
        let key = self.key(bytes);
        let _stripe = self.lock(key.hash);
        // Nobody reads yet, so the newest version of each key is enough.
        let horizon = Horizon::new(u64::MAX, []);
        let number_of = |reference| self.told_number(guard, reference);
        let versions = &table.view(guard).active.versions;
        let superseded = versions.insert((guard, key, None), version, &horizon, retired, number_of);
        if let Some(version) = superseded.expect("this index never fails") {
            self.note_dead(&version);
        }
    }
}
