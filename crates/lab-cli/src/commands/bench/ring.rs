//! `quipu-lab bench ring`: one order over all writes, without an index.

use clap::ValueEnum;
use quipu::MediumKind;
use quipu_bench::Config;
use quipu_bench::size;
use quipu_cli::bench::settings::Basics;
use quipu_cli::failure::{Failure, Outcome};
use quipu_lab::bench::{self, Grants, Items};

const EXAMPLES: &str = "\
Examples:
  quipu-lab bench ring                                          # the batch that is worth it here
  quipu-lab bench ring --threads 2 --batch 50 --grant lock,ticket
  quipu-lab bench ring --threads 16 --batch 64 --buckets 2      # clients with a record each, that meet
  quipu-lab bench ring --medium file --pool /mnt/ssd/ring.pool --records 100k
  quipu-lab bench ring --medium sim --batch 1,10                # fences and lines of a record
  quipu-lab bench paper xp --figure 16                          # all of that, beside what the paper says";

/// Records where no number is given; on the simulator fewer.
const RECORDS: u64 = 2_000_000;
const RECORDS_SIM: u64 = 20_000;

/// Measure the ring: one order over all writes, each durable, without an index.
///
/// Each thread writes items of so many records, which count together or not at all, and waits until each is
/// visible: durable, and all before it too. The share beside is that of the medium's limit for items of these
/// bytes, with a fence each (figure 16 of the paper on an LSM engine on persistent memory).
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Threads at work.
    #[arg(long, value_name = "T", value_parser = size::count::<usize>, default_value = "1")]
    threads: usize,
    /// Records written in all. [default: 2M, on sim 20k]
    #[arg(long, value_name = "N", value_parser = size::count::<u64>)]
    records: Option<u64>,
    /// Records of an item, one or several numbers.
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = size::count::<u64>, default_value = "1,10,50,100")]
    batch: Vec<u64>,
    /// Bytes of a key.
    #[arg(long, value_name = "B", value_parser = size::length, default_value = "8")]
    key_size: usize,
    /// Bytes of a value.
    #[arg(long, value_name = "B", value_parser = size::length, default_value = "16")]
    value_size: usize,
    /// How threads take turns.
    #[arg(long, value_name = "WAY", value_delimiter = ',', default_value = "lock")]
    grant: Vec<Grant>,
    /// Let each thread write one record at a time, and meet others in so many buckets: an item has up to the
    /// batch.
    #[arg(long, value_name = "N", value_parser = size::count::<usize>)]
    buckets: Option<usize>,
    #[command(flatten)]
    basics: Basics,
}

#[derive(Clone, Copy, ValueEnum)]
enum Grant {
    /// The first of those that run.
    Lock,
    /// In the order of their coming, as in the paper.
    Ticket,
}

impl Args {
    /// Runs the benchmark.
    pub fn run(self) -> Result<Outcome, Failure> {
        let is_simulated = self.basics.medium == MediumKind::Sim;
        let records = self.records.unwrap_or(if is_simulated { RECORDS_SIM } else { RECORDS });
        let Args { key_size, value_size, threads, .. } = self;
        let config =
            Config { records, operations: records, key_size, value_size, threads, ..Config::default() };
        let config = self.basics.apply(config);
        let grants = self.grant.iter().map(|grant| match grant {
            Grant::Lock => Grants::Lock,
            Grant::Ticket => Grants::Ticket,
        });
        let items = Items { batches: self.batch, grants: grants.collect(), buckets: self.buckets };
        let mut bench = self.basics.begin(
            format!("One order over {records} writes of {key_size} + {value_size} bytes, without an index."),
            quipu_cli::output::counted(threads as u64, "thread"),
        )?;
        let result = bench.run(config, |config, progress, sink| bench::ring(config, &items, progress, sink));
        bench.end(result)
    }
}
