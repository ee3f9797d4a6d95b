//! Looking at a whole line at once: the unit in which structures in PM are laid out, for one test of its
//! bounds.

use crate::arch::LINE;
use crate::region::{Region, WORD};
use std::sync::atomic::{AtomicU64, Ordering};

/// Words of a line.
const WORDS: usize = (LINE / WORD) as usize;

impl Region {
    /// Lines that a range touches.
    #[inline]
    pub fn lines(offset: u64, len: u64) -> u64 {
        if len == 0 { 0 } else { (offset + len - 1) / LINE - offset / LINE + 1 }
    }

    /// Loads the words of a line, each atomically (acquire), in their order.
    ///
    /// # Panics
    /// If `offset` is no multiple of a line, or the line is not in the region.
    #[inline]
    pub fn load_line(&self, offset: u64) -> [u64; WORDS] {
        assert!(offset.is_multiple_of(LINE), "a line begins at a multiple of its bytes");
        // SAFETY: in bounds by the check of `at`; aligned, since mappings start on a page and the offset is a
        // multiple of a line; atomics have the layout of their words, and all bit patterns are valid.
        let line = unsafe { &*self.at(offset, LINE).cast::<[AtomicU64; WORDS]>() };
        self.note_read(offset, LINE);
        line.each_ref().map(|word| u64::from_le(word.load(Ordering::Acquire)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pages;
    use std::panic::AssertUnwindSafe;

    #[test]
    fn a_line_is_its_words() {
        let region = Region::dram(4096, Pages::Ordinary).expect("memory");
        (0..WORDS as u64).for_each(|word| region.store(128 + word * WORD, word + 1));
        assert_eq!(region.load_line(128), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(region.load_line(4096 - LINE), [0; WORDS]);
        for wrong in [8, 4096, u64::MAX - 63] {
            assert!(
                std::panic::catch_unwind(AssertUnwindSafe(|| region.load_line(wrong))).is_err(),
                "{wrong}"
            );
        }
    }
}
