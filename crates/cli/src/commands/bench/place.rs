//! Where a benchmark's pool is, and what that place survives.

use crate::failure::Failure;
use crate::leftover::own_path;
use crate::output;
use quipu::{Durability, MediumKind, Statement};
use quipu_medium::sim::SimOptions;
use quipu_medium::{MediumError, Pages, Region};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Bytes of the region that is made to hear what the medium says of itself.
const TRIAL: u64 = 4096;

/// A place for pools that are made and removed one after another.
pub struct Place {
    path: Option<PathBuf>,
    temporary: bool,
    statement: Statement,
}

impl Place {
    /// The place of a pool of this medium. A path that is taken, or cannot be the medium, is refused before
    /// anything is loaded.
    pub fn find(medium: MediumKind, pool: Option<PathBuf>) -> Result<Place, Failure> {
        let temporary = pool.is_none() && medium == MediumKind::File;
        let path = pool.or_else(|| temporary.then(temporary_path));
        let statement = match (&path, medium) {
            (_, MediumKind::Sim) => {
                Region::sim(SimOptions { len: TRIAL, ..SimOptions::default() }).statement()
            }
            (Some(path), _) => statement_at(path, medium)?,
            (None, MediumKind::Dax) => {
                let text = "--medium dax needs a place; name a new file on persistent memory with --pool";
                return Err(Failure::Usage(text.to_owned()));
            }
            (None, _) => Region::dram(TRIAL, Pages::Ordinary)?.statement(),
        };
        Ok(Place { path, temporary, statement })
    }

    /// The path, unless the pool is in memory.
    pub fn path(&self) -> Option<&PathBuf> {
        self.path.as_ref()
    }
}

/// The file of a benchmark that was killed would take its space until somebody finds it.
fn temporary_path() -> PathBuf {
    own_path(&std::env::temp_dir(), b".quipu-bench-", b".pool")
}

fn statement_at(path: &Path, medium: MediumKind) -> Result<Statement, Failure> {
    // A devdax device is there already too: it would have to be erased, which no benchmark may do unasked.
    if path.exists() {
        return Err(MediumError::Exists { path: path.to_owned() }.into());
    }
    let statement = Region::create(path, TRIAL, Some(medium), Durability::Process)?.statement();
    fs::remove_file(path)
        .map_err(|error| Failure::Problem(format!("cannot remove {}: {error}", path.display())))?;
    Ok(statement)
}

impl Drop for Place {
    fn drop(&mut self) {
        if let (Some(path), true) = (&self.path, self.temporary) {
            // Only a run that failed has left it behind.
            let _ = fs::remove_file(path);
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Statement { medium, durability, process_crash, os_crash, power_loss, evidence } = &self.statement;
        write!(f, "Pool: {medium}")?;
        match (&self.path, self.temporary) {
            (Some(path), true) => write!(f, ", a temporary file {}", path.display())?,
            (Some(path), false) => write!(f, ", {}", path.display())?,
            (None, _) => {}
        }
        write!(f, " ({})", evidence.join("; "))?;
        if *medium == MediumKind::File {
            write!(f, ", durability {durability}")?;
        }
        write!(
            f,
            ".\nAcknowledged writes survive a crash of the process: {}, of the system: {}, a power loss: {}.",
            output::word(process_crash),
            output::word(os_crash),
            output::word(power_loss)
        )
    }
}
