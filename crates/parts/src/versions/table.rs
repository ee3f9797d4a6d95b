//! [`Versions`]: the versions of all keys, in an index.

use super::array::{Found, Version, bytes_of, found, give_back, has_array, word_of};
use super::purge::purge;
use super::snapshots::Horizon;
use crate::epoch::{Collector, Guard};
use crate::heap::Reference;
use crate::index::{InOrder, Index, IndexError, Key};
use crate::sync::{Padded, between_looks};
use crate::twin;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};

/// Arrays that a writer has replaced, before it defers them together.
const AT_ONCE: usize = 32;

/// The versions of all keys. Writers of one key exclude each other; readers lock nothing.
///
/// `number_of` reads the number of a record, which only an array tells by itself.
pub struct Versions<I: Index> {
    index: I,
    epochs: Collector,
    /// Bytes of arrays.
    bytes: Padded<AtomicU64>,
}

/// Arrays that a client has replaced and not deferred yet. Before it drops, they are
/// [deferred](Retired::defer).
#[derive(Default)]
pub struct Retired {
    words: Vec<u64>,
    /// For a change of versions, reused.
    versions: Vec<Version>,
}

impl<I: Index> Versions<I> {
    /// No versions. The index is empty.
    pub fn new(index: I, epochs: Collector) -> Versions<I> {
        const { assert!(I::HAS_KEYS && I::WORD_BITS >= Reference::BITS, "it has keys, and room for a word") };
        Versions { index, epochs, bytes: Padded::default() }
    }

    /// The index, for calls that concern no version.
    pub fn index(&self) -> &I {
        &self.index
    }

    /// Bytes of DRAM that the arrays take.
    pub fn bytes(&self) -> u64 {
        self.bytes.0.load(Ordering::Relaxed)
    }

    /// Adds a version of a key, and purges others. Returns the one that is superseded by it: the newest one
    /// of before, or itself if it is older. The caller excludes other writers of the key. `near` is the
    /// answer of [`Index::prefetch_to_write`].
    ///
    /// # Errors
    /// Those of the index; nothing has changed then. An index that [never fails](Index::NEVER_FAILS), or has
    /// [room](Index::make_room), has none.
    pub fn insert(
        &self,
        at: (&Guard<'_>, Key<'_>, Option<u64>),
        new: Version,
        horizon: &Horizon,
        retired: &mut Retired,
        number_of: impl Fn(Reference) -> u64,
    ) -> Result<Option<Version>, IndexError> {
        let (guard, key, near) = at;
        let old = self.index.get_near(guard, key, near, |_| true)?;
        let Some(old) = old else {
            self.replace(at, new.reference.word())?;
            return Ok(None);
        };
        let mut versions = self.all_of(guard, old, retired, number_of);
        let place = versions.partition_point(|version| version.number > new.number);
        let superseded = if place == 0 { versions[0] } else { new };
        versions.insert(place, new);
        purge(&mut versions, horizon);
        self.put(at, old, versions, retired)?;
        Ok(Some(superseded))
    }

    /// Purges the versions of a key, and lets `keep` take more of them away. If none is left, the key is
    /// gone. The caller excludes other writers of the key.
    ///
    /// # Errors
    /// Those of the index; nothing has changed then.
    pub fn tidy(
        &self,
        at: (&Guard<'_>, Key<'_>, Option<u64>),
        horizon: &Horizon,
        retired: &mut Retired,
        number_of: impl Fn(Reference) -> u64,
        keep: impl FnOnce(&mut Vec<Version>),
    ) -> Result<(), IndexError> {
        let (guard, key, near) = at;
        let Some(old) = self.index.get_near(guard, key, near, |_| true)? else { return Ok(()) };
        let mut versions = self.all_of(guard, old, retired, number_of);
        let before = versions.len();
        purge(&mut versions, horizon);
        keep(&mut versions);
        if versions.is_empty() {
            retired.versions = versions;
            self.index.take(guard, key, near, |_| true)?;
            self.retire(guard, old, retired);
        } else if versions.len() < before {
            self.put(at, old, versions, retired)?;
        } else {
            retired.versions = versions;
        }
        Ok(())
    }

