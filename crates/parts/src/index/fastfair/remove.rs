//! Empty nodes leave the tree, and are used again.
//!
//! The left sibling takes over the keys of the node, by taking over its link: one change in one line. The
//! pointer in the parent goes first, durably; in between, and after a crash there, the node is one to which
//! only its sibling leads, as after a split. The parent, the left sibling and the node are locked, in this
//! order, which is down and to the right, and nobody else holds a lock while waiting for another. So the node
//! is retired before anybody can find that the parent does not know it.
//!
//! A leftmost child has its left sibling under another parent, and stays while its parent has other children.
//! When it is the only child, the parent goes first, in the same way. So there is at most one empty leaf for
//! every inner node, and the leftmost nodes of the levels, which stay.
//!
//! A thread on the way to a retired node begins again at the root. The number of the node is used again when
//! all such threads are gone (see [`epoch`](crate::epoch)). The paper does not treat empty nodes.

use super::arena::Kind;
use super::key::{Key, KeyBuf};
use super::link::unmarked;
use super::node::{Entry, Node};
use super::settings::Result;
use super::shift::Locked;
use super::tree::{FastFairIndex, Hops};
use crate::epoch::Guard;
use crate::index::words::Words;
use std::cmp::Ordering;
use std::sync::atomic::Ordering as Atomic;

/// The result of removing a node.
enum Removal {
    /// It stays.
    No,
    /// It is out of the tree.
    Yes {
        /// Of an inner node, its only child, to which only the link leads now, and where its keys begin.
        orphan: Option<(KeyBuf, u64)>,
        /// The parent, if it has only one child left.
        lonely: Option<u64>,
    },
}

impl<W: Words> FastFairIndex<W> {
    /// Takes a leaf out of the tree that was seen to be empty, and the nodes above it that have only one
    /// child then. `key` is one of the leaf's.
    pub(super) fn remove_leaf(&self, guard: &Guard<'_>, number: u64, key: &Key<'_>) -> Result<()> {
        let (mut level, mut number) = (0, number);
        loop {
            let Removal::Yes { orphan, lonely } = self.remove_node(guard, level, number, key)? else {
                return Ok(());
            };
            if let Some((separator, child)) = orphan {
                self.complete_if_room(guard, level, &separator.as_key(), child)?;
                if level == 1 && self.arena.node(child, self.arena.first_zone())?.entries()?.is_empty() {
                    return self.remove_leaf(guard, child, key);
                }
            }
            let Some(parent) = lonely else { return Ok(()) };
            (level, number) = (level + 1, parent);
        }
    }

    fn remove_node(&self, guard: &Guard<'_>, level: u32, number: u64, key: &Key<'_>) -> Result<Removal> {
        let mut orphan: Option<(KeyBuf, u64)> = None;
        loop {
            if self.top_level()? <= level {
                return Ok(Removal::No);
            }
            let parent = self.lock(guard, key, level + 1)?;
            let entries = parent.entries()?;
            if parent.leftmost()? != number {
                let removed = self.absorb(guard, &parent, &entries, level, number, key)?;
                drop(parent);
                if let (Removal::No, Some((separator, child))) = (&removed, orphan) {
                    self.complete_if_room(guard, level + 1, &separator.as_key(), child)?;
                }
                return Ok(removed);
            }
            if !entries.is_empty() {
                return Ok(Removal::No);
            }
            let above = parent.number;
            drop(parent);
            match self.remove_node(guard, level + 1, above, key)? {
                Removal::No => return Ok(Removal::No),
                Removal::Yes { orphan: left, .. } => orphan = left,
            }
        }
    }

    /// Lets the left sibling take over a node that is not the parent's leftmost child, if the node is empty.
    fn absorb(
        &self,
        guard: &Guard<'_>,
        parent: &Locked<'_, W>,
        entries: &[Entry],
        level: u32,
        number: u64,
        key: &Key<'_>,
    ) -> Result<Removal> {
        let pointer = entries.iter().position(|entry| unmarked(entry.value) == number);
        let before = match pointer {
            Some(position) => position,
            None => parent.rank(entries, key)?,
        };
        let start =
            before.checked_sub(1).map_or_else(|| parent.leftmost(), |last| parent.child_of(entries[last]))?;
        let start = self.arena.node(start, parent.place)?.of_level(level)?;
        let Some(left) = self.lock_left_of(start, level, number, key)? else { return Ok(Removal::No) };
        let node = self.arena.node(number, parent.place)?.of_level(level)?.lock();
        self.settle(&node)?;
        if node.state.before().is_retired() || !node.entries()?.is_empty() {
            return Ok(Removal::No);
        }
        // All that can fail is done before the first change.
        let leftmost = if level > 0 { Some(node.leftmost()?) } else { None };
        let Some(old_link) = left.link()? else { return Ok(Removal::No) };
        let new_link = node.link()?;
        let mut chunks = self.arena.chunks_of(old_link.key)?;
        let low = self.arena.key(old_link.key)?;
        if let Some(position) = pointer {
            chunks.extend(self.arena.chunks_of(entries[position].key)?);
            parent.vacate(entries[position].slot);
        }
        left.set_link(new_link);
        let orphan = leftmost.map(|child| (low, child));
        node.retire();
        drop(left);
        self.removals.fetch_add(1, Atomic::Relaxed);
        self.arena.free_chunks(guard, chunks);
        let arena = self.arena.clone();
        guard.defer(Box::new(move || arena.give(Kind::Nodes, [number])));
        let is_lonely = pointer.is_some() && entries.len() == 1;
        Ok(Removal::Yes { orphan, lonely: is_lonely.then_some(parent.number) })
    }

    /// The node whose link leads to this one, locked; `None` if there is none from `start` on up to the key.
    fn lock_left_of<'a>(
        &self,
        start: Node<'a, W>,
        level: u32,
        number: u64,
        key: &Key<'_>,
    ) -> Result<Option<Locked<'a, W>>> {
        let (mut node, mut hops) = (start, Hops::default());
        loop {
            let left = node.lock();
            if left.state.before().is_retired() {
                return Ok(None);
            }
            self.settle(&left)?;
            let Some(link) = left.link()? else { return Ok(None) };
            if link.node == number {
                return Ok(Some(left));
            }
            if self.arena.compare(key, link.key)? == Ordering::Less {
                return Ok(None);
            }
            drop(left);
            node = hops.follow(node, link, level)?;
        }
    }
}
