//! `quipu-lab bench index`: indexes alone, on sets of keys.

use quipu_bench::Config;
use quipu_bench::choice::{OneOrAll, chosen};
use quipu_cli::bench::settings::Basics;
use quipu_cli::failure::{Failure, Outcome};
use quipu_cli::output;
use quipu_lab::bench::{self, HouseIndex, IndexLoad, index_table};

const EXAMPLES: &str = "\
Examples:
  quipu-lab bench index                                         # every index, uniform keys
  quipu-lab bench index --index alex,masstree --keys all --records 10M
  quipu-lab bench index --index hash,cceh --threads 2
  quipu-lab bench index --index alex --keys sequential --order ascending --json
  quipu-lab bench index --index alex,masstree --keys decimal8,decimal16,fields --order random,multiplicative
  quipu-lab bench index --index cceh-pm,fastfair,buckets --medium sim   # lines and fences of an operation

Fields of the JSON objects: design (the index), phase (insert, get, get_many of 32, scan of 100, remove; bulk_load and loaded_get of an \
index that can be loaded in one go), keys, order, medium, threads, records, ops, seconds, mops, p50_ns, p99_ns, p999_ns; of insert and \
bulk_load, dram_bytes_per_record (as allocated), resident_bytes_per_record (growth of the process) and pm_bytes_per_record; on sim, in place of times and DRAM, fences_per_op, lines_flushed_per_op, \
lines_read_per_op, media_write_bytes_per_op, remote_writes_per_op, remote_reads_per_op, modelled_ns_per_op.";

/// Measure indexes alone, on sets of keys that are easy and hard for indexes that learn.
///
/// An index names the records of a table in DRAM, whose keys are numbers in eight bytes, or text. All are
/// inserted into an empty index, read one by one and in batches of 32, scanned by 100 from every tenth, and
/// removed. An index in DRAM that can be loaded in one go from what a clean close leaves is loaded so, by one
/// thread, and read again. Each answer must be the word that was inserted. An index without keys reads them
/// in the table.
///
/// Indexes: alex, masstree, hash and cceh are in DRAM. Those in the pool are cceh-pm, fastfair, buckets and
/// buckets-locks. Alex, masstree and fastfair keep keys in order and are scanned.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Indexes, separated by commas, or all.
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "all")]
    index: Vec<OneOrAll<HouseIndex>>,
    #[command(flatten)]
    load: IndexLoad,
    #[command(flatten)]
    basics: Basics,
}

impl Args {
    /// Runs the benchmark.
    pub fn run(self) -> Result<Outcome, Failure> {
        let Args { index, load, basics } = self;
        let config = load.apply(basics.apply(Config::default()));
        let threads = output::counted(config.threads as u64, "thread");
        let mut bench = basics.begin(load.heading(&config), threads)?.laid_out_by(index_table);
        let indexes = chosen(&index);
        let result = bench
            .run(config, |config, progress, sink| bench::indexes(config, &load, &indexes, progress, sink));
        bench.end(result)
    }
}
