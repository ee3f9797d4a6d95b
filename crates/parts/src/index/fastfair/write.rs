//! The index as its writers see it.

use super::blob::chunks_for;
use super::key::Key;
use super::kit::Kit;
use super::link::Link;
use super::node::Entry;
use super::settings::{FastFairError, Hint, Result, VALUE_BITS};
use super::shift::Locked;
use super::split::Split;
use super::tree::{FastFairIndex, Hops};
use crate::epoch::Guard;
use crate::index::words::Words;

/// What an [`upsert`](FastFairIndex::upsert) has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upserted {
    /// The value that the key had.
    pub old: Option<u64>,
    /// Where it stands now.
    pub hint: Hint,
}

impl<W: Words> FastFairIndex<W> {
    /// Lets a key have this value, be it there or not, and returns the one that it had. Durable when it returns.
    ///
    /// # Errors
    /// [`FastFairError::Full`], [`FastFairError::KeyTooLong`] or [`FastFairError::Space`]; nothing is changed then.
    ///
    /// # Panics
    /// If the value is zero or has more than 62 bits.
    pub fn upsert(&self, guard: &Guard<'_>, key: &[u8], value: u64) -> Result<Upserted> {
        check_value(value);
        let key = Key::new(key)?;
        let mut kit = Kit::new(self, guard);
        loop {
            let leaf = self.lock(guard, &key, 0)?;
            if let Some(entry) = leaf.search(&key, leaf.state.before())? {
                leaf.set_value(entry, value);
                return Ok(Upserted { old: Some(entry.value), hint: Hint::new(leaf.number, entry.slot) });
            }
            let Some(stored) = kit.key(&key) else {
                drop(leaf);
                kit.keep_key(&key)?;
                continue;
            };
            if leaf.has_room() {
                let entries = leaf.entries()?;
                let behind = leaf.rank(&entries, &key)?.checked_sub(1);
                let slot = leaf.add(behind.map_or(0, |last| entries[last].slot + 1), stored, value);
                kit.use_key();
                self.count.add(leaf.number, 1);
                return Ok(Upserted { old: None, hint: Hint::new(leaf.number, slot) });
            }
            match self.split(&leaf, &mut kit, &key, 0)? {
                Split::Done { separator, right } => {
                    drop(leaf);
                    self.complete_if_room(guard, 1, &separator.as_key(), right)?;
                }
                Split::Needs { chunks } => {
                    drop(leaf);
                    kit.fill(1, chunks)?;
                }
            }
        }
    }

    /// Lets a key have this value if it stands in the node to which a hint leads, and returns the one that it had. `None` if it does
    /// not, and then it may stand elsewhere. Durable when it returns.
    ///
    /// # Errors
    /// [`FastFairError::KeyTooLong`] or [`FastFairError::Space`]; nothing is changed then.
    ///
    /// # Panics
    /// If the value is zero or has more than 62 bits.
    pub fn upsert_at(&self, _guard: &Guard<'_>, hint: Hint, key: &[u8], value: u64) -> Result<Option<u64>> {
        check_value(value);
        let key = Key::new(key)?;
        let Some(leaf) = self.lock_leaf(hint) else { return Ok(None) };
        // Most often it has not moved since; a key stands only once in a node that is settled.
        let at = leaf.entry(hint.slot()).filter(|entry| !entry.key.is_kept && key.is_likely(entry.key));
        let found = match at {
            Some(entry) => Some(entry),
            None => leaf.search(&key, leaf.state.before())?,
        };
        let Some(entry) = found else { return Ok(None) };
        leaf.set_value(entry, value);
        Ok(Some(entry.value))
    }

    /// Adds a key that is known to be absent. Durable when it returns.
    ///
    /// # Errors
    /// As for [`upsert`](FastFairIndex::upsert).
    ///
    /// # Panics
    /// As for [`upsert`](FastFairIndex::upsert).
    pub fn insert(&self, guard: &Guard<'_>, key: &[u8], value: u64) -> Result<Hint> {
        self.upsert(guard, key, value).map(|upserted| upserted.hint)
    }

    /// Lets the key have the value `new` if it still has `old`; says whether it had. Durable when it returns.
    ///
    /// # Errors
    /// As for [`get`](FastFairIndex::get); nothing is changed then.
    ///
    /// # Panics
    /// If `new` is zero or has more than 62 bits.
    pub fn replace(&self, guard: &Guard<'_>, key: &[u8], old: u64, new: u64) -> Result<bool> {
        check_value(new);
        let Some((leaf, entry)) = self.lock_entry(guard, key, |value| value == old)? else {
            return Ok(false);
        };
        leaf.set_value(entry, new);
        Ok(true)
    }

