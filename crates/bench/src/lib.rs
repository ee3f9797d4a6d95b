//! The measurements that every program of Quipu has: basic operations, YCSB and a queue, on any engine and
//! any medium.
//!
//! - [`ops()`]: insert, get, get_many, scan, update and delete, each alone, over uniformly chosen records.
//! - [`ycsb()`]: a YCSB workload, loaded and run.
//! - [`queue()`]: keys are put at the end and taken from the front.
//! - [`transfers()`]: amounts move between accounts, by transactions.
//! - [`workload`]: keys, values that prove themselves, and YCSB's requests.
//! - [`Roofline`]: what the same medium gives to code that does nothing but the accesses themselves.
//! - [`drive`], [`session`], [`target`], [`cost`], [`memory`], [`report`]: what other benchmarks are made of.
//! - [`settings`]: settings of designs, where several designs are at hand.
//! - [`arguments`], [`choice`], [`distinct`], [`size`], [`suggest`]: arguments of command lines.
//!
//! Each benchmark takes a [`Config`] and hands [`Row`]s to the caller; nothing here prints. On the simulated
//! medium rows hold what an operation costs in place of how long it takes. All access to the store goes
//! through [`Engine`] and its companions, so that another engine can stand in its place: [`ops_of`],
//! [`ycsb_of`], [`queue_of`], [`transfers_of`].
//!
//! How time is taken: all threads begin behind one barrier, and the throughput is that of all operations
//! between the first begin and the last end, so a slow thread is not averaged away. One call in 64 is timed
//! on its own for the latencies, which costs two looks at a clock, of 20 to 30 ns each, one of which is in
//! the latency. Pools are created and touched, clients opened and caches warmed before the clock starts;
//! making keys and values and checking values is inside, because users do both. Where a call is one operation
//! of [`ops()`], they are made a block of calls ahead; gets and updates are measured with keys made in the
//! loop too. Pairs of a scan are checked behind it.

mod ahead;
pub mod alloc;
pub mod arguments;
pub mod batched;
pub mod choice;
pub mod config;
pub mod cost;
mod disk;
pub mod distinct;
pub mod drive;
pub mod engine;
pub mod error;
pub mod memory;
pub mod ops;
mod own_work;
pub mod plot;
pub mod progress;
pub mod queue;
pub mod report;
pub mod roofline;
pub mod scan;
pub mod session;
pub mod settings;
pub mod size;
pub mod stalls;
pub mod suggest;
pub mod table;
pub mod target;
pub mod threads;
pub mod transfers;
pub mod workload;
pub mod ycsb;

pub use config::Config;
pub use engine::{Engine, EngineClient, OpenEngine};
pub use error::{BenchError, Fault};
pub use ops::{OpsPhase, ops, ops_of};
pub use plot::plot;
pub use progress::{Progress, Silent};
pub use queue::{queue, queue_of};
pub use report::{Compaction, EachKind, InPaper, Mixed, Row, Sink, Steadiness, Steady, Utilized};
pub use roofline::{Limits, Roof, Roofline};
pub use stalls::Stalls;
pub use table::table;
pub use transfers::{transfers, transfers_of};
pub use ycsb::{ycsb, ycsb_of};
