//! Where everything lies: pure arithmetic over the settings and the size of a zone.

use super::error::SlotError;
use super::format::{ENTRY_HEAD, HEADER_LEN, LOG_START, OVERFLOW_HEAD};
use super::offset::PageBits;
use super::settings::{PAGE_UNIT, RecordForm, SlotSettings};

/// Bytes of a sequence number.
pub(super) const SEQUENCE: u64 = 8;

/// A page of slots, measured (section 3.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotShape {
    /// Bytes of a key.
    pub key: u64,
    /// Bytes of a value, which follows the key.
    pub value: u64,
    /// Where the sequence number stands in a slot.
    pub sequence_at: u64,
    /// Bytes of a slot.
    pub size: u64,
    /// Slots of a page.
    pub count: u32,
    /// Words of the bitset, behind the page's header word.
    pub bitset_words: u32,
    /// Where the first slot stands in a page.
    pub first: u64,
}

/// A slot without a record, and the word of the bitset that has its bit.
#[derive(Clone, Copy, Debug)]
pub(super) struct FreeSlot {
    pub(super) slot: u32,
    pub(super) bits: u64,
}

impl SlotShape {
    /// The shape of a page of `page_size` bytes: as many slots as fit, and one less if the bitset then does
    /// not. Slots and bitset take whole words, so that a slot never shares one with the bitset. Slots end
    /// with the page, so that one of 64 bytes is a line.
    pub fn new(page_size: u64, key: u64, value: u64) -> SlotShape {
        let sequence_at = (key + value).next_multiple_of(8);
        let size = sequence_at + SEQUENCE;
        let first_for = |count: u64| LOG_START + count.div_ceil(64) * 8;
        let mut count = page_size / size;
        while count > 0 && first_for(count) + count * size > page_size {
            count -= 1;
        }
        let bitset_words = count.div_ceil(64) as u32;
        SlotShape {
            key,
            value,
            sequence_at,
            size,
            count: count as u32,
            bitset_words,
            first: page_size - count * size,
        }
    }

    /// Where the bitset word of a slot stands in its page, and the slot's bit there.
    #[inline]
    pub fn bit(&self, slot: u32) -> (u64, u64) {
        (LOG_START + u64::from(slot / 64) * 8, 1 << (slot % 64))
    }

    /// Where a slot stands in its page.
    #[inline]
    pub fn slot(&self, slot: u32) -> u64 {
        self.first + u64::from(slot) * self.size
    }

    /// The first slot of a word of the bitset that is free, if these are its bits.
    #[inline]
    pub(super) fn first_free(&self, word: u32, bits: u64) -> Option<FreeSlot> {
        let free = (!bits & self.valid_bits(word)).trailing_zeros();
        (free < 64).then_some(FreeSlot { slot: word * 64 + free, bits })
    }

    /// Bits of a word of the bitset that stand for slots.
    pub(super) fn valid_bits(&self, word: u32) -> u64 {
        match self.count - word * 64 {
            64.. => u64::MAX,
            left => (1 << left) - 1,
        }
    }
}

/// Blocks of a chunk are fewer. A block's number has 45 bits, also where it is damaged.
const MOST_BLOCKS: u64 = 1 << 19;

/// Division by a multiplication: exact where the number times the divisor is at most 2^64.
#[derive(Clone, Copy, Debug)]
struct Divisor {
    /// 2^64 by the divisor, rounded up; zero stands for 2^64. So a product is too large by less than the
    /// number. The next quotient begins 2^64 by the divisor further on, which is more.
    inverse: u64,
}

impl Divisor {
    fn new(divisor: u64) -> Divisor {
        Divisor { inverse: (u64::MAX / divisor).wrapping_add(1) }
    }

    #[inline(always)]
    fn divide(self, number: u64) -> u64 {
        match self.inverse {
            0 => number,
            inverse => ((u128::from(number) * u128::from(inverse)) >> 64) as u64,
        }
    }
}

