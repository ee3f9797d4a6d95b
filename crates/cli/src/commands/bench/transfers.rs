//! `quipu bench transfers`: amounts move between accounts.

use super::settings::Settings;
use crate::failure::{Failure, Outcome};
use quipu::MediumKind;
use quipu_bench::Config;
use quipu_bench::size;

const EXAMPLES: &str = "\
Examples:
  quipu bench transfers --design xp
  quipu bench transfers --design xp --threads 8 --few 10 --seconds 10
  quipu bench transfers --design xp --threads 2 --medium file --pool /mnt/ssd/bench.pool";

/// Accounts and transfers where no number is given.
const RECORDS: u64 = 1_000_000;
const RECORDS_SIM: u64 = 1_000;

/// Move amounts between accounts: two reads and two writes, by calls of their own and by transactions.
///
/// Each thread has accounts of its own in the first two rows. In the third, all threads move amounts between
/// the same few for some seconds. The row tells how often a transfer was tried, and how the thread that got
/// on least compares with the mean. Needs a design with transactions.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    settings: Settings,
    /// Accounts, such as 1M. [default: 1M, on sim 1k]
    #[arg(long, value_name = "N", value_parser = size::count::<u64>)]
    records: Option<u64>,
    /// Transfers of the first two rows. [default: as many as accounts]
    #[arg(long, value_name = "N", value_parser = size::count::<u64>)]
    ops: Option<u64>,
    /// Accounts that all threads meet at.
    #[arg(long, value_name = "N", value_parser = size::count::<u64>, default_value = "10")]
    few: u64,
    /// Seconds for which they do. [default: 2]
    #[arg(long, value_name = "S")]
    seconds: Option<u64>,
    /// Bytes of a key.
    #[arg(long, value_name = "B", value_parser = size::length, default_value = "16")]
    key_size: usize,
    /// Bytes of a value.
    #[arg(long, value_name = "B", value_parser = size::length, default_value = "200")]
    value_size: usize,
}

impl Args {
    /// Runs the benchmark.
    pub fn run(self) -> Result<Outcome, Failure> {
        let is_sim = self.settings.basics.medium == MediumKind::Sim;
        let records = self.records.unwrap_or(if is_sim { RECORDS_SIM } else { RECORDS });
        let Args { few, seconds, key_size, value_size, ops, .. } = self;
        let operations = ops.unwrap_or(records);
        let sizes = Config { records, operations, seconds, key_size, value_size, ..Config::default() };
        let config = self.settings.apply(sizes);
        let mut bench = self.settings.begin(format!(
            "Transfers between {records} accounts of {key_size} + {value_size} bytes: {operations}, and between {few}."
        ))?;
        let result =
            bench.run(config, |config, progress, sink| quipu_bench::transfers(config, few, progress, sink));
        bench.end(result)
    }
}
