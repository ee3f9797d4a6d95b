//! Making a region of plain memory, of a file or of a devdax device.
//!
//! An existing file is locked before anything about it is believed. Contents are the business of the layers
//! above. A file of any length and content is mapped as far as it goes, and the superblock decides.

use super::device::{PmDevice, SYSFS};
use super::filesystem::{Mount, is_in_place, is_tmpfs};
use super::kind::{MediumKind, Pages};
use super::lock::{Sharing, lock};
use super::mapping::{Mapping, map_shared};
use super::piece::{Backing, BackingKind};
use crate::arch::{self, FlushKind};
use crate::durability::{Durability, Statement};
use crate::error::MediumError;
use crate::region::Region;
use rustix::io::Errno;
use rustix::mm::Advice;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Lengths of regions are multiples of this, on machines with pages of any size.
pub(super) const BLOCK: u64 = 4096;

impl Region {
    /// Memory of this process, zeroed, with the processor's own persistence instructions: for measuring and
    /// for tests. Nothing survives.
    ///
    /// # Errors
    /// [`MediumError::Unsuitable`] if `len` is not a positive multiple of 4096, [`MediumError::Io`] without
    /// memory.
    pub fn dram(len: u64, pages: Pages) -> Result<Region, MediumError> {
        check_len(Path::new("anonymous memory"), MediumKind::Dram.name(), len, BLOCK)?;
        let mapping = Mapping::anonymous_pages(len, pages)?;
        Ok(Region::new(mapping, FlushKind::detect().unwrap_or(FlushKind::None)))
    }

    /// Memory of this process, zeroed, without any persistence instruction: for measuring their cost. Nothing
    /// survives.
    ///
    /// # Errors
    /// As for [`dram`](Region::dram).
    pub fn volatile(len: u64, pages: Pages) -> Result<Region, MediumError> {
        check_len(Path::new("anonymous memory"), MediumKind::Dram.name(), len, BLOCK)?;
        Ok(Region::new(Mapping::anonymous_pages(len, pages)?, FlushKind::None))
    }

    /// Maps an existing file or devdax device whole, down to a multiple of 4096 bytes. `kind` and
    /// `durability` as for [`create`](Region::create).
    ///
    /// # Errors
    /// [`MediumError::InUse`] if another handle has it open; [`MediumError::Unsuitable`] if it is shorter
    /// than 4096 bytes or cannot be the medium or the durability asked for; [`MediumError::Io`], for a
    /// missing file too.
    pub fn open(
        path: impl AsRef<Path>,
        kind: Option<MediumKind>,
        durability: Durability,
    ) -> Result<Region, MediumError> {
        let path = path.as_ref();
        check_request(path, kind, durability)?;
        if let Some(device) = devdax(path, kind)? {
            return attach_device(path, &device, None);
        }
        let file = open_existing(path)?;
        lock(&file, path, Sharing::Alone)?;
        let len = usable_len(&file, path, kind)?;
        attach(file, path, len, kind, durability)
    }
}

/// Bytes of an existing file that can be mapped.
pub(super) fn usable_len(file: &File, path: &Path, kind: Option<MediumKind>) -> Result<u64, MediumError> {
    let metadata = file.metadata().map_err(|error| MediumError::io("inspect", path, error))?;
    let name = kind.map_or("pool", MediumKind::name);
    if !metadata.is_file() {
        let reason = "it is neither a regular file nor a devdax device";
        return Err(MediumError::unsuitable(path, name, reason));
    }
    let len = metadata.len() / BLOCK * BLOCK;
    if len == 0 {
        let reason = format!(
            "its {} bytes are too short to be a pool; restore the file or create one",
            metadata.len()
        );
        return Err(MediumError::unsuitable(path, name, reason));
    }
    Ok(len)
}