/// The lengths and places that follow from the settings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    pub(super) page_size: u64,
    pub(super) pages: u32,
    pub(super) page_bits: PageBits,
    pub(super) block_size: u64,
    pub(super) blocks_per_chunk: u64,
    by_chunks: Divisor,
    /// Slots, or `None` for logs.
    pub(super) shape: Option<SlotShape>,
    /// Blocks start at a multiple of this, but for the shift.
    alignment: u64,
    shift: u64,
}

impl Geometry {
    pub(super) fn new(settings: &SlotSettings, zone_size: u64) -> Result<Geometry, SlotError> {
        settings.check()?;
        let page_size = u64::from(settings.page_size);
        let pages = u32::from(settings.pages_per_block);
        let shift = u64::from(settings.alignment_shift);
        let block_size = page_size * u64::from(pages);
        let set = PAGE_UNIT * u64::from(pages);
        // Behind its header a chunk skips to the alignment, which takes no more than this much of it.
        let blocks = |alignment: u64| zone_size.saturating_sub(alignment + shift) / block_size;
        let alignment = if blocks(set) > 0 { set } else { PAGE_UNIT };
        let shape = match settings.form {
            RecordForm::Fixed { key, value } => {
                Some(SlotShape::new(page_size, u64::from(key), u64::from(value)))
            }
            RecordForm::Variable => None,
        };
        if blocks(alignment) == 0 {
            return Err(SlotError::Settings {
                reason: "no block fits into a zone; make pages or blocks smaller",
            });
        }
        if shape.is_some_and(|shape| shape.count == 0) {
            return Err(SlotError::Settings { reason: "no slot fits into a page; make pages larger" });
        }
        let blocks_per_chunk = blocks(alignment);
        if blocks_per_chunk >= MOST_BLOCKS {
            return Err(SlotError::Settings { reason: "a zone has too many blocks; make blocks larger" });
        }
        let (page_bits, by_chunks) = (PageBits::of(pages), Divisor::new(blocks_per_chunk));
        Ok(Geometry {
            page_size,
            pages,
            page_bits,
            block_size,
            blocks_per_chunk,
            by_chunks,
            shape,
            alignment,
            shift,
        })
    }

    /// The chunk of a block, and its number there.
    #[inline(always)]
    pub(super) fn chunk_of(&self, block: u64) -> (u64, u64) {
        let chunk = self.by_chunks.divide(block);
        (chunk, block - chunk * self.blocks_per_chunk)
    }

    /// First byte of the first block of the chunk in this zone.
    pub(super) fn first_block(&self, zone_offset: u64) -> u64 {
        (zone_offset + HEADER_LEN).next_multiple_of(self.alignment) + self.shift
    }

    /// Bytes of a page that serve records; of a whole block, if it is one page.
    #[inline]
    pub(super) fn log_len(&self, large: bool) -> u64 {
        if large { self.block_size } else { self.page_size }
    }

    /// Whether an entry of `len` bytes fits an empty page, or an empty block.
    pub(super) fn fits(&self, large: bool, len: u64) -> bool {
        LOG_START + len <= self.log_len(large)
    }

    /// Bytes of a value that a block of overflow holds.
    pub(super) fn overflow_capacity(&self) -> u64 {
        self.block_size - OVERFLOW_HEAD
    }

    /// Bytes of records that a block holds at most, for the share of it that is free.
    pub(super) fn capacity(&self) -> u64 {
        let per_page = match self.shape {
            Some(shape) => u64::from(shape.count) * shape.size,
            None => self.page_size - LOG_START,
        };
        per_page * u64::from(self.pages)
    }
}

