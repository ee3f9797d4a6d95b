//! Range deletes: one record deletes all keys from one on and below another.
//!
//! It has a number like any write, and deletes the versions with lower ones. All stripes are held while it is
//! granted: a write that looks at the old value of a key comes wholly before it or wholly behind it. Readers
//! look at the versions of a key, then at the list of range tombstones, and then at the visible number. One
//! that is published meanwhile may be missed by a read that began before it, which then comes before it.
//!
//! The keys are *swept* out of the index afterwards, some at a time. Then their records are garbage like any
//! other, and the tombstone leaves the list when all guards of that moment have dropped. Its record stays:
//! until its memtable is the oldest of its table, older records of the keys may be in others. A rewrite
//! copies it, and the copy keeps the number of the first. Recovery sweeps all of them before anybody reads.
//!
//! Where a table has levels, which are not swept, it stays in the list until [`compact`](super::compact) has
//! taken its keys from them. Each dump writes the list, so that it is on the levels before its record leaves.

use super::rewrite::Worker;
use super::table::Table;
use super::write::{Near, Purpose};
use super::{Session, Tiers};
use crate::types::error::Error;
use quipu_parts::epoch::{Current, Guard};
use quipu_parts::heap::chain::{CHUNK_HEADER, RECORD_HEADER, VERSION_FIELD};
use quipu_parts::index::{InOrder, Key};
use quipu_parts::sync::{SpinGuard, SpinLock};
use quipu_parts::twin;
use quipu_parts::versions::{Horizon, RangeList, RangeTombstone, Retired};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Keys that are swept at a time.
const AT_ONCE: usize = 64;

/// The range tombstones of a table whose keys are not swept.
#[derive(Default)]
pub(super) struct Ranges {
    list: Current<RangeList>,
    /// Held for a change of the list.
    changing: SpinLock<()>,
    /// Those of the list whose keys are left on the levels alone.
    below: SpinLock<Vec<Swept>>,
}

/// A range tombstone whose keys are on the levels alone.
#[derive(Clone, Copy)]
pub(super) struct Swept {
    pub(super) number: u64,
    /// All its keys are in runs with lower ids, once that is known.
    pub(super) base: Option<u64>,
    /// Whether it leaves the list as soon as readers have left.
    pub(super) leaves: bool,
}

impl Ranges {
    /// Those of this moment, if there are any.
    #[inline]
    pub(super) fn get<'g>(&'g self, guard: &'g Guard<'_>) -> Option<&'g RangeList> {
        self.list.get(guard)
    }

    /// Adds one.
    pub(super) fn add(&self, guard: &Guard<'_>, new: RangeTombstone) {
        let _alone = self.changing.lock();
        let list = self.list.get(guard).cloned().unwrap_or_default();
        self.list.replace(guard, Some(list.with(new)));
    }

    /// These, found on an open: their keys are left on the levels alone.
    pub(super) fn found(&self, guard: &Guard<'_>, ranges: Vec<RangeTombstone>) {
        self.below.lock().extend(ranges.iter().map(|range| Swept {
            number: range.number,
            base: None,
            leaves: false,
        }));
        self.list.replace(guard, (!ranges.is_empty()).then(|| RangeList::new(ranges)));
    }

    /// Those whose keys are left on the levels alone.
    pub(super) fn below(&self) -> SpinGuard<'_, Vec<Swept>> {
        self.below.lock()
    }

    /// Takes away the one of this number.
    pub(super) fn remove(&self, guard: &Guard<'_>, number: u64) {
        let _alone = self.changing.lock();
        let rest = self.list.get(guard).and_then(|list| list.without(number));
        self.list.replace(guard, rest);
    }
}

/// The sweeping of a store.
#[derive(Default)]
pub(super) struct Sweep {
    at_work: Option<(u64, RangeTombstone, Vec<u8>)>,
    /// Range tombstones that are swept and not out of their lists: tables and numbers.
    swept: Vec<(u64, u64)>,
    /// Those of them that may leave.
    ripe: Arc<SpinLock<Vec<(u64, u64)>>>,
}

