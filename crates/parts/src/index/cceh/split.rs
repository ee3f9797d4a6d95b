//! Growth: a full segment gives half of its hashes to a sibling, while all others go on.
//!
//! The sibling is written whole before any thread can find it; then the segment's name is narrowed, one word;
//! then the directory says so. Entries that moved are not erased: their leading bits tell writers that they
//! are free (lazy deletion, FAST'19 section 4.2).

use super::entry::{EMPTY, ENTRIES, ENTRY, Name, VALUE, home};
use super::memory::NodeMemory;
use super::table::CcehIndex;
use crate::index::IndexError;
use crate::index::directory::{EntryWord, deepest, prefix};
use crate::sync::point;
use quipu_medium::WORD;
use std::sync::atomic::Ordering;

/// Words of an entry.
const ENTRY_WORDS: usize = (ENTRY / WORD) as usize;

impl<M: NodeMemory> CcehIndex<M> {
    /// Splits the segment that `entry` names and `hash` belongs to. The caller holds its lock.
    pub(super) fn split(&self, hash: u64, entry: EntryWord) -> Result<(), IndexError> {
        let depth = entry.number();
        if depth >= deepest(self.segments.load(Ordering::Relaxed)) {
            return Err(IndexError::Crowded);
        }
        self.splitting.fetch_add(1, Ordering::Relaxed);
        let [low, high] = Name::new(hash, depth).halves();
        let allocated = self.memory.allocate(high, &self.sibling(entry, hash));
        if let Ok(sibling) = &allocated {
            point();
            self.memory.narrow(entry.place(), low);
            point();
            let [low, high] = [entry.place(), *sibling].map(|place| EntryWord::new(place, depth + 1));
            self.directory.publish_split(hash, depth, low, high);
            self.segments.fetch_add(1, Ordering::Relaxed);
            self.splits.fetch_add(1, Ordering::Relaxed);
        }
        self.splitting.fetch_sub(1, Ordering::Relaxed);
        allocated.map(|_| ())
    }

    /// The words of the segment that takes the entries whose next bit is set.
    ///
    /// Each keeps its place, where it fits for certain, and then moves as near as it can to the bucket that
    /// its hash names. One that moves from the first buckets back to the last is looked at again there, and
    /// then stays or moves nearer still.
    fn sibling(&self, entry: EntryWord, hash: u64) -> Vec<u64> {
        let depth = entry.number() + 1;
        let of_sibling = prefix(hash, depth) | 1;
        let count = self.settings.entries();
        let mut words = Vec::with_capacity(count * ENTRY_WORDS);
        for place in (0..count as u64).map(|number| entry.place() + number * ENTRY) {
            let (word, value) = (self.memory.load(place), self.memory.load(place + VALUE));
            // Half of them move, and no predictor can guess which: chosen without a branch.
            let moves = value != EMPTY && prefix(word, depth) == of_sibling;
            words.extend([if moves { word | M::MARK } else { M::MARK }, if moves { value } else { EMPTY }]);
        }
        let at = |bucket: u64, slot: u64| (bucket * ENTRIES + slot) as usize * ENTRY_WORDS;
        for bucket in 0..=self.bucket_mask {
            for from in (0..ENTRIES).map(|slot| at(bucket, slot)) {
                let word = words[from];
                if words[from + 1] == EMPTY || home(word, self.bucket_mask) == bucket {
                    continue;
                }
                let nearer = |distance| (home(word, self.bucket_mask) + distance) & self.bucket_mask;
                let buckets = (0..self.probe).map(nearer).take_while(|nearer| *nearer != bucket);
                let mut slots = buckets.flat_map(|bucket| (0..ENTRIES).map(move |slot| at(bucket, slot)));
                if let Some(free) = slots.find(|free| words[free + 1] == EMPTY) {
                    words.copy_within(from..from + ENTRY_WORDS, free);
                    words[from..from + ENTRY_WORDS].copy_from_slice(&[M::MARK, EMPTY]);
                }
            }
        }
        words
    }
}
