//! The records that words name, and the order in which they are looked for.

use super::load::IndexOrder;
use quipu_bench::workload::{KeySet, Permutation};

/// Added to a seed, so that lookups come in another order than insertions.
const OF_LOOKUPS: u64 = 0x9E37_79B9_7F4A_7C15;

/// A record that is to be looked for.
#[derive(Clone, Copy)]
pub(super) struct Probe {
    pub(super) key: u64,
    pub(super) word: u64,
}

/// A table of records, each of which is its key. Record 0 is inserted first.
pub(super) struct Records {
    keys: Vec<u64>,
    probes: Vec<Probe>,
    last: u64,
}

/// The word of a record: its number and one, since no word is zero.
#[inline]
pub(super) fn word_of(record: u64) -> u64 {
    record + 1
}

impl Records {
    /// So many records with keys of a set.
    pub(super) fn new(set: KeySet, order: IndexOrder, count: u64, seed: u64) -> Records {
        let ascending = set.ascending(count, seed);
        let last = ascending.last().copied().unwrap_or_default();
        let shuffled = Permutation::new(count, seed);
        let keys = match order {
            IndexOrder::Ascending => ascending,
            IndexOrder::Random => (0..count).map(|at| ascending[shuffled.at(at) as usize]).collect(),
        };
        let shuffled = Permutation::new(count, seed ^ OF_LOOKUPS);
        let probe = |at| {
            let record = shuffled.at(at);
            Probe { key: keys[record as usize], word: word_of(record) }
        };
        let probes = (0..count).map(probe).collect();
        Records { keys, probes, last }
    }

    /// All records in the order of their insertion.
    pub(super) fn keys(&self) -> &[u64] {
        &self.keys
    }

    /// All records in the order of lookups.
    pub(super) fn probes(&self) -> &[Probe] {
        &self.probes
    }

    /// The highest key.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// The key of the record that a word names; nothing if it names none.
    #[inline]
    pub(super) fn key_of(&self, word: u64) -> Option<u64> {
        self.keys.get(word.wrapping_sub(1) as usize).copied()
    }

    /// Whether the record that a word names has this key.
    #[inline]
    pub(super) fn is_key(&self, word: u64, key: u64) -> bool {
        self.key_of(word) == Some(key)
    }

    /// Asks for the line of the record that a word names.
    #[inline]
    pub(super) fn prefetch(&self, word: u64) {
        if let Some(key) = self.keys.get(word.wrapping_sub(1) as usize) {
            quipu_medium::arch::prefetch(key);
        }
    }
}
