//! Sets of keys: numbers, and text as users make it.
//!
//! An index sees text in slices of eight bytes. The first slice of `{:016}` is the same for millions of keys,
//! and their digits use a few of the values of a byte. Fields of a user share all but their last byte.

use quipu_bench::choice::Named;
use quipu_bench::workload::{KeySet, mix};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::fmt::Write;

/// Records that a decimal number of eight digits tells apart.
pub(super) const MOST_OF_DECIMAL8: u64 = 100_000_000;

/// Numbers of users are below this; each user has so many fields.
const USERS: u64 = 10_000_000_000;
const FIELDS: u64 = 10;

/// A set of keys of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKeys {
    /// Numbers in eight bytes, the highest first.
    Numbers(KeySet),
    /// The number of a record in eight digits (`{:08}`).
    Decimal8,
    /// The same in sixteen (`{:016}`).
    Decimal16,
    /// A field of a user, such as `user:0123456789:field7`.
    Fields,
}

const NUMBERS: &[KeySet] = KeySet::EVERY;
const ALL: [IndexKeys; NUMBERS.len() + 3] = {
    let mut all = [IndexKeys::Fields; NUMBERS.len() + 3];
    let mut at = 0;
    while at < NUMBERS.len() {
        all[at] = IndexKeys::Numbers(NUMBERS[at]);
        at += 1;
    }
    all[at] = IndexKeys::Decimal8;
    all[at + 1] = IndexKeys::Decimal16;
    all
};

impl Named for IndexKeys {
    const KIND: &'static str = KeySet::KIND;
    const EVERY: &'static [IndexKeys] = &ALL;

    fn name(&self) -> &'static str {
        match self {
            IndexKeys::Numbers(set) => set.name(),
            IndexKeys::Decimal8 => "decimal8",
            IndexKeys::Decimal16 => "decimal16",
            IndexKeys::Fields => "fields",
        }
    }
}

impl IndexKeys {
    /// Bytes of a key.
    pub(super) fn length(self) -> usize {
        match self {
            IndexKeys::Numbers(_) | IndexKeys::Decimal8 => 8,
            IndexKeys::Decimal16 => 16,
            IndexKeys::Fields => "user:0123456789:field7".len(),
        }
    }

    /// So many keys of the set, ascending, no two equal, one behind the other.
    pub(super) fn ascending(self, count: u64, seed: u64) -> Vec<u8> {
        let mut text = String::new();
        match self {
            IndexKeys::Numbers(set) => {
                return set.ascending(count, seed).iter().flat_map(|key| key.to_be_bytes()).collect();
            }
            IndexKeys::Decimal8 => (0..count).for_each(|number| push(&mut text, format_args!("{number:08}"))),
            IndexKeys::Decimal16 => {
                (0..count).for_each(|number| push(&mut text, format_args!("{number:016}")));
            }
            IndexKeys::Fields => {
                let mut random = SmallRng::seed_from_u64(mix(seed));
                let most = (USERS - 1) / count.div_ceil(FIELDS);
                let mut user = 0;
                for record in 0..count {
                    let field = record % FIELDS;
                    user += if field == 0 { random.random_range(1..=most) } else { 0 };
                    push(&mut text, format_args!("user:{user:010}:field{field}"));
                }
            }
        }
        text.into_bytes()
    }
}

fn push(text: &mut String, key: std::fmt::Arguments<'_>) {
    text.write_fmt(key).expect("a string takes every byte");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_ascending_and_distinct_and_of_one_length() {
        for set in IndexKeys::EVERY {
            for count in [1, 15, 20_000] {
                let keys = set.ascending(count, 1);
                assert_eq!(keys.len() as u64, count * set.length() as u64, "{set:?}");
                let keys: Vec<&[u8]> = keys.chunks_exact(set.length()).collect();
                assert!(keys.is_sorted_by(|one, next| one < next), "{set:?}");
            }
        }
    }

    #[test]
    fn text_is_as_described() {
        let last =
            |set: IndexKeys| String::from_utf8(set.ascending(12, 1)).unwrap().split_off(11 * set.length());
        assert_eq!(last(IndexKeys::Decimal8), "00000011");
        assert_eq!(last(IndexKeys::Decimal16), "0000000000000011");
        let field = last(IndexKeys::Fields);
        assert!(field.starts_with("user:") && field.ends_with(":field1"), "{field}");
        assert!(field[5..15].parse::<u64>().unwrap() > 1_000_000, "{field}");
    }
}
