//! The benchmarks that run on all engines alike: those of papers, and transfers.

use crate::engines::Choice;
use quipu_bench::{BenchError, Config, Engine, Progress, Roofline, Sink, transfers, transfers_of};
use quipu_lab::bench::paper::Benchmark;

/// A benchmark for our own designs and for any other engine.
pub trait Load {
    /// The settings under which it runs, if some of them are its own.
    fn config(&self, config: &Config) -> Config {
        config.clone()
    }

    /// Why an engine cannot take part, if it cannot.
    fn refusal(&self, choice: &Choice) -> Option<&'static str>;

    /// Runs it on the designs of the settings.
    ///
    /// # Errors
    /// [`BenchError`] of the benchmark.
    fn run(&self, config: &Config, progress: &dyn Progress, sink: Sink<'_>) -> Result<(), BenchError>;

    /// Runs it on any engine.
    ///
    /// # Errors
    /// [`BenchError`] of the benchmark.
    fn run_on<E: Engine>(
        &self,
        config: &Config,
        engine: &E,
        roofline: Option<&mut Roofline>,
        progress: &dyn Progress,
        sink: Sink<'_>,
    ) -> Result<(), BenchError>;
}

impl Load for Benchmark {
    fn config(&self, config: &Config) -> Config {
        match self {
            Benchmark::Ycsb(workload) => config.of_workload(workload),
            _ => config.clone(),
        }
    }

    fn refusal(&self, choice: &Choice) -> Option<&'static str> {
        let without = self.needs_order() && !choice.kind.is_ordered();
        without.then_some("keeps no order of keys, and so cannot scan; leave it or the scans out")
    }

    fn run(&self, config: &Config, progress: &dyn Progress, sink: Sink<'_>) -> Result<(), BenchError> {
        Benchmark::run(self, config, progress, sink)
    }

    fn run_on<E: Engine>(
        &self,
        config: &Config,
        engine: &E,
        roofline: Option<&mut Roofline>,
        progress: &dyn Progress,
        sink: Sink<'_>,
    ) -> Result<(), BenchError> {
        Benchmark::run_on(self, config, engine, roofline, progress, sink)
    }
}

/// [`transfers`](quipu_bench::transfers()) between accounts.
pub struct Transfers {
    /// The accounts that all threads meet at.
    pub few: u64,
}

impl Load for Transfers {
    fn refusal(&self, choice: &Choice) -> Option<&'static str> {
        let without = !choice.kind.has_transactions();
        without.then_some("has no transactions; leave it out, or name its form that has them (see engines)")
    }

    fn run(&self, config: &Config, progress: &dyn Progress, sink: Sink<'_>) -> Result<(), BenchError> {
        transfers(config, self.few, progress, sink)
    }

    /// A medium has no limit of transactions to compare them with.
    fn run_on<E: Engine>(
        &self,
        config: &Config,
        engine: &E,
        _roofline: Option<&mut Roofline>,
        progress: &dyn Progress,
        sink: Sink<'_>,
    ) -> Result<(), BenchError> {
        transfers_of(config, self.few, engine, progress, sink)
    }
}
