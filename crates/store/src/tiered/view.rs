//! The indexes and levels of a table: an immutable list that a reader takes under its guard.
//!
//! A *layer* is an index over the memtables of a stretch of time. Writes go into the newest one. Below it
//! are those of memtables that have not been [merged](super::global) yet, if memtables have indexes of their
//! own. The last one is the *Global Index* of the paper. A *freeze* puts an empty layer on top of all, which
//! is the next Global Index. The frozen layers are dumped into the levels, and leave the list at the moment
//! at which the new levels enter it.
//!
//! *The grant decides.* A layer has the memtables above a number, up to that of the next layer. It enters
//! the list before the first of its memtables is there. So the memtable in which an item got its place tells
//! the layer, whenever the item is published.
//!
//! *The first hit counts.* Numbers in a newer layer are above those of the same key in an older one. Numbers
//! in memory are not below those on the levels. A reader looks at one list throughout, so that nothing moves
//! from behind it to before it.
//!
//! Source: sections 3.1 and 3.3 of the paper. It does not say how readers see levels change.

use super::table::Table;
use quipu_parts::epoch::{Collector, Current, Guard};
use quipu_parts::index::{InOrder, Index};
use quipu_parts::runs::{Levels, Runs};
use quipu_parts::sync::SpinLock;
use quipu_parts::versions::Versions;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The index of the memtables above a number, up to that of the next layer.
pub(super) struct Layer<I: Index> {
    pub(super) above: u64,
    pub(super) versions: Versions<I>,
    /// A number up to which all versions of its table are in it, or in an older layer.
    pub(super) merged: AtomicU64,
    /// The key from which on it is not merged into an older layer yet.
    pub(super) next: SpinLock<Vec<u8>>,
}

impl<I: Index> Layer<I> {
    pub(super) fn new(above: u64, index: I, epochs: &Collector) -> Arc<Layer<I>> {
        let versions = Versions::new(index, epochs.clone());
        Arc::new(Layer { above, versions, merged: AtomicU64::new(0), next: SpinLock::default() })
    }
}

impl<I: InOrder> Layer<I> {
    /// Bytes of DRAM that it takes.
    pub(super) fn bytes(&self) -> u64 {
        self.versions.index().stats().bytes + self.versions.bytes()
    }
}

/// All that a reader of a table looks at.
pub(super) struct View<I: Index> {
    /// The newest layer.
    pub(super) active: Arc<Layer<I>>,
    /// Layers below it, the newest first: the last one is the Global Index.
    pub(super) older: Vec<Arc<Layer<I>>>,
    /// The layers that are being dumped, below those; they are merged into one before.
    pub(super) frozen: Vec<Arc<Layer<I>>>,
    pub(super) levels: Option<LevelsInUse>,
}

impl<I: Index> Clone for View<I> {
    fn clone(&self) -> View<I> {
        let View { active, older, frozen, levels } = self;
        View { active: active.clone(), older: older.clone(), frozen: frozen.clone(), levels: levels.clone() }
    }
}

impl<I: Index> View<I> {
    /// One layer.
    pub(super) fn of(active: Arc<Layer<I>>) -> View<I> {
        View { active, older: Vec::new(), frozen: Vec::new(), levels: None }
    }

    /// The layer of a memtable.
    #[inline]
    pub(super) fn layer_of(&self, memtable: u64) -> &Layer<I> {
        match memtable > self.active.above {
            true => &self.active,
            false => self.further().find(|layer| memtable > layer.above).unwrap_or(self.global()),
        }
    }

    /// The layers behind the active one, the newest first.
    #[inline]
    pub(super) fn further(&self) -> impl Iterator<Item = &Arc<Layer<I>>> {
        self.older.iter().chain(&self.frozen)
    }

    /// The layers that are not frozen, the newest first.
    pub(super) fn stack(&self) -> Vec<Arc<Layer<I>>> {
        std::iter::once(&self.active).chain(&self.older).cloned().collect()
    }

    /// All layers, the newest first.
    pub(super) fn layers(&self) -> impl Iterator<Item = &Arc<Layer<I>>> {
        std::iter::once(&self.active).chain(self.further())
    }

    /// The Global Index.
    #[inline]
    pub(super) fn global(&self) -> &Arc<Layer<I>> {
        self.older.last().unwrap_or(&self.active)
    }

    /// Whether nothing is older than the Global Index.
    pub(super) fn is_alone(&self) -> bool {
        self.frozen.is_empty() && self.levels.as_ref().is_none_or(|levels| levels.is_empty())
    }

    /// Whether one layer has all keys.
    pub(super) fn is_one(&self) -> bool {
        self.older.is_empty() && self.is_alone()
    }

