//! The kind of a path, and the promises of a pool there, found out without making one.
//!
//! `MAP_SYNC` cannot be looked up, only tried: on the named file, or on an unnamed (else at once removed)
//! file in the named folder. Nothing is changed otherwise and no lock is taken, so a pool in use can be
//! probed.

use super::device::{PmDevice, SYSFS};
use super::filesystem::{Mount, ask_for_writes_in_place, is_in_place, is_tmpfs};
use super::kind::MediumKind;
use super::mapping::grants_sync;
use crate::arch::{self, FlushKind};
use crate::durability::Statement;
use crate::error::MediumError;
use crate::node::Node;
use rustix::fs::{Mode, OFlags, fstatvfs, ftruncate, openat, unlinkat};
use std::fmt;
use std::fs::File;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Bytes of the mapping that is tried.
const TRIAL: u64 = 4096;

/// The facts of a path, and of a pool there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The path that was asked about.
    pub path: PathBuf,
    /// The type of its file system; `None` for a devdax device.
    pub filesystem: Option<String>,
    /// Where that is mounted.
    pub mount_point: Option<PathBuf>,
    /// Bytes that a file there may still take, or the size of the devdax device.
    pub free_bytes: u64,
    /// Whether `MAP_SYNC` is granted; `None` if it could not be tried.
    pub map_sync: Option<bool>,
    /// The device beneath, if the system describes it.
    pub device: Option<PmDevice>,
    /// The medium that a pool there is, unless another is asked for.
    pub choice: MediumKind,
    /// The instruction that makes a line durable there.
    pub flush: FlushKind,
    /// The NUMA node of the device, if the system tells.
    pub node: Option<Node>,
    /// The failures that such a pool would survive.
    pub statement: Statement,
}

/// Finds out the kind of `path`: a folder, a file or a devdax device. The path must exist.
///
/// # Errors
/// [`MediumError::Unsuitable`] if it is none of these, [`MediumError::Io`] if it cannot be examined.
pub fn probe(path: impl AsRef<Path>) -> Result<Probe, MediumError> {
    let path = path.as_ref();
    let metadata = std::fs::metadata(path).map_err(|error| MediumError::io("inspect", path, error))?;
    if metadata.file_type().is_char_device() {
        return probe_device(path, metadata.rdev());
    }
    if !metadata.is_dir() && !metadata.is_file() {
        let reason = "it is neither a folder nor a regular file nor a devdax device; name the folder where the pool \
                      shall be";
        return Err(MediumError::unsuitable(path, "pool", reason));
    }
    let inspect = |error: rustix::io::Errno| MediumError::io("inspect", path, error);
    let file = File::open(path).map_err(|error| MediumError::io("open", path, error))?;
    let space = fstatvfs(&file).map_err(inspect)?;
    let tmpfs = is_tmpfs(&file).map_err(|error| MediumError::io("inspect", path, error))?;
    let trial = if metadata.is_dir() { trial_file(&file) } else { Some(file) };
    let map_sync = trial.as_ref().map(|file| grants_sync(file, TRIAL));
    let mount = Mount::of(path);
    let device = PmDevice::of_block(Path::new(SYSFS), metadata.dev());
    let (choice, flush, statement) = match map_sync {
        Some(true) => {
            let flush = PmDevice::flush(device.as_ref()).unwrap_or(FlushKind::None);
            (MediumKind::Dax, flush, Statement::dax(device.as_ref(), flush, arch::virtual_machine()))
        }
        _ if tmpfs => {
            let flush = FlushKind::detect().unwrap_or(FlushKind::None);
            (MediumKind::Dram, flush, Statement::memory_file(MediumKind::Dram))
        }
        _ => {
            (MediumKind::File, FlushKind::None, Statement::file(&mount.kind, trial.is_some_and(is_in_place)))
        }
    };
    Ok(Probe {
        path: path.to_owned(),
        filesystem: Some(mount.kind),
        mount_point: Some(mount.point),
        free_bytes: space.f_bavail.saturating_mul(space.f_frsize),
        map_sync,
        node: device.as_ref().and_then(|device| device.node),
        device,
        choice,
        flush,
        statement,
    })
}

