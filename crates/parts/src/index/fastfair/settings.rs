//! Values, keys and statistics of a FAST&FAIR index.

use crate::index::IndexError;
use crate::index::chain;
use crate::index::hint::Hint;

/// Bits of a value: the two highest bits of a word are the index's own. A value is not zero.
pub const VALUE_BITS: u32 = 62;
/// Bytes of the longest key.
pub const KEY_MAX: usize = u16::MAX as usize;
/// Bits of a node's number.
pub(super) const NUMBER_BITS: u32 = Hint::NODE_BITS;

/// Statistics of a FAST&FAIR index: its size, and its work so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FastFairStats {
    /// Bytes of DRAM: the states of nodes and chunks, and lists of free ones.
    pub bytes: u64,
    /// Bytes of the zones in PM.
    pub pm_bytes: u64,
    /// Levels of the tree.
    pub levels: u32,
    /// Nodes split since the index was made or opened.
    pub splits: u64,
    /// Nodes taken out of the tree since then.
    pub removals: u64,
    /// Nodes that can be allocated without another zone, as far as they are known.
    pub free_nodes: u64,
    /// Chunks of keys that can be allocated without another zone, as far as they are known.
    pub free_chunks: u64,
}

pub(super) type Result<T> = std::result::Result<T, IndexError>;

/// Something in PM that no run of the index leaves there.
#[cold]
pub(super) fn damaged<T>(what: &'static str, offset: u64) -> Result<T> {
    Ok(chain::damaged(what, offset)?)
}