impl<I: InOrder> Tiers<I> {
    /// Deletes the keys from `from` on and below `to`, which is empty for no end.
    pub(super) fn delete_range(&self, session: &mut Session<I>, from: &[u8], to: &[u8]) -> Result<(), Error> {
        self.common.admission.admit()?;
        if let Some(longest) = [from, to].into_iter().find(|key| key.len() as u64 > self.key_limit() + 1) {
            return Err(Error::KeyTooLarge { len: longest.len() as u64, limit: self.key_limit() });
        }
        session.table.check()?;
        // A copy has a version besides.
        let len = CHUNK_HEADER + RECORD_HEADER + VERSION_FIELD + (from.len() + to.len()) as u64 + 8;
        if len > self.log.heap().longest_chunk() {
            return Err(Error::KeyTooLarge {
                len: from.len().max(to.len()) as u64,
                limit: self.key_limit() / 4,
            });
        }
        if !to.is_empty() && from >= to {
            return Ok(());
        }
        self.with_room(session, &Cell::new(Purpose::Delete), |tiers, session| {
            let Session { participant, table, writer, node } = session;
            let guard = participant.pin();
            writer.item.clear();
            writer.item.chunk(table.number).push_range(from, to);
            let stripes: Vec<_> =
                (0..tiers.common.stripes.count()).map(|stripe| tiers.lock_stripe(stripe)).collect();
            let last = tiers.write(&guard, (&[table], Near::default()), writer, (Purpose::Delete, *node))?;
            drop(stripes);
            tiers.acknowledge(last)
        })?;
        if self.common.bell.ring_now() { Ok(()) } else { self.sweep_all() }
    }

    /// Sweeps all range tombstones of this moment.
    pub(super) fn sweep_all(&self) -> Result<(), Error> {
        let mut worker = self.rewriter.worker();
        while self.sweep_step(&mut worker)? {}
        Ok(())
    }

    /// Sweeps all range tombstones for a close. `false` if a snapshot still needs keys that one deletes.
    pub(super) fn sweep_for_good(&self) -> Result<bool, Error> {
        self.sweep_all()?;
        let (worker, tables) = (self.rewriter.worker(), self.tables.all());
        let (guard, swept) = (worker.participant.pin(), &worker.sweep.swept);
        let is_swept = |table: &Arc<Table<I>>| {
            let id = table.subtable.created;
            let mut ranges = table.ranges.get(&guard).into_iter().flat_map(RangeList::iter);
            // The levels are not swept.
            let is_alone = table.view(&guard).is_alone();
            ranges.all(|range| is_alone && swept.contains(&(id, range.number)))
        };
        Ok(tables.iter().all(is_swept))
    }

    /// Sweeps the keys that these range tombstones of a table delete, at once: nobody reads yet.
    pub(super) fn sweep_recovered(
        &self,
        guard: &Guard<'_>,
        table: &Table<I>,
        list: &RangeList,
        retired: &mut Retired,
    ) -> Result<(), Error> {
        let versions = &table.view(guard).active.versions;
        let (mut scan, mut keys) = (versions.scan_from(&[]), Vec::with_capacity(AT_ONCE));
        let horizon = Horizon::new(u64::MAX, []);
        let number_of = |reference| self.told_number(guard, reference);
        while versions.index().next_in_order(guard, &mut scan, AT_ONCE, |key, _| {
            keys.push(key.to_vec());
        })? {
            for key in keys.drain(..) {
                let (at, mut gone) = ((guard, Key { bytes: &key, hash: 0 }, None), None);
                versions.tidy(at, &horizon, retired, number_of, |versions| {
                    gone = versions
                        .first()
                        .copied()
                        .filter(|newest| list.deletes(&key, newest.number, u64::MAX));
                    if gone.is_some() {
                        versions.clear();
                    }
                })?;
                gone.iter().for_each(|version| self.note_dead(version));
            }
        }
        Ok(())
    }

