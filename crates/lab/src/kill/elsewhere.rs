//! The judge of a writer that died with its machine.
//!
//! [`explore`](super::explore) starts its writers itself. Where a whole machine dies, nobody inside
//! survives to judge: a writer sends its acknowledgements out of the machine, and the next boot judges them.
//! Each round is then a process of its own, so a file carries the contents of the pool to the next one.

use super::config::{JudgeConfig, JudgeReport};
use super::frame::Acknowledgement;
use super::round::Traces;
use super::run::{Found, after};
use crate::linear::Contents;
use crate::run::RunError;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

/// Judges one round. Its contents replace those of the round before it only if nothing is wrong.
///
/// # Errors
/// A file that cannot be read or written.
pub fn judge_round(config: &JudgeConfig) -> Result<JudgeReport, RunError> {
    let JudgeConfig { writer, design, .. } = config;
    let bytes = read(&config.acknowledgements)?.unwrap_or_default();
    let whole = Acknowledgement::of_lines(&bytes);
    let complaint =
        whole.is_none().then(|| "the writer sent something else than acknowledgements".to_owned());
    let traces = Traces { acknowledged: whole.unwrap_or_default(), complaint };
    let (round, acknowledged) = (writer.round, traces.acknowledged.len() as u64);
    let report = JudgeReport { round, acknowledged, ..JudgeReport::default() };
    let before = before(config)?;
    Ok(match after(*design, writer, &before, traces) {
        Ok(Found { values, in_flight, .. }) => {
            keep(&config.contents, &values)?;
            JudgeReport { keys: values.len() as u64, in_flight, ..report }
        }
        Err(violation) => JudgeReport { violation: Some(violation), ..report },
    })
}

/// The contents before the round. The pool is empty before the first.
fn before(config: &JudgeConfig) -> Result<Contents, RunError> {
    let path = &config.contents;
    match read(path)? {
        Some(json) => {
            serde_json::from_slice(&json).map_err(|error| RunError::system(path.display())(error.into()))
        }
        None if config.writer.round == 0 => Ok(Contents::new()),
        None => Err(RunError::system(path.display())(ErrorKind::NotFound.into())),
    }
}

/// All of a file; `None` if there is none.
fn read(path: &Path) -> Result<Option<Vec<u8>>, RunError> {
    let mut bytes = Vec::new();
    match File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)) {
        Ok(_) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(RunError::system(path.display())(error)),
    }
}

/// Writes the contents, which stay when the machine dies in the next round.
fn keep(path: &Path, contents: &Contents) -> Result<(), RunError> {
    let json = serde_json::to_vec(contents).expect("numbers are always JSON");
    let written = File::create(path).and_then(|mut file| {
        file.write_all(&json)?;
        file.sync_all()
    });
    written.map_err(RunError::system(path.display()))
}
