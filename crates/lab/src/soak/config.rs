//! The settings of a run, and its findings.

use crate::arguments;
use crate::crash::Broken;
use crate::run::Conviction;
use crate::size::count;
use quipu::Design;
use serde::Serialize;
use std::path::PathBuf;

/// The settings of a run.
#[derive(Clone, Debug, clap::Args)]
pub struct SoakConfig {
    /// The pool's file, which must not exist; nor may one of that name and `.copy`. It stays only if a
    /// violation was found.
    pub pool: PathBuf,
    /// The design.
    #[arg(long, value_name = "NAME", default_value_t, value_parser = arguments::design)]
    pub design: Design,
    /// Keys at most; between two reopenings 20 to so many are in use.
    #[arg(long, value_name = "N", value_parser = count::<u64>, default_value = "2000")]
    pub keys: u64,
    /// Clients, each on a thread of its own.
    #[arg(long, value_name = "T", value_parser = count::<usize>, default_value = "2")]
    pub threads: usize,
    /// Calls of all clients together between two reopenings.
    #[arg(long, value_name = "N", value_parser = count::<u64>, default_value = "20k")]
    pub ops: u64,
    /// Reopenings after a close.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub clean: u64,
    /// Reopenings of a copy that is made in the midst of the work.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub unclean: u64,
    /// The seed of calls and of the order of reopenings. How threads meet is up to the machine.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Break the store on purpose, to see that it is noticed: a self-test, which must end with a violation.
    #[arg(long, value_name = "NAME", value_parser = arguments::broken(&["tombstone-dropped-early"]))]
    pub twin: Option<Broken>,
}

impl SoakConfig {
    /// The defaults, for a pool in this file.
    pub fn of(pool: impl Into<PathBuf>) -> SoakConfig {
        SoakConfig { pool: pool.into(), ..arguments::of_words(&["pool"]) }
    }
}

/// The findings of a run.
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
    /// The fault.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<Conviction>,
}
