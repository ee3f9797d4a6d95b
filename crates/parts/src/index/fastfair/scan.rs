//! Walking over keys in order, while the index changes.
//!
//! A leaf is copied at one moment, and the walk goes on from where its keys end, which it remembers as a key.
//! So a key that is present from the first call to the last is seen exactly once, whatever splits and
//! removals happen in between.

use super::key::{Key, KeyBuf};
use super::link::Link;
use super::node::{Entry, Node};
use super::settings::{KEY_MAX, Result, damaged};
use super::tree::FastFairIndex;
use crate::epoch::Guard;
use crate::index::words::Words;
use std::cmp::Ordering;

/// How far a walk has come.
#[derive(Clone, Debug)]
pub struct ScanCursor {
    /// The key from which on the walk goes on; none at the end.
    from: Option<KeyBuf>,
    /// The key itself has been seen.
    is_behind: bool,
}

impl ScanCursor {
    /// Before the first key that is not lower than this one.
    pub(super) fn from(key: &[u8]) -> ScanCursor {
        // A key longer than any: the first one behind it is the first behind its beginning.
        let from = KeyBuf::of(&key[..key.len().min(KEY_MAX)]);
        ScanCursor { from: Some(from), is_behind: key.len() > KEY_MAX }
    }
}

impl Default for ScanCursor {
    fn default() -> ScanCursor {
        ScanCursor::from(&[])
    }
}

impl<W: Words> FastFairIndex<W> {
    /// The next entries, those of one leaf, and the cursor behind them; none at the end. They are durable.
    pub(super) fn next_leaf(
        &self,
        guard: &Guard<'_>,
        cursor: &ScanCursor,
    ) -> Result<Option<(Vec<Entry>, ScanCursor)>> {
        let mut behind = cursor.clone();
        while let Some(from) = behind.from.take() {
            let from = from.as_key();
            let (leaf, mut entries, link) = self.read_leaf(guard, &from)?;
            entries.drain(..leaf.rank_of(&entries, &from, behind.is_behind)?);
            let next = link.map(|link| self.arena.key(link.key)).transpose()?;
            behind = ScanCursor { from: next, is_behind: false };
            if !entries.is_empty() {
                return Ok(Some((entries, behind)));
            }
        }
        Ok(None)
    }

    /// Calls `each` with the next keys and their values, in order, at most `limit` of them, and those of one
    /// leaf; false, without a call, at the end.
    pub(super) fn scan(
        &self,
        guard: &Guard<'_>,
        cursor: &mut ScanCursor,
        limit: usize,
        mut each: impl FnMut(&[u8], u64),
    ) -> Result<bool> {
        let Some((entries, mut behind)) = self.next_leaf(guard, cursor)? else { return Ok(false) };
        let told = entries.len().min(limit.max(1));
        for (at, entry) in entries.iter().enumerate().take(told) {
            let key = self.arena.key(entry.key)?;
            key.with_bytes(|bytes| each(bytes, entry.value));
            if at + 1 == told && told < entries.len() {
                behind = ScanCursor { from: Some(key), is_behind: true };
            }
        }
        *cursor = behind;
        Ok(true)
    }

    /// The entries of the leaf of a key, and the link behind them; durable, and all there at one moment.
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
}
