//! The frame of every program: it reads its command line, does what that says, and ends with a code.

use crate::failure::{self, Failure, Outcome, tell};
use clap::Parser;
use clap::error::ErrorKind;
use std::io::{self, Write};
use std::process::ExitCode;

/// Reads the command line, carries it out, and tells how that ended. A line that asks for help, or that
/// cannot be read, is dealt with here.
pub fn run<L: Parser>(carry_out: impl FnOnce(L) -> Result<Outcome, Failure>) -> ExitCode {
    // A limit of file sizes is an error and not the end.
    quipu_medium::ignore_file_limit_signal();
    let program = L::command().get_name().to_owned();
    match L::try_parse() {
        Ok(line) => failure::exit_code(&program, carry_out(line)),
        Err(error) => not_read(&program, &error),
    }
}

fn not_read(program: &str, error: &clap::Error) -> ExitCode {
    match error.kind() {
        // A reader that has gone away needs no help any more.
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => drop(error.print()),
        _ => {
            let text = error.render().to_string();
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            if wants_json() {
                let (what, rest) = text.trim().split_once("\n\n").unwrap_or((text, ""));
                tell(program, what, Some(rest).filter(|rest| !rest.is_empty()), error.exit_code() as u8);
            } else {
                // Nobody can be told that standard error does not work.
                let _ = write!(io::stderr(), "{program}: {text}");
            }
        }
    }
    ExitCode::from(error.exit_code() as u8)
}

/// Whether the command line has `--json`, also if it cannot be read.
pub fn wants_json() -> bool {
    std::env::args_os().take_while(|word| word != "--").any(|word| word == "--json")
}

/// The commands of a program that say nothing of themselves, or show no examples. For the tests of programs.
pub fn without_examples(command: &clap::Command) -> Vec<&str> {
    let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let teaches = command.get_about().is_some() && examples.contains("Examples:\n  quipu");
    let own = (!teaches).then_some(command.get_name());
    own.into_iter().chain(command.get_subcommands().flat_map(without_examples)).collect()
}
