//! Pools that are read and not changed: opened for reading only, salvaged, asked for their design.
//!
//! The medium maps them privately, so the file never changes. Recovery runs as always, and its changes stay
//! in pages of this process. Writes are refused at [admission](crate::background::Admission::admit), no job
//! has a thread, and a close does nothing.

use super::{Store, check_superblock, open};
use crate::api::parts;
use crate::designs::Design;
use crate::engine::NO_SALVAGE;
use crate::engine::site::{How, Opened, Site};
use crate::options::Options;
use crate::types::error::Error;
use crate::types::reports::SalvageReport;
use quipu_medium::{MediumError, Region};
use quipu_parts::space::{Space, SpaceError};
use std::fs;
use std::path::Path;

impl Store {
    /// Opens the pool at `path` for reading only, beside any number of other readers, without changing a byte
    /// of it. Reads work as after [`open`](Store::open). Each write returns [`Error::ReadOnly`], and
    /// [`close`](Store::close) changes nothing.
    ///
    /// A pool that was not closed is recovered in memory of this process, each time anew. That takes as long
    /// as in [`open`](Store::open), and the memory of the pages that recovery changes.
    ///
    /// A lock excludes writers that ask for it, as this library does. A program that changes or truncates the
    /// file without asking changes values under their readers, or ends the process by a signal, as for any
    /// mapped file.
    ///
    /// # Errors
    /// As for [`open`](Store::open); in use if a writer has it open. A devdax device is refused, since it has
    /// no private mapping ([`Error::Medium`]).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("pool");
    /// use quipu::{Error, Options, Store};
    /// let store = Store::create(&path, &Options::new().size(16 << 20))?;
    /// store.client().put(b"llama", b"wool")?;
    /// store.close()?;
    ///
    /// let (store, other) = (
    ///     Store::open_read_only(&path, &Options::new())?,
    ///     Store::open_read_only(&path, &Options::new())?,
    /// );
    /// let mut client = store.client();
    /// assert_eq!(client.get(b"llama")?, Some(b"wool".to_vec()));
    /// assert!(matches!(client.put(b"llama", b"fleece"), Err(Error::ReadOnly)));
    /// assert_eq!(other.stats().records, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open_read_only(path: impl AsRef<Path>, options: &Options) -> Result<Store, Error> {
        Store::open_read_only_with_progress(path, options, &|_, _| {})
    }

    /// Opens the pool for reading only. `progress` receives the number of recovered segments, and that of
    /// all.
    ///
    /// # Errors
    /// As for [`open_read_only`](Store::open_read_only).
    pub fn open_read_only_with_progress(
        path: impl AsRef<Path>,
        options: &Options,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Store, Error> {
        let path = path.as_ref();
        let region = parts::open(path, options, |path| Region::open_read_only(path, options.medium))?;
        open(region, options.levels.folder(Some(path)), options, progress)
    }

    /// Copies records that prove themselves from the damaged pool at `path` into a new pool at `into`, of the
    /// same size and, unless `options` name another, the same zone size. The damaged pool is not changed.
    /// `progress` receives the number of segments that are read, and that of all.
    ///
    /// # Errors
    /// As for [`open`](Store::open) if too little is left to find anything, and as for
    /// [`create`](Store::create). If the copy fails, the new pool is removed, and
    /// its levels.
    ///
    /// ```
    /// # use quipu::{Options, Store};
    /// # let dir = tempfile::tempdir()?;
    /// # let (path, new) = (dir.path().join("pool"), dir.path().join("new"));
    /// # let store = Store::create(&path, &Options::new().size(4 << 20))?;
    /// # store.client().put(b"llama", b"wool")?;
    /// # drop(store);
    /// let report = Store::salvage(&path, &new, &Options::default(), &|_, _| {})?;
    /// assert_eq!((report.keys, report.lost.len()), (1, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn salvage(
        path: impl AsRef<Path>,
        into: impl AsRef<Path>,
        options: &Options,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<SalvageReport, Error> {
        let region = parts::open(path.as_ref(), options, |path| source(path, options))?;
        let (space, mut wrong) = Space::survey(region)?;
        let superblock = space.superblock();
        if !options.accept_copy && superblock.is_copy_of_open(space.region()) {
            wrong.push(SpaceError::CopyOfOpen);
        }
        let design = check_superblock(&superblock, options)?;
        if !design.can().salvages {
            return Err(Error::Unsupported { what: NO_SALVAGE });
        }
        let size = superblock.pool_len();
        let zone_size = options.zone_size.or(Some(superblock.zone_size()));
        let fresh = Options { design: Some(design), size, zone_size, ..options.clone() };
        let folder = options.levels_of_damaged.folder(Some(path.as_ref()));
        let site = Site { space: space.into(), folder, options, how: How::Unrecovered };
        let Opened { engine, .. } = (design.recipe().open)(site)?;
        let store = Store::create(into.as_ref(), &fresh)?;
        let levels = store.levels().map(Path::to_owned);
        let copied = engine.salvage(&wrong, options.recovery_threads, &store.engine, progress);
        let report = copied.and_then(|report| store.close().map(|()| report));
        report.inspect_err(|_| {
            let parts = options.parts.further.iter().map(|path| &**path);
            for path in [into.as_ref()].into_iter().chain(parts).filter(|path| path.is_file()) {
                let _ = std::fs::remove_file(path);
            }
            levels.iter().for_each(|levels| remove_levels(levels));
        })
    }

    /// The design of the pool at `path`, which may be damaged; it is not changed.
    ///
    /// # Errors
    /// As for [`open`](Store::open) if the superblock cannot be read.
    pub fn design_of(path: impl AsRef<Path>) -> Result<Design, Error> {
        let options = Options::default();
        let region = source(path.as_ref(), &options)?;
        check_superblock(&Space::superblock_of(&region)?, &options)
    }
}

/// Removes the levels of a new pool. Its folder had none before, but may have been there.
fn remove_levels(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()).filter(|path| !path.ends_with("lost+found")) {
        let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    }
    let _ = fs::remove_dir(folder);
}

/// The region of a pool to read without opening it. A devdax device has no private mapping, and nothing is
/// written to it.
fn source(path: &Path, options: &Options) -> Result<Region, MediumError> {
    match Region::open_read_only(path, options.medium) {
        Err(MediumError::NotPrivate { .. }) => Region::open(path, options.medium, options.durability),
        opened => opened,
    }
}
