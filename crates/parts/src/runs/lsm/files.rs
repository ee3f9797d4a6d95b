//! Folders and files that are ours, not the library's.
//!
//! ```text
//! folder/pool           whose levels these are
//! folder/7/             the tree of table 7, as the library keeps it
//! folder/7/current      the id of its version, and a check
//! folder/7/tables/      its files, each named by a number
//! folder/7.gone/        a tree that is being removed
//! ```

use crate::runs::RunsError;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Names the pool.
const POOL: &str = "pool";
/// The file [`POOL`] before it has its name.
const NEW_POOL: &str = "pool.new";
/// The end of the name of a tree that is being removed.
const GONE: &str = ".gone";
/// Some file systems have it in their first folder.
const LOST: &str = "lost+found";
/// The first line of the file [`POOL`].
const TITLE: &str = "Levels of a Quipu pool";

/// The file of a tree that names its version.
const CURRENT: &str = "current";
/// The folder of a tree with its files.
pub(super) const TABLES: &str = "tables";

/// An error of the system in a folder.
pub(super) fn device(place: &Path, error: io::Error) -> RunsError {
    let place = place.display().to_string();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => RunsError::Full { place },
        _ => RunsError::Device { place, error },
    }
}

/// Wrong bytes in a folder.
pub(super) fn damaged(place: &Path, what: impl Into<String>) -> RunsError {
    RunsError::Damaged { place: place.display().to_string(), what: what.into() }
}

/// An error of the library in a folder. Wrong places in files become calls that the system refuses.
pub(super) fn of_library(place: &Path, error: lsm_tree::Error) -> RunsError {
    match error {
        lsm_tree::Error::Io(error) => match error.kind() {
            io::ErrorKind::NotFound => damaged(place, format!("a file is missing: {error}")),
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                damaged(place, format!("the files of a tree are damaged: {error}"))
            }
            _ => device(place, error),
        },
        error => damaged(place, format!("the files of a tree are damaged: {error:?}")),
    }
}

/// The names in a folder; none if there is no such folder.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// A number as a name, and no other spelling of it.
fn number_of(name: &str) -> Option<u64> {
    name.parse().ok().filter(|number: &u64| number.to_string() == name)
}

fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// The numbers of the trees in a folder. Removes the rest of those that were being removed.
///
/// # Errors
/// If the folder is another pool's, or has names that are not of levels, and those of the system.
pub(super) fn survey(folder: &Path, digest: u64) -> Result<BTreeSet<u64>, RunsError> {
    let all = names(folder).map_err(|error| device(folder, error))?;
    let has_pool = all.iter().any(|name| name == POOL);
    let (mut trees, mut gone) = (BTreeSet::new(), Vec::new());
    for name in &all {
        let of_tree = name.strip_suffix(GONE).unwrap_or(name);
        match number_of(of_tree) {
            Some(_) if !has_pool => {
                return Err(damaged(folder, format!("there is no file `{POOL}` beside the tree `{name}`")));
            }
            Some(_) if of_tree.len() < name.len() => gone.push(name),
            Some(number) => _ = trees.insert(number),
            None if [POOL, NEW_POOL, LOST].contains(&&**name) => {}
            None => return Err(damaged(folder, format!("`{name}` is not a part of levels"))),
        }
    }
    if has_pool {
        let found = fs::read(folder.join(POOL)).map_err(|error| device(folder, error))?;
        if found != content(digest) {
            let what = match found.starts_with(TITLE.as_bytes()) {
                true => "they belong to another pool; name another folder, or remove it if that pool is gone"
                    .to_owned(),
                false => format!("the file `{POOL}` is not of levels"),
            };
            return Err(damaged(folder, what));
        }
    }
    for name in gone {
        fs::remove_dir_all(folder.join(name)).map_err(|error| device(folder, error))?;
    }
    Ok(trees)
}

fn content(digest: u64) -> Vec<u8> {
    format!("{TITLE}\n{digest:016x}\n").into_bytes()
}

