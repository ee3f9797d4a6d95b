//! c-ALEX as a store over logs uses it.

use super::key::WORD_BITS;
use super::scan::Walk;
use super::walk::Alex;
use crate::epoch::{Guard, Participant};
use crate::index::{BothWays, Index, IndexError, IndexGrowth, IndexStats, Key, Records, Repointed};
use crate::sync::atomic::Ordering;
use std::ops::Bound;

/// Words that a walk tells at a time.
const BATCH: usize = 32;

/// A word with bits of the index would be taken for a pointer.
#[inline]
fn check_word(word: u64) {
    assert!(word != 0 && word >> WORD_BITS == 0, "a word has {WORD_BITS} bits");
}

impl Index for Alex {
    const WORD_BITS: u32 = WORD_BITS;
    const DURABLE: bool = false;
    const NEVER_FAILS: bool = true;
    const HINTS: bool = false;

    type Cursor = Walk;
    type Unflushed = ();

    #[inline]
    fn prefetch(&self, participant: &Participant, key: Key<'_>) -> Option<u64> {
        self.prefetch_slot::<false>(&participant.pin_to_read(), key.bytes);
        None
    }

    #[inline]
    fn prefetch_to_write(&self, participant: &Participant, key: Key<'_>) -> Option<u64> {
        // Not for reads alone, which would wait for the stores of the write before.
        self.prefetch_slot::<true>(&participant.pin(), key.bytes);
        None
    }

    #[inline]
    fn candidate(&self, guard: &Guard<'_>, key: Key<'_>, _near: Option<u64>) -> Option<u64> {
        self.word_of(guard, key.bytes, |_| true)
    }

    #[inline(always)]
    fn get(
        &self,
        guard: &Guard<'_>,
        key: Key<'_>,
        matches: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>, IndexError> {
        Ok(self.word_of(guard, key.bytes, matches))
    }

    #[inline]
    fn upsert(
        &self,
        guard: &Guard<'_>,
        key: Key<'_>,
        new: u64,
        _near: Option<u64>,
        matches: impl FnMut(u64) -> bool,
        records: &dyn Records,
    ) -> Result<Option<u64>, IndexError> {
        check_word(new);
        Ok(self.put(guard, (key.bytes, key.hash), new, matches, records))
    }

    #[inline]
    fn replace(&self, guard: &Guard<'_>, key: Key<'_>, old: u64, new: u64) -> Result<bool, IndexError> {
        check_word(new);
        Ok(self.replace_word(guard, key.bytes, old, new))
    }

    #[inline]
    fn take(
        &self,
        guard: &Guard<'_>,
        key: Key<'_>,
        _near: Option<u64>,
        matches: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>, IndexError> {
        Ok(self.remove(guard, (key.bytes, key.hash), matches))
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
        check_word(new);
        let done = self.replace_word(guard, key.bytes, old, new);
        Ok(done.then_some(Repointed { unflushed: (), by_hint: false }))
    }

    fn next_batch(
        &self,
        guard: &Guard<'_>,
        cursor: &mut Walk,
        out: &mut Vec<u64>,
    ) -> Result<bool, IndexError> {
        Ok(self.walk::<false>(guard, cursor, BATCH, |word| out.push(word)))
    }

    fn len(&self, _guard: &Guard<'_>) -> Result<u64, IndexError> {
        Ok(self.count.get().unwrap_or_default())
    }

    fn stats(&self) -> IndexStats {
        let read = |count: &crate::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        let bytes = read(&self.size.bytes) + self.size.builder.memory.bytes() as u64 + self.count.bytes();
        IndexStats {
            bytes,
            pm_bytes: 0,
            splits: read(&self.size.splits),
            records_read: read(&self.size.records_read),
        }
    }

    /// Nothing shows of a leaf that is built anew but a pause of its readers.
    fn growth(&self) -> IndexGrowth {
        IndexGrowth { splits: self.size.splits.load(Ordering::Relaxed), ..IndexGrowth::default() }
    }
}

impl BothWays for Alex {
    type Scan = Walk;
    type ScanBack = Walk;

    fn scan_from(&self, key: &[u8]) -> Walk {
        Walk::from(key)
    }

    fn next_words(
        &self,
        guard: &Guard<'_>,
        scan: &mut Walk,
        limit: usize,
        each: impl FnMut(u64),
    ) -> Result<bool, IndexError> {
        Ok(self.walk::<false>(guard, scan, limit.max(1), each))
    }

    fn scan_back_from(&self, bound: Bound<&[u8]>) -> Walk {
        match bound {
            Bound::Included(key) | Bound::Excluded(key) => Walk::from(key),
            Bound::Unbounded => Walk::default(),
        }
    }

    fn prev_words(
        &self,
        guard: &Guard<'_>,
        scan: &mut Walk,
        limit: usize,
        each: impl FnMut(u64),
    ) -> Result<bool, IndexError> {
        Ok(self.walk::<true>(guard, scan, limit.max(1), each))
    }
}