    /// Like [`replace`](FastFairIndex::replace), for the entry to which a hint leads: `false` if none in that node has the value
    /// `old`, and then the key may still have it. Looks at no other node.
    ///
    /// # Panics
    /// If `new` is zero or has more than 62 bits.
    pub fn replace_at(&self, _guard: &Guard<'_>, hint: Hint, old: u64, new: u64) -> bool {
        check_value(new);
        let Some((leaf, entry)) = self.lock_at(hint, old) else { return false };
        leaf.set_value(entry, new);
        true
    }

    /// Removes the key and returns its value. Durable when it returns.
    ///
    /// # Errors
    /// As for [`get`](FastFairIndex::get); nothing is changed then.
    pub fn take(&self, guard: &Guard<'_>, key: &[u8]) -> Result<Option<u64>> {
        self.remove_if(guard, key, |_| true)
    }

    /// Removes the key if it still has the value `old`; says whether it had. Durable when it returns.
    ///
    /// # Errors
    /// As for [`get`](FastFairIndex::get); nothing is changed then.
    pub fn remove(&self, guard: &Guard<'_>, key: &[u8], old: u64) -> Result<bool> {
        Ok(self.remove_if(guard, key, |value| value == old)?.is_some())
    }

    fn remove_if(&self, guard: &Guard<'_>, key: &[u8], matches: impl Fn(u64) -> bool) -> Result<Option<u64>> {
        let Some((leaf, entry)) = self.lock_entry(guard, key, matches)? else { return Ok(None) };
        let chunks = self.arena.chunks_of(entry.key)?;
        leaf.vacate(entry.slot);
        self.count.add(leaf.number, -1);
        let number = leaf.number;
        let is_empty = leaf.entries()?.is_empty();
        drop(leaf);
        self.arena.free_chunks(guard, chunks);
        if is_empty {
            // The key is gone, whatever the nodes around it say; what is wrong with them the next who comes there is told.
            let _ = self.remove_leaf(guard, number, &Key::new(key)?);
        }
        Ok(Some(entry.value))
    }

    /// The leaf of a key, locked, and its entry, if it is there with a value for which `matches` says yes.
    pub(super) fn lock_entry(
        &self,
        guard: &Guard<'_>,
        key: &[u8],
        matches: impl Fn(u64) -> bool,
    ) -> Result<Option<(Locked<'_, W>, Entry)>> {
        let key = Key::new(key)?;
        let leaf = self.lock(guard, &key, 0)?;
        let found = leaf.search(&key, leaf.state.before())?;
        Ok(found.filter(|entry| matches(entry.value)).map(|entry| (leaf, entry)))
    }

    /// The leaf of a hint, locked, and the entry in it that has this value.
    pub(super) fn lock_at(&self, hint: Hint, value: u64) -> Option<(Locked<'_, W>, Entry)> {
        let leaf = self.lock_leaf(hint)?;
        let is_it = |entry: &Entry| entry.value == value;
        let at = leaf.entry(hint.slot()).filter(is_it);
        let entry = at.or_else(|| leaf.find(is_it))?;
        Some((leaf, entry))
    }

    /// The leaf of a hint, locked. What stands in it stands nowhere else.
    ///
    /// The number may be anything. A node is in the tree, as what it says it is, if it is settled: that was done by somebody
    /// who came to it through the tree, or linked it, in this run, and is undone before it is taken out. What a crash
    /// may have left unfinished elsewhere is not.
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
    /// Every node on the way from where the descent ends is settled too: so nobody changes what a split has moved before it
    /// is durably gone from where it came from. And a node to which only its sibling leads is given a parent.
    pub(super) fn lock(&self, guard: &Guard<'_>, key: &Key<'_>, level: u32) -> Result<Locked<'_, W>> {
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
                let separator = self.arena.key(link.key)?;
                drop(locked);
                let Link { node: right, .. } = link;
                self.complete_if_room(guard, level + 1, &separator.as_key(), right)?;
                node = hops.follow(node, link, level)?;
            }
        }
    }

    /// Makes sure, as far as other callers leave it so, that so many keys of so many bytes each can be added without an error. For
    /// who may not fail later.
    ///
    /// # Errors
    /// [`FastFairError::Full`] or [`FastFairError::Space`].
    pub fn make_room(&self, guard: &Guard<'_>, keys: usize, len: usize) -> Result<()> {
        let chunks = if len == size_of::<u64>() { 0 } else { 2 * chunks_for(len) };
        // Each may have to split a leaf, and have a copy of its key made for the link.
        Kit::new(self, guard).fill(keys, keys * chunks)
    }
}

/// Refuses what cannot be a value.
pub(super) fn check_value(value: u64) {
    assert!(value != 0 && value >> VALUE_BITS == 0, "a value is a number of 62 bits other than zero");
}

impl FastFairError {
    /// Whether there was no room.
    pub(super) fn is_full(&self) -> bool {
        matches!(self, FastFairError::Full { .. })
    }
}
