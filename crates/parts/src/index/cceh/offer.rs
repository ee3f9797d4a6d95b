//! The interface of a CCEH index to a store over logs.
//!
//! The systems that the index comes from keep keys of eight bytes in it, and so does this one. The hash of
//! such a key is one-to-one ([`Index::key_hash`]), so no record is read to prove an entry. Two bits of a
//! value word are not the store's and tell these *exact* entries from others of the same hash. Bit 62 says
//! that the key is the hash, and bit 63 keeps the bit of the hash whose place the memory's mark takes. Both
//! are zero in entries of other keys, for which the record decides.
//!
//! A reader without a lock may see the hash of one key and then the word of another one, if the entry changes
//! hands in between. A comparison of keys would notice; for exact entries the reader looks at both words
//! twice (`segment.rs`).

use super::entry::EMPTY;
use super::memory::NodeMemory;
use super::settings::CcehStats;
use super::table::CcehIndex;
use super::unflushed::Unflushed;
use super::write::check_reference;
use crate::epoch::{Guard, Participant};
use crate::index::{Cursor, Index, IndexError, IndexGrowth, IndexStats, Key, Records, Repointed};
use crate::space::ZoneId;
use std::sync::atomic::Ordering;

/// The bit of a value word that says that its key is the hash.
const EXACT: u64 = 1 << 62;
/// The bits of a value word that are the store's.
const WORD: u64 = EXACT - 1;

/// The bits of a key's value words that are the index's.
#[inline]
fn tag<M: NodeMemory>(key: Key<'_>) -> u64 {
    let is_exact = key.bytes.len() == size_of::<u64>();
    if is_exact { EXACT | (key.hash & M::MARK) << 63 } else { 0 }
}

/// The value word of a word with this tag.
#[inline]
fn dressed(word: u64, tag: u64) -> u64 {
    debug_assert!(word & !WORD == 0, "a word has 62 bits");
    word | tag
}

/// Whether a value word that stands beside the key's hash is the key's.
#[inline]
fn is_own(value: u64, tag: u64, mut matches: impl FnMut(u64) -> bool) -> bool {
    value & !WORD == tag && (tag != 0 || matches(value))
}

impl<M: NodeMemory> Index for CcehIndex<M> {
    const WORD_BITS: u32 = WORD.count_ones();
    const DURABLE: bool = M::MARK != 0;
    const NEVER_FAILS: bool = false;
    const HINTS: bool = false;

    type Cursor = Cursor;
    type Unflushed = Unflushed;

    #[inline]
    fn prefetch(&self, _: &Participant, key: Key<'_>) -> Option<u64> {
        self.prefetch(key.hash);
        None
    }

    #[inline]
    fn prefetch_to_write(&self, _: &Participant, key: Key<'_>) -> Option<u64> {
        self.prefetch_to_write(key.hash);
        None
    }

    #[inline]
    fn candidate(&self, _guard: &Guard<'_>, key: Key<'_>, _near: Option<u64>) -> Option<u64> {
        let mut values = self.values_of_hash(self.directory.entry(key.hash).place(), key.hash);
        let own = values.find(|value| *value != EMPTY && is_own(*value, tag::<M>(key), |_| true));
        own.map(|value| value & WORD)
    }

