//! RocksDB: the LSM tree that others are measured against, through its C interface.
//!
//! A put goes to the write-ahead log and to a memtable; concurrent puts are grouped, and threads of its own
//! flush and merge. The library is the system's and is loaded when the engine is created, so that nothing
//! else needs it.
//!
//! - `functions`: those that are used, found by name.
//! - `database`: the one place that calls them, with a safe skin.
//! - `engine`: what the runner sees.

mod database;
mod engine;
mod functions;

pub use database::present;
pub use engine::RocksDb;
