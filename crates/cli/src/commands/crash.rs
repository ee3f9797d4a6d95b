//! `quipu crash`: explores what power failures may leave.

use crate::args::{DesignChoice, chosen};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Bar, counted};
use quipu_lab::crash::{CrashConfig, CrashReport, KINDS, explore};
use quipu_lab::settings;

const EXAMPLES: &str = "\
Examples:
  quipu crash --design quipu --states 5000
  quipu crash --design all --states 100k --threads 3 --json
  quipu crash --design quipu --seed 17 --runs 1            # replays one run
  quipu crash --design flatstore-ph --states 20k --set pacman=off
  quipu crash --design quipu --states 20k --twin publish-before-persist

Fields of the JSON objects: design, seed, operations, states, nested, during_compaction, during_recovery, \
during_growth, during_index_split, after_index_split, after_index_removal, during_index_zone, after_index_zone, \
word_keys, after_clock, expired, during_survey, during_close, fixed, during_in_place, from_checkpoint, eliminated (puts, not \
states), violations; with violations also details, a list of seed, operation, what, image, replay. A violation is exit code 1.";

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
    design: Vec<DesignChoice>,
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
            let bar = Bar::new(&format!("{design}: states"));
            let report = explore(&config, &mut |done, total| {
                bar.at(done, if total == u64::MAX { done } else { total })
            })?;
            bar.clear();
            outcome = outcome.and(report.violations == 0);
            output::told(self.json, &report, || text(&report))?;
        }
        Ok(outcome)
    }
}

fn text(report: &CrashReport) -> String {
    let kinds: String =
        KINDS.iter().map(|kind| format!("{} {}, ", report.count(kind.name), kind.words)).collect();
    let mut text = format!(
        "{}: {} in {} of {}, seed {}, {:.1} s; {kinds}{} opened from a checkpoint; {} eliminated\n",
        report.design,
        counted(report.states, "state"),
        counted(report.runs, "run"),
        counted(report.operations, "operation"),
        report.seed,
        report.seconds,
        report.from_checkpoint,
        counted(report.eliminated, "put"),
    );
    for violation in &report.details {
        text.push_str(&format!(
            "\nviolation: {}\n  seed {}, before operation {} on the medium\n",
            violation.what, violation.seed, violation.operation
        ));
        if !violation.image.is_empty() {
            text.push_str(&format!("  image: {}\n", violation.image.replace('\n', "\n  ")));
        }
        text.push_str(&format!("  replay: {}\n", violation.replay));
    }
    text.push_str(&match report.violations {
        0 => "no violation".to_owned(),
        count => format!("\n{}", counted(count, "violation")),
    });
    text
}
