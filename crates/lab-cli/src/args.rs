//! The command line as a whole.

use crate::commands::{bench, crash, isolation, kill, linear, soak};
use clap::builder::styling::Styles;
use clap::{Parser, Subcommand};
use quipu_cli::failure::{Failure, Outcome};
use quipu_cli::program;
use std::process::ExitCode;

/// Rules of all commands, shown below the list of them.
const EVERYWHERE: &str = "\
Exit codes:
  0  all is well
  1  a violation was found, or a failure on the way
  2  the command was misused

Results go to standard output, with --json as one object a line; errors and progress go to standard error. With \
--json a failure is an object there too: error, hint (or null) and exit (the code).

Examples:
  quipu-lab crash --design quipu --states 5000
  quipu-lab linear --design all --overlapping 2k
  quipu-lab isolation --level serializable
  quipu-lab kill scratch.pool --rounds 50
  quipu-lab bench paper viper --figure 6,10";

#[derive(Parser)]
#[command(
    name = "quipu-lab",
    version,
    about = "Proofs of the key-value store Quipu, and the evaluations of the papers that it builds on.",
    after_help = EVERYWHERE,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    styles = Styles::plain(),
    max_term_width = 100
)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

/// A command with its arguments.
#[derive(Subcommand)]
enum Command {
    // Each says of itself what it does, in its own file; a sentence here would take that one's place in the
    // help.
    Crash(crash::Args),
    Linear(linear::Args),
    Isolation(isolation::Args),
    Kill(kill::Args),
    #[command(hide = true)]
    KillWriter(kill::WriterArgs),
    #[command(hide = true)]
    KillJudge(kill::JudgeArgs),
    Soak(soak::Args),
    Bench(bench::Args),
}

impl Command {
    /// Carries the command out.
    fn run(self) -> Result<Outcome, Failure> {
        match self {
            Command::Crash(args) => args.run(),
            Command::Linear(args) => args.run(),
            Command::Isolation(args) => args.run(),
            Command::Kill(args) => args.run(),
            Command::KillWriter(args) => args.run(),
            Command::KillJudge(args) => args.run(),
            Command::Soak(args) => args.run(),
            Command::Bench(args) => args.run(),
        }
    }
}

/// The program: does what its command line asks for.
pub fn main() -> ExitCode {
    program::run(|line: Line| line.command.run())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Line::command().debug_assert();
    }

    #[test]
    fn every_command_teaches_by_examples() {
        assert_eq!(program::without_examples(&Line::command()), [""; 0]);
    }
}
