//! The records that words name, and the order in which they are looked for.

use super::keys::IndexKeys;
use super::load::IndexOrder;
use quipu_bench::workload::Permutation;

/// Added to a seed, so that lookups come in another order than insertions.
const OF_LOOKUPS: u64 = 0x9E37_79B9_7F4A_7C15;

/// A step of the multiplicative order: this one, or the next that meets every key.
const STEP: u64 = 618_033_989;

/// A record that is to be looked for.
#[derive(Clone, Copy)]
pub(super) struct Probe<'r> {
    pub(super) key: &'r [u8],
    pub(super) word: u64,
}

/// A table of records, each of which is its key. Record 0 is inserted first.
pub(super) struct Records {
    /// Bytes of a key.
    length: usize,
    /// All keys, one behind the other, in the order of their insertion.
    keys: Vec<u8>,
    /// The same in the order of lookups, and their words.
    probed: Vec<u8>,
    words: Vec<u64>,
    last: Vec<u8>,
}

/// The word of a record: its number and one, since no word is zero.
#[inline]
pub(super) fn word_of(record: u64) -> u64 {
    record + 1
}

/// The step of the multiplicative order of so many keys.
fn step(count: u64) -> u64 {
    fn divisor(one: u64, other: u64) -> u64 {
        if other == 0 { one } else { divisor(other, one % other) }
    }
    (STEP..).find(|step| divisor(*step, count) == 1).expect("one of the next numbers has no common divisor")
}

impl Records {
    /// So many records with keys of a set.
    pub(super) fn new(set: IndexKeys, order: IndexOrder, count: u64, seed: u64) -> Records {
        let (length, ascending) = (set.length(), set.ascending(count, seed));
        let last = ascending[ascending.len() - length..].to_vec();
        let (shuffled, step) = (Permutation::new(count, seed), step(count));
        let rank = |record: u64| match order {
            IndexOrder::Random => shuffled.at(record),
            IndexOrder::Multiplicative => (u128::from(record) * u128::from(step) % u128::from(count)) as u64,
            IndexOrder::Ascending => record,
        };
        let shuffled = Permutation::new(count, seed ^ OF_LOOKUPS);
        let gathered = |from: &[u8], at: &dyn Fn(u64) -> u64| {
            let mut keys = Vec::with_capacity(from.len());
            (0..count).for_each(|number| keys.extend_from_slice(nth(from, length, at(number))));
            keys
        };
        let keys = gathered(&ascending, &rank);
        let probed = gathered(&keys, &|number| shuffled.at(number));
        let words = (0..count).map(|number| word_of(shuffled.at(number))).collect();
        Records { length, keys, probed, words, last }
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.words.len() as u64
    }

    /// Bytes of a key.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// The key of the record that is inserted so many records after the first.
    #[inline(always)]
    pub(super) fn key(&self, record: u64) -> &[u8] {
        nth(&self.keys, self.length, record)
    }

    /// The record that is looked for so many records after the first.
    #[inline(always)]
    pub(super) fn probe(&self, number: u64) -> Probe<'_> {
        Probe { key: nth(&self.probed, self.length, number), word: self.words[number as usize] }
    }

    /// The highest key.
    pub(super) fn last(&self) -> &[u8] {
        &self.last
    }

    /// The key of the record that a word names; nothing if it names none.
    #[inline]
    pub(super) fn key_of(&self, word: u64) -> Option<&[u8]> {
        let begin = (word.wrapping_sub(1) as usize).checked_mul(self.length)?;
        self.keys.get(begin..begin.checked_add(self.length)?)
    }

    /// Whether the record that a word names has this key.
    #[inline]
    pub(super) fn is_key(&self, word: u64, key: &[u8]) -> bool {
        self.key_of(word) == Some(key)
    }

    /// Asks for the line of the record that a word names.
    #[inline]
    pub(super) fn prefetch(&self, word: u64) {
        if let Some([first, ..]) = self.key_of(word) {
            quipu_medium::arch::prefetch(first);
        }
    }
}

/// One of keys of this length.
#[inline(always)]
fn nth(keys: &[u8], length: usize, number: u64) -> &[u8] {
    let begin = number as usize * length;
    &keys[begin..begin + length]
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_bench::workload::KeySet;

    #[test]
    fn each_order_meets_every_key_once() {
        for order in [IndexOrder::Random, IndexOrder::Multiplicative, IndexOrder::Ascending] {
            for count in [1, 7, 1_000, 618_033] {
                let records = Records::new(IndexKeys::Numbers(KeySet::Sequential), order, count, 1);
                let mut keys: Vec<&[u8]> = (0..count).map(|record| records.key(record)).collect();
                assert!(count < 7 || keys.is_sorted() == (order == IndexOrder::Ascending), "{order:?}");
                keys.sort_unstable();
                assert!(
                    keys.into_iter().eq((0..count).map(u64::to_be_bytes).collect::<Vec<_>>()),
                    "{order:?}"
                );
                let is_right = |probe: Probe<'_>| records.is_key(probe.word, probe.key);
                assert!((0..count).all(|number| is_right(records.probe(number))));
                assert_eq!((records.key_of(0), records.key_of(count + 1)), (None, None));
            }
        }
    }
}
