//! `quipu-lab soak`: threads on real memory, each with an exact model of its keys.

use super::failed;
use quipu::Design;
use quipu_bench::choice::{OneOrAll, chosen};
use quipu_bench::size;
use quipu_cli::failure::{Failure, Outcome};
use quipu_cli::output::{self, Bar, counted};
use quipu_lab::soak::{SoakConfig, SoakReport, explore};

const EXAMPLES: &str = "\
Examples:
  quipu-lab soak --pools 20
  quipu-lab soak --design all --minutes 10 --json >> soak.jsonl
  quipu-lab soak --design xp --minutes 10 --folder /mnt/pmem0       # pools in files
  quipu-lab soak --design xp --twin retired-in-view                 # needs --features twins; must end with a violation

A violation ends the run of its design, leaves the pool if that is a file, and is exit code 1.

Fields of the JSON objects: design, medium, seed, threads, pools, calls, full (calls that found no room), closed, \
dropped, abandoned (reopenings), freed_segments, moved_bytes (by compaction), dumped_bytes (to levels), \
most_tombstone_bytes (at any reopening), tombstone_bytes (in the end of a pool, after compaction), violations, \
seconds; with violations also details, a list of reopenings, what, replay. There is an object after each pool, \
with all that the run of its design has done so far: the last one of a design is its report.";

/// Let threads make all kinds of calls for long, and hold every answer against exact models.
///
/// Each thread has keys of its own among the others', so a model in memory knows every answer. The calls are
/// writes, batches, range deletes, expiring values, snapshots, scans in both directions and tables that come
/// and go.
/// Cleaners, dumps and compactions work beside them. Again and again the pool is closed, dropped, or
/// abandoned as it is in the midst of the work, and opened. Each time it is checked, and its contents must be
/// exactly those of the models. In the end compaction must leave hardly a tombstone. Pool after pool is of
/// another make.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The designs, separated by commas, or all.
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "quipu")]
    design: Vec<OneOrAll<Design>>,
    #[command(flatten)]
    config: SoakConfig,
    /// Print one JSON object a line, as each pool ends.
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Works, reopens and compares.
    pub fn run(self) -> Result<Outcome, Failure> {
        let mut outcome = Outcome::Fine;
        for design in chosen(&self.design) {
            let config = SoakConfig { design, ..self.config.clone() };
            let (mut pools, mut told) = (0, Ok(()));
            let report = Bar::during(&format!("{design}: soaked"), |bar| {
                explore(&config, &mut |report, done, total| {
                    bar.at(done, total);
                    if self.json && report.pools > pools && told.is_ok() {
                        (pools, told) = (report.pools, output::json_line(report));
                    }
                })
            })
            .map_err(failed)?;
            told?;
            outcome = outcome.and(report.violations == 0);
            if !self.json {
                output::line(text(&report))?;
            }
        }
        Ok(outcome)
    }
}

fn text(report: &SoakReport) -> String {
    let counts = format!(
        "{} on {}: {} by {} on {}, seed {}, {:.1} s; {} found no room; reopened {} times after a close, {} after a \
         drop and {} in the midst of the work; compaction freed {} and moved {}, {} went to levels; tombstones took up to {}, \
         in the end {}",
        report.design,
        report.medium,
        counted(report.calls, "call"),
        counted(report.threads as u64, "thread"),
        counted(report.pools, "pool"),
        report.seed,
        report.seconds,
        report.full,
        report.closed,
        report.dropped,
        report.abandoned,
        counted(report.freed_segments, "segment"),
        size::human(report.moved_bytes),
        size::human(report.dumped_bytes),
        size::human(report.most_tombstone_bytes),
        size::human(report.tombstone_bytes),
    );
    output::findings(&counts, &report.details, "the pool is left as it is")
}
