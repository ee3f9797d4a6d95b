//! Compaction of the levels, and the range tombstones that it is done with.
//!
//! Runs are merged behind the seam; [`quipu_parts::runs::filter`] chooses the records that stay. The numbers
//! at which somebody reads are taken before, so that more is kept than need be, and never less.
//!
//! *When a range tombstone leaves.* Its keys have been swept out of the Global Index, which no older
//! snapshot has hindered, and no layer is frozen, so all of them are on the levels. From then on they are in
//! runs with ids below the next one, its *base*: no dump brings such keys, and each compaction applies it.
//! Runs that are older and lie wholly in its range are dropped at once. When no run of its range has an id
//! below the base, and readers of such runs have left, it deletes nothing any more.
//!
//! Source: section 3.3 of the paper, which leaves compaction to RocksDB, and has no range tombstones.

use super::Tiers;
use super::pairing::Change;
use super::ranges::Swept;
use super::table::Table;
use super::view::LevelsInUse;
use crate::background::{Bell, Progress};
use crate::types::error::Error;
use quipu_parts::epoch::{Collector, Guard, Participant};
use quipu_parts::index::InOrder;
use quipu_parts::runs::{Compact, Purge};
use quipu_parts::sync::SpinLock;
use quipu_parts::twin;
use quipu_parts::versions::RangeTombstone;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Looks for files to remove after the last compaction: by then a rest is half a second long.
const ROUNDS: u32 = 10;

/// The thread that compacts levels.
pub(super) struct Compactor {
    pub(super) bell: Arc<Bell>,
    state: SpinLock<Compacting>,
    /// Looks that are left for files to remove.
    rounds: AtomicU32,
    /// Tables that have been dropped, and whose levels are not removed yet.
    dropped: SpinLock<Vec<u64>>,
}

struct Compacting {
    participant: Participant,
    /// Range tombstones that delete nothing any more, by their tables and numbers; readers have left.
    ripe: Arc<SpinLock<Vec<(u64, u64)>>>,
}

impl Compactor {
    pub(super) fn new(epochs: &Collector) -> Compactor {
        let state = Compacting { participant: epochs.register(), ripe: Arc::default() };
        let (bell, rounds, dropped) = (Arc::default(), AtomicU32::new(0), SpinLock::default());
        Compactor { bell, state: SpinLock::new(state), rounds, dropped }
    }
}

impl Compacting {
    /// Lets those range tombstones of a table go of whose range no run is below their base.
    fn let_go<I: InOrder>(&self, guard: &Guard<'_>, table: &Table<I>) {
        let (view, ranges) = (table.view(guard), table.ranges.get(guard));
        for range in ranges.into_iter().flat_map(|list| list.iter()) {
            let number = range.number;
            let mut below = table.ranges.below();
            let own = below.iter_mut().find(|below| below.number == number && !below.leaves);
            let Some((own, base)) = own.and_then(|own| own.base.map(|base| (own, base))) else { continue };
            let lowest = view.levels.as_ref().and_then(|levels| levels.lowest_id(range));
            if lowest.is_some_and(|lowest| lowest < base) {
                continue;
            }
            own.leaves = true;
            let (ripe, done) = (self.ripe.clone(), (table.subtable.created, number));
            // A reader may have found a record in an old run, and look at the list next.
            guard.defer_to_anyone(Box::new(move || ripe.lock().push(done)));
        }
    }
}

impl<I: InOrder> Tiers<I> {
    /// A piece of the work of the thread that compacts.
    pub(super) fn compact_ahead(&self) -> Progress {
        let rounds = &self.compactor.rounds;
        match self.compact_step(Compact::Due) {
            Ok(true) => {
                rounds.store(ROUNDS, Ordering::Relaxed);
                Progress::More
            }
            // Nobody calls when the last reader of a table that was dropped leaves.
            Ok(false) if !self.compactor.dropped.lock().is_empty() => Progress::Stuck,
            Ok(false) if rounds.load(Ordering::Relaxed) == 0 => Progress::Enough,
            // Readers will leave the files of runs that were merged.
            Ok(false) => {
                rounds.fetch_sub(1, Ordering::Relaxed);
                Progress::Stuck
            }
            Err(_) => Progress::Stuck,
        }
    }

    /// Compacts the levels of each table, as far as it is due, or all. `false` if there was nothing to do, or
    /// if another thread is at it.
    pub(super) fn compact_step(&self, how: Compact) -> Result<bool, Error> {
        let Some(mut compacting) = self.compactor.state.try_lock() else { return Ok(false) };
        self.remove_dropped();
        self.forget_ranges(&compacting);
        let mut has_worked = false;
        for table in self.tables.all() {
            has_worked |= self.compact_table(&mut compacting, &table, how)?;
        }
        self.dumper.pace.unmerged(self.most_unmerged());
        Ok(has_worked)
    }

