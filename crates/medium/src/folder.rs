//! Files below a folder, reached by descriptors and over no link.
//!
//! A process with more rights than the owner of a folder must not do there by a path what the owner may turn
//! to another file. Names of one folder are looked up in that folder alone, and what they lead to is asked of
//! the descriptor.

use rustix::fs::{self, AtFlags, CWD, Dir, Mode, OFlags};
use std::fs::File;
use std::io;
use std::path::Path;

/// A folder that is open.
#[derive(Debug)]
pub struct Folder(File);

/// The thing that a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A plain file.
    File,
    /// A folder.
    Folder,
    /// A link, a pipe, a device, a socket.
    Other,
}

/// No name leads elsewhere, and no pipe keeps the caller waiting.
const PLAIN: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

impl Folder {
    /// A folder by its path, which may lead over links.
    ///
    /// # Errors
    /// Those of the system.
    pub fn open(path: &Path) -> io::Result<Folder> {
        Ok(Folder(fs::openat(CWD, path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?.into()))
    }

    /// A folder by its path, whose last name is no link.
    ///
    /// # Errors
    /// Those of the system.
    pub fn open_itself(path: &Path) -> io::Result<Folder> {
        Ok(Folder(fs::openat(CWD, path, PLAIN | OFlags::DIRECTORY, Mode::empty())?.into()))
    }

    /// A folder in this one.
    ///
    /// # Errors
    /// Those of the system.
    pub fn folder(&self, name: &str) -> io::Result<Folder> {
        Ok(Folder(fs::openat(&self.0, name, PLAIN | OFlags::DIRECTORY, Mode::empty())?.into()))
    }

    /// A plain file in it, for reading.
    ///
    /// # Errors
    /// `InvalidInput` for what is none; those of the system.
    pub fn file(&self, name: &str) -> io::Result<File> {
        let other = || io::Error::new(io::ErrorKind::InvalidInput, format!("`{name}` is not a plain file"));
        let file = match fs::openat(&self.0, name, PLAIN, Mode::empty()) {
            Err(rustix::io::Errno::LOOP) => return Err(other()),
            file => File::from(file?),
        };
        if file.metadata()?.is_file() { Ok(file) } else { Err(other()) }
    }

    /// The thing that a name stands for; `None` if there is no such name.
    ///
    /// # Errors
    /// Those of the system.
    pub fn entry(&self, name: &str) -> io::Result<Option<Entry>> {
        let about = match fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            about => about?,
        };
        Ok(Some(match fs::FileType::from_raw_mode(about.st_mode) {
            fs::FileType::RegularFile => Entry::File,
            fs::FileType::Directory => Entry::Folder,
            _ => Entry::Other,
        }))
    }

    /// The names in it. Bytes that are no text are replaced.
    ///
    /// # Errors
    /// Those of the system.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let names =
            Dir::read_from(&self.0)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        let is_own = |name: &io::Result<String>| !matches!(name.as_deref(), Ok("." | ".."));
        names.filter(is_own).collect()
    }

    /// Makes a folder in it with this mode, unless the name is there.
    ///
    /// # Errors
    /// Those of the system.
    pub fn make_folder(&self, name: &str, mode: u32) -> io::Result<()> {
        match fs::mkdirat(&self.0, name, Mode::from_raw_mode(mode)) {
            Err(rustix::io::Errno::EXIST) => Ok(()),
            made => Ok(made?),
        }
    }

    /// Removes a name of a file.
    ///
    /// # Errors
    /// Those of the system.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        Ok(fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Its descriptor.
    pub fn as_file(&self) -> &File {
        &self.0
    }
}
