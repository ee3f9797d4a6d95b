//! Running a figure at a scale.

use super::{Benchmark, Paper, Preset, Run};
use crate::bench::{
    allocation, cleaning, levels, memtables, patterns, reclaim, recovery, recovery_of_overwritten, ring,
    steady, steady_of, steps, util, util_of,
};
use quipu::{Design, MediumKind};
use quipu_bench::config::{Config, ONE_CLIENT, refuse, setting};
use quipu_bench::error::BenchError;
use quipu_bench::progress::Progress;
use quipu_bench::report::{InPaper, Row, Sink};
use quipu_bench::{Engine, Roofline, ops, ops_of, transfers, transfers_of, ycsb, ycsb_of};

/// Records of runs on the simulator that stand beside runs on another medium: counts do not get more exact
/// with more of them.
const BESIDE: u64 = 2_000;

/// How large an evaluation is to be, and where.
#[derive(Clone, Debug)]
pub struct Scale {
    /// Medium, pool and seed; all else is the presets'.
    pub base: Config,
    /// Records that stand for the paper's usual number of them.
    pub records: u64,
    /// Numbers of threads, in ascending order.
    pub threads: Vec<usize>,
    /// The designs to run, of those that a figure has; all if none is named.
    pub only: Vec<Design>,
    /// How often each figure is run, every other time in reverse.
    pub rounds: usize,
}

impl Default for Scale {
    fn default() -> Scale {
        Scale { base: Config::default(), records: 300_000, threads: vec![1], only: Vec::new(), rounds: 1 }
    }
}

impl Scale {
    /// Whether costs are counted in place of times.
    pub fn is_simulated(&self) -> bool {
        self.base.medium == MediumKind::Sim
    }

    /// Settings for each number of threads.
    pub(super) fn over_threads(&self) -> impl Iterator<Item = Config> {
        self.threads.iter().map(|threads| Config { threads: *threads, ..self.base.clone() })
    }

    /// Settings with the most threads.
    pub(super) fn most_threads(&self) -> Config {
        let threads = self.threads.iter().copied().max().unwrap_or(1);
        Config { threads, ..self.base.clone() }
    }

    /// Settings with the fewest threads.
    pub(super) fn fewest_threads(&self) -> Config {
        let threads = self.threads.iter().copied().min().unwrap_or(1);
        Config { threads, ..self.base.clone() }
    }

    /// The same on the simulator, which says of DIMMs and lines what no memory of this machine could.
    pub(super) fn on_sim(&self) -> Scale {
        let base = Config {
            medium: MediumKind::Sim,
            pool: None,
            threads: 1,
            counts_dimms: true,
            ..self.base.clone()
        };
        let records = if self.is_simulated() { self.records } else { self.records.min(BESIDE) };
        Scale { base, records, threads: vec![1], ..self.clone() }
    }

    /// Whether there can be such a run.
    ///
    /// # Errors
    /// [`BenchError::Setting`] names what cannot be.
    pub fn check(&self) -> Result<(), BenchError> {
        refuse([
            (self.threads.is_empty() || self.threads.contains(&0), "threads", "must be at least 1"),
            (self.is_simulated() && self.threads != [1], "threads", ONE_CLIENT),
            (self.rounds == 0, "rounds", "must be at least 1"),
            (self.records < LEAST_RECORDS, "records", "must be at least 1000, to be halved and divided"),
        ])
    }
}

/// Fewer records make no figure.
const LEAST_RECORDS: u64 = 1_000;

/// Runs a figure of a paper, and hands over its rows as they come.
pub fn paper(
    paper: &Paper,
    preset: &Preset,
    scale: &Scale,
    progress: &dyn Progress,
    sink: Sink<'_>,
) -> Result<(), BenchError> {
    scale.check()?;
    preset.rounds(scale).try_for_each(|run| {
        run.benchmark.run(&run.config, progress, &mut |row| sink(run.stamp(paper, preset, row)))
    })
}

impl Preset {
    /// The runs of all rounds, every other one in reverse, of the chosen designs.
    pub fn rounds(&self, scale: &Scale) -> impl Iterator<Item = Run> {
        let round = |round: usize| {
            let mut runs = (self.runs)(scale);
            if round % 2 == 1 {
                runs.reverse();
            }
            runs
        };
        (0..scale.rounds).flat_map(round).filter_map(|run| run.of(&scale.only))
    }
}

