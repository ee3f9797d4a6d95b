//! Removing keys, and the nodes that are then empty (EuroSys'12, section 4.6.5).
//!
//! Nodes are not merged, but an empty one goes, and with it the inner nodes that have no other child. Its
//! slices become those of the next child to the left below the same parent; of a first child, those of the
//! next to the right. No other node is for fewer slices than before, so a reader on the way to one need not
//! begin again. The first border node of a layer stays, and with it the left edge, until the layer is empty.

use super::border::Found;
use super::descend::Leaf;
use super::nodes::Link;
use super::tree::Masstree;
use crate::epoch::Guard;
use crate::sync::Waiter;
use crate::sync::atomic::Ordering;

impl Masstree {
    /// Removes a key, which is perhaps where a hint leads to, and returns its word.
    pub(super) fn remove(&self, guard: &Guard<'_>, key: &[u8], near: Option<u64>) -> Option<u64> {
        let (leaf, border) = self.lock_near(guard, key, near);
        let Found::Word { slot, word } = leaf.found else {
            border.version.unlock();
            return None;
        };
        self.count.add(leaf.number.into(), -1);
        let mut removed = Vec::new();
        self.free_slot(guard, key, &leaf, slot, &mut removed);
        // Without a lock: this may have to release nodes that others have retired.
        removed.into_iter().for_each(|node| self.nodes.retire(guard, node));
        Some(word)
    }

    /// Frees a slot of the locked border node of a key, and with it all nodes and layers that are empty then:
    /// these nodes are to be retired. Unlocks the node.
    fn free_slot(&self, guard: &Guard<'_>, key: &[u8], leaf: &Leaf, slot: usize, removed: &mut Vec<Link>) {
        let (mut offset, mut number, mut slot) = (leaf.offset, leaf.number, slot);
        loop {
            let border = self.nodes.border(number);
            let left = border.remove(slot);
            let unused = border.drop_suffixes(guard);
            let is_first = border.prev.load(Ordering::Acquire) == 0;
            let is_only = is_first && border.next.load(Ordering::Relaxed) == 0;
            if left == 0 && !is_first {
                self.remove_border(number, removed);
            } else {
                border.version.unlock();
            }
            self.nodes.retire_suffixes(guard, unused);
            // Perhaps the layer is empty: if this was its last key, or the last node that the nodes above
            // knew.
            if left > 0 || is_first && !is_only || offset == 0 {
                return;
            }
            let prefix = key.get(..offset).unwrap_or_default();
            let Some(link) = self.remove_empty_layer(guard, prefix, removed) else { return };
            (number, slot, offset) = (link.number, link.slot, link.offset);
        }
    }

    /// Takes an empty border node that is not the first of its layer, and is locked, out of the tree.
    #[cold]
    fn remove_border(&self, number: u32, removed: &mut Vec<Link>) {
        self.unlink(number);
        let bottom = Link::border(number);
        // Nodes for which this was the only child go with it.
        let mut top = bottom;
        let parent = loop {
            // There is one, since the left edge is never taken out in this way.
            let Some(parent) = self.lock_parent(top) else { break None };
            if self.nodes.inner(parent).len() > 0 {
                break Some(parent);
            }
            top = parent;
        };
        if let Some(parent) = parent {
            let inner = self.nodes.inner(parent);
            inner.version.mark_inserting();
            if let Some(rank) = inner.rank_of(top) {
                inner.remove(rank);
            }
            inner.version.unlock();
        }
        self.unlock_edge(bottom, top, Some(removed));
        self.lower_root(removed);
    }

    /// Unlocks the nodes from one up to another one; for ever, if they are removed.
    pub(super) fn unlock_edge(&self, bottom: Link, top: Link, mut removed: Option<&mut Vec<Link>>) {
        let mut node = bottom;
        loop {
            let above = Link::from_bits(self.nodes.parent(node).load(Ordering::Relaxed));
            match &mut removed {
                Some(removed) => {
                    self.nodes.version(node).unlock_dead();
                    removed.push(node);
                }
                None => self.nodes.version(node).unlock(),
            }
            if node == top {
                return;
            }
            node = above;
        }
    }

    /// Takes roots of the first layer away that have no key left: their only child becomes the root. (Other
    /// layers stay as high as they were until they go, since links may name any node of their left edge.)
    fn lower_root(&self, removed: &mut Vec<Link>) {
        loop {
            let root = Link::from_bits(self.root.load(Ordering::Acquire));
            if !root.is_inner() || self.nodes.inner(root).len() > 0 {
                return;
            }
            let child = self.nodes.inner(root).child(0);
            if self.nodes.version(child).lock().is_none() {
                return;
            }
            let parent = self.lock_parent(child);
            // It may have got a key, or another root above it, before it was locked.
            let is_needless = parent == Some(root)
                && self.nodes.inner(root).len() == 0
                && self.root.load(Ordering::Relaxed) == root.bits();
            if is_needless {
                self.nodes.parent(child).store(Link::NONE.bits(), Ordering::Relaxed);
                self.nodes.version(child).set_root(true);
                self.root.store(child.bits(), Ordering::Release);
                self.nodes.version(root).unlock_dead();
            } else if let Some(parent) = parent {
                self.nodes.version(parent).unlock();
            }
            self.nodes.version(child).unlock();
            if !is_needless {
                return;
            }
            removed.push(root);
        }
    }

    /// Takes a locked border node out of the list of its layer.
    fn unlink(&self, number: u32) {
        let border = self.nodes.border(number);
        let mut waiter = Waiter::default();
        loop {
            let before = border.prev.load(Ordering::Acquire);
            let left = self.nodes.border(before);
            if left.version.lock().is_some() {
                // It changes only under the lock of the node that it names.
                if border.prev.load(Ordering::Acquire) == before {
                    let next = border.next.load(Ordering::Relaxed);
                    left.next.store(next, Ordering::Release);
                    if next != 0 {
                        self.nodes.border(next).prev.store(before, Ordering::Release);
                    }
                    left.version.unlock();
                    return;
                }
                left.version.unlock();
            }
            waiter.wait();
        }
    }
}
