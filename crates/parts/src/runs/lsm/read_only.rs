//! A tree that is read as it is.
//!
//! The library's own opening removes files that nobody names. A reader must not: another one may be looking,
//! and it may have no right to. So the list of files is read here, in the format of the library's version 3,
//! and the files are opened one by one.

use super::files;
use super::levels::{LsmLevels, Run};
use super::tree::Opening;
use crate::runs::{
    Compact, Compacted, Levels, NameError, Notice, Part, Purge, RunStats, Runs, RunsError, Source,
};
use crate::versions::RangeTombstone;
use lsm_tree::{Checksum, Error, Table};
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

/// The levels of a table, in a folder that is not changed.
pub(super) struct ReadRuns {
    levels: Arc<LsmLevels>,
    opening: Opening,
}

/// The name of a file: number, check, and the number by which those of its entries are higher.
struct Name {
    number: u64,
    check: u128,
    raise: u64,
}

impl ReadRuns {
    /// Opens the tree in a folder.
    pub fn open(opening: Opening, folder: &Path) -> Result<ReadRuns, RunsError> {
        // The library has assertions about the bytes of files.
        let read = catch_unwind(AssertUnwindSafe(|| read(&opening, folder)));
        let read = read.map_err(|_| files::damaged(folder, "the files of a tree are damaged"))?;
        let levels = Arc::new(read.map_err(|error| files::of_library(folder, error))?);
        Ok(ReadRuns { levels, opening })
    }

    /// Its tables.
    pub fn tables(&self) -> Vec<Table> {
        self.levels.tables().cloned().collect()
    }

    fn refused<T>(&self) -> Result<T, NameError> {
        Err(NameError::NotNamed(self.refusal()))
    }

    fn refusal(&self) -> RunsError {
        files::device(&self.levels.place, io::Error::other("they are open for reading only"))
    }
}

/// The runs of the version that is named.
fn read(opening: &Opening, folder: &Path) -> lsm_tree::Result<LsmLevels> {
    let id = files::named_version(folder)?;
    let path = files::version(folder, id);
    let reader = sfa::Reader::new(&path)?;
    let section = reader.toc().section(b"tables").ok_or(Error::Unrecoverable)?;
    let mut names = section.buf_reader(&path)?;
    let (shared, tree, mut runs) = (opening.shared(), opening.table(), Vec::new());
    for level in 0..usize::from(byte(&mut names)?) {
        for _ in 0..byte(&mut names)? {
            let mut tables = Vec::new();
            for _ in 0..u32::from_le_bytes(bytes(&mut names)?) {
                let Name { number, check, raise } = name(&mut names)?;
                let file = folder.join(files::TABLES).join(number.to_string());
                let (check, cache) = (Checksum::from_raw(check), shared.cache.clone());
                let descriptors = Some(shared.descriptors.clone());
                tables.push(Table::recover(file, check, raise, tree, cache, descriptors, true, true)?);
            }
            runs.push(Run { level, tables });
        }
    }
    Ok(LsmLevels { id, runs, place: folder.into() })
}

fn bytes<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn byte(from: &mut impl Read) -> io::Result<u8> {
    bytes(from).map(|[byte]| byte)
}

fn name(from: &mut impl Read) -> lsm_tree::Result<Name> {
    let number = u64::from_le_bytes(bytes(from)?);
    let kind = byte(from)?;
    if kind != 0 {
        return Err(Error::InvalidTag(("the kind of a check", kind)));
    }
    let check = u128::from_le_bytes(bytes(from)?);
    Ok(Name { number, check, raise: u64::from_le_bytes(bytes(from)?) })
}

impl Runs for ReadRuns {
    fn levels(&self) -> Arc<dyn Levels> {
        self.levels.clone()
    }

    fn write(&self, _ranges: &[RangeTombstone], _from: &mut dyn Source) -> Result<Part, RunsError> {
        Err(self.refusal())
    }

    fn discard(&self, _part: Part) {}

    fn publish(&self, _parts: Vec<Part>) -> Result<(), NameError> {
        self.refused()
    }

    fn compact(&self, _how: Compact, _purge: Purge, _before: &Notice) -> Result<Compacted, NameError> {
        self.refused()
    }

    fn drop_range(&self, _: &[u8], _: &[u8], _: u64, _: &Notice) -> Result<u64, NameError> {
        self.refused()
    }

    fn next_id(&self) -> u64 {
        self.levels.tables().map(|table| table.id() + 1).max().unwrap_or_default()
    }

    fn stats(&self) -> RunStats {
        self.levels.stats(self.opening.base())
    }
}
