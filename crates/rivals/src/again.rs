//! Begins the program again where an engine needs it.
//!
//! pmemkv's libraries take their settings from the environment, and read it when they are loaded. Changing it
//! in a running process is sound only as long as no other thread reads it, so the process replaces itself.

use crate::output::Failure;
use quipu::MediumKind;
use quipu_rivals::Level;
use quipu_rivals::engines::pmemkv::environment;
use quipu_rivals::engines::{Choice, Kind};
use std::env;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Returns if the environment is good for all of `choices` on `medium`. If it is not, the same command begins
/// anew with another, and this does not return.
///
/// # Errors
/// [`Failure::Usage`] if no environment is good for all.
pub fn with_environment(choices: &[Choice], medium: MediumKind) -> Result<(), Failure> {
    let mut levels: Vec<Level> = Vec::new();
    for choice in choices.iter().filter(|choice| choice.kind == Kind::Pmemkv) {
        choice.kind.present()?;
        levels.push(choice.level);
    }
    levels.dedup();
    match levels.as_slice() {
        [] => Ok(()),
        [level] if environment::fits(*level, medium) => Ok(()),
        [level] => Err(begin_again(*level, medium)),
        _ => Err(Failure::Usage(
            "pmemkv takes one level a run, which its libraries read when they are loaded; compare runs both"
                .to_owned(),
        )),
    }
}

/// Why it could not.
fn begin_again(level: Level, medium: MediumKind) -> Failure {
    let failed = |source| Failure::Run { what: "this program again".to_owned(), source };
    let program = match env::current_exe() {
        Ok(program) => program,
        Err(source) => return failed(source),
    };
    let mut command = Command::new(program);
    command.args(env::args_os().skip(1));
    for (name, value) in environment::wanted(level, medium) {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    failed(command.exec())
}
