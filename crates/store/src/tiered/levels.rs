//! Opening the levels of a pool.

use super::Tiers;
use super::{pairing, recovery};
use crate::engine::site::{How, Site};
use crate::types::error::Error;
use quipu_parts::heap::chain::ChainHeap;
use quipu_parts::index::InOrder;
use quipu_parts::record::Certifier;
use quipu_parts::runs::{Forest, LevelsState, Runs, RunsError};
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes of the cache of blocks of all levels.
#[cfg(feature = "levels")]
const CACHE: u64 = 256 << 20;
/// Bytes of a file.
#[cfg(feature = "levels")]
const FILE: u64 = 64 << 20;

/// Levels, if there are to be some, and the tables that have them.
type ForestAndTrees = (Option<Arc<dyn Forest>>, Vec<u64>);

/// The levels of a pool, if it is to have any, and the tables that have some, by their numbers.
pub(super) fn forest_and_trees(site: &Site<'_>, certifier: &Certifier) -> Result<ForestAndTrees, Error> {
    let forest = forest(site, certifier)?;
    let trees = forest.as_ref().map(|forest| forest.trees()).transpose()?;
    Ok((forest, trees.unwrap_or_default()))
}

/// The levels of a pool, if it is to have any.
fn forest(site: &Site<'_>, certifier: &Certifier) -> Result<Option<Arc<dyn Forest>>, Error> {
    if let Some(testing) = &site.options.testing.forest {
        return Ok(Some(testing.0.clone()));
    }
    let pool = certifier.key_hash(b"levels");
    site.folder.clone().map(|folder| files(folder, pool, site)).transpose().map(Option::flatten)
}

/// Levels in files, below a pool of this digest.
#[cfg(feature = "levels")]
fn files(folder: PathBuf, pool: u64, site: &Site<'_>) -> Result<Option<Arc<dyn Forest>>, Error> {
    use quipu_parts::runs::lsm::{Access, LsmForest, LsmSettings};
    let (region, len) = (site.space.region(), site.space.region().len());
    let of_system = |error: std::io::Error| RunsError::Device {
        place: folder.display().to_string(),
        error: error.into(),
    };
    // The file of a new pool has its name later, and is its owner's until then; a device has no owner that
    // counts. On tmpfs and DAX a pool is a file, too.
    let path = region.mapping().paths().next();
    let access = match path.filter(|path| path.is_file()) {
        Some(path) => Access::of(path).map_err(of_system)?,
        None => Access::default(),
    };
    let read_only = region.is_read_only() || matches!(site.how, How::Unrecovered);
    // The first level has about as many files as half a pool fills, and so is as large as a dump.
    let first_level = (len / 2 / FILE).clamp(4, 255) as u8;
    let settings = LsmSettings { cache: CACHE, first_level, file: FILE, pool, read_only, access };
    Ok(Some(Arc::new(LsmForest::open(&folder, settings)?)))
}

#[cfg(not(feature = "levels"))]
fn files(_folder: PathBuf, _pool: u64, _site: &Site<'_>) -> Result<Option<Arc<dyn Forest>>, Error> {
    Ok(None)
}

/// Refuses levels that are not the pool's, before anything changes, and returns the state that is noted
/// beside them. The pool may be a new one.
pub(super) fn verify(
    heap: &ChainHeap,
    how: &How<'_>,
    (forest, trees): (Option<&dyn Forest>, &[u64]),
) -> Result<LevelsState, Error> {
    let is_there = matches!(how, How::Existing(_)) && !recovery::is_unfinished(heap)?;
    let (tables, paired) = match (heap.subtables(), recovery::anchor(heap)) {
        (Ok(tables), Ok(anchor)) if is_there => (tables, anchor.levels()),
        // Recovery tells the damage.
        _ if is_there => return Ok(LevelsState::default()),
        _ => Default::default(),
    };
    let mut relied = tables.iter().filter(|table| table.flushed != 0);
    let Some(forest) = forest else {
        return match relied.next() {
            None => Ok(LevelsState::default()),
            Some(table) => Err(Error::Option(format!(
                "a part of the table {:?} is on levels, and this opening has none; name their folder (--levels)",
                table.name
            ))),
        };
    };
    if let Some(table) = relied.clone().find(|table| !trees.contains(&table.created)) {
        let what = format!(
            "those of the table {:?} are missing; restore the folder that was copied with the pool, or name it \
             (--levels): no two pools share one",
            table.name
        );
        return Err(RunsError::Damaged { place: forest.place(), what }.into());
    }
    Ok(pairing::verify(forest, paired, relied.map(|table| table.created))?)
}

impl<I: InOrder> Tiers<I> {
    /// Opens the levels of all tables, and removes those of tables that have been dropped. All items up to
    /// the cut count, and no other.
    pub(super) fn open_levels(&self, cut: u64) -> Result<(), Error> {
        let (tables, participant) = (self.tables.all(), self.common.epochs.register());
        let Some(forest) = &self.dumper.forest else { return Ok(()) };
        for table in tables.iter().filter(|table| table.subtable.flushed != 0) {
            let name = &table.subtable.name;
            let runs = forest.open(table.subtable.created)?;
            if is_above(&*runs, cut) {
                return Err(newer_than_the_pool(name));
            }
            table.use_levels(&participant.pin(), &runs);
        }
        // Those of tables that have been dropped, and copies of records that the pool still has. A pool that
        // is older than its levels does not know all tables.
        let is_used = |tree: &u64| {
            tables.iter().any(|table| table.subtable.created == *tree && table.subtable.flushed != 0)
        };
        let unused: Vec<u64> = forest.trees()?.into_iter().filter(|tree| !is_used(tree)).collect();
        for tree in &unused {
            match forest.open(*tree) {
                Ok(runs) if is_above(&*runs, cut) => return Err(newer_than_the_pool(&tree.to_string())),
                // A crash may have left it half made.
                Ok(_) | Err(RunsError::Damaged { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if !self.region().is_read_only() {
            unused.into_iter().try_for_each(|tree| forest.remove(tree))?;
        }
        Ok(())
    }
}

/// Whether levels have a number above this one.
fn is_above(runs: &dyn Runs, cut: u64) -> bool {
    runs.levels().highest().is_some_and(|highest| highest > cut)
}

fn newer_than_the_pool(name: &str) -> Error {
    Error::damaged(format!("the levels of the table {name:?}, which are newer than the pool,"), 0, 0)
}
