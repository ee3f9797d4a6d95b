//! Adding, changing and removing keys.

use super::key::{Key, Stored};
use super::kit::Kit;
use super::link::Link;
use super::node::{Entry, SLOTS};
use super::settings::{Result, VALUE_BITS};
use super::shift::Locked;
use super::split::Split;
use super::tree::{FastFairIndex, Hops};
use crate::epoch::Guard;
use crate::index::hint::Hint;
use crate::index::words::Words;

impl<W: Words> FastFairIndex<W> {
    /// Lets a key have this value, and returns the one that it had. Durable when it returns.
    pub(super) fn put(&self, guard: &Guard<'_>, key: &Key<'_>, value: u64) -> Result<Option<u64>> {
        let mut kit = Kit::new(self, guard);
        let found = |leaf: &Locked<'_, W>| {
            let found = leaf.search(key, leaf.state.before())?;
            Ok(found.map(|entry| {
                leaf.set_value(entry, value);
                entry.value
            }))
        };
        self.add(guard, &mut kit, key, 0, |_| value, found)
    }

    /// Adds a key to its node on this level, with the value that `value` gives for it. If `found` finds in
    /// the locked node that there is nothing to add, returns its answer. The node may have to split.
    #[inline]
    pub(super) fn add<T>(
        &self,
        guard: &Guard<'_>,
        kit: &mut Kit<'_, W>,
        key: &Key<'_>,
        level: u32,
        value: impl Fn(Stored) -> u64,
        found: impl Fn(&Locked<'_, W>) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        loop {
            let node = self.lock(guard, key, level)?;
            if let Some(found) = found(&node)? {
                return Ok(Some(found));
            }
            let Some(stored) = kit.key(key) else {
                drop(node);
                kit.keep_key(key)?;
                continue;
            };
            if node.has_room() {
                let entries = node.entries()?;
                let behind = node.rank(&entries, key)?.checked_sub(1);
                node.add(behind.map_or(0, |last| entries[last].slot + 1), stored, value(stored));
                kit.use_key();
                self.count.add(node.number, i64::from(level == 0));
                return Ok(None);
            }
            let split = self.split(&node, kit, key, level)?;
            drop(node);
            match split {
                Split::Done { separator, right } => {
                    self.complete_if_room(guard, level + 1, &separator.as_key(), right)?;
                }
                Split::Needs { chunks } => kit.fill(1, chunks)?,
            }
        }
    }

    /// Lets a key have this value, durably, if it stands in the node to which a hint leads, and returns the
    /// one that it had. `None` if it does not stand there, and then it may stand elsewhere.
    pub(super) fn put_at(&self, hint: Hint, key: &Key<'_>, value: u64) -> Result<Option<u64>> {
        let Some(leaf) = self.lock_leaf(hint) else { return Ok(None) };
        // Most often it has not moved since; a key stands only once in a node that is settled.
        let at = leaf.entry(slot_of(hint)).filter(|entry| !entry.key.is_kept && key.is_likely(entry.key));
        let found = match at {
            Some(entry) => Some(entry),
            None => leaf.search(key, leaf.state.before())?,
        };
        let Some(entry) = found else { return Ok(None) };
        leaf.set_value(entry, value);
        Ok(Some(entry.value))
    }

    /// Removes the key and returns its value. Durable when it returns.
    pub(super) fn remove(&self, guard: &Guard<'_>, key: &Key<'_>) -> Result<Option<u64>> {
        let Some((leaf, entry)) = self.lock_entry(guard, key, |_| true)? else { return Ok(None) };
        let chunks = self.arena.chunks_of(entry.key)?;
        leaf.vacate(entry.slot);
        self.count.add(leaf.number, -1);
        let number = leaf.number;
        let is_empty = leaf.entries()?.is_empty();
        drop(leaf);
        self.arena.free_chunks(guard, chunks);
        if is_empty {
            // The key is gone, even if nodes around it are damaged; the next visitor there is told of it.
            let _ = self.remove_leaf(guard, number, key);
        }
        Ok(Some(entry.value))
    }

    /// The leaf of a key, locked, and its entry, if it is there with a value for which `matches` says yes.
    pub(super) fn lock_entry(
        &self,
        guard: &Guard<'_>,
        key: &Key<'_>,
        matches: impl Fn(u64) -> bool,
    ) -> Result<Option<(Locked<'_, W>, Entry)>> {
        let leaf = self.lock(guard, key, 0)?;
        let found = leaf.search(key, leaf.state.before())?;
        Ok(found.filter(|entry| matches(entry.value)).map(|entry| (leaf, entry)))
    }

    /// The leaf of a hint, locked, and the entry in it that has this value.
    pub(super) fn lock_at(&self, hint: Hint, value: u64) -> Option<(Locked<'_, W>, Entry)> {
        let leaf = self.lock_leaf(hint)?;
        let is_it = |entry: &Entry| entry.value == value;
        let at = leaf.entry(slot_of(hint)).filter(is_it);
        let entry = at.or_else(|| leaf.find(is_it))?;
        Some((leaf, entry))
    }

    /// The leaf of a hint, locked. Keys in it stand nowhere else.
    ///
    /// The number may be anything. A settled node is in the tree, on the level that it says. In this run, a
    /// thread that came to it through the tree, or linked it, has settled it, and a removal undoes that
    /// first. A node that a crash has left elsewhere is not settled.
    fn lock_leaf(&self, hint: Hint) -> Option<Locked<'_, W>> {
        let node = self.arena.find_node(hint.node())?;
        if !node.state.before().is_settled() {
            return None;
        }
        let leaf = node.lock();
        (leaf.state.before().is_settled() && leaf.of_level(0).is_ok()).then_some(leaf)
    }

    /// The node of a key on this level, locked and settled. There is such a level.
    ///
    /// Every node on the way from the end of the descent is settled too. So no thread changes an entry that a
    /// split has moved before it is durably gone from its old node. And a node to which only its sibling
    /// leads is given a parent.
    pub(super) fn lock(&self, guard: &Guard<'_>, key: &Key<'_>, level: u32) -> Result<Locked<'_, W>> {
        self.lock_by(key, level, |link| {
            let separator = self.arena.key(link.key)?;
            self.complete_if_room(guard, level + 1, &separator.as_key(), link.node)
        })
    }

    /// As [`lock`](FastFairIndex::lock); `passing` is told of each link on the way, with nothing locked.
    pub(super) fn lock_by(
        &self,
        key: &Key<'_>,
        level: u32,
        passing: impl Fn(Link) -> Result<()>,
    ) -> Result<Locked<'_, W>> {
        'root: loop {
            let mut node = self.descend(key, level)?;
            let mut hops = Hops::default();
            loop {
                let locked = node.lock();
                if locked.state.before().is_retired() {
                    continue 'root;
                }
                self.settle(&locked)?;
                let Some(link) = locked.sibling_for(key)? else { return Ok(locked) };
                drop(locked);
                passing(link)?;
                node = hops.follow(node, link, level)?;
            }
        }
    }
}

/// The slot of a hint, which may be any number, as one that there is.
pub(super) fn slot_of(hint: Hint) -> usize {
    hint.slot() % SLOTS
}

/// Refuses what cannot be a value.
pub(super) fn check_value(value: u64) {
    assert!(value != 0 && value >> VALUE_BITS == 0, "a value is a number of 62 bits other than zero");
}
