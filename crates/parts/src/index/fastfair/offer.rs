//! What a FAST&FAIR index offers a store over logs: it has the keys, so it asks nobody, and answers what is durable.

use super::back::BackCursor;
use super::scan::ScanCursor;
use super::settings::{FastFairError, Hint, KEY_MAX};
use super::tree::FastFairIndex;
use super::unflushed::Unflushed;
use crate::epoch::Guard;
use crate::index::words::Words;
use crate::index::{BothWays, Index, IndexError, IndexGrowth, IndexStats, Key, Repointed};
use crate::space::{Feature, ZoneId};
use std::ops::Bound;
use std::sync::atomic::Ordering;

impl From<FastFairError> for IndexError {
    fn from(error: FastFairError) -> IndexError {
        match error {
            FastFairError::Full(shortage) => IndexError::Full(shortage),
            FastFairError::Space(error) => error.into(),
            other => IndexError::Other(other.to_string().into()),
        }
    }
}

impl<W: Words> Index for FastFairIndex<W> {
    const WORD_BITS: u32 = 62;
    const DURABLE: bool = true;
    const NEVER_FAILS: bool = false;
    const HINTS: bool = true;
    const FEATURES: &'static [Feature] = &[Feature::MARKED_NODES, Feature::CHECKED_CHILDREN];

    type Cursor = ScanCursor;
    type Unflushed = Unflushed;

    #[inline]
    fn prefetch(&self, key: Key<'_>) {
        let _ = self.prefetch_key(key.bytes);
    }

    #[inline]
    fn prefetch_to_write(&self, key: Key<'_>) -> Option<u64> {
        self.prefetch_key(key.bytes).map(Hint::to_bits)
    }

    #[inline]
    fn candidate(&self, guard: &Guard<'_>, key: Key<'_>) -> Option<u64> {
        self.peek(guard, key.bytes).ok().flatten()
    }

    #[inline(always)]
    fn get(
        &self,
        guard: &Guard<'_>,
        key: Key<'_>,
        _matches: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>, IndexError> {
        // No key that is too long can have been added.
        if key.bytes.len() > KEY_MAX { Ok(None) } else { Ok(self.get(guard, key.bytes)?) }
    }

    fn names(&self, guard: &Guard<'_>, key: Key<'_>, word: u64) -> Result<bool, IndexError> {
        Ok(self.names(guard, key.bytes, word)?)
    }

    #[inline]
    fn hint(&self, guard: &Guard<'_>, key: Key<'_>) -> Result<Option<u64>, IndexError> {
        Ok(Some(self.locate_as::<false>(guard, key.bytes)?.hint.to_bits()))
    }

    fn make_room(&self, guard: &Guard<'_>, keys: usize, key_len: usize) -> Result<(), IndexError> {
        Ok(self.make_room(guard, keys, key_len)?)
    }

    #[inline]
    fn upsert(
        &self,
        guard: &Guard<'_>,
        key: Key<'_>,
        new: u64,
        near: Option<u64>,
        _matches: impl FnMut(u64) -> bool,
        _rehash: &dyn Fn(u64) -> u64,
    ) -> Result<Option<u64>, IndexError> {
        let at = |hint| self.upsert_at(guard, Hint::from_bits(hint), key.bytes, new).transpose();
        match near.and_then(at).transpose()? {
            Some(old) => Ok(Some(old)),
            None => Ok(self.upsert(guard, key.bytes, new)?.old),
        }
    }

    #[inline]
    fn replace(&self, guard: &Guard<'_>, key: Key<'_>, old: u64, new: u64) -> Result<bool, IndexError> {
        Ok(self.replace(guard, key.bytes, old, new)?)
    }

    #[inline]
    fn take(
        &self,
        guard: &Guard<'_>,
        key: Key<'_>,
        _matches: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>, IndexError> {
        Ok(self.take(guard, key.bytes)?)
    }

    #[inline]
    fn prefetch_repoint(&self, hint: Option<u64>, key: Key<'_>) -> Option<u64> {
        match hint {
            Some(hint) => self.prefetch(Hint::from_bits(hint)),
            None => return self.prefetch_key(key.bytes).map(Hint::to_bits),
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
    ) -> Result<Option<Repointed<Unflushed>>, IndexError> {
        let at = |hint| self.replace_at_unflushed(guard, Hint::from_bits(hint), old, new);
        if let Some(unflushed) = hint.and_then(at) {
            return Ok(Some(Repointed { unflushed, by_hint: true }));
        }
        let found = self.replace_unflushed(guard, key.bytes, old, new)?;
        Ok(found.map(|unflushed| Repointed { unflushed, by_hint: false }))
    }

    fn persist(&self, _guard: &Guard<'_>, unflushed: &mut Vec<Unflushed>) {
        self.persist_all(unflushed.drain(..));
    }

    fn next_batch(
        &self,
        guard: &Guard<'_>,
        cursor: &mut ScanCursor,
        out: &mut Vec<u64>,
    ) -> Result<bool, IndexError> {
        Ok(self.next_values(guard, cursor, out)?)
    }

    fn len(&self, guard: &Guard<'_>) -> Result<u64, IndexError> {
        Ok(self.len(guard)?)
    }

    fn audit(&self, guard: &Guard<'_>, _is_word: &dyn Fn(u64) -> bool) -> Result<(), IndexError> {
        self.audit(guard)?;
        Ok(())
    }

    fn stats(&self) -> IndexStats {
        let stats = self.stats();
        IndexStats { bytes: stats.bytes, pm_bytes: stats.pm_bytes, splits: stats.splits, records_read: 0 }
    }

    fn growth(&self) -> IndexGrowth {
        let (zones, is_linking) = self.arena.chain.growth();
        let [splits, removals] = [&self.splits, &self.removals].map(|count| count.load(Ordering::Relaxed));
        IndexGrowth { is_splitting: self.growing(), is_linking, splits, removals, zones }
    }

    fn zones(&self) -> Vec<ZoneId> {
        self.zones()
    }
}

impl<W: Words> BothWays for FastFairIndex<W> {
    type Scan = ScanCursor;
    type ScanBack = BackCursor;

    fn scan_from(&self, key: &[u8]) -> ScanCursor {
        ScanCursor::from(key)
    }

    fn next_in_order(
        &self,
        guard: &Guard<'_>,
        scan: &mut ScanCursor,
        limit: usize,
        each: impl FnMut(&[u8], u64),
    ) -> Result<bool, IndexError> {
        Ok(self.next_batch(guard, scan, limit, each)?)
    }

    fn scan_back_from(&self, bound: Bound<&[u8]>) -> BackCursor {
        BackCursor::from(bound)
    }

    fn prev_in_order(
        &self,
        guard: &Guard<'_>,
        scan: &mut BackCursor,
        limit: usize,
        each: impl FnMut(&[u8], u64),
    ) -> Result<bool, IndexError> {
        Ok(self.prev_batch(guard, scan, limit, each)?)
    }
}
