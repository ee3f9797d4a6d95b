//! `quipu bench ycsb`: workloads of YCSB.

use super::settings::{Settings, in_batches};
use crate::failure::{Failure, Outcome};
use quipu::MediumKind;
use quipu_bench::Config;
use quipu_bench::size;
use quipu_bench::workload::Workload;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  quipu bench ycsb a b c d f
  quipu bench ycsb a --records 5M --ops 5M --value-size 200 --threads 2
  quipu bench ycsb a e --design xp --batch 100 --seconds 60 --pool-size 1G
  quipu bench ycsb workloads/mine.properties --medium file --roofline

Fields of the JSON objects beside those of every benchmark: disk_read_bytes and disk_written_bytes, the bytes that this process fetched \
from disks and sent to them during the phase, where the system counts them. What the page cache answers, and files in memory, do not count; \
a page counts as written when it becomes dirty.";

/// Records and operations of a published workload: beyond any cache, in a pool that fits into 2 GiB, and
/// through in seconds.
const RECORDS: u64 = 500_000;

/// The same on the simulator.
const RECORDS_SIM: u64 = 5_000;

/// Bytes of the longest key that YCSB makes without padding: `user` and nineteen digits.
const LONGEST_KEY: usize = 23;

/// Load and run workloads of YCSB.
///
/// Each is loaded into a pool of its own (phase load_X) and run (phase run_X). Workload e scans, so it needs
/// a design that keeps keys in order.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Letters from a to f, or property files of YCSB.
    #[arg(required = true, value_name = "WORKLOAD")]
    workloads: Vec<String>,
    #[command(flatten)]
    settings: Settings,
    /// Records loaded, such as 200k or 5M. [default: 500k, on sim 5k; of a property file its own]
    #[arg(long, value_name = "N", value_parser = size::count::<u64>)]
    records: Option<u64>,
    /// Operations of the run. [default: as many as records; of a property file its own]
    #[arg(long, value_name = "N", value_parser = size::count::<u64>)]
    ops: Option<u64>,
    /// Run each workload for so many seconds, in place of a number of operations. The pool has room for
    /// --ops of them, unless its size is given; updates beyond these wait for compaction, and inserts fail.
    #[arg(long, value_name = "S", value_parser = size::count::<u64>)]
    seconds: Option<u64>,
    /// Bytes of the pool, such as 2G. [default: room for all that is written]
    #[arg(long, value_name = "SIZE", value_parser = size::bytes)]
    pool_size: Option<u64>,
    /// A folder in which designs with levels keep the data for which the pool has no room. [default: one
    /// beside the pool's file, or where temporary files are]
    #[arg(long, value_name = "DIR", requires = "pool_size")]
    levels: Option<PathBuf>,
    /// Puts of the load that each thread collects and writes as one batch: all of it or nothing, of designs
    /// that have such batches.
    #[arg(long, value_name = "N", value_parser = size::count::<usize>, default_value = "1")]
    batch: usize,
    /// Bytes of a key, by zeros before its number. [default: up to 23, as the number has digits]
    #[arg(long, value_name = "B", value_parser = size::length)]
    key_size: Option<usize>,
    /// Bytes of a value. [default: 1000; of a property file its own]
    #[arg(long, value_name = "B", value_parser = size::length)]
    value_size: Option<usize>,
    /// Measure the limits of the medium too, and give every result as a share of one.
    #[arg(long)]
    roofline: bool,
}

impl Args {
    /// Runs the workloads one after another.
    pub fn run(self) -> Result<Outcome, Failure> {
        let workloads =
            self.workloads.iter().map(|name| self.workload(name)).collect::<Result<Vec<_>, _>>()?;
        let Args { roofline, batch, seconds, pool_size, .. } = self;
        let levels = self.levels.clone();
        let config = self.settings.apply(Config::default());
        let config = Config { roofline, batch, seconds, pool_size, levels, ..config };
        // Found out now and not after the workloads before it.
        let mut scans = workloads.iter().filter(|workload| workload.scans());
        scans.try_for_each(|workload| config.check_order(&workload.name))?;
        let described: Vec<String> = workloads.iter().map(|workload| self.describe(workload)).collect();
        let same = described.windows(2).all(|pair| pair[0] == pair[1]);
        let described = if same { described.first().cloned() } else { None };
        let mut bench = self.settings.begin(format!(
            "YCSB {}{}, seed {}.",
            self.workloads.join(" "),
            described.map_or(String::new(), |what| format!(": {what}")),
            config.seed
        ))?;
        let result = workloads.iter().try_for_each(|workload| {
            bench.run(config.clone(), |config, progress, sink| {
                quipu_bench::ycsb(config, workload, progress, sink)
            })
        });
        bench.end(result)
    }

    /// A workload by its letter or file, with what the flags say in place of what it says itself.
    fn workload(&self, name: &str) -> Result<Workload, Failure> {
        let mut workload = match Workload::published(name) {
            Some(workload) => {
                let sim = self.settings.basics.medium == MediumKind::Sim;
                let records = self.records.unwrap_or(if sim { RECORDS_SIM } else { RECORDS });
                Workload { records, operations: records, ..workload }
            }
            None => from_file(Path::new(name))?,
        };
        workload.records = self.records.unwrap_or(workload.records);
        workload.operations = self.ops.unwrap_or(workload.operations);
        workload.value_size = self.value_size.unwrap_or(workload.value_size);
        if let Some(key_size) = self.key_size {
            if workload.word_keys {
                let text =
                    format!("--key-size does not go with {name}, whose keys are numbers; leave it out");
                return Err(Failure::Usage(text));
            }
            if key_size < LONGEST_KEY {
                let text = format!("--key-size is {key_size}; keys of YCSB take {LONGEST_KEY} bytes or more");
                return Err(Failure::Usage(text));
            }
            workload.zero_padding = key_size - "user".len();
        }
        Ok(workload)
    }

    fn describe(&self, workload: &Workload) -> String {
        let Workload { records, operations, value_size, .. } = workload;
        let run = self.seconds.map_or(format!("{operations} operations"), |seconds| format!("{seconds} s"));
        let batches = in_batches(self.batch);
        format!("{records} records of {value_size} bytes and their keys{batches}, {run}")
    }
}

fn from_file(path: &Path) -> Result<Workload, Failure> {
    let usage = |what: String| Failure::Usage(format!("{}: {what}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| {
        usage(format!("{error}; name a workload by its letter, from a to f, or by its property file"))
    })?;
    let name = path.file_stem().map_or_else(|| path.to_string_lossy(), |stem| stem.to_string_lossy());
    Workload::parse(&name, &text).map_err(|error| usage(error.to_string()))
}
