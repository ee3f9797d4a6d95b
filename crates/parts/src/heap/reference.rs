//! The word that finds a record.

use crate::space::ZoneId;

/// A record's place in 48 bits: zone and offset in units of 8 bytes, and a 2-bit tag for the owner of the word
/// (recovery marks tombstones with it; tiers will). Never zero, since no record starts a zone.
///
/// ```text
///   47 46 45                                   0
///  | tag | zone number | offset in zone / 8     |     the split lies at the zone size
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reference(u64);

const TAG_SHIFT: u32 = 46;

impl Reference {
    /// Bits that a reference takes.
    pub const BITS: u32 = 48;

    /// The record at `offset` (a multiple of 8) of a zone of `1 << zone_shift` bytes.
    #[inline]
    pub fn new(zone: ZoneId, offset: u64, zone_shift: u32) -> Reference {
        Reference(((zone.0 as u64) << (zone_shift - 3)) | (offset >> 3))
    }

    /// A reference from the word that [`word`](Reference::word) gave.
    #[inline]
    pub fn from_word(word: u64) -> Reference {
        Reference(word)
    }

    /// The 48-bit word.
    #[inline]
    pub fn word(self) -> u64 {
        self.0
    }

    /// The same place with another tag, 0 to 3.
    #[inline]
    pub fn with_tag(self, tag: u64) -> Reference {
        Reference((self.0 & ((1 << TAG_SHIFT) - 1)) | (tag << TAG_SHIFT))
    }

    /// The place so many bytes (a multiple of 8) further on in the same zone.
    #[inline]
    pub fn plus(self, bytes: u64) -> Reference {
        Reference(self.0 + (bytes >> 3))
    }

    /// The tag.
    #[inline]
    pub fn tag(self) -> u64 {
        self.0 >> TAG_SHIFT
    }

    /// The zone, given the zone size.
    #[inline]
    pub fn zone(self, zone_shift: u32) -> ZoneId {
        ZoneId(((self.0 & ((1 << TAG_SHIFT) - 1)) >> (zone_shift - 3)) as u32)
    }

    /// The offset within the zone in bytes, given the zone size.
    #[inline]
    pub fn offset(self, zone_shift: u32) -> u64 {
        (self.0 << 3) & ((1 << zone_shift) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_and_tag_survive_the_word() {
        for (zone, offset, shift) in [(0, 64, 14), (63, 16376, 14), (1_000_000, 4_194_296, 22), (5, 72, 22)] {
            for tag in 0..4 {
                let reference = Reference::new(ZoneId(zone), offset, shift).with_tag(tag);
                assert!(reference.word() < 1 << Reference::BITS);
                assert_ne!(reference.with_tag(0).word(), 0);
                let back = Reference::from_word(reference.word());
                assert_eq!((back.zone(shift).0, back.offset(shift), back.tag()), (zone, offset, tag));
            }
        }
    }
}
