//! The way down, without locks: through the inner nodes of a layer by the slice, and through the layers by
//! the key (EuroSys'12, section 4.6.3).
//!
//! A reader takes the version of a child before it looks again whether the parent, which named that child,
//! has changed. So at every moment it holds a node that was for its slice when it took the version. If that
//! node becomes one for fewer slices after that, its version says so.

use super::border::{Border, Found};
use super::key::Piece;
use super::nodes::{Link, NodeOf};
use super::tree::Masstree;
use super::version::Seen;
use crate::epoch::Guard;
use crate::sync::Waiter;
use crate::sync::atomic::Ordering;
use std::cell::Cell;

/// Counts inner nodes that the calling thread has visited.
#[inline]
pub(super) fn count_visited(inner_nodes: u64) {
    INNER_NODES_VISITED.set(INNER_NODES_VISITED.get() + inner_nodes);
}

thread_local! {
    /// Inner nodes at which this thread has looked for a child.
    static INNER_NODES_VISITED: Cell<u64> = const { Cell::new(0) };
}

/// Inner nodes at which the calling thread has looked for a child, in all indexes since it began.
pub fn inner_nodes_visited() -> u64 {
    INNER_NODES_VISITED.get()
}

/// Where a lookup has ended.
#[derive(Clone, Copy)]
pub(super) struct Leaf {
    /// The border node.
    pub(super) number: u32,
    /// Its version, at which `found` was there.
    pub(super) seen: Seen,
    /// Bytes of the key before its layer.
    pub(super) offset: usize,
    /// The result of the search there: no layer, unless that is asked for.
    pub(super) found: Found,
}

impl Leaf {
    /// The word, if there is one.
    fn word(&self) -> Option<u64> {
        if let Found::Word { word, .. } = self.found { Some(word) } else { None }
    }
}

impl Masstree {
    /// The word of a key.
    #[inline]
    pub(super) fn word_of(&self, guard: &Guard<'_>, key: &[u8]) -> Option<u64> {
        // The straight way: in the first layer, while nobody is in the way.
        let (root, piece) = (Link::from_bits(self.root.load(Ordering::Acquire)), Piece::at(key, 0));
        if let Some((number, border, seen)) = self.descend(root, &piece) {
            let found = border.search(self.nodes.shorts(number), guard, &piece);
            if !border.version.has_changed(seen) {
                return match found {
                    Found::Word { word, .. } => Some(word),
                    Found::Layer { link, .. } => self.word_below(guard, key, link),
                    Found::Other { .. } | Found::Nothing => None,
                };
            }
        }
        self.find(guard, key).word()
    }

    /// The word of a key whose first slice leads to this layer.
    #[inline(never)]
    fn word_below(&self, guard: &Guard<'_>, key: &[u8], layer: Link) -> Option<u64> {
        let leaf = self.walk_from::<false>(guard, key, layer, super::key::SLICE);
        leaf.unwrap_or_else(|| self.find(guard, key)).word()
    }

    /// Searches the index for a key.
    #[inline(never)]
    pub(super) fn find(&self, guard: &Guard<'_>, key: &[u8]) -> Leaf {
        self.walk::<false>(guard, key)
    }

    /// Searches the index for a key. With `REPAIR`, links on the way that no longer name the roots of their
    /// layers are set right, under a lock.
    #[inline]
    pub(super) fn walk<const REPAIR: bool>(&self, guard: &Guard<'_>, key: &[u8]) -> Leaf {
        let mut waiter = Waiter::default();
        loop {
            let first = Link::from_bits(self.root.load(Ordering::Acquire));
            if let Some(leaf) = self.walk_from::<REPAIR>(guard, key, first, 0) {
                return leaf;
            }
            waiter.wait();
        }
    }

    /// Goes through the layers, beginning with this one, which has the bytes of the key from `offset` on;
    /// nothing if one of them has gone meanwhile.
    #[inline]
    fn walk_from<const REPAIR: bool>(
        &self,
        guard: &Guard<'_>,
        key: &[u8],
        first: Link,
        offset: usize,
    ) -> Option<Leaf> {
        let (mut layer, mut offset) = (first, offset);
        loop {
            let piece = Piece::at(key, offset);
            let (number, seen, found) = self.find_in_layer(guard, layer, &piece)?;
            let Found::Layer { slot, link } = found else {
                return Some(Leaf { number, seen, offset, found });
            };
            layer = if REPAIR { self.repair(number, seen, slot, link)? } else { link };
            offset += super::key::SLICE;
        }
    }