    /// Takes out a layer whose memtables are merged into the one below it.
    pub(super) fn forget(&mut self, layer: &Arc<Layer<I>>) {
        if Arc::ptr_eq(&self.active, layer) {
            self.active = self.older.remove(0);
        }
        for layers in [&mut self.older, &mut self.frozen] {
            layers.retain(|other| !Arc::ptr_eq(other, layer));
        }
    }
}

/// The view of a table, as it changes.
pub(super) struct Views<I: Index> {
    current: Current<View<I>>,
    /// Held for a change, and taken last of all locks.
    changing: SpinLock<()>,
}

impl<I: InOrder> Views<I> {
    pub(super) fn new(first: View<I>, guard: &Guard<'_>) -> Views<I> {
        let views = Views { current: Current::default(), changing: SpinLock::default() };
        views.current.replace(guard, Some(first));
        views
    }

    /// The view of this moment.
    #[inline(always)]
    pub(super) fn get<'g>(&'g self, guard: &'g Guard<'_>) -> &'g View<I> {
        self.current.get(guard).expect("a table has a view from its beginning")
    }

    /// As [`get`](Views::get), without a guard; `None` while it is being replaced.
    pub(super) fn latest(&self) -> Option<Arc<View<I>>> {
        self.current.latest()
    }

    /// Puts a changed view in the place of that of now.
    pub(super) fn change(&self, guard: &Guard<'_>, change: impl FnOnce(&mut View<I>)) {
        let _alone = self.changing.lock();
        let mut view = self.get(guard).clone();
        change(&mut view);
        self.current.replace(guard, Some(view));
    }
}

impl<I: InOrder> Table<I> {
    /// The view of this moment.
    #[inline(always)]
    pub(super) fn view<'g>(&'g self, guard: &'g Guard<'_>) -> &'g View<I> {
        self.views.get(guard)
    }

    /// Puts the runs of now into the view, unless the table has been dropped.
    pub(super) fn use_levels(&self, guard: &Guard<'_>, runs: &Arc<dyn Runs>) {
        let _alone = self.changing.lock();
        // Its levels are removed when nobody has them any more, and its clients may stay.
        if self.check().is_err() {
            return;
        }
        let levels = LevelsInUse::of(runs);
        self.views.change(guard, |view| view.levels = Some(levels));
    }

    /// Takes the levels out of the view of a table that has been dropped.
    pub(super) fn forget_levels(&self, guard: &Guard<'_>) {
        self.views.change(guard, |view| (view.frozen, view.levels) = (Vec::new(), None));
    }
}

/// Layers that have left their views. To drop one takes long, so no reader does.
pub(super) struct Gone<I: Index>(SpinLock<Vec<Arc<Layer<I>>>>);

impl<I: Index> Default for Gone<I> {
    fn default() -> Gone<I> {
        Gone(SpinLock::default())
    }
}

impl<I: InOrder> Gone<I> {
    pub(super) fn push(&self, layer: Arc<Layer<I>>) {
        self.0.lock().push(layer);
    }

    /// Drops those that readers have left. `false` if readers still have one.
    pub(super) fn forget(&self) -> bool {
        let (mut gone, mut left) = (self.0.lock(), Vec::new());
        left.extend(gone.extract_if(.., |layer| Arc::strong_count(layer) == 1));
        let is_empty = gone.is_empty();
        drop(gone);
        drop(left);
        is_empty
    }

    /// Bytes of DRAM that they take.
    pub(super) fn bytes(&self) -> u64 {
        self.0.lock().iter().map(|layer| layer.bytes()).sum()
    }
}

/// Levels that a view has.
#[derive(Clone)]
pub(super) struct LevelsInUse {
    pub(super) runs: Arc<dyn Runs>,
    levels: Arc<dyn Levels>,
    /// The highest number of their records, or 0. Scans ask often, and the levels look at all files.
    highest: u64,
}

impl LevelsInUse {
    /// Those of now.
    pub(super) fn of(runs: &Arc<dyn Runs>) -> LevelsInUse {
        let levels = runs.levels();
        LevelsInUse { runs: runs.clone(), highest: levels.highest().unwrap_or_default(), levels }
    }

    /// Whether they have no run.
    pub(super) fn is_empty(&self) -> bool {
        self.highest == 0
    }

    /// The highest number of their records; 0 if they have none.
    pub(super) fn highest(&self) -> u64 {
        self.highest
    }
}

impl Deref for LevelsInUse {
    type Target = dyn Levels;

    #[inline]
    fn deref(&self) -> &(dyn Levels + 'static) {
        &*self.levels
    }
}
