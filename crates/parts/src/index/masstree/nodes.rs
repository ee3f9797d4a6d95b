//! All nodes of an index: the two arenas, the suffixes beside the border nodes, and the links between nodes.

use super::arena::{Arena, NUMBERS};
use super::border::Border;
use super::inner::Inner;
use super::key::Piece;
use super::short::{Area, Shorts};
use super::suffix::Suffixes;
use super::version::Version;
use crate::epoch::Guard;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use quipu_medium::{LINE, arch};
use std::sync::Arc;

/// A node of either type: its number, and in the highest bit its type. Zero is an unused border node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link(u32);

/// Set in the links of inner nodes.
const INNER: u32 = NUMBERS;

impl Link {
    /// No node.
    pub(super) const NONE: Link = Link(0);

    /// The border node of this number.
    #[inline]
    pub(super) fn border(number: u32) -> Link {
        Link(number)
    }

    #[inline]
    pub(super) fn from_bits(bits: u32) -> Link {
        Link(bits)
    }

    #[inline]
    pub(super) fn bits(self) -> u32 {
        self.0
    }

    /// Whether it names an inner node.
    #[inline]
    pub(super) fn is_inner(self) -> bool {
        self.0 & INNER != 0
    }

    /// The number in the arena of its type.
    #[inline]
    pub(super) fn number(self) -> u32 {
        self.0 & !INNER
    }
}

/// A node that has been looked up.
#[derive(Clone, Copy)]
pub(super) enum NodeOf<'n> {
    Inner(&'n Inner),
    Border(&'n Border),
}

impl<'n> NodeOf<'n> {
    #[inline]
    pub(super) fn version(self) -> &'n Version {
        match self {
            NodeOf::Inner(inner) => &inner.version,
            NodeOf::Border(border) => &border.version,
        }
    }

    #[inline]
    pub(super) fn parent(self) -> &'n AtomicU32 {
        match self {
            NodeOf::Inner(inner) => &inner.parent,
            NodeOf::Border(border) => &border.parent,
        }
    }
}

/// The nodes of an index, their short suffixes, and the blocks of longer suffixes that they name. Retired
/// ones keep this alive.
pub(super) struct Nodes {
    borders: Arena<Border>,
    shorts: Area,
    inners: Arena<Inner>,
    /// Bytes of the blocks, those that wait for their readers included.
    suffix_bytes: AtomicU64,
}

impl Nodes {
    pub(super) fn new() -> Nodes {
        Nodes {
            borders: Arena::new(),
            shorts: Area::new(),
            inners: Arena::new(),
            suffix_bytes: AtomicU64::new(0),
        }
    }

    /// A border node by its number.
    #[inline]
    pub(super) fn border(&self, number: u32) -> &Border {
        self.borders.get(number)
    }

    /// A border node by a number that may be anything.
    #[inline]
    pub(super) fn find_border(&self, number: u32) -> Option<&Border> {
        self.borders.find(number)
    }

