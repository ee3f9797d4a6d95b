//! `quipu bench ops`: the basic operations, each alone.

use super::settings::{Settings, Sizes, in_batches};
use crate::args::TopologyChoice;
use crate::failure::{Failure, Outcome};
use quipu_bench::Config;
use quipu_bench::choice::Named;
use quipu_bench::size;
use quipu_bench::workload::KeySet;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  quipu bench ops
  quipu bench ops --records 5M --key-size 16 --value-size 200 --threads 2 --roofline
  quipu bench ops --medium file --pool /mnt/ssd/bench.pool
  quipu bench ops --batch 16                                # log batching
  quipu bench ops --design nstore,flatstore-m --key-size 8 --keys longlat
  quipu bench ops --medium sim --records 20k --json
  quipu bench ops --medium sim --nodes 2 --threads 4        # counts lines of the other node
  quipu bench ops --medium dax --pool /mnt/pmem0/p --part /mnt/pmem1/p --threads 2 --pin";

/// Measure insert, get, get_many, scan, update, blind_delete and remove, each alone.
///
/// Insert puts all records. Get, get_many and update choose among them uniformly. Where the design keeps keys
/// in order, scan reads 100 records from a random one on, and scan_some 1 to 100. Blind_delete and remove
/// delete records in random order; remove also returns whether they were there. Every value read is checked.
/// The benchmark's own work, which counts in every result, is measured alone and printed beside it.
///
/// Keys and values are made ahead, for 64 calls at a time. Get_in_loop and update_in_loop are the same
/// operations with those made between two calls, as many programs do. On the simulator, where that costs
/// nothing, they are left out.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    sizes: Sizes,
    /// The set that the first eight bytes of keys are drawn from, such as longlat; `quipu-lab bench index
    /// --help` describes them all.
    #[arg(long, value_name = "SET", value_parser = KeySet::named, default_value = "uniform")]
    keys: KeySet,
    /// Operations of each phase after the inserts. [default: as many as records]
    #[arg(long, value_name = "N", value_parser = size::count::<u64>)]
    ops: Option<u64>,
    /// Puts that each thread collects and issues together, so that they become durable under one fence (one
    /// for every 32). A put is answered when its batch is durable.
    #[arg(long, value_name = "N", value_parser = size::count::<usize>, default_value = "1")]
    batch: usize,
    /// On the simulator, nodes of the machine, up to 4; threads are at home on them in turn.
    #[arg(long, value_name = "N")]
    nodes: Option<u16>,
    /// A further part of the pool, which must not exist, best on another node; may be repeated.
    #[arg(long = "part", value_name = "PATH")]
    parts: Vec<PathBuf>,
    /// Keep threads on the nodes of the parts, in turn.
    #[arg(long)]
    pin: bool,
    #[command(flatten)]
    topology: TopologyChoice,
    /// Measure the limits of the medium too, in ordinary and in huge pages, and give every result as a share
    /// of one in ordinary pages.
    #[arg(long)]
    roofline: bool,
}

impl Args {
    /// Runs the benchmark.
    pub fn run(self) -> Result<Outcome, Failure> {
        let config = self.settings.apply(self.sizes.config(self.settings.basics.medium));
        let operations = self.ops.unwrap_or(config.records);
        let (nodes, pins, parts) = (self.nodes, self.pin, self.parts.clone());
        let config = Config { nodes, pins, parts, topology: self.topology.told(), ..config };
        let (key_set, batch, roofline) = (self.keys, self.batch, self.roofline);
        let config = Config { operations, key_set, batch, roofline, ..config };
        let mut bench = self.settings.begin(format!(
            "Basic operations on {} records of {} + {} bytes, keys {}, {operations} operations a phase{}, seed {}.",
            config.records,
            config.key_size,
            config.value_size,
            config.key_set.name(),
            in_batches(config.batch),
            config.seed
        ))?;
        let result = bench.run(config, |config, progress, sink| quipu_bench::ops(config, progress, sink));
        bench.end(result)
    }
}
