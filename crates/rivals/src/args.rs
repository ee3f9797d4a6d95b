//! The command line.

use crate::again;
use crate::campaign::Campaign;
use crate::evaluation::Evaluation;
use crate::index;
use crate::output::{self, Failure, Report};
use crate::transfers;
use clap::{Parser, Subcommand};
use quipu::MediumKind;
use quipu_bench::Config;
use quipu_bench::size;
use quipu_bench::workload::Workload;
use quipu_lab::bench::paper::{Benchmark, Paper, Scale};
use quipu_lab::bench::{Keys, Overwrites, SteadyLoad};
use quipu_rivals::engines::Choice;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  quipu-rivals engines
  quipu-rivals ops --records 200000
  quipu-rivals ops --engine quipu,rocksdb:process,fjall:process --threads 2 --plot ops.svg
  quipu-rivals ycsb a b c --engine all --medium file --pool /mnt/ssd/rivals --records 20000
  quipu-rivals ycsb a e --engine rocksdb,fjall --medium file --pool /mnt/ssd/rivals --wal-dir /dev/shm/log --batch 100 --seconds 60
  quipu-rivals steady --engine xp,rocksdb,fjall --seconds 600 --records 8000000 --plot steady.svg
  quipu-rivals mix --etc --engine flatstore-h,pmemkv:process,rocksdb:process
  quipu-rivals transfers --engine xp,rocksdb-locking,sqlite --threads 8 --seconds 5
  quipu-rivals index --index alex,masstree,btree,congee --keys uniform,osm --records 10M
  quipu-rivals paper mpkv --figure 4,contention --threads 1,2
  quipu-rivals paper xp --figure 10 --medium file --pm-dir /dev/shm --cache 256M
  quipu-rivals compare > tables.md";

/// The engines that are measured by default: of each the level that is nearest to ours.
const USUAL: &str = "quipu,rocksdb:process,redb:memory,fjall:process";

/// The engines that are compared by default: each engine at its weakest level, and at the one that is nearest
/// to ours from above; of pmemkv, whose weakest is ours, its strongest too.
const COMPARED: &str = "quipu,rocksdb:memory,rocksdb:process,redb:memory,redb:power,fjall:memory,fjall:process,\
                        pmemkv:process,pmemkv:power";

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
    /// Measure insert, get, get_many, scan, update and delete, each alone.
    Ops(Ops),
    /// Load and run workloads of YCSB.
    Ycsb(Ycsb),
    /// Get and put for a fixed time: throughput by the second, the longest calls, and stalls.
    ///
    /// A call of more than 100 ms is a stall. An idle thread beside the load tells whether the whole machine
    /// stood still meanwhile.
    Steady(Steady),
    /// Get and put, by default half and half, until throughput is steady.
    ///
    /// Quipu's own designs do it in a pool that is as full as --utilization says; nobody limits the space of
    /// the others.
    Mix(Mix),
    /// Move amounts between accounts: two reads and two writes, by calls of their own and by transactions.
    ///
    /// Each thread has accounts of its own in the first two rows. In the third, all threads meet at a few.
    /// Needs engines with transactions.
    Transfers(transfers::Args),
    /// Measure indexes alone, ours and others, on sets of keys.
    ///
    /// The same as `quipu-lab bench index`, in one process for all. Bytes of a key are those that the
    /// program's allocator has counted, of ours and of others.
    Index(index::Args),
    /// Repeat the evaluation of a paper whose rivals are not ours to run: with other engines beside our
    /// designs.
    Paper(Evaluated),
    /// Run ops and YCSB A and B on all engines, media and numbers of threads, and print tables in Markdown.
    Compare(Compare),
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
    /// Letters from a to f; e scans, and needs engines that keep keys in order.
    #[arg(required = true, value_name = "WORKLOAD")]
    workloads: Vec<String>,
    #[command(flatten)]
    settings: Settings,
    /// Bytes of a value.
    #[arg(long, value_name = "B", default_value_t = 1000)]
    value_size: usize,
    /// Puts of the load that each thread collects and writes as one batch.
    #[arg(long, value_name = "N", default_value_t = 1)]
    batch: usize,
    /// Run each workload for so many seconds, in place of a number of operations.
    #[arg(long, value_name = "S")]
    seconds: Option<u64>,
}

