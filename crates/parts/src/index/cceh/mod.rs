//! CCEH, cacheline-conscious extendible hashing (Nam et al., FAST'19), in DRAM or in PM: the Offset Map of
//! Viper (sections 3.1 and 3.2.1) and the index of FlatStore-H and FlatStore-PH.
//!
//! A hash table in PM must not write much, and must be sound at every instant. So a bucket is a cache line,
//! the unit of flushing. An entry that finds no place in its bucket goes to one of the next few. When these
//! are full, one segment splits while all others stay as they are, and no entry that can stay is moved.
//!
//! ```text
//! hash     | directory: top bits ... |                   ... | bucket: low bits | mark |
//! segment  | bucket of 4 entries, hash and value | ... |   unit of locking, splitting and allocation
//! ```
//!
//! An entry holds the whole hash, so a split reads nothing but the segment, and a lookup hardly ever compares
//! keys in vain. For a store over logs, two bits of a value are the index's, and keys of eight bytes need no
//! comparison (`offer`).
//!
//! The code is generic over [`NodeMemory`]: [`DramNodes`], where nothing has to be made durable and the mark
//! is a constant zero, and [`PmNodes`], for which [`pm`] has the argument of durability. Directory and locks
//! are in DRAM with both. `docs/PAPERS.md` lists the deviations from the paper.
//!
//! # Readers and writers
//!
//! Writers lock the segment, in a striped table; writers of one key exclude each other by the store's lock of
//! the key. Readers lock nothing:
//! - An entry never moves within its segment, and takes effect with its value word: no value ever stands
//!   beside a hash that is not its own. A reader that is overtaken may see such a pair, and its comparison of
//!   keys says no. (Where places are used again before every reader has left, that comparison may come too
//!   late; there it is made under the lock.)
//! - A split copies the entries that move and lets the originals stand; entries whose leading bits lead
//!   elsewhere are free to writers. A reader that came by the old directory finds them as they were at the
//!   moment of the split, which is after it began.
//! - Entries that a split left behind are overwritten only after the directory has changed. So a reader that
//!   finds nothing looks at the directory again: the same entry proves that no split has happened.

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
pub use pm::{PmNodes, format_tables};
pub use settings::{CcehSettings, CcehStats};
pub use table::CcehIndex;
pub use unflushed::Unflushed;
pub use write::{LockedSegment, Sighting};
