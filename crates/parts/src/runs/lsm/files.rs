//! Folders and files that are ours, not the library's.
//!
//! ```text
//! folder/pool           whose levels these are, their state, and the versions of trees
//! folder/7/             the tree of table 7, as the library keeps it
//! folder/7/current      the id of its version, and a check
//! folder/7/tables/      its files, each named by a number
//! folder/7.gone/        a tree that is being removed
//! ```

use super::access::{Access, TreeFolders};
use crate::runs::{LevelsState, RunsError};
use quipu_medium::folder::{Entry, Folder};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use twox_hash::{XxHash3_64, XxHash3_128};

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
pub(super) const CURRENT: &str = "current";
/// The file [`CURRENT`] before it has its name; [`ready_tree`] removes what a crash leaves.
const NEW_CURRENT: &str = ".tmp-current";
/// Before the number of a version, in the name of its file.
const VERSION: &str = "v";
/// The names of temporary files, ours and the library's, begin so.
const TEMPORARY: &str = ".tmp";
/// The folder of a tree with its files.
pub(super) const TABLES: &str = "tables";

/// An error of the system in a folder.
pub(super) fn device(place: &Path, error: io::Error) -> RunsError {
    let place = place.display().to_string();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => RunsError::Full { place },
        _ => RunsError::Device { place, error: error.into() },
    }
}

/// ENFILE and EMFILE, for which the standard library has no kind.
const DESCRIPTORS: [i32; 2] = [23, 24];

/// Whether an error of the system comes from a lack that may pass.
pub(super) fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, OutOfMemory, QuotaExceeded, StorageFull, WouldBlock};
    let passes = [Interrupted, OutOfMemory, QuotaExceeded, StorageFull, WouldBlock];
    passes.contains(&error.kind()) || error.raw_os_error().is_some_and(|code| DESCRIPTORS.contains(&code))
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

/// Refuses a folder that cannot be there, since a link on the way leads nowhere or something else has that
/// name: a disk is missing, and nothing can be made there.
pub(super) fn refuse_unreachable(folder: &Path) -> Result<(), RunsError> {
    use io::ErrorKind::{NotADirectory, NotFound};
    let of_system = |error| device(folder, error);
    let is_missing = |error: &io::Error| matches!(error.kind(), NotFound | NotADirectory);
    for path in folder.ancestors().filter(|path| !path.as_os_str().is_empty()) {
        match path.symlink_metadata() {
            Err(error) if is_missing(&error) => continue,
            found => found.map_err(of_system)?,
        };
        let what = match path.metadata() {
            Ok(about) if about.is_dir() => return Ok(()),
            Err(error) if !is_missing(&error) => return Err(of_system(error)),
            Err(_) => format!(
                "the link {} leads to {}, which is not there; mount that disk, or mend the link",
                path.display(),
                fs::read_link(path).map_err(of_system)?.display()
            ),
            Ok(_) => format!("{} is not a folder; name another place", path.display()),
        };
        return Err(of_system(io::Error::new(NotFound, what)));
    }
    Ok(())
}

/// The numbers of the trees in a folder, and the rest of those that were being removed.
///
/// # Errors
/// If the folder is another pool's, or has names that are not of levels, and those of the system.
pub(super) fn survey(folder: &Path, digest: u64) -> Result<(BTreeSet<u64>, Vec<PathBuf>), RunsError> {
    let all = names(folder).map_err(|error| device(folder, error))?;
    let has_pool = all.iter().any(|name| name == POOL);
    let (mut trees, mut gone) = (BTreeSet::new(), Vec::new());
    for name in &all {
        let of_tree = name.strip_suffix(GONE).unwrap_or(name);
        match number_of(of_tree) {
            Some(_) if !has_pool => {
                return Err(damaged(folder, format!("there is no file `{POOL}` beside the tree `{name}`")));
            }
            Some(_) if of_tree.len() < name.len() => gone.push(folder.join(name)),
            Some(number) => _ = trees.insert(number),
            None if [POOL, NEW_POOL, LOST].contains(&&**name) => {}
            None => return Err(damaged(folder, format!("`{name}` is not a part of levels"))),
        }
    }
    noted(folder, digest)?;
    Ok((trees, gone))
}

