//! What a run is asked and what it answers.

use crate::linear::Twin;
use quipu::{Design, Error};
use serde::Serialize;
use std::path::PathBuf;

/// What to run.
#[derive(Clone, Debug)]
pub struct KillConfig {
    /// The pool's file, which must not exist. It stays only if a violation was found.
    pub pool: PathBuf,
    /// The design.
    pub design: Design,
    /// Bytes of the pool. One that becomes full is replaced.
    pub size: u64,
    /// Writers to kill.
    pub rounds: u64,
    /// Threads of each.
    pub threads: usize,
    /// What calls and moments follow from. How far a writer gets does not.
    pub seed: u64,
    /// Break the writers' store on purpose.
    pub twin: Option<Twin>,
}

/// What a writer is told.
#[derive(Clone, Debug)]
pub struct WriterConfig {
    /// The pool.
    pub pool: PathBuf,
    /// Seed of the run.
    pub seed: u64,
    /// Number of the round, from 0.
    pub round: u64,
    /// Threads.
    pub threads: usize,
    /// Break the store on purpose.
    pub twin: Option<Twin>,
}

/// What a run found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct KillReport {
    /// The design.
    pub design: String,
    /// The seed.
    pub seed: u64,
    /// Threads of each writer.
    pub threads: usize,
    /// Writers killed and judged.
    pub rounds: u64,
    /// Of these, writers that had not acknowledged anything yet: they died while starting or recovering.
    pub early: u64,
    /// Calls acknowledged.
    pub acknowledged: u64,
    /// Of these, calls refused because the pool was full.
    pub refused: u64,
    /// Values that were there although nobody had acknowledged them: a call in flight had taken effect.
    pub in_flight: u64,
    /// Pools used, one after another, each until it was full.
    pub pools: u64,
    /// 1 if a round broke a rule, which ends the run.
    pub violations: u64,
    /// Wall time.
    #[serde(skip)]
    pub seconds: f64,
    /// What was wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<KillConviction>,
}

/// A round that broke a rule.
#[derive(Clone, Debug, Serialize)]
pub struct KillConviction {
    /// The round, from 0.
    pub round: u64,
    /// What is wrong, in lines.
    pub what: String,
    /// The command that draws the same calls and moments again. Real processes may need several tries to get as far.
    pub replay: String,
}

/// Why a run could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum KillError {
    /// The number of threads is impossible.
    #[error("the number of threads is {threads}; it must be 1 to 15")]
    Threads {
        /// Threads asked for.
        threads: usize,
    },
    /// A pool could not be made.
    #[error(transparent)]
    Create(Error),
    /// A writer could not be started or watched.
    #[error("the writer of round {round} could not be run: {source}")]
    Process {
        /// The round.
        round: u64,
        /// What the system said.
        source: std::io::Error,
    },
    /// A pool that is no longer needed could not be removed.
    #[error("the pool could not be removed: {0}; remove it yourself")]
    Remove(std::io::Error),
}
