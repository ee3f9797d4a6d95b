//! Words of a file's header that prove themselves: a number of 32 bits and half of a check of it.

use crate::record::{Certifier, LifeKey};

/// The meaning of a number; part of its check.
#[derive(Clone, Copy)]
pub(super) enum Mark {
    /// The cluster of the file.
    Cluster = 1,
    /// Its high water, in units of 8 bytes.
    HighWater = 2,
}

/// The word for a number.
pub(super) fn mark(certifier: &Certifier, life: LifeKey, what: Mark, number: u32) -> u64 {
    // No end mark has these bits: ends are below 2^35.
    let proof = certifier.check_word(life, (what as u64) << 56 | u64::from(number));
    u64::from(number) | u64::from(proof) << 32
}

/// The number of a word, if it proves itself.
pub(super) fn read(certifier: &Certifier, life: LifeKey, what: Mark, word: u64) -> Option<u32> {
    let number = word as u32;
    (mark(certifier, life, what, number) == word).then_some(number)
}
