//! The lock on a mapped file, which lasts as long as its descriptor.
//!
//! It is the system's (`flock`), so it excludes other descriptors of this process as well, and ends with the
//! process however that ends.

use crate::error::MediumError;
use rustix::fs::{FlockOperation, flock, fstat, major, minor};
use rustix::io::{Errno, retry_on_intr};
use std::fs::{self, File};
use std::path::Path;

/// The other users that may have the file.
#[derive(Clone, Copy)]
pub(super) enum Sharing {
    /// Nobody: it is written to.
    Alone,
    /// Other readers.
    WithReaders,
}

/// Takes the lock, or tells its holder.
pub(super) fn lock(file: &File, path: &Path, sharing: Sharing) -> Result<(), MediumError> {
    let operation = match sharing {
        Sharing::Alone => FlockOperation::NonBlockingLockExclusive,
        Sharing::WithReaders => FlockOperation::NonBlockingLockShared,
    };
    retry_on_intr(|| flock(file, operation)).map_err(|error| match error {
        Errno::WOULDBLOCK => MediumError::InUse { path: path.to_owned(), process: holder_of(file) },
        error => MediumError::io("lock", path, error),
    })
}

/// A process that has the lock, as far as the system tells: not of another container, nor on file systems
/// that call their device by another number there.
fn holder_of(file: &File) -> Option<u32> {
    let stat = fstat(file).ok()?;
    let name = format!("{:02x}:{:02x}:{}", major(stat.st_dev), minor(stat.st_dev), stat.st_ino);
    find(&fs::read_to_string("/proc/locks").ok()?, &name)
}

/// The first process with a `flock` on the file of this name, which is device and inode.
fn find(table: &str, name: &str) -> Option<u32> {
    table.lines().find_map(|line| {
        // Fields: number, kind, nature, access, process, file, range. One that waits has an arrow for its
        // kind.
        let mut fields = line.split_ascii_whitespace().skip(1);
        let is_held = fields.next() == Some("FLOCK");
        let process = fields.nth(2)?;
        let is_same = is_held && fields.next() == Some(name);
        process.parse().ok().filter(|process| is_same && *process != 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_locks_names_the_process_that_holds_one() {
        let table = "1: POSIX  ADVISORY  READ 17 fd:01:1835 0 EOF\n\
            2: FLOCK  ADVISORY  WRITE 0 fd:01:99 0 EOF\n\
            3: FLOCK  ADVISORY  WRITE 4711 fd:01:1835 0 EOF\n\
            3: -> FLOCK  ADVISORY  WRITE 4712 fd:01:1836 0 EOF\n\
            4: FLOCK  ADVISORY  READ -1 fd:01:1837 0 EOF\n\
            garbage\n";
        assert_eq!(find(table, "fd:01:1835"), Some(4711));
        // Of another container, only waiting, of a number that is none, not there.
        for name in ["fd:01:99", "fd:01:1836", "fd:01:1837", "fd:01:183"] {
            assert_eq!(find(table, name), None, "{name}");
        }
    }
}
