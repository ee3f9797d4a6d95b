//! `quipu soak`: deletes and inserts for long, and sees that deleted keys stay away.

use crate::failure::{Failure, Outcome};
use crate::output::{self, Bar, counted};
use quipu_lab::size;
use quipu_lab::soak::{SoakConfig, SoakReport, explore};

const EXAMPLES: &str = "\
Examples:
  quipu soak scratch.pool
  quipu soak /mnt/pmem0/scratch.pool --clean 1k --unclean 1k --threads 4 --seed 7 --json
  quipu soak scratch.pool --twin tombstone-dropped-early       # needs --features twins; must end with a violation

POOL must not exist; it is created, and removed if all went well. A violation ends the run, leaves the pool \
for a closer look, and is exit code 1.

Fields of the JSON object: design, seed, threads, clean, unclean (reopenings), puts, deletes (calls), \
freed_segments, moved_bytes (by compaction), most_tombstone_bytes (at any reopening), tombstone_bytes (in the end, \
after compaction), violations; with violations also details, a list of reopenings, what, replay.";

/// Delete and insert again for long, and see that deleted keys remain deleted and nothing is lost.
///
/// Clients delete and insert over 20 to 2000 keys in a small pool, so that compaction is always at work.
/// Again and again the pool is closed, or abandoned as it is in the midst of the work, and opened. Each time
/// it is checked, and its contents must be exactly those of a model in memory. In the end compaction must
/// leave hardly a tombstone.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    config: SoakConfig,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Works, reopens and compares.
    pub fn run(self) -> Result<Outcome, Failure> {
        let reopenings = self.config.clean.saturating_add(self.config.unclean);
        let report =
            Bar::during("reopened", |bar| explore(&self.config, &mut |done| bar.at(done, reopenings)))?;
        output::told(self.json, &report, || text(&report))?;
        Ok(Outcome::Fine.and(report.violations == 0))
    }
}

fn text(report: &SoakReport) -> String {
    let counts = format!(
        "{}: {} and {} by {}, seed {}, {:.1} s; reopened {} times after a close and {} times in the midst of the \
         work; compaction freed {} and moved {}; tombstones took up to {}, in the end {}",
        report.design,
        counted(report.puts, "put"),
        counted(report.deletes, "delete"),
        counted(report.threads as u64, "client"),
        report.seed,
        report.seconds,
        report.clean,
        report.unclean,
        counted(report.freed_segments, "segment"),
        size::human(report.moved_bytes),
        size::human(report.most_tombstone_bytes),
        size::human(report.tombstone_bytes),
    );
    output::findings(&counts, &report.details, "the pool is left as it is")
}
