//! Levels in files, by the crate `lsm-tree`.
//!
//! The library has tables of sorted keys with filters, caches and compaction. Versions, snapshots and their
//! purge are ours, and these rules keep the two apart:
//!
//! - *Numbers.* The library counts its own changes below 2^40, and our numbers are 2^40 higher. With 2^40 as
//!   the watermark it purges nothing by itself, and keeps no old file.
//! - *Kinds.* For the library all entries are values: it drops tombstones of its own before a filter sees
//!   them. The kind and the number stand in the value (`entry`).
//! - *Purge.* One filter for each compaction takes away entries (`purge`).
//! - *Reads* go over a list of tables of our own (`levels`, `scan`), since the library reads under a lock
//!   that it holds while it syncs files.
//! - *Files* are removed by the thread that drops the last list with them. So the tree keeps every list that
//!   it has handed out, and only a compaction drops those that nobody else has (`tree`).
//! - *Order.* Nothing in the library checks it: tables in a wrong order are not found. So it is asserted
//!   here.
//! - *Names.* A publication that failed may have happened. The file `current` tells (`files`), and if so,
//!   nothing may be changed any more, since the next change would overwrite a file in place.
//! - *Runs of the first level* are counted by one byte in the library's file of names. A publication is
//!   refused long before.

mod access;
mod config;
mod entry;
mod files;
mod levels;
mod purge;
mod read_only;
mod remains;
mod scan;
mod tree;

pub use self::access::Access;

use self::files::Note;
use self::read_only::ReadRuns;
use self::remains::LsmRemains;
use super::{Forest, LevelsState, Remains, Runs, RunsError};
use crate::sync::SpinLock;
use lsm_tree::{Cache, DescriptorTable};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Settings of a forest in files.
#[derive(Clone, Copy, Debug)]
pub struct LsmSettings {
    /// Bytes of the cache of blocks, for all trees together.
    pub cache: u64,
    /// Files in the first level from which on it is merged into the next. That one has as many.
    pub first_level: u8,
    /// Bytes of a file that a compaction writes. Those of a dump have 64 MiB.
    pub file: u64,
    /// A digest of the pool's secret, by which a folder is known.
    pub pool: u64,
    /// Whether nothing is changed. Then trees are opened as they are, and changes of them fail.
    pub read_only: bool,
    /// The access of its files.
    pub access: Access,
}

/// The trees of a pool, each in a folder named by its table.
pub struct LsmForest(Arc<Shared>);

struct Shared {
    folder: PathBuf,
    settings: LsmSettings,
    cache: Arc<Cache>,
    descriptors: Arc<DescriptorTable>,
    /// The trees that are open, with the versions that their files name at least.
    open: SpinLock<BTreeMap<u64, u64>>,
}

/// Open files, of all trees together.
const DESCRIPTORS: usize = 512;

impl LsmForest {
    /// The forest in a folder. One that is missing has no trees, and is made by the first tree.
    ///
    /// # Errors
    /// If the folder belongs to another pool, or has names that are not of levels; if a link leads nowhere;
    /// and those of the system.
    pub fn open(folder: &Path, settings: LsmSettings) -> Result<LsmForest, RunsError> {
        files::refuse_unreachable(folder)?;
        let (_, gone) = files::survey(folder, settings.pool)?;
        if !settings.read_only {
            files::clear(folder, &gone)?;
            let given = if folder.exists() { settings.access.give_first(folder) } else { Ok(()) };
            given.map_err(|error| files::device(folder, error))?;
        }
        Ok(LsmForest(Arc::new(Shared {
            folder: folder.to_owned(),
            settings,
            cache: Arc::new(Cache::with_capacity_bytes(settings.cache)),
            descriptors: Arc::new(DescriptorTable::new(DESCRIPTORS)),
            open: SpinLock::default(),
        })))
    }
}

impl LsmForest {
    fn read_tree(&self, table: u64) -> Result<ReadRuns, RunsError> {
        let opening = tree::Opening::new(self.0.clone(), table);
        files::refuse_unreadable(&self.0.folder, table)?;
        ReadRuns::open(opening, &files::tree(&self.0.folder, table))
    }

    fn open_tree(&self, table: u64) -> Result<tree::LsmRuns, RunsError> {
        let (shared, of_system) = (&self.0, |error| files::device(&self.0.folder, error));
        let LsmSettings { pool, access, .. } = shared.settings;
        files::found(&shared.folder, pool, access).map_err(of_system)?;
        let opening = tree::Opening::new(shared.clone(), table);
        let folder = files::tree(&shared.folder, table);
        let folders = files::ready_tree(&shared.folder, table, access)?;
        let runs = tree::LsmRuns::open(opening, &folder, folders)?;
        files::sync_parent(&folder).map_err(of_system)?;
        Ok(runs)
    }
}

