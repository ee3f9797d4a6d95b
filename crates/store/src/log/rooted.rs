//! Indexes in the pool: making one, and finding it again by the root that the superblock keeps.

use crate::settings::bucket_table::MpkvSettings;
use crate::settings::image::Image;
use crate::settings::techniques::FlatSettings;
use quipu_parts::index::buckets::{BucketError, BucketIndex, BucketSettings, Locking};
use quipu_parts::index::cceh::{CcehError, CcehIndex, CcehSettings, NodeMemory, PmNodes};
use quipu_parts::index::fastfair::{FastFairError, FastFairIndex};
use quipu_parts::index::{Index, IndexError, IndexRoot, PmWords};
use quipu_parts::space::Space;
use std::sync::Arc;

/// An index that survives a crash by itself.
pub(crate) trait Rooted: Index + Sized {
    /// What the superblock remembers of it.
    type Remembered: Image;

    /// An empty one in the shape that is remembered, or the smallest, which always leaves `leave` zones free. `keep` makes its root
    /// durable; after a crash before the return, the root names an empty index or none.
    fn create(
        space: Arc<Space>,
        remembered: &Self::Remembered,
        is_tiny: bool,
        leave: u32,
        keep: impl FnOnce(IndexRoot),
    ) -> Result<Self, IndexError>;

    /// The index of this root, `None` if there is none. Nothing is changed; before anything else is asked of it,
    /// [`repair`](Rooted::repair) must follow.
    fn examine(space: Arc<Space>, root: IndexRoot, leave: u32) -> Result<Option<Self>, IndexError>;

    /// Takes back or finishes what a crash has left unfinished, durably. `begin` is called before the first change, if there is one.
    ///
    /// # Errors
    /// [`IndexError::Full`] if a creation that was interrupted cannot be finished, and [`IndexError::Space`] for damage.
    fn repair(&self, begin: impl FnOnce()) -> Result<(), IndexError>;

    /// Lets readers act on what is not durable: a broken twin.
    fn stop_helping(&mut self);
}

impl Rooted for CcehIndex<PmNodes> {
    type Remembered = FlatSettings;

    fn create(
        space: Arc<Space>,
        remembered: &FlatSettings,
        is_tiny: bool,
        leave: u32,
        keep: impl FnOnce(IndexRoot),
    ) -> Result<Self, IndexError> {
        let shape = if is_tiny { CcehSettings::tiny() } else { remembered.shape };
        Ok(CcehIndex::create(space, shape, leave, keep)?)
    }

    fn examine(space: Arc<Space>, root: IndexRoot, leave: u32) -> Result<Option<Self>, IndexError> {
        match CcehIndex::examine(space, root, leave) {
            Err(CcehError::Absent) => Ok(None),
            examined => Ok(Some(examined?)),
        }
    }

    fn repair(&self, begin: impl FnOnce()) -> Result<(), IndexError> {
        self.memory().repair(begin);
        Ok(())
    }

    fn stop_helping(&mut self) {
        CcehIndex::stop_helping(self);
    }
}

impl Rooted for FastFairIndex {
    type Remembered = FlatSettings;

    fn create(
        space: Arc<Space>,
        _remembered: &FlatSettings,
        _is_tiny: bool,
        leave: u32,
        keep: impl FnOnce(IndexRoot),
    ) -> Result<Self, IndexError> {
        Ok(FastFairIndex::create(space, leave, keep)?)
    }

    fn examine(space: Arc<Space>, root: IndexRoot, leave: u32) -> Result<Option<Self>, IndexError> {
        match FastFairIndex::examine(space, root, leave) {
            Err(FastFairError::Absent) => Ok(None),
            examined => Ok(Some(examined?)),
        }
    }

    fn repair(&self, begin: impl FnOnce()) -> Result<(), IndexError> {
        FastFairIndex::repair(self, begin);
        Ok(())
    }

    fn stop_helping(&mut self) {
        FastFairIndex::stop_helping(self);
    }
}

impl<L: Locking> Rooted for BucketIndex<PmWords, L> {
    type Remembered = MpkvSettings;

    fn create(
        space: Arc<Space>,
        remembered: &MpkvSettings,
        is_tiny: bool,
        leave: u32,
        keep: impl FnOnce(IndexRoot),
    ) -> Result<Self, IndexError> {
        let table = if is_tiny { BucketSettings::tiny() } else { remembered.table };
        Ok(BucketIndex::create(space, table, leave, keep)?)
    }

    fn examine(space: Arc<Space>, root: IndexRoot, leave: u32) -> Result<Option<Self>, IndexError> {
        match BucketIndex::examine(space, root, leave) {
            Err(BucketError::Absent) => Ok(None),
            examined => Ok(Some(examined?)),
        }
    }

    fn repair(&self, begin: impl FnOnce()) -> Result<(), IndexError> {
        Ok(BucketIndex::repair(self, begin)?)
    }

    fn stop_helping(&mut self) {
        BucketIndex::stop_helping(self);
    }
}
