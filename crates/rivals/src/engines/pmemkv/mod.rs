//! pmemkv: Intel's key-value store for persistent memory, with its concurrent hash map `cmap`.
//!
//! The nearest to Quipu of all, and no longer maintained. A put is a transaction of libpmemobj: undo log,
//! copy of the value, and the map's own word, each persisted before the next. Files that libpmem takes for
//! persistent memory it persists by flushes and fences, and any other file by `msync`, which waits for the
//! disk. With `PMEM_IS_PMEM_FORCE=1` it takes every file for persistent memory: then a crash of the process
//! alone is survived, as with Quipu's `process`. It reads the variable once, when it is loaded, so a process
//! can measure it at one level only (`environment`).
//!
//! The library is the system's and is loaded when the engine is created, as RocksDB is.
//!
//! - `environment`: what the libraries are told in the environment, for each level.
//! - `functions`: the functions that are used.
//! - `database`: the one place that calls them, with a safe skin.
//! - `engine`: what the runner sees.

mod database;
mod engine;
pub mod environment;
mod functions;

pub use database::present;
pub use engine::Pmemkv;
