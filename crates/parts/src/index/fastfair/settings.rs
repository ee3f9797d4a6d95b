//! What a FAST&FAIR index takes and tells: values, hints, errors, statistics.

use super::node::{SLOT_BITS, SLOTS};
use crate::space::{Shortage, SpaceError};

/// Bits of a value: the two highest bits of a word are the index's own. A value is not zero.
pub const VALUE_BITS: u32 = 62;
/// Bytes of the longest key.
pub const KEY_MAX: usize = u16::MAX as usize;
/// Bits of a hint.
pub const HINT_BITS: u32 = 48;
/// Bits of a node's number.
pub(super) const NUMBER_BITS: u32 = HINT_BITS - SLOT_BITS;

/// Where an entry most likely stands: the number of a node and a position in it (a shortcut of PACMAN, section 3.1).
///
/// It may be kept in records and tried at any time, in any run. One that is out of date, or any other number, costs time and
/// finds nothing that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hint(u64);

impl Hint {
    pub(super) fn new(node: u64, slot: usize) -> Hint {
        debug_assert!(node < 1 << NUMBER_BITS && slot < SLOTS);
        Hint(node << SLOT_BITS | slot as u64)
    }

    /// The hint of these 48 bits; higher ones are ignored.
    pub fn from_bits(bits: u64) -> Hint {
        Hint(bits & ((1 << HINT_BITS) - 1))
    }

    /// The hint as 48 bits.
    pub fn to_bits(self) -> u64 {
        self.0
    }

    pub(super) fn node(self) -> u64 {
        self.0 >> SLOT_BITS
    }

    /// A position that there is.
    pub(super) fn slot(self) -> usize {
        (self.0 & ((1 << SLOT_BITS) - 1)) as usize % SLOTS
    }
}

/// What a lookup for a writer has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Located {
    /// The value of the key, if it is there.
    pub value: Option<u64>,
    /// Where it stands, or would be put.
    pub hint: Hint,
}

/// What a FAST&FAIR index has done and what it occupies.
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
    /// The same of the chunks that keep keys.
    pub free_chunks: u64,
    /// Whether all nodes and chunks of earlier runs are known to be free or in use.
    pub is_swept: bool,
}

/// Why an index cannot take a key, answer, or be made or opened. Nothing has been changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FastFairError {
    /// A node had to split, or a key had to be kept, and there is no zone left for the index.
    #[error("no zone is left for the index: {0}")]
    Full(Shortage),
    /// The key is longer than an index takes.
    #[error("a key of {len} bytes is too long for the index, which takes {KEY_MAX}; choose a shorter one")]
    KeyTooLong {
        /// Bytes of the key.
        len: usize,
    },
    /// Zones are too small to hold a node.
    #[error("a zone of {zone} bytes has no room for nodes; choose larger zones")]
    ZoneTooSmall {
        /// Bytes of a zone.
        zone: u64,
    },
    /// The root names no index: its creation was interrupted, and has left nothing.
    #[error("no index has been created here; create one")]
    Absent,
    /// The index, the allocator or the medium failed.
    #[error(transparent)]
    Space(#[from] SpaceError),
}

pub(super) type Result<T> = std::result::Result<T, FastFairError>;

/// Something in PM that no run of the index leaves there.
#[cold]
pub(super) fn damaged<T>(what: &'static str, offset: u64) -> Result<T> {
    Err(SpaceError::Damaged { what, offset }.into())
}
