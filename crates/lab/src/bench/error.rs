//! Why a benchmark did not finish, or must not be believed.

use crate::workload::Mismatch;
use quipu::Design;
use quipu_medium::MediumError;
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
        /// The design.
        design: Design,
        /// The workload.
        workload: String,
    },
    /// The store refused an operation.
    #[error("design {design}, {phase}: {source}")]
    Store {
        /// The design.
        design: Design,
        /// What was being done.
        phase: String,
        /// The store's answer.
        source: quipu::Error,
    },
    /// A read returned other bytes than were written: a fault of the store.
    #[error(
        "design {design}, {phase}: the value of record {record} is wrong: {source}; keep the pool and report this"
    )]
    WrongValue {
        /// The design.
        design: Design,
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
        /// The design.
        design: Design,
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
        /// The design.
        design: Design,
        /// What was being done.
        phase: String,
        /// The record's number.
        record: u64,
    },
    /// The store holds another number of records than it acknowledged: a fault of the store.
    #[error("design {design}, {phase}: {found} records instead of {expected}; keep the pool and report this")]
    Count {
        /// The design.
        design: Design,
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
