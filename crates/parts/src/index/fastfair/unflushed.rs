//! Replacing many references with one fence, for compaction by the batch (PACMAN, section 3.3).
//!
//! Compaction keeps the old records until the new references are durable, so these may be flushed later, all
//! at once. But a reader that acts on one meanwhile must not see it taken back. So the node says that
//! something in it is not durable, from before the store until after the fence, and its readers make their
//! answers durable.

use super::node::{ENTRY, Entry, Node};
use super::shift::Locked;
use super::tree::FastFairIndex;
use crate::index::words::Words;

/// A value that has been replaced and not flushed. If it is never [persisted](crate::index::Index::persist),
/// the readers of its node go on flushing until the index is opened again.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the value is not durable yet"]
pub struct Unflushed {
    node: u64,
    place: u64,
    /// Whether the node counts it.
    is_counted: bool,
}

impl<W: Words> FastFairIndex<W> {
    /// Lets an entry have another value, which is not durable yet unless the node counts too many already.
    pub(super) fn set_unflushed(&self, leaf: &Locked<'_, W>, entry: Entry, new: u64) -> Unflushed {
        let place = leaf.place + Node::<W>::at(entry.slot);
        let is_counted = leaf.state.add_unflushed();
        if is_counted {
            leaf.store_value(entry, new);
        } else {
            leaf.set_value(entry, new);
        }
        Unflushed { node: leaf.number, place, is_counted }
    }

    /// Makes values durable that have been replaced, with one fence for all of them.
    ///
    /// An entry that has moved since is durable in its old place until its mover makes the new one durable.
    pub(super) fn persist_all(&self, replaced: &mut Vec<Unflushed>) {
        if replaced.is_empty() {
            return;
        }
        replaced.iter().for_each(|unflushed| self.arena.words.flush(unflushed.place, ENTRY));
        self.arena.words.fence();
        let counted = replaced.drain(..).filter(|unflushed| unflushed.is_counted);
        for node in counted.filter_map(|unflushed| self.arena.find_node(unflushed.node)) {
            node.state.remove_unflushed();
        }
    }
}
