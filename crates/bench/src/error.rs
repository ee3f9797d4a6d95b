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
        "workload {workload} scans in key order, which design {design} does not keep; choose an ordered \
         design, or ask quipu for order by --set index=alex"
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
        /// The phase.
        phase: String,
        /// The store's answer; of our own store, a [`quipu::Error`].
        source: Box<dyn Error + Send + Sync>,
    },
    /// The store answered wrongly.
    #[error("design {design}, {phase}: {fault}; keep the pool and report this")]
    Fault {
        /// The design, or the name of another engine.
        design: String,
        /// The phase.
        phase: String,
        /// The wrong answer.
        fault: Fault,
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

/// A wrong answer of a store; records are known by their numbers.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// A read returned other bytes than were written.
    #[error("the value of record {0} is wrong: {1}")]
    WrongValue(u64, Mismatch),
    /// An acknowledged record is not found.
    #[error("record {0} was stored and is not found")]
    Missing(u64),
    /// A deleted record is found.
    #[error("record {0} was deleted and is found")]
    Undead(u64),
    /// A record has a value that was overwritten.
    #[error("record {record} has its value number {found}, and {expected} was stored last")]
    Stale {
        /// The record.
        record: u64,
        /// Number of the value that was found.
        found: u64,
        /// Number of the last value written.
        expected: u64,
    },
    /// An index told the word of another record, or of none.
    #[error("record {record} has the word {found} in the index, which is not its own")]
    WrongWord {
        /// The record.
        record: u64,
        /// The word.
        found: u64,
    },
    /// A scan gave a record that comes before the one that it gave last.
    #[error("record {0} came out of the order of keys")]
    Disorder(u64),
    /// The store holds another number of records than it acknowledged.
    #[error("{found} records instead of {expected}")]
    Count {
        /// Records that the store counts.
        found: u64,
        /// Records that it acknowledged.
        expected: u64,
    },
}

impl BenchError {
    /// A wrong answer of `engine`, with what was being done.
    #[cold]
    pub fn fault(engine: &str, phase: &str, fault: Fault) -> BenchError {
        BenchError::Fault { design: engine.to_owned(), phase: phase.to_owned(), fault }
    }

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
