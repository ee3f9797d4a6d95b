//! Files that a command makes for itself, and removes, but not if it is killed: Ctrl-C ends it on the spot.
//!
//! Their names have the number of the process, so that a file whose process is gone is known to be of no use;
//! the next command that makes such a file removes it. Two containers must not make such files in one folder:
//! a process of one is gone for the other. A lock on the file would tell, but the standard library has none
//! before Rust 1.89.

use crate::failure::Failure;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A path in `folder` for a file of this process, after those of processes that are gone were removed.
pub fn own_path(folder: &Path, before: &[u8], behind: &[u8]) -> PathBuf {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.as_bytes().strip_prefix(before).and_then(|rest| rest.strip_suffix(behind));
        let is_number = |digits: &&[u8]| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        let process = number.filter(is_number).and_then(|digits| std::str::from_utf8(digits).ok());
        let is_gone = |process: &str| !Path::new("/proc").join(process).exists();
        let is_file = || entry.file_type().is_ok_and(|kind| kind.is_file());
        if process.is_some_and(is_gone) && is_file() {
            // A process that may not remove it has another name for its own file.
            let _ = fs::remove_file(entry.path());
        }
    }
    let number = std::process::id().to_string();
    folder.join(OsString::from_vec([before, number.as_bytes(), behind].concat()))
}

/// A file that gets its name when it is whole. Before, it stands beside it under another, which is gone when
/// this value is dropped.
pub struct Unnamed {
    path: PathBuf,
    folder: PathBuf,
    name: PathBuf,
    is_kept: bool,
}

impl Unnamed {
    /// A file that is to be called `name`. It is for the caller to make it, at [`path`](Unnamed::path).
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if there is one.
    pub fn of(name: &Path) -> io::Result<Unnamed> {
        let last = name.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
        if name.symlink_metadata().is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let folder = name.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let path = own_path(folder, &[b".", last.as_bytes(), b".partial-"].concat(), b"");
        Ok(Unnamed { path, folder: folder.to_owned(), name: name.to_owned(), is_kept: false })
    }

    /// Where the file is meanwhile.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file its name, for good. Its bytes are on the device.
    ///
    /// # Errors
    /// If another file got that name meanwhile, or the file system refuses; the file is kept under the name
    /// that it has, which the failure tells.
    pub fn name(mut self) -> Result<(), Failure> {
        // A link is refused if the name is taken, where a rename replaces the file; not all file systems have
        // links.
        let named = match fs::hard_link(&self.path, &self.name) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => fs::rename(&self.path, &self.name),
            linked => linked,
        };
        self.is_kept = named.is_err();
        named.map_err(|error| {
            let (name, path) = (self.name.display(), self.path.display());
            Failure::Problem(format!(
                "cannot give {name} its name: {error}; it is whole, and kept as {path}: rename that, before the next command \
                 that makes {name} removes it"
            ))
        })?;
        let synced = File::open(&self.folder).and_then(|folder| folder.sync_all());
        synced.map_err(|error| Failure::file("make durable", &self.name, &error))
    }
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        if !self.is_kept {
            // After a rename it is not there.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_file_that_cannot_get_its_name_is_kept_and_the_failure_says_where() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("copy");
        let unnamed = Unnamed::of(&name).unwrap();
        let path = unnamed.path().to_owned();
        fs::write(&path, "whole").unwrap();
        fs::write(&name, "another").unwrap();
        let Err(Failure::Problem(text)) = unnamed.name() else { panic!("the name is taken") };
        assert!(text.contains(&*path.to_string_lossy()), "{text}");
        assert_eq!(
            (fs::read(&path).unwrap(), fs::read(&name).unwrap()),
            (b"whole".into(), b"another".into())
        );
    }
}