    /// Sweeps the next few keys. `false` if there is nothing to do.
    pub(super) fn sweep_step(&self, worker: &mut Worker) -> Result<bool, Error> {
        let Worker { participant, writer, sweep, .. } = worker;
        let ripe = std::mem::take(&mut *sweep.ripe.lock());
        for (id, number) in ripe {
            sweep.swept.retain(|swept| *swept != (id, number));
            let Ok(table) = self.tables.created(id) else { continue };
            let guard = participant.pin();
            if table.view(&guard).is_alone() || twin!(RangeForgottenEarly) {
                table.ranges.remove(&guard, number);
            } else {
                table.ranges.below().push(Swept { number, base: None, leaves: false });
            }
        }
        if sweep.at_work.is_none() {
            sweep.at_work = self.next_to_sweep(&participant.pin(), &sweep.swept);
        }
        let Some((id, range, next)) = &mut sweep.at_work else { return Ok(false) };
        let Ok(table) = self.tables.created(*id) else {
            sweep.at_work = None;
            return Ok(true);
        };
        let guard = participant.pin();
        // A dump takes the keys of a frozen layer.
        let versions = &table.view(&guard).global().versions;
        let (mut scan, mut keys) = (versions.scan_from(next), Vec::with_capacity(AT_ONCE));
        let has_more = versions.index().next_in_order(&guard, &mut scan, AT_ONCE, |key, _| {
            keys.push(key.to_vec());
        })?;
        let ends = !has_more || keys.last().is_none_or(|last| !range.holds(last));
        self.snapshots.horizon(|| self.log.visible(), &mut writer.horizon);
        for key in keys.iter().filter(|key| range.holds(key)) {
            let _stripe = self.lock(self.key(key).hash);
            let mut forgotten = None;
            let at = (&guard, Key { bytes: key, hash: 0 }, None);
            let number_of = |reference| self.number_of(&guard, reference);
            versions.tidy(at, &writer.horizon, &mut writer.retired, number_of, |versions| {
                // Every snapshot is behind the range tombstone, and needs none of those before it.
                let newest = versions[0];
                versions.retain(|version| version.number > range.number || version.is_unproved());
                forgotten = versions.is_empty().then_some(newest);
            })?;
            forgotten.iter().for_each(|version| self.note_dead(version));
        }
        if ends {
            let (done, ripe) = ((*id, range.number), sweep.ripe.clone());
            sweep.swept.push(done);
            sweep.at_work = None;
            if twin!(SweptUnawaited) {
                ripe.lock().push(done);
            } else {
                // A reader may have found a version that was swept, and look at the list next.
                guard.defer_to_anyone(Box::new(move || ripe.lock().push(done)));
            }
        } else if let Some(last) = keys.pop() {
            // The key behind it.
            *next = [&last[..], &[0]].concat();
        }
        Ok(true)
    }

    /// A range tombstone whose keys no snapshot needs.
    fn next_to_sweep(
        &self,
        guard: &Guard<'_>,
        swept: &[(u64, u64)],
    ) -> Option<(u64, RangeTombstone, Vec<u8>)> {
        let (visible, oldest) = (self.log.visible(), self.snapshots.oldest().unwrap_or(u64::MAX));
        let oldest = if twin!(RangeSweptEarly) { u64::MAX } else { oldest };
        let mut is_delayed = false;
        let next = self.tables.all().into_iter().find_map(|table| {
            let id = table.subtable.created;
            let (below, view) = (table.ranges.below(), table.view(guard));
            // All versions that it deletes are in the Global Index, or frozen.
            let has_merged =
                |number: u64| view.older.is_empty() || view.global().merged.load(Ordering::Acquire) >= number;
            let mut is_due = |range: &&RangeTombstone| {
                let is_swept = swept.contains(&(id, range.number))
                    || below.iter().any(|below| below.number == range.number);
                is_delayed |= range.number > oldest && !is_swept;
                range.number <= visible.min(oldest) && !is_swept && has_merged(range.number)
            };
            let due = table.ranges.get(guard)?.iter().find(&mut is_due)?;
            Some((id, due.clone(), due.from.to_vec()))
        });
        self.rewriter.delays_sweep.store(is_delayed, Ordering::Release);
        next
    }
}
