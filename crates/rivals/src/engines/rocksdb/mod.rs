//! RocksDB: the LSM tree that others are measured against, through its C interface.
//!
//! A put goes to the write-ahead log and to a memtable; concurrent puts are grouped, and threads of its own
//! flush and merge. The library is the system's and is loaded when the engine is created, so that nothing
//! else needs it.
//!
//! It has three forms: without transactions, with optimistic ones, and with locking ones.
//!
//! - `functions`: those that are used, found by name.
//! - `form`: how a database of each form is opened and closed, and which functions are its own.
//! - `database`: a safe skin around single operations.
//! - `transactions`: a safe skin around transactions.
//! - `engine`: what the runner sees.

mod database;
mod engine;
mod form;
mod functions;
mod transactions;

pub use database::present;
pub use engine::RocksDb;
