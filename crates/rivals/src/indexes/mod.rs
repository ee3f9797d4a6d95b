//! Other indexes in DRAM, beside those of this house on the same keys (`quipu-lab bench index`).
//!
//! Each keeps keys of eight bytes with words, in order. Their bytes for a key are those that the program's
//! counting allocator has seen, as are ours.

mod btree;
mod choice;
mod congee;

pub use btree::BTree;
pub use choice::IndexChoice;
pub use congee::Art;

/// The number that a key of eight bytes is.
#[inline(always)]
fn number(key: &[u8]) -> u64 {
    u64::from_be_bytes(key.try_into().expect("keys of sets of numbers have eight bytes"))
}
