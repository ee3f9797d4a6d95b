//! The words that name a record.

use crate::space::ZoneId;

/// A record's place in 48 bits: a 2-bit tag for the owner of the word, the zone number, and the offset in the
/// zone in units of 8 bytes; the zone size determines the split. Recovery tags tombstones. Never zero, since
/// no record starts a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Reference(u64);

const TAG_SHIFT: u32 = 46;

impl Reference {
    /// Bits that a reference takes.
    pub const BITS: u32 = 48;

    /// Bytes of a region whose every place has a reference within so many bits; without its tag, if they are
    /// fewer than 48.
    pub const fn reach(bits: u32) -> u64 {
        8 << if bits < TAG_SHIFT { bits } else { TAG_SHIFT }
    }

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

    /// How many bytes behind the beginning of the first zone it is, where zones stand behind each other.
    #[inline]
    pub fn distance(self) -> u64 {
        (self.0 & ((1 << TAG_SHIFT) - 1)) << 3
    }

    /// The offset within the zone in bytes, given the zone size.
    #[inline]
    pub fn offset(self, zone_shift: u32) -> u64 {
        (self.0 << 3) & ((1 << zone_shift) - 1)
    }
}

/// A [`Reference`] together with the length of its record, in 62 bits.
///
/// A writer that supersedes a record counts its bytes as garbage of their segment. The index held this word
/// for the record, so the writer need not read the record (PACMAN section 3.2: the size in the reference).
/// The length, in units of 8 bytes, takes 14 bits above the reference. The index may use the upper two bits.
///
/// A record of 128 KiB or more does not fit 14 bits and has a length of 0 here; its header tells the length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SizedReference(u64);

impl SizedReference {
    /// Bits that it takes.
    pub const BITS: u32 = 62;

    /// Bytes of the longest record whose length fits.
    pub const LONGEST: u64 = ((1 << (SizedReference::BITS - Reference::BITS)) - 1) * 8;

    /// The place of a record, and its length, a multiple of 8, or 0 if it is unknown. A length that does not
    /// fit is dropped.
    #[inline]
    pub fn new(reference: Reference, len: u64) -> SizedReference {
        let units = if len <= SizedReference::LONGEST { len >> 3 } else { 0 };
        SizedReference(reference.word() | units << Reference::BITS)
    }

    /// A sized reference from the word that [`word`](SizedReference::word) gave.
    #[inline]
    pub fn from_word(word: u64) -> SizedReference {
        SizedReference(word)
    }

    /// The 62-bit word. Never zero, since a [`Reference`] is not.
    #[inline]
    pub fn word(self) -> u64 {
        self.0
    }

    /// The place, tag included.
    #[inline]
    pub fn reference(self) -> Reference {
        Reference::from_word(self.0 & ((1 << Reference::BITS) - 1))
    }

    /// Bytes of the record; `None` if only the record's header tells them.
    #[inline]
    pub fn record_len(self) -> Option<u64> {
        let units = self.0 >> Reference::BITS & ((1 << (SizedReference::BITS - Reference::BITS)) - 1);
        (units != 0).then_some(units << 3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_place_that_is_in_reach_has_a_reference_and_the_next_one_has_none() {
        const SHIFT: u32 = 22;
        for (bits, mask) in
            [(45, (1 << 45) - 1), (Reference::BITS, (1 << TAG_SHIFT) - 1), (62, (1 << TAG_SHIFT) - 1)]
        {
            let of =
                |byte: u64| Reference::new(ZoneId((byte >> SHIFT) as u32), byte & ((1 << SHIFT) - 1), SHIFT);
            let reach = Reference::reach(bits);
            assert_eq!(of(reach - 8).word(), mask, "{bits} bits");
            assert_eq!(of(reach).word() & mask, 0, "{bits} bits");
        }
    }

    #[test]
    fn a_size_survives_the_word_beside_any_reference_unless_it_is_too_long() {
        let last = Reference::from_word((1 << Reference::BITS) - 1);
        for reference in
            [Reference::new(ZoneId(0), 64, 14), Reference::new(ZoneId(77), 4096, 22).with_tag(2), last]
        {
            for len in [0, 32, 4096, 131_064, 131_072, 131_080, 1 << 40] {
                let sized = SizedReference::new(reference, len);
                assert_eq!(sized.word() >> SizedReference::BITS, 0, "the upper bits are the index's");
                let back = SizedReference::from_word(sized.word());
                let known = (32..128 << 10).contains(&len).then_some(len);
                assert_eq!((back.reference(), back.record_len()), (reference, known));
            }
        }
    }

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
