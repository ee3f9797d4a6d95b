//! `quipu-lab kill`: kills writers and judges what they leave. The writer itself is the hidden command
//! `kill-writer`; the hidden command `kill-judge` judges one that died with its machine.

use super::failed;
use quipu_bench::size::human;
use quipu_cli::failure::{Failure, Outcome};
use quipu_cli::output::{self, Bar, counted};
use quipu_lab::kill::{self, JudgeConfig, KillConfig, KillReport, WriterConfig, explore};
use std::fs::File;
use std::os::fd::AsFd;
use std::process::Command;

const EXAMPLES: &str = "\
Examples:
  quipu-lab kill scratch.pool --rounds 50
  quipu-lab kill /mnt/pmem0/scratch.pool --rounds 500 --seed 7 --json
  quipu-lab kill scratch.pool --design xp --rounds 100                    # with dumps to levels beside the pool
  quipu-lab kill scratch.pool --design xp --rounds 200 --transfers        # transactions; the sum must be right
  quipu-lab kill scratch.pool --rounds 200 --threads 1 --twin late-put    # must end with a violation

POOL must not exist; it is created, and removed if all went well. A violation ends the run, leaves the pool \
for a closer look, and is exit code 1.

Fields of the JSON object: design, seed, threads, rounds, early (writers killed before their first \
acknowledgement), acknowledged (calls), refused (calls, by a full pool, which is then replaced), in_flight \
(values that were there without an acknowledgement), level_bytes (at the end), pools, violations; with violations also details, a list of \
round, what, replay.";

/// Kill writers with SIGKILL, and see that what they acknowledged is there.
///
/// A process writes to the pool and acknowledges every call after it has returned. At a moment drawn from the
/// seed it is killed, sometimes while it is still recovering the pool. Then the pool is opened, checked and
/// read: every acknowledged call must be there, calls in flight may be, and nothing else. The next writer
/// goes on with the same pool.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    config: KillConfig,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Kills and judges.
    pub fn run(self) -> Result<Outcome, Failure> {
        let program = std::env::current_exe().map_err(|error| {
            Failure::Problem(format!("cannot find this program to start it again: {error}"))
        })?;
        let writer = |told: &WriterConfig| {
            let mut command = Command::new(&program);
            let number = |flag: &str, number: u64| [flag.to_owned(), number.to_string()];
            command.arg("kill-writer").arg(&told.pool);
            command.args(number("--seed", told.seed)).args(number("--round", told.round));
            command.args(number("--threads", told.threads as u64));
            command.args(told.transfers.then_some("--transfers"));
            command.args(told.twin.iter().flat_map(|twin| ["--twin".to_owned(), twin.to_string()]));
            command
        };
        let report = Bar::during("writers killed", |bar| {
            explore(&self.config, &writer, &mut |done| bar.at(done, self.config.rounds))
        })
        .map_err(failed)?;
        output::told(self.json, &report, || text(&report))?;
        Ok(Outcome::Fine.and(report.violations == 0))
    }
}

fn text(report: &KillReport) -> String {
    let levels = match report.level_bytes {
        0 => String::new(),
        bytes => format!(", {} on levels", human(bytes)),
    };
    let counts = format!(
        "{}: {} of {} killed, {} before their first acknowledgement, seed {}, {:.1} s; {} acknowledged, {} of them \
         refused, {} in flight had arrived, {} used{levels}",
        report.design,
        counted(report.rounds, "writer"),
        counted(report.threads as u64, "thread"),
        report.early,
        report.seed,
        report.seconds,
        counted(report.acknowledged, "call"),
        report.refused,
        report.in_flight,
        counted(report.pools, "pool"),
    );
    output::findings(&counts, &report.details, "the pool is left as it is")
}

const WRITER_EXAMPLES: &str = "\
Examples:
  quipu-lab kill scratch.pool          # starts writers by itself";

/// The process that `quipu-lab kill` kills: writes to a pool without end, and acknowledges on standard
/// output.
#[derive(clap::Args)]
#[command(after_help = WRITER_EXAMPLES)]
pub struct WriterArgs {
    #[command(flatten)]
    config: WriterConfig,
}

impl WriterArgs {
    /// Writes until it is killed.
    pub fn run(self) -> Result<Outcome, Failure> {
        // Past the buffer of standard output: an acknowledgement must be in the pipe.
        let stdout = std::io::stdout().as_fd().try_clone_to_owned();
        let stdout = File::from(stdout.map_err(|error| Failure::output(&error))?);
        kill::write(&self.config, &stdout)?;
        Ok(Outcome::Fine)
    }
}

const JUDGE_EXAMPLES: &str = "\
Examples:
  quipu create a.pool --size 64M --zone-size 64K
  quipu-lab kill-writer a.pool --seed 1 --round 0 --threads 2 > /dev/vport0p1     # until the machine dies
  quipu-lab kill-judge a.pool --seed 1 --round 0 --threads 2 --acknowledgements acks --contents contents.json

Fields of the JSON object: round, acknowledged, in_flight, keys, violation (or null).";

/// Judge the pool of a writer that died with its machine by the acknowledgements that came out of it.
#[derive(clap::Args)]
#[command(after_help = JUDGE_EXAMPLES)]
pub struct JudgeArgs {
    #[command(flatten)]
    config: JudgeConfig,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl JudgeArgs {
    /// Judges one round.
    pub fn run(self) -> Result<Outcome, Failure> {
        let report = kill::judge_round(&self.config).map_err(failed)?;
        output::told(self.json, &report, || {
            let found = format!(
                "round {}: {} acknowledged, {} in flight had arrived, {}",
                report.round,
                counted(report.acknowledged, "call"),
                report.in_flight,
                counted(report.keys, "key"),
            );
            match &report.violation {
                None => found,
                Some(violation) => format!("{found}\nviolation: {violation}"),
            }
        })?;
        Ok(Outcome::Fine.and(report.violation.is_none()))
    }
}
