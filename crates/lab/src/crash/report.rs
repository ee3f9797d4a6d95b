//! The settings of an exploration, and its findings.

use crate::arguments;
use crate::size::count;
use quipu::Design;
use quipu::internals::{TieBreak, Twin};
use quipu_medium::sim::Fault;
use serde::Serialize;

/// States judged if neither these nor runs are limited.
const STATES: u64 = 5000;

/// The settings of an exploration.
#[derive(Clone, Debug, clap::Args)]
pub struct CrashConfig {
    /// The design.
    #[arg(skip)]
    pub design: Design,
    /// A setting of the designs that have it, in place of what a run would choose; may be repeated. `quipu designs` lists
    /// them with their values.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = arguments::assignment)]
    pub settings: Vec<(String, String)>,
    /// Distinct states to judge. [default: 5000, or without limit if --runs is given]
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
    /// Threads of this machine that explore.
    #[arg(skip = std::thread::available_parallelism().map_or(1, usize::from))]
    pub workers: usize,
    /// Break the store on purpose, to see that the explorer notices: a self-test, which must end with violations.
    #[arg(long, value_name = "NAME", value_parser = arguments::broken(&[]))]
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
        self.states.unwrap_or(if self.runs.is_some() { u64::MAX } else { STATES })
    }
}

/// A break on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The store.
    Store(Twin),
    /// The store, whose slots break ties as Viper's paper does.
    PaperTies(Twin),
    /// The medium.
    Medium(Fault),
}

impl Broken {
    /// The break of the store.
    pub fn twin(self) -> Option<Twin> {
        match self {
            Broken::Store(twin) | Broken::PaperTies(twin) => Some(twin),
            Broken::Medium(_) => None,
        }
    }

    /// The break of the medium.
    pub(super) fn fault(self) -> Option<Fault> {
        if let Broken::Medium(fault) = self { Some(fault) } else { None }
    }

    /// How slots break ties.
    pub(super) fn tie_break(self) -> TieBreak {
        if let Broken::PaperTies(_) = self { TieBreak::BlockOrder } else { TieBreak::Sequence }
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
    /// Of these, states of a pool that had crashed before.
    pub nested: u64,
    /// Of these, crashes while compaction was at work.
    pub during_compaction: u64,
    /// Of these, crashes while it was not known yet what is dead in segments of an earlier run.
    pub during_survey: u64,
    /// Of these, crashes of recovery itself.
    pub during_recovery: u64,
    /// Of these, crashes while the index or the heap was growing.
    pub during_growth: u64,
    /// Of these, crashes while a node or segment of the index was being split. In an index in DRAM that shows
    /// only if another thread writes to the medium meanwhile.
    pub during_index_split: u64,
    /// Of these, states of pools whose index had split before.
    pub after_index_split: u64,
    /// Of these, states of pools whose index had lost a node that became empty: an ordered index in the pool
    /// tells that.
    pub after_index_removal: u64,
    /// Of these, crashes while an index in the pool linked a further zone to its others.
    pub during_index_zone: u64,
    /// Of these, states of pools whose index had taken a further zone.
    pub after_index_zone: u64,
    /// Of these, states of pools whose records vary in size and whose keys are words of eight bytes.
    pub word_keys: u64,
    /// Of these, states in whose history the clock had moved.
    pub after_clock: u64,
    /// Of these, states in which a key may have a value that has expired since it was written.
    pub expired: u64,
    /// Of these, crashes while a store was being closed.
    pub during_close: u64,
    /// Of these, states of pools whose records have one size.
    pub fixed: u64,
    /// Of these, crashes while a value was being changed in place.
    pub during_in_place: u64,
    /// Crashes after which the checkpoint of a clean close was there and believed.
    pub from_checkpoint: u64,
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

/// A broken rule, and how to see it again.
#[derive(Clone, Debug, Serialize)]
pub struct Violation {
    /// Seed of the run.
    pub seed: u64,
    /// Operation on persistent memory, counted within the run, before which the crash came.
    pub operation: u64,
    /// What is wrong.
    pub what: String,
    /// Which words the crash tore: what arrived and what did not.
    pub image: String,
    /// The command that replays the run.
    pub replay: String,
}
