//! [`FileIdentity`]: what tells a file from its copies, and a mount from another.

use rustix::fs::{AtFlags, StatxFlags, fstatvfs, statx};
use rustix::io::Errno;
use rustix::ioctl::{Updater, ioctl, opcode};
use std::ffi::c_long;
use std::os::fd::AsFd;

/// The kernel's request for the generation of an inode, `FS_IOC_GETVERSION`.
const GET_GENERATION: u32 = opcode::read::<c_long>(b'v', 1);

/// The identity of a file within its file system, and where that is. A rename keeps it; a copy has another.
/// The inode numbers of removed files are used again, so the time of birth tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    /// Its inode number.
    pub inode: u64,
    /// Nanoseconds since 1970 at its creation. Where the file system does not keep them, the generation of
    /// the inode, below 2^32; 0 where it has neither.
    pub birth: u64,
    /// The device that its file system is on: the major number in the upper half. Where that is 0, the system
    /// draws numbers at each mount, and this is the identifier of the file system instead (`f_fsid`), or 0. A
    /// clone of the device has another one, and its files keep the rest.
    pub device: u64,
}

impl FileIdentity {
    /// The identity of an open file; `None` if the system does not tell.
    pub(super) fn of(file: impl AsFd) -> Option<FileIdentity> {
        let told = statx(&file, c"", AtFlags::EMPTY_PATH, StatxFlags::INO | StatxFlags::BTIME).ok()?;
        let has_birth = told.stx_mask & StatxFlags::BTIME.bits() != 0;
        let birth = if has_birth { nanoseconds(told.stx_btime.tv_sec, told.stx_btime.tv_nsec) } else { 0 };
        let device = match told.stx_dev_major {
            0 => fstatvfs(&file).map_or(0, |told| told.f_fsid),
            major => u64::from(major) << 32 | u64::from(told.stx_dev_minor),
        };
        let birth = if birth == 0 { generation(&file).unwrap_or(0) } else { birth };
        Some(FileIdentity { inode: told.stx_ino, birth, device })
    }
}

/// A file system may tell any time.
fn nanoseconds(seconds: i64, rest: u32) -> u64 {
    (seconds as u64).wrapping_mul(1_000_000_000).wrapping_add(u64::from(rest))
}

/// The number that an inode has got with its last file.
fn generation(file: impl AsFd) -> Result<u64, Errno> {
    // Of the word that the request's number speaks of, file systems write an `int`.
    let mut words = [0u32; size_of::<c_long>() / size_of::<u32>()];
    // SAFETY: the request writes at most a `c_long`, which is as large as the words. Any bytes are valid
    // ones.
    unsafe { ioctl(file, Updater::<GET_GENERATION, _>::new(&mut words)) }?;
    Ok(u64::from(words[0]))
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

    #[test]
    fn an_inode_number_that_is_used_again_has_another_generation() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let of_new = || {
            std::fs::write(&path, "knot").unwrap();
            let file = std::fs::File::open(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            generation(&file).map(|told| (FileIdentity::of(&file).expect("a system that tells").inode, told))
        };
        match (of_new(), of_new()) {
            // Where no number is used again, files of one moment may have one generation.
            (Ok(first), Ok(second)) => assert_ne!(first, second),
            // Some file systems have none.
            (first, second) => assert!(first.is_err() && second.is_err()),
        }
    }

    #[test]
    fn any_time_of_birth_is_a_number() {
        assert_eq!(nanoseconds(2, 3), 2_000_000_003);
        assert_ne!(nanoseconds(i64::MIN, u32::MAX), nanoseconds(i64::MAX, u32::MAX));
    }
}
