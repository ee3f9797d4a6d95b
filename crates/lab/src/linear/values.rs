//! Keys and values of histories as bytes.
//!
//! A history consists of numbers; a store of bytes. Every value proves that it belongs to its key and is
//! whole, and its length follows from its number. So a torn or foreign value, or one of another length, reads
//! as [`NOBODYS`], which no order of writes explains.

use crate::action::{NOBODYS, Value};
use quipu_bench::workload::{Values, mix};

/// Values below this are real; above, the bytes of another key might by chance pass for one.
const END: Value = 1 << 56;

const NAME: &str = "knot ";

/// The bytes of key number `key`. They ascend with the numbers.
pub fn key_bytes(key: u64) -> Vec<u8> {
    format!("{NAME}{key:08}").into_bytes()
}

/// The number of the key with these bytes, if it is one of ours.
pub fn key_number(bytes: &[u8]) -> Option<u64> {
    let number = std::str::from_utf8(bytes).ok()?.strip_prefix(NAME)?.parse().ok()?;
    (key_bytes(number) == bytes).then_some(number)
}

/// Mostly short, so that segments hold many, and now and then so long that they fill up at odd places.
fn length(value: Value) -> usize {
    let drawn = mix(value) as usize;
    if drawn.is_multiple_of(16) { 16 + drawn / 16 % 1400 } else { 16 + drawn / 16 % 120 }
}

/// The bytes of a value of key number `key`.
///
/// # Panics
/// If the value is 2 to the power of 56 or more, which no history needs.
pub fn encode(key: u64, value: Value) -> Vec<u8> {
    assert!(value < END, "value {value} is too large to be told from foreign bytes");
    let mut bytes = vec![0; length(value)];
    if let Some(values) = Values::new(bytes.len()) {
        values.fill(key, value, &mut bytes);
    }
    bytes
}

/// The value that bytes of key number `key` stand for.
pub fn decode(key: u64, bytes: &[u8]) -> Value {
    let value = Values::new(bytes.len()).and_then(|values| values.check(key, bytes, END - 1).ok());
    value.filter(|value| length(*value) == bytes.len()).unwrap_or(NOBODYS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_values_of_the_key_are_read() {
        for value in 0..2000 {
            let bytes = encode(7, value);
            assert_eq!(decode(7, &bytes), value);
            assert_eq!(decode(8, &bytes), NOBODYS);
            assert_eq!(decode(7, &bytes[1..]), NOBODYS);
            let mut torn = bytes.clone();
            torn[12] ^= 1;
            assert_eq!(decode(7, &torn), NOBODYS);
        }
        assert_eq!(decode(7, b""), NOBODYS);
    }

    #[test]
    fn only_names_that_we_give_are_read() {
        assert_eq!(key_number(&key_bytes(12)), Some(12));
        for foreign in [&b"knot 012"[..], b"knot +0000001", b"knot", b"", b"llama", b"knot 00000001 "] {
            assert_eq!(key_number(foreign), None, "{}", foreign.escape_ascii());
        }
    }
}
