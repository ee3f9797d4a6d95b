//! Inner nodes: from a slice to the child that is for it.

use super::arena::Node;
use super::nodes::Link;
use super::version::Version;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::sync::point;

/// Keys of an inner node.
pub(super) const KEYS: usize = 15;

/// An inner node: `len` keys and one child more. A child is for the slices from the key before it, inclusive,
/// to the key behind it, exclusive. Beyond `len` the keys are the highest number, and the children are stale.
#[repr(C, align(16))]
pub(super) struct Inner {
    pub(super) version: Version,
    /// The inner node above; none in a root. Protected by the lock of the parent, in a root by its own.
    pub(super) parent: AtomicU32,
    len: AtomicU32,
    keys: [AtomicU64; KEYS],
    children: [AtomicU32; KEYS + 1],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Inner>() == 208);

// SAFETY: atomics are valid if all their bytes are zero, and need no drop.
unsafe impl Node for Inner {
    #[cfg(loom)]
    fn new() -> Inner {
        Inner {
            version: Version::new(),
            parent: AtomicU32::new(0),
            len: AtomicU32::new(0),
            keys: Default::default(),
            children: Default::default(),
        }
    }
}

impl Inner {
    /// Keys; the children are one more.
    #[inline]
    pub(super) fn len(&self) -> usize {
        (self.len.load(Ordering::Relaxed) as usize).min(KEYS)
    }

    /// The key at this rank.
    #[inline(always)]
    pub(super) fn key(&self, rank: usize) -> u64 {
        self.keys[rank].load(Ordering::Relaxed)
    }

    fn set_key(&self, rank: usize, key: u64) {
        self.keys[rank].store(key, Ordering::Relaxed);
    }

    /// The child at this rank.
    #[inline(always)]
    pub(super) fn child(&self, rank: usize) -> Link {
        Link::from_bits(self.children[rank].load(Ordering::Relaxed))
    }

    /// The child that is for this slice. No branch depends on the keys, so that the processor runs ahead to
    /// the next node, and to the next lookup.
    #[inline(always)]
    pub(super) fn child_of(&self, slice: u64) -> Link {
        let len = self.len();
        let not_above = |rank: usize| usize::from(self.key(rank) <= slice);
        // Halved four times, since the keys are fifteen.
        let mut below = not_above(7) * 8;
        below += not_above(below + 3) * 4;
        below += not_above(below + 1) * 2;
        below += not_above(below);
        point();
        // The keys beyond `len` are the highest number, and count only for that slice, for which all do.
        self.child(below.min(len))
    }

    /// Which child this is. The caller holds the lock.
    pub(super) fn rank_of(&self, child: Link) -> Option<usize> {
        (0..=self.len()).find(|rank| self.child(*rank) == child)
    }

    /// Fills a node that nobody else knows yet.
    pub(super) fn fill(&self, parent: Link, keys: &[u64], children: &[Link]) {
        self.parent.store(parent.bits(), Ordering::Relaxed);
        self.set(keys, children);
    }

    /// Sets keys and children. The caller holds the lock and has marked the node, or is alone with it.
    pub(super) fn set(&self, keys: &[u64], children: &[Link]) {
        debug_assert!(keys.len() <= KEYS && children.len() == keys.len() + 1);
        let padded = keys.iter().copied().chain(std::iter::repeat(u64::MAX));
        self.keys.iter().zip(padded).for_each(|(place, key)| place.store(key, Ordering::Relaxed));
        point();
        let places = self.children.iter().zip(children);
        places.for_each(|(place, child)| place.store(child.bits(), Ordering::Relaxed));
        self.len.store(keys.len() as u32, Ordering::Relaxed);
    }

    /// Lets a child be for the slices from `key` on that were its left neighbour's, which stands at `rank`.
    /// There is room; the caller holds the lock and has marked the node.
    pub(super) fn insert(&self, rank: usize, key: u64, child: Link) {
        let len = self.len();
        for at in (rank..len).rev() {
            self.set_key(at + 1, self.key(at));
            self.children[at + 2].store(self.child(at + 1).bits(), Ordering::Relaxed);
        }
        self.set_key(rank, key);
        point();
        self.children[rank + 1].store(child.bits(), Ordering::Relaxed);
        self.len.store(len as u32 + 1, Ordering::Relaxed);
    }

    /// Forgets a child: its slices go to the child to the left, those of the first child to the one to the
    /// right. One at least is left; the caller holds the lock and has marked the node.
    pub(super) fn remove(&self, rank: usize) {
        let len = self.len();
        for at in rank.max(1)..len {
            self.set_key(at - 1, self.key(at));
        }
        point();
        for at in rank..len {
            self.children[at].store(self.child(at + 1).bits(), Ordering::Relaxed);
        }
        self.set_key(len - 1, u64::MAX);
        self.len.store(len as u32 - 1, Ordering::Relaxed);
    }
}
