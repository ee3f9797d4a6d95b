//! `quipu-lab linear`: judges what real threads are told.

use super::failed;
use quipu::Design;
use quipu_bench::choice::{OneOrAll, chosen};
use quipu_cli::failure::{Failure, Outcome};
use quipu_cli::output::{self, Bar, counted};
use quipu_lab::linear::{LinearConfig, LinearReport, explore};

const EXAMPLES: &str = "\
Examples:
  quipu-lab linear --histories 20k
  quipu-lab linear --design all --overlapping 2k                # until that many calls have met
  quipu-lab linear --histories 100k --threads 4 --keys 3 --seed 7 --json
  quipu-lab linear --histories 20k --folder /mnt/pmem0          # pools in files
  quipu-lab linear --histories 1k --twin split-update           # must end with violations

A violation shows the calls on one key that no order explains, each with the stamps between which it was under \
way: calls whose stamps overlap may come in either order, the others not.

Fields of the JSON objects: design, medium, seed, threads, histories, operations, overlapping (operations \
during which another thread was at the same key), eliminated (puts that returned for another one), undecided, violations; with violations also details, a list \
of history, what, replay. A violation is exit code 1.";

/// Look for answers to real threads that no order of their calls explains.
///
/// Makes many small histories: a few threads call the store on a few keys, as much at once as the machine
/// allows, and everything they do is recorded. For each key a search then tries to find an order that
/// explains every result and never contradicts time. Stale reads, lost updates and writes that come and go
/// have none. After each lot of histories the pool is opened again and read once more; that must fit in too.
/// Lots differ in what is optional: a cache, levels, an order of keys, tables with their snapshots and range
/// deletes, small pools that are cleaned all the time.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The designs, separated by commas, or all.
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "quipu")]
    design: Vec<OneOrAll<Design>>,
    #[command(flatten)]
    config: LinearConfig,
    /// Print one JSON object a line, one for each design.
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Judges each design.
    pub fn run(self) -> Result<Outcome, Failure> {
        let mut outcome = Outcome::Fine;
        for design in chosen(&self.design) {
            let config = LinearConfig { design, ..self.config.clone() };
            let report = Bar::during(&format!("{design}: histories"), |bar| {
                explore(&config, &mut |done| bar.at(done, config.histories.max(done)))
            })
            .map_err(failed)?;
            outcome = outcome.and(report.violations == 0);
            output::told(self.json, &report, || text(&report))?;
        }
        Ok(outcome)
    }
}

fn text(report: &LinearReport) -> String {
    let counts = format!(
        "{} on {}: {} histories of {}, {} on one key, seed {}, {:.1} s; {} met others at their key, {} eliminated, {} undecided",
        report.design,
        report.medium,
        report.histories,
        counted(report.threads as u64, "thread"),
        counted(report.operations, "operation"),
        report.seed,
        report.seconds,
        report.overlapping,
        report.eliminated,
        report.undecided,
    );
    output::findings(&counts, &report.details, &counted(report.violations, "violation"))
}
