//! The arguments of the benchmark, for all programs that run it.

use super::keys::IndexKeys;
use quipu::MediumKind;
use quipu_bench::choice::{OneOrAll, chosen};
use quipu_bench::config::Config;
use quipu_bench::distinct::distinct;
use quipu_bench::size;

/// Records where no number is given.
const RECORDS: u64 = 1_000_000;
/// The same on the simulator, whose counts do not get more exact with more of them.
const RECORDS_SIM: u64 = 20_000;

/// The order in which records are inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum IndexOrder {
    /// Any order.
    Random,
    /// Each key 618,033,989 behind the one before, around and around.
    Multiplicative,
    /// The order of keys; each thread has a part of its own.
    Ascending,
}

impl IndexOrder {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            IndexOrder::Random => "random",
            IndexOrder::Multiplicative => "multiplicative",
            IndexOrder::Ascending => "ascending",
        }
    }
}

/// Keys, and how many.
#[derive(Clone, Debug, clap::Args)]
pub struct IndexLoad {
    /// Sets of keys, separated by commas, or all. These are numbers in eight bytes: uniform (any 64 bits), fb
    /// (below 2^38, 21 far above), prefix (3 tenants, four letters, 24 bits), sequential. So are longlat
    /// (longitude and latitude of places around cities) and osm (their bits by turns). These are text:
    /// decimal8 and decimal16 (numbers of so many digits), fields (such as user:0123456789:field7).
    #[arg(long, value_name = "SET", value_delimiter = ',', default_value = "uniform")]
    keys: Vec<OneOrAll<IndexKeys>>,
    /// Orders in which records are inserted, separated by commas, each into an index of its own.
    #[arg(long, value_enum, value_name = "ORDER", value_delimiter = ',', default_value = "random")]
    order: Vec<IndexOrder>,
    /// Records, such as 200k or 10M. [default: 1M, on sim 20k]
    #[arg(long, value_name = "N", value_parser = size::count::<u64>)]
    records: Option<u64>,
    /// Threads at work.
    #[arg(long, value_name = "T", value_parser = size::count::<usize>, default_value = "1")]
    threads: usize,
}

impl IndexLoad {
    /// The sets of keys, each once.
    pub fn keys(&self) -> Vec<IndexKeys> {
        chosen(&self.keys)
    }

    /// The orders of insertion, each once.
    pub fn orders(&self) -> Vec<IndexOrder> {
        distinct(self.order.iter().copied())
    }

    /// Records and threads, over what `config` says of all else.
    pub fn apply(&self, config: Config) -> Config {
        let default = if config.medium == MediumKind::Sim { RECORDS_SIM } else { RECORDS };
        let (records, threads) = (self.records.unwrap_or(default), self.threads);
        Config { records, operations: records, threads, key_size: 8, ..config }
    }

    /// The measurement in words.
    pub fn heading(&self, config: &Config) -> String {
        let Config { records, threads, seed, .. } = config;
        let threads = if *threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") };
        let lengths = distinct(self.keys().iter().map(|keys| keys.length().to_string())).join(", ");
        let orders = self.orders().iter().map(|order| order.name()).collect::<Vec<_>>().join(", ");
        let keys = format!("{records} keys of {lengths} bytes");
        format!("Indexes of {keys}, inserted in {orders} order, {threads}, seed {seed}.")
    }
}
