//! The index as its users see it.

use super::dram::DramNodes;
use super::entry::Name;
use super::locks::Locks;
use super::memory::NodeMemory;
use super::settings::{CcehSettings, CcehStats};
use super::write::Sighting;
use crate::epoch::Guard;
use crate::index::IndexError;
use crate::index::directory::{Directory, EntryWord, following};
use crate::sync::point;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Buckets that are asked for ahead of a change: adding a key looks at all in which it may stand.
const AHEAD: usize = 4;

/// A CCEH index: hash to reference.
///
/// All methods may be called by many threads at once, except that two must not insert, replace or remove the
/// same key at the same time. Guards are not needed for the index's own memory; they keep the records from
/// being reused while `matches` looks at them.
pub struct CcehIndex<M> {
    pub(super) memory: M,
    pub(super) directory: Directory,
    pub(super) locks: Locks,
    pub(super) settings: CcehSettings,
    /// One less than the buckets of a segment.
    pub(super) bucket_mask: u64,
    /// Buckets in which an entry may stand.
    pub(super) probe: u64,
    pub(super) segments: AtomicU64,
    pub(super) splits: AtomicU64,
    pub(super) splitting: AtomicU32,
    /// Whether the locks have counted all keys: not those that were there when the index was opened.
    pub(super) counts_all: AtomicBool,
}

impl CcehIndex<DramNodes> {
    /// An empty index in DRAM. Settings out of range are brought into range.
    pub fn in_dram(settings: CcehSettings) -> CcehIndex<DramNodes> {
        let settings = settings.in_range();
        let memory = DramNodes::new(settings.segment_bytes());
        let empty = settings.empty_segment(DramNodes::MARK);
        let allocated = settings.initial_names().map(|name| Ok((name, memory.allocate(name, &empty)?)));
        let segments: Result<Vec<_>, IndexError> = allocated.collect();
        let segments = segments.expect("memory in DRAM does not refuse");
        CcehIndex { counts_all: AtomicBool::new(true), ..CcehIndex::over(memory, settings, &segments) }
    }
}

impl<M: NodeMemory> CcehIndex<M> {
    /// An index of these segments, in the order of their names, which leave no hash out and name none twice.
    ///
    /// # Panics
    /// If they do not add up to all hashes.
    pub fn over(memory: M, settings: CcehSettings, segments: &[(Name, u64)]) -> CcehIndex<M> {
        let settings = settings.in_range();
        let entries = segments.iter().map(|(name, place)| (EntryWord::new(*place, name.depth), name.depth));
        CcehIndex {
            memory,
            directory: Directory::new(entries),
            locks: Locks::new(),
            settings,
            bucket_mask: (1 << settings.bucket_bits) - 1,
            probe: u64::from(settings.probe),
            segments: AtomicU64::new(segments.len() as u64),
            splits: AtomicU64::new(0),
            splitting: AtomicU32::new(0),
            counts_all: AtomicBool::new(false),
        }
    }

    /// The memory of the segments.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// The settings, every field in its range.
    pub fn settings(&self) -> CcehSettings {
        self.settings
    }

