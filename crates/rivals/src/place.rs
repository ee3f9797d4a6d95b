//! The folders in which an engine keeps its files while it is measured, and the cache that it has for them.
//!
//! There is one folder, or a second one for a log; pools of our own designs may have another place.
//! They are made by the benchmark and removed by it, and so must not exist before: an existing folder is left
//! alone.

use quipu_bench::BenchError;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes of a block as the file system counts them.
const BLOCK: u64 = 512;

/// Paths that are an engine's folders for as long as it is measured.
#[derive(Clone, Debug)]
pub struct Place {
    folder: PathBuf,
    log: Option<PathBuf>,
    pool: Option<PathBuf>,
    cache: Option<u64>,
}

impl Place {
    /// A place that does not exist yet.
    pub fn new(path: &Path) -> Place {
        Place { folder: path.to_owned(), log: None, pool: None, cache: None }
    }

    /// The same with a folder of its own for the log of an engine that can have one.
    pub fn with_log(self, log: Option<PathBuf>) -> Place {
        Place { log, ..self }
    }

    /// The same with another path for pools of our own designs, whose levels stay beside the folder.
    pub fn with_pool(self, pool: Option<PathBuf>) -> Place {
        Place { pool, ..self }
    }

    /// The same with a cache of so many bytes for an engine that has one.
    pub fn with_cache(self, cache: Option<u64>) -> Place {
        Place { cache, ..self }
    }

    /// The folder, or for our own designs the pool.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// The folder of the log, if it has one.
    pub fn log(&self) -> Option<&Path> {
        self.log.as_deref()
    }

    /// The path of pools of our own designs, if it is not the folder's.
    pub fn pool(&self) -> Option<&Path> {
        self.pool.as_deref()
    }

    /// Bytes of a cache, if that is limited.
    pub fn cache(&self) -> Option<u64> {
        self.cache
    }

    /// Makes the folders and lets `fill` begin in the first. If that fails, nothing is left behind.
    ///
    /// # Errors
    /// [`BenchError::File`] if there is something already, or the file system refuses; and what `fill`
    /// answers.
    pub fn make<T>(&self, fill: impl FnOnce(&Path) -> Result<T, BenchError>) -> Result<T, BenchError> {
        create(&self.folder)?;
        if let Some(log) = &self.log {
            create(log).inspect_err(|_| _ = remove(&self.folder))?;
        }
        let filled = fill(&self.folder);
        if filled.is_err() {
            self.remove()?;
        }
        filled
    }

    /// Removes the folders and their contents. Only their maker may call this.
    ///
    /// # Errors
    /// [`BenchError::File`] if the file system refuses.
    pub fn remove(&self) -> Result<(), BenchError> {
        remove(&self.folder)?;
        self.log.as_deref().map_or(Ok(()), remove)
    }

    /// Bytes that the files of the folder, without a log elsewhere, take of the file system. Engines make and
    /// remove files of their own accord, so one that has just gone is no error.
    pub fn bytes(&self) -> u64 {
        let mut folders = vec![self.folder.clone()];
        let mut bytes = 0;
        while let Some(folder) = folders.pop() {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            for (path, metadata) in entries.filter_map(|entry| Some((entry.path(), entry.metadata().ok()?))) {
                if metadata.is_dir() {
                    folders.push(path);
                } else {
                    bytes += allocated(&metadata);
                }
            }
        }
        bytes
    }
}

fn create(folder: &Path) -> Result<(), BenchError> {
    fs::create_dir(folder).map_err(|source| failed(folder, source))
}

fn remove(folder: &Path) -> Result<(), BenchError> {
    fs::remove_dir_all(folder).map_err(|source| failed(folder, source))
}

fn failed(folder: &Path, source: io::Error) -> BenchError {
    BenchError::File { path: folder.to_owned(), source }
}

fn allocated(metadata: &Metadata) -> u64 {
    metadata.blocks() * BLOCK
}
