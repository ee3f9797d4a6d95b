//! The word of a slot: all that a reader needs, in one atomic word (MPKV, section 3.2 and figure 2).
//!
//! `docs/FORMAT.md` draws the words of keys, deleted keys, links and free slots.
//!
//! The address is the store's reference, in units of eight bytes, so two of the paper's 47 bits are spare.
//!
//! A flipped bit makes no word into a sound one of another kind. The address of a deleted key and the number
//! of a link are out of reach if read as a key's address, and the other way round. A link proves itself. A
//! free slot is not zero, so zeros are no empty bucket.

use crate::index::words::LINE_WORDS;

/// The word of a free slot.
pub(super) const FREE: u64 = 0x9D3A_06C5_58E1_2B4F;
/// The word is durable as it stands.
pub(super) const PERSIST: u64 = 1;
/// The key has been removed, and the slot is about to be free.
const DELETED: u64 = 1 << 1;
/// The word leads to the next bucket of the chain.
pub(super) const LINK: u64 = 1 << 2;
/// Bits of a reference.
pub(super) const WORD_BITS: u32 = 45;

const SHIFT: u32 = 3;
const ADDRESS: u64 = ((1 << WORD_BITS) - 1) << SHIFT;
const FINGERPRINT: u64 = 0xFFFF << 48;
const LINE_BITS: u32 = 24;

const _: () = {
    assert!(FINGERPRINT & ADDRESS == 0 && FINGERPRINT | ADDRESS == !(PERSIST | DELETED | LINK));
    assert!(LINE_WORDS == 8);
    // Read as a deleted key's, a free word has an address that no pool reaches.
    assert!(FREE & (LINK | DELETED | PERSIST) == LINK | DELETED | PERSIST && FREE & ADDRESS < 1 << 43);
};

/// The word of a key with this hash and reference, not yet durable.
#[inline]
pub(super) fn key_word(hash: u64, reference: u64) -> u64 {
    hash << 48 | reference << SHIFT
}

/// The word of a key that has been removed, not yet durable.
#[inline]
pub(super) fn deleted_word(hash: u64, reference: u64) -> u64 {
    hash << 48 | !(reference << SHIFT) & ADDRESS | DELETED
}

/// Whether the key of a word of a fingerprint is there, and has not been removed.
#[inline]
pub(super) fn is_there(word: u64) -> bool {
    word & DELETED == 0
}

/// The reference of a key's word.
#[inline]
pub(super) fn reference(word: u64) -> u64 {
    (word & ADDRESS) >> SHIFT
}

/// Whether the word is a key's that has not been removed.
#[inline]
pub(super) fn is_key(word: u64) -> bool {
    word & ADDRESS != 0 && word & (LINK | DELETED) == 0
}

/// Whether a key may be put in place of the word.
#[inline]
pub(super) fn is_free(word: u64) -> bool {
    word == FREE || word & (LINK | DELETED) == DELETED
}

/// Whether the word may not be durable. A free one has a mark, and zero is no word.
#[inline]
pub(super) fn is_unsettled(word: u64) -> bool {
    word != 0 && word & PERSIST == 0
}

/// Whether the word is that of a key with this hash, or was until it was removed.
#[inline]
pub(super) fn is_own(word: u64, hash: u64) -> bool {
    (word ^ hash << 48) & (FINGERPRINT | LINK) == 0 && word & ADDRESS != 0
}

/// Whether there is a word among those of a bucket that is zero, which no run leaves.
#[inline]
pub(super) fn has_blank(words: &[u64]) -> bool {
    words.iter().fold(false, |found, word| found | (*word == 0))
}

/// Whether a run may leave this word in a slot, perhaps the last of its bucket. `may_name` judges references.
pub(super) fn is_sound(word: u64, is_last: bool, may_name: impl Fn(u64) -> bool) -> bool {
    match word & (LINK | DELETED) {
        0 => word & ADDRESS != 0 && may_name(reference(word)),
        DELETED => !word & ADDRESS != 0 && may_name(reference(!word)),
        LINK => is_last && linked(word).is_some(),
        _ => word == FREE,
    }
}

/// The slots, one bit each, whose words [may be of](is_own) this hash; free ones may be among them. All words
/// are compared before the first is looked at, so that the processor predicts one branch a bucket.
#[inline]
pub(super) fn candidates(words: &[u64; LINE_WORDS], hash: u64) -> u32 {
    let is_like = |word: u64| (word ^ hash << 48) & (FINGERPRINT | LINK) == 0;
    (0..LINE_WORDS).fold(0, |mask, slot| mask | u32::from(is_like(words[slot])) << slot)
}

