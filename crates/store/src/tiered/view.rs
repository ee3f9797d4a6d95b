//! The indexes and levels of a table: an immutable list that a reader takes under its guard.
//!
//! A *layer* is an index over the memtables of a stretch of time. Writes go into the newest one, the *Global
//! Index* of the paper. A *freeze* puts an empty one on top of it. Then the frozen layer is dumped into the
//! levels, and leaves the list at the moment at which the new levels enter it.
//!
//! *The grant decides.* A layer has the memtables above a number, up to that of the next layer. It enters the
//! list before the first of its memtables is there. So the memtable in which an item got its place tells the
//! layer, whenever the item is published.
//!
//! *The first hit counts.* Numbers in a newer layer are above those of the same key in an older one. Numbers
//! in memory are not below those on the levels. A reader looks at one list throughout, so that nothing moves
//! from behind it to before it.
//!
//! Source: sections 3.1 and 3.3 of the paper. It does not say how readers see levels change.

use super::table::Table;
use quipu_parts::epoch::{Collector, Guard};
use quipu_parts::index::{BothWays, Index};
use quipu_parts::runs::{Levels, Runs};
use quipu_parts::versions::Versions;
use std::ops::Deref;
use std::sync::Arc;

/// The index of the memtables above a number, up to that of the next layer.
pub(super) struct Layer<I: Index> {
    pub(super) above: u64,
    pub(super) versions: Versions<I>,
}

impl<I: Index> Layer<I> {
    pub(super) fn new(above: u64, index: I, epochs: &Collector) -> Arc<Layer<I>> {
        Arc::new(Layer { above, versions: Versions::new(index, epochs.clone()) })
    }
}

/// All that a reader of a table looks at.
pub(super) struct View<I: Index> {
    pub(super) active: Arc<Layer<I>>,
    /// The layer that is being dumped.
    pub(super) frozen: Option<Arc<Layer<I>>>,
    pub(super) levels: Option<LevelsInUse>,
}

impl<I: Index> View<I> {
    /// The layer of a memtable.
    #[inline]
    pub(super) fn layer_of(&self, memtable: impl FnOnce() -> u64) -> &Layer<I> {
        match &self.frozen {
            Some(frozen) if memtable() <= self.active.above => frozen,
            _ => &self.active,
        }
    }

    /// The layers, the newest first.
    pub(super) fn layers(&self) -> impl Iterator<Item = &Arc<Layer<I>>> {
        std::iter::once(&self.active).chain(&self.frozen)
    }

    /// Whether nothing is older than the active layer.
    pub(super) fn is_alone(&self) -> bool {
        self.frozen.is_none() && self.levels.as_ref().is_none_or(|levels| levels.is_empty())
    }
}

impl<I: BothWays> Table<I> {
    /// The view of this moment.
    #[inline(always)]
    pub(super) fn view<'g>(&'g self, guard: &'g Guard<'_>) -> &'g View<I> {
        self.view.get(guard).expect("a table has a view from its beginning")
    }

    /// Puts the runs of now into the view, unless the table has been dropped.
    pub(super) fn use_levels(&self, guard: &Guard<'_>, runs: &Arc<dyn Runs>) {
        let _alone = self.changing.lock();
        // Its levels are removed when nobody has them any more, and its clients may stay.
        if self.check().is_err() {
            return;
        }
        let View { active, frozen, .. } = self.view(guard);
        let (active, frozen) = (active.clone(), frozen.clone());
        self.view.replace(guard, Some(View { active, frozen, levels: Some(LevelsInUse::of(runs)) }));
    }

    /// Takes the levels out of the view of a table that has been dropped.
    pub(super) fn forget_levels(&self, guard: &Guard<'_>) {
        let _alone = self.changing.lock();
        let active = self.view(guard).active.clone();
        self.view.replace(guard, Some(View { active, frozen: None, levels: None }));
    }
}

/// Levels that a view has.
#[derive(Clone)]
pub(super) struct LevelsInUse {
    pub(super) runs: Arc<dyn Runs>,
    levels: Arc<dyn Levels>,
    /// Whether they have no run. Scans ask often, and the levels look at all files.
    is_empty: bool,
}

impl LevelsInUse {
    /// Those of now.
    pub(super) fn of(runs: &Arc<dyn Runs>) -> LevelsInUse {
        let levels = runs.levels();
        LevelsInUse { runs: runs.clone(), is_empty: levels.highest().is_none(), levels }
    }

    /// Whether they have no run.
    pub(super) fn is_empty(&self) -> bool {
        self.is_empty
    }
}

impl Deref for LevelsInUse {
    type Target = dyn Levels;

    #[inline]
    fn deref(&self) -> &(dyn Levels + 'static) {
        &*self.levels
    }
}
