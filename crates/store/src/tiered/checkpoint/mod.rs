//! The checkpoint of a store of memtables: an image of the index of each table, and the counts of each zone.
//!
//! It is believed only if the superblock names it in the run that left it, and all its checks hold. The
//! memtables of the pool must have ended and have exactly its zones, and every word of a table must lead into
//! a memtable of that table. Otherwise the pool is opened as after a crash; only time is lost. A believed
//! checkpoint spares the proof of the chunks: then a check, a rewrite, or
//! [`Options::verify`](crate::Options::verify) finds damage in them.
//!
//! None is written if a snapshot still needs keys that a range delete took, if too few zones are free, or if
//! it would be longer than the bytes that it spares reading.

mod layout;
mod load;
mod save;

pub use layout::checkpoint_tables;
pub(super) use load::{Loaded, load};
pub(super) use save::save;
