//! Making a new file, which has no name until it is a pool.
//!
//! A process that dies on the way leaves nothing, and nobody meets a file that is not a pool yet. Some file
//! systems make no file without a name. There the file has its name at once, and is removed again unless the
//! name is [given](Region::give_name) for good. The lists of the system (`/proc/PID/maps`) call a file that
//! was made without a name "deleted" until it is opened again.

use super::filesystem::{ask_for_writes_in_place, parent};
use super::kind::MediumKind;
use super::limit::check_file_limit;
use super::lock::{Sharing, lock};
use super::open::{BLOCK, attach, attach_device, check_len, check_request, clear, devdax};
use crate::durability::Durability;
use crate::error::MediumError;
use crate::region::Region;
use rustix::fs::{OFlags, ftruncate};
use rustix::io::{Errno, retry_on_intr};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

impl Region {
    /// Creates a file of `len` bytes, sparse and all zeros, and maps it. Of a devdax device whose first 4096
    /// bytes are zero, it takes the first `len` bytes and zeroes them all, which takes its time.
    ///
    /// Without a `kind` the path decides: `dax` for a devdax device and where `MAP_SYNC` is granted, else
    /// `dram` on tmpfs, else `file`. On `dax` the durability is always [`Durability::Always`].
    ///
    /// # Errors
    /// [`MediumError::Exists`] if there is a file already; [`MediumError::Unsuitable`] if the path cannot be
    /// the medium or the durability asked for, or `len` is not a positive multiple of 4096.
    /// [`MediumError::DiskFull`]; [`MediumError::FileLimit`] if this process may have no file of that length;
    /// [`MediumError::Io`]. After an error no file is left behind.
    pub fn create(
        path: impl AsRef<Path>,
        len: u64,
        kind: Option<MediumKind>,
        durability: Durability,
    ) -> Result<Region, MediumError> {
        let region = Region::create_unnamed(path, len, kind, durability)?;
        region.give_name()?;
        Ok(region)
    }

    /// As [`create`](Region::create), but a file has its name only when it is [given](Region::give_name):
    /// dropped before, it is gone.
    ///
    /// # Errors
    /// As for [`create`](Region::create).
    pub fn create_unnamed(
        path: impl AsRef<Path>,
        len: u64,
        kind: Option<MediumKind>,
        durability: Durability,
    ) -> Result<Region, MediumError> {
        let path = path.as_ref();
        check_request(path, kind, durability)?;
        if let Some(device) = devdax(path, kind)? {
            check_len(path, MediumKind::Dax.name(), len, device.align)?;
            let region = attach_device(path, &device, Some(len))?;
            return clear(path, region);
        }
        check_len(path, kind.map_or("pool", MediumKind::name), len, BLOCK)?;
        if path.symlink_metadata().is_ok() {
            return Err(MediumError::Exists { path: path.to_owned() });
        }
        let (file, mut named) = match unnamed_in(parent(path)) {
            Some(file) => (file, Named(None)),
            None => (named_at_once(path)?, Named(Some(path))),
        };
        lock(&file, path, Sharing::Alone)?;
        ask_for_writes_in_place(&file);
        check_file_limit(path, len)?;
        retry_on_intr(|| ftruncate(&file, len)).map_err(|error| match error {
            Errno::NOSPC | Errno::DQUOT => MediumError::DiskFull { path: path.to_owned(), needed: len },
            error => MediumError::io("set the length of", path, error),
        })?;
        let region = attach(file, path, len, kind, durability)?;
        if named.0.take().is_some() {
            region.mapping().remove_unless_named();
        }
        // The first block is always needed, and here it is still simple to say that storage cannot be had.
        region.reserve(0, BLOCK)?;
        Ok(region)
    }

    /// Gives a new file its name, and makes both durable. Nothing happens where it has one.
    ///
    /// # Errors
    /// [`MediumError::Exists`] if another file has got the name meanwhile; [`MediumError::Io`].
    pub fn give_name(&self) -> Result<(), MediumError> {
        self.sync()?;
        self.mapping().give_name()
    }
}

/// A pool holds its owner's data, so others get access only when they are given it.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

/// A file without a name, if it can have one later.
fn unnamed_in(folder: &Path) -> Option<File> {
    // It gets its name through this.
    let can_be_named = Path::new("/proc/self/fd").exists();
    let file = || options().custom_flags(OFlags::TMPFILE.bits() as i32).open(folder).ok();
    can_be_named.then(file).flatten()
}

fn named_at_once(path: &Path) -> Result<File, MediumError> {
    options().create_new(true).open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => MediumError::Exists { path: path.to_owned() },
        _ => MediumError::io("create", path, error),
    })
}

/// Removes a file with a name that did not come to be mapped.
struct Named<'a>(Option<&'a Path>);

impl Drop for Named<'_> {
    fn drop(&mut self) {
        if let Some(path) = self.0 {
            // The error that led here says more than a failure to clean up would.
            let _ = std::fs::remove_file(path);
        }
    }
}