impl Ycsb {
    fn run(self) -> Result<(), Failure> {
        let Ycsb { workloads, settings, value_size, batch, seconds } = self;
        let config = settings.config(Config { batch, seconds, ..Config::default() })?;
        let Config { records, operations, .. } = config;
        let run = seconds.map_or(format!("{operations} operations"), |seconds| format!("{seconds} s"));
        let names = workloads.join(" ");
        let heading = format!("YCSB {names}: {records} records of {value_size} bytes and their keys, {run}");
        let workloads = workloads.iter().map(|name| workload(name, &config, value_size));
        settings.measure(&heading, &workloads.collect::<Result<Vec<_>, Failure>>()?, &config)
    }
}

#[derive(clap::Args)]
struct Steady {
    #[command(flatten)]
    settings: Settings,
    /// Bytes of a key.
    #[arg(long, value_name = "B", default_value_t = 16)]
    key_size: usize,
    /// Bytes of a value.
    #[arg(long, value_name = "B", default_value_t = 200)]
    value_size: usize,
    /// Seconds that it lasts.
    #[arg(long, value_name = "S", default_value_t = 60)]
    seconds: u64,
    /// Per cent of the operations that are puts.
    #[arg(long, value_name = "PCT", default_value_t = 50)]
    put: u64,
    /// Choose records by YCSB's scrambled zipfian distribution. [default: uniformly]
    #[arg(long, value_name = "THETA", num_args = 0..=1, default_missing_value = "0.99")]
    zipf: Option<f64>,
}

impl Steady {
    fn run(self) -> Result<(), Failure> {
        let Steady { settings, key_size, value_size, seconds, put, zipf } = self;
        let config = settings.config(Config { key_size, value_size, ..Config::default() })?;
        let load = SteadyLoad { keys: zipf.map_or(Keys::Uniform, Keys::Zipf), put, seconds };
        let heading = format!(
            "{seconds} s of {put} % puts, keys {}: {} records of {key_size} + {value_size} bytes",
            load.keys, config.records
        );
        settings.measure(&heading, &[Benchmark::Steady(load)], &config)
    }
}

#[derive(clap::Args)]
struct Mix {
    #[command(flatten)]
    settings: Settings,
    /// Bytes of a key.
    #[arg(long, value_name = "B", default_value_t = 8)]
    key_size: usize,
    /// Bytes of a value.
    #[arg(long, value_name = "B", default_value_t = 48)]
    value_size: usize,
    /// Choose records, and sizes of values too, as in Facebook's ETC pool.
    #[arg(long, conflicts_with = "value_size")]
    etc: bool,
    /// Choose records by YCSB's scrambled zipfian distribution.
    #[arg(long, value_name = "THETA", default_value_t = 0.99, conflicts_with = "etc")]
    zipf: f64,
    /// Per cent of the operations that are puts.
    #[arg(long, value_name = "PCT", default_value_t = 50)]
    put: u64,
    /// Per cent of the segments that live records take, of Quipu's own designs.
    #[arg(long, value_name = "PCT", default_value_t = 80)]
    utilization: u64,
}

impl Mix {
    fn run(self) -> Result<(), Failure> {
        let Mix { settings, key_size, value_size, etc, zipf, put, utilization } = self;
        // Caches and pools of others are made for values of this size; those of ETC are smaller in the mean.
        let value_size = if etc { Config::default().value_size } else { value_size };
        let config = settings.config(Config { key_size, value_size, ..Config::default() })?;
        let keys = if etc { Keys::Etc } else { Keys::Zipf(zipf) };
        let sizes = if etc { "sizes of their own".to_owned() } else { format!("{value_size} bytes") };
        let heading = format!(
            "{put} % puts, keys {keys}: {} records of {key_size} bytes and {sizes}, {utilization} % used where space is limited",
            config.records
        );
        let overwrites =
            Overwrites { utilizations: vec![utilization], keys: vec![keys], put, ..Overwrites::default() };
        settings.measure(&heading, &[Benchmark::Util(overwrites)], &config)
    }
}

