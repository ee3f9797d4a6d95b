//! The index as its users see it, and its lookups and changes.

use super::overflow::OverflowEntry;
use super::probe::SLOTS;
use super::segment::{Segment, State, places};
use super::settings::{BUCKET_BITS_MAX, HashIndexSettings, HashIndexStats};
use super::slab::Slabs;
use super::slot::{EMPTY, REFERENCE_BITS, REFERENCE_MASK, reference_of, word_of};
use crate::epoch::{Guard, Participant};
use crate::index::directory::{Directory, EntryWord};
use crate::index::{Cursor, Index, IndexError, IndexGrowth, IndexStats, Key, Records, Repointed};
use crate::sync::{SpinGuard, point};
use quipu_medium::arch::{prefetch, prefetch_to_write};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const INITIAL_DEPTH_MAX: u32 = 16;

/// An extendible hash index in DRAM: hash to reference.
///
/// All methods may be called by many threads at once, except that two must not write the same key at the same
/// time. Guards are not needed for the index's own memory; they keep the records from being reused while
/// `matches` looks at them.
pub struct HashIndex {
    pub(super) directory: Directory,
    pub(super) slabs: Slabs,
    pub(super) segments: AtomicU64,
    pub(super) splits: AtomicU64,
    pub(super) records_read: AtomicU64,
    pub(super) strays: AtomicU64,
    pub(super) splitting: AtomicU32,
}

impl HashIndex {
    /// An empty index. Settings out of range are brought into range.
    pub fn new(settings: HashIndexSettings) -> HashIndex {
        let depth = settings.initial_depth.min(INITIAL_DEPTH_MAX);
        let slabs = Slabs::new(settings.bucket_bits.clamp(1, BUCKET_BITS_MAX));
        let segments: Vec<_> = (0..1 << depth).map(|_| (slabs.allocate(depth, depth), depth)).collect();
        HashIndex::of(slabs, &segments)
    }

    /// An index of these segments with their depths, in the order of their hashes.
    pub(super) fn of(slabs: Slabs, segments: &[(EntryWord, u32)]) -> HashIndex {
        HashIndex {
            directory: Directory::new(segments.iter().copied()),
            slabs,
            segments: AtomicU64::new(segments.len() as u64),
            splits: AtomicU64::new(0),
            records_read: AtomicU64::new(0),
            strays: AtomicU64::new(0),
            splitting: AtomicU32::new(0),
        }
    }

    /// The size of the index, and its work so far. It visits every segment's metadata.
    pub fn stats(&self) -> HashIndexStats {
        let segments = self.segments.load(Ordering::Relaxed);
        let mut stats = HashIndexStats {
            bytes: self.slabs.bytes() + self.directory.bytes(),
            segments,
            depth: self.directory.depth(),
            splits: self.splits.load(Ordering::Relaxed),
            records_read_by_splits: self.records_read.load(Ordering::Relaxed),
            strays: self.strays.load(Ordering::Relaxed),
            slots: segments * ((self.slabs.bucket_mask() + 1) * SLOTS) as u64,
            ..HashIndexStats::default()
        };
        self.slabs.for_each_meta(|meta| {
            stats.bytes += meta.overflow_bytes();
            stats.displacements += u64::from(meta.displacements());
            stats.overflowing += meta.overflowing().count() as u64;
        });
        stats
    }

    /// A lookup that proves absence: nothing moved while it looked, and it looked everywhere.
    #[inline(never)]
    fn get_settled(&self, hash: u64, matches: &mut dyn FnMut(u64) -> bool) -> Option<u64> {
        let mut entry = self.directory.entry(hash);
        loop {
            point();
            let segment = self.slabs.segment(entry);
            let version = segment.meta.settled_version();
            // Only a version read before the directory proves that the entry holds for the reads that follow.
            let current = self.directory.entry(hash);
            if current == entry {
                if let Some((_, found)) = segment.find(hash, &mut *matches) {
                    return Some(found);
                }
                if segment.meta.is_still(version) {
                    return None;
                }
            }
            entry = current;
        }
    }

