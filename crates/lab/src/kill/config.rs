//! The settings of a run, and its findings.

use crate::linear::{self, Broken};
use crate::run::Conviction;
use quipu::Design;
use quipu_bench::arguments;
use quipu_bench::size::{self, count};
use serde::Serialize;
use std::path::PathBuf;

/// The settings of a run.
#[derive(Clone, Debug, clap::Args)]
pub struct KillConfig {
    /// The pool's file, which must not exist. With its levels, it stays only if a violation was found.
    pub pool: PathBuf,
    /// The design.
    #[arg(long, value_name = "NAME", default_value_t, value_parser = arguments::design)]
    pub design: Design,
    /// Writers to kill.
    #[arg(long, value_name = "N", value_parser = count::<u64>, default_value = "100")]
    pub rounds: u64,
    /// Threads of each writer.
    #[arg(long, value_name = "T", value_parser = count::<usize>, default_value = "2")]
    pub threads: usize,
    /// The seed of calls and moments. How far a writer gets is up to the machine.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Writers move amounts between accounts, each time in one transaction, or in a batch with conditions
    /// where a design has no transactions; the sum of all accounts is judged too.
    #[arg(long)]
    pub transfers: bool,
    /// Bytes of the pool. One that becomes full is replaced. [default: 64M; 2M for a design with levels]
    #[arg(long, value_name = "SIZE", value_parser = size::pool)]
    pub size: Option<u64>,
    /// Break the writers' store on purpose, to see that the judge notices: a self-test, which must end with a
    /// violation.
    #[arg(long, value_name = "NAME", value_parser = linear::broken())]
    pub twin: Option<Broken>,
}

/// The arguments of a writer.
#[derive(Clone, Debug, clap::Args)]
pub struct WriterConfig {
    /// The pool.
    pub pool: PathBuf,
    /// Seed of the run.
    #[arg(long)]
    pub seed: u64,
    /// Number of the round, from 0.
    #[arg(long)]
    pub round: u64,
    /// Threads.
    #[arg(long)]
    pub threads: usize,
    /// Move amounts between accounts.
    #[arg(long)]
    pub transfers: bool,
    /// Break the store on purpose.
    #[arg(long, value_parser = linear::broken())]
    pub twin: Option<Broken>,
}

/// The arguments of the judge of one round whose writer died with its machine.
#[derive(Clone, Debug, clap::Args)]
pub struct JudgeConfig {
    /// The arguments of the dead writer.
    #[command(flatten)]
    pub writer: WriterConfig,
    /// The design.
    #[arg(long, value_name = "NAME", default_value_t, value_parser = arguments::design)]
    pub design: Design,
    /// The file with the acknowledgements that came out of the machine. No file means none.
    #[arg(long, value_name = "FILE")]
    pub acknowledgements: PathBuf,
    /// The file that keeps the contents of the pool from one round to the next.
    #[arg(long, value_name = "FILE")]
    pub contents: PathBuf,
}

/// The findings on one round.
#[derive(Clone, Debug, Default, Serialize)]
pub struct JudgeReport {
    /// Number of the round, from 0.
    pub round: u64,
    /// Calls acknowledged.
    pub acknowledged: u64,
    /// Values that were there although nobody had acknowledged them: a call in flight had taken effect.
    pub in_flight: u64,
    /// Keys in the pool.
    pub keys: u64,
    /// The rule that the round broke.
    pub violation: Option<String>,
}

/// The findings of a run.
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
    /// Bytes of the levels at the end.
    pub level_bytes: u64,
    /// Pools used, one after another, each until it was full.
    pub pools: u64,
    /// 1 if a round broke a rule, which ends the run.
    pub violations: u64,
    /// Wall time.
    #[serde(skip)]
    pub seconds: f64,
    /// The fault.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<Conviction>,
}