    /// Searches a layer for a piece of a key: the border node, the version that was seen, and the result.
    #[inline]
    pub(super) fn find_in_layer(
        &self,
        guard: &Guard<'_>,
        layer: Link,
        piece: &Piece<'_>,
    ) -> Option<(u32, Seen, Found)> {
        let mut waiter = Waiter::default();
        loop {
            let (number, border, mut seen) = self.descend(layer, piece)?;
            loop {
                let found = border.search(self.nodes.shorts(number), guard, piece);
                if !border.version.has_changed(seen) {
                    return Some((number, seen, found));
                }
                let now = border.version.stable();
                if now.has_left(seen) {
                    break;
                }
                seen = now;
            }
            waiter.wait();
        }
    }

    /// The border node of a layer that is for the slice of this piece, and its version; nothing if the layer
    /// has gone. `layer` is its root, or was once.
    #[inline]
    pub(super) fn descend(&self, layer: Link, piece: &Piece<'_>) -> Option<(u32, &Border, Seen)> {
        let mut waiter = Waiter::default();
        loop {
            let (mut link, mut node, mut seen) = self.root_of(layer)?;
            let mut visited = 0;
            while let NodeOf::Inner(inner) = node {
                visited += 1;
                let below = inner.child_of(piece.slice);
                let child = self.nodes.get(below);
                self.nodes.prefetch_for((below, child), piece);
                let child_seen = child.version().stable();
                if inner.version.has_changed(seen) {
                    let now = inner.version.stable();
                    if now.has_left(seen) {
                        break;
                    }
                    seen = now;
                } else if child_seen.is_live() {
                    (link, node, seen) = (below, child, child_seen);
                } else {
                    break;
                }
            }
            count_visited(visited);
            if let NodeOf::Border(border) = node {
                return Some((link.number(), border, seen));
            }
            waiter.wait();
        }
    }

    /// The root of a layer and its version, from its present or an old root; nothing if the layer has gone.
    ///
    /// An old root stays at the left edge of its layer, as long as the layer does; above it is the root.
    #[inline]
    pub(super) fn root_of(&self, layer: Link) -> Option<(Link, NodeOf<'_>, Seen)> {
        let mut link = layer;
        loop {
            let node = self.nodes.get(link);
            let seen = node.version().stable();
            if !seen.is_live() {
                return None;
            }
            if seen.is_root() {
                return Some((link, node, seen));
            }
            link = Link::from_bits(node.parent().load(Ordering::Acquire));
        }
    }

    /// The root of the layer of a link. An old link is set right, unless another writer is in the way.
    fn repair(&self, number: u32, seen: Seen, slot: usize, link: Link) -> Option<Link> {
        let (root, ..) = self.root_of(link)?;
        if root != link {
            let border = self.nodes.border(number);
            // The version is the same, so the slot has the link, or has been freed and not used again.
            if border.version.try_lock(seen) {
                border.set_word(slot, u64::from(root.bits()));
                border.version.unlock();
            }
        }
        Some(root)
    }

    /// The border node of a key, locked, and the result of the search there: no layer.
    #[inline]
    pub(super) fn lock(&self, guard: &Guard<'_>, key: &[u8]) -> (Leaf, &Border) {
        let mut waiter = Waiter::default();
        loop {
            let leaf = self.walk::<true>(guard, key);
            let border = self.nodes.border(leaf.number);
            if let Some(now) = border.version.lock() {
                if !now.has_left(leaf.seen) {
                    let shorts = self.nodes.shorts(leaf.number);
                    let found = border.search(shorts, guard, &Piece::at(key, leaf.offset));
                    if !matches!(found, Found::Layer { .. }) {
                        return (Leaf { found, ..leaf }, border);
                    }
                }
                border.version.unlock();
            }
            waiter.wait();
        }
    }

    /// The first border node of a layer, or of one that has gone.
    pub(super) fn leftmost(&self, layer: Link) -> u32 {
        let mut node = layer;
        // The first child of a node at the left edge never changes.
        while node.is_inner() {
            node = self.nodes.inner(node).child(0);
        }
        node.number()
    }

    /// Locks the parent of a locked node; nothing if that is a root.
    pub(super) fn lock_parent(&self, node: Link) -> Option<Link> {
        let mut waiter = Waiter::default();
        loop {
            let parent = Link::from_bits(self.nodes.parent(node).load(Ordering::Acquire));
            if parent == Link::NONE {
                return None;
            }
            let version = &self.nodes.inner(parent).version;
            if version.lock().is_some() {
                // It changes only under the lock of the parent.
                if self.nodes.parent(node).load(Ordering::Acquire) == parent.bits() {
                    return Some(parent);
                }
                version.unlock();
            }
            waiter.wait();
        }
    }
}
