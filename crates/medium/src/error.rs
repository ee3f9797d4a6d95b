//! Errors of the medium, each worded so that the reader knows what to do next.

use std::io;
use std::path::PathBuf;

/// What can go wrong between a path and a usable [`crate::Region`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MediumError {
    /// Another handle, in this process or another, holds the pool.
    #[error("{path} is in use by another process; close it there first")]
    InUse {
        /// The pool file.
        path: PathBuf,
    },
    /// A file of this name exists, and creating would destroy it.
    #[error("{path} exists already; choose another name or remove it first")]
    Exists {
        /// The file in the way.
        path: PathBuf,
    },
    /// The file system has no room for bytes that were about to be used.
    #[error("no space left for {needed} bytes at {path}; free disk space and retry, nothing was lost")]
    DiskFull {
        /// The file that could not grow.
        path: PathBuf,
        /// Bytes asked for.
        needed: u64,
    },
    /// The path cannot serve as the medium that was asked for.
    #[error("{path} cannot be used as {medium}: {reason}")]
    Unsuitable {
        /// The path.
        path: PathBuf,
        /// The medium asked for.
        medium: &'static str,
        /// Why not, and what would help.
        reason: String,
    },
    /// A system call failed.
    #[error("{action} {path}: {source}")]
    Io {
        /// What was being done.
        action: &'static str,
        /// The path it was done to.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}