    /// The versions of a word, in the vector that is kept for it.
    fn all_of(
        &self,
        guard: &Guard<'_>,
        word: u64,
        retired: &mut Retired,
        number_of: impl Fn(Reference) -> u64,
    ) -> Vec<Version> {
        let mut versions = std::mem::take(&mut retired.versions);
        versions.clear();
        // SAFETY: all words of the index are made by `word_of`, and arrays are given back by `defer` alone,
        // after they have left the index.
        match unsafe { found(word, guard) } {
            Found::One(reference) => versions.push(Version { number: number_of(reference), reference }),
            Found::Several(several) => versions.extend_from_slice(several),
        }
        versions
    }

    /// Lets a key have these versions in place of those of its old word.
    fn put(
        &self,
        at: (&Guard<'_>, Key<'_>, Option<u64>),
        old: u64,
        versions: Vec<Version>,
        retired: &mut Retired,
    ) -> Result<(), IndexError> {
        let word = word_of(&versions);
        retired.versions = versions;
        if let Err(error) = self.replace(at, word) {
            // SAFETY: nobody has seen it.
            unsafe { give_back(word) };
            return Err(error);
        }
        self.count(word, at.0, |bytes, more| bytes.fetch_add(more, Ordering::Relaxed));
        self.retire(at.0, old, retired);
        Ok(())
    }

    /// Gives back the array of a word that has left the index, once nobody can be reading it.
    fn retire(&self, guard: &Guard<'_>, old: u64, retired: &mut Retired) {
        if has_array(old) {
            self.count(old, guard, |bytes, less| bytes.fetch_sub(less, Ordering::Relaxed));
            retired.words.push(old);
            if retired.words.len() == AT_ONCE {
                retired.defer(guard);
            }
        }
    }

    fn replace(&self, at: (&Guard<'_>, Key<'_>, Option<u64>), word: u64) -> Result<(), IndexError> {
        let (guard, key, near) = at;
        let no_hash = |_| unreachable!("the index has keys");
        self.index.upsert(guard, key, word, near, |_| true, &no_hash).map(drop)
    }

    fn count(&self, word: u64, guard: &Guard<'_>, change: fn(&AtomicU64, u64) -> u64) {
        // SAFETY: as in `all_of`.
        if let Found::Several(several) = unsafe { found(word, guard) } {
            change(&self.bytes.0, bytes_of(1 + 2 * several.len()));
        }
    }

    /// The newest version of a key up to a number, a deletion too. A reader without a snapshot asks for the
    /// visible number in `up_to`, which is called when its versions have been found: a purge of this moment
    /// may take away those that were visible before.
    ///
    /// # Errors
    /// Those of the index.
    #[inline]
    pub fn get(
        &self,
        (guard, key, near): (&Guard<'_>, Key<'_>, Option<u64>),
        up_to: impl FnOnce() -> u64,
        number_of: impl Fn(Reference) -> u64,
    ) -> Result<Option<Version>, IndexError> {
        let find = || self.index.get_near(guard, key, near, |_| true);
        if twin!(NumberReadEarly) {
            let number = up_to();
            between_looks();
            return Ok(find()?.and_then(|word| self.select(guard, word, || number, number_of)));
        }
        let Some(word) = find()? else { return Ok(None) };
        between_looks();
        Ok(self.select(guard, word, up_to, number_of))
    }

    /// Shows where the newest version of a key most likely stands, to ask for its record ahead of a
    /// [`get`](Versions::get).
    #[inline]
    pub fn glance(&self, guard: &Guard<'_>, key: Key<'_>, near: Option<u64>, show: impl FnOnce(Reference)) {
        let Some(word) = self.index.candidate(guard, key, near) else { return };
        // SAFETY: as in `all_of`.
        match unsafe { found(word, guard) } {
            Found::One(reference) => show(reference),
            Found::Several(several) => {
                if let Some(newest) = several.first() {
                    show(newest.reference);
                }
            }
        }
    }