fn probe_device(path: &Path, number: u64) -> Result<Probe, MediumError> {
    let dax = MediumKind::Dax;
    let device = PmDevice::of_character(Path::new(SYSFS), number)
        .ok_or_else(|| MediumError::unsuitable(path, dax.name(), "it is a device, but no devdax device"))?;
    let file = File::open(path).map_err(|error| MediumError::io("open", path, error))?;
    let flush = PmDevice::flush(Some(&device)).unwrap_or(FlushKind::None);
    Ok(Probe {
        path: path.to_owned(),
        filesystem: None,
        mount_point: None,
        free_bytes: device.size.unwrap_or(0),
        map_sync: Some(grants_sync(&file, device.align)),
        choice: dax,
        flush,
        node: device.node,
        statement: Statement::dax(Some(&device), flush, arch::virtual_machine()),
        device: Some(device),
    })
}

/// A file in `folder` that vanishes by itself. `None` if none can be made there, for lack of rights or space.
fn trial_file(folder: &File) -> Option<File> {
    let mode = Mode::RUSR | Mode::WUSR;
    let access = OFlags::RDWR | OFlags::CLOEXEC;
    let unnamed = openat(folder, ".", access | OFlags::TMPFILE, mode);
    let trial = unnamed.or_else(|_| {
        // Some file systems have no unnamed files. The name is taken exclusively, so it was nobody's.
        let name = format!(".quipu-probe-{}", std::process::id());
        let named = openat(folder, name.as_str(), access | OFlags::CREATE | OFlags::EXCL, mode)?;
        unlinkat(folder, name.as_str(), rustix::fs::AtFlags::empty())?;
        Ok::<_, rustix::io::Errno>(named)
    });
    let trial = trial.ok()?;
    ask_for_writes_in_place(&trial);
    ftruncate(&trial, TRIAL).ok()?;
    Some(trial.into())
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match (&self.filesystem, &self.mount_point, &self.device) {
            (Some(kind), Some(point), _) => {
                writeln!(
                    f,
                    "{path} is on {kind}, mounted at {}, with {} free.",
                    point.display(),
                    Size(self.free_bytes)
                )?;
            }
            _ => writeln!(f, "{path} is a devdax device of {}.", Size(self.free_bytes))?,
        }
        let granted = match self.map_sync {
            Some(true) => "MAP_SYNC is granted, so a flushed store needs nothing more from the system",
            Some(false) => "MAP_SYNC is not granted, so this is not directly mapped persistent memory",
            None => {
                "MAP_SYNC could not be tried, because no file can be made there; it counts as not granted"
            }
        };
        writeln!(f, "{granted}.")?;
        let flush = match (self.choice, self.flush) {
            (MediumKind::File, _) => {
                "with no flush on the write path, for a crash of the process alone".to_owned()
            }
            (_, FlushKind::None) => "with no flush, since the caches are saved as well".to_owned(),
            (_, flush) => format!("with {flush} to write lines back"),
        };
        writeln!(f, "A pool here is of medium {} unless you ask for another, {flush}.", self.choice)?;
        match self.node {
            Some(node) => writeln!(f, "The device belongs to NUMA {node}; threads there reach it soonest.")?,
            None => writeln!(f, "The system does not tell which NUMA node the device belongs to.")?,
        }
        write!(f, "{}", self.statement)
    }
}

/// A number of bytes in the unit that people would use.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
        match units.iter().find(|(_, shift)| self.0 >> shift > 0) {
            Some((unit, shift)) => write!(f, "{:.1} {unit}", self.0 as f64 / (1u64 << shift) as f64),
            None => write!(f, "{} bytes", self.0),
        }
    }
}
