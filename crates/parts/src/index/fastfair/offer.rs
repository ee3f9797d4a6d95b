//! A FAST&FAIR index as a store over logs uses it. It has the keys, so it asks no caller, and answers
//! durably.

use super::back::BackCursor;
use super::key::Key as Sought;
use super::scan::ScanCursor;
use super::settings::{FastFairStats, KEY_MAX, VALUE_BITS};
use super::tree::FastFairIndex;
use super::unflushed::Unflushed;
use super::write::{check_value, slot_of};
use crate::epoch::{Guard, Participant};
use crate::index::hint::Hint;
use crate::index::words::Words;
use crate::index::{BothWays, InOrder, Index, IndexError, IndexGrowth, IndexStats, Key, Records, Repointed};
use crate::space::ZoneId;
use std::ops::Bound;
use std::sync::atomic::Ordering;

impl<W: Words> Index for FastFairIndex<W> {
    const WORD_BITS: u32 = VALUE_BITS;
    const DURABLE: bool = true;
    const NEVER_FAILS: bool = false;
    const HINTS: bool = true;

    type Cursor = ScanCursor;
    type Unflushed = Unflushed;

    #[inline]
    fn prefetch(&self, _: &Participant, key: Key<'_>) -> Option<u64> {
        let _ = self.prefetch_leaf(key.bytes);
        None
    }

    #[inline]
    fn prefetch_to_write(&self, _: &Participant, key: Key<'_>) -> Option<u64> {
        self.prefetch_leaf(key.bytes).map(Hint::bits)
    }

    #[inline]
    fn candidate(&self, guard: &Guard<'_>, key: Key<'_>, _near: Option<u64>) -> Option<u64> {
        self.value_of::<false>(guard, key.bytes).ok().flatten()
    }

