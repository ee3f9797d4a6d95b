//! The settings of a run, and its findings.

use crate::breaks::{Named, one_of};
use crate::run::Conviction;
use quipu::Design;
use quipu::internals::Twin;
use quipu_bench::arguments;
use quipu_bench::size::count;
use serde::Serialize;
use std::path::PathBuf;

/// The settings of a run.
#[derive(Clone, Debug, clap::Args)]
pub struct SoakConfig {
    /// The design.
    #[arg(skip)]
    pub design: Design,
    /// Pools, one after another, each of another make.
    #[arg(long, value_name = "N", value_parser = count::<u64>, default_value = "4")]
    pub pools: u64,
    /// Go on with further pools for so many minutes, however many pools that takes.
    #[arg(long, value_name = "M", conflicts_with = "pools")]
    pub minutes: Option<f64>,
    /// Threads, each with keys of its own.
    #[arg(long, value_name = "T", value_parser = count::<usize>, default_value = "3")]
    pub threads: usize,
    /// The seed of the first pool's make and calls; the next pool has the next. How threads meet is up to the
    /// machine.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Keep the pools in files in this folder, instead of in memory. A pool stays only if a violation was
    /// found.
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Break the store on purpose, to see that it is noticed: a self-test, which must end with a violation.
    #[arg(long, value_name = "NAME", value_parser = one_of(Named::rules(|twin| twin).collect()))]
    pub twin: Option<Twin>,
}

impl Default for SoakConfig {
    fn default() -> SoakConfig {
        arguments::of_words(&[])
    }
}

/// The findings of a run so far.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SoakReport {
    /// The design.
    pub design: String,
    /// Where the pools were: `dram` or `file`.
    pub medium: String,
    /// The seed.
    pub seed: u64,
    /// Threads.
    pub threads: usize,
    /// Pools that have come to their end, or were convicted.
    pub pools: u64,
    /// Calls, of which each was judged.
    pub calls: u64,
    /// Of these, calls that found no room.
    pub full: u64,
    /// Reopenings after a close.
    pub closed: u64,
    /// Reopenings after a drop.
    pub dropped: u64,
    /// Reopenings of a copy that was made in the midst of the work.
    pub abandoned: u64,
    /// Segments that compaction gave back.
    pub freed_segments: u64,
    /// Bytes of records that compaction moved.
    pub moved_bytes: u64,
    /// Bytes that went to the levels.
    pub dumped_bytes: u64,
    /// Most bytes of tombstones that there were at a reopening.
    pub most_tombstone_bytes: u64,
    /// Most bytes of tombstones left in the end of a pool, after compaction.
    pub tombstone_bytes: u64,
    /// 1 if a rule was broken, which ends the run.
    pub violations: u64,
    /// Wall time.
    pub seconds: f64,
    /// The fault.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<Conviction>,
}
