//! `quipu-lab bench util`: overwriting at a given utilization.

use quipu_bench::Config;
use quipu_bench::size;
use quipu_cli::bench::settings::{Settings, Sizes, in_batches};
use quipu_cli::failure::{Failure, Outcome};
use quipu_lab::bench::{self, Keys, Overwrites};

const EXAMPLES: &str = "\
Examples:
  quipu-lab bench util
  quipu-lab bench util --utilization 50,70,80,90 --zipf 0.99 --uniform --plot util.svg
  quipu-lab bench util --design flatstore-h --key-size 8 --value-size 48 --put 50 --utilization 50,80,90
  quipu-lab bench util --design flatstore-h --key-size 8 --value-size 48 --put 50 --set pacman=off
  quipu-lab bench util --key-size 8 --etc --put 50 --utilization 80
  quipu-lab bench util --utilization 90 --records 5M --seconds 60 --json
  quipu-lab bench util --design flatstore-h --put 50 --batch 16  # log batching
  quipu-lab bench util --utilization 90 --no-cleaner            # writers compact by themselves
  quipu-lab bench util --utilization 80 --medium file --pool /mnt/ssd/bench.pool --zone-size 64K

Fields of the JSON objects beside those of every benchmark: batch (puts issued together, if not each alone), utilization (per cent, as asked for), distribution, put (per cent), \
segments (that puts may use), windows (Mops/s of each; the last three make the row), steady (whether those three \
are within 5 %), write_amplification (bytes that users and compaction wrote, over those that users wrote), \
moved_bytes, moved_records (by compaction), moved_by_hint (share of these that told where the index has them), \
cleaned_bytes, cleaned_bytes_per_second, owed_zones (missing to the number that compaction leaves free for puts, at the end), \
helped_writes (that took a step of compaction first), stalled_writes (that found no room and waited), stalled_ms, reserve_bytes, metadata_bytes; where there are gets and puts, get_p50_ns, get_p99_ns, put_p50_ns, \
put_p99_ns. What compaction did is that of the last three windows.";

/// Records of the simulator where no number is given: enough for a thousand of the smallest segments.
const RECORDS_SIM: u64 = 80_000;

/// Measure overwriting at given utilizations, alone or among gets, until throughput is steady.
///
/// Utilization is bytes of live records, with headers and alignment, over bytes of all segments that puts may
/// use. Each utilization has a pool of its own, sized so that the records fill it up to there. Then records
/// are overwritten in windows of one pool volume, until three windows in a row are within 5 %. A run without
/// such windows ends after 20. Every get must find the last value written before it. In the end every record
/// is read and must have the last value written to it.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    sizes: Sizes,
    /// Per cent of the segments that live records take, one or several separated by commas.
    #[arg(long, value_name = "PCT", value_delimiter = ',', default_value = "50,70,80,90")]
    utilization: Vec<u64>,
    /// Choose the records to overwrite uniformly; together with --zipf, both are measured.
    #[arg(long)]
    uniform: bool,
    /// Choose them by YCSB's scrambled zipfian distribution. [default: 0.99, unless --uniform or --etc is
    /// given]
    #[arg(long, value_name = "THETA", num_args = 0..=1, default_missing_value = "0.99")]
    zipf: Option<f64>,
    /// Choose them, and sizes of values too, as in Facebook's ETC pool: 1 to 13, 14 to 300 and up to 1024
    /// bytes, zipfian over the first two classes and uniform over the third.
    #[arg(long)]
    etc: bool,
    /// Per cent of the operations that are puts; the others are gets. With less than 25, windows end before
    /// they have written a pool volume.
    #[arg(long, value_name = "PCT", default_value_t = 100)]
    put: u64,
    /// Puts that each thread collects and issues together, so that they become durable under one fence (one
    /// for every 32). A put is answered when its batch is durable, and its latency counts from when it came;
    /// a get of a key that waits in the batch has that issued first.
    #[arg(long, value_name = "N", value_parser = size::count::<usize>, default_value = "1")]
    batch: usize,
    /// Seconds to measure at least at each utilization.
    #[arg(long, value_name = "S", default_value_t = 0.0)]
    seconds: f64,
    /// Bytes of a segment, a power of two from 16K to 4M. [default: the largest that makes 1000 of them]
    #[arg(long, value_name = "SIZE", value_parser = size::bytes)]
    zone_size: Option<u64>,
    /// Leave compaction to the writers: without it, a thread of the store's own compacts ahead of them, where
    /// the machine has more than one processor.
    #[arg(long)]
    no_cleaner: bool,
    /// Measure the limits of the medium too, and give every result as a share of one.
    #[arg(long)]
    roofline: bool,
}

impl Args {
    /// Runs the benchmark.
    pub fn run(self) -> Result<Outcome, Failure> {
        let config = self.settings.apply(self.sizes.config_with(self.settings.basics.medium, RECORDS_SIM));
        let cleaner = config.cleaner && !self.no_cleaner;
        let batch = self.batch;
        let config = Config { zone_size: self.zone_size, cleaner, batch, roofline: self.roofline, ..config };
        let zipf = self.zipf.or((!self.uniform && !self.etc).then_some(0.99)).map(Keys::Zipf);
        let others = [(self.uniform, Keys::Uniform), (self.etc, Keys::Etc)];
        let others = others.into_iter().filter_map(|(asked, keys)| asked.then_some(keys));
        let overwrites = Overwrites {
            utilizations: self.utilization,
            keys: zipf.into_iter().chain(others).collect(),
            put: self.put,
            seconds: self.seconds,
            ..Overwrites::default()
        };
        let mut bench = self.settings.begin(format!(
            "Overwriting {} records of {} + {} bytes{}, {} % puts{}, until throughput is steady, {} a cleaner, seed {}.",
            config.records,
            config.key_size,
            config.value_size,
            if self.etc { " (etc: sizes of its own)" } else { "" },
            self.put,
            in_batches(batch),
            if cleaner { "with" } else { "without" },
            config.seed
        ))?;
        let result =
            bench.run(config, |config, progress, sink| bench::util(config, &overwrites, progress, sink));
        bench.end(result)
    }
}
