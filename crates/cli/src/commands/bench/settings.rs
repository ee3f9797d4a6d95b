//! The arguments of all benchmarks, and the way in which all of them answer.

use super::place::Place;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Bar};
use quipu::{Design, MediumKind, Setting};
use quipu_bench::choice::{OneOrAll, chosen};
use quipu_bench::{BenchError, Config, Row, plot, table};
use quipu_bench::{arguments, size};
use std::fs;
use std::path::PathBuf;

/// Records where no number is given.
const RECORDS: u64 = 1_000_000;

/// The same on the simulator, which is slow, and whose counts do not get more exact with more of them.
const RECORDS_SIM: u64 = 20_000;

/// Arguments of the benchmarks of designs.
#[derive(clap::Args)]
pub struct Settings {
    /// The designs to measure, separated by commas, or all.
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "quipu")]
    design: Vec<OneOrAll<Design>>,
    /// A setting of the designs that have it; may be repeated. `quipu designs` lists them with their values.
    #[arg(long, value_name = "NAME=VALUE", value_parser = arguments::assignment)]
    set: Vec<(String, String)>,
    /// Threads at work.
    #[arg(long, value_name = "T", value_parser = size::count::<usize>, default_value = "1")]
    threads: usize,
    /// Those of every benchmark.
    #[command(flatten)]
    pub basics: Basics,
}

/// Arguments of every benchmark.
#[derive(clap::Args)]
pub struct Basics {
    /// Where the pool is: dram (memory that stands in for PM), file, dax, or sim, which counts costs in place
    /// of time.
    #[arg(long, default_value = "dram", value_parser = |text: &str| text.parse::<MediumKind>())]
    pub medium: MediumKind,
    /// The pool's file, which must not exist; it is removed afterwards. [default: memory, or for file a
    /// temporary one]
    #[arg(long, value_name = "PATH")]
    pool: Option<PathBuf>,
    /// The seed of all choices.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Print one JSON object a line, one for each phase.
    #[arg(long)]
    pub json: bool,
    /// Draw throughput and latencies too, as an SVG.
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
}

/// Sizes of records, for the benchmarks that make up their own.
#[derive(clap::Args)]
pub struct Sizes {
    /// Records loaded, such as 200k or 5M. [default: 1M, on sim 20k]
    #[arg(long, value_name = "N", value_parser = size::count::<u64>)]
    records: Option<u64>,
    /// Bytes of a key.
    #[arg(long, value_name = "B", value_parser = size::length, default_value = "16")]
    key_size: usize,
    /// Bytes of a value.
    #[arg(long, value_name = "B", value_parser = size::length, default_value = "200")]
    value_size: usize,
}

impl Sizes {
    /// Records, keys and values as they were asked for; as many operations as records.
    pub fn config(&self, medium: MediumKind) -> Config {
        self.config_with(medium, RECORDS_SIM)
    }

    /// The same, with so many records on the simulator where no number is given.
    pub fn config_with(&self, medium: MediumKind, on_sim: u64) -> Config {
        let default = if medium == MediumKind::Sim { on_sim } else { RECORDS };
        let records = self.records.unwrap_or(default);
        let Sizes { key_size, value_size, .. } = *self;
        Config { records, operations: records, key_size, value_size, ..Config::default() }
    }
}

/// Says that puts are issued together, if they are.
pub fn in_batches(batch: usize) -> String {
    if batch > 1 { format!(", puts in batches of {batch}") } else { String::new() }
}

/// A benchmark about to run.
pub struct Bench<'a> {
    basics: &'a Basics,
    place: Place,
    heading: String,
    /// The scale, which a picture says besides the heading.
    scale: String,
    /// Settings of designs that were asked for.
    chosen: Vec<(String, String)>,
    rows: Vec<Row>,
    /// How rows become a table.
    layout: fn(&[Row]) -> String,
    bar: Bar,
    /// Set once standard output fails; the rest of the run has no one to tell.
    refused: Option<Failure>,
}

impl Settings {
    /// Designs, medium, threads and seed, over what `config` says of records.
    pub fn apply(&self, config: Config) -> Config {
        let (designs, settings) = (chosen(&self.design), self.set.clone());
        Config { designs, settings, threads: self.threads, ..self.basics.apply(config) }
    }

