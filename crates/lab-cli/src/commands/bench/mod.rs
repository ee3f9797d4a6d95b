//! `quipu-lab bench`: measures the store and its mechanisms.

mod index;
mod paper;
mod recovery;
mod ring;
mod steady;
mod util;

use clap::Subcommand;
use quipu_cli::bench::{FIELDS, ops, queue, transfers, ycsb};
use quipu_cli::failure::{Failure, Outcome};

const EXAMPLES: &str = "\
Examples:
  quipu-lab bench steady --seconds 60 --zipf 0.99               # by the second, and stalls
  quipu-lab bench util --utilization 50,90 --zipf 0.99          # with compaction at work
  quipu-lab bench recovery --records 10M --json
  quipu-lab bench index --index alex,masstree --keys uniform,osm   # indexes alone
  quipu-lab bench ring --threads 2 --batch 1,50                 # order without an index
  quipu-lab bench paper viper --figure 6,10                     # a paper's evaluation beside ours
  quipu-lab bench paper xp --figure 14,16                       # memtables and the ring of another
  quipu-lab bench ycsb a b c d f                                # as in quipu bench, and ops and queue too";

/// Measure the store and its mechanisms, checking every value that is read.
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
    Steady(steady::Args),
    Util(util::Args),
    Recovery(recovery::Args),
    Index(index::Args),
    Ring(ring::Args),
    Paper(paper::Args),
}

impl Args {
    /// Runs the benchmark.
    pub fn run(self) -> Result<Outcome, Failure> {
        match self.benchmark {
            Benchmark::Ops(args) => args.run(),
            Benchmark::Queue(args) => args.run(),
            Benchmark::Transfers(args) => args.run(),
            Benchmark::Ycsb(args) => args.run(),
            Benchmark::Steady(args) => args.run(),
            Benchmark::Util(args) => args.run(),
            Benchmark::Recovery(args) => args.run(),
            Benchmark::Index(args) => args.run(),
            Benchmark::Ring(args) => args.run(),
            Benchmark::Paper(args) => args.run(),
        }
    }
}
