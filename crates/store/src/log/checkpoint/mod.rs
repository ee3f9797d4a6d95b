//! The checkpoint: the findings of a recovery by scan, written down when a pool is closed, so that the next
//! open reads a few per cent of the pool instead of all of it.
//!
//! It holds an image of the index and the state of every segment, and lies in zones that are free and stay
//! free. Nothing keeps it from being overwritten: it counts only while the superblock says that the pool was
//! closed, and the first change of a run takes that back, durably, before anything else changes.
//!
//! # The order of durability
//!
//! The checkpoint, before the superblock that is marked clean and names it. On a file each is written back to
//! the device before the next, so that a crash of the system cannot reorder them.
//!
//! # The conditions of its use
//!
//! A checkpoint is an offer. It is taken if the superblock names it in the run that left it, all its checks
//! hold, its segments are exactly the committed zones, each with a header and an end mark of the life that it
//! tells, and every reference leads into one of them. Otherwise the segments are scanned as after
//! a crash, and nothing is lost but time. A checkpoint that is believed spares the proof of every
//! record: damage in records is then found by a check, by compaction, or with
//! [`Options::verify`](crate::Options::verify).
//!
//! None is written if a segment or a record proved to be damaged during the run (so that the next open looks
//! at everything), if there are not enough free zones, or if it would be longer than what it spares reading.

mod chain;
mod layout;
mod load;
mod save;

pub use layout::checkpoint_tables;
pub(crate) use load::{Loaded, load};
pub(crate) use save::save;
