//! The settings of a run over histories of transactions, and its findings.

use super::history::Level;
use crate::breaks::{Named, one_of};
use crate::run::Conviction;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use quipu::internals::{Merging, Twin};
use quipu_bench::arguments;
use quipu_bench::size::count;
use serde::Serialize;

/// The settings of a run.
#[derive(Clone, Debug, clap::Args)]
pub struct IsolationConfig {
    /// The level of the transactions.
    #[arg(skip = Level::Snapshot)]
    pub level: Level,
    /// Transactions to judge.
    #[arg(long, value_name = "N", value_parser = count::<u64>, default_value = "20k")]
    pub transactions: u64,
    /// End after so many seconds in any case.
    #[arg(long, value_name = "S", value_parser = count::<u64>)]
    pub seconds: Option<u64>,
    /// Run on real threads, in place of the simulator. How they meet is then up to the machine.
    #[arg(long)]
    pub threads: bool,
    /// The seed of the first history; each further one has the next.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// When the indexes of memtables are merged. Without it, each seed has its own.
    #[arg(long, value_name = "WHEN", value_parser = merging())]
    pub merging: Option<Merging>,
    /// Break the store on purpose, to see that the judge notices: a self-test, which must end with
    /// violations.
    #[arg(long, value_name = "NAME", value_parser = twins())]
    pub twin: Option<Twin>,
}

impl Default for IsolationConfig {
    fn default() -> IsolationConfig {
        arguments::of_words(&[])
    }
}

/// The kinds of merging by their names.
pub(super) const MERGING: [(&str, Merging); 3] =
    [("direct", Merging::Direct), ("key", Merging::Key), ("off", Merging::Off)];

/// Reads the name of a kind of merging.
fn merging() -> impl TypedValueParser<Value = Merging> {
    let names = PossibleValuesParser::new(MERGING.map(|(name, _)| name));
    names.try_map(|name| {
        let found = MERGING.iter().find(|(known, _)| *known == name).map(|(_, merging)| *merging);
        found.ok_or("no kind of merging has this name")
    })
}

/// Reads the name of a rule of the store.
fn twins() -> impl TypedValueParser<Value = Twin> {
    one_of(Named::rules(|twin| twin).collect())
}

/// The findings of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct IsolationReport {
    /// The level.
    pub level: String,
    /// Where it ran: `sim` or `threads`.
    pub ground: String,
    /// The seed of the first history.
    pub seed: u64,
    /// Histories judged.
    pub histories: u64,
    /// Transactions in all of them.
    pub transactions: u64,
    /// Of these, those that committed.
    pub committed: u64,
    /// Those that were refused for a conflict.
    pub conflicts: u64,
    /// Keys that they have read.
    pub reads: u64,
    /// Updates that were lost, where the level allows it.
    pub lost_updates: u64,
    /// Histories with write skew, where the level allows it.
    pub skewed: u64,
    /// Bytes that went to levels meanwhile.
    pub dumped_bytes: u64,
    /// Records that were rewritten meanwhile.
    pub moved_records: u64,
    /// Histories that the level forbids, and pools that were unsound afterwards.
    pub violations: u64,
    /// Wall time.
    #[serde(skip)]
    pub seconds: f64,
    /// The first violations, in full.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<Conviction>,
}
