//! The header of a zone of a bucket index: the settings, and the word that the index keeps there.

use super::settings::BucketSettings;
use crate::index::chain::{Shape, header_fields, root_fields};
use crate::record::{Certifier, LifeKey};
use crate::table::Table;

/// Set in the kind of a zone if the table grows.
const GROWS: u8 = 1 << 7;
/// Bits of a [`Usage`] for the lines of a zone.
const LINES_BITS: u32 = 24;

/// The contents of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Buckets of the table, in the order of their numbers.
    Table = 1,
    /// Buckets that stand behind others.
    Overflow = 2,
}

/// Kind and settings as the header of a zone says them.
pub(super) fn shape(kind: Kind, settings: BucketSettings) -> Shape {
    let grows = if settings.grow { GROWS } else { 0 };
    let shift = settings.buckets.trailing_zeros() as u8;
    // The settings are in range: sixteen bits remain.
    let [low, high, ..] = (settings.buckets >> shift).to_le_bytes();
    [kind as u8 | grows, shift, low, high]
}

/// The kind and the settings that a zone's header says, if they are possible.
pub(super) fn settings([kind, shift, low, high]: Shape) -> Option<(Kind, BucketSettings)> {
    let grow = kind & GROWS != 0;
    let kind = [Kind::Table, Kind::Overflow].into_iter().find(|known| *known as u8 == kind & !GROWS)?;
    let digits = u64::from(u16::from_le_bytes([low, high]));
    let settings = BucketSettings { buckets: digits.checked_shl(shift.into())?, grow };
    (settings == settings.in_range()).then_some((kind, settings))
}

/// The words in the headers that change, with their checks.
pub(super) struct Seal {
    certifier: Certifier,
    key: LifeKey,
}

impl Seal {
    pub(super) fn new(certifier: Certifier, nonce: u64) -> Seal {
        Seal { key: certifier.life_key(0, nonce), certifier }
    }

    fn check(&self, word: u64, place: u64) -> u64 {
        self.certifier.check(self.key, place, &word.to_le_bytes())
    }

    /// The word that says how many buckets the table has; zero while the index is being created.
    pub(super) fn state(&self, buckets: u64, place: u64) -> u64 {
        buckets | self.check(buckets, place) << 32
    }

    /// The buckets that the word at this place says, if it proves itself.
    pub(super) fn buckets(&self, word: u64, place: u64) -> Option<u64> {
        let buckets = word & u64::from(u32::MAX);
        (self.state(buckets, place) == word).then_some(buckets)
    }

    /// The word for the part of an overflow zone that has been handed out.
    pub(super) fn usage(&self, usage: Usage, place: u64) -> u64 {
        let owner = usage.last_owner.map_or(u64::from(u32::MAX), |bucket| bucket);
        let word = owner << LINES_BITS | usage.buckets;
        word | self.check(word, place) << (32 + LINES_BITS)
    }

    /// The usage that the word at this place says, if it proves itself.
    pub(super) fn used(&self, word: u64, place: u64) -> Option<Usage> {
        let owner = word >> LINES_BITS & u64::from(u32::MAX);
        let last_owner = (owner != u64::from(u32::MAX)).then_some(owner);
        let usage = Usage { buckets: word & ((1 << LINES_BITS) - 1), last_owner };
        (self.usage(usage, place) == word).then_some(usage)
    }
}

/// The part of an overflow zone that has been handed out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// So many buckets, from the first line on.
    pub(super) buckets: u64,
    /// The bucket of the table for whose chain the last of them was; `None` if that is linked for certain.
    pub(super) last_owner: Option<u64>,
}

/// The structures with their fields, for the check of `docs/FORMAT.md` against the code.
pub fn format_tables() -> Vec<Table> {
    let shape = [("kind", 1), ("shift", 1), ("digits", 2)];
    vec![("BucketZoneHeader", header_fields(&shape, Some("state"))), ("BucketRoot", root_fields())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_says_the_settings() {
        for buckets in [1, 3, 1024, 65_535, 65_536, 12_500_000, 1 << 31] {
            for grow in [false, true] {
                let sound = BucketSettings { buckets, grow }.in_range();
                for kind in [Kind::Table, Kind::Overflow] {
                    assert_eq!(settings(shape(kind, sound)), Some((kind, sound)));
                }
            }
        }
        for wrong in [[0, 0, 1, 0], [3, 0, 1, 0], [1, 0, 0, 0], [1, 32, 1, 0], [1, 255, 1, 0]] {
            assert_eq!(settings(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn words_of_headers_prove_themselves_and_their_places() {
        let seal = Seal::new(Certifier::new(&[1; 32]), 9);
        for buckets in [0, 1, 77, 1 << 31] {
            let word = seal.state(buckets, 40);
            assert_eq!(seal.buckets(word, 40), Some(buckets));
            assert_eq!(seal.buckets(word, 104), None);
            assert_eq!(seal.buckets(word ^ 1, 40), None);
        }
        for usage in [
            Usage::default(),
            Usage { buckets: 63, last_owner: Some(0) },
            Usage { buckets: (1 << LINES_BITS) - 1, last_owner: Some((1 << 31) - 1) },
        ] {
            let word = seal.usage(usage, 40);
            assert_eq!(seal.used(word, 40), Some(usage));
            assert_eq!(seal.used(word ^ 1, 40), None);
        }
    }
}
