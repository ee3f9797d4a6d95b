//! The interface of a bucket index to a store over logs.

use super::iterate::{BucketCursor, Part};
use super::lock::Locking;
use super::numbers::FINGERPRINT_BITS;
use super::settings::BucketStats;
use super::slot::{FREE, PERSIST, WORD_BITS, deleted_word, is_key, is_own, key_word, reference};
use super::table::BucketIndex;
use super::unflushed::Unflushed;
use super::write::check_reference;
use crate::epoch::{Guard, Participant};
use crate::index::chain::damaged;
use crate::index::words::Words;
use crate::index::{Index, IndexError, IndexGrowth, IndexStats, Key, Records, Repointed};
use crate::record::Certifier;
use crate::space::ZoneId;
use quipu_medium::{LINE, WORD};
use std::sync::atomic::Ordering;

/// The bits of a hash that stand in the word of its key.
const FINGERPRINT: u64 = (1 << FINGERPRINT_BITS) - 1;
/// Buckets of a batch of a walk.
const BATCH: usize = 16;

impl<W: Words, L: Locking> Index for BucketIndex<W, L> {
    const WORD_BITS: u32 = WORD_BITS;
    const DURABLE: bool = true;
    const NEVER_FAILS: bool = false;
    const HINTS: bool = false;
    const FINGERPRINT: u64 = FINGERPRINT;

    type Cursor = BucketCursor;
    type Unflushed = Unflushed;

    /// That of the tables in all pools there are, for keys of every length.
    #[inline]
    fn key_hash(certifier: &Certifier, key: &[u8]) -> u64 {
        certifier.key_hash(key)
    }

    #[inline]
    fn prefetch(&self, _: &Participant, key: Key<'_>) -> Option<u64> {
        if let Ok(place) = self.zones.place(self.size().bucket(key.hash)) {
            self.words().prefetch(place);
        }
        None
    }

    #[inline]
    fn prefetch_to_write(&self, _: &Participant, key: Key<'_>) -> Option<u64> {
        if let Ok(place) = self.zones.place(self.size().bucket(key.hash)) {
            self.words().prefetch(place);
            self.locks.prefetch(place);
        }
        None
    }

    #[inline]
    fn candidate(&self, _guard: &Guard<'_>, key: Key<'_>, _near: Option<u64>) -> Option<u64> {
        let head = self.zones.place(self.size().bucket(key.hash)).ok()?;
        let words = self.words().load_line(head);
        let own = words[L::SLOTS..].iter().find(|word| is_key(**word) && is_own(**word, key.hash));
        own.map(|word| reference(*word))
    }

