//! Deletes for long: deleted keys remain deleted while compaction works.
//!
//! A tombstone is the one record that must outlive others. Dropped too early, a value that was deleted long
//! ago comes back at the next open; dropped too late, a store of deletes fills up with tombstones. Both show
//! only after segments have been cleaned and reused many times, so the crash explorer with its forty
//! operations seldom gets there. Here clients delete and insert again, half and half, over a small key set in
//! a small pool, while compaction is at work. A model in DRAM knows the value of every key. Again and again
//! the pool is closed and opened, or abandoned. Abandoned, the file is copied in the midst of the work, with
//! segments open and a victim half moved, and the copy is recovered. Then the contents must be those of the
//! model and nothing else, and every structure sound. In the end the tombstones must go.
//!
//! - [`explore`]: the run.

mod config;
mod model;
mod run;

pub use config::{SoakConfig, SoakReport};
pub use run::explore;
