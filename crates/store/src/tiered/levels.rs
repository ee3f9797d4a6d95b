//! Opening the levels of a pool.

use super::Tiers;
use crate::engine::site::Site;
use crate::types::error::Error;
use quipu_parts::index::BothWays;
use quipu_parts::record::Certifier;
use quipu_parts::runs::{Forest, RunsError};
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes of the cache of blocks of all levels.
#[cfg(feature = "levels")]
const CACHE: u64 = 256 << 20;
/// Bytes of a file.
#[cfg(feature = "levels")]
const FILE: u64 = 64 << 20;

/// The levels of a pool, if it is to have any.
pub(super) fn forest(site: &Site<'_>, certifier: &Certifier) -> Result<Option<Arc<dyn Forest>>, Error> {
    if let Some(testing) = &site.options.testing.forest {
        return Ok(Some(testing.0.clone()));
    }
    let pool = certifier.key_hash(b"levels");
    site.folder
        .clone()
        .map(|folder| files(folder, pool, site.space.region().len()))
        .transpose()
        .map(Option::flatten)
}

/// Levels in files, below a pool of this digest and so many bytes.
#[cfg(feature = "levels")]
fn files(folder: PathBuf, pool: u64, len: u64) -> Result<Option<Arc<dyn Forest>>, Error> {
    use quipu_parts::runs::lsm::{LsmForest, LsmSettings};
    // The first level has about as many files as half a pool fills, and so is as large as a dump.
    let first_level = (len / 2 / FILE).clamp(4, 255) as u8;
    let settings = LsmSettings { cache: CACHE, first_level, file: FILE, pool };
    Ok(Some(Arc::new(LsmForest::open(&folder, settings)?)))
}

#[cfg(not(feature = "levels"))]
fn files(_folder: PathBuf, _pool: u64, _len: u64) -> Result<Option<Arc<dyn Forest>>, Error> {
    Ok(None)
}

/// The tables that have levels, as far as it can be known.
pub(super) fn trees(forest: Option<&dyn Forest>) -> Vec<u64> {
    forest.and_then(|forest| forest.trees().ok()).unwrap_or_default()
}

impl<I: BothWays> Tiers<I> {
    /// Opens the levels of all tables, and removes those of tables that have been dropped. All items up to
    /// the cut count, and no other.
    pub(super) fn open_levels(&self, cut: u64) -> Result<(), Error> {
        let (tables, participant) = (self.tables.all(), self.epochs.register());
        let Some(forest) = &self.dumper.forest else {
            return match tables.iter().find(|table| table.subtable.flushed != 0) {
                None => Ok(()),
                Some(table) => Err(Error::Option(format!(
                    "a part of the table {:?} is on levels, and this opening has none; name their folder (--levels)",
                    table.subtable.name
                ))),
            };
        };
        let trees = forest.trees()?;
        let is_unknown = |tree: &&u64| tables.iter().all(|table| table.subtable.created != **tree);
        // Several readers may be at it.
        for tree in trees.iter().filter(is_unknown).filter(|_| !self.region().is_read_only()) {
            forest.remove(*tree)?;
        }
        for table in &tables {
            let name = &table.subtable.name;
            if trees.contains(&table.subtable.created) {
                let runs = forest.open(table.subtable.created)?;
                if runs.levels().highest().is_some_and(|highest| highest > cut) {
                    let what = format!("the levels of the table {name:?}, which are newer than the pool,");
                    return Err(Error::damaged(what, 0, 0));
                }
                table.use_levels(&participant.pin(), &runs);
            } else if table.subtable.flushed != 0 {
                let what = format!("those of the table {name:?} are missing; name their folder (--levels)");
                return Err(RunsError::Damaged { place: forest.place(), what }.into());
            }
        }
        Ok(())
    }
}
