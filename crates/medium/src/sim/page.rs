//! The durable image: pages shared between the simulator and its snapshots until one of them writes.
//!
//! A crash explorer takes a snapshot before every operation; nearly all pages of neighbouring ones are equal.
//! Pages are reference-counted, so a snapshot copies pointers, and two images compare page by page by
//! address.

use crate::sim::random::mix;
use std::sync::Arc;

/// Bytes in a page.
pub(crate) const PAGE: u64 = 4096;
/// Words in a page.
pub(crate) const PAGE_WORDS: usize = 512;

/// A page of the durable image, words as they lie in memory.
#[derive(Clone)]
#[repr(align(64))]
pub(crate) struct Page(pub(crate) [u64; PAGE_WORDS]);

/// A durable image and its content hash.
#[derive(Clone)]
pub(crate) struct Pages {
    pub(crate) pages: Vec<Arc<Page>>,
    /// Exclusive-or of [`word_hash`] over all words, so that it follows every change at a constant price, and
    /// equal images have equal hashes however they came about.
    pub(crate) hash: u64,
}

/// The share of a word in the hash of an image; zero words add nothing.
#[inline]
pub(crate) fn word_hash(word: u64, value: u64) -> u64 {
    if value == 0 { 0 } else { mix(mix(word.wrapping_add(0x51_7C_C1_B7_27_22_0A_95)) ^ value) }
}

impl Pages {
    /// An image of zeros; costs one page until it is written.
    pub(crate) fn zero(len: u64) -> Pages {
        let zero = Arc::new(Page([0; PAGE_WORDS]));
        Pages { pages: vec![zero; len.div_ceil(PAGE) as usize], hash: 0 }
    }

    #[inline]
    pub(crate) fn get(&self, word: u64) -> u64 {
        self.pages[word as usize / PAGE_WORDS].0[word as usize % PAGE_WORDS]
    }

    #[inline]
    pub(crate) fn set(&mut self, word: u64, value: u64) {
        let slot =
            &mut Arc::make_mut(&mut self.pages[word as usize / PAGE_WORDS]).0[word as usize % PAGE_WORDS];
        if *slot != value {
            self.hash ^= word_hash(word, *slot) ^ word_hash(word, value);
            *slot = value;
        }
    }
}