    #[inline(always)]
    fn get(
        &self,
        _guard: &Guard<'_>,
        key: Key<'_>,
        mut matches: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>, IndexError> {
        loop {
            let bucket = self.size().bucket(key.hash);
            let head = self.zones.place(bucket)?;
            let found = {
                let _shared = self.locks.share(self.words(), head);
                self.find(head, key.hash, &mut matches)?
            };
            // A split takes words out of a bucket only after the size has changed, so a reader that finds
            // nothing looks at the size again.
            if found.is_some() || self.size().bucket(key.hash) == bucket {
                return Ok(found);
            }
        }
    }

    #[inline]
    fn names(&self, _guard: &Guard<'_>, key: Key<'_>, named: u64) -> Result<bool, IndexError> {
        loop {
            let bucket = self.size().bucket(key.hash);
            let mut is_there = false;
            self.each_slot::<false>(self.zones.place(bucket)?, |_, word| {
                is_there |= is_key(word) && is_own(word, key.hash) && reference(word) == named;
            })?;
            if is_there || self.size().bucket(key.hash) == bucket {
                return Ok(is_there);
            }
        }
    }

    fn make_room(&self, _guard: &Guard<'_>, keys: usize, _key_len: usize) -> Result<(), IndexError> {
        self.zones.make_room(keys as u64)?;
        if self.zones.settings.grow {
            // A table that cannot grow any more has longer chains, for which there is room now.
            let _ = self.zones.extend_table(self.size().buckets + keys as u64);
        }
        Ok(())
    }

    #[inline]
    fn upsert(
        &self,
        _guard: &Guard<'_>,
        key: Key<'_>,
        new: u64,
        _near: Option<u64>,
        matches: impl FnMut(u64) -> bool,
        records: &dyn Records,
    ) -> Result<Option<u64>, IndexError> {
        check_reference(new);
        let held = self.lock(key.hash)?;
        let search = self.search(held.head, key.hash, matches)?;
        let word = key_word(key.hash, new);
        if let Some((slot, old)) = search.found {
            self.set(slot, word);
            return Ok(Some(old));
        }
        let is_in_head = search.free.is_some_and(|slot| slot / LINE == held.head / LINE);
        match search.free {
            Some(slot) => {
                self.count.add(slot / LINE, 1);
                self.set(slot, word);
            }
            None => {
                self.zones.append(search.tail, held.bucket, &[word | PERSIST])?;
                self.count.add(search.tail / LINE, 1);
            }
        }
        drop(held);
        if !is_in_head && self.zones.settings.grow {
            self.split_next(&|word| records.hash_of(word));
        }
        Ok(None)
    }

    #[inline]
    fn replace(&self, _guard: &Guard<'_>, key: Key<'_>, old: u64, new: u64) -> Result<bool, IndexError> {
        check_reference(new);
        let held = self.lock(key.hash)?;
        let found = self.search(held.head, key.hash, |reference| reference == old)?.found;
        Ok(found.map(|(slot, _)| self.set(slot, key_word(key.hash, new))).is_some())
    }

    /// The slot says that the key is deleted, durably, before it is free: a slot that were simply emptied
    /// could not tell a reader that there is something to make durable. After a crash the mark says no more
    /// than that the slot is free.
    #[inline]
    fn take(
        &self,
        _guard: &Guard<'_>,
        key: Key<'_>,
        _near: Option<u64>,
        matches: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>, IndexError> {
        let held = self.lock(key.hash)?;
        let Some((slot, old)) = self.search(held.head, key.hash, matches)?.found else { return Ok(None) };
        self.count.add(slot / LINE, -1);
        self.words().store(slot, deleted_word(key.hash, old));
        self.words().persist(slot, WORD);
        self.words().store(slot, FREE);
        Ok(Some(old))
    }

    #[inline]
    fn repoint(
        &self,
        _guard: &Guard<'_>,
        _hint: Option<u64>,
        key: Key<'_>,
        old: u64,
        new: u64,
    ) -> Result<Option<Repointed<Unflushed>>, IndexError> {
        check_reference(new);
        let held = self.lock(key.hash)?;
        let found = self.search(held.head, key.hash, |reference| reference == old)?.found;
        Ok(found.map(|(slot, _)| {
            let word = key_word(key.hash, new);
            self.words().store(slot, word);
            Repointed { unflushed: Unflushed { slot, word }, by_hint: false }
        }))
    }

    #[inline]
    fn persist(&self, _guard: &Guard<'_>, unflushed: &mut Vec<Unflushed>) {
        self.flush_together(unflushed);
        unflushed.clear();
    }

    /// A chain is copied at one moment, under its lock, so splits neither hide nor repeat a key.
    fn next_batch(
        &self,
        _guard: &Guard<'_>,
        cursor: &mut BucketCursor,
        out: &mut Vec<u64>,
    ) -> Result<bool, IndexError> {
        let begun = cursor.point;
        for _ in 0..BATCH {
            let Some(Part { held, next }) = self.lock_at(cursor.point)? else { break };
            self.settle(held.head)?;
            let mut blank = None;
            self.each_slot::<true>(held.head, |slot, word| {
                out.extend(is_key(word).then(|| reference(word)));
                blank = blank.or((word == 0).then_some(slot));
            })?;
            if let Some(slot) = blank {
                damaged("a slot of the index", slot)?;
            }
            cursor.point = next;
        }
        Ok(cursor.point != begun)
    }

    /// Of an index that has been opened, and not made, this looks at all of it.
    fn len(&self, _guard: &Guard<'_>) -> Result<u64, IndexError> {
        if let Some(keys) = self.count.get() {
            return Ok(keys);
        }
        let (mut keys, mut point) = (0, 0);
        while let Some(Part { held, next }) = self.lock_at(point)? {
            self.each_slot::<true>(held.head, |_, word| keys += u64::from(is_key(word)))?;
            point = next;
        }
        Ok(keys)
    }

    fn audit(&self, _guard: &Guard<'_>, is_word: &dyn Fn(u64) -> bool) -> Result<(), IndexError> {
        self.audit(is_word)?;
        Ok(())
    }

    fn stats(&self) -> IndexStats {
        let BucketStats { bytes, pm_bytes, splits, records_read, .. } = self.stats();
        IndexStats { bytes, pm_bytes, splits, records_read }
    }

    fn growth(&self) -> IndexGrowth {
        let (zones, is_linking) = self.zones.chain.growth();
        let is_splitting = self.growing.load(Ordering::Relaxed);
        IndexGrowth {
            is_splitting,
            is_linking,
            splits: self.splits.load(Ordering::Relaxed),
            removals: 0,
            zones,
        }
    }

    fn zones(&self) -> Vec<ZoneId> {
        self.zones.all()
    }
}
