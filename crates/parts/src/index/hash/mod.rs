//! The hash index of design `quipu`: extendible hashing in DRAM with 8-byte slots and lock-free lookups.
//!
//! The DRAM of a key decides the cost of a store on persistent memory, and cache misses decide its speed. So
//! a slot is one word: 16 bits of the hash (the *tag*) and the 48-bit reference. A bucket is a cache line of
//! eight slots. A key lives in one of two buckets, so segments fill to more than nine tenths before they
//! split. A lookup reads one line of the directory, two buckets whose misses overlap, and the record.
//!
//! ```text
//! hash     | directory: top bits ... | tag: 16 bits from the segment's base | ... | first bucket: low bits |
//! segment  | bucket of 8 slots | bucket | ... |            unit of locking, splitting and allocation
//! ```
//!
//! # A slot alone decides
//!
//! Growth and displacement must not read records, which lie in slow memory:
//! - *Direction in a split*: a split of a segment of depth `d` consumes bit `d` of the hash. The tag is the
//!   window of 16 bits from the segment's *base* on, so it holds the bits of the next splits. When fewer than
//!   eight unconsumed bits would remain, the split asks for the hashes of the segment's records and moves the
//!   window. These reads are counted.
//! - *The other bucket* is at a distance that the tag gives, combined by exclusive or, as in cuckoo filters
//!   (Fan et al., CoNEXT'14). The tag stays in a split, so the buckets stay, and a split copies words without
//!   computing places.
//!
//! # Readers and writers
//!
//! Writers take the segment's lock; writers of one key exclude each other by the store's lock of the key.
//! Readers lock nothing:
//! - A match needs the caller's comparison of keys alone. The word of a present key may stand in two places
//!   for a moment, never in none, and the reader's guard keeps the record.
//! - A reader that finds nothing looks again between two reads of the segment's version, which is odd while
//!   words move, and proves that the directory still names this segment and base.
//!
//! A split fills the sibling unseen, makes the version odd, publishes the sibling in the directory, clears
//! the words that moved, and makes the version even. The directory doubles by publishing a copy; older copies
//! stay until the index drops.
//!
//! A key that finds no place where a split would not help goes to the segment's overflow chain (`overflow`).
//! With a keyed hash that chain is empty.

mod displace;
mod image;
mod overflow;
mod probe;
mod segment;
mod settings;
mod slab;
mod slot;
mod split;
mod table;

pub use crate::index::Cursor;
pub use image::image_tables;
pub use settings::{HashIndexSettings, HashIndexStats};
pub use table::HashIndex;