/// Makes the folder and the file that names its pool, unless they are there. Durable when this returns.
pub(super) fn found(folder: &Path, digest: u64) -> io::Result<()> {
    if folder.join(POOL).try_exists()? {
        return Ok(());
    }
    let mut missing = vec![folder];
    while let Some(parent) = missing.last().and_then(|path| path.parent())
        && !parent.as_os_str().is_empty()
        && !parent.try_exists()?
    {
        missing.push(parent);
    }
    fs::create_dir_all(folder)?;
    for path in missing {
        sync_parent(path)?;
    }
    let mut file = File::create(folder.join(NEW_POOL))?;
    file.write_all(&content(digest))?;
    file.sync_all()?;
    fs::rename(folder.join(NEW_POOL), folder.join(POOL))?;
    sync(folder)
}

/// Makes the name of a file or folder durable.
pub(super) fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    sync(parent.unwrap_or(Path::new(".")))
}

/// The folder of a tree.
pub(super) fn tree(folder: &Path, table: u64) -> PathBuf {
    folder.join(table.to_string())
}

/// Removes a tree. A crash leaves it, or leaves it to be removed by the next [`survey`].
pub(super) fn remove_tree(folder: &Path, table: u64) -> io::Result<()> {
    let tree = tree(folder, table);
    if !tree.try_exists()? {
        return Ok(());
    }
    let gone = folder.join(format!("{table}{GONE}"));
    fs::rename(tree, &gone)?;
    sync(folder)?;
    fs::remove_dir_all(gone)
}

/// Readies the folder of a tree for the library, which never removes its temporary files, panics at names
/// that are not its own, and begins anew where the name of the version is lost.
pub(super) fn ready_tree(tree: &Path) -> Result<(), RunsError> {
    let of_system = |error| device(tree, error);
    let in_tree = names(tree).map_err(of_system)?;
    for name in in_tree.iter().filter(|name| name.starts_with(".tmp")) {
        fs::remove_file(tree.join(name)).map_err(of_system)?;
    }
    let files = names(&tree.join(TABLES)).map_err(of_system)?;
    if let Some(name) = files.iter().find(|name| number_of(name).is_none()) {
        return Err(damaged(tree, format!("`{TABLES}/{name}` is not a file of a tree")));
    }
    if !files.is_empty() && !in_tree.iter().any(|name| name == CURRENT) {
        return Err(damaged(tree, format!("the file `{CURRENT}` is missing")));
    }
    Ok(())
}

/// The id of the version that the next opening of a tree would find.
pub(super) fn named_version(tree: &Path) -> Option<u64> {
    let bytes = fs::read(tree.join(CURRENT)).ok()?;
    Some(u64::from_le_bytes(*bytes.first_chunk()?))
}

/// The files of the tables of a tree, by their numbers.
pub(super) fn tables(tree: &Path) -> Vec<(u64, PathBuf)> {
    let folder = tree.join(TABLES);
    let found = names(&folder).unwrap_or_default();
    let mut tables: Vec<_> =
        found.iter().filter_map(|name| Some((number_of(name)?, folder.join(name)))).collect();
    tables.sort_unstable();
    tables
}

/// Syncs the file with the highest number. A failure is met again by the library, which syncs it, too.
pub(super) fn sync_newest(tables: &Path) {
    let newest = names(tables).unwrap_or_default().iter().filter_map(|name| number_of(name)).max();
    if let Some(newest) = newest {
        let _ = File::open(tables.join(newest.to_string())).and_then(|file| file.sync_data());
    }
}

/// Removes the files whose numbers are in a range, but these. One that cannot be removed is left to the next
/// opening.
pub(super) fn sweep(tables: &Path, numbers: std::ops::Range<u64>, stay: &BTreeSet<u64>) {
    let found = names(tables).unwrap_or_default();
    let found = found.iter().filter_map(|name| number_of(name));
    for number in found.filter(|number| numbers.contains(number) && !stay.contains(number)) {
        let _ = fs::remove_file(tables.join(number.to_string()));
    }
}
