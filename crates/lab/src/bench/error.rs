//! Why a benchmark did not finish, or must not be believed.

use crate::workload::Mismatch;
use quipu_medium::MediumError;
use std::error::Error;
use std::io;

/// Why a benchmark has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// A setting has an impossible value.
    #[error("{setting} {reason}")]
    Setting {
        /// The setting.
        setting: &'static str,
        /// Why not, and what would do.
        reason: String,
    },
    /// The workload reads ranges in key order, and the design keeps none.
    #[error(
        "workload {workload} scans in key order, which design {design} does not keep; choose an ordered design"
    )]
    NoOrder {
        /// The design, or the name of another engine.
        design: String,
        /// The workload.
        workload: String,
    },
    /// The store refused an operation.
    #[error("design {design}, {phase}: {source}")]
    Store {
        /// The design, or the name of another engine.
        design: String,
        /// What was being done.
        phase: String,
        /// The store's answer; of our own store, a [`quipu::Error`].
        source: Box<dyn Error + Send + Sync>,
    },
    /// A read returned other bytes than were written: a fault of the store.
    #[error(
        "design {design}, {phase}: the value of record {record} is wrong: {source}; keep the pool and report this"
    )]
    WrongValue {
        /// The design, or the name of another engine.
        design: String,
        /// What was being done.
        phase: String,
        /// The record's number.
        record: u64,
        /// What is wrong.
        source: Mismatch,
    },
    /// An acknowledged record is not found: a fault of the store.
    #[error(
        "design {design}, {phase}: record {record} was stored and is not found; keep the pool and report this"
    )]
    Missing {
        /// The design, or the name of another engine.
        design: String,
        /// What was being done.
        phase: String,
        /// The record's number.
        record: u64,
    },
    /// A deleted record is found: a fault of the store.
    #[error(
        "design {design}, {phase}: record {record} was deleted and is found; keep the pool and report this"
    )]
    Undead {
        /// The design, or the name of another engine.
        design: String,
        /// What was being done.
        phase: String,
        /// The record's number.
        record: u64,
    },
    /// A record has a value that was overwritten: a fault of the store.
    #[error(
        "design {design}, {phase}: record {record} has its value number {found}, and {expected} was stored last; keep \
         the pool and report this"
    )]
    Stale {
        /// The design, or the name of another engine.
        design: String,
        /// What was being done.
        phase: String,
        /// The record's number.
        record: u64,
        /// Number of the value that was found.
        found: u64,
        /// Number of the last value written.
        expected: u64,
    },
    /// A scan gave a record that comes before the one that it gave last: a fault of the store.
    #[error(
        "design {design}, {phase}: record {record} came out of the order of keys; keep the pool and report this"
    )]
    Disorder {
        /// The design, or the name of another engine.
        design: String,
        /// What was being done.
        phase: String,
        /// The record's number.
        record: u64,
    },
    /// The store holds another number of records than it acknowledged: a fault of the store.
    #[error("design {design}, {phase}: {found} records instead of {expected}; keep the pool and report this")]
    Count {
        /// The design, or the name of another engine.
        design: String,
        /// What was being done.
        phase: String,
        /// Records that the store counts.
        found: u64,
        /// Records that it acknowledged.
        expected: u64,
    },
    /// The medium failed outside of the store.
    #[error(transparent)]
    Medium(#[from] MediumError),
    /// A file of the benchmark's own could not be handled.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: std::path::PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Another thread failed first, and its error is the one to look at.
    #[error("stopped because another thread failed")]
    Stopped,
}

impl BenchError {
    /// Makes the answers of `engine` this error, with what was being done.
    pub fn refused<E>(engine: &str, phase: &str) -> impl Fn(E) -> BenchError + use<E>
    where
        E: Error + Send + Sync + 'static,
    {
        let (design, phase) = (engine.to_owned(), phase.to_owned());
        move |source| BenchError::Store {
            design: design.clone(),
            phase: phase.clone(),
            source: Box::new(source),
        }
    }
}
