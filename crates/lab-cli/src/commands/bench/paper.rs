//! `quipu-lab bench paper`: the evaluation of a paper, beside what the paper says.

use quipu::{Design, MediumKind};
use quipu_bench::choice::{OneOrAll, chosen};
use quipu_bench::size;
use quipu_bench::{Config, plot};
use quipu_cli::bench::settings::{Basics, Bench, in_batches};
use quipu_cli::failure::{Failure, Outcome};
use quipu_cli::output;
use quipu_lab::bench::paper::{self, Paper, Preset, Scale};
use std::fs;

const EXAMPLES: &str = "\
Examples:
  quipu-lab bench paper viper
  quipu-lab bench paper viper --figure 6,10 --records 10M --threads 1,2,4,8
  quipu-lab bench paper viper --figure 11 --medium dax --pool /mnt/pmem/bench.pool
  quipu-lab bench paper viper --figure 13 --plot figure13.svg
  quipu-lab bench paper viper --medium sim --json               # exact costs in place of times
  quipu-lab bench paper pacman --figure 5 --design flatstore-h --rounds 5
  quipu-lab bench paper pacman --figure 8 --batch 16            # with log batching
  quipu-lab bench paper mpkv --figure contention --threads 2    # with pmemkv beside it: quipu-rivals paper mpkv
  quipu-lab bench paper xp --figure 10,12 --records 2M          # YCSB with data larger than the pool, levels in TMPDIR
  quipu-lab bench paper xp --figure 14 --records 5M             # memtables by their index
  quipu-lab bench paper xp --figure 16 --threads 1,2,4,8,16     # the ring, by records of an item and by threads
  quipu-lab bench paper nstore --figure 7,11 --threads 1,2      # mixes and caches, on two simulated nodes too
  quipu-lab bench paper nstore --figure 15 --rounds 3           # garbage collection by threshold

Fields of the JSON objects beside those of every benchmark: paper, figure, setting (what sets a row apart in its \
figure); of rows that count DIMMs, dimms_per_op, writers_at_one_dimm; of rows of cleaning, moved_per_op. After the rows of a figure comes an object \
for each number of the paper's text: paper, figure, statement, paper_says, ours (null if these rows do not say), unit. \
Where a paper compares a store with itself, there is one before these for each pair of rows: paper, figure, design, setting, \
distribution, threads, utilization, ratio (of what to what), times, rounds. A row with not_run says why nothing was run.";

/// Records where no number is given, in the place of the paper's 100 million: beyond any cache, and through
/// in seconds.
const RECORDS: u64 = 300_000;

/// The same on the simulator.
const RECORDS_SIM: u64 = 5_000;

/// Repeat the evaluation of a paper, and print it beside the paper's own numbers.
///
/// Each figure is a set of benchmarks, at a scale that --records sets. Below its table stand the statements
/// of the paper's text (nothing is read off plots) and those of these rows. A note says what can carry over
/// from the paper's machine to this medium. Figures without times, such as those of DIMMs, come from the
/// simulator.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The paper, by its system.
    #[arg(value_name = "PAPER", value_parser = Paper::named)]
    paper: &'static Paper,
    /// The figures, or sections where there is no figure, separated by commas, or all.
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', default_value = "all")]
    figure: Vec<String>,
    /// Records that stand for the paper's usual number, such as 200k or 5M. [default: 300k, on sim 5k]
    #[arg(long, value_name = "N", value_parser = size::count::<u64>)]
    records: Option<u64>,
    /// Numbers of threads, separated by commas. [default: 1, 2, 4 and so on, up to the processors; on sim 1]
    #[arg(long, value_name = "T", value_delimiter = ',', value_parser = size::count::<usize>)]
    threads: Vec<usize>,
    /// Designs to run, of those that a figure has, separated by commas. [default: all of them]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    design: Vec<OneOrAll<Design>>,
    /// How often each figure is run, every other time in reverse; ratios of rows are medians over the rounds.
    #[arg(long, value_name = "N", value_parser = size::count::<usize>, default_value = "1")]
    rounds: usize,
    /// Puts that each thread collects and issues together, so that they become durable under one fence (one
    /// for every 32). A put is answered when its batch is durable. Not all papers have that.
    #[arg(long, value_name = "N", value_parser = size::count::<usize>, default_value = "1")]
    batch: usize,
    #[command(flatten)]
    basics: Basics,
}

