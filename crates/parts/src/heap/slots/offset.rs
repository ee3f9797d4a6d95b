//! The word that finds a record: what the index holds (the paper's Offset, section 3.2.1).

/// A record's place: block, page and position.
///
/// The position, the lower 16 bits, is a slot, or an offset in the page in units of 8 bytes. Never all ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offset(u64);

const POSITION_BITS: u32 = 16;
/// Fewest bits of a page number, as in the paper.
const PAGE_BITS: u32 = 3;

/// Bits that tell the pages of a block apart. Computed once, since that would be a good part of the cost of
/// finding a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageBits(u32);

impl PageBits {
    /// As many as blocks of so many pages need, of which there is at least one.
    pub fn of(pages: u32) -> PageBits {
        PageBits(PAGE_BITS.max(u32::BITS - (pages - 1).leading_zeros()))
    }
}

impl Offset {
    /// The record at a position of a page of a block.
    #[inline]
    pub fn new(block: u64, page: u32, position: u32, bits: PageBits) -> Offset {
        Offset((block << bits.0 | u64::from(page)) << POSITION_BITS | u64::from(position))
    }

    /// An offset from the word that [`word`](Offset::word) gave.
    #[inline]
    pub fn from_word(word: u64) -> Offset {
        Offset(word)
    }

    /// The word.
    #[inline]
    pub fn word(self) -> u64 {
        self.0
    }

    /// The block.
    #[inline]
    pub fn block(self, bits: PageBits) -> u64 {
        self.0 >> (POSITION_BITS + bits.0)
    }

    /// The page within the block, which need not exist.
    #[inline]
    pub fn page(self, bits: PageBits) -> u32 {
        (self.0 >> POSITION_BITS) as u32 & ((1 << bits.0) - 1)
    }

    /// The position within the page.
    #[inline]
    pub fn position(self) -> u32 {
        self.0 as u32 & ((1 << POSITION_BITS) - 1)
    }
}

/// An offset and how long its record is, in one word: so a writer that supersedes a record need not read it
/// (PACMAN section 3.2).
///
/// Of Viper's 45 bits for blocks 15 remain unused up to pools of 4 TiB at least; the paper's 16 bits of
/// length, in units that records are aligned to, need 13.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizedOffset {
    /// Where the record is.
    pub offset: Offset,
    units: u16,
}

/// Bits of the offset, plus one, in the word.
const OFFSET_BITS: u32 = 49;
/// Units of length of the longest record whose length the word tells.
const MOST_UNITS: u64 = (1 << (SizedOffset::BITS - OFFSET_BITS)) - 1;
/// Bytes of such a unit.
const UNIT: u64 = 8;

impl SizedOffset {
    /// Bits of a word.
    pub const BITS: u32 = 62;

    /// Blocks that the word can tell apart.
    pub(super) fn most_blocks(bits: PageBits) -> u64 {
        1 << (OFFSET_BITS - POSITION_BITS - bits.0)
    }

    /// A record of so many bytes; none if they are not to be told.
    #[inline]
    pub fn new(offset: Offset, len: u64) -> SizedOffset {
        let units = len / UNIT;
        SizedOffset { offset, units: if units > MOST_UNITS { 0 } else { units as u16 } }
    }

    /// The word, which is not zero.
    #[inline]
    pub fn word(self) -> u64 {
        u64::from(self.units) << OFFSET_BITS | (self.offset.0 + 1)
    }

    /// Takes a [`word`](SizedOffset::word) apart. Its upper two bits are ignored.
    #[inline]
    pub fn from_word(word: u64) -> SizedOffset {
        let units = (word >> OFFSET_BITS) & MOST_UNITS;
        SizedOffset { offset: Offset((word & ((1 << OFFSET_BITS) - 1)) - 1), units: units as u16 }
    }

    /// Bytes of the record, if the word tells.
    #[inline]
    pub fn told_len(self) -> Option<u64> {
        (self.units != 0).then_some(u64::from(self.units) * UNIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_survives_the_word_if_it_has_room_there() {
        for pages in [1, 6, 9, 32] {
            let bits = PageBits::of(pages);
            let last = SizedOffset::most_blocks(bits) - 1;
            for (block, page, position) in [(0, 0, 1), (last, pages - 1, 65534)] {
                let offset = Offset::new(block, page, position, bits);
                for (len, told) in [(0, None), (24, Some(24)), (65528, Some(65528)), (65536, None)] {
                    let sized = SizedOffset::new(offset, len);
                    let word = sized.word();
                    assert!(word != 0 && word >> SizedOffset::BITS == 0);
                    assert_eq!(SizedOffset::from_word(word | 3 << 62), sized);
                    assert_eq!((sized.offset, sized.told_len()), (offset, told));
                }
            }
        }
        // A raw offset's word in the index is the same.
        assert_eq!(SizedOffset::new(Offset(77), 0).word(), 78);
    }

    #[test]
    fn a_place_survives_the_word_and_the_word_keeps_the_order() {
        for (pages, block_bits) in [(1, 45), (6, 45), (8, 45), (9, 44), (32, 43)] {
            let (bits, mut last) = (PageBits::of(pages), None);
            for block in [0, 1, 77, (1 << 40) - 1, (1 << block_bits) - 1] {
                for page in [0, pages - 1] {
                    for position in [0, 1, 65535] {
                        let offset = Offset::new(block, page, position, bits);
                        assert_eq!(
                            (offset.block(bits), offset.page(bits), offset.position()),
                            (block, page, position)
                        );
                        assert_eq!(Offset::from_word(offset.word()), offset);
                        let block_order = (block, page, position);
                        assert!(
                            last.is_none_or(|(places, last)| (block_order <= places) == (offset <= last))
                        );
                        last = Some((block_order, offset));
                    }
                }
            }
        }
        let bits = PageBits::of(6);
        assert_eq!(Offset::new(0, 0, 1, bits).word(), 1);
        assert_eq!(Offset::new(0, 1, 0, bits).word(), 1 << 16);
        assert_eq!(Offset::new(1, 0, 0, bits).word(), 1 << 19);
    }
}
