//! Leaves whose keys go become smaller, and neighbours with few keys become one: an index without keys is one
//! leaf again.
//!
//! A leaf without keys, or with four times the slots of its keys, is *sparse*. The writer that has made it
//! so gives its lock back and builds it anew with fewer slots, together with a neighbour below the same
//! parent if both have few keys. Where that leaves a parent with one child, the child takes its place. An
//! empty leaf stays where its neighbours are inner nodes, or have many keys. Its memory is that of a few
//! slots.
//!
//! *Locks.* The leaf and then its parent are locked, upwards as `grow` does, so nobody else replaces a child
//! of the parent. The neighbour is below the parent: a thread that has its lock may wait for the parent's.
//! So its lock is only tried. If another thread has it, all locks are given back for a moment.
//!
//! *Threads at work there.* The words are taken out under the mark of both leaves, as by `grow`: a change
//! of a word without a lock fails, and readers wait. The parent leads to the new leaf before the two old
//! ones say that they have left. So writers that wait for their locks, and readers that have seen them, find
//! their way anew, to the new leaf. The parent says so too when its child has taken its place. A thread that
//! passes it meanwhile comes to that child, or to one that has left and says so.

use super::build::{Builder, slots_for};
use super::grow::{Left, Parent, leave};
use super::leaf::{Entry, Form, LEAST_SLOTS, Leaf, Room};
use super::node::{Inner, Node};
use super::tree::{Size, Tree, counted};
use crate::epoch::Guard;
use crate::sync::Waiter;
use crate::twin;
use std::ops::{Range, RangeInclusive};

/// The outcome of a try to contract a leaf.
enum Contracted {
    /// There is another leaf in its place.
    Done,
    /// There is nothing to do.
    Not,
    /// Another thread has the lock of a neighbour.
    Busy,
}

/// A leaf beside another one, below the same parent.
enum Neighbour<'p> {
    Locked(*mut Node, &'p Leaf),
    /// Another thread has its lock.
    Busy,
    /// None has few keys.
    None,
}

impl Leaf {
    /// Whether it would be much smaller if it were built anew.
    pub(super) fn can_shrink(&self) -> bool {
        2 * slots_for(self.len()).max(LEAST_SLOTS) <= self.slots.len()
    }

    /// Whether another form is due, since keys have gone.
    pub(super) fn is_sparse(&self) -> bool {
        let n = self.len();
        n == 0 || 4 * n < self.slots.len() && self.can_shrink()
    }
}

impl Builder {
    /// Whether neighbours with so many keys together are to be one leaf. They are far from being cut.
    fn are_few(&self, keys: usize) -> bool {
        slots_for(keys) <= self.most_slots / 4
    }
}

impl Tree {
    /// Contracts the leaf of a slice, if it is sparse, and the one that takes its place. The caller holds no
    /// lock of the tree.
    #[cold]
    pub(super) fn contract(&self, guard: &Guard<'_>, slice: u64, size: &Size) {
        let mut waiter = Waiter::default();
        while !self.has_gone() {
            let (node, leaf) = self.leaf(guard, slice);
            if !leaf.version.lock() {
                continue;
            }
            if !leaf.is_sparse() {
                leaf.version.unlock();
                return;
            }
            match self.contract_locked(guard, (node, leaf), size) {
                Contracted::Done => {}
                Contracted::Not => return,
                Contracted::Busy => waiter.wait(),
            }
        }
    }

