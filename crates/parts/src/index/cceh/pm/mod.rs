//! Segments in persistent memory, in zones of the pool.
//!
//! Zones and not an object pool, because an object pool is laid out when the pool is created and an index grows. A zone
//! is carved into segments of equal size, and begins with a table of their names:
//!
//! ```text
//! zone         0    check 8        keyed hash over the following 24 bytes and the place
//!              8    magic 4        "QCEH"
//!              12   zone 4         number of this zone
//!              16   nonce 8        drawn for the index, so that no zone of an earlier one is believed
//!              24   number 4       place in the chain of the index's zones, from 0
//!              28   bucket_bits 1 · probe 1 · reserved 2
//!              32   next 8         zone number of the next one plus one, or 0
//!              40   reserved 24
//!              64   names, 8 bytes a segment, up to the next multiple of 256
//!              then segments
//! name         bits 24..=63        the lowest hash that leads to the segment; its other bits are zero
//!              bits 8..=23         keyed hash over the other bits and the place
//!              bits 0..=5          bits that all its hashes share, plus one; the word is 0 while the segment is free
//! segment      buckets of 64 bytes, each 4 entries
//! entry        0    hash 8         bit 0 is the persist mark, the others are those of the hash; of an entry that was
//!                                  never used, the mark alone
//!              8    value 8        the reference, or 0
//! root         0    zone 4 · reserved 4
//!              8    nonce 8        16 bytes that the caller keeps, in the superblock's settings for example
//! ```
//!
//! All integers are little-endian.
//!
//! # The directory
//!
//! A directory says which segment the hashes with certain leading bits belong to; the names say the same, turned round.
//! So the names *are* the directory in PM, one word a segment, and the one that lookups use is made of them at open, in DRAM.
//! The published algorithm reads as much then: its recovery visits the local depth of every segment. In
//! exchange a split changes one word in PM and not a share of the directory, and doubling changes nothing there at all, so
//! that there is nothing to recover from.
//!
//! # What makes it durable, step by step
//!
//! - *Adding a key*: the hash without its mark, then the value, in one line and hence in this order; flush, fence; then the
//!   mark. An entry takes effect with its value word, and no value ever stands beside a hash that is not its own.
//! - *Changing or removing*: the hash without its mark, the value, flush, fence, the mark.
//! - *Reading*: hash, value, hash. If the second hash has its mark, the value is durable, for the mark was away while the
//!   value was not. If not, the reader flushes and fences before it answers, yes or no. The mark itself
//!   is never flushed; one that is lost is given back by the first reader that finds no writer about. While a writer
//!   holds the lock nobody else touches marks: one given by a reader could vouch for a later value.
//! - *Changing many*: of each, the hash without its mark and the value; later the flushes, one fence, the marks
//!   ([`persist_all`](super::CcehIndex::persist_all)).
//! - *Splitting*: the sibling with its name, fence. As long as the name of the old segment covers that of the sibling,
//!   the sibling does not count. Then the old one's name, which is one word: the split has happened. Only
//!   then do hashes lead to the sibling, and may what is left of them in the old segment be overwritten.
//! - *A further zone*: its header with empty names, and the link of the last zone to it, fence; the commit. A link to a zone
//!   that is not committed is taken back by the next open. So no zone is committed without being linked, and none leaks.
//! - *Creating*: the first zone with all names and segments, fence; the caller makes the root durable; the commit. A root
//!   whose zone is not committed names no index.
//!
//! # Recovery
//!
//! Opening reads the headers and names, not the segments: it makes them durable first, since a crash of the process alone
//! leaves them in caches; frees segments whose names others cover; and refuses a pool whose names leave a gap.
//! Nobody may take zones of the pool before, since a link may still name one that is free.

mod layout;
mod nodes;
mod open;

pub use layout::{CcehRoot, format_tables};
pub use nodes::PmNodes;
