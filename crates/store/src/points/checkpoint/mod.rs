//! The checkpoint: the findings of a recovery by scan, written down when a pool is closed, so that the next
//! open reads a few per cent of the pool instead of all of it.
//!
//! It holds an image of the index and the state of every segment.
//! [`walk::checkpoint`](crate::walk::checkpoint) says where it lies, and when it is durable.
//!
//! # The conditions of its use
//!
//! A checkpoint is believed if the superblock names it in the run that left it, and all its checks hold. Its
//! segments must be exactly the committed zones, each with the header and end mark of its recorded life, and
//! every reference must lead into one of them. Otherwise the segments are scanned as after a crash; only time
//! is lost. A believed checkpoint spares the proof of every record. A check, compaction, or
//! [`Options::verify`](crate::Options::verify) then finds damage in records.
//!
//! None is written after a segment or a record proved to be damaged, so that the next open reads everything.
//! None is written without enough free zones, or if it would be longer than the bytes that it spares reading.

mod layout;
mod load;
mod save;

pub use layout::checkpoint_tables;
pub(crate) use load::{Loaded, index_of_close, load};
pub(crate) use save::save;
