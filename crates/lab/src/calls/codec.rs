//! Keys and values of calls as bytes.
//!
//! Names have many lengths, with zeros and with prefixes of each other. A value proves that it belongs to its
//! key and is whole, and its length follows from its number.

use crate::contract::value_of;
use quipu::Store;
use quipu::internals::RecordForm;
use quipu_bench::workload::{SHORTEST_VALUE, Values};

/// Number of a key among those of its owner.
pub type Key = u32;

/// Number of a value.
pub type Value = u64;

/// Keys below this have names of odd shapes.
const ODD: Key = 40;

/// Records of one size, for runs that have them.
pub const FIXED: RecordForm = RecordForm::Fixed { key: 12, value: 100 };

/// Where the word stands in a value of these that is changed in place: behind the key, a multiple of 8.
pub const WORD: u64 = 12;

/// How a pool wants its keys and values.
#[derive(Clone, Copy, Debug)]
pub struct Codec {
    /// The form of its records.
    pub form: RecordForm,
    /// The longest value that stands in a record.
    pub inline: u64,
    /// The longest value.
    pub limit: u64,
}

impl Codec {
    /// That of a store whose records have this form.
    pub fn of(store: &Store, form: RecordForm) -> Codec {
        let (_, limit) = store.limits();
        Codec { form, inline: store.stats().zone_bytes / 4, limit }
    }

    /// The bytes of an owner's key.
    pub fn key(&self, owner: u8, key: Key) -> Vec<u8> {
        let rank = key.to_be_bytes();
        let name = match (self.form, key % 5) {
            (RecordForm::Fixed { key: len, .. }, _) => value_of(b"key", key.into(), usize::from(len) - 1),
            (_, 0) if key < ODD => vec![0; key as usize / 5],
            (_, 1) if key < ODD => vec![key as u8],
            (_, 2) if key < ODD => format!("a key {key}").into_bytes(),
            (_, 3) if key < ODD => vec![b'p'; key as usize * 9],
            (_, 4) if key < ODD => u64::from(key).to_le_bytes().to_vec(),
            _ => [b"k", &rank[..]].concat(),
        };
        [&[owner], &name[..]].concat()
    }

    fn len(&self, value: Value) -> usize {
        let len = match value % 32 {
            31 => self.limit + 1,
            _ if self.form != RecordForm::Variable => self.limit,
            0 => 0,
            30 => self.inline,
            29 => self.inline + 1,
            28 => self.inline * 9 + value % 512,
            27 => 1500,
            small => small * 11,
        };
        len as usize
    }

    /// Whether the value may be written; in a batch only one that stands in a record may.
    pub fn fits(&self, value: Value, in_batch: bool) -> bool {
        let limit = if in_batch { self.limit.min(self.inline) } else { self.limit };
        self.len(value) as u64 <= limit
    }

    /// The bytes of a value of a key.
    pub fn value(&self, key: &[u8], value: Value) -> Vec<u8> {
        let mut bytes = vec![0; self.len(value)];
        if let Some(values) = Values::new(bytes.len()) {
            values.fill(tag(key), value, &mut bytes);
        }
        bytes
    }

    /// Whether these are bytes of some value of the key. Values that are changed in place prove nothing.
    pub fn proves(&self, key: &[u8], bytes: &[u8]) -> bool {
        bytes.len() < SHORTEST_VALUE
            || self.form != RecordForm::Variable
            || Values::new(bytes.len())
                .and_then(|values| values.check(tag(key), bytes, Value::MAX).ok())
                .is_some_and(|value| self.len(value) == bytes.len())
    }
}

fn tag(key: &[u8]) -> u64 {
    key.iter()
        .fold(0xcbf2_9ce4_8422_2325, |tag, byte| (tag ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const CODEC: Codec = Codec { form: RecordForm::Variable, inline: 4096, limit: 100_000 };

    #[test]
    fn names_are_distinct() {
        for form in [RecordForm::Variable, FIXED] {
            let codec = Codec { form, ..CODEC };
            let names: BTreeSet<_> =
                (1..3).flat_map(|owner| (0..500).map(move |key| codec.key(owner, key))).collect();
            assert_eq!(names.len(), 1000);
        }
    }

    #[test]
    fn only_whole_values_of_the_key_are_believed() {
        let (key, other) = (CODEC.key(1, 3), CODEC.key(3, 3));
        for value in (100..400).filter(|value| value % 32 > 0) {
            let bytes = CODEC.value(&key, value);
            assert!(CODEC.proves(&key, &bytes) && !CODEC.proves(&other, &bytes), "{value}");
            assert!(!CODEC.proves(&key, &bytes[..bytes.len() - 1]), "{value}");
            let mut torn = bytes.clone();
            torn[9] ^= 1;
            assert!(!CODEC.proves(&key, &torn), "{value}");
        }
        assert!(
            CODEC.fits(27, true) && CODEC.fits(29, false) && !CODEC.fits(29, true) && !CODEC.fits(31, false)
        );
    }
}