#[derive(clap::Args)]
struct Evaluated {
    /// The paper, by its system.
    #[arg(value_name = "PAPER", value_parser = Paper::named)]
    paper: &'static Paper,
    /// The figures, or sections where there is no figure, separated by commas, or all.
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', default_value = "all")]
    figure: Vec<String>,
    /// Engines beside the designs of each figure, separated by commas, each with its durability level.
    /// [default: pmemkv:process; of xp, rocksdb:process,fjall:process]
    #[arg(long, value_name = "NAME[:LEVEL]", value_delimiter = ',')]
    engine: Vec<String>,
    #[command(flatten)]
    place: Place,
    /// Numbers of threads, separated by commas.
    #[arg(long, value_name = "T", value_delimiter = ',', default_value = "1,2")]
    threads: Vec<usize>,
    /// Records that stand for the paper's usual number.
    #[arg(long, value_name = "N", value_parser = size::count::<u64>, default_value = "300k")]
    records: u64,
    /// How often each figure is run, every other time in reverse; ratios are medians over the rounds.
    #[arg(long, value_name = "N", default_value_t = 1)]
    rounds: usize,
    /// Print one JSON object a line, one for each phase.
    #[arg(long)]
    json: bool,
}

impl Evaluated {
    fn run(self) -> Result<(), Failure> {
        let Evaluated { paper, figure, engine, place, threads, records, rounds, json } = self;
        let presets = paper.figures(&figure).map_err(Failure::Usage)?;
        let usual = || rivals_of(paper).iter().map(|name| (*name).to_owned()).collect();
        let engine: Vec<String> = if engine.is_empty() { usual() } else { engine };
        let beside = engine.iter().map(|name| choice(name)).collect::<Result<Vec<_>, Failure>>()?;
        again::with_environment(&beside, place.medium)?;
        let base = place.config(Config::default())?;
        let place = place.of(&base, &beside)?;
        let scale = Scale { base, records, threads, rounds, ..Scale::default() };
        Evaluation { paper, presets, beside, place, scale, json }.run()
    }
}

/// The engines beside the designs of a paper, where none are named.
fn rivals_of(paper: &Paper) -> &'static [&'static str] {
    if paper.name == "xp" { &["rocksdb:process", "fjall:process"] } else { &["pmemkv:process"] }
}

#[derive(clap::Args)]
struct Compare {
    /// Engines, separated by commas; the first is what the others are compared with, and is measured twice.
    /// Levels of power are run on file alone, where they mean something.
    #[arg(long, value_name = "NAME[:LEVEL]", value_delimiter = ',', default_value = COMPARED)]
    engine: Vec<String>,
    /// Media, one table each.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "file,dram",
        value_parser = |text: &str| text.parse::<MediumKind>()
    )]
    medium: Vec<MediumKind>,
    /// Numbers of threads.
    #[arg(long, value_name = "T", value_delimiter = ',', default_value = "1,2")]
    threads: Vec<usize>,
    /// Records loaded, of 16 + 200 bytes (YCSB: keys of its own).
    #[arg(long, value_name = "N", value_parser = size::count::<u64>, default_value = "1M")]
    records: u64,
    /// Operations of each phase after the inserts.
    #[arg(long, value_name = "N", value_parser = size::count::<u64>, default_value = "200k")]
    ops: u64,
    /// Records and operations where each write waits for the disk.
    #[arg(long, value_name = "N", value_parser = size::count::<u64>, default_value = "100")]
    synced: u64,
    /// A folder on the disk that stands for file. [default: the folder of temporary files]
    #[arg(long, value_name = "PATH")]
    folder: Option<PathBuf>,
    /// Print the results of all runs as JSON, one object a line, and no tables.
    #[arg(long)]
    json: bool,
}

