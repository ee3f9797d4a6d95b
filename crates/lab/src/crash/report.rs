//! The settings of an exploration, and its findings.

use super::moment::KINDS;
use crate::breaks::{self, twin_argument};
use quipu::Design;
use quipu::internals::Twin;
use quipu_bench::arguments;
use quipu_bench::size::count;
use quipu_medium::sim::Fault;
use serde::Serialize;
use std::collections::BTreeMap;

/// States judged if neither these nor runs nor minutes are limited.
const STATES: u64 = 5000;

/// The settings of an exploration.
#[derive(Clone, Debug, clap::Args)]
pub struct CrashConfig {
    /// The design.
    #[arg(skip)]
    pub design: Design,
    /// A setting of the designs that have it, in place of what a run would choose; may be repeated. `quipu
    /// designs` lists them with their values.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = arguments::assignment)]
    pub settings: Vec<(String, String)>,
    /// Distinct states to judge. [default: 5000, or without limit if --runs or --minutes is
    /// given]
    #[arg(long, value_name = "N", value_parser = count::<u64>)]
    pub states: Option<u64>,
    /// Seed of the first run; the following runs have the following seeds.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Operations of each thread in a long run.
    #[arg(long, value_name = "N", value_parser = count::<usize>, default_value = "40")]
    pub ops: usize,
    /// Threads of the work, interleaved as the seed has it.
    #[arg(long, value_name = "T", value_parser = count::<usize>, default_value = "2")]
    pub threads: usize,
    /// Stop after this many runs, however many states they had: 1 replays a violation.
    #[arg(long, value_name = "N", value_parser = count::<u64>)]
    pub runs: Option<u64>,
    /// Judge the answers of so many histories, and few crashes, instead of many crashes of few histories:
    /// three and more threads show most.
    #[arg(long, value_name = "N", value_parser = count::<u64>, conflicts_with = "runs")]
    pub histories: Option<u64>,
    /// Stop after this many minutes, once the runs under way have ended, and report what was seen until then.
    #[arg(long, value_name = "N", value_parser = count::<u64>)]
    pub minutes: Option<u64>,
    /// Move amounts between accounts by transactions, in place of the usual work, and judge their sum too:
    /// three and more threads show most.
    #[arg(long, conflicts_with = "histories")]
    pub transfers: bool,
    /// Threads of this machine that explore.
    #[arg(skip = std::thread::available_parallelism().map_or(1, usize::from))]
    pub workers: usize,
    /// Break the store on purpose, to see that the explorer notices: a self-test, which must end with
    /// violations.
    #[arg(long, value_name = "NAME", value_parser = breaks::broken(&[]))]
    pub twin: Option<Broken>,
}

impl Default for CrashConfig {
    fn default() -> CrashConfig {
        arguments::of_words(&[])
    }
}

impl CrashConfig {
    /// Distinct states after which the exploration ends.
    pub(super) fn most_states(&self) -> u64 {
        let ends_otherwise = self.runs.is_some() || self.histories.is_some() || self.minutes.is_some();
        self.states.unwrap_or(if ends_otherwise { u64::MAX } else { STATES })
    }

    /// The command that replays the run of a seed.
    pub(super) fn replay(&self, seed: u64) -> String {
        let CrashConfig { design, ops, threads, settings, twin, .. } = self;
        let set: String = settings.iter().map(|(name, value)| format!(" --set {name}={value}")).collect();
        let transfers = if self.transfers { " --transfers" } else { "" };
        format!(
            "quipu-lab crash --design {design} --seed {seed} --runs 1 --ops {ops} --threads \
             {threads}{transfers}{set}{}",
            twin_argument(*twin)
        )
    }
}

/// A break on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// A rule of the store is left out.
    Store(Twin),
    /// The medium.
    Medium(Fault),
}

impl Broken {
    /// The rule that is left out.
    pub fn twin(self) -> Option<Twin> {
        match self {
            Broken::Store(twin) => Some(twin),
            Broken::Medium(_) => None,
        }
    }

    /// The break of the medium.
    pub(super) fn fault(self) -> Option<Fault> {
        if let Broken::Medium(fault) = self { Some(fault) } else { None }
    }
}

/// The findings of an exploration.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CrashReport {
    /// The design.
    pub design: String,
    /// Seed of the first run.
    pub seed: u64,
    /// Operations that the workloads carried out.
    pub operations: u64,
    /// Distinct durable images that were recovered and judged.
    pub states: u64,
    /// Of these, states of each of the [`KINDS`], by name.
    #[serde(flatten)]
    pub kinds: BTreeMap<&'static str, u64>,
    /// Crashes after which the checkpoint of a clean close was there and believed.
    pub from_checkpoint: u64,
    /// Transactions that committed, in runs of transfers.
    pub commits: u64,
    /// Puts that returned because another one, which they met, had overwritten them.
    pub eliminated: u64,
    /// States, or runs, that broke a rule.
    pub violations: u64,
    /// Runs.
    #[serde(skip)]
    pub runs: u64,
    /// Wall time.
    #[serde(skip)]
    pub seconds: f64,
    /// The first violations, in full.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<Violation>,
}

impl CrashReport {
    /// States of a kind.
    ///
    /// # Panics
    /// If no kind has this name.
    pub fn count(&self, kind: &str) -> u64 {
        assert!(KINDS.iter().any(|known| known.name == kind), "no kind of states is called {kind}");
        self.kinds.get(kind).copied().unwrap_or(0)
    }
}

/// A broken rule, and how to see it again.
#[derive(Clone, Debug, Serialize)]
pub struct Violation {
    /// Seed of the run.
    pub seed: u64,
    /// Operation on persistent memory, counted within the run, before which the crash came.
    pub operation: u64,
    /// The fault.
    pub what: String,
    /// Which words the crash tore: what arrived and what did not.
    pub image: String,
    /// The command that replays the run.
    pub replay: String,
}
