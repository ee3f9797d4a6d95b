//! Keys and values of a run as bytes, and back: whatever is read must be what one write, and at most one
//! change in place after it, has made.
//!
//! All bytes of a value follow from the name of its write, so that a torn or foreign one is noticed. Where
//! records have one size, one aligned word of a value is its whole name: the write below, the change above.
//! Everything else in the value is the write's, so a change that is put on another value than the one it
//! read, or arrives in part, shows as a value that never was.

use super::oracle::{State, ValueId};
use quipu::internals::RecordForm;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Keys of most runs.
pub const KEYS: usize = 24;

/// Keys of a wide run: more than two leaves of any index hold, so that leaves split, roots grow, and what
/// becomes empty goes.
pub const MANY_KEYS: usize = 72;

/// The empty value, which cannot carry a name of its own.
pub const EMPTY: ValueId = 0;

/// Set in the name of a value that takes one to three zones.
pub const LARGE: ValueId = 1 << 23;

/// How the keys and values of a run stand as bytes.
#[derive(Clone, Copy, Debug)]
pub struct Records {
    form: RecordForm,
    /// How many keys there are, of all tables together.
    pub keys: usize,
    /// How many tables have them. They share the names of keys.
    pub tables: usize,
    /// Whether every key is a word of eight bytes, in records that vary in size.
    pub words: bool,
}

impl Records {
    /// Those of a pool whose records have this form. Of one size, a key has at least 6 bytes, and a value
    /// room for an aligned word behind its middle.
    ///
    /// `words` makes every key a word of eight bytes if sizes differ: indexes keep such keys without a look
    /// at the record.
    pub fn new(form: RecordForm, keys: usize, words: bool) -> Records {
        Records { form, keys, tables: 1, words: words && form == RecordForm::Variable }
    }

    /// The same with their keys in so many tables, and with longer values, since every table has zones of its
    /// own to fill.
    pub fn in_tables(self, tables: usize) -> Records {
        Records { tables, ..self }
    }

    /// The table of a key.
    pub fn table(self, key: usize) -> usize {
        key % self.tables
    }

    /// Whether all have one size.
    pub fn are_of_one_size(self) -> bool {
        self.word().is_some()
    }

    /// Where the word stands in a value that is its name and can be changed in place.
    pub fn word(self) -> Option<u64> {
        match self.form {
            RecordForm::Fixed { key, value } => {
                // Key and value stand one behind the other.
                let key = u64::from(key);
                Some((key + u64::from(value) / 2).next_multiple_of(8) - key)
            }
            RecordForm::Variable => None,
        }
    }

    /// The bytes of a key. If sizes differ, most are short, and some take more than two lines.
    pub fn key(self, key: usize) -> Vec<u8> {
        let key = key / self.tables;
        let mut bytes = format!("key-{key:02}").into_bytes();
        match self.form {
            RecordForm::Fixed { key, .. } => bytes.resize(usize::from(key), b'.'),
            RecordForm::Variable if self.words => bytes = format!("key-{key:04}").into_bytes(),
            RecordForm::Variable if key % 8 == 7 => bytes.resize(134, b'.'),
            RecordForm::Variable => {}
        }
        bytes
    }

    /// The bytes that a name shares with those of up to ten keys of its table.
    pub fn prefix(self, key: usize) -> Vec<u8> {
        let mut bytes = self.key(key);
        bytes.truncate(if self.words { 7 } else { 5 });
        bytes
    }

    /// The number of a key of a table read back, if it is one of the run's.
    pub fn parse_key(self, table: usize, bytes: &[u8]) -> Option<usize> {
        let digits = bytes.strip_prefix(b"key-")?.iter().take_while(|byte| byte.is_ascii_digit());
        let key =
            digits.fold(0usize, |number, digit| number.wrapping_mul(10).wrapping_add((digit - b'0').into()));
        let key = key.checked_mul(self.tables)?.checked_add(table)?;
        (key < self.keys && self.key(key) == bytes).then_some(key)
    }