    /// The short suffixes of a border node.
    #[inline]
    pub(super) fn shorts(&self, number: u32) -> Shorts<'_> {
        Shorts::of(&self.shorts, number)
    }

    /// Asks for the lines of a node, to which this link leads, that a lookup of this piece of a key reads.
    #[inline(always)]
    pub(super) fn prefetch_for(&self, (link, node): (Link, NodeOf<'_>), piece: &Piece<'_>) {
        match node {
            NodeOf::Inner(inner) => prefetch(inner),
            NodeOf::Border(border) => self.prefetch_border(border, link.number(), piece.has_short_suffix()),
        }
    }

    /// Asks for the lines of a border node, and for those of its short suffixes.
    #[inline(always)]
    pub(super) fn prefetch_border(&self, border: &Border, number: u32, with_shorts: bool) {
        prefetch(border);
        if with_shorts {
            self.shorts(number).prefetch();
        }
    }

    /// The inner node of a link to one.
    #[inline]
    pub(super) fn inner(&self, link: Link) -> &Inner {
        self.inners.get(link.number())
    }

    /// The node of a link.
    #[inline]
    pub(super) fn get(&self, link: Link) -> NodeOf<'_> {
        if link.is_inner() {
            NodeOf::Inner(self.inner(link))
        } else {
            NodeOf::Border(self.border(link.number()))
        }
    }

    #[inline]
    pub(super) fn version(&self, link: Link) -> &Version {
        self.get(link).version()
    }

    #[inline]
    pub(super) fn parent(&self, link: Link) -> &AtomicU32 {
        self.get(link).parent()
    }

    /// Whether an operation that needs new nodes may begin.
    pub(super) fn has_room(&self) -> bool {
        self.borders.has_room() && self.inners.has_room()
    }

    /// A border node that nobody else knows: locked, empty, without neighbours and parent.
    pub(super) fn new_border(&self) -> (u32, &Border) {
        let number = self.borders.allocate();
        let border = self.border(number);
        border.clear();
        border.version.revive();
        (number, border)
    }

    /// An inner node that nobody else knows: locked.
    pub(super) fn new_inner(&self, parent: Link, keys: &[u64], children: &[Link]) -> (Link, &Inner) {
        let link = Link(self.inners.allocate() | INNER);
        let inner = self.inner(link);
        inner.fill(parent, keys, children);
        inner.version.revive();
        (link, inner)
    }

    /// The address of a block of suffixes, for a border node to name.
    pub(super) fn new_suffixes<'s>(&self, suffixes: impl Iterator<Item = (usize, &'s [u8])> + Clone) -> u64 {
        let block = Suffixes::new(suffixes);
        self.suffix_bytes.fetch_add(block.bytes(), Ordering::Relaxed);
        block.address()
    }

    /// Gives a node back that has been taken out of the tree, once nobody can be at it any more.
    pub(super) fn retire(self: &Arc<Nodes>, guard: &Guard<'_>, link: Link) {
        let nodes = Arc::clone(self);
        guard.defer(Box::new(move || {
            if link.is_inner() {
                nodes.inners.free(link.number());
            } else {
                nodes.borders.free(link.number());
            }
        }));
    }

    /// Frees a block that no node names any more, once nobody can be reading it.
    pub(super) fn retire_suffixes(self: &Arc<Nodes>, guard: &Guard<'_>, block: Option<Suffixes<'_>>) {
        let Some(address) = block.map(Suffixes::address) else { return };
        let nodes = Arc::clone(self);
        guard.defer(Box::new(move || {
            // SAFETY: no node names it, its readers are gone, and this is done once.
            unsafe { nodes.free_suffixes(address) };
        }));
    }

    /// # Safety
    /// As for [`Suffixes::free`], if the address is not zero.
    unsafe fn free_suffixes(&self, address: u64) {
        // SAFETY: the caller's word.
        let Some(block) = (unsafe { Suffixes::from_address(address) }) else { return };
        self.suffix_bytes.fetch_sub(block.bytes(), Ordering::Relaxed);
        // SAFETY: the caller's word.
        unsafe { block.free() };
    }

    /// Border nodes and inner nodes in use, those that wait for their readers included.
    pub(super) fn in_use(&self) -> (u64, u64) {
        (self.borders.in_use(), self.inners.in_use())
    }

    /// Bytes of the blocks of suffixes.
    pub(super) fn suffix_bytes(&self) -> u64 {
        self.suffix_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of everything, with the two counters of the shared pointer.
    pub(super) fn bytes(&self) -> u64 {
        let own = size_of::<Nodes>() + 2 * size_of::<usize>();
        own as u64 + self.borders.bytes() + self.shorts.bytes() + self.inners.bytes() + self.suffix_bytes()
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        if self.suffix_bytes() == 0 {
            return;
        }
        let addresses: Vec<u64> = self.borders.each().map(Border::suffix_address).collect();
        for address in addresses {
            // SAFETY: nobody has the index any more, and no other node names the block.
            unsafe { self.free_suffixes(address) };
        }
    }
}

#[inline]
fn prefetch<T>(node: &T) {
    let first = std::ptr::from_ref(node).cast::<u8>();
    (0..size_of::<T>()).step_by(LINE as usize).for_each(|at| arch::prefetch(first.wrapping_add(at)));
}
