//! `quipu-rivals transfers`: amounts move between accounts, in engines with transactions.

use crate::args::Settings;
use crate::output::Failure;
use quipu_bench::Config;
use quipu_bench::size;
use quipu_lab::bench::paper::Benchmark;

/// The engines that are measured by default: of each with transactions, the level that is nearest to ours.
const USUAL: &str = "xp,rocksdb-optimistic:process,rocksdb-locking:process,redb:memory,\
                     fjall-optimistic:process,sqlite:process";

#[derive(clap::Args)]
#[command(mut_arg("engine", |engine| engine.default_value(USUAL)))]
pub struct Args {
    #[command(flatten)]
    settings: Settings,
    /// Accounts that all threads meet at.
    #[arg(long, value_name = "N", value_parser = size::count::<u64>, default_value = "10")]
    few: u64,
    /// Seconds for which they do. [default: 2]
    #[arg(long, value_name = "S")]
    seconds: Option<u64>,
    /// Bytes of a key.
    #[arg(long, value_name = "B", default_value_t = 16)]
    key_size: usize,
    /// Bytes of a value.
    #[arg(long, value_name = "B", default_value_t = 200)]
    value_size: usize,
}

impl Args {
    /// Measures, and prints the results.
    pub fn run(self) -> Result<(), Failure> {
        let Args { settings, few, seconds, key_size, value_size } = self;
        if settings.roofline {
            return Err(Failure::Usage("--roofline has no limit of transactions; leave it out".to_owned()));
        }
        let config = settings.config(Config { seconds, key_size, value_size, ..Config::default() })?;
        let Config { records, operations, .. } = config;
        let heading = format!(
            "Transfers between {records} accounts of {key_size} + {value_size} bytes: {operations}, and between {few}"
        );
        settings.measure(&heading, &[Benchmark::Transfers { few }], &config)
    }
}