    fn value_len(self, value: ValueId) -> usize {
        // If sizes differ, most values have one length all the same, so that records of different lives and
        // runs can come to lie at the same offsets. With the usual key it makes a record of whole lines:
        // behind one that ends within a line, zeros cover what was there.
        match (self.form, value % 16) {
            (RecordForm::Fixed { value, .. }, _) => value as usize,
            _ if value == EMPTY => 0,
            _ if value & LARGE != 0 => [5000, 17_000, 37_000][value as usize % 3],
            (_, 0) => 4,
            (_, 1) => 13,
            (_, 2) => 1000,
            (_, 3) => 3900,
            (_, 4 | 5) => 40,
            _ if self.tables > 1 && value.is_multiple_of(2) => 1900,
            _ if self.words => 96,
            _ => 98,
        }
    }

    /// The bytes of a value.
    pub fn value(self, value: ValueId) -> Vec<u8> {
        let mut bytes = vec![0; self.value_len(value)];
        let write = value as u32;
        SmallRng::seed_from_u64(u64::from(write)).fill_bytes(&mut bytes);
        match self.word() {
            Some(at) => bytes[at as usize..][..8].copy_from_slice(&value.to_le_bytes()),
            None if value == EMPTY => {}
            None => bytes[..4].copy_from_slice(&write.to_le_bytes()),
        }
        bytes
    }

    /// The name of a value read back; an error if its bytes are no value that was ever written.
    pub fn parse_value(self, bytes: Option<&[u8]>) -> Result<State, String> {
        let Some(bytes) = bytes else { return Ok(None) };
        let name = match self.word() {
            Some(at) => {
                bytes.get(at as usize..).and_then(|rest| rest.first_chunk()).copied().map(u64::from_le_bytes)
            }
            None if bytes.is_empty() => Some(EMPTY),
            None => bytes.first_chunk().copied().map(u32::from_le_bytes).map(ValueId::from),
        };
        match name {
            Some(name) if self.value(name) == bytes => Ok(Some(name)),
            _ => Err(format!("torn value: {} bytes that name themselves {name:x?} are not it", bytes.len())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::oracle::changed;

    #[test]
    fn values_prove_themselves_to_the_last_byte() {
        let fixed = |key, value| RecordForm::Fixed { key, value };
        for form in [RecordForm::Variable, fixed(8, 24), fixed(13, 200), fixed(6, 37)] {
            let records = Records::new(form, MANY_KEYS, false);
            for name in [EMPTY, 1, 7, 17, 18, 20, 1 << 20 | 9] {
                let bytes = records.value(name);
                assert_eq!(records.parse_value(Some(&bytes)), Ok(Some(name)));
                for at in 0..bytes.len() {
                    let mut torn = bytes.clone();
                    torn[at] ^= 1;
                    let found = records.parse_value(Some(&torn));
                    // Another change of the same write is a value; whether it was made is for the oracle to
                    // say.
                    let is_change =
                        records.word().is_some_and(|word| (4..8).contains(&(at as i64 - word as i64)));
                    assert_eq!(found.is_err(), !is_change, "{form:?}: byte {at} of {name}");
                }
                if let Some(at) = records.word() {
                    let word = &mut *bytes.clone();
                    let (at, end) = (at as usize, at as usize + 8);
                    let old = u64::from_le_bytes(word[at..end].try_into().expect("eight bytes"));
                    word[at..end].copy_from_slice(&changed(old, 5).to_le_bytes());
                    assert_eq!(records.parse_value(Some(word)), Ok(Some(changed(name, 5))));
                }
            }
            for key in 0..records.keys {
                assert_eq!(records.parse_key(0, &records.key(key)), Some(key));
            }
        }
    }

    #[test]
    fn keys_that_are_words_have_eight_bytes_each() {
        let records = Records::new(RecordForm::Variable, MANY_KEYS, true);
        for key in 0..MANY_KEYS {
            let bytes = records.key(key);
            assert_eq!((bytes.len(), records.parse_key(0, &bytes)), (8, Some(key)));
        }
    }
}