    /// Finds a place for the pool. `heading` says above the table what was measured.
    pub fn begin(&self, heading: String) -> Result<Bench<'_>, Failure> {
        let bench = self.basics.begin(heading, output::counted(self.threads as u64, "thread"))?;
        Ok(Bench { chosen: self.set.clone(), ..bench })
    }
}

impl Basics {
    /// Medium and seed, over what `config` says of all else.
    pub fn apply(&self, config: Config) -> Config {
        Config { medium: self.medium, seed: self.seed, ..config }
    }

    /// Finds a place for the pool. `heading` says above the table what was measured, `scale` in a picture how
    /// large it was.
    pub fn begin(&self, heading: String, scale: String) -> Result<Bench<'_>, Failure> {
        if self.plot.is_some() && self.medium == MediumKind::Sim {
            let text = "--plot draws times, and --medium sim has none; take another medium, or --json";
            return Err(Failure::Usage(text.to_owned()));
        }
        let place = Place::find(self.medium, self.pool.clone())?;
        Ok(Bench {
            basics: self,
            place,
            heading,
            scale,
            chosen: Vec::new(),
            rows: Vec::new(),
            layout: table,
            bar: Bar::new("preparing"),
            refused: None,
        })
    }
}

/// The chosen settings of a design.
fn chosen_of(chosen: &[(String, String)], design: &str) -> String {
    let is_of = |(name, _): &&(String, String)| Setting::designs(name).any(|known| known.name() == design);
    let text = |(name, value): &(String, String)| format!("{name}={value}");
    chosen.iter().filter(is_of).map(text).collect::<Vec<_>>().join(" ")
}

impl<'a> Bench<'a> {
    /// The same with another table in the end.
    pub fn laid_out_by(self, layout: fn(&[Row]) -> String) -> Bench<'a> {
        Bench { layout, ..self }
    }

    /// Runs one of the lab's benchmarks. Its rows are printed at once for programs, and at the end for
    /// people.
    pub fn run(
        &mut self,
        config: Config,
        benchmark: impl FnOnce(&Config, &Bar, &mut dyn FnMut(Row)) -> Result<(), BenchError>,
    ) -> Result<(), Failure> {
        let config = Config { pool: self.place.path().cloned(), ..config };
        let (rows, refused, json, chosen) =
            (&mut self.rows, &mut self.refused, self.basics.json, &self.chosen);
        benchmark(&config, &self.bar, &mut |row| {
            let row = Row { settings: chosen_of(chosen, &row.design), ..row };
            if json && refused.is_none() {
                *refused = output::json_line(&row).err();
            }
            rows.push(row);
        })?;
        self.refused.take().map_or(Ok(()), Err)
    }

    /// The text above tables: the measurement and its place.
    pub fn heading(&self) -> String {
        let chosen: String =
            self.chosen.iter().map(|(name, value)| format!("With {name}={value}.\n")).collect();
        format!("{}\n{chosen}{}\n", self.heading, self.place)
    }

    /// The rows since the last call, for a command that prints them in a way of its own.
    pub fn take_rows(&mut self) -> Vec<Row> {
        self.bar.clear();
        std::mem::take(&mut self.rows)
    }

    /// Prints the rest, also of a run that failed on the way, and ends.
    pub fn end(self, result: Result<(), Failure>) -> Result<Outcome, Failure> {
        self.bar.clear();
        if !self.rows.is_empty() {
            if !self.basics.json {
                let text = format!("{}\n{}", self.heading(), (self.layout)(&self.rows));
                output::raw(text.as_bytes())?;
            }
            self.draw()?;
        }
        result.map(|()| Outcome::Fine)
    }

    /// Draws what there is, if a picture was asked for.
    fn draw(&self) -> Result<(), Failure> {
        let Some(path) = &self.basics.plot else { return Ok(()) };
        let title = format!("{} {}, {}.", self.heading, self.scale, self.basics.medium);
        let notes: Vec<String> = self.place.to_string().lines().map(str::to_owned).collect();
        fs::write(path, plot(&title, &notes, &self.rows))
            .map_err(|error| Failure::Problem(format!("cannot write {}: {error}", path.display())))
    }
}