/// Bytes of an entry of a log.
#[inline]
pub(super) fn entry_len(key: u64, body: u64) -> u64 {
    (ENTRY_HEAD + key + body).next_multiple_of(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's formulas: a lock byte, a bit for each slot, and one slot less if they do not fit.
    fn slots_of_the_paper(page: u64, record: u64) -> u64 {
        let slots = page / record;
        let metadata = 1 + slots.div_ceil(8);
        if slots * record + metadata > page { slots - 1 } else { slots }
    }

    #[test]
    fn a_page_holds_as_many_slots_as_in_the_paper_but_for_whole_words() {
        let shape = SlotShape::new(4096, 16, 200);
        assert_eq!((shape.size, shape.count, shape.first), (224, 18, 64));
        assert_eq!(u64::from(shape.count), slots_of_the_paper(4096, 224));
        assert_eq!(
            slots_of_the_paper(4096, 216),
            18,
            "the sequence number costs no slot at the paper's sizes"
        );
        for page in [4096, 8192, 24 << 10] {
            for (key, value) in [(8, 8), (16, 100), (32, 500), (100, 900), (1, 0), (7, 13), (16, 200)] {
                let shape = SlotShape::new(page, key, value);
                let paper = slots_of_the_paper(page, shape.size);
                let count = u64::from(shape.count);
                let fits = paper * shape.size + 1 + paper.div_ceil(8) <= page;
                // Where slots are small, one less does not make room for the bitset; the paper's formula is
                // off there.
                let is_close = count == paper || count + 1 == paper;
                assert!(is_close || !fits, "{key}+{value} in {page}: {count} of {paper}");
                assert!(shape.slot(shape.count - 1) + shape.size <= page);
                let (word, bit) = shape.bit(shape.count - 1);
                assert!(word + 8 <= shape.first && shape.valid_bits(shape.bitset_words - 1) & bit != 0);
            }
        }
        assert_eq!(SlotShape::new(4096, 100, 5000).count, 0);
    }

    #[test]
    fn a_zone_of_too_many_blocks_is_refused() {
        let geometry = |gibibytes: u64| Geometry::new(&SlotSettings::default(), gibibytes << 30);
        assert!(geometry(12).is_ok_and(|geometry| geometry.blocks_per_chunk < MOST_BLOCKS));
        assert!(matches!(geometry(13), Err(SlotError::Settings { .. })));
    }

    #[test]
    fn blocks_are_divided_by_a_multiplication() {
        let divisors = (1..=1000).chain([4095, 4096, MOST_BLOCKS - 1]);
        let largest = (1u64 << 45) - 1;
        for divisor in divisors {
            let by = Divisor::new(divisor);
            let multiples = [1, 2, 3, 1000, largest / divisor].map(|times| times * divisor);
            let near = multiples.into_iter().flat_map(|number| [number - 1, number, number + 1]);
            for number in near.chain([0, largest]).filter(|number| *number <= largest) {
                assert_eq!(by.divide(number), number / divisor, "{number} / {divisor}");
            }
        }
    }

    #[test]
    fn blocks_lie_on_the_interleave_as_far_as_the_zone_allows() {
        for zone_shift in 14..=22 {
            for pages in 1..=8 {
                for alignment_shift in [0, 2048] {
                    let settings =
                        SlotSettings { pages_per_block: pages, alignment_shift, ..SlotSettings::default() };
                    let zone = 1u64 << zone_shift;
                    let Ok(geometry) = Geometry::new(&settings, zone) else {
                        assert!(zone < 4096 + 2048 + u64::from(pages) * 4096, "{zone} {pages}");
                        continue;
                    };
                    for start in (0..40).map(|zones| 8192 + zones * zone) {
                        let first = geometry.first_block(start);
                        let end = first + geometry.blocks_per_chunk * geometry.block_size;
                        assert!(first >= start + HEADER_LEN && end <= start + zone);
                        assert_eq!(first % 4096, u64::from(alignment_shift));
                        if zone >= 2 * geometry.block_size + 4096 {
                            assert_eq!(first % geometry.block_size, u64::from(alignment_shift));
                        }
                    }
                }
            }
        }
    }
}
