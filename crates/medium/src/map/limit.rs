//! The limit on the length of files (`ulimit -f`, `RLIMIT_FSIZE`).
//!
//! Making a file longer than the limit raises a signal, SIGXFSZ, and so does a write behind the limit
//! within a longer file. The signal ends a process that does nothing about it. A library leaves the signals
//! of its process alone, so it compares before it makes a pool, and before it writes to one on a disk. Files
//! that grow by writes, as those of levels do, are beyond that: a program that may meet the limit
//! [ignores](ignore_file_limit_signal) the signal.

use crate::error::MediumError;
use rustix::process::{Resource, getrlimit};
use std::path::Path;

/// Refuses a length that would raise the signal.
pub(super) fn check_file_limit(path: &Path, needed: u64) -> Result<(), MediumError> {
    match getrlimit(Resource::Fsize).current {
        Some(limit) if limit < needed => Err(MediumError::FileLimit { path: path.to_owned(), needed, limit }),
        _ => Ok(()),
    }
}

/// Has this process, and those that it starts, ignore the signal of the limit on the length of files: a write
/// beyond the limit is an error then (`EFBIG`). For programs, at their start.
pub fn ignore_file_limit_signal() {
    // SAFETY: no handler is installed; the signal is ignored from here on, which no memory depends on.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}