impl Args {
    /// Runs the figures one after another.
    pub fn run(self) -> Result<Outcome, Failure> {
        let presets = self.paper.figures(&self.figure).map_err(Failure::Usage)?;
        if self.basics.plot.is_some() && presets.len() > 1 {
            let text = "--plot draws one figure; name it with --figure";
            return Err(Failure::Usage(text.to_owned()));
        }
        let is_simulated = self.basics.medium == MediumKind::Sim;
        let records = self.records.unwrap_or(if is_simulated { RECORDS_SIM } else { RECORDS });
        let threads = self.threads();
        let listed = threads.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        if self.batch != 1 && !self.paper.batches {
            let text = format!("--batch does not go with {}, which has no batches", self.paper.name);
            return Err(Failure::Usage(text));
        }
        let base = Config { batch: self.batch, ..self.basics.apply(Config::default()) };
        let scale = Scale { base, records, threads, only: chosen(&self.design), rounds: self.rounds };
        scale.check()?;
        let mut bench = self.basics.begin(
            format!(
                "{}.\nThere: {}.\nHere: {records} records for the usual number, threads {listed}{}, seed {}.",
                self.paper.title,
                self.paper.machine,
                in_batches(self.batch),
                self.basics.seed
            ),
            format!("threads {listed}"),
        )?;
        if !self.basics.json {
            output::raw(bench.heading().as_bytes())?;
        }
        for preset in presets {
            self.figure(&mut bench, preset, &scale)?;
        }
        bench.end(Ok(()))
    }

    /// Runs a figure, and prints what there is of it also if it fails on the way.
    fn figure(&self, bench: &mut Bench<'_>, preset: &'static Preset, scale: &Scale) -> Result<(), Failure> {
        let result = bench.run(scale.base.clone(), |config, progress, sink| {
            let scale = Scale { base: config.clone(), ..scale.clone() };
            paper::paper(self.paper, preset, &scale, progress, sink)
        });
        let rows = bench.take_rows();
        if rows.is_empty() {
            return result;
        }
        let compared = preset.compare(self.paper, &rows);
        let ratios = preset.ratios(self.paper, &rows);
        if self.basics.json {
            ratios.iter().try_for_each(output::json_line)?;
            compared.iter().try_for_each(output::json_line)?;
        } else {
            output::raw(format!("\n{}", paper::text(preset, &rows, &ratios, &compared)).as_bytes())?;
        }
        if let Some(path) = &self.basics.plot {
            let title = format!("{}, {}: {}", self.paper.name, preset.figure, preset.title);
            let timed: Vec<_> = rows.into_iter().filter(|row| row.mops.is_some()).collect();
            let notes: Vec<String> = bench.heading().lines().map(str::to_owned).collect();
            fs::write(path, plot(&title, &notes, &timed))
                .map_err(|error| Failure::Problem(format!("cannot write {}: {error}", path.display())))?;
        }
        result
    }

    /// The numbers of threads, each once, in ascending order.
    fn threads(&self) -> Vec<usize> {
        let mut threads = self.threads.clone();
        if threads.is_empty() {
            let is_simulated = self.basics.medium == MediumKind::Sim;
            let processors = std::thread::available_parallelism().map_or(1, usize::from);
            let most = if is_simulated { 1 } else { processors };
            threads =
                (0..usize::BITS).map(|power| 1 << power).take_while(|threads| *threads <= most).collect();
        }
        threads.sort_unstable();
        threads.dedup();
        threads
    }
}
