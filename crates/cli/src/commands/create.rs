//! `quipu create`: makes a pool, and says what it is good for.

use super::info;
use crate::args::{LevelsChoice, PoolMedium, TopologyChoice, pool_medium};
use crate::failure::{Failure, Outcome};
use crate::output;
use clap::ValueEnum;
use quipu::internals::FreeList;
use quipu::{Design, Durability, Options, Setting, Store};
use quipu_bench::{arguments, size};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  quipu create animals.pool --size 4G
  quipu create /mnt/pmem/animals.pool --size 64G --medium dax
  quipu create small.pool --size 16M --zone-size 16K --free-list volatile
  quipu create /mnt/pmem0/wide.pool --size 128G --part /mnt/pmem1/wide.part
  quipu create slots.pool --size 1G --design viper --set form=fixed:16:200 --set offset-map=pm

Fields of the JSON object: those of `quipu info`.";

/// Make a new pool.
///
/// The pool is a file of the given size, which takes disk space only as it fills, or the beginning of a
/// devdax device. Its medium decides which failures its contents survive; they are printed, with the
/// evidence.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The file to make, which must not exist, or a devdax device.
    pool: PathBuf,
    /// Bytes of the pool, such as 512M or 4G.
    #[arg(long, value_parser = size::pool)]
    size: u64,
    /// The design; `quipu designs` lists them.
    #[arg(long, value_name = "NAME", default_value_t, value_parser = arguments::design)]
    design: Design,
    /// A setting that the pool keeps; may be repeated. `quipu designs` lists those of each design.
    #[arg(long, value_name = "NAME=VALUE", value_parser = arguments::assignment)]
    set: Vec<(String, String)>,
    /// Bytes of a zone, a power of two from 16K to 4M. A value above a quarter of it takes zones of its own.
    /// [default: a 256th of the pool, from 64K to 4M]
    #[arg(long, value_name = "SIZE", value_parser = size::bytes)]
    zone_size: Option<u64>,
    /// The medium below the pool: auto, dax, dram or file. `auto` finds out.
    #[arg(long, default_value = "auto", value_parser = pool_medium)]
    medium: PoolMedium,
    /// A further part of the pool: a file to make, or a devdax device, best on another node; may be repeated.
    /// The size is shared equally among all parts, the pool's own file included.
    #[arg(long = "part", value_name = "PATH")]
    parts: Vec<PathBuf>,
    /// The nodes of all parts, the pool's own file first. [default: as the system reports]
    #[arg(long, value_name = "NODE", value_delimiter = ',')]
    nodes: Vec<u16>,
    #[command(flatten)]
    topology: TopologyChoice,
    #[command(flatten)]
    levels: LevelsChoice,
    /// The failures that an acknowledged write survives, on a file: process, interval, interval:MILLISECONDS
    /// or always.
    #[arg(long, default_value_t)]
    durability: Durability,
    /// How free space is remembered.
    #[arg(long, value_enum, default_value_t)]
    free_list: FreeListChoice,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum FreeListChoice {
    /// By a log-free list in the pool.
    #[default]
    Persistent,
    /// By a list in DRAM, made anew at every open.
    Volatile,
}

impl Args {
    /// Makes the pool.
    pub fn run(self) -> Result<Outcome, Failure> {
        let mut options = Options::new()
            .design(self.design)
            .size(self.size)
            .medium(self.medium.0)
            .durability(self.durability)
            .levels(self.levels.told())
            .nodes(self.nodes.iter().copied())
            .topology(self.topology.told())
            .with(|options| {
                options.zone_size = self.zone_size;
                options.free_list = match self.free_list {
                    FreeListChoice::Persistent => FreeList::Persistent,
                    FreeListChoice::Volatile => FreeList::Volatile,
                }
            });
        options = self.parts.iter().fold(options, |options, part| options.part(part));
        for (name, value) in &self.set {
            options = options.set(name, value)?;
            if !Setting::find(self.design, name)?.is_kept() {
                return Err(Failure::Usage(format!(
                    "--set {name}={value}: a pool does not store this setting; each program that opens the pool chooses {name}"
                )));
            }
        }
        let store = Store::create(&self.pool, &options)?;
        let (statement, stats, count) = (store.statement(), store.stats(), store.parts().len());
        let object = info::object(&self.pool, &store, &statement)?;
        store.close()?;
        output::told(self.json, &object, || {
            let [pool_size, zone_size] = [stats.pool_bytes, stats.zone_bytes].map(size::human);
            let parts = if count > 1 { format!(", {count} parts") } else { String::new() };
            format!(
                "Created {}: {pool_size} in {} zones of {zone_size}{parts}, design {}.\n{}",
                self.pool.display(),
                stats.zones,
                self.design,
                output::wrapped("", &statement.to_string()),
            )
        })?;
        Ok(Outcome::Fine)
    }
}
