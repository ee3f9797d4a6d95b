//! The nodes of the tree, and the way from one to its child.

use super::leaf::Leaf;
use super::model::Division;
use super::version::Version;
use crate::sync::atomic::{AtomicPtr, Ordering};
use std::ops::{Range, RangeInclusive};

/// Bytes of a node that must not wait until many have left.
const MUCH: usize = 16 << 10;

/// A node. Pointers lead to nodes that an epoch keeps, or that the holder of a lock keeps in the tree.
pub(super) enum Node {
    Inner(Inner),
    Leaf(Leaf),
}

/// An inner node. Its lock is held by those who change a child. Readers look at nothing but the child: one
/// that has left the tree says so, or leads to one that does.
pub(super) struct Inner {
    pub(super) version: Version,
    pub(super) route: Route,
    /// The slices that lead here.
    pub(super) range: RangeInclusive<u64>,
    /// Neighbours may be the same child.
    children: Box<[AtomicPtr<Node>]>,
}

/// Where the children of an inner node begin.
pub(super) enum Route {
    /// At equal distances.
    Equal(Division),
    /// At these slices, all but the first: where equal distances would leave most keys together.
    Sorted(Box<[u64]>),
}

impl Route {
    /// Children.
    pub(super) fn children(&self) -> usize {
        match self {
            Route::Equal(division) => division.children(),
            Route::Sorted(firsts) => firsts.len() + 1,
        }
    }

    /// The child for a slice.
    #[inline]
    pub(super) fn child_of(&self, slice: u64) -> usize {
        match self {
            Route::Equal(division) => division.child_of(slice),
            Route::Sorted(firsts) => firsts.partition_point(|first| *first <= slice),
        }
    }

    /// The lowest slice that leads to a child, not the first one; nothing if none is as high.
    pub(super) fn first_of(&self, child: usize) -> Option<u64> {
        match self {
            Route::Equal(division) => division.first_of(child),
            Route::Sorted(firsts) => firsts.get(child - 1).copied(),
        }
    }
}

impl Inner {
    /// An inner node with a child for each of the route.
    pub(super) fn new(
        route: Route,
        range: RangeInclusive<u64>,
        children: impl Iterator<Item = *mut Node>,
    ) -> Inner {
        let children: Box<[_]> = children.map(AtomicPtr::new).collect();
        debug_assert_eq!(children.len(), route.children());
        Inner { version: Version::new(), route, range, children }
    }

    /// The child for a slice.
    #[inline]
    pub(super) fn child_of(&self, slice: u64) -> *mut Node {
        self.child(self.route.child_of(slice))
    }

    /// The child of this number.
    #[inline]
    pub(super) fn child(&self, child: usize) -> *mut Node {
        self.children[child].load(Ordering::Acquire)
    }

    /// All numbers of a child that the holder of the lock has seen.
    pub(super) fn numbers_of(&self, node: *const Node, slice: u64) -> Range<usize> {
        let at = self.route.child_of(slice);
        let is_it = |child: &usize| std::ptr::eq(self.child(*child), node);
        let before = (0..at).rev().take_while(is_it).count();
        let behind = (at..self.children.len()).take_while(is_it).count();
        at - before..at + behind
    }

    /// Sets children. The caller holds the lock.
    pub(super) fn set(&self, children: Range<usize>, node: *mut Node) {
        self.children[children].iter().for_each(|child| child.store(node, Ordering::Release));
    }

    /// Children, neighbours that are the same once.
    pub(super) fn nodes(&self) -> impl Iterator<Item = *mut Node> {
        let mut before = std::ptr::null_mut();
        (0..self.children.len()).map(|child| self.child(child)).filter(move |child| {
            let is_new = !std::ptr::eq(*child, before);
            before = *child;
            is_new
        })
    }
}

impl Node {
    /// Whether it has much memory, for a node that has left the tree to keep.
    pub(super) fn is_large(&self) -> bool {
        self.bytes() > MUCH || matches!(self, Node::Leaf(leaf) if leaf.slots.are_shared())
    }

    /// Bytes of DRAM, without those of the memory that leaves share.
    pub(super) fn bytes(&self) -> usize {
        let beside = match self {
            Node::Inner(inner) => {
                let firsts = match &inner.route {
                    Route::Equal(_) => 0,
                    Route::Sorted(firsts) => size_of_val::<[u64]>(firsts),
                };
                firsts + size_of_val::<[AtomicPtr<Node>]>(&inner.children)
            }
            Node::Leaf(leaf) => leaf.bytes(),
        };
        size_of::<Node>() + beside
    }
}
