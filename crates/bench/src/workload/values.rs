//! Values that prove themselves on reading.
//!
//! A benchmark that does not look at what it reads measures nothing: a store that returns stale, torn or
//! foreign bytes is the fastest of all. So a value names its key and its version and derives the rest from
//! both. The check is one pass of additions and comparisons without a branch, which a compiler turns into
//! vector code; it costs about as much as copying the value and is part of every measured read.
//!
//! Layout, in little-endian words: `version ^ tag`, then `base + i * STEP` for word `i`, where `base` mixes
//! tag and version; a last partial word is cut off. Two versions of one key, or values of two keys, differ in
//! every word, and no word fits another place, so a mixture of any two is found. Values of less than a word,
//! which only the ETC workload has, are the low bytes of the first word: they tell the version as far as
//! their bits go.

use crate::workload::{ETC_SIZES, Spread, etc_size, mix, unmix};

/// Bytes of the shortest value that can prove itself.
pub const SHORTEST_VALUE: usize = 8;

const WORD: usize = 8;
const STEP: u64 = 0xd1b5_4a32_d192_ed03;

/// Sets lengths of values apart from those of keys.
const SALT: u64 = 0x76_616c_7565;

/// The fault of a value that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// The length is not the one that was written.
    #[error("it has {found} bytes instead of {expected}")]
    Length {
        /// Bytes read.
        found: usize,
        /// Bytes written.
        expected: usize,
    },
    /// The first word names another key, or a version that was never written.
    #[error("it belongs to another key or to a version that was never written")]
    Foreign,
    /// The first word is right and the rest does not follow from it.
    #[error("it is torn: its words come from different values")]
    Torn,
}

/// Makes and checks the values of one run, all of one length or around it.
#[derive(Clone, Copy, Debug)]
pub struct Values {
    length: usize,
    lengths: Lengths,
}

/// How long single values are.
#[derive(Clone, Copy, Debug)]
enum Lengths {
    /// As long as all.
    Equal,
    /// Around that.
    Spread(Spread),
    /// As those of the ETC workload.
    Etc,
}

impl Values {
    /// Values of `length` bytes, or `None` if they are too short to prove themselves.
    pub fn new(length: usize) -> Option<Values> {
        (length >= SHORTEST_VALUE).then_some(Values { length, lengths: Lengths::Equal })
    }

    /// The same around this length, with this standard deviation in bytes: the length follows from the key's
    /// number.
    pub fn spread(self, deviation: f64) -> Values {
        let spread = Spread::new(self.length, deviation, SHORTEST_VALUE, SALT);
        Values { lengths: Lengths::Spread(spread), ..self }
    }

    /// Values of the sizes of Facebook's ETC pool: the length follows from the key's number.
    pub fn etc() -> Values {
        Values { length: *ETC_SIZES.end(), lengths: Lengths::Etc }
    }

    /// Bytes of a value; where they vary, in the mean, and of [`etc`](Values::etc) at most.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Bytes of the values of key number `key`.
    #[inline]
    pub fn length_of(&self, key: u64) -> usize {
        match self.lengths {
            Lengths::Equal => self.length,
            Lengths::Spread(spread) => spread.of(key),
            Lengths::Etc => etc_size(key),
        }
    }

    /// Writes the value of key number `key` at `version` over `out`, which gets its length.
    #[inline(always)]
    pub fn fill(&self, key: u64, version: u64, out: &mut Vec<u8>) {
        out.resize(self.length_of(key), 0);
        let tag = mix(key);
        let first = (version ^ tag).to_le_bytes();
        let length = out.len();
        if length < WORD {
            return out.copy_from_slice(&first[..length]);
        }
        let mut next = mix(tag.wrapping_add(version));
        // A loop that becomes vector code: making values must take no visible part of a measurement.
        let (words, rest) = out.as_chunks_mut::<WORD>();
        for word in words {
            next = next.wrapping_add(STEP);
            *word = next.to_le_bytes();
        }
        let last = next.wrapping_add(STEP).to_le_bytes();
        rest.copy_from_slice(&last[..rest.len()]);
        out[..WORD].copy_from_slice(&first);
    }

    /// The key number that a value of version 0 is of; nonsense for what is no such value.
    #[inline]
    pub fn number_of_first(value: &[u8]) -> u64 {
        value.first_chunk().map_or(0, |word| unmix(u64::from_le_bytes(*word)))
    }

    /// Checks that `value` is a whole value of key number `key`, and returns its version. Of one that is
    /// shorter than a word, the newest version that it can be.
    ///
    /// # Errors
    /// The [`Mismatch`], if it is not, or if its version is above `newest`.
    #[inline]
    pub fn check(&self, key: u64, value: &[u8], newest: u64) -> Result<u64, Mismatch> {
        let expected = self.length_of(key);
        if value.len() != expected {
            return Err(Mismatch::Length { found: value.len(), expected });
        }
        let tag = mix(key);
        if value.len() < WORD {
            return newest_like(value, tag, newest).ok_or(Mismatch::Foreign);
        }
        let (first, others) = value.split_at(WORD);
        let version = read(first) ^ tag;
        if version > newest {
            return Err(Mismatch::Foreign);
        }
        let mut expected = mix(tag.wrapping_add(version)).wrapping_add(STEP);
        let mut difference = 0;
        let (words, rest) = others.as_chunks::<WORD>();
        for word in words {
            expected = expected.wrapping_add(STEP);
            difference |= u64::from_le_bytes(*word) ^ expected;
        }
        let last = expected.wrapping_add(STEP).to_le_bytes();
        if difference != 0 || rest != &last[..rest.len()] {
            return Err(Mismatch::Torn);
        }
        Ok(version)
    }
}

