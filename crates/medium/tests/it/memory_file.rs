//! Files on tmpfs, and the case that only a small file system shows: a full disk.
//!
//! Each test makes a tmpfs of its own where the system lets it (as root), for its size; a test that cannot
//! says so and checks nothing.

use quipu_medium::{Durability, FlushKind, MediumError, MediumKind, Region, Survives, probe};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A mounted tmpfs, unmounted and removed when dropped.
struct Tmpfs(tempfile::TempDir);

impl Tmpfs {
    fn new(size: &str) -> Option<Tmpfs> {
        let folder = tempfile::tempdir().unwrap();
        let options = format!("size={size}");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "none"])
            .arg(folder.path())
            .output()
            .is_ok_and(|output| output.status.success());
        if !mounted {
            eprintln!("skipped: mounting a tmpfs needs root");
        }
        mounted.then_some(Tmpfs(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path()).output();
    }
}

#[test]
fn a_full_disk_is_an_error_and_the_pool_stays_usable() {
    let Some(disk) = Tmpfs::new("1m") else { return };
    let path = disk.path().join("pool");
    let region = Region::create(&path, 8 << 20, Some(MediumKind::File), Durability::Process).unwrap();
    region.reserve(0, 512 << 10).unwrap();
    region.store(8, 77);
    let error = region.reserve(512 << 10, 4 << 20).unwrap_err();
    assert!(matches!(error, MediumError::DiskFull { needed, .. } if needed == 4 << 20), "{error}");
    assert_eq!(region.load(8), 77);
    region.reserve(512 << 10, 64 << 10).unwrap();
    region.store(512 << 10, 78);
}

#[test]
fn a_create_on_a_full_disk_leaves_nothing() {
    let Some(disk) = Tmpfs::new("64k") else { return };
    fs::write(disk.path().join("ballast"), vec![1; 64 << 10]).unwrap();
    let path = disk.path().join("pool");
    let error = Region::create(&path, 1 << 20, None, Durability::Process).unwrap_err();
    assert!(matches!(error, MediumError::DiskFull { .. }), "{error}");
    assert!(!path.exists());
}

#[test]
fn pages_without_storage_fail_to_prefault_and_do_not_end_the_process() {
    let Some(disk) = Tmpfs::new("1m") else { return };
    let path = disk.path().join("pool");
    let region = Region::create(&path, 8 << 20, None, Durability::Process).unwrap();
    let error = region.prefault(0, region.len()).unwrap_err();
    assert!(matches!(error, MediumError::Io { .. }), "{error}");
}

#[test]
fn tmpfs_is_taken_for_memory_unless_a_file_is_asked_for() {
    let Some(disk) = Tmpfs::new("16m") else { return };
    let path = disk.path().join("pool");
    let probe = probe(disk.path()).unwrap();
    assert_eq!((probe.choice, probe.map_sync), (MediumKind::Dram, Some(false)));
    assert_eq!(
        (probe.filesystem.as_deref(), probe.mount_point.as_deref()),
        (Some("tmpfs"), Some(disk.path()))
    );
    assert!(probe.free_bytes <= 16 << 20 && probe.free_bytes > 15 << 20);
    assert_eq!(fs::read_dir(disk.path()).unwrap().count(), 0, "probing leaves nothing behind");
    let text = probe.to_string();
    assert!(text.contains("MAP_SYNC is not granted") && text.contains("medium dram"), "{text}");

    let always = Region::create(&path, 1 << 20, None, Durability::Always).unwrap_err();
    assert!(matches!(&always, MediumError::Unsuitable { medium: "dram", .. }), "{always}");
    assert!(!path.exists());

    let region = Region::create(&path, 1 << 20, None, Durability::Process).unwrap();
    assert_eq!((region.kind(), Some(region.flush_kind())), (MediumKind::Dram, FlushKind::detect()));
    let statement = region.statement();
    assert_eq!(
        (statement.process_crash.survives, statement.os_crash.survives),
        (Survives::Yes, Survives::No)
    );
    region.write_nt(0, b"in memory");
    region.sync().unwrap();
    drop(region);
    let region = Region::open(&path, Some(MediumKind::File), Durability::Process).unwrap();
    assert_eq!((region.kind(), region.flush_kind()), (MediumKind::File, FlushKind::None));
    // Asking for a file does not make memory outlive the system.
    assert_eq!(region.statement().os_crash.survives, Survives::No);
}

#[test]
fn memory_cannot_be_asked_for_on_a_disk() {
    let folder = tempfile::tempdir().unwrap();
    if probe(folder.path()).unwrap().choice != MediumKind::File {
        return eprintln!("skipped: temporary files are not on a disk here");
    }
    let path = folder.path().join("pool");
    let error = Region::create(&path, 1 << 20, Some(MediumKind::Dram), Durability::Process).unwrap_err();
    assert!(
        matches!(&error, MediumError::Unsuitable { reason, .. } if reason.contains("/dev/shm")),
        "{error}"
    );
    assert!(!path.exists());
}

#[test]
fn what_is_no_place_for_a_pool_is_not_probed() {
    assert!(matches!(probe("/dev/null"), Err(MediumError::Unsuitable { .. })));
    assert!(matches!(probe("/nonexistent/path"), Err(MediumError::Io { .. })));
}
