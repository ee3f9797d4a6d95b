//! CCEH, cacheline-conscious extendible hashing (Nam et al., FAST'19), in DRAM or in PM: the Offset Map of Viper
//! (sections 3.1 and 3.2.1) and the index of FlatStore-H and FlatStore-PH.
//!
//! A hash table in PM must not write much, and must be sound at every instant. So a bucket is a cache line, which is
//! the unit of flushing; an entry that finds no place in its line goes to one of the next few; and when these are
//! full, one segment of the table splits while all others stay as they are, and nothing in it is moved that can stay.
//!
//! ```text
//! hash     | directory: top bits ... |                   ... | bucket: low bits | mark |
//! entry    | hash 64 | value 64 |                            a value of 0 is an empty entry
//! bucket   | entry 0 | entry 1 | entry 2 | entry 3 |         one cache line
//! segment  | bucket 0 | bucket 1 | ... |                     unit of locking, splitting and allocation
//! ```
//!
//! An entry holds the whole hash, so a split reads nothing but the segment, and a lookup compares keys (which are in the
//! records, whose references the values are) hardly ever in vain. Values are opaque words other than zero. For a store over logs, two
//! bits of them are the index's, and keys of eight bytes are compared with nothing but the hash (`offer.rs`).
//!
//! # One algorithm, two memories
//!
//! The code is generic over [`NodeMemory`]: [`DramNodes`], where nothing has to be made durable and the mark is a
//! constant zero that compiles away, and [`PmNodes`]; [`pm`] has the layout and the argument for durability.
//! Directory and locks are in DRAM with both.
//!
//! # Readers and writers
//!
//! Writers lock the segment, in a striped table of locks. They must not work on one key at the same time (the store
//! holds the key's lock). Readers lock nothing:
//! - An entry never moves within its segment, and takes effect with its value word: no value ever stands beside a hash
//!   that is not its own, except for a reader that is overtaken, whose comparison of keys says no. (Where places are used again
//!   before every reader has left, a comparison that says no may come too late; there it is made under the lock.)
//! - A split copies what moves and lets it stand. Entries whose leading bits say that they belong elsewhere are free to
//!   writers. A reader that came by the directory as it was before finds them as they were at the moment of the
//!   split, which is after it began; so what it answers was true meanwhile.
//! - What a split left behind is overwritten only after the directory has changed. So a reader that finds nothing looks at
//!   the directory again: the entry tells place and depth, and if it is the same, no split has happened. The directory
//!   entry is the version of the segment.
//!
//! # Deviations
//!
//! - An entry's value word, not its key word, makes it valid: hash first, then value. The paper's order needs a key that
//!   cannot occur, and two different words for adding and removing.
//! - Locks are not in the segment: a lock in PM is written for nothing and may be found locked after a crash.
//! - In PM the directory is kept as one name a segment, and its doubling writes nothing; see [`pm`].
//! - A segment that is already much deeper than the others refuses a key ([`CcehError::Crowded`]) instead of doubling the
//!   directory again and again for keys whose hashes agree. With a keyed hash that does not happen.

mod audit;
mod dram;
mod entry;
mod iterate;
mod locks;
mod memory;
mod offer;
pub mod pm;
mod segment;
mod settings;
mod split;
mod table;
mod unflushed;
mod write;

pub use crate::index::Cursor;
pub use dram::DramNodes;
pub use entry::Name;
pub use memory::NodeMemory;
pub use pm::{CcehRoot, PmNodes, format_tables};
pub use settings::{CcehError, CcehSettings, CcehStats};
pub use table::CcehIndex;
pub use unflushed::Unflushed;
pub use write::{LockedSegment, Sighting};
