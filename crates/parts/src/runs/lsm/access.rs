//! The access of the files of levels: users who may read the pool's file may read them.
//!
//! The library makes its files as the umask says, and some for the owner alone. So the folders keep others
//! out as long as a file is being made, and a file gets the pool's mode when it is whole. No reader opens
//! levels while a writer has the pool, so the moment in between is nobody's.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::path::Path;

/// The owner of a file, and its mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Bits for reading and writing.
    pub mode: u32,
    /// User and group; those of the process if they are unknown.
    pub owner: Option<(u32, u32)>,
}

/// Bits of a group.
const GROUP: u32 = 0o070;

impl Default for Access {
    /// For the owner alone.
    fn default() -> Access {
        Access { mode: 0o600, owner: None }
    }
}

impl Access {
    /// That of a file.
    ///
    /// # Errors
    /// Those of the system.
    pub fn of(path: &Path) -> io::Result<Access> {
        let about = path.metadata()?;
        Ok(Access { mode: about.mode() & 0o666, owner: Some((about.uid(), about.gid())) })
    }

    /// The mode of a folder: one who may read may look up names.
    fn of_folder(self) -> u32 {
        self.mode | (self.mode & 0o444) >> 2
    }

    /// Makes a folder, and those that it lacks above.
    pub(super) fn make_folder(self, path: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(self.of_folder() & 0o700).create(path)
    }

    /// Gives a file or folder this access. One that belongs to somebody else keeps what it has.
    pub(super) fn give(self, path: &Path) -> io::Result<()> {
        let about = path.metadata()?;
        let mut mode = if about.is_dir() { self.of_folder() } else { self.mode };
        let is_other = |owner: &(u32, u32)| *owner != (about.uid(), about.gid());
        if let Some((user, group)) = self.owner.filter(is_other)
            && chown(path, Some(user), Some(group)).is_err()
            && group != about.gid()
        {
            // The group that may read is another one.
            mode &= !GROUP;
        }
        if about.mode() & 0o7777 == mode {
            return Ok(());
        }
        match fs::set_permissions(path, Permissions::from_mode(mode)) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            given => given,
        }
    }

    /// Gives it to a folder with all that it holds.
    pub(super) fn give_all(self, folder: &Path) -> io::Result<()> {
        self.give(folder)?;
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => self.give_all(&entry.path())?,
                false => self.give(&entry.path())?,
            }
        }
        Ok(())
    }
}
