//! What a run over real threads is asked and what it answers.

use super::twins::Twin;
use quipu::{Design, Error};
use serde::Serialize;
use std::path::PathBuf;

/// What to run.
#[derive(Clone, Debug)]
pub struct LinearConfig {
    /// The design.
    pub design: Design,
    /// Folder for pools that are files; without it they are in memory.
    pub folder: Option<PathBuf>,
    /// Histories to judge.
    pub histories: u64,
    /// Threads of each.
    pub threads: usize,
    /// Keys of each: few, so that calls meet.
    pub keys: usize,
    /// Calls of each thread in a history.
    pub calls: usize,
    /// What all calls follow from. How the threads interleave does not.
    pub seed: u64,
    /// Operations that the checker tries for one key before it gives up.
    pub budget: u64,
    /// Break the store on purpose.
    pub twin: Option<Twin>,
}

impl Default for LinearConfig {
    fn default() -> LinearConfig {
        LinearConfig {
            design: Design::default(),
            folder: None,
            histories: 2000,
            threads: 2,
            keys: 2,
            calls: 12,
            seed: 1,
            budget: super::check::BUDGET,
            twin: None,
        }
    }
}

/// What a run found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LinearReport {
    /// The design.
    pub design: String,
    /// Where the pools were: `dram` or `file`.
    pub medium: String,
    /// The seed.
    pub seed: u64,
    /// Threads of each history.
    pub threads: usize,
    /// Histories judged.
    pub histories: u64,
    /// Operations on single keys in all of them.
    pub operations: u64,
    /// Of these, operations during which another thread worked on the same key.
    pub overlapping: u64,
    /// Puts that returned because another one had overwritten them.
    pub eliminated: u64,
    /// Histories for which the checker's budget did not suffice.
    pub undecided: u64,
    /// Histories that no order explains, and pools that were unsound afterwards.
    pub violations: u64,
    /// Wall time.
    #[serde(skip)]
    pub seconds: f64,
    /// The first violations, in full.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<Conviction>,
}

/// A violation, and how to look for it again.
#[derive(Clone, Debug, Serialize)]
pub struct Conviction {
    /// Number of the history within the run.
    pub history: u64,
    /// What is wrong, in lines.
    pub what: String,
    /// The command that makes the same calls again. Real threads may need several tries to meet as they did.
    pub replay: String,
}

/// Why a run could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum LinearError {
    /// A number is impossible.
    #[error("{setting} {reason}")]
    Setting {
        /// The setting.
        setting: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A call on the store failed.
    #[error("history {history} of seed {seed} failed: {source}")]
    Store {
        /// Number of the history, or the first of the lot whose pool failed.
        history: u64,
        /// The seed.
        seed: u64,
        /// What the store said.
        source: Error,
    },
}