    /// Runs of the fullest first level.
    pub(super) fn most_unmerged(&self) -> u64 {
        let participant = self.common.epochs.register();
        let guard = participant.pin();
        let unmerged = |table: &Arc<Table<I>>| {
            table.view(&guard).levels.as_ref().map_or(0, |levels| levels.runs.stats().first_level)
        };
        self.tables.all().iter().map(unmerged).max().unwrap_or_default()
    }

    fn compact_table(
        &self,
        compacting: &mut Compacting,
        table: &Arc<Table<I>>,
        how: Compact,
    ) -> Result<bool, Error> {
        let participant = &compacting.participant;
        let Some(levels) = table.view(&participant.pin()).levels.clone() else { return Ok(false) };
        let runs = &levels.runs;
        for range in self.based(&participant.pin(), table, &levels) {
            let alone = table.changing.lock();
            let newer = twin!(NewerRunsDropped);
            let below = if newer { u64::MAX >> 2 } else { range.number };
            let change = self.change_of_levels();
            let dropped = runs.drop_range(&range.from, &range.to, below, &change.notice())?;
            drop(alone);
            if dropped > 0 {
                table.use_levels(&participant.pin(), runs);
                change.confirm()?;
            }
        }
        let change = self.change_of_levels();
        let compacted = runs.compact(how, self.purge_of(participant, table), &change.notice())?;
        let guard = participant.pin();
        if compacted.has_worked {
            table.use_levels(&guard, runs);
        }
        // Range tombstones go once the pool relies on runs without their keys.
        change.confirm()?;
        compacting.let_go(&guard, table);
        Ok(compacted.has_worked)
    }

    /// A change of levels that is to come.
    pub(super) fn change_of_levels(&self) -> Arc<Change> {
        self.pairing.as_ref().expect("a store with levels").change()
    }

    /// The records of a table that a dump or a compaction which begins now may leave out.
    pub(super) fn purge_of(&self, participant: &Participant, table: &Table<I>) -> Purge {
        let mut purge = Purge { now: self.time_of_all(), ..Purge::default() };
        // In this order: each range tombstone that is visible is in the list, or has left it.
        self.snapshots.horizon(|| self.log.visible(), &mut purge.horizon);
        purge.ranges = table.ranges.get(&participant.pin()).cloned().unwrap_or_default();
        purge
    }

    /// Takes range tombstones off the lists that delete nothing any more, and that readers have left.
    fn forget_ranges(&self, compacting: &Compacting) {
        let Compacting { participant, ripe } = compacting;
        participant.collect();
        for (id, number) in std::mem::take(&mut *ripe.lock()) {
            let Ok(table) = self.tables.created(id) else { continue };
            table.ranges.remove(&participant.pin(), number);
            table.ranges.below().retain(|below| below.number != number);
        }
    }

    /// Gives a base to those range tombstones of a table that may have one, and returns them.
    fn based(&self, guard: &Guard<'_>, table: &Table<I>, levels: &LevelsInUse) -> Vec<RangeTombstone> {
        let may_have = table.view(guard).frozen.is_empty() || twin!(BasedWhileFrozen);
        let list = table.ranges.get(guard).filter(|_| may_have);
        let (Some(list), base) = (list, levels.runs.next_id()) else { return Vec::new() };
        let mut below = table.ranges.below();
        let mut is_new = |range: &&RangeTombstone| {
            let is_it = |below: &&mut Swept| below.number == range.number && below.base.is_none();
            below.iter_mut().find(is_it).map(|own| own.base = Some(base)).is_some()
        };
        list.iter().filter(|range| is_new(range)).cloned().collect()
    }

    /// Leaves the levels of a table that has been dropped: they are removed when readers have left.
    pub(super) fn leave_levels(&self, guard: &Guard<'_>, table: &Table<I>) {
        table.forget_levels(guard);
        if self.dumper.is_there() {
            self.compactor.dropped.lock().push(table.subtable.created);
            self.compactor.bell.ring_now();
        }
    }

    /// Removes the levels of tables that have been dropped, as soon as no view has them. The caller compacts
    /// nothing.
    fn remove_dropped(&self) {
        let (Some(forest), Some(_dumping)) = (&self.dumper.forest, self.dumper.try_lock()) else { return };
        let dropped = std::mem::take(&mut *self.compactor.dropped.lock());
        // One that cannot be removed now is tried again, at the latest by the next opening.
        let stays = |table: &u64| forest.is_open(*table) || forest.remove(*table).is_err();
        let left: Vec<u64> = dropped.into_iter().filter(stays).collect();
        self.compactor.dropped.lock().extend(left);
    }
}
