//! A Masstree as a store over logs uses it. It has the keys, so it asks no caller.

use super::back::BackCursor;
use super::border::Found;
use super::descend::Leaf;
use super::key::Piece;
use super::permutation::SLOTS;
use super::scan::Cursor;
use super::tree::{Masstree, MasstreeStats, check_word};
use crate::epoch::{Guard, Participant};
use crate::index::hint::Hint;
use crate::index::{BothWays, InOrder, Index, IndexError, IndexGrowth, IndexStats, Key, Records, Repointed};
use crate::sync::atomic::Ordering;
use std::ops::Bound;

/// Words that a walk tells at a time: enough to be worth the way down to where it goes on.
const BATCH: usize = 128;

impl Index for Masstree {
    const WORD_BITS: u32 = 62;
    const DURABLE: bool = false;
    const NEVER_FAILS: bool = true;
    const HINTS: bool = true;
    const HAS_KEYS: bool = true;

    type Cursor = Cursor;
    type Unflushed = ();

    #[inline]
    fn prefetch(&self, _: &Participant, key: Key<'_>) -> Option<u64> {
        self.prefetch_leaf(key.bytes).map(Hint::bits)
    }

    #[inline]
    fn prefetch_to_write(&self, _: &Participant, key: Key<'_>) -> Option<u64> {
        self.prefetch_leaf(key.bytes).map(Hint::bits)
    }

    #[inline]
    fn candidate(&self, guard: &Guard<'_>, key: Key<'_>, near: Option<u64>) -> Option<u64> {
        self.word_near(guard, key.bytes, near)
    }

    #[inline(always)]
    fn get(
        &self,
        guard: &Guard<'_>,
        key: Key<'_>,
        matches: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>, IndexError> {
        self.get_near(guard, key, None, matches)
    }

    #[inline(always)]
    fn get_near(
        &self,
        guard: &Guard<'_>,
        key: Key<'_>,
        near: Option<u64>,
        _matches: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>, IndexError> {
        Ok(self.word_near(guard, key.bytes, near))
    }

    #[inline]
    fn hint(&self, guard: &Guard<'_>, key: Key<'_>) -> Result<Option<u64>, IndexError> {
        let Leaf { number, found, .. } = self.find(guard, key.bytes);
        let slot = match found {
            Found::Word { slot, .. } | Found::Layer { slot, .. } | Found::Other { slot } => slot,
            Found::Nothing => {
                let permutation = self.nodes.border(number).permutation();
                // The slot to be used next; of a full node, any.
                permutation.slot(permutation.len().min(SLOTS - 1))
            }
        };
        Ok(Some(Hint::new(number.into(), slot).bits()))
    }

    fn make_room(&self, _guard: &Guard<'_>, _keys: usize, _key_len: usize) -> Result<(), IndexError> {
        if self.nodes.has_room() { Ok(()) } else { Err(IndexError::OutOfNumbers) }
    }

    #[inline]
    fn upsert(
        &self,
        guard: &Guard<'_>,
        key: Key<'_>,
        new: u64,
        near: Option<u64>,
        _matches: impl FnMut(u64) -> bool,
        _records: &dyn Records,
    ) -> Result<Option<u64>, IndexError> {
        check_word(new);
        let key = key.bytes;
        if key.len() > Masstree::MAX_KEY {
            return Err(IndexError::KeyTooLong { len: key.len(), max: Masstree::MAX_KEY });
        }
        let (leaf, border) = self.lock_near(guard, key, near);
        if let Found::Word { slot, word: old } = leaf.found {
            border.set_word(slot, new);
            border.version.unlock();
            return Ok(Some(old));
        }
        self.add(guard, leaf, &Piece::at(key, leaf.offset), new)?;
        Ok(None)
    }

    #[inline]
    fn replace(&self, guard: &Guard<'_>, key: Key<'_>, old: u64, new: u64) -> Result<bool, IndexError> {
        check_word(new);
        let (leaf, border) = self.lock(guard, key.bytes);
        let slot = match leaf.found {
            Found::Word { slot, word } if word == old => Some(slot),
            _ => None,
        };
        if let Some(slot) = slot {
            border.set_word(slot, new);
        }
        border.version.unlock();
        Ok(slot.is_some())
    }

    #[inline]
    fn take(
        &self,
        guard: &Guard<'_>,
        key: Key<'_>,
        near: Option<u64>,
        _matches: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>, IndexError> {
        Ok(self.remove(guard, key.bytes, near))
    }

    #[inline]
    fn prefetch_repoint(&self, participant: &Participant, hint: Option<u64>, key: Key<'_>) -> Option<u64> {
        let Some(bits) = hint else { return self.prefetch_to_write(participant, key) };
        self.prefetch_at(Hint::from_bits(bits));
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
        check_word(new);
        let by_hint = hint.is_some_and(|hint| self.replace_at(Hint::from_bits(hint), old, new));
        let done = by_hint || self.replace(guard, key, old, new)?;
        Ok(done.then_some(Repointed { unflushed: (), by_hint }))
    }

    fn next_batch(
        &self,
        guard: &Guard<'_>,
        cursor: &mut Cursor,
        out: &mut Vec<u64>,
    ) -> Result<bool, IndexError> {
        Ok(self.scan_words(guard, cursor, BATCH, |word| out.push(word)) > 0)
    }

    fn len(&self, _guard: &Guard<'_>) -> Result<u64, IndexError> {
        Ok(self.count.get().unwrap_or_default())
    }

    fn stats(&self) -> IndexStats {
        let MasstreeStats { bytes, splits, .. } = self.stats();
        IndexStats { bytes, pm_bytes: 0, splits, records_read: 0 }
    }

    /// A split never shows: nodes split one by one, and their writer waits for locks of other nodes alone.
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

    fn next_words(
        &self,
        guard: &Guard<'_>,
        scan: &mut Cursor,
        limit: usize,
        each: impl FnMut(u64),
    ) -> Result<bool, IndexError> {
        Ok(self.scan_words(guard, scan, limit.max(1), each) > 0)
    }

    fn scan_back_from(&self, bound: Bound<&[u8]>) -> BackCursor {
        match bound {
            Bound::Included(key) => BackCursor::at(key),
            Bound::Excluded(key) => BackCursor::before(key),
            Bound::Unbounded => BackCursor::default(),
        }
    }

    fn prev_words(
        &self,
        guard: &Guard<'_>,
        scan: &mut BackCursor,
        limit: usize,
        each: impl FnMut(u64),
    ) -> Result<bool, IndexError> {
        Ok(self.scan_words_back(guard, scan, limit.max(1), each) > 0)
    }
}

impl InOrder for Masstree {
    fn next_in_order(
        &self,
        guard: &Guard<'_>,
        scan: &mut Cursor,
        limit: usize,
        each: impl FnMut(&[u8], u64),
    ) -> Result<bool, IndexError> {
        Ok(self.scan(guard, scan, limit.max(1), each) > 0)
    }

    fn prev_in_order(
        &self,
        guard: &Guard<'_>,
        scan: &mut BackCursor,
        limit: usize,
        each: impl FnMut(&[u8], u64),
    ) -> Result<bool, IndexError> {
        Ok(self.scan_back(guard, scan, limit.max(1), each) > 0)
    }
}
