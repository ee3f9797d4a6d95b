//! Benchmarks that check what they read and name the limit they are measured against.
//!
//! - [`ops`]: insert, get, get_many, scan, update and delete, each alone, over uniformly chosen records.
//! - [`ycsb`]: a YCSB workload, loaded and run.
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
//! - [`Roofline`]: what the same medium gives to code that does nothing but the accesses themselves.
//!
//! Each takes a [`Config`] and hands [`Row`]s to the caller; nothing here prints. On the simulated medium
//! rows hold what an operation costs in place of how long it takes. All access to the store goes through
//! [`Engine`] and its companions, so that another engine can stand in its place: [`ops_of`], [`ycsb_of`],
//! [`steady_of`], [`util_of`].
//!
//! How time is taken: all threads begin behind one barrier, and the throughput is that of all operations
//! between the first begin and the last end, so a slow thread is not averaged away. One call in 64 is timed
//! on its own for the latencies, which costs two looks at a clock, of 20 to 30 ns each, one of which is in
//! the latency. Pools are created and touched, clients opened and caches warmed before the clock starts;
//! making keys and values and checking values is inside, because users do both. Where a call is one operation
//! of [`ops`], they are made a block of calls ahead.

mod ahead;
pub mod alloc;
mod allocation;
mod batched;
mod chain;
mod cleaning;
mod config;
mod cost;
mod disk;
mod drive;
mod engine;
mod error;
mod index;
mod levels;
mod memory;
mod memtables;
mod ops;
mod own_work;
pub mod paper;
mod patterns;
mod plot;
mod progress;
mod reclaim;
mod recovery;
mod report;
mod ring;
mod roofline;
mod scan;
mod session;
mod stalls;
mod steady;
mod steps;
mod table;
mod target;
mod timeline;
mod util;
mod ycsb;

pub use allocation::allocation;
pub use cleaning::cleaning;
pub use config::Config;
pub use engine::{Engine, EngineClient, OpenEngine};
pub use error::{BenchError, Fault};
pub use index::{
    Access, Contender, HouseIndex, IndexKind, IndexLoad, IndexOrder, IndexRun, NoBulk, SCANNED, index_table,
    indexes,
};
pub use levels::levels;
pub use memtables::{Order, memtables};
pub use ops::{OpsPhase, ops, ops_of};
pub use patterns::{Pattern, patterns};
pub use plot::plot;
pub use progress::{Progress, Silent};
pub use quipu_parts::commit::ring::Grants;
pub use reclaim::reclaim;
pub use recovery::recovery;
pub use report::{Compaction, EachKind, InPaper, Mixed, Row, Sink, Steadiness, Steady, Utilized};
pub use ring::{Items, ring};
pub use roofline::{Limits, Roof, Roofline};
pub use stalls::Stalls;
pub use steady::{SteadyLoad, steady, steady_of};
pub use steps::steps;
pub use table::table;
pub use util::{Keys, Overwrites, recovery_of_overwritten, util, util_of};
pub use ycsb::{ycsb, ycsb_of};
