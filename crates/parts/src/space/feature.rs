//! Features: how the bytes of a pool differ from the first form of their format version. Each is a bit of the
//! superblock's incompatible word.
//!
//! A part whose bytes change gets a bit here, and each design with that part requires it. New pools of the
//! design carry the bit; a pool without it has the earlier form. No program reads both forms, so a pool opens
//! only if it carries exactly the bits of its design. A missing bit is refused with the name of the old form.
//! A surplus bit comes from a later release, even if this release knows it from another design.
//!
//! A bit is never given another meaning.

use super::error::SpaceError;
use super::superblock::Superblock;

/// A feature of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    /// Its bit of the incompatible word.
    bit: u32,
    /// The form that a pool without it has.
    before: &'static str,
}

impl Feature {
    /// Chunks of slots prove how many of their blocks are in use.
    pub const CHECKED_USED: Feature =
        Feature { bit: 0, before: "chunk headers without a check of their count of used blocks" };

    /// Nodes of FAST&FAIR distinguish a hole, an end and a zero by many bits, and their links prove
    /// themselves.
    pub const MARKED_NODES: Feature =
        Feature { bit: 1, before: "nodes of FAST&FAIR in which an end is a zero" };

    /// Free slots of the bucket index are not zero, and its links prove themselves.
    pub const MARKED_BUCKETS: Feature = Feature { bit: 2, before: "buckets in which a free slot is a zero" };

    /// Separators of FAST&FAIR prove themselves, and so do the words that name a root or a leftmost child.
    pub const CHECKED_CHILDREN: Feature =
        Feature { bit: 3, before: "separators of FAST&FAIR without a check" };

    /// All features that this release knows, in the order of their bits.
    pub const ALL: &[Feature] =
        &[Feature::CHECKED_USED, Feature::MARKED_NODES, Feature::MARKED_BUCKETS, Feature::CHECKED_CHILDREN];

    /// Its bit in the incompatible word.
    pub const fn word(self) -> u64 {
        1 << self.bit
    }
}

/// A bit of the incompatible word that belongs to the pool and to no design: it has several parts, each with
/// a header.
pub(super) const PARTS: u64 = 1 << 4;

/// The incompatible word of a pool that has these features.
pub(super) const fn word_of(features: &[Feature]) -> u64 {
    let (mut word, mut number) = (0, 0);
    while number < features.len() {
        word |= features[number].word();
        number += 1;
    }
    word
}

impl Superblock {
    /// Whether the pool has several parts.
    pub fn has_parts(&self) -> bool {
        self.incompatible.get() & PARTS != 0
    }

    /// Whether the pool has these features and no others.
    ///
    /// # Errors
    /// [`SpaceError::OlderFormat`] names missing features, [`SpaceError::UnknownFeatures`] surplus ones.
    pub fn require(&self, features: &[Feature]) -> Result<(), SpaceError> {
        let has = self.incompatible.get() & !PARTS;
        let beyond = has & !word_of(features);
        if beyond != 0 {
            return Err(SpaceError::UnknownFeatures { bits: beyond });
        }
        let lacks = features.iter().filter(|feature| has & feature.word() == 0);
        let old: Vec<&str> = lacks.map(|feature| feature.before).collect();
        if old.is_empty() { Ok(()) } else { Err(SpaceError::OlderFormat { what: old.join(", ") }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_features_share_a_bit() {
        for (number, feature) in Feature::ALL.iter().enumerate() {
            assert_eq!(feature.bit as usize, number, "{feature:?}");
        }
        assert_eq!(word_of(Feature::ALL) & PARTS, 0);
    }

    #[test]
    fn a_pool_has_the_features_of_its_design_and_no_others() {
        let mut superblock = Superblock::blank();
        assert!(superblock.require(&[]).is_ok());
        let error = superblock.require(Feature::ALL).expect_err("of the first form").to_string();
        assert!(Feature::ALL.iter().all(|feature| error.contains(feature.before)), "{error}");
        superblock.incompatible.set(word_of(Feature::ALL));
        assert!(superblock.require(Feature::ALL).is_ok() && !superblock.has_parts());
        let beyond = superblock.require(&Feature::ALL[1..]);
        assert!(matches!(beyond, Err(SpaceError::UnknownFeatures { bits: 1 })), "{beyond:?}");
        superblock.incompatible.set(word_of(Feature::ALL) | PARTS);
        assert!(superblock.require(Feature::ALL).is_ok() && superblock.has_parts(), "in any design");
    }
}
