//! What the explorer is asked and what it answers.

use quipu::Design;
use quipu::internals::{SlotSettings, Twin};
use quipu_medium::sim::Fault;
use serde::Serialize;

/// What to explore.
#[derive(Clone, Debug)]
pub struct CrashConfig {
    /// The design.
    pub design: Design,
    /// Distinct states to judge.
    pub states: u64,
    /// Seed of the first run; the others follow.
    pub seed: u64,
    /// Stop after this many runs, however many states they had: 1 replays a violation.
    pub runs: Option<u64>,
    /// Operations of a thread in a long run.
    pub ops: usize,
    /// Threads of the workload.
    pub threads: usize,
    /// Threads of this machine that explore.
    pub workers: usize,
    /// Settings of the slots of designs that have them. Their form and sizes count for nothing: every run has its own.
    pub slots: SlotSettings,
    /// Settings of the design, by name and value, in place of what a run would choose.
    pub settings: Vec<(String, String)>,
    /// Break the store on purpose.
    pub twin: Option<Twin>,
    /// Break the medium on purpose.
    pub fault: Option<Fault>,
}

impl Default for CrashConfig {
    fn default() -> CrashConfig {
        CrashConfig {
            design: Design::default(),
            states: 5000,
            seed: 1,
            runs: None,
            ops: 40,
            threads: 2,
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            slots: SlotSettings::default(),
            settings: Vec::new(),
            twin: None,
            fault: None,
        }
    }
}

/// What an exploration found.
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