    /// Adds a key to the locked segment, which may have to split first.
    #[inline]
    fn add<'a>(
        &'a self,
        mut locked: (EntryWord, SpinGuard<'a, State>),
        hash: u64,
        reference: u64,
        rehash: &dyn Fn(u64) -> u64,
    ) {
        loop {
            let (entry, mut state) = locked;
            let segment = self.slabs.segment(entry);
            let keys = segment.meta.keys();
            let is_full = keys as usize >= full(segment.slot_count());
            if !(is_full && self.should_split(&segment, &state)) && segment.place(hash, reference) {
                segment.meta.set_keys(keys + 1);
                return;
            }
            if !self.should_split(&segment, &state) {
                segment.meta.push_overflow(hash, reference);
                segment.meta.set_keys(keys + 1);
                state.overflowing += 1;
                return;
            }
            self.split(hash, entry, &mut state, rehash);
            drop(state);
            locked = self.lock(hash);
        }
    }

    /// Locks the segment that `hash` belongs to.
    #[inline]
    pub(super) fn lock(&self, hash: u64) -> (EntryWord, SpinGuard<'_, State>) {
        loop {
            let entry = self.directory.entry(hash);
            let state = self.slabs.meta(entry).state.lock();
            // The segment may have split while the lock was not yet ours; then the hash may be elsewhere.
            if self.directory.entry(hash) == entry {
                return (entry, state);
            }
        }
    }
}

impl Index for HashIndex {
    const WORD_BITS: u32 = REFERENCE_BITS;
    const DURABLE: bool = false;
    const NEVER_FAILS: bool = true;
    const HINTS: bool = false;

    type Cursor = Cursor;
    type Unflushed = ();

    #[inline]
    fn prefetch(&self, _: &Participant, key: Key<'_>) -> Option<u64> {
        let entry = self.directory.entry(key.hash);
        let (_, both) = places(key.hash, entry.number(), self.slabs.bucket_mask());
        for bucket in both {
            prefetch(&raw const *self.slabs.bucket(entry, bucket));
        }
        None
    }

    #[inline]
    fn prefetch_to_write(&self, _: &Participant, key: Key<'_>) -> Option<u64> {
        let entry = self.directory.entry(key.hash);
        let (_, both) = places(key.hash, entry.number(), self.slabs.bucket_mask());
        for bucket in both {
            prefetch_to_write(&raw const *self.slabs.bucket(entry, bucket));
        }
        prefetch_to_write(&raw const *self.slabs.meta(entry));
        None
    }

    #[inline]
    fn candidate(&self, _guard: &Guard<'_>, key: Key<'_>, _near: Option<u64>) -> Option<u64> {
        let entry = self.directory.entry(key.hash);
        let (tag, both) = places(key.hash, entry.number(), self.slabs.bucket_mask());
        let words = both.map(|number| self.slabs.bucket(entry, number).words_with_tag(tag));
        words.into_iter().find_map(|mut words| words.next()).map(|(_, word)| reference_of(word))
    }

    /// `matches` may see a reference more than once.
    #[inline(always)]
    fn get(
        &self,
        _guard: &Guard<'_>,
        key: Key<'_>,
        mut matches: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>, IndexError> {
        let entry = self.directory.entry(key.hash);
        let (tag, both) = places(key.hash, entry.number(), self.slabs.bucket_mask());
        // Both masks first: neither comparison depends on the other, so the two misses overlap.
        for words in both.map(|number| self.slabs.bucket(entry, number).words_with_tag(tag)) {
            for (_, word) in words {
                if matches(reference_of(word)) {
                    return Ok(Some(reference_of(word)));
                }
            }
        }
        Ok(self.get_settled(key.hash, &mut matches))
    }

    /// If the segment must split and its tags have run out, `records` are asked for the hash of each of its
    /// records. A reference whose hash then leads elsewhere is dropped, and
    /// [counted](HashIndexStats::strays): its record has changed.
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
        let locked = self.lock(key.hash);
        let segment = self.slabs.segment(locked.0);
        match segment.find(key.hash, matches) {
            Some((held, old)) => {
                segment.set(held, key.hash, new);
                Ok(Some(old))
            }
            None => {
                self.add(locked, key.hash, new, &|word| records.hash_of(word));
                Ok(None)
            }
        }
    }

    #[inline]
    fn replace(&self, _guard: &Guard<'_>, key: Key<'_>, old: u64, new: u64) -> Result<bool, IndexError> {
        check_reference(new);
        let (entry, _state) = self.lock(key.hash);
        let segment = self.slabs.segment(entry);
        let found = segment.find(key.hash, |reference| reference == old);
        Ok(found.map(|(held, _)| segment.set(held, key.hash, new)).is_some())
    }

