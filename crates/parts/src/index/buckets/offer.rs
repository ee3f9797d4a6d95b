//! What a bucket index offers a store over logs.

use super::iterate::BucketCursor;
use super::lock::Locking;
use super::numbers::FINGERPRINT_BITS;
use super::slot::WORD_BITS;
use super::table::BucketIndex;
use super::unflushed::Unflushed;
use crate::epoch::Guard;
use crate::index::words::Words;
use crate::index::{Index, IndexError, IndexGrowth, IndexStats, Key, Repointed};
use crate::space::{Feature, ZoneId};
use std::sync::atomic::Ordering;

/// The bits of a hash that stand in the word of its key.
const FINGERPRINT: u64 = (1 << FINGERPRINT_BITS) - 1;

impl<W: Words, L: Locking> Index for BucketIndex<W, L> {
    const WORD_BITS: u32 = WORD_BITS;
    const DURABLE: bool = true;
    const NEVER_FAILS: bool = false;
    const HINTS: bool = false;
    const FINGERPRINT: u64 = FINGERPRINT;
    const FEATURES: &'static [Feature] = &[Feature::MARKED_BUCKETS];

    type Cursor = BucketCursor;
    type Unflushed = Unflushed;

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
        Ok(self.get(guard, key.hash, matches)?)
    }

    #[inline]
    fn names(&self, guard: &Guard<'_>, key: Key<'_>, word: u64) -> Result<bool, IndexError> {
        Ok(self.names(guard, key.hash, word)?)
    }

    fn make_room(&self, _guard: &Guard<'_>, keys: usize, _key_len: usize) -> Result<(), IndexError> {
        Ok(self.make_room(keys)?)
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
        Ok(self.upsert(guard, key.hash, new, matches, rehash)?)
    }

    #[inline]
    fn replace(&self, guard: &Guard<'_>, key: Key<'_>, old: u64, new: u64) -> Result<bool, IndexError> {
        Ok(self.replace(guard, key.hash, old, new)?)
    }

    #[inline]
    fn take(
        &self,
        guard: &Guard<'_>,
        key: Key<'_>,
        matches: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>, IndexError> {
        Ok(self.take(guard, key.hash, matches)?)
    }

    #[inline]
    fn repoint(
        &self,
        guard: &Guard<'_>,
        _hint: Option<u64>,
        key: Key<'_>,
        old: u64,
        new: u64,
    ) -> Result<Option<Repointed<Unflushed>>, IndexError> {
        let done = self.replace_unflushed(guard, key.hash, old, new)?;
        Ok(done.map(|unflushed| Repointed { unflushed, by_hint: false }))
    }

    #[inline]
    fn persist(&self, guard: &Guard<'_>, unflushed: &mut Vec<Unflushed>) {
        self.persist_all(guard, unflushed);
    }

    fn next_batch(
        &self,
        guard: &Guard<'_>,
        cursor: &mut BucketCursor,
        out: &mut Vec<u64>,
    ) -> Result<bool, IndexError> {
        Ok(self.next_batch(guard, cursor, out)?)
    }

    fn len(&self, _guard: &Guard<'_>) -> Result<u64, IndexError> {
        Ok(self.len()?)
    }

    fn audit(&self, _guard: &Guard<'_>, is_word: &dyn Fn(u64) -> bool) -> Result<(), IndexError> {
        self.audit(is_word)?;
        Ok(())
    }

    fn stats(&self) -> IndexStats {
        let stats = self.stats();
        IndexStats {
            bytes: stats.bytes,
            pm_bytes: stats.pm_bytes,
            splits: stats.splits,
            records_read: stats.records_read,
        }
    }

    fn growth(&self) -> IndexGrowth {
        let (zones, is_linking) = self.zones.chain.growth();
        let splits = self.splits.load(Ordering::Relaxed);
        IndexGrowth { is_splitting: self.growing(), is_linking, splits, removals: 0, zones }
    }

    fn zones(&self) -> Vec<ZoneId> {
        self.zones()
    }
}
