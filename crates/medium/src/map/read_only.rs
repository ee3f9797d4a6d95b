//! Opening a file for reading only.
//!
//! The file is opened and locked for readers, and mapped privately. This process may change its view, as a
//! recovery does, and each changed page becomes a copy of its own. So the system itself ensures that no byte
//! of the file changes. Nothing is given back or written to the device, and no instruction makes anything
//! durable.
//!
//! A page that this process has not changed shows later writes of others to the file. So no writer may have
//! the file meanwhile; the lock ensures that among programs that ask for it. A program that ignores the lock,
//! and changes or cuts the file, does the same harm as to any mapped file.

use super::device::{PmDevice, SYSFS};
use super::filesystem::{Mount, is_tmpfs};
use super::kind::MediumKind;
use super::lock::{Sharing, lock};
use super::mapping::{Mapping, grants_sync, map_private};
use super::open::{check_request, devdax, no_memory, no_sync, usable_len};
use super::piece::{Backing, BackingKind};
use crate::arch::FlushKind;
use crate::durability::{Durability, Statement};
use crate::error::MediumError;
use crate::region::Region;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

impl Region {
    /// Maps an existing file for reading only, beside any number of other readers and no writer. Writes stay
    /// in memory of this process, page by page, and not a byte of the file changes. `kind` as for
    /// [`open`](Region::open).
    ///
    /// # Errors
    /// [`MediumError::InUse`] if a writer has it open; [`MediumError::NotPrivate`] for a devdax device;
    /// otherwise as for [`open`](Region::open).
    pub fn open_read_only(path: impl AsRef<Path>, kind: Option<MediumKind>) -> Result<Region, MediumError> {
        let path = path.as_ref();
        check_request(path, kind, Durability::Process)?;
        if devdax(path, kind)?.is_some() {
            return Err(MediumError::NotPrivate { path: path.to_owned() });
        }
        // A pipe would wait for a writer.
        let flags = OFlags::NONBLOCK.bits() as i32;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
        let file = file.map_err(|error| MediumError::io("open", path, error))?;
        lock(&file, path, Sharing::WithReaders)?;
        let len = usable_len(&file, path, kind)?;
        let mount = Mount::of(path);
        let kind = kind_of(&file, path, len, kind, &mount)?;
        let inspect = |error| MediumError::io("inspect", path, error);
        let device = PmDevice::of_block(Path::new(SYSFS), file.metadata().map_err(inspect)?.dev());
        let base = map_private(&file, len).map_err(|error| MediumError::io("map", path, error))?;
        let statement = Statement::read_only(kind, &mount.kind);
        let mapping = Mapping::of(
            Backing::new(BackingKind::Private, file, path),
            len,
            base,
            statement,
            device.as_ref(),
        );
        Ok(Region::new(mapping, FlushKind::None))
    }
}

/// The medium that a writer would have here: it decides which states a crash may have left.
fn kind_of(
    file: &File,
    path: &Path,
    len: u64,
    asked: Option<MediumKind>,
    mount: &Mount,
) -> Result<MediumKind, MediumError> {
    let is_dax = || grants_sync(file, len);
    let is_memory = is_tmpfs(file).map_err(|error| MediumError::io("inspect", path, error))?;
    match asked {
        None if is_dax() => Ok(MediumKind::Dax),
        None if is_memory => Ok(MediumKind::Dram),
        None => Ok(MediumKind::File),
        Some(MediumKind::Dax) if !is_dax() => Err(no_sync(path, mount, Errno::OPNOTSUPP)),
        Some(MediumKind::Dram) if !is_memory => Err(no_memory(path, mount)),
        Some(kind) => Ok(kind),
    }
}