    #[inline(always)]
    fn get(
        &self,
        guard: &Guard<'_>,
        key: Key<'_>,
        mut matches: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>, IndexError> {
        let tag = tag::<M>(key);
        let found = match tag {
            0 => self.get(guard, key.hash, |value| is_own(value, 0, &mut matches)),
            _ => self.get_exact(guard, key.hash, |value| value & !WORD == tag),
        };
        if found.is_none() {
            self.prove_absent(key.hash)?;
        }
        Ok(found.map(|value| value & WORD))
    }

    #[inline]
    fn names(&self, _guard: &Guard<'_>, key: Key<'_>, word: u64) -> Result<bool, IndexError> {
        Ok(self.names(key.hash, dressed(word, tag::<M>(key))))
    }

    fn make_room(&self, _guard: &Guard<'_>, keys: usize, _key_len: usize) -> Result<(), IndexError> {
        self.make_room(keys)
    }

    #[inline]
    fn upsert(
        &self,
        guard: &Guard<'_>,
        key: Key<'_>,
        new: u64,
        _near: Option<u64>,
        mut matches: impl FnMut(u64) -> bool,
        _records: &dyn Records,
    ) -> Result<Option<u64>, IndexError> {
        let tag = tag::<M>(key);
        let is_own = |value| is_own(value, tag, &mut matches);
        let old = self.upsert(guard, key.hash, dressed(new, tag), is_own)?;
        Ok(old.map(|value| value & WORD))
    }

    #[inline]
    fn replace(&self, guard: &Guard<'_>, key: Key<'_>, old: u64, new: u64) -> Result<bool, IndexError> {
        let tag = tag::<M>(key);
        Ok(self.replace(guard, key.hash, dressed(old, tag), dressed(new, tag)))
    }

    #[inline]
    fn take(
        &self,
        guard: &Guard<'_>,
        key: Key<'_>,
        _near: Option<u64>,
        mut matches: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>, IndexError> {
        let tag = tag::<M>(key);
        let old = self.take(guard, key.hash, |value| is_own(value, tag, &mut matches));
        Ok(old.map(|value| value & WORD))
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
        let (hash, tag) = (key.hash, tag::<M>(key));
        let [old, reference] = [old, new].map(|word| dressed(word, tag));
        check_reference(reference);
        let locked = self.lock(hash);
        let Some((place, _)) = locked.find(|found| found == old) else { return Ok(None) };
        self.store_value(place, hash, reference);
        let unflushed = Unflushed { segment: locked.entry.place(), place, hash, reference };
        Ok(Some(Repointed { unflushed, by_hint: false }))
    }

    #[inline]
    fn persist(&self, _guard: &Guard<'_>, unflushed: &mut Vec<Unflushed>) {
        self.persist_all(unflushed);
    }

    fn next_batch(
        &self,
        _guard: &Guard<'_>,
        cursor: &mut Cursor,
        out: &mut Vec<u64>,
    ) -> Result<bool, IndexError> {
        if let Some(next) = cursor.next() {
            self.prove_segment(next)?;
        }
        Ok(self.next_part(cursor, |_, value| out.push(value & WORD)))
    }

    fn len(&self, _guard: &Guard<'_>) -> Result<u64, IndexError> {
        Ok(self.len())
    }

    fn audit(&self, _guard: &Guard<'_>, is_word: &dyn Fn(u64) -> bool) -> Result<(), IndexError> {
        self.audit(|value| is_word(value & WORD))?;
        Ok(())
    }

    fn nearly_names(&self, key: Key<'_>, word: u64) -> Option<u64> {
        self.nearly_names(key.hash, dressed(word, tag::<M>(key)))
    }

    fn stats(&self) -> IndexStats {
        let CcehStats { bytes, pm_bytes, splits, .. } = self.stats();
        IndexStats { bytes, pm_bytes, splits, records_read: 0 }
    }

    fn growth(&self) -> IndexGrowth {
        let (zones, is_linking) = self.memory.chained();
        let splits = self.splits.load(Ordering::Relaxed);
        let is_splitting = self.splitting.load(Ordering::Relaxed) != 0;
        IndexGrowth { is_splitting, is_linking, splits, removals: 0, zones }
    }

    fn zones(&self) -> Vec<ZoneId> {
        self.memory.zones()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epoch::Collector;
    use crate::index::InPool;
    use crate::index::cceh::entry::{ENTRY, VALUE};
    use crate::index::cceh::{CcehSettings, DramNodes, Name, PmNodes};
    use crate::record::Certifier;
    use crate::space::{FormatOptions, FreeListKind, SETTINGS_LEN, Space};
    use quipu_medium::{Pages, Region};
    use std::collections::VecDeque;
    use std::sync::{Arc, Mutex};

    fn in_pm() -> CcehIndex<PmNodes> {
        let options = FormatOptions {
            zone_size: 4 << 10,
            design: 1,
            settings: [0; SETTINGS_LEN],
            pools: vec![],
            free_list: FreeListKind::Volatile,
            secret: [3; 32],
            boot_id: [0; 16],
        };
        let region = Region::dram(256 << 10, Pages::Ordinary).expect("memory");
        let space = Space::format(region, &options).expect("room");
        CcehIndex::create(Arc::new(space), CcehSettings::tiny(), 0, |_| ()).expect("room")
    }

    fn in_dram() -> CcehIndex<DramNodes> {
        CcehIndex::in_dram(CcehSettings::tiny())
    }

    fn never(_word: u64) -> bool {
        panic!("the entry of a key of eight bytes is known without its record")
    }

    /// Every operation on both keys, which the index must tell apart; `asks`: whether it may ask for each.
    fn told_apart<M: NodeMemory + 'static>(index: &CcehIndex<M>, keys: [Key<'_>; 2], asks: [bool; 2]) {
        let participant = Collector::new().register();
        let guard = participant.pin();
        let rehash = |_| unreachable!("the index keeps whole hashes");
        let words = [WORD, WORD ^ 1];
        let matches = |n: usize| move |word| if asks[n] { word == words[n] } else { never(word) };
        for (n, key) in keys.into_iter().enumerate() {
            assert_eq!(Index::get(index, &guard, key, matches(n)).expect("sound"), None);
            let upsert = Index::upsert(index, &guard, key, words[n], None, matches(n), &rehash);
            assert_eq!(upsert.expect("room"), None);
        }
        for (n, key) in keys.into_iter().enumerate() {
            assert_eq!(Index::get(index, &guard, key, matches(n)).expect("sound"), Some(words[n]));
            assert!(Index::names(index, &guard, key, words[n]).expect("sound"));
            // Among keys of other lengths only the caller knows whose a word is.
            if asks != [true; 2] {
                assert_eq!(Index::candidate(index, &guard, key, None), Some(words[n]));
                assert!(!Index::names(index, &guard, key, words[1 - n]).expect("sound"));
                assert!(!Index::replace(index, &guard, key, words[1 - n], 1).expect("sound"));
                assert!(index.repoint(&guard, None, key, words[1 - n], 1).expect("sound").is_none());
            }
            let upsert = Index::upsert(index, &guard, key, words[n], None, matches(n), &rehash);
            assert_eq!(upsert.expect("room"), Some(words[n]));
        }
        assert_eq!(index.len(), 2);
        assert_eq!(Index::take(index, &guard, keys[0], None, matches(0)).expect("sound"), Some(words[0]));
        assert_eq!(Index::take(index, &guard, keys[0], None, matches(0)).expect("sound"), None);
        assert_eq!(Index::get(index, &guard, keys[1], matches(1)).expect("sound"), Some(words[1]));
        assert_eq!(Index::take(index, &guard, keys[1], None, matches(1)).expect("sound"), Some(words[1]));
    }

    /// Two keys of eight bytes whose hashes differ in this bit only.
    fn neighbours(certifier: &Certifier, bit: u32) -> [[u8; 8]; 2] {
        [0, 1].map(|set| certifier.unpermuted(0x1234_5678_9abc_def0 ^ set << bit).to_le_bytes())
    }

    #[test]
    fn keys_of_eight_bytes_are_told_apart_by_one_bit_of_the_hash() {
        let certifier = Certifier::new(&[5; 32]);
        for bit in 0..u64::BITS {
            let bytes = neighbours(&certifier, bit);
            let hash = |bytes: &[u8]| <CcehIndex<PmNodes> as Index>::key_hash(&certifier, bytes);
            assert_eq!(hash(&bytes[0]) ^ hash(&bytes[1]), 1 << bit);
            let keys = bytes.each_ref().map(|bytes| Key { bytes, hash: hash(bytes) });
            told_apart(&in_dram(), keys, [false; 2]);
            told_apart(&in_pm(), keys, [false; 2]);
        }
    }

    /// Memory in which the entry of a hash becomes others during a look: the next one after each load.
    struct Overtaken {
        nodes: DramNodes,
        hash: u64,
        entries: Mutex<VecDeque<[u64; 2]>>,
    }

    impl NodeMemory for Overtaken {
        const MARK: u64 = 0;

        fn load(&self, place: u64) -> u64 {
            let word = self.nodes.load(place);
            let start = place - place % ENTRY;
            let mut entries = self.entries.lock().expect("no panic");
            let is_looked_at = word == self.hash || place != start && word != EMPTY;
            if let Some([word, value]) = is_looked_at.then(|| entries.pop_front()).flatten() {
                self.store(start + VALUE, EMPTY);
                self.store(start, word);
                self.store(start + VALUE, value);
            }
            word
        }

        fn store(&self, place: u64, word: u64) {
            self.nodes.store(place, word);
        }

        fn prefetch(&self, _place: u64) {}

        fn prefetch_to_write(&self, _place: u64) {}

        fn allocate(&self, name: Name, words: &[u64]) -> Result<u64, IndexError> {
            self.nodes.allocate(name, words)
        }

        fn dram_bytes(&self) -> u64 {
            0
        }
    }

    /// A reader that finds the hash of its key and then the word of another one rejects it, whether the key
    /// has gone or has come back.
    #[test]
    fn a_reader_who_is_overtaken_is_not_told_the_word_of_another_key() {
        let participant = Collector::new().register();
        let guard = participant.pin();
        let settings = CcehSettings { initial_depth: 0, bucket_bits: 0, probe: 1 };
        let [own, other] = [0x1000, 0x2000];
        let [gone, back] = [[other, EXACT | 2], [own, EXACT | 3]];
        for (entries, expected) in [
            (vec![], Some(1)),
            (vec![gone], None),
            (vec![gone, back], Some(3)),
            (vec![[own, EXACT | 4]], Some(4)),
        ] {
            let nodes = DramNodes::new(settings.segment_bytes());
            let memory = Overtaken { nodes, hash: own, entries: Mutex::default() };
            let name = Name { start: 0, depth: 0 };
            let segment = memory.allocate(name, &settings.empty_segment(0)).expect("memory");
            let index = CcehIndex::over(memory, settings, &[(name, segment)]);
            index.insert(&guard, own, EXACT | 1).expect("room");
            *index.memory.entries.lock().expect("no panic") = entries.into();
            let key = Key { bytes: &[1; 8], hash: own };
            assert_eq!(Index::get(&index, &guard, key, never).expect("sound"), expected);
        }
    }

    #[test]
    fn keys_of_other_lengths_are_told_apart_from_one_with_their_hash() {
        let [eight, nine, ten] = [&[1; 8][..], &[1; 9], &[1; 10]];
        for hash in [0x1234_5678_9abc_def0, 0x1234_5678_9abc_def1] {
            let key = |bytes| Key { bytes, hash };
            for (keys, asks) in [
                ([key(eight), key(nine)], [false, true]),
                ([key(nine), key(eight)], [true, false]),
                ([key(nine), key(ten)], [true, true]),
            ] {
                told_apart(&in_dram(), keys, asks);
                told_apart(&in_pm(), keys, asks);
            }
        }
    }
}