impl Forest for LsmForest {
    fn place(&self) -> String {
        self.0.folder.display().to_string()
    }

    fn trees(&self) -> Result<Vec<u64>, RunsError> {
        Ok(files::survey(&self.0.folder, self.0.settings.pool)?.0.into_iter().collect())
    }

    fn state(&self) -> Result<LevelsState, RunsError> {
        Ok(files::noted(&self.0.folder, self.0.settings.pool)?.state)
    }

    fn note(&self, state: LevelsState) -> Result<(), RunsError> {
        let LsmSettings { pool, access, .. } = self.0.settings;
        let note = Note { state, least: self.0.open.lock().clone() };
        let noted = files::note(&self.0.folder, pool, &note, access);
        noted.map_err(|error| files::device(&self.0.folder, error))
    }

    fn refuse_torn(&self, table: u64) -> Result<(), RunsError> {
        let (folder, pool) = (&self.0.folder, self.0.settings.pool);
        let Some(least) = files::noted(folder, pool)?.least.remove(&table) else { return Ok(()) };
        files::refuse_unreadable(folder, table)?;
        let place = files::tree(folder, table);
        let named = files::named_version(&place).map_err(|error| files::of_library(&place, error.into()))?;
        let what = format!(
            "its version is {named}, and it had version {least} when the file `pool` was written; it was copied \
             while it changed, so take a copy of one time"
        );
        if named < least { Err(files::damaged(&place, what)) } else { Ok(()) }
    }

    fn open(&self, table: u64) -> Result<Arc<dyn Runs>, RunsError> {
        Ok(match self.0.settings.read_only {
            true => Arc::new(self.read_tree(table)?),
            false => Arc::new(self.open_tree(table)?),
        })
    }

    fn salvage(&self, table: u64, wrong: &mut dyn FnMut(RunsError)) -> Box<dyn Remains> {
        let place = files::tree(&self.0.folder, table);
        Box::new(match self.read_tree(table) {
            Ok(tree) => LsmRemains::of(tree, &place),
            Err(error) => {
                wrong(error);
                LsmRemains::of_files(&place, wrong)
            }
        })
    }

    fn is_open(&self, table: u64) -> bool {
        self.0.open.lock().contains_key(&table)
    }

    fn remove(&self, table: u64) -> Result<(), RunsError> {
        assert!(!self.is_open(table), "the tree of table {table} is open");
        files::remove_tree(&self.0.folder, table).map_err(|error| files::device(&self.0.folder, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Kind;
    use crate::runs::{Head, NameError, Runs, Source};

    struct One(Option<u64>);

    impl Source for One {
        fn next(&mut self) -> Option<(&[u8], Head, &[u8])> {
            let number = self.0.take()?;
            Some((b"key", Head { number, version: number, kind: Kind::Value, expires: 0 }, b""))
        }
    }

    /// A compaction of another thread may have been refused meanwhile. That is its own affair.
    #[test]
    fn a_publication_that_fails_does_not_take_the_answer_to_a_compaction() {
        let folder = std::env::temp_dir().join(format!("quipu-slot-{}", std::process::id()));
        let (access, pool) = (Access::default(), 1);
        let settings =
            LsmSettings { cache: 1 << 20, first_level: 4, file: 8192, pool, read_only: false, access };
        let runs = LsmForest::open(&folder, settings).unwrap().open_tree(7).unwrap();
        runs.publish(vec![runs.write(&[], &mut One(Some(1))).unwrap()]).unwrap();
        let part = runs.write(&[], &mut One(Some(2))).unwrap();
        let refusal = || RunsError::Full { place: "of the compaction".into() };
        runs.slot.lock().refused = Some(refusal());
        // Nothing can be named in place of this.
        let tree = files::tree(&folder, 7);
        let names = tree.join("current");
        std::fs::rename(&names, tree.join("aside")).unwrap();
        std::fs::create_dir(&names).unwrap();
        let failed = runs.publish(vec![part]);
        let left = runs.slot.lock().refused.take();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(
            matches!(&failed, Err(NameError::Poisoned(error)) if !error.to_string().contains("compaction"))
        );
        assert_eq!(left.map(|error| error.to_string()), Some(refusal().to_string()));
    }
}
