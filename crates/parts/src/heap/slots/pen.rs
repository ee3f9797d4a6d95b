//! The page that an owner is filling, written a whole cache line at a time.
//!
//! A store to a line that is not in the cache waits until the line has been read, and its flush takes another
//! way to the medium. A line that is written whole by non-temporal stores does neither: so records, and the
//! bits that make them count, are written with the rest of their lines. The owner knows that rest, because it
//! wrote it; it is kept in DRAM, and holds as long as the version of the page says that nobody else has
//! changed the page.

use super::geometry::{FreeSlot, SEQUENCE, SlotShape};
use super::locks::PageGuard;
use super::place::Record;
use quipu_medium::{LINE, Region};

/// A cache line.
pub(super) type Line = [u8; LINE as usize];

/// The first byte of the line that holds `offset`.
#[inline]
pub(super) fn line_of(offset: u64) -> u64 {
    offset & !(LINE - 1)
}

/// An owner's knowledge of the page that it fills, and a buffer for its writes.
#[derive(Debug)]
pub(super) struct Pen {
    /// Where the page is, and the version for which the rest is true.
    page: Option<(u64, u32)>,
    /// The first line of the page: its header, the bits of its first slots, and perhaps a part of one.
    first: Line,
    /// The line in which the last record ends, and where that is.
    last: Line,
    last_at: u64,
    /// The next free slot of the page, if that was seen when the last one was filled.
    pub(super) next: Option<FreeSlot>,
    /// The bytes to be written.
    pub(super) buffer: Vec<u8>,
}

impl Default for Pen {
    fn default() -> Pen {
        let nothing = [0; LINE as usize];
        Pen { page: None, first: nothing, last: nothing, last_at: 0, next: None, buffer: Vec::new() }
    }
}

impl Pen {
    /// Makes sure that the first line is known of a page that is held.
    #[inline]
    pub(super) fn turn_to(&mut self, region: &Region, guard: &PageGuard<'_>) {
        if self.page != Some((guard.page.at, guard.version_before())) {
            self.look(region, guard.page.at);
        }
    }

    /// Looks at the first line, since something was written past the pen.
    pub(super) fn look(&mut self, region: &Region, page_at: u64) {
        region.read_racing(page_at, &mut self.first);
        (self.last_at, self.next) = (0, None);
    }

    /// Remembers that nobody else has changed the page since, when it is released.
    #[inline]
    pub(super) fn leave(&mut self, guard: &PageGuard<'_>) {
        self.page = Some((guard.page.at, guard.version_behind()));
    }

    /// The bits of some slots, if they stand in the first line: a word of it, by its place in the page.
    #[inline]
    pub(super) fn bits(&self, at: u64) -> Option<u64> {
        let word = self.first.as_chunks::<8>().0.get(at as usize / 8)?;
        Some(u64::from_le_bytes(*word))
    }

    /// Writes a record to a slot behind which nothing counts up to the end of its last line. Durable after
    /// the next fence.
    #[inline]
    pub(super) fn write(
        &mut self,
        region: &Region,
        page_at: u64,
        slot_at: u64,
        shape: &SlotShape,
        record: Record<'_>,
    ) {
        let at = page_at + slot_at;
        let begin = line_of(at);
        let known = (at - begin) as usize;
        self.buffer.resize((known + shape.size as usize).next_multiple_of(LINE as usize), 0);
        let (before, rest) = self.buffer.split_at_mut(known);
        match begin {
            _ if begin == page_at => before.copy_from_slice(&self.first[..known]),
            _ if begin == self.last_at => before.copy_from_slice(&self.last[..known]),
            _ => region.read_racing(begin, before),
        }
        let Record { key, value, sequence } = record;
        let (at_key, rest) = rest.split_at_mut(key.len());
        let (at_value, rest) = rest.split_at_mut(value.len());
        let (gap, rest) = rest.split_at_mut(shape.sequence_at as usize - key.len() - value.len());
        let (at_sequence, behind) = rest.split_at_mut(SEQUENCE as usize);
        at_key.copy_from_slice(key);
        at_value.copy_from_slice(value);
        gap.fill(0);
        at_sequence.copy_from_slice(&sequence.to_le_bytes());
        behind.fill(0);
        region.write_lines_nt(begin, &self.buffer, known);
        let (lines, _) = self.buffer.as_chunks::<{ LINE as usize }>();
        if let [first, .., last] | [first @ last] = lines {
            if begin == page_at {
                self.first = *first;
            }
            (self.last, self.last_at) = (*last, begin + self.buffer.len() as u64 - LINE);
        }
    }

    /// Gives a word of the first line another value, atomically. Durable after the next fence.
    #[inline]
    pub(super) fn set_word(&mut self, region: &Region, page_at: u64, at: u64, value: u64) {
        let word = at as usize;
        self.first[word..word + 8].copy_from_slice(&value.to_le_bytes());
        region.store_line_nt(page_at, &self.first, word / 8);
    }
}

/// Gives a word of a page that the caller holds another value, atomically. Durable after the next fence.
#[inline]
pub(super) fn set_word(region: &Region, at: u64, value: u64) {
    let begin = line_of(at);
    let mut line = [0; LINE as usize];
    region.read_racing(begin, &mut line);
    let word = (at - begin) as usize;
    line[word..word + 8].copy_from_slice(&value.to_le_bytes());
    region.store_line_nt(begin, &line, word / 8);
}
