//! `quipu bench`: measures the store.

pub mod ops;
mod place;
pub mod queue;
pub mod settings;
pub mod transfers;
pub mod ycsb;

use crate::failure::{Failure, Outcome};
use clap::Subcommand;

const EXAMPLES: &str = "\
Examples:
  quipu bench ycsb a b c d f
  quipu bench ops --records 5M --value-size 200 --roofline
  quipu bench ops --medium file --pool /mnt/ssd/bench.pool --threads 2
  quipu bench queue --design flatstore-m,xp                 # put at the end, take from the front
  quipu bench transfers --design xp --threads 2             # transactions
  quipu bench ops --medium sim                              # exact costs in place of times
  quipu bench ops --roofline --plot ops.svg                 # a picture beside the table
  quipu bench ops --design viper --set offset-map=pm        # a setting of the design";

/// The fields of the objects that benchmarks print, for their help.
pub const FIELDS: &str = "\
Fields of the JSON objects: design, settings (if any were chosen), phase, medium, threads, records, ops, seconds, mops, p50_ns, p99_ns, \
p999_ns, dram_bytes_per_record, pm_bytes_per_record; with --batch, of puts, batch; with --roofline also roofline, the share of the limit; \
of transactions tries_per_op and least_share; where a put returned since another had overwritten it, eliminated_per_op; where a cache answered gets, cache_hits_per_op; with \
--keys, the set, keys; on sim, in place of times and DRAM, fences_per_op, lines_flushed_per_op, lines_read_per_op, \
media_write_bytes_per_op, remote_writes_per_op, remote_reads_per_op, modelled_ns_per_op (what one thread would wait, by a model of Optane). What was not measured is left out.";

/// Measure the store, checking every value that is read.
#[derive(clap::Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{FIELDS}"))]
pub struct Args {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Subcommand)]
enum Benchmark {
    Ops(ops::Args),
    Queue(queue::Args),
    Transfers(transfers::Args),
    Ycsb(ycsb::Args),
}

impl Args {
    /// Runs the benchmark.
    pub fn run(self) -> Result<Outcome, Failure> {
        match self.benchmark {
            Benchmark::Ops(args) => args.run(),
            Benchmark::Queue(args) => args.run(),
            Benchmark::Transfers(args) => args.run(),
            Benchmark::Ycsb(args) => args.run(),
        }
    }
}
