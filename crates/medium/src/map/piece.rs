//! [`Piece`]: what a stretch of a mapping lies on, and the system calls on that file.

use super::filesystem::{is_tmpfs, parent};
use super::identity::FileIdentity;
use super::kind::MediumKind;
use super::limit::check_file_limit;
use super::storage::{Storage, UNIT};
use crate::error::MediumError;
use crate::node::{Node, Span};
use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FlockOperation, SeekFrom, fallocate, flock, fstat, fsync, linkat, seek,
};
use rustix::io::{Errno, pwrite, retry_on_intr};
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// How a file or device is mapped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BackingKind {
    /// A file that is written to.
    File,
    /// A devdax device, which has neither storage to reserve nor a cache to write back.
    Device,
    /// A file that is only read: each page that this process changes becomes a copy of its own.
    Private,
}

/// The file or device behind mapped bytes. The descriptor is held because the lock ends with it.
pub(crate) struct Backing {
    kind: BackingKind,
    file: File,
    path: PathBuf,
    /// Of a file on a disk. Memory and persistent memory give each page its storage by itself.
    storage: Option<Storage>,
    /// Whether it lies on a file system in memory.
    is_in_memory: bool,
}

impl Backing {
    pub(crate) fn new(kind: BackingKind, file: File, path: &Path) -> Backing {
        let is_in_memory = kind != BackingKind::Device && is_tmpfs(&file).unwrap_or(false);
        Backing { kind, file, path: path.to_owned(), storage: None, is_in_memory }
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// A file on a disk, written to, of `len` bytes.
    pub(crate) fn on_disk(file: File, path: &Path, len: u64) -> Result<Backing, MediumError> {
        // Words are changed by writes, and one beyond the limit ends the process, also within the file.
        check_file_limit(path, len)?;
        let storage = Storage::of(&file, len);
        let storage = Some(storage.map_err(|error| MediumError::io("list the blocks of", path, error))?);
        Ok(Backing { storage, ..Backing::new(BackingKind::File, file, path) })
    }
}

/// A stretch of a mapping on one file, on one device, or in plain memory. Offsets here are those in the file.
pub(super) struct Piece {
    pub(super) backing: Option<Backing>,
    /// Where in the mapping it begins.
    pub(super) start: u64,
    pub(super) len: u64,
    /// The node that it is attached to, if known.
    pub(super) node: Option<Node>,
    /// The unit of mappings of a device, otherwise 1.
    pub(super) align: u64,
    /// The file has a name, which it loses with the mapping, unless all pieces get theirs.
    pub(super) provisional: AtomicBool,
}

impl Piece {
    pub(super) fn span(&self) -> Span {
        Span { node: self.node, start: self.start, len: self.len }
    }

    pub(super) fn path(&self) -> Option<&Path> {
        self.backing.as_ref().map(|backing| backing.path.as_path())
    }

    pub(super) fn is_device(&self) -> bool {
        self.backing.as_ref().is_some_and(|backing| backing.kind == BackingKind::Device)
    }

    pub(super) fn is_private(&self) -> bool {
        self.backing.as_ref().is_some_and(|backing| backing.kind == BackingKind::Private)
    }

    /// The file that is mapped for writing; `None` for plain memory, a device, and a file that is only read.
    pub(super) fn shared(&self) -> Option<(&File, &PathBuf)> {
        let backing = self.backing.as_ref().filter(|backing| backing.kind == BackingKind::File)?;
        Some((&backing.file, &backing.path))
    }

    /// The mapped file, written to or only read; `None` for plain memory and a device.
    pub(super) fn file(&self) -> Option<&File> {
        let backing = self.backing.as_ref().filter(|backing| backing.kind != BackingKind::Device);
        backing.map(|backing| &backing.file)
    }

    /// See [`crate::Region::identity`].
    pub(super) fn identity(&self) -> Option<FileIdentity> {
        self.file().and_then(FileIdentity::of)
    }

    /// See [`crate::Region::reads_take_storage`].
    pub(super) fn reads_take_storage(&self) -> bool {
        self.backing.as_ref().is_some_and(|backing| backing.is_in_memory)
    }

    /// See [`crate::Region::give_name`].
    pub(super) fn give_name(&self) -> Result<(), MediumError> {
        let Some((file, path)) = self.shared() else { return Ok(()) };
        let name = |error: Errno| match error {
            Errno::EXIST => MediumError::Exists { path: path.clone() },
            error => MediumError::io("give its name to", path, error),
        };
        if fstat(file).map_err(name)?.st_nlink == 0 {
            let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
            linkat(CWD, unnamed, CWD, path, AtFlags::SYMLINK_FOLLOW).map_err(name)?;
            self.provisional.store(true, Ordering::Relaxed);
        }
        let folder =
            File::open(parent(path)).map_err(|error| MediumError::io("open the folder of", path, error))?;
        retry_on_intr(|| fsync(&folder))
            .map_err(|error| MediumError::io("make durable the name of", path, error))
    }