impl Compare {
    fn campaign(self) -> Result<Campaign, Failure> {
        let Compare { engine, medium, threads, records, ops, synced, folder, json } = self;
        let choices = engine.iter().map(|name| choice(name)).collect::<Result<Vec<_>, Failure>>()?;
        if medium.iter().any(|medium| !matches!(medium, MediumKind::File | MediumKind::Dram)) {
            return Err(Failure::Usage("--medium takes file and dram here".to_owned()));
        }
        let folder = folder.unwrap_or_else(std::env::temp_dir);
        Ok(Campaign { choices, media: medium, threads, records, operations: ops, synced, folder, json })
    }
}

/// The place of all engines, and the seed.
#[derive(clap::Args)]
struct Place {
    /// The medium of the place: dram (a tmpfs that stands in for PM), file, or dax.
    #[arg(long, default_value = "dram", value_parser = |text: &str| text.parse::<MediumKind>())]
    medium: MediumKind,
    /// A path that does not exist, made and removed for every engine. [default: in memory for dram, and for
    /// file in the folder of temporary files]
    #[arg(long, value_name = "PATH")]
    pool: Option<PathBuf>,
    /// A folder for the write-ahead log of RocksDB, which does not exist: made and removed with the place. So
    /// the log may be on a tmpfs while the tables are on an SSD. [default: the place itself]
    #[arg(long, value_name = "DIR")]
    wal_dir: Option<PathBuf>,
    /// A folder for the pools of our own designs, such as one on PM or on a tmpfs that stands in for it.
    /// Levels below a pool stay in the folder of the place. [default: the place itself]
    #[arg(long, value_name = "DIR")]
    pm_dir: Option<PathBuf>,
    /// Bytes of the cache of engines that have one, such as 256M. [default: room for all records twice, or as
    /// much as the pool has where a paper's figure limits that]
    #[arg(long, value_name = "SIZE", value_parser = size::bytes)]
    cache: Option<u64>,
    /// The seed of all choices.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
}

#[derive(clap::Args)]
pub struct Settings {
    /// Engines, separated by commas, each with its durability level (see `engines`), or all but pmemkv:power,
    /// which needs a run of its own.
    #[arg(long, value_name = "NAME[:LEVEL]", value_delimiter = ',', default_value = USUAL)]
    engine: Vec<String>,
    #[command(flatten)]
    place: Place,
    /// Threads at work.
    #[arg(long, value_name = "T", default_value_t = 1)]
    threads: usize,
    /// Records loaded.
    #[arg(long, value_name = "N", value_parser = size::count::<u64>, default_value = "200k")]
    records: u64,
    /// Operations of each phase after the inserts. [default: as many as records]
    #[arg(long, value_name = "N", value_parser = size::count::<u64>)]
    ops: Option<u64>,
    /// Measure the limits of the medium too, and give every result as a share of one.
    #[arg(long)]
    pub roofline: bool,
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
            Command::Ycsb(ycsb) => ycsb.run(),
            Command::Steady(steady) => steady.run(),
            Command::Mix(mix) => mix.run(),
            Command::Transfers(args) => args.run(),
            Command::Index(args) => args.run(),
            Command::Paper(evaluated) => evaluated.run(),
            Command::Compare(compare) => compare.campaign()?.run(),
        }
    }
}

fn choice(name: &str) -> Result<Choice, Failure> {
    name.parse().map_err(|hint| Failure::Usage(format!("no engine is called {name}: {hint}")))
}

fn workload(name: &str, config: &Config, value_size: usize) -> Result<Benchmark, Failure> {
    let published = Workload::published(name)
        .ok_or_else(|| Failure::Usage(format!("no workload is called {name}: choose from a to f")))?;
    let Config { records, operations, .. } = *config;
    Ok(Benchmark::Ycsb(Box::new(Workload { records, operations, value_size, ..published })))
}

