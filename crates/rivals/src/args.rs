//! The command line.

use crate::output::{self, Failure, Report};
use clap::{Parser, Subcommand};
use quipu::MediumKind;
use quipu_lab::bench::Config;
use quipu_lab::workload::Workload;
use quipu_rivals::compare::Benchmark;
use quipu_rivals::engines::Choice;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  quipu-rivals engines
  quipu-rivals ops --records 200000
  quipu-rivals ops --engine quipu,rocksdb:process,fjall:process --threads 2 --plot ops.svg
  quipu-rivals ycsb a b c --engine all --medium file --pool /mnt/ssd/rivals --records 20000";

/// What is measured where nothing is chosen: of every engine, what is nearest to ours.
const USUAL: &str = "quipu,rocksdb:process,redb:memory,fjall:process";

#[derive(Parser)]
#[command(
    name = "quipu-rivals",
    version,
    about = "Measures other engines beside Quipu, by the same runner on the same medium.",
    after_help = EXAMPLES
)]
pub struct Line {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the engines with their durability levels and how each is set.
    Engines,
    /// Measure insert, get, get_many, update and delete, each alone.
    Ops(Ops),
    /// Load and run workloads of YCSB.
    Ycsb(Ycsb),
}

#[derive(clap::Args)]
struct Ops {
    #[command(flatten)]
    settings: Settings,
    /// Bytes of a key.
    #[arg(long, value_name = "B", default_value_t = 16)]
    key_size: usize,
    /// Bytes of a value.
    #[arg(long, value_name = "B", default_value_t = 200)]
    value_size: usize,
}

#[derive(clap::Args)]
struct Ycsb {
    /// Letters from a to f; e scans, and is refused.
    #[arg(required = true, value_name = "WORKLOAD")]
    workloads: Vec<String>,
    #[command(flatten)]
    settings: Settings,
    /// Bytes of a value.
    #[arg(long, value_name = "B", default_value_t = 1000)]
    value_size: usize,
}

#[derive(clap::Args)]
struct Settings {
    /// Engines, separated by commas, each with its durability level (see `engines`), or all.
    #[arg(long, value_name = "NAME[:LEVEL]", value_delimiter = ',', default_value = USUAL)]
    engine: Vec<String>,
    /// The medium of the place: dram (a tmpfs that stands in for PM), file, or dax.
    #[arg(long, default_value = "dram", value_parser = |text: &str| text.parse::<MediumKind>())]
    medium: MediumKind,
    /// A path that does not exist, made and removed for every engine. [default: in memory for dram, and for file
    /// in the folder of temporary files]
    #[arg(long, value_name = "PATH")]
    pool: Option<PathBuf>,
    /// Threads at work.
    #[arg(long, value_name = "T", default_value_t = 1)]
    threads: usize,
    /// Records loaded.
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    records: u64,
    /// Operations of each phase after the inserts. [default: as many as records]
    #[arg(long, value_name = "N")]
    ops: Option<u64>,
    /// What all choices follow from.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Measure the limits of the medium too, and give every result as a share of one.
    #[arg(long)]
    roofline: bool,
    /// Print one JSON object a line, one for each phase, with what acknowledged writes survive.
    #[arg(long)]
    json: bool,
    /// Draw the result too.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
}

impl Line {
    /// Does what the line says.
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::Engines => output::engines(),
            Command::Ops(ops) => {
                let sizes =
                    Config { key_size: ops.key_size, value_size: ops.value_size, ..Config::default() };
                let config = ops.settings.config(sizes)?;
                let heading = format!(
                    "Basic operations on {} records of {} + {} bytes, {} operations a phase",
                    config.records, config.key_size, config.value_size, config.operations
                );
                ops.settings.measure(&heading, &[Benchmark::Ops], &config)
            }
            Command::Ycsb(ycsb) => {
                let config = ycsb.settings.config(Config::default())?;
                let heading = format!(
                    "YCSB {}: {} records of {} bytes and their keys, {} operations",
                    ycsb.workloads.join(" "),
                    config.records,
                    ycsb.value_size,
                    config.operations
                );
                let workloads = ycsb.workloads.iter().map(|name| workload(name, &config, ycsb.value_size));
                let workloads = workloads.collect::<Result<Vec<_>, Failure>>()?;
                ycsb.settings.measure(&heading, &workloads, &config)
            }
        }
    }
}

fn workload(name: &str, config: &Config, value_size: usize) -> Result<Benchmark, Failure> {
    let published = Workload::published(name).filter(|workload| !workload.scans());
    let published = published.ok_or_else(|| {
        Failure::Usage(format!("workload {name} cannot be compared: choose from a, b, c, d, f"))
    })?;
    let Config { records, operations, .. } = *config;
    Ok(Benchmark::Ycsb(Workload { records, operations, value_size, ..published }))
}

impl Settings {
    fn choices(&self) -> Result<Vec<Choice>, Failure> {
        let mut choices = Vec::new();
        for name in &self.engine {
            match name.as_str() {
                "all" => choices.extend(Choice::all()),
                name => choices.push(
                    name.parse()
                        .map_err(|hint| Failure::Usage(format!("no engine is called {name}: {hint}")))?,
                ),
            }
        }
        Ok(choices)
    }

    fn config(&self, sizes: Config) -> Result<Config, Failure> {
        if self.medium == MediumKind::Sim {
            return Err(Failure::Usage("--medium sim knows no files, which the others need".to_owned()));
        }
        Ok(Config {
            designs: Vec::new(),
            medium: self.medium,
            pool: Some(self.place()?),
            threads: self.threads,
            records: self.records,
            operations: self.ops.unwrap_or(self.records),
            seed: self.seed,
            roofline: self.roofline,
            ..sizes
        })
    }

    fn place(&self) -> Result<PathBuf, Failure> {
        let path = match (&self.pool, self.medium) {
            (Some(path), _) => path.clone(),
            (None, MediumKind::Dram) => Path::new("/dev/shm").join(temporary()),
            (None, MediumKind::File) => std::env::temp_dir().join(temporary()),
            (None, _) => {
                return Err(Failure::Usage("name a new place on persistent memory with --pool".into()));
            }
        };
        if path.exists() {
            return Err(Failure::Usage(format!(
                "{} exists already; name a new place with --pool",
                path.display()
            )));
        }
        Ok(path)
    }

    fn measure(&self, heading: &str, benchmarks: &[Benchmark], config: &Config) -> Result<(), Failure> {
        let choices = self.choices()?;
        let threads =
            if self.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", self.threads) };
        let heading = format!("{heading}, {threads}, medium {}, seed {}.", self.medium, self.seed);
        Report::new(heading, self.json, self.plot.clone()).run(&choices, benchmarks, config)
    }
}

fn temporary() -> String {
    format!("quipu-rivals-{}", std::process::id())
}