/// Refuses requests that no path can serve, before anything is touched.
pub(super) fn check_request(
    path: &Path,
    kind: Option<MediumKind>,
    durability: Durability,
) -> Result<(), MediumError> {
    match kind {
        Some(MediumKind::Sim) => Err(MediumError::unsuitable(
            path,
            MediumKind::Sim.name(),
            "the simulated medium has no path; choose dram, file or dax for this one",
        )),
        Some(kind @ (MediumKind::Dram | MediumKind::File)) => check_durability(path, kind, durability),
        Some(MediumKind::Dax) | None => Ok(()),
    }
}

fn check_durability(path: &Path, kind: MediumKind, durability: Durability) -> Result<(), MediumError> {
    let reason = match (kind, durability) {
        (_, Durability::Process) | (MediumKind::Dax | MediumKind::Sim, _) => return Ok(()),
        (MediumKind::Dram, _) => {
            "memory survives no crash of the system, so its only durability is process; use dax or file for more"
        }
        (MediumKind::File, _) => {
            "nothing writes a mapped file back in time for this durability yet; use process, or a dax medium, \
             where every acknowledged write is durable"
        }
    };
    let reason = format!("durability {durability} was asked for, but {reason}");
    Err(MediumError::unsuitable(path, kind.name(), reason))
}

pub(super) fn check_len(path: &Path, medium: &'static str, len: u64, unit: u64) -> Result<(), MediumError> {
    if len == 0 || !len.is_multiple_of(unit) {
        let reason = format!("its length must be a positive multiple of {unit} bytes, and {len} is not");
        return Err(MediumError::unsuitable(path, medium, reason));
    }
    Ok(())
}

fn open_existing(path: &Path) -> Result<File, MediumError> {
    OpenOptions::new().read(true).write(true).open(path).map_err(|error| MediumError::io("open", path, error))
}

/// The facts of a devdax device, or `None` if the path is to be treated as a file.
pub(super) fn devdax(path: &Path, kind: Option<MediumKind>) -> Result<Option<PmDevice>, MediumError> {
    // A missing path is no device; a caller that needs it to exist finds out and says so.
    let Ok(metadata) = std::fs::metadata(path) else { return Ok(None) };
    let name = kind.unwrap_or(MediumKind::Dax).name();
    if metadata.file_type().is_block_device() {
        let reason = "it is a block device; mount a file system on it and name a file there, or make its \
                      namespace a devdax one";
        return Err(MediumError::unsuitable(path, name, reason));
    }
    if !metadata.file_type().is_char_device() {
        return Ok(None);
    }
    let device = PmDevice::of_character(Path::new(SYSFS), metadata.rdev())
        .ok_or_else(|| MediumError::unsuitable(path, name, "it is a device, but no devdax device"))?;
    if kind.is_some_and(|kind| kind != MediumKind::Dax) {
        return Err(MediumError::unsuitable(path, name, "it is a devdax device; use medium dax"));
    }
    Ok(Some(device))
}

/// Maps a locked file as the medium asked for, or as the best that it can be.
pub(super) fn attach(
    file: File,
    path: &Path,
    len: u64,
    kind: Option<MediumKind>,
    durability: Durability,
) -> Result<Region, MediumError> {
    let mount = Mount::of(path);
    let inspect = |error| MediumError::io("inspect", path, error);
    let metadata = file.metadata().map_err(inspect)?;
    let device = PmDevice::of_block(Path::new(SYSFS), metadata.dev());
    if matches!(kind, None | Some(MediumKind::Dax)) {
        match map_shared(&file, len, true) {
            Ok(base) => return persistent(path, BackingKind::File, file, len, base, device.as_ref()),
            Err(_) if kind.is_none() => {}
            Err(error) => return Err(no_sync(path, &mount, error)),
        }
    }
    let tmpfs = is_tmpfs(&file).map_err(inspect)?;
    let chosen = kind.unwrap_or(if tmpfs { MediumKind::Dram } else { MediumKind::File });
    check_durability(path, chosen, durability)?;
    if chosen == MediumKind::Dram && !tmpfs {
        return Err(no_memory(path, &mount));
    }
    let statement =
        if tmpfs { Statement::memory_file(chosen) } else { Statement::file(&mount.kind, is_in_place(&file)) };
    let backing = if tmpfs {
        Backing::new(BackingKind::File, file, path)
    } else {
        Backing::on_disk(file, path, metadata.len())?
    };
    let base = map_shared(backing.file(), len, false).map_err(|error| MediumError::io("map", path, error))?;
    let mapping = Mapping::of(backing, len, base, statement, device.as_ref());
    if tmpfs {
        mapping.advise(Advice::LinuxHugepage);
    }
    let flush = match chosen {
        MediumKind::Dram => FlushKind::detect().unwrap_or(FlushKind::None),
        // Pages of the system survive the process, even stores that have not left the caches yet.
        _ => FlushKind::None,
    };
    Ok(Region::new(mapping, flush))
}

