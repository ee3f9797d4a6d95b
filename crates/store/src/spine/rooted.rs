//! Indexes in the pool: making one, and finding it again by the root that the superblock keeps.

use quipu_parts::index::cceh::{CcehError, CcehIndex, CcehSettings, NodeMemory, PmNodes};
use quipu_parts::index::fastfair::{FastFairError, FastFairIndex};
use quipu_parts::index::{Index, IndexError, IndexRoot};
use quipu_parts::space::Space;
use std::sync::Arc;

/// An index that survives a crash by itself.
pub(crate) trait Rooted: Index + Sized {
    /// An empty one, which always leaves `leave` zones free. `keep` makes its root durable; after a crash before the return, the
    /// root names an empty index or none.
    fn create(
        space: Arc<Space>,
        shape: CcehSettings,
        leave: u32,
        keep: impl FnOnce(IndexRoot),
    ) -> Result<Self, IndexError>;

    /// The index of this root, `None` if there is none. Nothing is changed; before anything else is asked of it,
    /// [`repair`](Rooted::repair) must follow.
    fn examine(space: Arc<Space>, root: IndexRoot, leave: u32) -> Result<Option<Self>, IndexError>;

    /// Takes back what a crash has left unfinished, durably. `begin` is called before the first change, if there is one.
    fn repair(&self, begin: impl FnOnce());
}

impl Rooted for CcehIndex<PmNodes> {
    fn create(
        space: Arc<Space>,
        shape: CcehSettings,
        leave: u32,
        keep: impl FnOnce(IndexRoot),
    ) -> Result<Self, IndexError> {
        Ok(CcehIndex::create(space, shape, leave, keep)?)
    }

    fn examine(space: Arc<Space>, root: IndexRoot, leave: u32) -> Result<Option<Self>, IndexError> {
        match CcehIndex::examine(space, root, leave) {
            Err(CcehError::Absent) => Ok(None),
            examined => Ok(Some(examined?)),
        }
    }

    fn repair(&self, begin: impl FnOnce()) {
        self.memory().repair(begin);
    }
}

impl Rooted for FastFairIndex {
    fn create(
        space: Arc<Space>,
        _shape: CcehSettings,
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

    fn repair(&self, begin: impl FnOnce()) {
        FastFairIndex::repair(self, begin);
    }
}
