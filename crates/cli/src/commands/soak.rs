//! `quipu soak`: deletes and inserts for long, and sees that deleted keys stay away.

use crate::args;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Bar, counted};
use crate::size;
use clap::ValueEnum;
use quipu::Design;
use quipu::internals::Twin;
use quipu_lab::soak::{SoakConfig, SoakReport, explore};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  quipu soak scratch.pool
  quipu soak /mnt/pmem0/scratch.pool --clean 1k --unclean 1k --threads 4 --seed 7 --json
  quipu soak scratch.pool --twin tombstone-dropped-early       # must end with a violation

POOL must not exist; it is created, and removed if all went well. A violation ends the run, leaves the pool for \
whoever wants to look at it, and is exit code 1.

Fields of the JSON object: design, seed, threads, clean, unclean (reopenings), puts, deletes (calls), \
freed_segments, moved_bytes (by compaction), most_tombstone_bytes (at any reopening), tombstone_bytes (in the end, \
after compaction), violations; with violations also details, a list of reopenings, what, replay.";

/// Delete and insert again for long, and see that what is deleted stays away and nothing is lost.
///
/// Clients delete and insert over 20 to 2000 keys in a small pool, so that compaction is always at work. Again and
/// again the pool is closed, or abandoned as it is in the midst of the work, and opened. Each time it is checked, and
/// its contents must be exactly those of a model in memory. In the end compaction must leave hardly a tombstone.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The pool's file.
    pool: PathBuf,
    /// The design.
    #[arg(long, value_name = "NAME", default_value_t, value_parser = args::design)]
    design: Design,
    /// Keys at most; between two reopenings 20 to so many are in use.
    #[arg(long, value_name = "N", value_parser = size::count, default_value = "2000")]
    keys: u64,
    /// Clients, each on a thread of its own.
    #[arg(long, value_name = "T", value_parser = size::count, default_value = "2")]
    threads: u64,
    /// Calls of all clients together between two reopenings.
    #[arg(long, value_name = "N", value_parser = size::count, default_value = "20k")]
    ops: u64,
    /// Reopenings after a close.
    #[arg(long, value_name = "N", default_value_t = 100)]
    clean: u64,
    /// Reopenings of a copy that is made in the midst of the work.
    #[arg(long, value_name = "N", default_value_t = 100)]
    unclean: u64,
    /// What calls follow from. How threads meet is up to the machine.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Break the store on purpose, to see that it is noticed: a self-test, which must end with a violation.
    #[arg(long, value_enum, value_name = "NAME")]
    twin: Option<TwinChoice>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TwinChoice {
    /// Compaction drops tombstones while older segments remain.
    TombstoneDroppedEarly,
}

impl Args {
    /// Works, reopens and compares.
    pub fn run(self) -> Result<Outcome, Failure> {
        let config = SoakConfig {
            pool: self.pool,
            design: self.design,
            keys: self.keys,
            threads: self.threads as usize,
            ops: self.ops,
            clean: self.clean,
            unclean: self.unclean,
            seed: self.seed,
            twin: self.twin.map(|TwinChoice::TombstoneDroppedEarly| Twin::TombstoneDroppedEarly),
        };
        let bar = Bar::new("reopened");
        let report = explore(&config, &mut |done| bar.at(done, config.clean.saturating_add(config.unclean)));
        bar.clear();
        let mut report = report?;
        // A violation of a broken store is replayed on a store broken in the same way.
        if let Some(twin) = self.twin.and_then(|twin| twin.to_possible_value()) {
            for conviction in &mut report.details {
                conviction.replay.push_str(&format!(" --twin {}", twin.get_name()));
            }
        }
        if self.json {
            output::json_line(&report)?;
        } else {
            output::line(text(&report))?;
        }
        Ok(if report.violations == 0 { Outcome::Fine } else { Outcome::Problem })
    }
}

fn text(report: &SoakReport) -> String {
    let mut text = format!(
        "{}: {} and {} by {}, seed {}, {:.1} s; reopened {} times after a close and {} times in the midst of the \
         work; compaction freed {} and moved {}; tombstones took up to {}, in the end {}\n",
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
    for conviction in &report.details {
        text.push_str(&format!(
            "\nviolation after {}: {}\n  replay: {}\n",
            counted(conviction.reopenings, "reopening"),
            conviction.what,
            conviction.replay
        ));
    }
    text.push_str(if report.violations == 0 { "no violation" } else { "\nthe pool is left as it is" });
    text
}
