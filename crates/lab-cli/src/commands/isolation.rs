//! `quipu-lab isolation`: judges what transactions see of each other.

use super::failed;
use quipu_bench::choice::{OneOrAll, chosen};
use quipu_cli::failure::{Failure, Outcome};
use quipu_cli::output::{self, Bar, counted};
use quipu_lab::isolation::{IsolationConfig, IsolationReport, Level, explore};

const EXAMPLES: &str = "\
Examples:
  quipu-lab isolation
  quipu-lab isolation --level serializable --transactions 1M --seconds 600
  quipu-lab isolation --level snapshot,serializable --threads   # on real threads
  quipu-lab isolation --level snapshot --merging key --json
  quipu-lab isolation --twin scan-not-repeated                  # must end with violations

A violation names the anomaly, and shows the transactions that have part in it: the stamps of the beginning and \
the end, each step, and the number of the commit. A value is told by its transaction and write: t7.0.

Fields of the JSON objects: level, ground (sim or threads), seed, histories, transactions, committed, conflicts, \
reads (keys that were read), lost_updates (at read-committed, which allows them), skewed (histories with write \
skew, at snapshot, which allows it), dumped_bytes, moved_records, violations; with violations also details, a list \
of seed, what, replay. A violation is exit code 1.";

/// Look for transactions that see of each other what their level forbids.
///
/// Makes many small histories of design xp: three tasks with transactions on few keys in up to three tables,
/// beside single calls, range deletes, dumps, merges and compactions. Everything that they are told is
/// recorded. A judge then looks for dirty, aborted and intermediate reads, reads of no one state, lost
/// updates, and cycles of dependencies, ranges and absent keys included. On the simulator a seed makes the
/// same history again.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The levels, separated by commas: read-committed, snapshot, serializable, or all.
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "all")]
    level: Vec<OneOrAll<Level>>,
    #[command(flatten)]
    config: IsolationConfig,
    /// Print one JSON object a line, one for each level.
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Judges each level.
    pub fn run(self) -> Result<Outcome, Failure> {
        let mut outcome = Outcome::Fine;
        for level in chosen(&self.level) {
            let config = IsolationConfig { level, ..self.config.clone() };
            let report = Bar::during(&format!("{level}: transactions"), |bar| {
                explore(&config, &mut |done| bar.at(done, config.transactions.max(done)))
            })
            .map_err(failed)?;
            outcome = outcome.and(report.violations == 0);
            output::told(self.json, &report, || text(&report))?;
        }
        Ok(outcome)
    }
}

fn text(report: &IsolationReport) -> String {
    let counts = format!(
        "{} on {}: {} in {} histories from seed {}, {:.1} s; {} committed, {}; {}, {} histories with write skew",
        report.level,
        report.ground,
        counted(report.transactions, "transaction"),
        report.histories,
        report.seed,
        report.seconds,
        report.committed,
        counted(report.conflicts, "conflict"),
        counted(report.lost_updates, "lost update"),
        report.skewed,
    );
    output::findings(&counts, &report.details, &counted(report.violations, "violation"))
}
