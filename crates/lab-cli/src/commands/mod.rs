//! The commands, one file each: its arguments, its help, and what it does.

pub mod bench;
pub mod crash;
pub mod isolation;
pub mod kill;
pub mod linear;
pub mod soak;

use quipu_cli::failure::Failure;
use quipu_lab::run::RunError;

/// Makes the failure of a run that of a command.
fn failed(error: RunError) -> Failure {
    let text = error.to_string();
    match error {
        RunError::Create(error) => error.into(),
        RunError::Setting { .. } => Failure::Usage(text),
        RunError::Store { source, .. } => Failure::new(matches!(source.into(), Failure::Usage(_)), text),
        RunError::System { .. } | RunError::Met { .. } => Failure::Problem(text),
    }
}
