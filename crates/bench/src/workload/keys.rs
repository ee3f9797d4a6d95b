//! Keys made from numbers.
//!
//! Two families. [`KeyShape`] makes keys of a length for the `ops` benchmark: the number spread over 64
//! bits, so that consecutive numbers are far apart in key order and in every hash, or a shuffled [`KeySet`].
//! [`Naming`] makes the text
//! keys of YCSB, `user` and a decimal number, where the number is the FNV-1a hash of the record's or the
//! record's own, padded.

use crate::workload::{KeySet, Permutation, Spread, mix, unmix};
use std::io::Write;
use std::sync::Arc;

/// Bytes of the shortest key that keeps numbers apart.
pub const SHORTEST_KEY: usize = 8;

/// Keys of one length, or around it.
#[derive(Clone, Debug)]
pub struct KeyShape {
    length: usize,
    seed: u64,
    spread: Option<Spread>,
    /// The first words by number, where they are those of a set.
    drawn: Option<Arc<[u64]>>,
}

impl KeyShape {
    /// Keys of `length` bytes, or `None` if that is too short to keep numbers apart.
    pub fn new(length: usize, seed: u64) -> Option<KeyShape> {
        (length >= SHORTEST_KEY).then_some(KeyShape { length, seed: mix(seed), spread: None, drawn: None })
    }

    /// The same for so many numbers, whose first words are the keys of a set in random order.
    pub fn of_set(self, set: KeySet, count: u64) -> KeyShape {
        let (keys, order) = (set.ascending(count, self.seed), Permutation::new(count, self.seed));
        let drawn = (0..count).map(|number| keys[order.at(number) as usize]).collect();
        KeyShape { drawn: Some(drawn), ..self }
    }

    /// Whether keys are those of a set, which do not tell their numbers.
    pub fn is_of_set(&self) -> bool {
        self.drawn.is_some()
    }

    /// The same around this length, with this standard deviation in bytes.
    pub fn spread(self, deviation: f64) -> KeyShape {
        KeyShape { spread: Some(Spread::new(self.length, deviation, SHORTEST_KEY, self.seed)), ..self }
    }

    /// Bytes of a key; where they vary, in the mean.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The number that a key is made of; nonsense for what is no such key.
    #[inline]
    pub fn number_of(&self, key: &[u8]) -> u64 {
        key.first_chunk().map_or(0, |word| unmix(u64::from_be_bytes(*word)) ^ self.seed)
    }

    /// The first word of the key of `number`. A number beyond those of a set is no record's.
    #[inline]
    fn first_word(&self, number: u64) -> u64 {
        match &self.drawn {
            None => mix(number ^ self.seed),
            Some(drawn) => drawn.get(number as usize).copied().unwrap_or(0),
        }
    }

    /// Writes the key of `number` over `out`, which gets its length. Distinct numbers give distinct first
    /// words.
    #[inline]
    pub fn fill(&self, number: u64, out: &mut Vec<u8>) {
        out.resize(self.spread.map_or(self.length, |spread| spread.of(number)), 0);
        let mut word = self.first_word(number);
        let mut chunks = out.chunks_exact_mut(SHORTEST_KEY);
        for chunk in &mut chunks {
            chunk.copy_from_slice(&word.to_be_bytes());
            word = word.rotate_left(29).wrapping_add(self.seed);
        }
        let rest = chunks.into_remainder();
        rest.copy_from_slice(&word.to_be_bytes()[..rest.len()]);
    }
}

/// 64-bit FNV-1a (Fowler, Noll, Vo; public domain).
#[inline]
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// The hash that YCSB spreads record numbers by: FNV-1a over the number's eight bytes, lowest first, as the
/// absolute value of a signed number.
#[inline]
pub fn ycsb_hash(number: u64) -> u64 {
    (fnv1a(&number.to_le_bytes()) as i64).unsigned_abs()
}

/// How YCSB names its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Naming {
    /// Whether the number in the key is hashed (`insertorder=hashed`), which scatters neighbours over the key
    /// space.
    pub hashed: bool,
    /// Digits that the number is padded to with zeros.
    pub zero_padding: usize,
    /// Whether a key is the number's eight bytes in place of text.
    pub is_word: bool,
}

impl Naming {
    /// Writes the key of record `number` over `out`.
    #[inline]
    pub fn fill(&self, number: u64, out: &mut Vec<u8>) {
        let number = if self.hashed { ycsb_hash(number) } else { number };
        out.clear();
        if self.is_word {
            return out.extend_from_slice(&number.to_le_bytes());
        }
        write!(out, "user{number:0width$}", width = self.zero_padding).expect("a vector takes every byte");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn keys_are_distinct_and_scattered() {
        for length in [8, 13, 16, 64] {
            let shape = KeyShape::new(length, 3).unwrap();
            let mut key = vec![0; length];
            let mut seen = HashSet::new();
            for number in 0..10_000 {
                shape.fill(number, &mut key);
                assert_eq!(shape.number_of(&key), number);
                assert!(seen.insert(key.clone()));
            }
            let low = seen.iter().filter(|key| key[0] < 128).count();
            assert!((4_500..5_500).contains(&low), "{low} keys in the lower half");
        }
        assert!(KeyShape::new(7, 3).is_none());
        let shape = KeyShape::new(16, 3).unwrap().spread(3.2);
        let mut key = Vec::new();
        let keys: HashSet<_> =
            (0..10_000).map(|number| (shape.fill(number, &mut key), key.clone())).collect();
        assert_eq!(keys.len(), 10_000);
        assert!(keys.iter().any(|(_, key)| key.len() < 14) && keys.iter().any(|(_, key)| key.len() > 18));
    }

    #[test]
    fn keys_of_a_set_come_in_random_order() {
        let shape = KeyShape::new(8, 3).unwrap().of_set(KeySet::Sequential, 1_000);
        let mut key = Vec::new();
        let words: Vec<u64> = (0..1_000)
            .map(|number| {
                shape.fill(number, &mut key);
                u64::from_be_bytes(key[..].try_into().unwrap())
            })
            .collect();
        assert_eq!(words.iter().collect::<HashSet<_>>().len(), 1_000);
        assert!(words.iter().all(|word| *word < 1_000) && !words.is_sorted());
        assert!(shape.is_of_set() && shape.length() == 8);
    }

    #[test]
    fn fnv_has_its_published_values() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn names_are_those_of_ycsb() {
        let mut key = Vec::new();
        // The first key that YCSB loads with hashed inserts.
        Naming { hashed: true, zero_padding: 1, is_word: false }.fill(0, &mut key);
        assert_eq!(key, b"user6284781860667377211");
        Naming { hashed: false, zero_padding: 1, is_word: false }.fill(5, &mut key);
        assert_eq!(key, b"user5");
        Naming { hashed: false, zero_padding: 8, is_word: false }.fill(5, &mut key);
        assert_eq!(key, b"user00000005");
        Naming { hashed: false, zero_padding: 8, is_word: true }.fill(5, &mut key);
        assert_eq!(key, 5u64.to_le_bytes());
    }
}
