//! fjall: an LSM tree with a journal, after RocksDB's manner, in Rust.
//!
//! A put goes to the journal under its lock and to a memtable; threads of its own flush and merge.
//!
//! - `plain`: its database without transactions.
//! - `optimistic`: its database whose transactions are checked when they commit.

mod optimistic;
mod plain;

pub use optimistic::FjallOptimistic;
pub use plain::Fjall;