impl Run {
    /// A row of this run, with where it belongs.
    pub fn stamp(&self, paper: &Paper, preset: &Preset, row: Row) -> Row {
        let (paper, figure) = (paper.name.to_owned(), preset.figure.to_owned());
        Row { paper: Some(InPaper { paper, figure, setting: self.setting.clone() }), ..row }
    }

    /// The same for these designs, if it is for any of them; what runs no design stays as it is.
    fn of(mut self, only: &[Design]) -> Option<Run> {
        if !only.is_empty() && self.benchmark.is_of_designs() {
            self.config.designs.retain(|design| only.contains(design));
        }
        (!self.config.designs.is_empty()).then_some(self)
    }
}

impl Benchmark {
    /// Runs the benchmark on the designs of the settings.
    ///
    /// # Errors
    /// As for each of the benchmarks.
    pub fn run(&self, config: &Config, progress: &dyn Progress, sink: Sink<'_>) -> Result<(), BenchError> {
        match self {
            Benchmark::Ops => ops(config, progress, sink),
            Benchmark::Ycsb(workload) => ycsb(config, workload, progress, sink),
            Benchmark::Recovery => recovery(config, progress, sink),
            Benchmark::Reclaim => reclaim(config, progress, sink),
            Benchmark::Cleaning => cleaning(config, progress, sink),
            Benchmark::Patterns(chosen) => patterns(config, chosen, progress, sink),
            Benchmark::Memtables(order) => memtables(config, *order, progress, sink),
            Benchmark::Ring(items) => ring(config, items, progress, sink),
            Benchmark::Levels { compacts } => levels(config, *compacts, progress, sink),
            Benchmark::Allocation(sizes) => allocation(config, sizes, progress, sink),
            Benchmark::Steps => steps(config, progress, sink),
            Benchmark::Steady(load) => steady(config, load, progress, sink),
            Benchmark::Util(overwrites) => util(config, overwrites, progress, sink),
            Benchmark::Disorder(overwrites) => recovery_of_overwritten(config, overwrites, progress, sink),
            Benchmark::Transfers { few } => transfers(config, *few, progress, sink),
            Benchmark::NoScans => {
                for design in &config.designs {
                    let not_run = Some("keys have no order");
                    sink(Row { not_run, ..Row::of(design.name(), "run_e", config) });
                }
                Ok(())
            }
        }
    }

    /// Whether it runs designs, and not the medium or parts alone.
    fn is_of_designs(&self) -> bool {
        use Benchmark::{Allocation, Memtables, Patterns, Ring};
        !matches!(self, Patterns(_) | Memtables(_) | Ring(_) | Allocation(_))
    }

    /// Whether any engine can do it, or any that [keeps its keys in order](Benchmark::needs_order).
    pub fn is_of_any_engine(&self) -> bool {
        matches!(self, Benchmark::Ops | Benchmark::Ycsb(_) | Benchmark::Steady(_) | Benchmark::Util(_))
    }

    /// Whether it scans in the order of keys, and so is of engines alone that keep one.
    pub fn needs_order(&self) -> bool {
        matches!(self, Benchmark::Ycsb(workload) if workload.scans())
    }

    /// Whether it is of engines alone that have transactions.
    pub fn needs_transactions(&self) -> bool {
        matches!(self, Benchmark::Transfers { .. })
    }

    /// Runs the benchmark on any engine.
    ///
    /// # Errors
    /// As for each of the benchmarks; [`BenchError::Setting`] for one that measures only our own designs.
    pub fn run_on<E: Engine>(
        &self,
        config: &Config,
        engine: &E,
        roofline: Option<&mut Roofline>,
        progress: &dyn Progress,
        sink: Sink<'_>,
    ) -> Result<(), BenchError> {
        match self {
            Benchmark::Ops => ops_of(config, engine, roofline, progress, sink),
            Benchmark::Ycsb(workload) => ycsb_of(config, workload, engine, roofline, progress, sink),
            Benchmark::Steady(load) => steady_of(config, load, engine, roofline, progress, sink),
            Benchmark::Util(overwrites) => util_of(config, overwrites, engine, roofline, progress, sink),
            // A medium has no limit of transactions to compare them with.
            Benchmark::Transfers { few } => transfers_of(config, *few, engine, progress, sink),
            _ => Err(setting("benchmark", "measures what only Quipu's designs do")),
        }
    }
}