    /// The newest of a word's versions up to a number.
    #[inline]
    fn select(
        &self,
        guard: &Guard<'_>,
        word: u64,
        up_to: impl FnOnce() -> u64,
        number_of: impl Fn(Reference) -> u64,
    ) -> Option<Version> {
        // SAFETY: as in `all_of`.
        match unsafe { found(word, guard) } {
            Found::One(reference) => {
                let up_to = up_to();
                let only = Version { number: number_of(reference), reference };
                (only.number <= up_to).then_some(only)
            }
            Found::Several(several) => {
                let up_to = up_to();
                several.iter().find(|version| version.number <= up_to).copied()
            }
        }
    }
}

impl<I: InOrder> Versions<I> {
    /// Leaves each key its newest version, so that no word leads to an array. Nobody else uses the versions,
    /// and all are visible.
    ///
    /// # Errors
    /// Those of the index.
    pub fn settle(&self, guard: &Guard<'_>, retired: &mut Retired) -> Result<(), IndexError> {
        let (mut scan, mut keys) = (self.scan_from(&[]), Vec::new());
        while self.index.next_in_order(guard, &mut scan, AT_ONCE, |key, word| {
            // SAFETY: as in `all_of`.
            if let Found::Several(several) = unsafe { found(word, guard) } {
                keys.push((key.to_vec(), word, several[0]));
            }
        })? {
            for (key, word, newest) in keys.drain(..) {
                let at = (guard, Key { bytes: &key, hash: 0 }, None);
                self.put(at, word, vec![newest], retired)?;
            }
        }
        Ok(())
    }

    /// A walk in order, from the first key that is not lower than this one.
    pub fn scan_from(&self, key: &[u8]) -> I::Scan {
        self.index.scan_from(key)
    }

    /// A walk against the order, from the last key below this bound, or at it.
    pub fn scan_back_from(&self, bound: Bound<&[u8]>) -> I::ScanBack {
        self.index.scan_back_from(bound)
    }

    /// Tells the versions of the next keys, at most [`limit`](Look::limit), that are the newest up to a
    /// number; `false`, without a call, at the end.
    ///
    /// # Errors
    /// Those of the index.
    pub fn next_in_order(
        &self,
        guard: &Guard<'_>,
        scan: &mut I::Scan,
        look: &mut Look<impl Fn(Reference), impl Fn(Reference) -> u64>,
        each: impl FnMut(&[u8], Version),
    ) -> Result<bool, IndexError> {
        let Look { limit, noted, prefetch, .. } = &mut *look;
        noted.reserve(*limit);
        let note = |key: &[u8], word| self.note(guard, key, word, noted, &*prefetch);
        let has_more = self.index.next_in_order(guard, scan, *limit, note)?;
        self.tell(guard, look, each);
        Ok(has_more)
    }

    /// Tells all versions of the next keys, at most `limit`, the newest first; `false`, without a call, at
    /// the end. `prefetch` asks for records before the first is read.
    ///
    /// # Errors
    /// Those of the index.
    pub fn next_with_all(
        &self,
        guard: &Guard<'_>,
        scan: &mut I::Scan,
        look: &mut Look<impl Fn(Reference), impl Fn(Reference) -> u64>,
        mut each: impl FnMut(&[u8], &[Version]),
    ) -> Result<bool, IndexError> {
        let Look { limit, noted, prefetch, number_of, .. } = &mut *look;
        noted.reserve(*limit);
        let note = |key: &[u8], word| self.note(guard, key, word, noted, &*prefetch);
        let has_more = self.index.next_in_order(guard, scan, *limit, note)?;
        let (Noted { words, keys }, mut start) = (noted, 0);
        for (word, end) in words.drain(..) {
            // SAFETY: as in `all_of`.
            match unsafe { found(word, guard) } {
                Found::One(reference) => {
                    each(&keys[start..end], &[Version { number: number_of(reference), reference }]);
                }
                Found::Several(several) => each(&keys[start..end], several),
            }
            start = end;
        }
        keys.clear();
        Ok(has_more)
    }

