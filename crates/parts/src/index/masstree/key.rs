//! Keys, eight bytes at a time.
//!
//! A layer of the trie looks at eight bytes of a key: its *slice* there, as a number whose order is that of
//! the bytes. A key that ends in the slice is padded with zeros. The number of its bytes there is its *rank*
//! among keys of equal slices: of two such keys one begins with the other, so the shorter comes first. All
//! keys that go on behind the slice have the highest rank; their bytes behind it are the *suffix*.

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

/// Fewer than eight bytes as a slice.
#[inline]
fn padded(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .zip((0..u64::BITS).step_by(8).rev())
        .fold(0, |slice, (byte, shift)| slice | u64::from(*byte) << shift)
}

/// Appends the bytes of a slice that a key of this rank has.
pub(super) fn push_slice(key: &mut Vec<u8>, slice: u64, rank: u8) {
    let bytes = slice.to_be_bytes();
    key.extend_from_slice(bytes.get(..usize::from(rank)).unwrap_or(&bytes));
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
            bytes.extend_from_slice(piece.suffix);
            assert_eq!(bytes, key.get(offset..).unwrap_or_default());
        }
    }
}