    /// Asks for the line in which `hash` most likely stands. Reads the directory and nothing else.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        self.memory.prefetch(self.bucket(self.directory.entry(hash).place(), hash, 0));
    }

    /// Like [`prefetch`](CcehIndex::prefetch), and asks for the lock that a change will take too.
    #[inline]
    pub fn prefetch_to_write(&self, hash: u64) {
        let segment = self.directory.entry(hash).place();
        self.window(segment, hash).take(AHEAD).for_each(|bucket| self.memory.prefetch_to_write(bucket));
        self.locks.prefetch(segment);
    }

    /// The reference of the key with this hash for which `matches` says yes; without locks.
    ///
    /// `matches` sees references of keys with this hash, all its bits but the memory's mark; it may see one
    /// that has just been replaced, whose record the guard keeps. Where it does not, since the record's place
    /// may be used again at once, ask [`LockedSegment::named`](super::LockedSegment::named). In PM, the
    /// answer is durable.
    #[inline]
    pub fn get(&self, guard: &Guard<'_>, hash: u64, matches: impl FnMut(u64) -> bool) -> Option<u64> {
        self.look_up::<false>(guard, hash, matches)
    }

    /// As [`get`](CcehIndex::get), for a caller that compares no keys, since its references say that the hash
    /// is the key. The reference that `matches` sees stood beside the hash. The guard keeps a reference that
    /// was replaced from coming back.
    #[inline]
    pub fn get_exact(&self, guard: &Guard<'_>, hash: u64, matches: impl FnMut(u64) -> bool) -> Option<u64> {
        self.look_up::<true>(guard, hash, matches)
    }

    #[inline]
    fn look_up<const EXACT: bool>(
        &self,
        _guard: &Guard<'_>,
        hash: u64,
        mut matches: impl FnMut(u64) -> bool,
    ) -> Option<u64> {
        let mut entry = self.directory.entry(hash);
        loop {
            let found = self.find::<EXACT>(entry.place(), hash, &mut matches);
            if found.is_some() {
                return found;
            }
            point();
            // Entries do not move within a segment, and moved ones are overwritten only after the directory
            // has changed. So if it has not, nothing has moved.
            let current = self.directory.entry(hash);
            if current == entry {
                return None;
            }
            entry = current;
        }
    }

    /// The first reference of this hash, to ask for its record or its page. It may belong to another key.
    #[inline]
    pub fn candidate(&self, _guard: &Guard<'_>, hash: u64) -> Option<u64> {
        self.first_of_hash(self.directory.entry(hash).place(), hash)
    }

    /// Looks at this hash ahead of a change, without a lock.
    #[inline]
    pub fn sight(&self, _guard: &Guard<'_>, hash: u64) -> Sighting {
        let entry = self.directory.entry(hash);
        match self.first_of_hash(entry.place(), hash) {
            Some(reference) => Sighting::Key { reference },
            None => self
                .first_free_of(entry, hash)
                .map_or(Sighting::Nothing, |free| Sighting::Free { entry, free }),
        }
    }

    /// Makes sure, as far as other callers leave it so, that so many keys can be added without an error: each
    /// may have to split a segment, and hardly ever two. For callers that may not fail later.
    ///
    /// # Errors
    /// [`IndexError::Full`] or [`IndexError::Space`].
    pub fn make_room(&self, keys: usize) -> Result<(), IndexError> {
        self.memory.make_room(2 * keys)
    }

    /// Whether more memory will be needed soon.
    #[inline]
    pub fn wants_memory(&self) -> bool {
        self.memory.wants_memory()
    }

    /// Makes memory ready ahead of the splits that will need it, if some is wanted.
    pub fn prepare_memory(&self) {
        if self.memory.wants_memory() {
            self.memory.prepare_memory();
        }
    }

    /// Keys in the index: exact when nobody writes. After an index in PM has been opened this looks at all of
    /// it, until [`retain`](CcehIndex::retain) has counted.
    pub fn len(&self) -> u64 {
        if self.counts_all.load(Ordering::Relaxed) {
            return self.locks.keys().unsigned_abs();
        }
        let (mut keys, mut next) = (0, Some(0));
        while let Some(start) = next {
            let segment = self.lock(start);
            keys += self.entries(segment.entry, start).count() as u64;
            next = following(start, segment.entry.number());
        }
        keys
    }

    /// Whether there is no key; exact when nobody writes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The size of the index, and its work so far.
    pub fn stats(&self) -> CcehStats {
        let segments = self.segments.load(Ordering::Relaxed);
        CcehStats {
            bytes: self.memory.dram_bytes() + self.directory.bytes() + self.locks.bytes(),
            pm_bytes: self.memory.pm_bytes(),
            segments,
            depth: self.directory.depth(),
            splits: self.splits.load(Ordering::Relaxed),
            slots: segments * self.settings.entries() as u64,
        }
    }
}
