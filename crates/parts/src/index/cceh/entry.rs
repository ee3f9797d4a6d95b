//! The words of an index: entries, and the names of segments.

use crate::index::directory::{DEPTH_MAX, prefix};
use quipu_medium::{LINE, WORD};

/// Bytes of a bucket: one cache line.
pub(super) const BUCKET: u64 = LINE;
/// Bytes of an entry: the hash word, then the value word.
pub(super) const ENTRY: u64 = 2 * WORD;
/// Where the value word lies in an entry.
pub(super) const VALUE: u64 = WORD;
/// Entries of a bucket.
pub(super) const ENTRIES: u64 = BUCKET / ENTRY;
/// The value word of an entry that names nothing.
pub(super) const EMPTY: u64 = 0;
/// Hash bits below those that choose the bucket: the lowest may be a memory's mark.
const SKIPPED_BITS: u32 = 1;
/// The low bits of a name, which hold a depth.
const DEPTH_MASK: u64 = LINE - 1;

const _: () = {
    assert!(ENTRY == 16 && ENTRIES == 4 && ENTRIES * ENTRY == BUCKET);
    assert!(DEPTH_MASK == 63 && (DEPTH_MAX as u64) < DEPTH_MASK);
    // The bits that choose a bucket are never bits that choose a segment.
    assert!(SKIPPED_BITS + super::settings::BUCKET_BITS_MAX + DEPTH_MAX <= 64);
};

/// The bucket that a hash names, among `mask + 1`.
#[inline]
pub(super) fn home(hash: u64, mask: u64) -> u64 {
    (hash >> SKIPPED_BITS) & mask
}

/// Which hashes a segment is for: those that share its upper `depth` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// The lowest of the hashes.
    pub start: u64,
    /// Bits that they share.
    pub depth: u32,
}

impl Name {
    /// The name of the segment of this depth for `hash`.
    pub(super) fn new(hash: u64, depth: u32) -> Name {
        Name { start: prefix(hash, depth) << 1 << (63 - depth), depth }
    }

    /// The names of the two halves, the one whose next bit is clear first.
    pub(super) fn halves(self) -> [Name; 2] {
        let depth = self.depth + 1;
        [Name { depth, ..self }, Name { start: self.start | 1 << (64 - depth), depth }]
    }

    /// The name as one word, never zero: the lowest hash, and depth plus one in the low six bits.
    pub(super) fn word(self) -> u64 {
        self.start | u64::from(self.depth + 1)
    }

    /// The name that a word says, if it is one.
    pub(super) fn from_word(word: u64) -> Option<Name> {
        let depth = (word & DEPTH_MASK).checked_sub(1)? as u32;
        let name = Name { start: word & !DEPTH_MASK, depth };
        (depth <= DEPTH_MAX && name == Name::new(name.start, depth)).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_words_are_one_to_one() {
        for depth in [0, 1, 5, 17, DEPTH_MAX] {
            for hash in [0, 1, u64::MAX, 0xA5A5_5A5A_0F0F_F0F0] {
                let name = Name::new(hash, depth);
                assert_eq!(Name::from_word(name.word()), Some(name));
                assert!(name.word() != 0 && prefix(name.start, depth) == prefix(hash, depth));
                if depth < DEPTH_MAX {
                    let [low, high] = name.halves();
                    assert!(low.start == name.start && high.start > low.start);
                    assert_eq!(low, Name::new(low.start, depth + 1));
                    assert_eq!(high, Name::new(high.start, depth + 1));
                }
            }
        }
    }

    #[test]
    fn other_words_are_no_names() {
        let too_deep = u64::from(DEPTH_MAX + 2);
        // No depth; deeper than any segment; bits below the depth.
        for word in [0, 64, 1 << 63, too_deep, 1 << 63 | 1, 1 << 61 | 3] {
            assert_eq!(Name::from_word(word), None, "{word:#x}");
        }
    }
}
