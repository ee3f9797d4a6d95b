//! Replacing many references with one fence: for compaction, which moves records by the batch (PACMAN, section 3.3).
//!
//! Compaction keeps the old records until the new references are durable, so these may be flushed later, all at once. But a
//! reader who acts on one meanwhile must not see it taken back. So the node says that something in it is not
//! durable, from before the store until after the fence, and its readers make durable what they answer.

use super::node::{ENTRY, Entry, Node};
use super::settings::{Hint, Result};
use super::shift::Locked;
use super::tree::FastFairIndex;
use super::write::check_value;
use crate::epoch::Guard;
use crate::index::words::Words;

/// A value that has been replaced and not flushed: to be given to [`persist_all`](FastFairIndex::persist_all). If it is not, the
/// readers of its node go on flushing until the index is opened again.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the value is not durable yet"]
pub struct Unflushed {
    node: u64,
    place: u64,
    /// Whether the node counts it.
    is_counted: bool,
}

impl<W: Words> FastFairIndex<W> {
    /// [`replace`](FastFairIndex::replace), not yet durable.
    ///
    /// # Errors
    /// As for [`get`](FastFairIndex::get); nothing is changed then.
    ///
    /// # Panics
    /// If `new` is zero or has more than 62 bits.
    pub fn replace_unflushed(
        &self,
        guard: &Guard<'_>,
        key: &[u8],
        old: u64,
        new: u64,
    ) -> Result<Option<Unflushed>> {
        check_value(new);
        let found = self.lock_entry(guard, key, |value| value == old)?;
        Ok(found.map(|(leaf, entry)| self.set_unflushed(&leaf, entry, new)))
    }

    /// [`replace_at`](FastFairIndex::replace_at), not yet durable.
    ///
    /// # Panics
    /// If `new` is zero or has more than 62 bits.
    pub fn replace_at_unflushed(
        &self,
        _guard: &Guard<'_>,
        hint: Hint,
        old: u64,
        new: u64,
    ) -> Option<Unflushed> {
        check_value(new);
        let (leaf, entry) = self.lock_at(hint, old)?;
        Some(self.set_unflushed(&leaf, entry, new))
    }

    fn set_unflushed(&self, leaf: &Locked<'_, W>, entry: Entry, new: u64) -> Unflushed {
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
    /// An entry may have moved since: whoever moved it has made its new place durable, or is about to, and until then it is
    /// durable in the old one.
    pub fn persist_all(&self, replaced: impl IntoIterator<Item = Unflushed>) {
        let replaced: Vec<Unflushed> = replaced.into_iter().collect();
        if replaced.is_empty() {
            return;
        }
        replaced.iter().for_each(|unflushed| self.arena.words.flush(unflushed.place, ENTRY));
        self.arena.words.fence();
        let counted = replaced.into_iter().filter(|unflushed| unflushed.is_counted);
        for node in counted.filter_map(|unflushed| self.arena.find_node(unflushed.node)) {
            node.state.remove_unflushed();
        }
    }
}