    /// As [`next_in_order`](Versions::next_in_order), against the order.
    ///
    /// # Errors
    /// Those of the index.
    pub fn prev_in_order(
        &self,
        guard: &Guard<'_>,
        scan: &mut I::ScanBack,
        look: &mut Look<impl Fn(Reference), impl Fn(Reference) -> u64>,
        each: impl FnMut(&[u8], Version),
    ) -> Result<bool, IndexError> {
        let Look { limit, noted, prefetch, .. } = &mut *look;
        noted.reserve(*limit);
        let note = |key: &[u8], word| self.note(guard, key, word, noted, &*prefetch);
        let has_more = self.index.prev_in_order(guard, scan, *limit, note)?;
        self.tell(guard, look, each);
        Ok(has_more)
    }

    #[inline]
    fn note(
        &self,
        guard: &Guard<'_>,
        key: &[u8],
        word: u64,
        noted: &mut Noted,
        prefetch: impl Fn(Reference),
    ) {
        // SAFETY: as in `all_of`.
        if let Found::One(reference) = unsafe { found(word, guard) } {
            prefetch(reference);
        }
        noted.keys.extend_from_slice(key);
        noted.words.push((word, noted.keys.len()));
    }

    /// Tells the versions of the words that a look has noted.
    #[inline]
    fn tell(
        &self,
        guard: &Guard<'_>,
        look: &mut Look<impl Fn(Reference), impl Fn(Reference) -> u64>,
        mut each: impl FnMut(&[u8], Version),
    ) {
        between_looks();
        let (Noted { words, keys }, mut start) = (&mut look.noted, 0);
        for (word, end) in words.drain(..) {
            if let Some(found) = self.select(guard, word, || look.up_to, &look.number_of) {
                each(&keys[start..end], found);
            }
            start = end;
        }
        keys.clear();
    }
}

/// How a walk in order looks at keys: the records of some are asked for before the first is read.
pub struct Look<P, N> {
    /// Keys at once.
    pub limit: usize,
    /// The number at which it looks.
    pub up_to: u64,
    /// Asks for a record.
    pub prefetch: P,
    /// Reads the number of a record.
    pub number_of: N,
    /// For these keys, reused.
    pub noted: Noted,
}

/// Keys that are looked up together, one behind the other, and their words, each with the end of its key.
#[derive(Default)]
pub struct Noted {
    words: Vec<(u64, usize)>,
    keys: Vec<u8>,
}

/// Bytes that a key is reckoned with.
const USUAL_KEY: usize = 16;

impl Noted {
    fn reserve(&mut self, keys: usize) {
        self.words.reserve(keys);
        self.keys.reserve(keys * USUAL_KEY);
    }
}

impl<I: Index> Drop for Versions<I> {
    fn drop(&mut self) {
        let participant = self.epochs.register();
        let (guard, mut cursor, mut words) = (participant.pin(), I::Cursor::default(), Vec::new());
        while let Ok(true) = self.index.next_batch(&guard, &mut cursor, &mut words) {
            for word in words.drain(..) {
                // SAFETY: nobody reads any more, and each key has a word of its own.
                unsafe { give_back(word) };
            }
        }
    }
}

impl Retired {
    /// Gives the arrays back once nobody can be reading them.
    pub fn defer(&mut self, guard: &Guard<'_>) {
        let words = std::mem::take(&mut self.words);
        if !words.is_empty() {
            // SAFETY: they left the index, each once, before this moment; only threads that are pinned now
            // can have found them.
            guard.defer(Box::new(move || words.into_iter().for_each(|word| unsafe { give_back(word) })));
        }
    }
}

impl Drop for Retired {
    fn drop(&mut self) {
        debug_assert!(self.words.is_empty(), "they are deferred first, or never given back");
    }
}
