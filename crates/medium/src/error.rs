//! Errors of the medium, each worded with the next step of the reader.

use crate::node::Node;
use std::io;
use std::path::{Path, PathBuf};

/// A failure between a path and a usable [`crate::Region`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MediumError {
    /// Another handle, in this process or another, holds the pool.
    #[error("{path} is in use by {}; close it there first", holder(*.process))]
    InUse {
        /// The pool file.
        path: PathBuf,
        /// The process of that handle, if the system tells.
        process: Option<u32>,
    },
    /// A pool that is only read is mapped privately, which the device does not allow.
    #[error("{path} is a devdax device, which cannot be opened for reading only; open it for writing")]
    NotPrivate {
        /// The device.
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
    /// This process may not have a file of that length.
    #[error(
        "{path} would have {needed} bytes, and this process may have no file of more than {limit}; raise the limit \
         (ulimit -f, LimitFSIZE=) or make a smaller pool"
    )]
    FileLimit {
        /// The file that could not grow.
        path: PathBuf,
        /// The length asked for.
        needed: u64,
        /// The length allowed.
        limit: u64,
    },
    /// The path cannot serve as the medium that was asked for.
    #[error("{path} cannot be used as {medium}: {reason}")]
    Unsuitable {
        /// The path.
        path: PathBuf,
        /// The medium asked for.
        medium: &'static str,
        /// The obstacle, and the way around it.
        reason: String,
    },
    /// A word on a command line or in a configuration names no medium, durability or kind of pages.
    #[error("{text:?} is no {what}; use one of: {choices}")]
    UnknownWord {
        /// The word.
        text: String,
        /// The kind of thing that it should name.
        what: &'static str,
        /// The words there are.
        choices: &'static str,
    },
    /// A thread cannot be kept on a node.
    #[error(
        "{node} has no processor that this process may use; name another node, or describe the machine anew (--topology)"
    )]
    NoProcessors {
        /// The node.
        node: Node,
    },
    /// The parts of a pool do not go together.
    #[error("{path} cannot be a part of this pool: {reason}")]
    Part {
        /// The part.
        path: PathBuf,
        /// The obstacle, and the way around it.
        reason: String,
    },
    /// A system call failed.
    #[error("{action} {path}: {source}")]
    Io {
        /// The action that failed.
        action: &'static str,
        /// The path of the action.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

/// The holder of a pool, in words.
fn holder(process: Option<u32>) -> String {
    match process {
        Some(process) if process == std::process::id() => "another handle of this process".to_owned(),
        Some(process) => format!("process {process}"),
        None => "another handle, in this process or another".to_owned(),
    }
}

impl MediumError {
    /// The error for a failed system call on `path`.
    pub(crate) fn io(action: &'static str, path: &Path, source: impl Into<io::Error>) -> MediumError {
        MediumError::Io { action, path: path.to_owned(), source: source.into() }
    }

    pub(crate) fn unsuitable(path: &Path, medium: &'static str, reason: impl Into<String>) -> MediumError {
        MediumError::Unsuitable { path: path.to_owned(), medium, reason: reason.into() }
    }
}