impl Settings {
    fn choices(&self) -> Result<Vec<Choice>, Failure> {
        let mut choices = Vec::new();
        for name in &self.engine {
            match name.as_str() {
                "all" => choices.extend(Choice::together()),
                name => choices.push(choice(name)?),
            }
        }
        Ok(choices)
    }

    /// The settings of a benchmark with such sizes.
    pub fn config(&self, sizes: Config) -> Result<Config, Failure> {
        self.place.config(Config {
            threads: self.threads,
            records: self.records,
            operations: self.ops.unwrap_or(self.records),
            roofline: self.roofline,
            ..sizes
        })
    }

    /// Measures the chosen engines and prints the results.
    pub fn measure(&self, heading: &str, benchmarks: &[Benchmark], config: &Config) -> Result<(), Failure> {
        let choices = self.choices()?;
        again::with_environment(&choices, self.place.medium)?;
        let place = self.place.of(config, &choices)?;
        let threads =
            if self.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", self.threads) };
        let Place { medium, seed, .. } = self.place;
        let logged = place.log().map_or(String::new(), |log| format!(", RocksDB's log in {}", log.display()));
        let pools = place.pool().map_or(String::new(), |pool| format!(", our pools at {}", pool.display()));
        let cache =
            self.place.cache.map_or(String::new(), |cache| format!(", caches of {}", size::human(cache)));
        let heading = format!("{heading}, {threads}, medium {medium}{logged}{pools}{cache}, seed {seed}.");
        Report::new(heading, self.json, self.plot.clone()).run(&choices, benchmarks, (config, &place))
    }
}

impl Place {
    /// The settings of a benchmark without designs, at this place, where pools and folders are made one after
    /// another.
    fn config(&self, config: Config) -> Result<Config, Failure> {
        let path = match (&self.pool, self.medium) {
            (_, MediumKind::Sim) => {
                return Err(Failure::Usage("--medium sim knows no files, which the others need".to_owned()));
            }
            (Some(path), _) => path.to_owned(),
            (None, MediumKind::Dram) => Path::new("/dev/shm").join(temporary()),
            (None, MediumKind::File) => std::env::temp_dir().join(temporary()),
            (None, _) => {
                return Err(Failure::Usage("name a new place on persistent memory with --pool".into()));
            }
        };
        if path.exists() {
            let path = path.display();
            return Err(Failure::Usage(format!("{path} exists already; name a new place with --pool")));
        }
        let Place { medium, seed, .. } = *self;
        Ok(Config { designs: Vec::new(), medium, pool: Some(path), seed, ..config })
    }

    /// The place of these engines for such settings.
    fn of(&self, config: &Config, choices: &[Choice]) -> Result<quipu_rivals::Place, Failure> {
        let place = quipu_rivals::Place::new(config.pool.as_deref().unwrap_or(Path::new("")));
        Ok(place.with_log(self.log(choices)?).with_pool(self.pools()?).with_cache(self.cache))
    }

    /// The path of our own pools, if they are to be elsewhere.
    fn pools(&self) -> Result<Option<PathBuf>, Failure> {
        let Some(folder) = &self.pm_dir else { return Ok(None) };
        if !folder.is_dir() {
            let text = format!("{} is no folder; name one with --pm-dir", folder.display());
            return Err(Failure::Usage(text));
        }
        Ok(Some(folder.join(format!("{}.pool", temporary()))))
    }

    /// The folder of the write-ahead log, if it is to have one.
    fn log(&self, choices: &[Choice]) -> Result<Option<PathBuf>, Failure> {
        let Some(log) = &self.wal_dir else { return Ok(None) };
        if !choices.iter().any(|choice| choice.kind.is_rocksdb()) {
            return Err(Failure::Usage("--wal-dir is for rocksdb, which is not among the engines".into()));
        }
        if log.exists() {
            let text = format!("{} exists already; name a new folder with --wal-dir", log.display());
            return Err(Failure::Usage(text));
        }
        Ok(Some(log.clone()))
    }
}

fn temporary() -> String {
    format!("quipu-rivals-{}", std::process::id())
}
