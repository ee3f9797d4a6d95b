//! Deciding what compaction takes next: pure functions over what the heap counts. Carrying it out needs the index and the
//! locks of keys, and is the store's. [`hot`] tells which records to keep apart, so that there is less to copy.

mod choose;
pub mod hot;

pub use choose::{Terms, choose};