    #[inline]
    fn take(
        &self,
        _guard: &Guard<'_>,
        key: Key<'_>,
        _near: Option<u64>,
        matches: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>, IndexError> {
        let (entry, mut state) = self.lock(key.hash);
        let segment = self.slabs.segment(entry);
        let Some((held, old)) = segment.find(key.hash, matches) else { return Ok(None) };
        segment.erase(held, &mut state);
        Ok(Some(old))
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
        let done = self.replace(guard, key, old, new)?;
        Ok(done.then_some(Repointed { unflushed: (), by_hint: false }))
    }

    /// A segment is copied at one moment, under its lock.
    fn next_batch(
        &self,
        _guard: &Guard<'_>,
        cursor: &mut Cursor,
        out: &mut Vec<u64>,
    ) -> Result<bool, IndexError> {
        let Some(next) = cursor.next() else { return Ok(false) };
        let (entry, state) = self.lock(next);
        let segment = self.slabs.segment(entry);
        out.extend(segment.references_in_buckets());
        out.extend(segment.meta.overflowing().map(|(_, reference)| reference));
        cursor.pass(next, state.depth);
        Ok(true)
    }

    fn len(&self, _guard: &Guard<'_>) -> Result<u64, IndexError> {
        let mut keys = 0;
        self.slabs.for_each_meta(|meta| keys += u64::from(meta.keys()));
        Ok(keys)
    }

    fn stats(&self) -> IndexStats {
        let HashIndexStats { bytes, splits, records_read_by_splits: records_read, .. } = self.stats();
        IndexStats { bytes, pm_bytes: 0, splits, records_read }
    }

    fn growth(&self) -> IndexGrowth {
        let splits = self.splits.load(Ordering::Relaxed);
        let is_splitting = self.splitting.load(Ordering::Relaxed) != 0;
        IndexGrowth { is_splitting, splits, ..IndexGrowth::default() }
    }
}

/// Keys at which a segment splits although there may be free slots. Beyond nine tenths nearly every insert
/// has to move others first, each move a cache miss, and the last twentieth costs more than all before it.
fn full(slots: usize) -> usize {
    slots * 29 / 32
}

fn check_reference(reference: u64) {
    assert!(reference != 0 && reference <= REFERENCE_MASK, "a reference has 1 to 48 bits and is not zero");
}

/// Where a key's reference stands in a locked segment.
enum Held<'a> {
    Slot(&'a AtomicU64),
    Overflow(&'a OverflowEntry),
}

impl<'a> Segment<'a> {
    /// Looks in both buckets and the overflow chain for the reference for which `matches` says yes. Without
    /// the lock, finding none proves nothing.
    #[inline]
    fn find(&self, hash: u64, mut matches: impl FnMut(u64) -> bool) -> Option<(Held<'a>, u64)> {
        let (tag, both) = self.places(hash);
        for words in both.map(|bucket| self.buckets[bucket].words_with_tag(tag)) {
            for (slot, word) in words {
                if matches(reference_of(word)) {
                    return Some((Held::Slot(slot), reference_of(word)));
                }
            }
        }
        if self.meta.overflow.load(Ordering::Relaxed).is_null() {
            return None;
        }
        self.meta.overflow_entries().find_map(|entry| {
            let (_, reference) =
                entry.load().filter(|(of_entry, found)| *of_entry == hash && matches(*found))?;
            Some((Held::Overflow(entry), reference))
        })
    }

    /// Lets a key have another reference. The caller holds the lock.
    #[inline]
    fn set(&self, held: Held<'_>, hash: u64, new: u64) {
        match held {
            Held::Slot(slot) => slot.store(word_of(self.places(hash).0, new), Ordering::Release),
            Held::Overflow(entry) => entry.replace(new),
        }
    }

    /// Removes a key. The caller holds the lock, whose state this is.
    fn erase(&self, held: Held<'_>, state: &mut State) {
        match held {
            Held::Slot(slot) => slot.store(EMPTY, Ordering::Release),
            Held::Overflow(entry) => {
                entry.clear();
                state.overflowing -= 1;
            }
        }
        self.meta.set_keys(self.meta.keys() - 1);
    }
}
