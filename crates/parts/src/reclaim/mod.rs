//! Deciding what compaction takes next: pure functions over what the heap counts. Carrying it out needs the index and the
//! locks of keys, and is the store's.

mod choose;

pub use choose::{Terms, choose};
