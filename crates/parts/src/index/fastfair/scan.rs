//! Walking over keys in order, while the index changes.
//!
//! A leaf is copied at one moment, and the walk goes on from where its keys end, which it remembers as a key. So a key that is
//! present from the first call to the last is seen exactly once, whatever splits and removals happen in between.

use super::key::{Key, KeyBuf};
use super::link::Link;
use super::node::{Entry, Node};
use super::settings::{Result, damaged};
use super::tree::FastFairIndex;
use crate::epoch::Guard;
use crate::index::words::Words;
use std::cmp::Ordering;

/// How far a walk has come.
#[derive(Clone, Debug)]
pub struct ScanCursor {
    from: KeyBuf,
    /// The key itself has been seen.
    is_behind: bool,
    finished: bool,
}

impl ScanCursor {
    /// Before the first key that is not lower than this one.
    pub fn from(key: &[u8]) -> ScanCursor {
        let from = match Key::new(key) {
            Ok(key) => key.to_buf(),
            // Longer than any key: the first one behind it is the first behind its beginning.
            Err(_) => KeyBuf::Bytes(key[..super::settings::KEY_MAX].to_vec()),
        };
        let is_behind = key.len() > super::settings::KEY_MAX;
        ScanCursor { from, is_behind, finished: false }
    }
}

impl Default for ScanCursor {
    fn default() -> ScanCursor {
        ScanCursor::from(&[])
    }
}

impl<W: Words> FastFairIndex<W> {
    /// Calls `each` with the next keys and their values, in order, at most `limit` of them, and those of one leaf; false, without a
    /// call, at the end. What `each` is told is durable.
    ///
    /// # Errors
    /// [`FastFairError::Space`](super::FastFairError::Space) for a damaged index.
    pub fn next_batch(
        &self,
        guard: &Guard<'_>,
        cursor: &mut ScanCursor,
        limit: usize,
        mut each: impl FnMut(&[u8], u64),
    ) -> Result<bool> {
        let mut left = limit.max(1);
        while !cursor.finished && left == limit.max(1) {
            let (leaf, entries, link) = self.read_leaf(guard, &cursor.from.as_key())?;
            let seen = leaf.rank_of(&entries, &cursor.from.as_key(), cursor.is_behind)?;
            let mut next = match link {
                Some(link) => Some(self.arena.key(link.key)?),
                None => None,
            };
            let mut is_behind = false;
            for entry in &entries[seen..] {
                let key = self.arena.key(entry.key)?;
                key.with_bytes(|bytes| each(bytes, entry.value));
                left -= 1;
                if left == 0 {
                    (next, is_behind) = (Some(key), true);
                    break;
                }
            }
            match next {
                Some(key) => (cursor.from, cursor.is_behind) = (key, is_behind),
                None => cursor.finished = true,
            }
        }
        Ok(left < limit.max(1))
    }

    /// Adds the next values, those of one leaf; false, with nothing added, at the end. As [`next_batch`](FastFairIndex::next_batch), but
    /// looks at few keys.
    pub(super) fn next_values(
        &self,
        guard: &Guard<'_>,
        cursor: &mut ScanCursor,
        out: &mut Vec<u64>,
    ) -> Result<bool> {
        let before = out.len();
        while !cursor.finished && out.len() == before {
            let from = cursor.from.as_key();
            let (leaf, entries, link) = self.read_leaf(guard, &from)?;
            let seen = leaf.rank_of(&entries, &from, cursor.is_behind)?;
            out.extend(entries[seen..].iter().map(|entry| entry.value));
            match link {
                Some(link) => (cursor.from, cursor.is_behind) = (self.arena.key(link.key)?, false),
                None => cursor.finished = true,
            }
        }
        Ok(out.len() > before)
    }

    /// The entries of the leaf of a key, and where the keys behind them are; durable, and all there at one moment.
    pub(super) fn read_leaf(
        &self,
        guard: &Guard<'_>,
        key: &Key<'_>,
    ) -> Result<(Node<'_, W>, Vec<Entry>, Option<Link>)> {
        let (leaf, (mut entries, link)) = self.read::<true, _>(guard, key, |node, seen| {
            let entries = node.entries_seen(seen)?;
            let link = node.link()?;
            let is_behind = match link {
                Some(link) => self.arena.compare(key, link.key)? != Ordering::Less,
                None => false,
            };
            Ok((link.filter(|_| is_behind), (entries, link)))
        })?;
        // A key word has no check: damage to it shows in the order. Keys in chunks have a fingerprint.
        for pair in entries.windows(2) {
            let (left, right) = (pair[0].key, pair[1].key);
            let is_told = left.is_kept && right.is_kept;
            if !is_told && self.arena.order(left, right)? != Ordering::Less {
                return damaged("the order of the keys of a node of the index", leaf.place);
            }
        }
        if let Some(link) = link {
            let high = self.arena.key(link.key)?;
            // Keys that a split under way is about to take from here come with the sibling.
            entries.truncate(leaf.rank_of(&entries, &high.as_key(), false)?);
        }
        Ok((leaf, entries, link))
    }

    /// Keys that a walk finds.
    pub(super) fn count_keys(&self, guard: &Guard<'_>) -> Result<u64> {
        let (mut keys, mut next) = (0, Some(KeyBuf::Bytes(Vec::new())));
        while let Some(from) = next {
            let (_, entries, link) = self.read_leaf(guard, &from.as_key())?;
            keys += entries.len() as u64;
            next = match link {
                Some(link) => Some(self.arena.key(link.key)?),
                None => None,
            };
        }
        Ok(keys)
    }

    /// Nodes in use on each level, leaves first: reads a line of each.
    ///
    /// # Errors
    /// [`FastFairError::Space`](super::FastFairError::Space) for a damaged index.
    pub fn nodes_by_level(&self, _guard: &Guard<'_>) -> Result<Vec<u64>> {
        let mut levels = Vec::new();
        for level in 0..=self.top_level()? {
            let mut node = self.descend(&Key::MIN, level)?;
            let (mut nodes, mut hops) = (1, super::tree::Hops::default());
            while let Some(link) = node.link()? {
                node = hops.follow(node, link, level)?;
                nodes += 1;
            }
            levels.push(nodes);
        }
        Ok(levels)
    }
}
