//! The bytes of keys and values in the files.
//!
//! ```text
//! key of a record             1 | key
//! key of a range tombstone    0 | number, 8 bytes, big-endian
//!
//! value     0         1         2                  8           16           24
//!           +---------+---------+------------------+-----------+------------+--------
//!           | kind    | flags   | number           | expires   | version    | value
//!           +---------+---------+------------------+-----------+------------+--------
//!                                                   if flag 1   if flag 2
//! ```
//!
//! Numbers are little-endian. The kind is that of a record in a memtable. The version stands only if it is
//! not the number. The value of a range tombstone is the length of its first key (4 bytes), that key, and the
//! first key behind. The library sees all of them as values, and so its filter sees all of them.

use crate::record::Kind;
use crate::runs::Head;
use crate::versions::RangeTombstone;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The library counts its own changes below this number, and ours are above.
pub(super) const BIAS: u64 = 1 << 40;
/// First byte of the keys of range tombstones, which come before all records.
pub(super) const RANGE: u8 = 0;
/// First byte of the keys of records.
pub(super) const DATA: u8 = 1;
/// Bytes of the longest key: the library has two bytes for its length, and one byte is ours.
pub(super) const KEY_MAX: usize = u16::MAX as usize - 1;

const EXPIRES: u8 = 1;
const VERSION: u8 = 2;
/// Numbers are below.
const NUMBERS: u64 = 1 << 48;

/// The part of a value that is always there.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Fixed {
    /// A [`Kind`].
    kind: u8,
    /// [`EXPIRES`] and [`VERSION`].
    flags: u8,
    number: [u8; 6],
}

const _: () = assert!(size_of::<Fixed>() == 8);

impl Fixed {
    fn new(kind: Kind, flags: u8, number: u64) -> Fixed {
        assert!(number < NUMBERS, "a number of at most 48 bits");
        let mut low = [0; 6];
        low.copy_from_slice(&number.to_le_bytes()[..6]);
        Fixed { kind: kind as u8, flags, number: low }
    }

    fn number(&self) -> u64 {
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(&self.number);
        u64::from_le_bytes(bytes)
    }
}

/// A fault in bytes whose checks hold.
pub(super) type Fault = &'static str;

/// Writes the value of a record.
pub(super) fn encode(head: &Head, value: &[u8], out: &mut Vec<u8>) {
    assert!(matches!(head.kind, Kind::Value | Kind::Tombstone), "a record of a level");
    let is_copy = head.version != head.number;
    let flags = if head.expires != 0 { EXPIRES } else { 0 } | if is_copy { VERSION } else { 0 };
    out.clear();
    out.extend_from_slice(Fixed::new(head.kind, flags, head.number).as_bytes());
    if head.expires != 0 {
        out.extend_from_slice(&head.expires.to_le_bytes());
    }
    if is_copy {
        out.extend_from_slice(&head.version.to_le_bytes());
    }
    out.extend_from_slice(value);
}

/// Reads the value of a record.
pub(super) fn decode(bytes: &[u8]) -> Result<(Head, &[u8]), Fault> {
    let (fixed, mut rest) = Fixed::ref_from_prefix(bytes).map_err(|_| "a value without its header")?;
    let kind = Kind::from_byte_in_memtable(fixed.kind).filter(|kind| *kind != Kind::Range);
    let kind = kind.ok_or("a record of an unknown kind")?;
    if fixed.flags & !(EXPIRES | VERSION) != 0 {
        return Err("a record with unknown flags");
    }
    let mut field = |flag: u8| -> Result<Option<u64>, Fault> {
        if fixed.flags & flag == 0 {
            return Ok(None);
        }
        let (field, behind) = U64::read_from_prefix(rest).map_err(|_| "a value that ends in its header")?;
        rest = behind;
        Ok(Some(field.get()))
    };
    let expires = field(EXPIRES)?.unwrap_or(0);
    let version = field(VERSION)?;
    let number = fixed.number();
    Ok((Head { number, version: version.unwrap_or(number), kind, expires }, rest))
}

/// The key and the value of a range tombstone.
pub(super) fn encode_range(range: &RangeTombstone) -> (Vec<u8>, Vec<u8>) {
    let mut key = vec![RANGE];
    key.extend_from_slice(&range.number.to_be_bytes());
    let mut value = Fixed::new(Kind::Range, 0, range.number).as_bytes().to_vec();
    let len = u32::try_from(range.from.len()).expect("the length of a key");
    value.extend_from_slice(&len.to_le_bytes());
    value.extend_from_slice(&range.from);
    value.extend_from_slice(&range.to);
    (key, value)
}

/// Reads the value of a range tombstone.
pub(super) fn decode_range(bytes: &[u8]) -> Result<RangeTombstone, Fault> {
    let (fixed, rest) = Fixed::ref_from_prefix(bytes).map_err(|_| "a value without its header")?;
    if (fixed.kind, fixed.flags) != (Kind::Range as u8, 0) {
        return Err("a range tombstone of an unknown kind");
    }
    let (len, keys) = U32::read_from_prefix(rest).map_err(|_| "a range tombstone without keys")?;
    let (from, to) = keys.split_at_checked(len.get() as usize).ok_or("a range tombstone with a short key")?;
    Ok(RangeTombstone { from: from.into(), to: to.into(), number: fixed.number() })
}

/// Calls with the key of a record as it stands in the files.
pub(super) fn with_key<T>(key: &[u8], call: impl FnOnce(&[u8]) -> T) -> T {
    let mut short = [DATA; 128];
    match short.get_mut(1..=key.len()) {
        Some(room) => {
            room.copy_from_slice(key);
            call(&short[..=key.len()])
        }
        None => call(&long_key(key)),
    }
}

/// The key of a record as it stands in the files.
pub(super) fn long_key(key: &[u8]) -> Vec<u8> {
    [&[DATA], key].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_value_is_read_as_it_was_written(
            number in 0..NUMBERS, version in proptest::option::of(any::<u64>()), deletes: bool,
            expires in proptest::option::of(any::<u64>()), value: Vec<u8>, cut in any::<prop::sample::Index>(),
        ) {
            let kind = if deletes { Kind::Tombstone } else { Kind::Value };
            let (version, expires) = (version.unwrap_or(number), expires.unwrap_or(0));
            let head = Head { number, version, kind, expires };
            let mut bytes = vec![7];
            encode(&head, &value, &mut bytes);
            prop_assert_eq!(decode(&bytes), Ok((head, &*value)));
            let header = bytes.len() - value.len();
            prop_assert!(decode(&bytes[..cut.index(header)]).is_err());
            prop_assert!(decode_range(&bytes).is_err());
        }

        #[test]
        fn a_range_is_read_as_it_was_written(number in 0..NUMBERS, from: Vec<u8>, to: Vec<u8>) {
            let range = RangeTombstone { from: from.into(), to: to.into(), number };
            let (key, value) = encode_range(&range);
            prop_assert_eq!(&key[1..], number.to_be_bytes());
            prop_assert_eq!(decode_range(&value), Ok(range.clone()));
            prop_assert!(decode(&value).is_err());
            prop_assert!(decode_range(&value[..11 + range.from.len()]).is_err());
        }

        #[test]
        fn no_bytes_are_too_foreign(bytes: Vec<u8>) {
            let _ = (decode(&bytes), decode_range(&bytes));
        }

        #[test]
        fn a_key_stands_behind_its_prefix(key in proptest::collection::vec(any::<u8>(), 0..300)) {
            with_key(&key, |in_file| assert_eq!(in_file, long_key(&key)));
        }
    }
}
