//! Isolation: what transactions see of each other must be what their level promises.
//!
//! Tests of single schedules show the anomalies that somebody thought of. Here random transactions meet on
//! few keys, in tables of design `xp`, beside single calls, dumps, merges and rewriting. Everything that they
//! are told is recorded, and a judge holds it against the level: read by read, and as a graph of who comes
//! before whom.
//!
//! - [`History`]: the transactions as they were seen from outside, with the order of the commits.
//! - [`check`]: the judge.
//! - [`Graph`]: dependencies of transactions, and the cycles that a level forbids.
//! - [`explore`]: histories of a store, on the simulator or on real threads, each judged.

mod chains;
mod check;
mod config;
mod draw;
mod explore;
mod graph;
mod history;
mod perform;
mod record;
mod run;

#[cfg(test)]
mod check_tests;

pub use check::{Anomaly, Verdict, Violation, check};
pub use config::{IsolationConfig, IsolationReport};
pub use explore::explore;
pub use graph::{Graph, Rule, Step, Why};
pub use history::{End, Event, History, Key, Level, Look, Read, Span, Transaction, Version};
