//! The crash explorer: every state that a power failure may leave is recovered and judged.
//!
//! A generated workload runs on the simulated medium, its threads interleaved by a seeded scheduler. At
//! chosen operations on persistent memory the explorer freezes a crash point, and forms the images that may
//! be durable at that moment. For each it opens the store, reads every key, and asks the oracle whether any
//! order of the operations so far explains the values. The structures must be sound, nothing may leak, and
//! the store must work on. Recovery is itself run on the simulator and crashed, and so is the work that
//! follows it.
//!
//! A *state* is a distinct durable image that went through full recovery and the oracle. Everything a run
//! does follows from its seed, so one command replays a violation.

mod answers;
mod bank;
mod dense;
mod explorer;
mod hand;
mod history;
mod ledger;
mod levels;
mod moment;
mod oracle;
mod pace;
mod perform;
mod pool;
mod prefix;
mod records;
mod report;
mod run;
mod stage;
mod tables;
mod transact;
mod transfers;
mod verdict;
mod workload;

pub use explorer::explore;
pub use moment::{KINDS, Kind};
pub use oracle::{Action, KeyOracle, Outcome};
pub use report::{Broken, CrashConfig, CrashReport, Violation};
