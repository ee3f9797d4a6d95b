//! Segments in persistent memory, in zones of the pool. `docs/FORMAT.md` draws them.
//!
//! A directory says which segment the hashes with certain leading bits belong to. The *names* of segments,
//! one word each at the beginning of a zone, say the same, turned round. So the names are the directory in
//! PM, and the open makes from them the directory that lookups use, in DRAM. The published recovery reads as
//! much: it visits the local depth of every segment. In exchange a split changes one word in PM and not a
//! share of the directory, and doubling changes nothing there.
//!
//! # Order of persistence
//!
//! - *Adding a key*: the hash without its mark, then the value, in one line and hence in this order; flush,
//!   fence; then the mark. An entry takes effect with its value word, and no value ever stands beside a hash
//!   that is not its own.
//! - *Changing or removing*: the hash without its mark, the value, flush, fence, the mark.
//! - *Reading*: hash, value, hash. If the second hash has its mark, the value is durable, for the mark was
//!   away while the value was not. If not, the reader flushes and fences before it answers, yes or no. The
//!   mark itself is never flushed; the first reader that finds no writer about gives a lost mark back. While
//!   a writer holds the lock no other thread touches marks: a mark from a reader could vouch for a later
//!   value.
//! - *Changing many*: of each, the hash without its mark and the value; later the flushes, one fence, the
//!   marks.
//! - *Splitting*: the sibling with its name, fence. As long as the name of the old segment covers the
//!   sibling's, the sibling does not count. Then the old one's name, which is one word: the split has
//!   happened. Only then do hashes lead to the sibling, and only then may their old entries be overwritten.
//! - *Zones*: as in `chain`; a further zone has empty names, the first zone all names and segments.
//!
//! Opening reads the headers and names, not the segments: it makes them durable first, since a crash of the
//! process alone leaves them in caches. It frees segments whose names others cover, and refuses a pool whose
//! names leave a gap.

mod layout;
mod nodes;
mod open;

pub use layout::format_tables;
pub use nodes::PmNodes;
