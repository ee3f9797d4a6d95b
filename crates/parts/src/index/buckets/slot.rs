//! The word of a slot: all that a reader needs, in what the processor stores at once (MPKV, section 3.2 and figure 2).
//!
//! ```text
//! key       63..48 fingerprint | 47..3 address | 2: 0 | 1: deleted | 0: persist
//! link      63..48 0 | 47..27 overflow zone | 26..3 line in it | 2: 1 | 1: 0 | 0: persist
//! ```
//!
//! The address is the store's reference, in units of eight bytes; so the paper's 47 bits of an address have two to spare.

use crate::index::words::LINE_WORDS;

/// The word of a slot that nobody uses.
pub(super) const FREE: u64 = 0;
/// The word is durable as it stands.
pub(super) const PERSIST: u64 = 1;
/// The key has been removed, and the slot is about to be free.
pub(super) const DELETED: u64 = 1 << 1;
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
};

/// The word of a key with this hash and reference, not yet durable.
#[inline]
pub(super) fn key_word(hash: u64, reference: u64) -> u64 {
    hash << 48 | reference << SHIFT
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

/// Whether the word stands for something that is not known to be durable.
#[inline]
pub(super) fn is_unsettled(word: u64) -> bool {
    word != FREE && word & PERSIST == 0
}

/// Whether the word is that of a key with this hash, or was until it was removed.
#[inline]
pub(super) fn is_own(word: u64, hash: u64) -> bool {
    (word ^ hash << 48) & (FINGERPRINT | LINK) == 0 && word & ADDRESS != 0
}

/// The slots, one bit each, whose words [may be of](is_own) this hash; free ones may be among them. All words are compared before the
/// first is looked at, so that the processor predicts one branch a bucket.
#[inline]
pub(super) fn candidates(words: &[u64; LINE_WORDS], hash: u64) -> u32 {
    let is_like = |word: u64| (word ^ hash << 48) & (FINGERPRINT | LINK) == 0;
    (0..LINE_WORDS).fold(0, |mask, slot| mask | u32::from(is_like(words[slot])) << slot)
}

/// The link to a line of an overflow zone, not yet durable.
pub(super) fn link(zone: u64, line: u64) -> u64 {
    debug_assert!(line < 1 << LINE_BITS);
    (zone << LINE_BITS | line) << SHIFT | LINK
}

/// Overflow zone and line that a word leads to, if it is a link.
#[inline]
pub(super) fn linked(word: u64) -> Option<(u64, u64)> {
    let number = (word & ADDRESS) >> SHIFT;
    (word & LINK != 0).then_some((number >> LINE_BITS, number & ((1 << LINE_BITS) - 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_word_is_told_from_every_other_kind() {
        let all = (1 << WORD_BITS) - 1;
        for (hash, reference_) in [(0, 1), (0xABCD, all), (u64::MAX, 12345), (0x10000, 7)] {
            let word = key_word(hash, reference_);
            assert_eq!(word >> 48, hash & 0xFFFF);
            assert_eq!(reference(word), reference_);
            assert!(is_key(word) && is_key(word | PERSIST) && is_own(word | PERSIST, hash) && !is_free(word));
            assert!(is_unsettled(word) && !is_unsettled(word | PERSIST));
            assert!(is_own(word | DELETED, hash) && !is_key(word | DELETED) && is_free(word | DELETED));
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
    fn words_of_a_fingerprint_are_candidates() {
        let mut words = [FREE; LINE_WORDS];
        words[2] = key_word(9, 1);
        words[5] = key_word(9, 2) | DELETED;
        words[6] = key_word(8, 3);
        words[7] = link(0, 1);
        assert_eq!(candidates(&words, 9), 1 << 2 | 1 << 5);
        assert_eq!(candidates(&words, 0), 0b0001_1011, "free words look like those of fingerprint 0");
    }
}