/// Removes trees that were being removed.
pub(super) fn clear(folder: &Path, gone: &[PathBuf]) -> Result<(), RunsError> {
    gone.iter().try_for_each(fs::remove_dir_all).map_err(|error| device(folder, error))
}

/// The contents of the file [`POOL`].
#[derive(Default)]
pub(super) struct Note {
    pub state: LevelsState,
    /// Trees, and the versions that they name at least.
    pub least: BTreeMap<u64, u64>,
}

/// The note of a folder; the default if there is none.
///
/// # Errors
/// If the note is another pool's, or damaged, and those of the system.
pub(super) fn noted(folder: &Path, digest: u64) -> Result<Note, RunsError> {
    let mut found = Vec::new();
    let read = Folder::open(folder).and_then(|first| first.file(POOL)?.read_to_end(&mut found));
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Note::default()),
        read => read.map_err(|error| device(folder, error))?,
    };
    let wrong = |what: &str| damaged(folder, format!("the file `{POOL}` is {what}"));
    let text = String::from_utf8(found).map_err(|_| wrong("not of levels"))?;
    let mut lines = text.lines();
    if lines.next() != Some(TITLE) {
        return Err(wrong("not of levels"));
    }
    let mut number = || number_in(lines.next()?);
    let (found, count, mark) = (number(), number(), number());
    if found.is_some_and(|found| found != digest) {
        let what = "they belong to another pool; name another folder, or remove it if that pool is gone";
        return Err(damaged(folder, what));
    }
    let state = count.zip(mark).map(|(number, mark)| LevelsState { number, mark });
    // The check is alone in its line, the last one.
    let pairs = lines.map_while(|line| line.split_once(' '));
    let least = pairs.map(|(tree, version)| number_in(tree).zip(number_in(version))).collect::<Option<_>>();
    let note = state.zip(least).map(|(state, least)| Note { state, least });
    note.filter(|note| content(digest, note) == text).ok_or(wrong("damaged"))
}

