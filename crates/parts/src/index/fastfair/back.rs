//! Walking over keys against their order, while the index changes.
//!
//! Links lead to the right only. So each step goes down from the root, to a leaf whose keys begin below the
//! last key that was told, and reads from where they begin. Inner nodes are read as they are, and may lead
//! too far to the left: the links lead on from there, until a leaf ends behind the keys to come. The keys
//! told then are all that stood, at one moment, between two keys, and the walk goes on before the lower of
//! them. So a key that is present from the first call to the last is seen exactly once, whatever splits and
//! removals happen in between.

use super::key::{Key, KeyBuf, Stored};
use super::node::Entry;
use super::settings::{KEY_MAX, Result};
use super::tree::{FastFairIndex, Hops};
use crate::epoch::Guard;
use crate::index::words::Words;
use std::cmp::Ordering;
use std::ops::Bound;

/// How far a walk against the order has come.
#[derive(Clone, Debug)]
pub struct BackCursor {
    /// Lower keys are still to come; all, if there is none.
    before: Option<KeyBuf>,
    /// The key itself is too.
    counts: bool,
    finished: bool,
}

impl BackCursor {
    /// Behind the last key that is not above this bound.
    pub(super) fn from(bound: Bound<&[u8]>) -> BackCursor {
        let (before, counts) = match bound {
            Bound::Included(key) => (Some(key), true),
            // Longer than any key: none lies between it and its beginning.
            Bound::Excluded(key) => (Some(key), key.len() > KEY_MAX),
            Bound::Unbounded => (None, false),
        };
        let before = before.map(|key| KeyBuf::of(&key[..key.len().min(KEY_MAX)]));
        BackCursor { before, counts, finished: false }
    }

    /// Goes to the keys below this one.
    fn go_before(&mut self, key: Option<KeyBuf>) {
        (self.finished, self.before, self.counts) = (key.is_none(), key, false);
    }
}

impl<W: Words> FastFairIndex<W> {
    /// Calls `each` with the next keys and their values, against their order, at most `limit` of them, and
    /// those of one leaf; false, without a call, at the end. The entries are durable.
    pub(super) fn scan_back(
        &self,
        guard: &Guard<'_>,
        cursor: &mut BackCursor,
        limit: usize,
        mut each: impl FnMut(&[u8], u64),
    ) -> Result<bool> {
        let (limit, mut told) = (limit.max(1), 0);
        while !cursor.finished && told == 0 {
            let (entries, mut low) = self.read_before(guard, cursor)?;
            for entry in entries.iter().rev() {
                let key = self.arena.key(entry.key)?;
                key.with_bytes(|bytes| each(bytes, entry.value));
                told += 1;
                if told == limit {
                    low = Some(key);
                    break;
                }
            }
            cursor.go_before(low);
        }
        Ok(told > 0)
    }

    /// Entries in their order that come right before a cursor, and the key from which on they are all that
    /// there are; `None` if there are no lower ones.
    fn read_before(&self, guard: &Guard<'_>, cursor: &BackCursor) -> Result<(Vec<Entry>, Option<KeyBuf>)> {
        let mut low = self.low_of(cursor)?;
        loop {
            let from = low.as_ref().map_or(Key::MIN, KeyBuf::as_key);
            let (leaf, mut entries, link) = self.read_leaf(guard, &from)?;
            if let Some(link) = link
                && self.is_before(cursor, link.key)?
            {
                low = Some(self.arena.key(link.key)?);
                continue;
            }
            if let Some(before) = &cursor.before {
                entries.truncate(leaf.rank_of(&entries, &before.as_key(), cursor.counts)?);
            }
            // Of a leaf that has taken over the keys of one on its right, those of its own come later.
            let lower = leaf.rank_of(&entries, &from, false)?;
            return Ok((entries.split_off(lower), low));
        }
    }

    /// Where the keys of the leaf begin that has the key right before a cursor, or those of one further to
    /// the left; `None` for the first leaf.
    fn low_of(&self, cursor: &BackCursor) -> Result<Option<KeyBuf>> {
        let mut node = self.top_node()?;
        let (mut level, mut hops, mut low) = (node.level()?, Hops::default(), None);
        while level > 0 {
            if let Some(link) = node.link()?
                && self.is_before(cursor, link.key)?
            {
                low = Some(link.key);
                node = hops.follow(node, link, level)?;
                continue;
            }
            let entries = node.entries()?;
            let behind = match &cursor.before {
                Some(before) => node.rank_of(&entries, &before.as_key(), cursor.counts)?,
                None => entries.len(),
            };
            let child = match behind.checked_sub(1) {
                Some(last) => {
                    low = Some(entries[last].key);
                    node.child_of(entries[last])?
                }
                None => node.leftmost()?,
            };
            level -= 1;
            node = self.arena.node(child, node.place)?.of_level(level)?;
        }
        low.map(|low| self.arena.key(low)).transpose()
    }

    /// Whether a key in a node is one of those that a cursor awaits.
    fn is_before(&self, cursor: &BackCursor, stored: Stored) -> Result<bool> {
        let Some(before) = &cursor.before else { return Ok(true) };
        let order = self.arena.compare(&before.as_key(), stored)?;
        Ok(order == Ordering::Greater || cursor.counts && order == Ordering::Equal)
    }
}
