//! Hints of ordered indexes: where an entry most likely stands (a shortcut of PACMAN, ATC'22 section 3.1).

/// The number of a node and a slot in it, in 48 bits.
///
/// A hint may be kept anywhere and for any time, since an index believes it only if the entry is there. A
/// hint that is out of date, or any other number, costs time and finds nothing that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hint(u64);

impl Hint {
    /// Bits of a hint.
    pub const BITS: u32 = 48;
    /// Bits of a slot.
    pub(super) const SLOT_BITS: u32 = 5;
    /// Bits of the number of a node.
    pub(super) const NODE_BITS: u32 = Hint::BITS - Hint::SLOT_BITS;

    #[inline]
    pub(super) fn new(node: u64, slot: usize) -> Hint {
        debug_assert!(node < 1 << Hint::NODE_BITS && slot < 1 << Hint::SLOT_BITS);
        Hint(node << Hint::SLOT_BITS | slot as u64)
    }

    /// The hint of these 48 bits; higher ones are ignored.
    #[inline]
    pub fn from_bits(bits: u64) -> Hint {
        Hint(bits & ((1 << Hint::BITS) - 1))
    }

    /// The hint as a number below `1 << 48`.
    #[inline]
    pub fn bits(self) -> u64 {
        self.0
    }

    #[inline]
    pub(super) fn node(self) -> u64 {
        self.0 >> Hint::SLOT_BITS
    }

    #[inline]
    pub(super) fn slot(self) -> usize {
        (self.0 & ((1 << Hint::SLOT_BITS) - 1)) as usize
    }
}
