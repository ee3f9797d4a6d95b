//! The file system of a path: it tells memory from disks, and an error names it.

use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// `TMPFS_MAGIC` of the kernel's interface.
const TMPFS_MAGIC: u64 = 0x0102_1994;

/// Whether an open file's bytes are memory that the system keeps for a tmpfs.
pub(crate) fn is_tmpfs(file: impl AsFd) -> io::Result<bool> {
    Ok(rustix::fs::fstatfs(file)?.f_type as u64 == TMPFS_MAGIC)
}

/// Has a new file, which is still empty, written in place, where a file system writes changed blocks to a new
/// place by itself. It stays as it is where that cannot be had; [`is_in_place`] tells.
pub(crate) fn ask_for_writes_in_place(file: impl AsFd) {
    let file = file.as_fd();
    if let Ok(flags) = ioctl_getflags(file) {
        // File systems that always write in place refuse this, and need it not.
        let _ = ioctl_setflags(file, flags | IFlags::NOCOW);
    }
}

/// Whether a file is marked as one whose changed blocks stay where they are.
pub(crate) fn is_in_place(file: impl AsFd) -> bool {
    ioctl_getflags(file).is_ok_and(|flags| flags.contains(IFlags::NOCOW))
}

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    pub point: PathBuf,
    /// Its type's name, such as `ext4`.
    pub kind: String,
}

impl Mount {
    /// The mount that a path is under, or is to be; a mount without a name if the system does not tell.
    pub fn of(path: &Path) -> Mount {
        let table = fs::read("/proc/self/mountinfo").unwrap_or_default();
        let path = fs::canonicalize(path).or_else(|_| fs::canonicalize(parent(path)));
        let path = path.unwrap_or_default();
        Mount::find(&table, &path)
            .unwrap_or_else(|| Mount { point: PathBuf::from("/"), kind: "an unknown file system".to_owned() })
    }

    /// The entry with the longest mount point above `path`; of several at one point the last, which hides the
    /// rest.
    fn find(table: &[u8], path: &Path) -> Option<Mount> {
        let mounts = table.split(|byte| *byte == b'\n').filter_map(|line| {
            // Fields: id, parent, device, root, mount point, options, optional tags, "-", type, source,
            // options.
            let mut fields = line.split(|byte| *byte == b' ');
            let point = PathBuf::from(unescape(fields.nth(4)?));
            let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
            Some(Mount { point, kind: String::from_utf8_lossy(kind).into_owned() })
        });
        mounts
            .filter(|mount| path.starts_with(&mount.point))
            .max_by_key(|mount| mount.point.as_os_str().len())
    }
}

/// The kernel writes blanks and backslashes in mount points as a backslash and three octal digits.
fn unescape(field: &[u8]) -> OsString {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        let digits = tail.get(..3).filter(|digits| digits.iter().all(|digit| (b'0'..b'8').contains(digit)));
        match (first, digits) {
            (b'\\', Some(digits)) => {
                bytes.push(
                    digits.iter().fold(0u8, |byte, digit| byte.wrapping_mul(8).wrapping_add(digit - b'0')),
                );
                rest = &tail[3..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    OsString::from_vec(bytes)
}

/// The folder that holds a path, for making a new name durable.
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().as_bytes().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_and_latest_mount_above_a_path_counts() {
        let table = b"21 1 254:0 / / rw shared:1 - ext4 /dev/root rw\n\
            30 21 0:25 / /mnt/a\\040b rw - tmpfs none rw\n\
            31 21 0:26 / /mnt rw shared:3 master:1 - xfs /dev/x rw\n\
            32 21 0:27 / /mnt rw - btrfs /dev/y rw\n\
            garbage\n";
        let kind = |path: &str| Mount::find(table, Path::new(path)).unwrap().kind;
        assert_eq!(kind("/home/x"), "ext4");
        assert_eq!(kind("/mnt/a b/file"), "tmpfs");
        assert_eq!(kind("/mnt/a"), "btrfs");
        assert_eq!(kind("/mnt2"), "ext4");
        assert_eq!(Mount::find(b"", Path::new("/")), None);
    }

    #[test]
    fn this_machine_tells_tmpfs_from_the_rest() {
        let shm = Path::new("/dev/shm");
        if Mount::of(shm).kind == "tmpfs" {
            assert!(is_tmpfs(fs::File::open(shm).unwrap()).unwrap());
        }
        assert!(!is_tmpfs(fs::File::open("/proc").unwrap()).unwrap());
        assert_eq!(parent(Path::new("pool")), Path::new("."));
        assert_eq!(parent(Path::new("a/pool")), Path::new("a"));
    }
}
