//! How a command ends: its exit code, and what it says when it fails.

use crate::program::wants_json;
use quipu::{Error, ErrorKind};
use quipu_bench::BenchError;
use quipu_medium::MediumError;
use serde_json::json;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

/// How a command ended that did what it was asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All is well.
    Fine,
    /// It found a problem and has said which.
    Problem,
}

impl Outcome {
    /// This outcome, or a problem unless a further part of the command is fine.
    pub fn and(self, is_fine: bool) -> Outcome {
        if is_fine { self } else { Outcome::Problem }
    }
}

/// Why a command did not do what it was asked to.
#[derive(Debug)]
pub enum Failure {
    /// It was misused, or the file is no pool; nothing was changed.
    Usage(String),
    /// Something failed on the way.
    Problem(String),
    /// The key that was asked for is not there.
    Absent(String),
    /// The reader of standard output has gone away, so nothing is left to do.
    ReaderGone,
}

/// The exit code of a command of this program, after its failure has been told.
pub fn exit_code(program: &str, result: Result<Outcome, Failure>) -> ExitCode {
    let (code, text) = match result {
        Ok(Outcome::Fine) => return ExitCode::SUCCESS,
        Ok(Outcome::Problem) | Err(Failure::ReaderGone) => return ExitCode::from(1),
        Err(Failure::Problem(text)) => (1, text),
        Err(Failure::Usage(text)) => (2, text),
        Err(Failure::Absent(text)) => (3, text),
    };
    let (what, hint) = text.split_once("; ").map_or((&*text, None), |(what, hint)| (what, Some(hint)));
    tell(program, what, hint, code);
    ExitCode::from(code)
}

/// Says what failed, and on a line of its own what would help: errors are worded that way, with a semicolon
/// between. A program that wants JSON gets an object.
pub fn tell(program: &str, what: &str, hint: Option<&str>, code: u8) {
    let told = match hint {
        _ if wants_json() => json!({ "error": what, "hint": hint, "exit": code }).to_string(),
        Some(hint) => format!("{program}: {what}\nhint: {hint}"),
        None => format!("{program}: {what}"),
    };
    // Nobody can be told that standard error does not work.
    let _ = writeln!(io::stderr(), "{told}");
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let usage = match &error {
            Error::Medium(error) => is_usage(error),
            error => matches!(error.kind(), ErrorKind::Argument | ErrorKind::NotAPool),
        };
        Failure::new(usage, error.to_string())
    }
}

impl From<MediumError> for Failure {
    fn from(error: MediumError) -> Failure {
        Failure::new(is_usage(&error), error.to_string())
    }
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Failure {
        let text = error.to_string();
        match error {
            // Settings are called what their flags are called, but for the spaces.
            BenchError::Setting { setting, reason } => {
                Failure::Usage(format!("--{} {reason}", setting.replace(' ', "-")))
            }
            BenchError::NoOrder { .. } => Failure::Usage(text),
            BenchError::Medium(error) => error.into(),
            BenchError::Store { source, .. } => {
                let source = source.downcast::<Error>().map(|error| Failure::from(*error));
                Failure::new(matches!(source, Ok(Failure::Usage(_))), text)
            }
            _ => Failure::Problem(text),
        }
    }
}

impl Failure {
    /// A misuse, or a problem.
    pub fn new(usage: bool, text: String) -> Failure {
        if usage { Failure::Usage(text) } else { Failure::Problem(text) }
    }

    /// The same with the file in front, unless the text says which.
    pub fn naming(self, path: &Path) -> Failure {
        let name = path.display().to_string();
        let named = |text: String| if text.contains(&name) { text } else { format!("{name}: {text}") };
        match self {
            Failure::Usage(text) => Failure::Usage(named(text)),
            Failure::Problem(text) => Failure::Problem(named(text)),
            other => other,
        }
    }

    /// A file that was named cannot be used: `what` is what cannot be done with it.
    pub fn file(what: &str, path: &Path, error: &io::Error) -> Failure {
        Failure::new(is_wrong_name(error.kind()), format!("cannot {what} {}: {error}", path.display()))
    }

    /// A failure to write to standard output.
    pub fn output(error: &io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ReaderGone,
            _ => Failure::Problem(format!("cannot write to standard output: {error}")),
        }
    }
}

/// Whether another argument would help: a path that is not there, is taken, or cannot be a pool.
fn is_usage(error: &MediumError) -> bool {
    match error {
        MediumError::Io { source, .. } => is_wrong_name(source.kind()),
        MediumError::Exists { .. } | MediumError::Unsuitable { .. } | MediumError::UnknownWord { .. } => true,
        _ => false,
    }
}

/// Whether another path would help. A permission that is missing is a problem of the right path.
fn is_wrong_name(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{AlreadyExists, InvalidFilename, IsADirectory, NotADirectory, NotFound};
    matches!(kind, AlreadyExists | InvalidFilename | IsADirectory | NotADirectory | NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a pool, and of a file to import or to export to.
    #[test]
    fn a_missing_permission_is_a_problem_and_a_wrong_path_is_misuse() {
        let path = Path::new("a file");
        let is_usage = |kind: io::ErrorKind| {
            let of_pool = MediumError::Io { path: path.into(), action: "open", source: kind.into() };
            let both = [Failure::from(Error::from(of_pool)), Failure::file("read", path, &kind.into())];
            both.map(|failure| matches!(failure, Failure::Usage(_)))
        };
        assert_eq!(is_usage(io::ErrorKind::PermissionDenied), [false; 2]);
        assert_eq!(is_usage(io::ErrorKind::ReadOnlyFilesystem), [false; 2]);
        assert_eq!(is_usage(io::ErrorKind::NotFound), [true; 2]);
        assert_eq!(is_usage(io::ErrorKind::IsADirectory), [true; 2]);
    }
}
