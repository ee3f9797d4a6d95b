//! The settings of a run over real threads, and its findings.

use super::twins::{self, Broken};
use crate::run::Conviction;
use quipu::Design;
use quipu_bench::arguments;
use quipu_bench::size::count;
use serde::Serialize;
use std::path::PathBuf;

/// The settings of a run.
#[derive(Clone, Debug, clap::Args)]
pub struct LinearConfig {
    /// The design.
    #[arg(skip)]
    pub design: Design,
    /// Histories to judge.
    #[arg(long, value_name = "N", value_parser = count::<u64>, default_value = "2000")]
    pub histories: u64,
    /// Go on until so many calls have met another thread's at their key. Calls that meet find faults; the
    /// number of histories alone does not.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub overlapping: u64,
    /// Threads of each. With more than there are processors, fewer calls meet.
    #[arg(long, value_name = "T", value_parser = count::<usize>, default_value = "2")]
    pub threads: usize,
    /// Keys of each: few, so that calls meet.
    #[arg(long, value_name = "N", value_parser = count::<usize>, default_value = "2")]
    pub keys: usize,
    /// Calls of each thread in a history.
    #[arg(long, value_name = "N", value_parser = count::<usize>, default_value = "12")]
    pub calls: usize,
    /// The seed of all calls. How the threads meet is up to the machine.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Keep the pools in files in this folder, instead of in memory; they are removed afterwards.
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Operations that the checker tries for one key before it gives up.
    #[arg(skip = super::check::BUDGET)]
    pub budget: u64,
    /// Break the store on purpose, to see that the checker notices: a self-test, which must end with
    /// violations.
    #[arg(long, value_name = "NAME", value_parser = twins::broken())]
    pub twin: Option<Broken>,
}

impl Default for LinearConfig {
    fn default() -> LinearConfig {
        arguments::of_words(&[])
    }
}

/// The findings of a run.
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