/// A number in the file [`POOL`].
fn number_in(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

/// The text of the file [`POOL`].
fn content(digest: u64, note: &Note) -> String {
    let LevelsState { number, mark } = note.state;
    let trees: String =
        note.least.iter().map(|(tree, least)| format!("{tree:016x} {least:016x}\n")).collect();
    let lines = format!("{TITLE}\n{digest:016x}\n{number:016x}\n{mark:016x}\n{trees}");
    let check = XxHash3_64::oneshot(lines.as_bytes());
    format!("{lines}{check:016x}\n")
}

/// Makes the folder, and the file that names its pool, unless they are there. Durable when this returns.
pub(super) fn found(folder: &Path, digest: u64, access: Access) -> io::Result<()> {
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
    folder.parent().map_or(Ok(()), fs::create_dir_all)?;
    access.make_folder(folder)?;
    access.give_first(folder)?;
    missing.into_iter().try_for_each(sync_parent)?;
    note(folder, digest, &Note::default(), access)
}

/// Writes the note. Durable when this returns.
pub(super) fn note(folder: &Path, digest: u64, note: &Note, access: Access) -> io::Result<()> {
    let (new, name) = (folder.join(NEW_POOL), folder.join(POOL));
    let mut file = create(&new)?;
    file.write_all(content(digest, note).as_bytes())?;
    access.ensure(&file)?;
    file.sync_all()?;
    fs::rename(new, name)?;
    sync(folder)
}

/// A new file in place of what has this name.
fn create(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        removed => removed?,
    }
    File::create_new(path)
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
/// that are not its own, and begins anew where the name of the version is lost. The folders are made if they
/// are missing, before the library makes them as the umask says.
pub(super) fn ready_tree(folder: &Path, table: u64, access: Access) -> Result<TreeFolders, RunsError> {
    let place = tree(folder, table);
    let of_system = |error| device(&place, error);
    let first = Folder::open(folder).map_err(of_system)?;
    first.make_folder(&table.to_string(), 0o700).map_err(of_system)?;
    let own = folder_itself(&first, &table.to_string(), &place)?;
    own.make_folder(TABLES, 0o700).map_err(of_system)?;
    let tables = folder_itself(&own, TABLES, &place)?;
    refuse_strange(&own, &tables, &place)?;
    for name in own.names().map_err(of_system)?.iter().filter(|name| name.starts_with(TEMPORARY)) {
        own.remove(name).map_err(of_system)?;
    }
    let folders = TreeFolders::new(own, tables, access);
    folders.give_all().map_err(of_system)?;
    Ok(folders)
}

/// Refuses a tree whose files cannot be read as they are.
pub(super) fn refuse_unreadable(folder: &Path, table: u64) -> Result<(), RunsError> {
    let place = tree(folder, table);
    let first = Folder::open(folder).map_err(|error| device(&place, error))?;
    let own = folder_itself(&first, &table.to_string(), &place)?;
    let tables = folder_itself(&own, TABLES, &place)?;
    refuse_strange(&own, &tables, &place)
}

/// A folder of a tree, which is no link: whoever may change the tree would choose the files that are written.
fn folder_itself(above: &Folder, name: &str, place: &Path) -> Result<Folder, RunsError> {
    let of_system = |error| device(place, error);
    match above.entry(name).map_err(of_system)? {
        Some(Entry::Folder) => above.folder(name).map_err(of_system),
        Some(_) => Err(damaged(
            place,
            format!("`{name}` is not a folder; below the first folder none may be a link"),
        )),
        None => Err(damaged(place, format!("the folder `{name}` is missing"))),
    }
}

/// Refuses a tree whose files nobody names, or that has other names, or other things than files.
fn refuse_strange(own: &Folder, tables: &Folder, place: &Path) -> Result<(), RunsError> {
    let of_system = |error| device(place, error);
    let (in_tree, files) = (own.names().map_err(of_system)?, tables.names().map_err(of_system)?);
    if let Some(name) = files.iter().find(|name| number_of(name).is_none()) {
        return Err(damaged(place, format!("`{TABLES}/{name}` is not a file of a tree")));
    }
    let is_ours = |name: &&String| {
        let version = name.strip_prefix(VERSION).and_then(number_of);
        *name == CURRENT || name.starts_with(TEMPORARY) || version.is_some()
    };
    let of_tree = in_tree.iter().filter(is_ours).map(|name| (own, name));
    for (folder, name) in of_tree.chain(files.iter().map(|name| (tables, name))) {
        if !matches!(folder.entry(name).map_err(of_system)?, None | Some(Entry::File)) {
            return Err(damaged(
                place,
                format!("`{name}` is not a plain file, and no link is followed there"),
            ));
        }
    }
    if !files.is_empty() && !in_tree.iter().any(|name| name == CURRENT) {
        return Err(damaged(place, format!("the file `{CURRENT}` is missing")));
    }
    Ok(())
}

/// The file with the names of a version.
pub(super) fn version(tree: &Path, id: u64) -> PathBuf {
    tree.join(version_name(id))
}

/// Its name.
pub(super) fn version_name(id: u64) -> String {
    format!("{VERSION}{id}")
}

/// The id of the version that the next opening of a tree would find.
pub(super) fn named_version(tree: &Path) -> io::Result<u64> {
    let bytes = fs::read(tree.join(CURRENT))?;
    bytes.first_chunk().map(|id| u64::from_le_bytes(*id)).ok_or(io::ErrorKind::UnexpectedEof.into())
}

/// Names a version of a tree again, durably: its id, the check of its file, and the kind of the check. The
/// caller excludes all changes of names.
pub(super) fn name_version(tree: &Path, id: u64) -> io::Result<()> {
    let check = XxHash3_128::oneshot(&fs::read(version(tree, id))?);
    let new = tree.join(NEW_CURRENT);
    let mut file = create(&new)?;
    file.write_all(&id.to_le_bytes())?;
    file.write_all(&check.to_le_bytes())?;
    file.write_all(&[0])?;
    file.sync_all()?;
    fs::rename(new, tree.join(CURRENT))?;
    sync(tree)
}

/// The files of the tables of a tree, by their numbers.
pub(super) fn tables(tree: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let folder = tree.join(TABLES);
    let found = names(&folder)?;
    let mut tables: Vec<_> =
        found.iter().filter_map(|name| Some((number_of(name)?, folder.join(name)))).collect();
    tables.sort_unstable();
    Ok(tables)
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