    #[inline(always)]
    fn get(
        &self,
        guard: &Guard<'_>,
        key: Key<'_>,
        _matches: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>, IndexError> {
        // No key that is too long can have been added.
        if key.bytes.len() > KEY_MAX {
            return Ok(None);
        }
        self.value_of::<true>(guard, key.bytes)
    }

    fn names(&self, guard: &Guard<'_>, key: Key<'_>, word: u64) -> Result<bool, IndexError> {
        Ok(self.value_of::<false>(guard, key.bytes)? == Some(word))
    }

    #[inline]
    fn hint(&self, guard: &Guard<'_>, key: Key<'_>) -> Result<Option<u64>, IndexError> {
        let key = Sought::new(key.bytes)?;
        let (node, entry) = self.find::<false>(guard, &key)?;
        let slot = match entry {
            Some(entry) => entry.slot,
            // Good enough for a hint: entries may move.
            None => {
                let entries = node.entries()?;
                let behind = node.rank(&entries, &key)?;
                behind.checked_sub(1).map_or(0, |last| entries[last].slot)
            }
        };
        Ok(Some(Hint::new(node.number, slot).bits()))
    }

    fn make_room(&self, guard: &Guard<'_>, keys: usize, key_len: usize) -> Result<(), IndexError> {
        self.keep_room(guard, keys, key_len)
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
        check_value(new);
        let key = Sought::new(key.bytes)?;
        if let Some(hint) = near
            && let Some(old) = self.put_at(Hint::from_bits(hint), &key, new)?
        {
            return Ok(Some(old));
        }
        self.put(guard, &key, new)
    }

    #[inline]
    fn replace(&self, guard: &Guard<'_>, key: Key<'_>, old: u64, new: u64) -> Result<bool, IndexError> {
        check_value(new);
        let found = self.lock_entry(guard, &Sought::new(key.bytes)?, |value| value == old)?;
        Ok(found.map(|(leaf, entry)| leaf.set_value(entry, new)).is_some())
    }

    #[inline]
    fn take(
        &self,
        guard: &Guard<'_>,
        key: Key<'_>,
        _near: Option<u64>,
        _matches: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>, IndexError> {
        self.remove(guard, &Sought::new(key.bytes)?)
    }

    #[inline]
    fn prefetch_repoint(&self, participant: &Participant, hint: Option<u64>, key: Key<'_>) -> Option<u64> {
        let Some(bits) = hint else { return self.prefetch_to_write(participant, key) };
        let hint = Hint::from_bits(bits);
        if let Some(node) = self.arena.find_node(hint.node()) {
            node.prefetch(slot_of(hint));
        }
        Some(bits)
    }

    /// By a hint, an entry is known by its value alone, so two keys of one value may be confused.
    #[inline]
    fn repoint(
        &self,
        guard: &Guard<'_>,
        hint: Option<u64>,
        key: Key<'_>,
        old: u64,
        new: u64,
    ) -> Result<Option<Repointed<Unflushed>>, IndexError> {
        check_value(new);
        if let Some((leaf, entry)) = hint.and_then(|hint| self.lock_at(Hint::from_bits(hint), old)) {
            return Ok(Some(Repointed { unflushed: self.set_unflushed(&leaf, entry, new), by_hint: true }));
        }
        let found = self.lock_entry(guard, &Sought::new(key.bytes)?, |value| value == old)?;
        Ok(found.map(|(leaf, entry)| Repointed {
            unflushed: self.set_unflushed(&leaf, entry, new),
            by_hint: false,
        }))
    }

    fn persist(&self, _guard: &Guard<'_>, unflushed: &mut Vec<Unflushed>) {
        self.persist_all(unflushed);
    }

    /// Looks at few keys only.
    fn next_batch(
        &self,
        guard: &Guard<'_>,
        cursor: &mut ScanCursor,
        out: &mut Vec<u64>,
    ) -> Result<bool, IndexError> {
        let Some((entries, behind)) = self.next_leaf(guard, cursor)? else { return Ok(false) };
        out.extend(entries.iter().map(|entry| entry.value));
        *cursor = behind;
        Ok(true)
    }

    /// Of an index that has been opened, and not made, this walks over all leaves.
    fn len(&self, guard: &Guard<'_>) -> Result<u64, IndexError> {
        if let Some(keys) = self.count.get() {
            return Ok(keys);
        }
        let (mut keys, mut cursor) = (0, ScanCursor::default());
        while let Some((entries, behind)) = self.next_leaf(guard, &cursor)? {
            keys += entries.len() as u64;
            cursor = behind;
        }
        Ok(keys)
    }

    fn audit(&self, guard: &Guard<'_>, _is_word: &dyn Fn(u64) -> bool) -> Result<(), IndexError> {
        self.audit(guard)?;
        Ok(())
    }

    fn stats(&self) -> IndexStats {
        let FastFairStats { bytes, pm_bytes, splits, .. } = self.stats();
        IndexStats { bytes, pm_bytes, splits, records_read: 0 }
    }

    fn growth(&self) -> IndexGrowth {
        let (zones, is_linking) = self.arena.chain.growth();
        let is_splitting = self.splitting.load(Ordering::Relaxed) != 0;
        let [splits, removals] = [&self.splits, &self.removals].map(|count| count.load(Ordering::Relaxed));
        IndexGrowth { is_splitting, is_linking, splits, removals, zones }
    }

    fn zones(&self) -> Vec<ZoneId> {
        self.arena.zones()
    }
}

impl<W: Words> BothWays for FastFairIndex<W> {
    type Scan = ScanCursor;
    type ScanBack = BackCursor;

    fn scan_from(&self, key: &[u8]) -> ScanCursor {
        ScanCursor::from(key)
    }

    fn next_words(
        &self,
        guard: &Guard<'_>,
        scan: &mut ScanCursor,
        limit: usize,
        mut each: impl FnMut(u64),
    ) -> Result<bool, IndexError> {
        self.next_in_order(guard, scan, limit, |_, word| each(word))
    }

    fn scan_back_from(&self, bound: Bound<&[u8]>) -> BackCursor {
        BackCursor::from(bound)
    }

    fn prev_words(
        &self,
        guard: &Guard<'_>,
        scan: &mut BackCursor,
        limit: usize,
        mut each: impl FnMut(u64),
    ) -> Result<bool, IndexError> {
        self.prev_in_order(guard, scan, limit, |_, word| each(word))
    }
}

impl<W: Words> InOrder for FastFairIndex<W> {
    fn next_in_order(
        &self,
        guard: &Guard<'_>,
        scan: &mut ScanCursor,
        limit: usize,
        each: impl FnMut(&[u8], u64),
    ) -> Result<bool, IndexError> {
        self.scan(guard, scan, limit, each)
    }

    fn prev_in_order(
        &self,
        guard: &Guard<'_>,
        scan: &mut BackCursor,
        limit: usize,
        each: impl FnMut(&[u8], u64),
    ) -> Result<bool, IndexError> {
        self.scan_back(guard, scan, limit, each)
    }
}
