//! Keys as paths of slices, and the words of slots.
//!
//! The tree of the first layer is over the first eight bytes of keys. The word of a slot says whose it is:
//!
//! ```text
//! bit | 62 63 kind | 0.. word of the store, or pointer to a layer |
//! 01 exact   the key ends with this slice
//! 10 long    one key shares the slice, and is longer or shorter; its record proves it
//! 11 layer   several keys share the slice
//! ```
//!
//! A short slice has zeros behind it, so `a` and `a` with a zero share one.

/// Bytes of a slice.
pub(super) const SLICE: usize = 8;

/// Bits of the store in a word.
pub(super) const WORD_BITS: u32 = 62;

const OWN: u64 = (1 << WORD_BITS) - 1;
const EXACT: u64 = 1 << WORD_BITS;
const LONG: u64 = 2 << WORD_BITS;
const LAYER: u64 = 3 << WORD_BITS;

/// The end of a word: a record, or a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// The key that ends here.
    Exact(u64),
    /// A key with this beginning.
    Long(u64),
    /// The pointer to a layer.
    Layer(u64),
}

/// The target of a word.
#[inline]
pub(super) fn target(word: u64) -> Target {
    match word & LAYER {
        EXACT => Target::Exact(word & OWN),
        LONG => Target::Long(word & OWN),
        _ => Target::Layer(word & OWN),
    }
}

/// The word of the store, or the pointer, in a word.
#[inline]
pub(super) fn own(word: u64) -> u64 {
    word & OWN
}

/// The word for a layer at this address.
pub(super) fn of_layer(address: u64) -> u64 {
    assert!(address >> WORD_BITS == 0, "addresses have fewer bits");
    LAYER | address
}

/// The word of a key that ends here.
pub(super) fn with_end(word: u64) -> u64 {
    word | EXACT
}

/// The same kind of word for another word of the store.
#[inline]
pub(super) fn with(kind: u64, word: u64) -> u64 {
    kind & LAYER | word
}

/// Where a key goes on in a layer, in the order of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// The key ended within the slice that leads to the layer, after so many of its bytes.
    End(u8),
    /// It goes on with this slice.
    Slice(u64),
}

/// A key on its way through the layers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path<'k> {
    key: &'k [u8],
    /// Bytes of the slices before the next one.
    passed: usize,
}

impl<'k> Path<'k> {
    /// The way of a key from the root on.
    #[inline]
    pub(super) fn of(key: &'k [u8]) -> Path<'k> {
        Path { key, passed: 0 }
    }

    /// The next step: a slice at the root, and in a layer also the end.
    #[inline]
    pub(super) fn step(&self) -> Step {
        if self.passed > 0 && self.key.len() <= self.passed {
            return Step::End((SLICE - (self.passed - self.key.len())) as u8);
        }
        Step::Slice(self.slice())
    }

    /// The next slice.
    #[inline]
    pub(super) fn slice(&self) -> u64 {
        let rest = self.key.get(self.passed..).unwrap_or_default();
        match rest.first_chunk() {
            Some(slice) => u64::from_be_bytes(*slice),
            None => {
                let mut slice = [0; SLICE];
                slice[..rest.len()].copy_from_slice(rest);
                u64::from_be_bytes(slice)
            }
        }
    }

    /// Whether the key ends with the next step.
    #[inline]
    pub(super) fn is_exact(&self) -> bool {
        self.key.len() == self.passed + SLICE || matches!(self.step(), Step::End(_))
    }

    /// The word of the key in the slot of the next step.
    #[inline]
    pub(super) fn word(&self, word: u64) -> u64 {
        word | if self.is_exact() { EXACT } else { LONG }
    }

    /// The way in the layer of the next slice.
    #[inline]
    pub(super) fn below(&self) -> Path<'k> {
        Path { passed: self.passed + SLICE, ..*self }
    }

    /// Whether another key has the same slices up to the next one.
    pub(super) fn shares_slice(&self, other: &[u8]) -> bool {
        let same = self.key.get(..self.passed) == other.get(..self.passed);
        same && self.slice() == Path { key: other, ..*self }.slice()
    }

    /// The key that ends with the next slice.
    pub(super) fn key_of_slice(&self, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(self.key.get(..self.passed).unwrap_or_default());
        out.extend_from_slice(&self.slice().to_be_bytes());
    }

    /// The way of another key in the layer of the next slice, which it shares.
    pub(super) fn below_in<'o>(&self, other: &'o [u8]) -> Path<'o> {
        Path { key: other, passed: self.passed + SLICE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(key: &[u8]) -> Vec<Step> {
        let mut path = Path::of(key);
        let mut steps = vec![path.step()];
        while !matches!(path.step(), Step::End(_)) {
            path = path.below();
            steps.push(path.step());
        }
        steps
    }

    #[test]
    fn the_order_of_steps_is_that_of_keys() {
        let mut keys: Vec<Vec<u8>> = vec![vec![]];
        for len in 1..20 {
            for last in [0, 1, 255] {
                keys.push([&vec![0; len - 1][..], &[last]].concat());
                keys.push([&vec![255; len - 1][..], &[last]].concat());
            }
        }
        keys.sort();
        keys.dedup();
        for pair in keys.windows(2) {
            assert!(steps(&pair[0]) < steps(&pair[1]), "{pair:?}");
        }
    }

    #[test]
    fn a_key_is_exact_where_it_ends() {
        assert!(Path::of(b"12345678").is_exact() && !Path::of(b"123456789").is_exact());
        assert!(!Path::of(b"1234567").is_exact() && !Path::of(b"").is_exact());
        assert_eq!(Path::of(b"1234567").below().step(), Step::End(7));
        assert_eq!(Path::of(b"12345678").below().step(), Step::End(8));
        assert_eq!(Path::of(b"").below().step(), Step::End(0));
        assert!(Path::of(b"123456789").below().step() == Step::Slice(u64::from(b'9') << 56));
        assert!(Path::of(b"0123456701234567").below().is_exact());
    }
}
