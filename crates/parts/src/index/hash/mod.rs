//! The hash index of design `quipu`: extendible hashing in DRAM with 8-byte slots and lock-free lookups.
//!
//! DRAM per key decides what a store on persistent memory costs, and cache misses decide how fast it reads. So a
//! slot is one word, 16 bits of the hash (the *tag*) and the 48-bit reference; a bucket is a cache line of eight; a
//! key lives in one of two buckets, so that segments fill to more than nine tenths before they split; and a
//! lookup reads one line of the directory (cached, as it is small), two buckets whose misses overlap, and the record.
//!
//! ```text
//! hash     | directory: top bits ... | tag: 16 bits from the segment's base ... |      ... | first bucket: low bits |
//! slot     | tag 16 | reference 48 |                            0 is an empty slot
//! bucket   | slot 0 | slot 1 | ... | slot 7 |                   one cache line
//! segment  | bucket 0 | bucket 1 | ... |                        unit of locking, splitting and allocation
//! ```
//!
//! # What a slot alone tells
//!
//! Growth and displacement must not read records, which lie in slow memory. So everything they need is in the slot:
//! - *Which way does it go in a split?* A split of a segment of depth `d` consumes bit `d` of the hash. The tag is
//!   the window of 16 bits that starts at the segment's *base*, so it holds the bits of the next splits.
//!   When fewer than eight would remain unconsumed (they are what tells keys of a segment apart), the split asks
//!   for the hashes of the segment's records and moves the window to the new depth. These reads are counted.
//! - *Where is its other bucket?* At a distance that is a function of the tag, combined by exclusive or, as in
//!   cuckoo filters (Fan et al., CoNEXT'14): the same step leads back. The tag does not change in a
//!   split, so neither do buckets, and a split copies words without computing places.
//!
//! # Readers and writers
//!
//! Writers take the segment's lock for the few words they change. They must not work on one key at the same time
//! (the store holds the key's lock). Readers take nothing:
//! - A match needs no check but the caller's own comparison of keys. A present key's word may stand in two places
//!   for a moment, never in none, and the reader's guard keeps the record that a word names.
//! - Finding nothing proves nothing by itself, as the word may have moved from the bucket not yet read to the one
//!   already read. So the reader looks again between two reads of the segment's version, which is odd while
//!   words move, and also checks that the directory still names this segment and base.
//!
//! A split fills the sibling while nobody sees it, makes the version odd, publishes the sibling in the
//! directory, clears what moved, and makes the version even. Other segments are not concerned; the directory
//! doubles by publishing a copy. Superseded directories are kept until the index drops: together they are as
//! large as the current one, a thousandth of the segments, and so no reader depends on which collector its guard is of.
//!
//! # Images
//!
//! What a slot tells alone also lets the whole index be saved and loaded as it stands, segment by segment, so that
//! loading is a copy and not an insertion of every key.
//!
//! # When hashes collide
//!
//! Correctness does not depend on the hash. What finds no place in a segment that a split would not help (half
//! empty, or already much deeper than the number of segments explains) goes to the segment's overflow chain, which
//! stores full hashes and is searched by those who found nothing in the buckets. With a keyed hash it stays empty.

mod displace;
mod image;
mod iterate;
mod offer;
mod overflow;
mod probe;
mod segment;
mod settings;
mod slab;
mod slot;
mod split;
mod table;

pub use crate::index::Cursor;
pub use image::{HashImage, ImageShape, Loader, image_tables};
pub use settings::{HashIndexSettings, HashIndexStats};
pub use table::HashIndex;
