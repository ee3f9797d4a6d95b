//! `quipu bench queue`: keys are put at the end and taken from the front.

use super::settings::Settings;
use crate::failure::{Failure, Outcome};
use quipu::MediumKind;
use quipu_bench::Config;
use quipu_bench::size;

const EXAMPLES: &str = "\
Examples:
  quipu bench queue
  quipu bench queue --design flatstore-m,xp,nstore --records 10k --ops 1M
  quipu bench queue --design xp --batch 100                 # by range deletes
  quipu bench queue --threads 2 --medium file --pool /mnt/ssd/bench.pool";

/// Keys that are in the queue where no number is given.
const RECORDS: u64 = 10_000;
const RECORDS_SIM: u64 = 100;

/// Operations where no number is given.
const OPERATIONS: u64 = 1_000_000;
const OPERATIONS_SIM: u64 = 10_000;

/// Put keys at the end of a queue and take them from its front.
///
/// An operation is both: a put, and a look for the first key, which is then deleted. Every tenth of the run
/// is told alone: times, DRAM and bytes of the pool stay as they are if what was taken leaves nothing behind.
/// Needs designs that keep keys in order.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    settings: Settings,
    /// Keys that are in the queue, such as 10k. [default: 10k, on sim 100]
    #[arg(long, value_name = "N", value_parser = size::count::<u64>)]
    records: Option<u64>,
    /// Keys that are put and taken. [default: 1M, on sim 10k]
    #[arg(long, value_name = "N", value_parser = size::count::<u64>)]
    ops: Option<u64>,
    /// Keys that are put together and taken together, by a range delete where the design has such.
    #[arg(long, value_name = "N", value_parser = size::count::<usize>, default_value = "1")]
    batch: usize,
    /// Bytes of a key.
    #[arg(long, value_name = "B", value_parser = size::length, default_value = "16")]
    key_size: usize,
    /// Bytes of a value.
    #[arg(long, value_name = "B", value_parser = size::length, default_value = "200")]
    value_size: usize,
    /// Bytes of the pool, such as 1G. [default: room for eight times the keys in the queue, and some more]
    #[arg(long, value_name = "SIZE", value_parser = size::bytes)]
    pool_size: Option<u64>,
}

impl Args {
    /// Runs the benchmark.
    pub fn run(self) -> Result<Outcome, Failure> {
        let is_sim = self.settings.basics.medium == MediumKind::Sim;
        let (records, operations) =
            if is_sim { (RECORDS_SIM, OPERATIONS_SIM) } else { (RECORDS, OPERATIONS) };
        let (records, operations) = (self.records.unwrap_or(records), self.ops.unwrap_or(operations));
        let Args { batch, key_size, value_size, pool_size, .. } = self;
        let sizes =
            Config { records, operations, batch, key_size, value_size, pool_size, ..Config::default() };
        let config = self.settings.apply(sizes);
        let at_once = if batch > 1 { format!(", {batch} at once") } else { String::new() };
        let mut bench = self.settings.begin(format!(
            "A queue of {records} keys of {key_size} + {value_size} bytes: {operations} are put and taken{at_once}."
        ))?;
        let result = bench.run(config, |config, progress, sink| quipu_bench::queue(config, progress, sink));
        bench.end(result)
    }
}