    /// Contracts a leaf, whose lock the caller holds. It is given back.
    fn contract_locked(
        &self,
        guard: &Guard<'_>,
        (node, leaf): (*mut Node, &Leaf),
        size: &Size,
    ) -> Contracted {
        let first = *leaf.range.start();
        let parent = self.parent_of(guard, node, first);
        let numbers = match &parent {
            Parent::Root(_) => 0..1,
            Parent::Inner(_, inner) => inner.numbers_of(node, first),
        };
        let neighbour = match &parent {
            Parent::Root(_) => Neighbour::None,
            Parent::Inner(_, inner) => neighbour_of(inner, &numbers, leaf.len(), &size.builder),
        };
        let mut left = vec![Left(node)];
        match neighbour {
            Neighbour::None if leaf.can_shrink() => {
                let smaller = smaller(&leaf.take_all(), leaf.range.clone(), leaf.room(), size);
                self.put_in_place(&parent, node, first, smaller);
                leaf.version.unlock_obsolete();
                self.end_contraction(guard, parent, &numbers, &mut left);
            }
            Neighbour::Locked(other_node, other) => {
                let Parent::Inner(_, inner) = &parent else { unreachable!("the root has no neighbour") };
                let others = inner.numbers_of(other_node, *other.range.start());
                let numbers = numbers.start.min(others.start)..numbers.end.max(others.end);
                let (low, high) =
                    if other.range.start() < leaf.range.start() { (other, leaf) } else { (leaf, other) };
                let mut entries = low.take_all();
                entries.append(&mut high.take_all());
                let range = *low.range.start()..=*high.range.end();
                inner.set(numbers.clone(), smaller(&entries, range, Room::Evenly, size));
                leaf.version.unlock_obsolete();
                match twin!(MergedUntold) {
                    false => other.version.unlock_obsolete(),
                    true => other.version.unlock(),
                }
                left.push(Left(other_node));
                self.end_contraction(guard, parent, &numbers, &mut left);
            }
            Neighbour::None | Neighbour::Busy => {
                leaf.version.unlock();
                parent.unlock();
                return if matches!(neighbour, Neighbour::Busy) { Contracted::Busy } else { Contracted::Not };
            }
        }
        leave(guard, left, size);
        Contracted::Done
    }

    /// Gives the lock of a parent back, one of whose children is new and has these numbers. If it is the only
    /// one, it takes the place of the parent.
    fn end_contraction(
        &self,
        guard: &Guard<'_>,
        parent: Parent<'_>,
        numbers: &Range<usize>,
        left: &mut Vec<Left>,
    ) {
        let Parent::Inner(own, inner) = parent else { return parent.unlock() };
        if numbers.len() < inner.route.children() {
            return inner.version.unlock();
        }
        // Nobody else replaces the child, since the lock of its parent is held up to here.
        let first = *inner.range.start();
        let grandparent = self.parent_of(guard, own, first);
        self.put_in_place(&grandparent, own, first, inner.child(0));
        inner.version.unlock_obsolete();
        grandparent.unlock();
        left.push(Left(own));
    }
}

/// A leaf beside the children of these numbers, locked, if it has few keys together with these.
fn neighbour_of<'p>(
    inner: &'p Inner,
    numbers: &Range<usize>,
    keys: usize,
    builder: &Builder,
) -> Neighbour<'p> {
    let mut is_busy = false;
    let before = numbers.start.checked_sub(1);
    let behind = Some(numbers.end).filter(|child| *child < inner.route.children());
    for child in [before, behind].into_iter().flatten() {
        let node = inner.child(child);
        // SAFETY: a child of a node whose lock is held, so it stays in the tree for as long.
        let Node::Leaf(leaf) = (unsafe { &*node }) else { continue };
        if !builder.are_few(keys + leaf.len()) {
            continue;
        }
        if !twin!(NeighbourNotLocked) && !leaf.version.try_lock() {
            is_busy = true;
        } else if builder.are_few(keys + leaf.len()) {
            return Neighbour::Locked(node, leaf);
        } else {
            leaf.version.unlock();
        }
    }
    if is_busy { Neighbour::Busy } else { Neighbour::None }
}

/// A leaf on its way into the tree, with as many slots as its entries need.
fn smaller(entries: &[Entry], range: RangeInclusive<u64>, room: Room, size: &Size) -> *mut Node {
    let slots = size.builder.slots_for(entries.len(), room);
    let leaf = size.builder.leaf(entries, range, slots, (room, Form::Cheapest));
    counted(Box::new(Node::Leaf(leaf)), size)
}
