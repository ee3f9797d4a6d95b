//! The index as its users see it.

use super::overflow::OverflowEntry;
use super::probe::SLOTS;
use super::segment::{EntryWord, Segment, State, places};
use super::settings::{BUCKET_BITS_MAX, HashIndexSettings, HashIndexStats};
use super::slab::Slabs;
use super::slot::{REFERENCE_MASK, reference_of, word_of};
use crate::epoch::Guard;
use crate::index::directory::Directory;
use crate::sync::{SpinGuard, point};
use quipu_medium::arch::{prefetch, prefetch_to_write};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const INITIAL_DEPTH_MAX: u32 = 16;

/// An extendible hash index in DRAM: hash to reference.
///
/// All methods may be called by many threads at once, except that two must not insert, replace or remove the same
/// key at the same time. Guards are not needed for the index's own memory; they keep the records from being
/// reused while `matches` looks at them.
pub struct HashIndex {
    pub(super) directory: Directory<EntryWord>,
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
        let bucket_bits = settings.bucket_bits.clamp(1, BUCKET_BITS_MAX);
        let slabs = Slabs::new(bucket_bits);
        let first: Vec<EntryWord> = (0..1 << depth).map(|_| slabs.allocate(depth, depth)).collect();
        // A line of the directory may have room for more entries than there are; no hash leads to those.
        let directory = Directory::new(depth, |i| first[i % first.len()]);
        HashIndex::of(directory, slabs, 1 << depth)
    }

    /// An index of these segments.
    pub(super) fn of(directory: Directory<EntryWord>, slabs: Slabs, segments: u64) -> HashIndex {
        HashIndex {
            directory,
            slabs,
            segments: AtomicU64::new(segments),
            splits: AtomicU64::new(0),
            records_read: AtomicU64::new(0),
            strays: AtomicU64::new(0),
            splitting: AtomicU32::new(0),
        }
    }

    /// Asks the processor for the two lines that a lookup of `hash` may read.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        let entry = self.directory.entry(hash);
        let (_, both) = places(hash, entry.base(), self.slabs.bucket_mask());
        for bucket in both {
            prefetch(&raw const *self.slabs.bucket(entry, bucket));
        }
    }

    /// Like [`prefetch`](HashIndex::prefetch), and asks for the lock that a change will take too.
    #[inline]
    pub fn prefetch_to_write(&self, hash: u64) {
        let entry = self.directory.entry(hash);
        let (_, both) = places(hash, entry.base(), self.slabs.bucket_mask());
        for bucket in both {
            prefetch_to_write(&raw const *self.slabs.bucket(entry, bucket));
        }
        prefetch_to_write(&raw const *self.slabs.meta(entry));
    }

    /// The reference of the key with this hash for which `matches` says yes; without locks.
    ///
    /// `matches` sees references of keys whose hashes resemble `hash`; it may see one more than once, and one that
    /// has just been replaced, whose record the guard keeps.
    #[inline]
    pub fn get(&self, _guard: &Guard<'_>, hash: u64, mut matches: impl FnMut(u64) -> bool) -> Option<u64> {
        let entry = self.directory.entry(hash);
        let (tag, both) = places(hash, entry.base(), self.slabs.bucket_mask());
        // Both masks first: neither comparison depends on the other, so the two misses overlap.
        for words in both.map(|number| self.slabs.bucket(entry, number).words_with_tag(tag)) {
            for (_, word) in words {
                if matches(reference_of(word)) {
                    return Some(reference_of(word));
                }
            }
        }
        self.get_settled(hash, &mut matches)
    }

    /// A lookup that can tell that the key is absent: nothing moved while it looked, and it looked everywhere.
    #[inline(never)]
    fn get_settled(&self, hash: u64, matches: &mut dyn FnMut(u64) -> bool) -> Option<u64> {
        let mut entry = self.directory.entry(hash);
        loop {
            point();
            let segment = self.slabs.segment(entry);
            let version = segment.meta.settled_version();
            // Only a version read before the directory proves that the entry holds for what is read next.
            let current = self.directory.entry(hash);
            if current == entry {
                if let Some(found) = segment.find(hash, matches) {
                    return Some(found);
                }
                if segment.meta.is_still(version) {
                    return None;
                }
            }
            entry = current;
        }
    }

    /// The first reference whose tag agrees with the hash, to prefetch its record. It may belong to another key.
    #[inline]
    pub fn candidate(&self, _guard: &Guard<'_>, hash: u64) -> Option<u64> {
        let entry = self.directory.entry(hash);
        let (tag, both) = places(hash, entry.base(), self.slabs.bucket_mask());
        let words = both.map(|number| self.slabs.bucket(entry, number).words_with_tag(tag));
        words.into_iter().find_map(|mut words| words.next()).map(|(_, word)| reference_of(word))
    }

    /// Adds a key that is known to be absent.
    ///
    /// If the segment must split and its tags have run out, `rehash` is asked for the hash of the record that each
    /// of the segment's references names. It must not call the index. A reference whose hash then leads elsewhere is
    /// dropped, and [counted](HashIndexStats::strays): its record is not what it was.
    ///
    /// # Panics
    /// If the reference is zero or longer than 48 bits.
    pub fn insert(&self, _guard: &Guard<'_>, hash: u64, reference: u64, rehash: &dyn Fn(u64) -> u64) {
        check_reference(reference);
        let locked = self.lock(hash);
        self.add(locked, hash, reference, rehash);
    }

    /// Lets the key with this hash name `new`: in place of the reference for which `matches` says yes, which it returns,
    /// or beside all others. One lock and one look at each bucket, for a writer that need not know the old reference
    /// beforehand. `rehash` as for [`insert`](HashIndex::insert); neither function may call the index.
    ///
    /// # Panics
    /// As for [`insert`](HashIndex::insert).
    #[inline]
    pub fn upsert(
        &self,
        _guard: &Guard<'_>,
        hash: u64,
        new: u64,
        matches: impl FnMut(u64) -> bool,
        rehash: &dyn Fn(u64) -> u64,
    ) -> Option<u64> {
        check_reference(new);
        let locked = self.lock(hash);
        let segment = self.slabs.segment(locked.0);
        match segment.find_locked(hash, &locked.1, matches) {
            Some((Held::Slot(slot), old)) => {
                slot.store(word_of(segment.places(hash).0, new), Ordering::Release);
                Some(old)
            }
            Some((Held::Overflow(entry), old)) => {
                entry.replace(new);
                Some(old)
            }
            None => {
                self.add(locked, hash, new, rehash);
                None
            }
        }
    }

    /// Removes the key with this hash for whose reference `matches` says yes, and returns that.
    #[inline]
    pub fn take(&self, _guard: &Guard<'_>, hash: u64, matches: impl FnMut(u64) -> bool) -> Option<u64> {
        let (entry, mut state) = self.lock(hash);
        let segment = self.slabs.segment(entry);
        let (held, old) = segment.find_locked(hash, &state, matches)?;
        segment.erase(held, &mut state);
        Some(old)
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

    /// Lets the key with this hash name `new` if it still names `old`; says whether it did.
    ///
    /// # Panics
    /// If `new` is zero or longer than 48 bits.
    #[inline]
    pub fn replace(&self, _guard: &Guard<'_>, hash: u64, old: u64, new: u64) -> bool {
        check_reference(new);
        let (entry, state) = self.lock(hash);
        let segment = self.slabs.segment(entry);
        if let Some(slot) = segment.slot_of(hash, old) {
            slot.store(word_of(segment.places(hash).0, new), Ordering::Release);
            return true;
        }
        if state.overflowing == 0 {
            return false;
        }
        segment.meta.overflow_entry(hash, old).map(|entry| entry.replace(new)).is_some()
    }

    /// Removes the key with this hash if it still names `old`; says whether it did.
    #[inline]
    pub fn remove(&self, _guard: &Guard<'_>, hash: u64, old: u64) -> bool {
        let (entry, mut state) = self.lock(hash);
        let segment = self.slabs.segment(entry);
        let held = match segment.slot_of(hash, old) {
            Some(slot) => Held::Slot(slot),
            None if state.overflowing == 0 => return false,
            None => match segment.meta.overflow_entry(hash, old) {
                Some(entry) => Held::Overflow(entry),
                None => return false,
            },
        };
        segment.erase(held, &mut state);
        true
    }

    /// Keys in the index: exact when nobody writes.
    pub fn len(&self) -> u64 {
        let mut keys = 0;
        self.slabs.for_each_meta(|meta| keys += u64::from(meta.keys()));
        keys
    }

    /// Whether there is no key; exact when nobody writes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the index occupies and has done. It visits every segment's metadata.
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
            stats.overflowing += meta.overflow_entries().filter_map(|entry| entry.load()).count() as u64;
        });
        stats
    }

    /// Whether a segment is being split now.
    pub fn growing(&self) -> bool {
        self.splitting.load(Ordering::Relaxed) != 0
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

/// Keys at which a segment splits although there may be free slots: beyond nine tenths nearly every insert has to move
/// others first, each move a cache miss, and the last twentieth costs more than all that came before it.
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
    /// Where the reference stands for which `matches` says yes, and the reference. The caller holds the lock.
    #[inline]
    fn find_locked(
        &self,
        hash: u64,
        state: &State,
        mut matches: impl FnMut(u64) -> bool,
    ) -> Option<(Held<'a>, u64)> {
        let (tag, both) = self.places(hash);
        for words in both.map(|bucket| self.buckets[bucket].words_with_tag(tag)) {
            for (slot, word) in words {
                if matches(reference_of(word)) {
                    return Some((Held::Slot(slot), reference_of(word)));
                }
            }
        }
        if state.overflowing == 0 {
            return None;
        }
        self.meta.overflow_entries().find_map(|entry| match entry.load() {
            Some((of_entry, reference)) if of_entry == hash && matches(reference) => {
                Some((Held::Overflow(entry), reference))
            }
            _ => None,
        })
    }

    /// Removes a key. The caller holds the lock, whose state this is.
    fn erase(&self, held: Held<'_>, state: &mut State) {
        match held {
            Held::Slot(slot) => slot.store(super::slot::EMPTY, Ordering::Release),
            Held::Overflow(entry) => {
                entry.clear();
                state.overflowing -= 1;
            }
        }
        self.meta.set_keys(self.meta.keys() - 1);
    }

    /// Looks in both buckets and the overflow chain.
    fn find(&self, hash: u64, matches: &mut dyn FnMut(u64) -> bool) -> Option<u64> {
        let (tag, both) = self.places(hash);
        for bucket in both {
            for (_, word) in self.buckets[bucket].words_with_tag(tag) {
                if matches(reference_of(word)) {
                    return Some(reference_of(word));
                }
            }
        }
        let of_hash = |&(hash_of_entry, _): &(u64, u64)| hash_of_entry == hash;
        let colliding = self.meta.overflow_entries().filter_map(|entry| entry.load()).filter(of_hash);
        colliding.map(|(_, reference)| reference).find(|&reference| matches(reference))
    }
}