    /// See [`crate::Region::reserve`].
    pub(super) fn reserve(&self, offset: u64, len: u64, medium: MediumKind) -> Result<(), MediumError> {
        let Some((file, path)) = self.shared() else { return Ok(()) };
        let outcome = match self.storage() {
            Some(storage) => storage.set_aside(file, offset..offset + len),
            None => retry_on_intr(|| fallocate(file, FallocateFlags::empty(), offset, len))
                .map_err(|error| (error, len)),
        };
        let Err((error, needed)) = outcome else { return Ok(()) };
        match error {
            Errno::NOSPC | Errno::DQUOT => Err(MediumError::DiskFull { path: path.clone(), needed }),
            // Writing zeros instead would overwrite data: such file systems do not tell holes from data.
            Errno::OPNOTSUPP | Errno::NOSYS => Err(MediumError::unsuitable(
                path,
                medium.name(),
                "its file system cannot set storage aside, so that a full disk would end the process; \
                 use one that has fallocate, such as ext4, xfs, btrfs or tmpfs",
            )),
            error => Err(MediumError::io("reserve storage for", path, error)),
        }
    }

    fn storage(&self) -> Option<&Storage> {
        self.backing.as_ref()?.storage.as_ref()
    }

    /// See [`crate::Region::storage_unit`].
    pub(super) fn storage_unit(&self) -> u64 {
        self.storage().map_or(1, |_| UNIT)
    }

    /// See [`crate::Region::discard`].
    pub(super) fn discard(&self, offset: u64, len: u64) -> Result<u64, MediumError> {
        let bytes = offset..offset + len;
        self.punch(self.storage().map_or(bytes.clone(), |storage| storage.give_back(bytes)))
    }

    /// See [`crate::Region::discard_rest`].
    pub(super) fn discard_rest(&self, offset: u64, len: u64, from: u64) -> Result<u64, MediumError> {
        let (range, from) = (offset..offset + len, offset + from);
        match self.storage() {
            Some(storage) => self.punch(storage.give_back_rest(range, from)),
            None if self.reads_take_storage() => {
                self.punch(from.next_multiple_of(rustix::param::page_size() as u64)..range.end)
            }
            None => Ok(0),
        }
    }

    /// Gives bytes of the file back, and tells how many.
    fn punch(&self, bytes: Range<u64>) -> Result<u64, MediumError> {
        let (Some((file, path)), len) = (self.shared(), bytes.end.saturating_sub(bytes.start)) else {
            return Ok(0);
        };
        if len == 0 {
            return Ok(0);
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match retry_on_intr(|| fallocate(file, flags, bytes.start, len)) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(len),
            Err(error) => Err(MediumError::io("give storage back of", path, error)),
        }
    }

    /// See [`crate::Region::overwrite`]. Returns whether the bytes were written. They are not where all of
    /// their unit has storage, nor where the system refuses, as it does without memory.
    pub(super) fn overwrite(&self, offset: u64, bytes: &[u8]) -> bool {
        let (Some((file, _)), Some(storage)) = (self.shared(), self.storage()) else { return false };
        if storage.covers(offset) {
            return false;
        }
        // A copy of the block to another place must not bring back the old bytes.
        let _copying = storage.exclusive();
        retry_on_intr(|| pwrite(file, bytes, offset)) == Ok(bytes.len())
    }

    /// See [`crate::Region::shares_blocks`].
    pub(super) fn shares_blocks(&self) -> bool {
        self.storage().is_some_and(Storage::shares_blocks)
    }

    /// See [`crate::Region::has_data`].
    pub(super) fn has_data(&self, offset: u64, len: u64) -> bool {
        let Some(file) = self.file() else { return true };
        match seek(file, SeekFrom::Data(offset)) {
            Ok(data) => data < offset + len,
            // There is none behind this place; a file system that cannot tell says something else.
            Err(error) => error != Errno::NXIO,
        }
    }

    /// See [`crate::Region::data_len`].
    pub(super) fn data_len(&self, offset: u64, len: u64) -> u64 {
        let (Some(file), end, mut at) = (self.file(), offset + len, offset) else { return len };
        while at < end {
            at = match seek(file, SeekFrom::Data(at)) {
                Ok(data) if data < end => match seek(file, SeekFrom::Hole(data)) {
                    Ok(hole) => hole,
                    Err(_) => return len,
                },
                Ok(_) | Err(Errno::NXIO) => return at - offset,
                Err(_) => return len,
            };
        }
        len
    }

    /// Has the file system write the file to its device, once its pages are.
    pub(super) fn sync(&self) -> Result<(), MediumError> {
        let Some((file, path)) = self.shared() else { return Ok(()) };
        retry_on_intr(|| fsync(file)).map_err(|error| MediumError::io("write back", path, error))
    }

    /// Lets go of the file; it loses its name if it has that only for the time being.
    pub(super) fn unlock(&self) {
        let removes = self.provisional.load(Ordering::Relaxed);
        if let Some((_, path)) = self.shared().filter(|_| removes) {
            let _ = std::fs::remove_file(path);
        }
        // Closing would do it too, but not while a child that is just being started holds a copy of the
        // descriptor.
        if let Some(backing) = &self.backing {
            let _ = flock(&backing.file, FlockOperation::Unlock);
        }
    }
}
