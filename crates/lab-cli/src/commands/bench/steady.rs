//! `quipu-lab bench steady`: puts and gets for a fixed time.

use quipu_bench::Config;
use quipu_bench::size;
use quipu_cli::bench::settings::{Settings, Sizes};
use quipu_cli::failure::{Failure, Outcome};
use quipu_lab::bench::{self, Keys, SteadyLoad};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  quipu-lab bench steady
  quipu-lab bench steady --seconds 600 --records 8M --value-size 100 --threads 2 --plot steady.svg
  quipu-lab bench steady --design quipu,flatstore-m,xp --put 100 --zipf 0.99 --json
  quipu-lab bench steady --medium file --pool /mnt/ssd/bench.pool --pool-size 4G

Fields of the JSON objects beside those of every benchmark: distribution, put (per cent), mops_by_second (an array), median_second_mops, \
slowest_second_mops, slowest_over_median; get_p50_ns, get_p99_ns, get_p999_ns, get_max_ns and the same of put, from every call; \
stalls (calls of more than 100 ms), stalls_of_store (those during which an idle thread beside the load was in time), stalls_of_machine (how often that \
thread woke up more than 100 ms late), and of each the longest: longest_stall_ms, longest_stall_of_store_ms, longest_stall_of_machine_ms; \
disk_read_bytes, disk_written_bytes (by this process, where the system counts them).";

/// Measure puts and gets for a fixed time: throughput by the second, the longest calls, and stalls.
///
/// All records are loaded, then each thread puts and gets records that it chooses among all, until the time
/// is over. Every call is timed. A call of more than 100 ms is a stall; an idle thread beside the load tells
/// whether the whole machine stood still meanwhile. A pool without a size has room for all records twice, so
/// that half of it is live.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    sizes: Sizes,
    /// Seconds that it lasts.
    #[arg(long, value_name = "S", value_parser = size::count::<u64>, default_value = "60")]
    seconds: u64,
    /// Per cent of the operations that are puts; the others are gets.
    #[arg(long, value_name = "PCT", default_value_t = 50)]
    put: u64,
    /// Choose records by YCSB's scrambled zipfian distribution. [default: uniformly]
    #[arg(long, value_name = "THETA", num_args = 0..=1, default_missing_value = "0.99")]
    zipf: Option<f64>,
    /// Bytes of the pool, such as 2G. [default: room for all records twice]
    #[arg(long, value_name = "SIZE", value_parser = size::bytes)]
    pool_size: Option<u64>,
    /// A folder in which designs with levels keep the data for which the pool has no room. [default: one
    /// beside the pool's file, or where temporary files are]
    #[arg(long, value_name = "DIR", requires = "pool_size")]
    levels: Option<PathBuf>,
    /// Measure the limits of the medium too, and give every result as a share of one.
    #[arg(long)]
    roofline: bool,
}

impl Args {
    /// Runs the benchmark.
    pub fn run(self) -> Result<Outcome, Failure> {
        let Args { pool_size, roofline, seconds, put, .. } = self;
        let levels = self.levels.clone();
        let config = self.settings.apply(self.sizes.config(self.settings.basics.medium));
        let config = Config { pool_size, levels, roofline, ..config };
        let load = SteadyLoad { keys: self.zipf.map_or(Keys::Uniform, Keys::Zipf), put, seconds };
        let Config { records, key_size, value_size, seed, .. } = config;
        let mut bench = self.settings.begin(format!(
            "{seconds} s of {put} % puts, keys {}, among {records} records of {key_size} + {value_size} bytes, seed {seed}.",
            load.keys
        ))?;
        let result = bench.run(config, |config, progress, sink| bench::steady(config, &load, progress, sink));
        bench.end(result)
    }
}