/// The link to a line of an overflow zone, not yet durable.
pub(super) fn link(zone: u64, line: u64) -> u64 {
    debug_assert!(line < 1 << LINE_BITS);
    let number = zone << LINE_BITS | line;
    // Changes with every single bit of the number: the factor has no long runs of equal bits.
    let check = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) & FINGERPRINT;
    check | !(number << SHIFT) & ADDRESS | LINK
}

/// Whether the word in the last slot of a bucket leads on, or did before it was damaged.
#[inline]
pub(super) fn is_link(word: u64) -> bool {
    word & LINK != 0 && word != FREE
}

/// Overflow zone and line that a word leads to, if it is a link that proves itself.
#[inline]
pub(super) fn linked(word: u64) -> Option<(u64, u64)> {
    let number = (!word & ADDRESS) >> SHIFT;
    let (zone, line) = (number >> LINE_BITS, number & ((1 << LINE_BITS) - 1));
    (link(zone, line) == word & !PERSIST).then_some((zone, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_word_is_told_from_every_other_kind() {
        let all = (1 << WORD_BITS) - 1;
        for (hash, reference_) in [(0, 1), (0xABCD, all - 1), (u64::MAX, 12345), (0x10000, 7)] {
            let word = key_word(hash, reference_);
            assert_eq!(word >> 48, hash & 0xFFFF);
            assert_eq!(reference(word), reference_);
            assert!(is_key(word) && is_key(word | PERSIST) && is_own(word | PERSIST, hash) && !is_free(word));
            assert!(is_unsettled(word) && !is_unsettled(word | PERSIST));
            let deleted = deleted_word(hash, reference_);
            assert!(is_own(deleted, hash) && !is_key(deleted) && is_free(deleted) && !is_there(deleted));
            assert!(is_there(word) && linked(deleted).is_none());
            assert!(!is_own(word, hash ^ 1) && linked(word).is_none());
        }
        assert!(is_free(FREE) && !is_key(FREE) && !is_unsettled(FREE) && !is_own(FREE, 0));
    }

    #[test]
    fn a_link_says_where_it_leads_and_is_no_key() {
        for (zone, line) in [(0, 1), (5, 63), ((1 << 21) - 1, (1 << LINE_BITS) - 1)] {
            let word = link(zone, line);
            assert_eq!(linked(word | PERSIST), Some((zone, line)));
            assert!(!is_key(word) && !is_free(word) && !is_own(word, 0) && is_unsettled(word));
        }
    }

    #[test]
    fn no_bit_makes_a_word_into_one_of_another_kind() {
        let may_name = |reference: u64| reference < 1 << 37;
        let kind = |word: u64| is_sound(word, true, may_name).then_some(word & (LINK | DELETED));
        for hash in [0, 0xFFFF, 0x1234, FREE >> 48] {
            for reference in [1, 8, 12_345, (1 << 37) - 1] {
                for word in
                    [key_word(hash, reference), deleted_word(hash, reference), link(3, reference % 64), FREE]
                {
                    assert!(kind(word).is_some() && kind(word | PERSIST).is_some(), "{word:#x}");
                    for bit in 0..64 {
                        let flipped = kind(word ^ 1 << bit);
                        assert!(flipped.is_none() || flipped == kind(word), "{word:#x}, bit {bit}");
                    }
                    assert!(
                        word & LINK == 0 || (1..64).all(|bit| kind(word ^ 1 << bit).is_none()),
                        "{word:#x}"
                    );
                }
            }
        }
        assert_eq!(kind(0), None);
        assert!(!is_sound(link(0, 1), false, may_name) && has_blank(&[FREE, 0]) && !has_blank(&[FREE; 7]));
    }

    #[test]
    fn words_of_a_fingerprint_are_candidates() {
        let mut words = [FREE; LINE_WORDS];
        words[2] = key_word(9, 1);
        words[5] = deleted_word(9, 2);
        words[6] = key_word(8, 3);
        words[7] = link(0, 1);
        assert_eq!(candidates(&words, 9), 1 << 2 | 1 << 5);
        assert_eq!(candidates(&words, FREE >> 48), 0, "free words look like none");
    }
}
