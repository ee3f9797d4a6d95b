//! What a Masstree offers a store over logs: it has the keys, so it asks nobody; its words are whole, and its hints right.

use super::back::BackCursor;
use super::hint::Hint;
use super::scan::Cursor;
use super::tree::{Masstree, MasstreeError};
use crate::epoch::Guard;
use crate::index::{BothWays, Index, IndexError, IndexGrowth, IndexStats, Key, Repointed};
use crate::sync::atomic::Ordering;
use std::ops::Bound;

/// Words that a walk tells at a time: enough to be worth the way down to where it goes on.
const BATCH: usize = 128;

impl From<MasstreeError> for IndexError {
    fn from(error: MasstreeError) -> IndexError {
        IndexError::Other(error.to_string().into())
    }
}

impl Index for Masstree {
    const WORD_BITS: u32 = 62;
    const DURABLE: bool = false;
    const NEVER_FAILS: bool = true;
    const HINTS: bool = true;

    type Cursor = Cursor;
    type Unflushed = ();

    #[inline]
    fn prefetch(&self, key: Key<'_>) {
        let _ = self.prefetch(key.bytes);
    }

    #[inline]
    fn prefetch_to_write(&self, key: Key<'_>) -> Option<u64> {
        self.prefetch(key.bytes).map(Hint::bits)
    }

    #[inline]
    fn candidate(&self, guard: &Guard<'_>, key: Key<'_>) -> Option<u64> {
        self.get(guard, key.bytes)
    }

    #[inline(always)]
    fn get(
        &self,
        guard: &Guard<'_>,
        key: Key<'_>,
        _matches: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>, IndexError> {
        Ok(self.get(guard, key.bytes))
    }

    #[inline]
    fn hint(&self, guard: &Guard<'_>, key: Key<'_>) -> Result<Option<u64>, IndexError> {
        Ok(Some(self.locate(guard, key.bytes).1.bits()))
    }

    fn make_room(&self, _guard: &Guard<'_>, _keys: usize, _key_len: usize) -> Result<(), IndexError> {
        if self.nodes.has_room() { Ok(()) } else { Err(MasstreeError::Full.into()) }
    }

    #[inline]
    fn upsert(
        &self,
        guard: &Guard<'_>,
        key: Key<'_>,
        new: u64,
        _near: Option<u64>,
        _matches: impl FnMut(u64) -> bool,
        _rehash: &dyn Fn(u64) -> u64,
    ) -> Result<Option<u64>, IndexError> {
        Ok(self.upsert(guard, key.bytes, new)?.old)
    }

    #[inline]
    fn replace(&self, guard: &Guard<'_>, key: Key<'_>, old: u64, new: u64) -> Result<bool, IndexError> {
        Ok(self.replace(guard, key.bytes, old, new))
    }

    #[inline]
    fn take(
        &self,
        guard: &Guard<'_>,
        key: Key<'_>,
        _matches: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>, IndexError> {
        Ok(self.take(guard, key.bytes))
    }

    #[inline]
    fn prefetch_repoint(&self, hint: Option<u64>, key: Key<'_>) -> Option<u64> {
        match hint {
            Some(hint) => self.prefetch_at(Hint::from_bits(hint)),
            None => return self.prefetch(key.bytes).map(Hint::bits),
        }
        hint
    }

    #[inline]
    fn repoint(
        &self,
        guard: &Guard<'_>,
        hint: Option<u64>,
        key: Key<'_>,
        old: u64,
        new: u64,
    ) -> Result<Option<Repointed<()>>, IndexError> {
        let by_hint = hint.is_some_and(|hint| self.replace_at(guard, Hint::from_bits(hint), old, new));
        let done = by_hint || self.replace(guard, key.bytes, old, new);
        Ok(done.then_some(Repointed { unflushed: (), by_hint }))
    }

    fn next_batch(
        &self,
        guard: &Guard<'_>,
        cursor: &mut Cursor,
        out: &mut Vec<u64>,
    ) -> Result<bool, IndexError> {
        Ok(self.next_batch(guard, cursor, BATCH, |_, word| out.push(word)) > 0)
    }

    fn len(&self, _guard: &Guard<'_>) -> Result<u64, IndexError> {
        Ok(self.len())
    }

    fn stats(&self) -> IndexStats {
        let stats = self.stats();
        IndexStats { bytes: stats.bytes, pm_bytes: 0, splits: stats.splits, records_read: 0 }
    }

    /// A split never shows: nodes split one by one, and a writer that does it waits for nothing but locks of
    /// other nodes.
    fn growth(&self) -> IndexGrowth {
        IndexGrowth { splits: self.splits.load(Ordering::Relaxed), ..IndexGrowth::default() }
    }
}

impl BothWays for Masstree {
    type Scan = Cursor;
    type ScanBack = BackCursor;

    fn scan_from(&self, key: &[u8]) -> Cursor {
        Cursor::at(key)
    }

    fn next_in_order(
        &self,
        guard: &Guard<'_>,
        scan: &mut Cursor,
        limit: usize,
        each: impl FnMut(&[u8], u64),
    ) -> Result<bool, IndexError> {
        Ok(self.next_batch(guard, scan, limit.max(1), each) > 0)
    }

    fn scan_back_from(&self, bound: Bound<&[u8]>) -> BackCursor {
        match bound {
            Bound::Included(key) => BackCursor::at(key),
            Bound::Excluded(key) => BackCursor::before(key),
            Bound::Unbounded => BackCursor::default(),
        }
    }

    fn prev_in_order(
        &self,
        guard: &Guard<'_>,
        scan: &mut BackCursor,
        limit: usize,
        each: impl FnMut(&[u8], u64),
    ) -> Result<bool, IndexError> {
        Ok(self.prev_batch(guard, scan, limit.max(1), each) > 0)
    }
}
