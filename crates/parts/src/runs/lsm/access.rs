//! The access of the files of levels: users who may read the pool's file may read them.
//!
//! The library makes its files as the umask says, and some for the owner alone. So the folders keep others
//! out as long as a file is being made, and a file gets the pool's mode when it is whole. No reader opens
//! levels while a writer has the pool, so the moment in between is nobody's.
//!
//! One with more rights than the pool's owner, such as root, works in a folder where the owner may put links.
//! So a file gets this access by its descriptor, and a tree has no links.

use super::files::{CURRENT, version_name};
use quipu_medium::folder::{Entry, Folder};
use std::fs::{DirBuilder, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, fchown};
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

    fn mode_of(self, about: &Metadata) -> u32 {
        if about.is_dir() { self.of_folder() } else { self.mode }
    }

    /// Gives a file or folder this access. Those of somebody else keep what they have, and so does a file
    /// that has another name: that may be anywhere.
    fn give(self, file: &File) -> io::Result<()> {
        let about = file.metadata()?;
        if about.is_file() && about.nlink() > 1 {
            return Ok(());
        }
        let mut mode = self.mode_of(&about);
        let is_other = |owner: &(u32, u32)| *owner != (about.uid(), about.gid());
        // A member of the pool's group may give a file to that, but not to another user.
        if let Some((user, group)) = self.owner.filter(is_other)
            && fchown(file, Some(user), Some(group)).is_err()
            && group != about.gid()
            && fchown(file, None, Some(group)).is_err()
        {
            // The group that may read is another one. It may do what all may.
            mode &= !GROUP | (mode & 0o7) << 3;
        }
        if about.mode() & 0o7777 == mode {
            return Ok(());
        }
        match file.set_permissions(Permissions::from_mode(mode)) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            given => given,
        }
    }

    /// As [`give`](Access::give), but fails if the pool's owner or group could do less with it than with the
    /// pool: they would be locked out of their own data.
    pub(super) fn ensure(self, file: &File) -> io::Result<()> {
        self.give(file)?;
        let (about, Some((user, group))) = (file.metadata()?, self.owner) else { return Ok(()) };
        let (wanted, mode) = (self.mode_of(&about), about.mode());
        let of_group = if about.gid() == group { mode >> 3 } else { mode };
        let of_user = if about.uid() == user { mode >> 6 } else { of_group };
        let lacks = (wanted >> 6 & !of_user | wanted >> 3 & !of_group) & 0o7;
        let what = "the pool's owner or its group could not read what this user writes there; write as the \
                    owner, as a member of the group, or as root";
        if lacks == 0 { Ok(()) } else { Err(io::Error::new(io::ErrorKind::PermissionDenied, what)) }
    }

    /// Gives it to the first folder. That may be reached by a link, which may lead to anybody's. Then it
    /// keeps its owner, and its mode unless it belongs to the pool's owner.
    pub(super) fn give_first(self, path: &Path) -> io::Result<()> {
        if !path.is_symlink() {
            return self.give(Folder::open_itself(path)?.as_file());
        }
        let folder = Folder::open(path)?;
        let user = folder.as_file().metadata()?.uid();
        if self.owner.is_some_and(|(owner, _)| owner == user) { self.give(folder.as_file()) } else { Ok(()) }
    }
}

/// The folders of a tree that is open.
pub(super) struct TreeFolders {
    tree: Folder,
    tables: Folder,
    access: Access,
}

impl TreeFolders {
    pub(super) fn new(tree: Folder, tables: Folder, access: Access) -> TreeFolders {
        TreeFolders { tree, tables, access }
    }

    /// Gives all that the tree holds its access.
    pub(super) fn give_all(&self) -> io::Result<()> {
        for folder in [&self.tree, &self.tables] {
            self.access.give(folder.as_file())?;
            for name in folder.names()? {
                self.give(folder, &name)?;
            }
        }
        Ok(())
    }

    /// Gives it to the files that name a version.
    pub(super) fn give_names(&self, version: u64) -> io::Result<()> {
        self.give(&self.tree, CURRENT)?;
        self.give(&self.tree, &version_name(version))
    }

    /// Gives it to the file of a table.
    pub(super) fn give_table(&self, number: u64) -> io::Result<()> {
        self.give(&self.tables, &number.to_string())
    }

    /// The same, and [ensures](Access::ensure) it.
    pub(super) fn ensure_table(&self, number: u64) -> io::Result<()> {
        self.access.ensure(&self.tables.file(&number.to_string())?)
    }

    fn give(&self, folder: &Folder, name: &str) -> io::Result<()> {
        if folder.entry(name)? != Some(Entry::File) {
            return Ok(());
        }
        match folder.file(name) {
            // Nothing that this user may change.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            file => self.access.give(&file?),
        }
    }
}
