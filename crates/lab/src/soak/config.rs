//! What a run is asked and what it answers.

use quipu::internals::Twin;
use quipu::{Design, Error};
use serde::Serialize;
use std::path::PathBuf;

/// What to run.
#[derive(Clone, Debug)]
pub struct SoakConfig {
    /// The pool's file, which must not exist; nor may one of that name and `.copy`. It stays only if a violation was found.
    pub pool: PathBuf,
    /// The design.
    pub design: Design,
    /// Keys at most. Between two reopenings a number of them is in use, from 20 up to this.
    pub keys: u64,
    /// Clients, each on a thread of its own.
    pub threads: usize,
    /// Calls of all clients together between two reopenings.
    pub ops: u64,
    /// Reopenings after a close.
    pub clean: u64,
    /// Reopenings of a copy that was made in the midst of the work.
    pub unclean: u64,
    /// What calls and the order of reopenings follow from. How threads meet does not.
    pub seed: u64,
    /// Break the store on purpose.
    pub twin: Option<Twin>,
}

impl Default for SoakConfig {
    fn default() -> SoakConfig {
        SoakConfig {
            pool: PathBuf::new(),
            design: Design::default(),
            keys: 2000,
            threads: 2,
            ops: 20_000,
            clean: 100,
            unclean: 100,
            seed: 1,
            twin: None,
        }
    }
}

/// What a run found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SoakReport {
    /// The design.
    pub design: String,
    /// The seed.
    pub seed: u64,
    /// Clients.
    pub threads: usize,
    /// Reopenings after a close.
    pub clean: u64,
    /// Reopenings of a copy that was made in the midst of the work.
    pub unclean: u64,
    /// Calls that inserted or overwrote.
    pub puts: u64,
    /// Calls that deleted, whether there was something to delete or not.
    pub deletes: u64,
    /// Segments that compaction gave back.
    pub freed_segments: u64,
    /// Bytes of records that compaction moved.
    pub moved_bytes: u64,
    /// Most bytes of tombstones that there were at a reopening.
    pub most_tombstone_bytes: u64,
    /// Bytes of tombstones left in the end, after compaction.
    pub tombstone_bytes: u64,
    /// 1 if a rule was broken, which ends the run.
    pub violations: u64,
    /// Wall time.
    #[serde(skip)]
    pub seconds: f64,
    /// What was wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<SoakConviction>,
}

/// A rule that was broken.
#[derive(Clone, Debug, Serialize)]
pub struct SoakConviction {
    /// Reopenings before it.
    pub reopenings: u64,
    /// What is wrong, in lines.
    pub what: String,
    /// The command that makes the same calls again. Threads may need several tries to meet in the same way.
    pub replay: String,
}

/// Why a run could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum SoakError {
    /// A number is impossible.
    #[error("the number of {what} is {found}; it must be at least {least}")]
    Number {
        /// Of what.
        what: &'static str,
        /// The number asked for.
        found: u64,
        /// The least that makes sense.
        least: u64,
    },
    /// The pool could not be made.
    #[error(transparent)]
    Create(Error),
    /// A file could not be copied, moved or removed.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}