/// The highest version up to `newest` whose first word has `low` as its low bytes, fewer than all.
fn newest_like(low: &[u8], tag: u64, newest: u64) -> Option<u64> {
    let mut word = [0; WORD];
    word[..low.len()].copy_from_slice(low);
    let versions = 1 << (low.len() * 8);
    let version = newest & !(versions - 1) | (u64::from_le_bytes(word) ^ tag) & (versions - 1);
    if version <= newest { Some(version) } else { version.checked_sub(versions) }
}

#[inline]
fn read(word: &[u8]) -> u64 {
    u64::from_le_bytes(word.try_into().expect("chunks of a word"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(values: Values, key: u64, version: u64) -> Vec<u8> {
        let mut out = vec![0; values.length()];
        values.fill(key, version, &mut out);
        out
    }

    #[test]
    fn whole_values_are_accepted_at_every_length() {
        for length in SHORTEST_VALUE..100 {
            let values = Values::new(length).unwrap();
            for version in [0, 1, 77] {
                assert_eq!(values.check(5, &value(values, 5, version), 77), Ok(version), "{length} bytes");
            }
            assert_eq!(Values::number_of_first(&value(values, 5, 0)), 5);
        }
        assert!(Values::new(SHORTEST_VALUE - 1).is_none());
    }

    #[test]
    fn values_of_varying_length_are_checked_for_the_length_of_their_key() {
        let values = Values::new(200).unwrap().spread(40.0);
        let all: Vec<_> = (0..100).map(|key| value(values, key, 3)).collect();
        assert!(all.iter().any(|value| value.len() < 180) && all.iter().any(|value| value.len() > 220));
        for (key, value) in all.iter().enumerate() {
            assert_eq!(values.check(key as u64, value, 3), Ok(3));
            let (found, expected) = (value.len() - 1, value.len());
            let short = values.check(key as u64, &value[..found], 3);
            assert_eq!(short, Err(Mismatch::Length { found, expected }));
        }
    }

    #[test]
    fn values_below_a_word_tell_their_version_as_far_as_their_bits_go() {
        let values = Values::etc();
        for length in 1..WORD {
            let key = (0..).find(|key| etc_size(*key) == length).expect("there is one");
            let bits = 8 * length as u32;
            for version in [0u64, 1, 255, 256, 77_777, 1 << 40] {
                let found = value(values, key, version);
                assert_eq!((found.len(), values.check(key, &found, version)), (length, Ok(version)));
                // Somebody who looks for a later one is told that it is an older one, or one with the same
                // bits.
                let later = values.check(key, &found, version + 3).expect("a version up to that");
                assert_eq!(later, version);
                let same = version + (1 << bits);
                assert_eq!(values.check(key, &found, same), Ok(same), "{length} bytes tell no more");
            }
            let mut other = value(values, key, 5);
            other[0] ^= 0x80;
            assert_eq!(values.check(key, &other, 100), Err(Mismatch::Foreign));
        }
    }

    #[test]
    fn values_of_other_keys_versions_and_lengths_are_refused() {
        let values = Values::new(200).unwrap();
        assert_eq!(values.check(6, &value(values, 5, 1), 100), Err(Mismatch::Foreign));
        assert_eq!(values.check(5, &value(values, 5, 101), 100), Err(Mismatch::Foreign));
        let short = &value(values, 5, 1)[..199];
        assert_eq!(values.check(5, short, 100), Err(Mismatch::Length { found: 199, expected: 200 }));
        assert_eq!(values.check(5, &[0; 200], 100), Err(Mismatch::Foreign));
    }

    #[test]
    fn every_mixture_of_two_values_is_torn() {
        // With and without a partial word at the end.
        for length in [61, 64] {
            let values = Values::new(length).unwrap();
            let old = value(values, 5, 1);
            for other in [value(values, 5, 2), value(values, 9, 1)] {
                for (from, to) in
                    (WORD..length).flat_map(|from| (from + 1..=length).map(move |to| (from, to)))
                {
                    let mut mixture = old.clone();
                    mixture[from..to].copy_from_slice(&other[from..to]);
                    // A byte that both values happen to share is no mixture.
                    let expected = if mixture == old { Ok(1) } else { Err(Mismatch::Torn) };
                    assert_eq!(values.check(5, &mixture, 100), expected, "{from}..{to} of {length}");
                }
            }
        }
    }

    #[test]
    fn any_flipped_byte_is_found() {
        let values = Values::new(61).unwrap();
        for at in 0..61 {
            let mut damaged = value(values, 5, 1);
            damaged[at] ^= 0x40;
            assert!(values.check(5, &damaged, 100).is_err(), "byte {at}");
        }
    }

    #[test]
    fn swapped_words_are_torn() {
        let values = Values::new(200).unwrap();
        let mut swapped = value(values, 5, 1);
        swapped.copy_within(64..72, 8);
        assert_eq!(values.check(5, &swapped, 100), Err(Mismatch::Torn));
    }
}
