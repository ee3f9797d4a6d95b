//! The bucket hash index of MPKV, in PM (Wang, Zhu and Shu, "A Multicore-Friendly Persistent Memory Key-Value Store", sections 2, 3.1
//! and 3.2).
//!
//! Threads that share an index in PM get into each other's way by their locks: these are stores to PM, to lines that readers need. So
//! readers lock nothing, writers lock in DRAM, and all that is to be said of a key is one word that changes at once.

mod audit;
mod iterate;
mod layout;
mod lock;
mod numbers;
mod offer;
mod open;
mod settings;
mod slot;
mod split;
mod table;
mod unflushed;
mod write;
mod zones;

pub use audit::BucketAudit;
pub use iterate::BucketCursor;
pub use layout::{BucketRoot, format_tables};
pub use lock::{BucketLocks, Locking, TableLocks};
pub use settings::{BucketError, BucketSettings, BucketStats};
pub use table::BucketIndex;
pub use unflushed::Unflushed;
