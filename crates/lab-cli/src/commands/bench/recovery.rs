//! `quipu-lab bench recovery`: how long opening takes.

use quipu_cli::bench::settings::{Settings, Sizes};
use quipu_cli::failure::{Failure, Outcome};
use quipu_lab::bench;

const EXAMPLES: &str = "\
Examples:
  quipu-lab bench recovery
  quipu-lab bench recovery --records 10M --threads 2
  quipu-lab bench recovery --medium file --pool /mnt/ssd/bench.pool --json";

/// Measure opening: without a close before it, and after one.
///
/// Loads the records, drops the store without closing it and opens it (phase recovery); then closes it and
/// opens it again (phase reopen). An operation is a record; the threads recover together.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    sizes: Sizes,
}

impl Args {
    /// Runs the benchmark.
    pub fn run(self) -> Result<Outcome, Failure> {
        let config = self.settings.apply(self.sizes.config(self.settings.basics.medium));
        let mut bench = self.settings.begin(format!(
            "Opening a pool of {} records of {} + {} bytes, seed {}.",
            config.records, config.key_size, config.value_size, config.seed
        ))?;
        let result = bench.run(config, |config, progress, sink| bench::recovery(config, progress, sink));
        bench.end(result)
    }
}
