//! What the tests of the CCEH index share: hashes, and indexes in every memory.

use crate::shared::mix as numbers;
use crate::shared::pool;

pub use numbers::mix;
use quipu_parts::index::cceh::{CcehIndex, CcehSettings, PmNodes};
use quipu_parts::index::{InPool, IndexRoot};
use quipu_parts::space::Space;
use std::sync::Arc;

/// A simulated pool of so many bytes with zones of 4 KiB.
pub fn format(len: u64, seed: u64) -> Arc<Space> {
    pool::format(len, 4 << 10, seed)
}

/// A new index in a pool, with its root.
pub fn create(space: &Arc<Space>, settings: CcehSettings) -> (CcehIndex<PmNodes>, IndexRoot) {
    let mut root = None;
    let index = CcehIndex::create(space.clone(), settings, 0, |made| root = Some(made)).expect("room");
    (index, root.expect("the root is given before the index is"))
}
