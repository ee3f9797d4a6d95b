//! Layers come when two keys go on after the same slice, and go when their last key does.
//!
//! A layer that is empty has shrunk to its left edge: one border node without a key, and above it inner nodes
//! without a key. The thread that sees this goes down from above once more, since the slot with the link may
//! have moved meanwhile. It removes the layer under the lock of the node with the link. If that node has
//! nothing else, its layer goes with it, and so on upwards; so the locks begin at the last node that has. So
//! locks of several layers are taken downwards, and no holder of a lock of a layer waits for one above it.

use super::border::{Border, Entry, Found};
use super::key::{LONGER, Piece, SLICE};
use super::nodes::Link;
use super::tree::Masstree;
use super::version::Seen;
use crate::epoch::Guard;
use crate::sync::Waiter;
use crate::sync::atomic::Ordering;

/// Where the link to a layer stands.
#[derive(Clone, Copy)]
pub(super) struct LinkPlace {
    /// The border node, and its version when the link was seen.
    pub(super) number: u32,
    seen: Seen,
    pub(super) slot: usize,
    link: Link,
    /// Bytes of the key before the node's layer.
    pub(super) offset: usize,
}

impl Masstree {
    /// Lets two keys that go on after the same slice go on in a layer of their own: the one that stands in
    /// this slot, and a new one. The node is locked, and then unlocked.
    #[cold]
    pub(super) fn add_layer(
        &self,
        guard: &Guard<'_>,
        number: u32,
        slot: usize,
        piece: &Piece<'_>,
        word: u64,
    ) {
        let border = self.nodes.border(number);
        let present = border.entry(self.nodes.shorts(number), guard, slot);
        debug_assert!(present.order() == piece.order(), "a key that goes on after the same slice");
        let link = self.new_layers((present.suffix.bytes(), present.word), (piece.suffix, word));
        border.mark_inserting();
        border.set_layer(slot, link);
        let unused = border.drop_suffixes(guard);
        border.version.unlock();
        self.nodes.retire_suffixes(guard, unused);
    }

    /// Makes as many layers as tell two different keys apart, unpublished; returns the first one's root.
    fn new_layers(&self, (present, old): (&[u8], u64), (added, new): (&[u8], u64)) -> Link {
        let (first, mut border) = self.new_root();
        let mut number = first;
        let mut offset = 0;
        loop {
            let (here, there) = (Piece::at(present, offset), Piece::at(added, offset));
            if here.order() != there.order() || here.rank != LONGER {
                let mut entries = [Entry::of(&here, old), Entry::of(&there, new)];
                entries.sort_unstable_by_key(Entry::order);
                border.fill(&self.nodes, number, &entries);
                border.version.unlock();
                return Link::border(first);
            }
            let (below, root) = self.new_root();
            border.fill(&self.nodes, number, &[Entry::layer(here.slice, Link::border(below))]);
            border.version.unlock();
            (number, border) = (below, root);
            offset += SLICE;
        }
    }

    fn new_root(&self) -> (u32, &Border) {
        let (number, border) = self.nodes.new_border();
        border.version.set_root(true);
        self.layers.fetch_add(1, Ordering::Relaxed);
        (number, border)
    }

    /// Takes the layer away in which keys go on that begin with `prefix`, whole slices of it, if that layer
    /// is empty, and with it those above that have nothing but the link to it. Returns the link to all of
    /// these, its node still locked and its slot still to be freed; the nodes are to be retired.
    pub(super) fn remove_empty_layer(
        &self,
        guard: &Guard<'_>,
        prefix: &[u8],
        removed: &mut Vec<Link>,
    ) -> Option<LinkPlace> {
        let mut waiter = Waiter::default();
        loop {
            if let Some(path) = self.path_to_layer(guard, prefix) {
                let path = path?;
                if self.lock_path(&path) {
                    return self.remove_layers(&path, removed);
                }
            }
            waiter.wait();
        }
    }

    /// The links that lead to a layer: the last one whose node has something else, and those behind it, the
    /// layer's own last. Nothing within if the layer is not there; nothing if the index is changing.
    fn path_to_layer(&self, guard: &Guard<'_>, prefix: &[u8]) -> Option<Option<Vec<LinkPlace>>> {
        let mut path: Vec<LinkPlace> = Vec::new();
        let mut layer = Link::from_bits(self.root.load(Ordering::Acquire));
        for offset in (0..prefix.len()).step_by(SLICE) {
            let piece = Piece { rank: LONGER, ..Piece::at(prefix, offset) };
            let (number, seen, found) = self.find_in_layer(guard, layer, &piece)?;
            let Found::Layer { slot, link } = found else { return Some(None) };
            let is_alone = seen.is_root() && self.nodes.border(number).permutation().len() == 1;
            if offset == 0 || !is_alone {
                path.clear();
            }
            path.push(LinkPlace { number, seen, slot, link, offset });
            layer = link;
        }
        Some(Some(path))
    }

    /// Locks the nodes of a path downwards; not if they are not as they were seen.
    fn lock_path(&self, path: &[LinkPlace]) -> bool {
        for (at, place) in path.iter().enumerate() {
            let border = self.nodes.border(place.number);
            let version = border.version.lock();
            let slots = border.permutation();
            if version == Some(place.seen) && slots.contains(place.slot) && (at == 0 || slots.len() == 1) {
                continue;
            }
            if version.is_some() {
                border.version.unlock();
            }
            self.unlock_path(path.get(..at).unwrap_or_default());
            return false;
        }
        true
    }

    fn unlock_path(&self, path: &[LinkPlace]) {
        path.iter().for_each(|place| self.nodes.border(place.number).version.unlock());
    }

    /// Takes the layers behind the first link of a locked path away, if the last one is empty, and unlocks
    /// all but the node of that link; if it is not, unlocks all.
    fn remove_layers(&self, path: &[LinkPlace], removed: &mut Vec<Link>) -> Option<LinkPlace> {
        let (first, behind) = path.split_first()?;
        let last = behind.last().unwrap_or(first);
        if !self.bury_layer(last.link, removed) {
            self.unlock_path(path);
            return None;
        }
        for place in behind {
            self.nodes.border(place.number).version.unlock_dead();
            removed.push(Link::border(place.number));
        }
        self.layers.fetch_sub(behind.len() as u64, Ordering::Relaxed);
        Some(*first)
    }

    /// Takes all nodes of a layer out of use, if it is empty; says whether it was. The caller holds the lock
    /// of the node with the link.
    fn bury_layer(&self, layer: Link, removed: &mut Vec<Link>) -> bool {
        let number = self.leftmost(layer);
        let border = self.nodes.border(number);
        if border.permutation().len() > 0 || border.version.lock().is_none() {
            return false;
        }
        let bottom = Link::border(number);
        let mut is_empty = border.permutation().len() == 0 && border.next.load(Ordering::Relaxed) == 0;
        let mut top = bottom;
        // Another border node may be empty and still be named by the nodes above. The thread that is about to
        // remove it looks at the layer again afterwards.
        while is_empty && let Some(parent) = self.lock_parent(top) {
            is_empty = self.nodes.inner(parent).len() == 0;
            top = parent;
        }
        self.unlock_edge(bottom, top, is_empty.then_some(removed));
        self.layers.fetch_sub(u64::from(is_empty), Ordering::Relaxed);
        is_empty
    }
}