/// Maps a devdax device, as far as `len` says or whole.
pub(super) fn attach_device(path: &Path, device: &PmDevice, len: Option<u64>) -> Result<Region, MediumError> {
    let unsuitable = |reason: String| MediumError::unsuitable(path, MediumKind::Dax.name(), reason);
    let size = device.size.ok_or_else(|| unsuitable("the system does not tell its size".to_owned()))?;
    let size = size / device.align * device.align;
    let len = len.unwrap_or(size);
    if len > size || len == 0 {
        return Err(unsuitable(format!("it has {size} usable bytes, too few for a pool of {len}")));
    }
    let file = open_existing(path)?;
    lock(&file, path, Sharing::Alone)?;
    let base = map_shared(&file, len, true).map_err(|error| {
        unsuitable(format!("it does not grant MAP_SYNC ({error}); reconfigure its namespace"))
    })?;
    persistent(path, BackingKind::Device, file, len, base, Some(device))
}

/// The region of a mapping that was granted `MAP_SYNC`.
fn persistent(
    path: &Path,
    kind: BackingKind,
    file: File,
    len: u64,
    base: *mut u8,
    device: Option<&PmDevice>,
) -> Result<Region, MediumError> {
    let flush = PmDevice::flush(device);
    let statement = Statement::dax(device, flush.unwrap_or(FlushKind::None), arch::virtual_machine());
    let mapping = Mapping::of(Backing::new(kind, file, path), len, base, statement, device);
    Ok(Region::new(mapping, flush.ok_or_else(|| no_instruction(path))?))
}

/// A device always exists, so an earlier pool on it is protected by this rule: its first block must be zero.
pub(super) fn clear(path: &Path, region: Region) -> Result<Region, MediumError> {
    let mut first = [0; BLOCK as usize];
    region.read_racing(0, &mut first);
    if first.iter().any(|byte| *byte != 0) {
        let reason = "its first 4096 bytes are not zero, so it may hold data; open it, or zero them first \
                      (daxio --zero does)";
        return Err(MediumError::unsuitable(path, MediumKind::Dax.name(), reason));
    }
    region.zero(0, region.len());
    region.fence();
    Ok(region)
}

pub(super) fn no_sync(path: &Path, mount: &Mount, error: Errno) -> MediumError {
    let reason = format!(
        "its file system ({}) does not grant MAP_SYNC ({error}); mount a pmem device with -o dax, name a devdax \
         device, or use medium file",
        mount.kind
    );
    MediumError::unsuitable(path, MediumKind::Dax.name(), reason)
}

pub(super) fn no_memory(path: &Path, mount: &Mount) -> MediumError {
    let reason = format!(
        "its file system ({}) is not memory; name a path on tmpfs, such as /dev/shm, or use medium file",
        mount.kind
    );
    MediumError::unsuitable(path, MediumKind::Dram.name(), reason)
}

fn no_instruction(path: &Path) -> MediumError {
    let reason = "this processor has no instruction that writes a cache line back; use medium file";
    MediumError::unsuitable(path, MediumKind::Dax.name(), reason)
}
