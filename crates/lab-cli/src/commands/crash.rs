//! `quipu-lab crash`: explores what power failures may leave.

use quipu::Design;
use quipu_bench::choice::{OneOrAll, chosen};
use quipu_bench::settings;
use quipu_cli::failure::{Failure, Outcome};
use quipu_cli::output::{self, Bar, counted};
use quipu_lab::crash::{CrashConfig, CrashReport, KINDS, Violation, explore};

const EXAMPLES: &str = "\
Examples:
  quipu-lab crash --design quipu --states 5000
  quipu-lab crash --design all --states 100k --threads 3 --minutes 10 --json
  quipu-lab crash --design quipu --seed 17 --runs 1            # replays one run
  quipu-lab crash --design xp --histories 20000 --threads 4    # many answers, few crashes
  quipu-lab crash --design xp --transfers --threads 3          # transactions; the sum of accounts must stay
  quipu-lab crash --design flatstore-ph --states 20k --set pacman=off
  quipu-lab crash --design quipu --states 20k --twin publish-before-persist   # needs --features twins

Fields of the JSON objects: design, seed, operations, states, nested, during_compaction, during_recovery, \
during_growth, during_index_split, after_index_split, after_index_removal, during_index_zone, after_index_zone, \
word_keys, after_clock, expired, during_survey, during_close, fixed, during_in_place, ordered, tables, \
during_table_change, with_snapshot, after_range_delete, after_ten_commits, from_checkpoint, commits (of transfers, not \
states), eliminated (puts, not states), violations; \
with violations also details, a list of seed, operation, what, image, replay. A violation is exit code 1.";

/// Look for a power failure that the store does not survive.
///
/// Runs generated work on a simulated medium and stops it at every kind of moment. From each of the images
/// that a power failure may leave there, it recovers the store and compares the contents with all
/// acknowledged writes. A violation is printed with the command that replays it.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The designs, separated by commas, or all.
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "quipu")]
    design: Vec<OneOrAll<Design>>,
    #[command(flatten)]
    config: CrashConfig,
    /// Print one JSON object a line, one for each design.
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Explores each design.
    pub fn run(self) -> Result<Outcome, Failure> {
        let mut outcome = Outcome::Fine;
        let designs = chosen(&self.design);
        settings::check(&self.config.settings, &designs)?;
        for design in designs {
            let settings = settings::of_design(&self.config.settings, design);
            let config = CrashConfig { design, settings, ..self.config.clone() };
            let report = Bar::during(&format!("{design}: states"), |bar| {
                explore(&config, &mut |done, total| {
                    bar.at(done, if total == u64::MAX { done } else { total })
                })
            })?;
            outcome = outcome.and(report.violations == 0);
            output::told(self.json, &report, || text(&report))?;
        }
        Ok(outcome)
    }
}

fn text(report: &CrashReport) -> String {
    let kinds: String =
        KINDS.iter().map(|kind| format!("{} {}, ", report.count(kind.name), kind.words)).collect();
    let commits = match report.commits {
        0 => String::new(),
        commits => format!("; {} of transactions", counted(commits, "commit")),
    };
    let counts = format!(
        "{}: {} in {} of {}, seed {}, {:.1} s; {kinds}{} opened from a checkpoint; {} eliminated{commits}",
        report.design,
        counted(report.states, "state"),
        counted(report.runs, "run"),
        counted(report.operations, "operation"),
        report.seed,
        report.seconds,
        report.from_checkpoint,
        counted(report.eliminated, "put"),
    );
    let violation = |Violation { seed, operation, what, image, replay }: &Violation| {
        let lines = image.replace('\n', "\n  ");
        let image = if image.is_empty() { lines } else { format!("  image: {lines}\n") };
        format!(
            "violation: {what}\n  seed {seed}, before operation {operation} on the medium\n{image}  replay: {replay}"
        )
    };
    let violations = Vec::from_iter(report.details.iter().map(violation));
    output::findings(&counts, &violations, &counted(report.violations, "violation"))
}
