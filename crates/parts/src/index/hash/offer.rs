//! What the hash index offers a store over logs: words that are bare references, no errors, and no hints.

use super::slot::REFERENCE_BITS;
use super::{Cursor, HashIndex};
use crate::epoch::Guard;
use crate::index::{Index, IndexError, IndexGrowth, IndexStats, Key, Repointed};
use std::sync::atomic::Ordering;

impl Index for HashIndex {
    const WORD_BITS: u32 = REFERENCE_BITS;
    const DURABLE: bool = false;
    const NEVER_FAILS: bool = true;
    const HINTS: bool = false;

    type Cursor = Cursor;
    type Unflushed = ();

    #[inline]
    fn prefetch(&self, key: Key<'_>) {
        self.prefetch(key.hash);
    }

    #[inline]
    fn prefetch_to_write(&self, key: Key<'_>) -> Option<u64> {
        self.prefetch_to_write(key.hash);
        None
    }

    #[inline]
    fn candidate(&self, guard: &Guard<'_>, key: Key<'_>) -> Option<u64> {
        self.candidate(guard, key.hash)
    }

    #[inline(always)]
    fn get(
        &self,
        guard: &Guard<'_>,
        key: Key<'_>,
        matches: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>, IndexError> {
        Ok(self.get(guard, key.hash, matches))
    }

    #[inline]
    fn upsert(
        &self,
        guard: &Guard<'_>,
        key: Key<'_>,
        new: u64,
        _near: Option<u64>,
        matches: impl FnMut(u64) -> bool,
        rehash: &dyn Fn(u64) -> u64,
    ) -> Result<Option<u64>, IndexError> {
        Ok(self.upsert(guard, key.hash, new, matches, rehash))
    }

    #[inline]
    fn replace(&self, guard: &Guard<'_>, key: Key<'_>, old: u64, new: u64) -> Result<bool, IndexError> {
        Ok(self.replace(guard, key.hash, old, new))
    }

    #[inline]
    fn take(
        &self,
        guard: &Guard<'_>,
        key: Key<'_>,
        matches: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>, IndexError> {
        Ok(self.take(guard, key.hash, matches))
    }

    #[inline]
    fn repoint(
        &self,
        guard: &Guard<'_>,
        _hint: Option<u64>,
        key: Key<'_>,
        old: u64,
        new: u64,
    ) -> Result<Option<Repointed<()>>, IndexError> {
        let done = self.replace(guard, key.hash, old, new);
        Ok(done.then_some(Repointed { unflushed: (), by_hint: false }))
    }

    fn next_batch(
        &self,
        guard: &Guard<'_>,
        cursor: &mut Cursor,
        out: &mut Vec<u64>,
    ) -> Result<bool, IndexError> {
        Ok(self.next_batch(guard, cursor, out))
    }

    fn len(&self, _guard: &Guard<'_>) -> Result<u64, IndexError> {
        Ok(self.len())
    }

    fn stats(&self) -> IndexStats {
        let stats = self.stats();
        IndexStats {
            bytes: stats.bytes,
            pm_bytes: 0,
            splits: stats.splits,
            records_read: stats.records_read_by_splits,
        }
    }

    fn growth(&self) -> IndexGrowth {
        let splits = self.splits.load(Ordering::Relaxed);
        IndexGrowth { is_splitting: self.growing(), splits, ..IndexGrowth::default() }
    }
}
