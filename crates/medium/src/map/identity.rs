//! [`FileIdentity`]: what tells a file from its copies.

use rustix::fs::{AtFlags, StatxFlags, statx};
use std::os::fd::AsFd;

/// The identity of a file within its file system, and where that is. A rename keeps it; a copy has another.
/// The inode numbers of removed files are used again, so the time of birth tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    /// Its inode number.
    pub inode: u64,
    /// Nanoseconds since 1970 at its creation; 0 where the file system does not keep it.
    pub birth: u64,
    /// The device that its file system is on. A clone of the device has another one, and its files keep the
    /// rest.
    pub device: u64,
}

impl FileIdentity {
    /// The identity of an open file; `None` if the system does not tell.
    pub(super) fn of(file: impl AsFd) -> Option<FileIdentity> {
        let told = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::INO | StatxFlags::BTIME).ok()?;
        let has_birth = told.stx_mask & StatxFlags::BTIME.bits() != 0;
        let nanoseconds =
            || (told.stx_btime.tv_sec as u64) * 1_000_000_000 + u64::from(told.stx_btime.tv_nsec);
        Some(FileIdentity {
            inode: told.stx_ino,
            birth: if has_birth { nanoseconds() } else { 0 },
            device: u64::from(told.stx_dev_major) << 32 | u64::from(told.stx_dev_minor),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rename_keeps_the_identity_and_a_copy_has_another() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two, three] = ["one", "two", "three"].map(|name| folder.path().join(name));
        let of = |path: &std::path::Path| {
            let told = FileIdentity::of(std::fs::File::open(path).unwrap()).unwrap();
            (told.inode, told.birth)
        };
        std::fs::write(&one, "knot").unwrap();
        let first = of(&one);
        std::fs::copy(&one, &two).unwrap();
        assert_ne!(first, of(&two));
        std::fs::rename(&one, &three).unwrap();
        assert_eq!(first, of(&three));
        // Its number may be used again at once.
        std::fs::remove_file(&three).unwrap();
        std::fs::copy(&two, &three).unwrap();
        assert_ne!(first, of(&three));
    }
}
