//! Benchmarks of single mechanisms and of what takes long, which check what they read.
//!
//! - [`steady`](steady()): puts and gets for a fixed time, with throughput by the second, and stalls.
//! - [`util`]: overwriting at a given utilization until throughput is steady.
//! - [`recovery`]: reopening without and after a clean close.
//! - [`reclaim`]: reads and writes beside reclamation.
//! - [`cleaning`]: updates beside the store's cleaners, and how long these work on.
//! - [`steps`]: the steps of an operation, each alone.
//! - [`patterns`]: writes by themselves, in several orders.
//! - [`memtables`]: the index of a memtable and its records, without a store.
//! - [`indexes`]: indexes alone, on sets of keys.
//! - [`ring`]: one order over all writes, without an index.
//! - [`levels`]: reads by where a store's data are.
//! - [`allocation`]: the allocator of a pool, without a store.
//! - [`paper`]: the evaluations of papers, made of these.
//!
//! Each takes a [`Config`](quipu_bench::Config) and hands [`Row`](quipu_bench::Row)s to the caller, as the
//! benchmarks of [`quipu_bench`] do, which these are made of; that crate says how time is taken.

mod allocation;
mod chain;
mod cleaning;
mod index;
mod levels;
mod memtables;
pub mod paper;
mod patterns;
mod reclaim;
mod recovery;
mod ring;
mod steady;
mod steps;
mod timeline;
mod util;

pub use allocation::allocation;
pub use cleaning::cleaning;
pub use index::{
    Access, Contender, HouseIndex, IndexKeys, IndexKind, IndexLoad, IndexOrder, IndexRun, NoBulk, SCANNED,
    index_table, indexes,
};
pub use levels::levels;
pub use memtables::{Order, memtables};
pub use patterns::{Pattern, patterns};
pub use quipu_parts::commit::ring::Grants;
pub use reclaim::reclaim;
pub use recovery::recovery;
pub use ring::{Items, ring};
pub use steady::{SteadyLoad, steady, steady_of};
pub use steps::steps;
pub use util::{Keys, Overwrites, recovery_of_overwritten, util, util_of};
