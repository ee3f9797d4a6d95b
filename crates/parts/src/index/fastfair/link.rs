//! Second words: values, and links and children with their checks.
//!
//! `node.rs` draws them.

use super::key::Stored;
use super::settings::NUMBER_BITS;

/// The bit of a second word that says what the key word is.
pub(super) const KEPT: u64 = 1 << 63;
/// The bit of a second word that says that there is no value or number.
pub(super) const VACANT: u64 = 1 << 62;
/// The second word of an empty entry with more behind it; and of the second link while the first one counts.
pub(super) const HOLE: u64 = 0xE5B9_6A3C_D214_7F93;
/// The second word of an entry with nothing behind it, and of a link to no node.
pub(super) const END: u64 = 0x5A46_95C3_2DEB_806C;
/// Where a link's check stands.
const CHECK_SHIFT: u32 = NUMBER_BITS;
const CHECK_MASK: u64 = VACANT - (1 << CHECK_SHIFT);
/// The key word in a check where there is no key.
const NO_KEY: Stored = Stored { word: !0, is_kept: false };

const _: () = {
    assert!(HOLE & (KEPT | VACANT) == KEPT | VACANT && END & (KEPT | VACANT) == VACANT);
    assert!((HOLE ^ END).count_ones() > 32 && HOLE.count_ones() > 16 && END.count_ones() > 16);
};

/// The second word of an entry with this key before it.
pub(super) fn second_word(key: Stored, value: u64) -> u64 {
    value | if key.is_kept { KEPT } else { 0 }
}

/// Whether a second word of an entry is none that a run of the index leaves.
pub(super) fn is_broken(second: u64) -> bool {
    second != HOLE && second != END && (second & VACANT != 0 || second & !KEPT == 0)
}

/// Where keys go that are not the node's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    /// The lowest of them.
    pub(super) key: Stored,
    /// The sibling.
    pub(super) node: u64,
}

impl Link {
    /// The key word and the second word of a link, or of none.
    pub(super) fn words(link: Option<Link>) -> (u64, u64) {
        match link {
            Some(link) => (link.key.word, second_word(link.key, link.number())),
            None => (0, END),
        }
    }

    /// The link of these words; `None` if they do not prove themselves.
    pub(super) fn of_words(word: u64, second: u64) -> Option<Option<Link>> {
        if second == END {
            return Some(None);
        }
        let key = Stored { word, is_kept: second & KEPT != 0 };
        let link = Link { key, node: second & !(KEPT | VACANT | CHECK_MASK) };
        (Link::words(Some(link)).1 == second).then_some(Some(link))
    }

    /// The number of the node with the check, as it stands beside the key word of a link and of a separator.
    pub(super) fn number(&self) -> u64 {
        self.node | self.check()
    }

    /// Changes with every single bit of the link: the factor has no long runs of equal bits.
    fn check(&self) -> u64 {
        let both = self.key.word ^ self.node.rotate_left(21) ^ u64::from(self.key.is_kept);
        both.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 2 & CHECK_MASK
    }
}

/// The number of a node with a check, as it stands where no key leads to it: the root, the leftmost child.
pub(super) fn marked(node: u64) -> u64 {
    Link { key: NO_KEY, node }.number()
}

/// The number of a node without its check, which is not looked at.
pub(super) fn unmarked(number: u64) -> u64 {
    number & !CHECK_MASK
}
