//! Keys, eight bytes at a time.
//!
//! A layer of the trie looks at eight bytes of a key: its *slice* there, as a number whose order is that of
//! the bytes. A key that ends in the slice is padded with zeros. The number of its bytes there is its *rank*
//! among keys of equal slices: of two such keys one begins with the other, so the shorter comes first. All
//! keys that go on behind the slice have the highest rank; their bytes behind it are the *suffix*. A suffix
//! of up to eight bytes is *short*.

use std::cmp::Ordering;

/// Bytes of a slice.
pub(super) const SLICE: usize = 8;
/// The rank of the keys that go on behind the slice.
pub(super) const LONGER: u8 = SLICE as u8 + 1;

/// A key as a layer sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece<'k> {
    /// The key's bytes in this layer, padded with zeros, the first one highest.
    pub(super) slice: u64,
    /// How many they are, or [`LONGER`].
    pub(super) rank: u8,
    /// The bytes behind the slice.
    pub(super) suffix: &'k [u8],
}

impl<'k> Piece<'k> {
    /// The key as the layer behind its first `offset` bytes sees it.
    #[inline]
    pub(super) fn at(key: &'k [u8], offset: usize) -> Piece<'k> {
        let rest = key.get(offset..).unwrap_or_default();
        match rest.split_first_chunk::<SLICE>() {
            Some((slice, suffix)) => {
                let rank = if suffix.is_empty() { SLICE as u8 } else { LONGER };
                Piece { slice: u64::from_be_bytes(*slice), rank, suffix }
            }
            None => Piece { slice: padded(rest), rank: rest.len() as u8, suffix: &[] },
        }
    }

    /// Whether the key goes on behind the slice by a short suffix.
    #[inline]
    pub(super) fn has_short_suffix(&self) -> bool {
        matches!(self.suffix.len(), 1..=SLICE)
    }

    /// Slice and rank, by which the layer orders the keys.
    #[inline]
    pub(super) fn order(&self) -> (u64, u8) {
        (self.slice, self.rank)
    }
}

impl Ord for Piece<'_> {
    fn cmp(&self, other: &Piece<'_>) -> Ordering {
        self.order().cmp(&other.order()).then_with(|| self.suffix.cmp(other.suffix))
    }
}

impl PartialOrd for Piece<'_> {
    fn partial_cmp(&self, other: &Piece<'_>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A short suffix, or none, by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Short {
    /// Padded with zeros.
    bytes: [u8; SLICE],
    len: u8,
}

impl Short {
    /// No byte.
    pub(super) const NONE: Short = Short { bytes: [0; SLICE], len: 0 };

    /// The suffix of these bytes; nothing if they are too many.
    #[inline]
    pub(super) fn of(bytes: &[u8]) -> Option<Short> {
        if let Ok(bytes) = bytes.try_into() {
            return Some(Short { bytes, len: SLICE as u8 });
        }
        let len = bytes.len();
        (len < SLICE).then(|| Short { bytes: padded(bytes).to_be_bytes(), len: len as u8 })
    }

    /// The suffix that has this word and length.
    #[inline]
    pub(super) fn of_word(word: u64, len: u8) -> Short {
        Short { bytes: word.to_be_bytes(), len }
    }

    /// Its bytes as a slice has them.
    #[inline]
    pub(super) fn word(self) -> u64 {
        u64::from_be_bytes(self.bytes)
    }

    /// How many they are.
    #[inline]
    pub(super) fn len(self) -> u8 {
        self.len
    }
}

/// The suffix of an entry: a short one by value, for its place may get another; a longer one where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) enum Suffix<'s> {
    Short(Short),
    Long(&'s [u8]),
}

impl<'s> Suffix<'s> {
    /// No byte.
    pub(super) const NONE: Suffix<'static> = Suffix::Short(Short::NONE);

    /// The suffix of these bytes.
    #[inline]
    pub(super) fn of(bytes: &'s [u8]) -> Suffix<'s> {
        Short::of(bytes).map_or(Suffix::Long(bytes), Suffix::Short)
    }

    /// Its bytes.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Suffix::Short(short) => short.bytes.get(..usize::from(short.len)).unwrap_or(&short.bytes),
            Suffix::Long(bytes) => bytes,
        }
    }

    /// Appends its bytes.
    #[inline]
    pub(super) fn push_to(&self, key: &mut Vec<u8>) {
        match self {
            Suffix::Short(short) => push_bytes(key, short.bytes, short.len.into()),
            Suffix::Long(bytes) => key.extend_from_slice(bytes),
        }
    }
}

/// Fewer than eight bytes as a slice.
#[inline]
fn padded(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .zip((0..u64::BITS).step_by(8).rev())
        .fold(0, |slice, (byte, shift)| slice | u64::from(*byte) << shift)
}

/// Appends the bytes of a slice that a key of this rank has.
#[inline]
pub(super) fn push_slice(key: &mut Vec<u8>, slice: u64, rank: u8) {
    push_bytes(key, slice.to_be_bytes(), rank.into());
}

/// Appends the first `len` bytes, or all. A copy of all eight is one store.
#[inline]
fn push_bytes(key: &mut Vec<u8>, bytes: [u8; SLICE], len: usize) {
    let end = key.len() + len.min(SLICE);
    key.extend_from_slice(&bytes);
    key.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_stand_in_the_order_of_the_keys() {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        for len in 0..=10 {
            keys.extend([vec![0; len], vec![1; len], vec![255; len]]);
            keys.push([vec![7; len], vec![0]].concat());
        }
        for a in &keys {
            for b in &keys {
                assert_eq!(Piece::at(a, 0).cmp(&Piece::at(b, 0)), a.cmp(b), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn a_key_can_be_put_together_again() {
        let key: Vec<u8> = (1..=20).collect();
        for (offset, rank) in [(0, LONGER), (8, LONGER), (12, 8), (16, 4), (20, 0), (24, 0)] {
            let piece = Piece::at(&key, offset);
            assert_eq!(piece.rank, rank);
            let mut bytes = Vec::new();
            push_slice(&mut bytes, piece.slice, piece.rank);
            Suffix::of(piece.suffix).push_to(&mut bytes);
            assert_eq!(bytes, key.get(offset..).unwrap_or_default());
        }
    }

    #[test]
    fn suffixes_are_short_up_to_eight_bytes() {
        for len in 0..=SLICE + 1 {
            let bytes: Vec<u8> = (0..len as u8).collect();
            let suffix = Suffix::of(&bytes);
            assert_eq!(matches!(suffix, Suffix::Short(_)), len <= SLICE);
            assert_eq!(suffix.bytes(), bytes);
            let Suffix::Short(short) = suffix else { continue };
            assert_eq!(Short::of_word(short.word(), short.len()), short);
            assert_ne!(Short::of(&[&bytes[..], &[0]].concat()), Some(short), "a zero is no padding");
        }
    }
}
