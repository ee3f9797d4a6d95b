//! Deciding which segments compaction cleans next: pure functions over the heap's counters. Carrying it out
//! needs the index and the locks of keys, and is the store's work. [`hot`] tells which records to keep apart,
//! so that less is copied.

mod choose;
pub mod hot;

pub use choose::{Terms, choose};
