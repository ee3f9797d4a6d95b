//! The folder in which an engine keeps its files while it is measured.
//!
//! It is made by the benchmark and removed by it, and so must not exist before: an existing folder is left
//! alone.

use quipu_lab::bench::BenchError;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes of a block as the file system counts them.
const BLOCK: u64 = 512;

/// A path that is an engine's folder for as long as it is measured.
#[derive(Clone, Debug)]
pub struct Place(PathBuf);

impl Place {
    /// A place that does not exist yet.
    pub fn new(path: &Path) -> Place {
        Place(path.to_owned())
    }

    /// Makes the folder and lets `fill` begin in it. If that fails, nothing is left behind.
    ///
    /// # Errors
    /// [`BenchError::File`] if there is something already, or the file system refuses; and what `fill`
    /// answers.
    pub fn make<T>(&self, fill: impl FnOnce(&Path) -> Result<T, BenchError>) -> Result<T, BenchError> {
        fs::create_dir(&self.0).map_err(|source| self.failed(source))?;
        let filled = fill(&self.0);
        if filled.is_err() {
            self.remove()?;
        }
        filled
    }

    /// Removes the folder and its contents. Only its maker may call this.
    ///
    /// # Errors
    /// [`BenchError::File`] if the file system refuses.
    pub fn remove(&self) -> Result<(), BenchError> {
        fs::remove_dir_all(&self.0).map_err(|source| self.failed(source))
    }

    /// Bytes that the files of the folder take of the file system. Engines make and remove files of their own
    /// accord, so one that has just gone is no error.
    pub fn bytes(&self) -> u64 {
        let mut folders = vec![self.0.clone()];
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

    fn failed(&self, source: io::Error) -> BenchError {
        BenchError::File { path: self.0.clone(), source }
    }
}

fn allocated(metadata: &Metadata) -> u64 {
    metadata.blocks() * BLOCK
}
