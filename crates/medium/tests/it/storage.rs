//! Storage of files on a disk, which comes and goes in whole units.

use quipu_medium::{Durability, MediumError, MediumKind, Region, Topology, probe};
use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const UNIT: u64 = 2 << 20;
const FILE: Option<MediumKind> = Some(MediumKind::File);

/// A folder on a disk; `None` where temporary files are in memory.
fn folder() -> Option<(tempfile::TempDir, PathBuf)> {
    let folder = tempfile::tempdir().unwrap();
    if probe(folder.path()).unwrap().choice != MediumKind::File {
        eprintln!("skipped: temporary files are not on a disk here");
        return None;
    }
    let pool = folder.path().join("pool");
    Some((folder, pool))
}

fn create(path: &Path, len: u64) -> Region {
    Region::create(path, len, FILE, Durability::Process).unwrap()
}

/// Whole units of storage that a file has, if it has no more than some metadata beside.
#[track_caller]
fn units(path: &Path) -> u64 {
    let used = fs::metadata(path).unwrap().blocks() * 512;
    assert!(used % UNIT < 256 << 10, "{used} bytes are not whole units");
    used / UNIT
}

#[test]
fn a_reservation_takes_every_unit_that_it_touches() {
    let Some((_folder, path)) = folder() else { return };
    let region = create(&path, 16 << 20);
    assert_eq!(units(&path), 1, "the head");
    region.reserve(3 * UNIT + 8192, 4096).unwrap();
    assert_eq!(units(&path), 2);
    region.reserve(4 * UNIT - 1, 2).unwrap();
    assert_eq!(units(&path), 3);
    // Those between are asked for together with unknown ones, and known ones are kept.
    region.store(3 * UNIT, 77);
    region.reserve(UNIT, 5 * UNIT).unwrap();
    assert_eq!((units(&path), region.load(3 * UNIT)), (6, 77));
}

#[test]
fn storage_goes_back_in_units_that_are_covered_whole() {
    let Some((_folder, path)) = folder() else { return };
    let region = create(&path, 16 << 20);
    region.reserve(0, 16 << 20).unwrap();
    region.store(2 * UNIT, 77);
    assert_eq!(region.discard(UNIT + 4096, UNIT).unwrap(), 0);
    assert_eq!(region.discard(2 * UNIT - 4096, UNIT + 4096).unwrap(), UNIT);
    assert_eq!((units(&path), region.load(2 * UNIT)), (7, 0));
    // It is asked for anew.
    region.reserve(2 * UNIT + 8, 8).unwrap();
    assert_eq!(units(&path), 8);
}

#[test]
fn the_last_unit_ends_with_the_file() {
    let Some((_folder, path)) = folder() else { return };
    let len = UNIT + (64 << 10);
    let region = create(&path, len);
    region.reserve(len - 4096, 4096).unwrap();
    let used = || fs::metadata(&path).unwrap().blocks() * 512;
    assert!((len..len + (256 << 10)).contains(&used()), "{}", used());
    assert_eq!(fs::metadata(&path).unwrap().len(), len);
    assert_eq!(region.discard(UNIT, 4096).unwrap(), 0, "not all of the unit");
    assert_eq!(region.discard(UNIT, 64 << 10).unwrap(), 64 << 10);
    assert_eq!(units(&path), 1);
    drop(region);
    fs::remove_file(&path).unwrap();
    let region = create(&path, 64 << 10);
    assert!(used() >= 64 << 10, "a file of less than a unit is one");
    assert_eq!(region.discard(0, 64 << 10).unwrap(), 64 << 10);
}

#[test]
fn units_are_those_of_each_part() {
    let Some((folder, _)) = folder() else { return };
    let path = |name: &str| folder.path().join(name);
    let region = |name| Region::create_unnamed(path(name), 2 * UNIT, FILE, Durability::Process).unwrap();
    let region = Region::join(vec![region("a"), region("b")], &Topology::of_machine().unwrap()).unwrap();
    region.give_name().unwrap();
    assert_eq!((units(&path("a")), units(&path("b"))), (1, 1));
    region.reserve(2 * UNIT - 4096, 8192).unwrap();
    assert_eq!((units(&path("a")), units(&path("b"))), (2, 1));
    assert_eq!(region.discard(UNIT, 2 * UNIT).unwrap(), 2 * UNIT);
    assert_eq!((units(&path("a")), units(&path("b"))), (1, 0));
}

#[test]
fn the_rest_of_a_unit_goes_back_if_nobody_else_is_in_it_and_words_before_it_can_be_changed() {
    let Some((_folder, path)) = folder() else { return };
    let region = create(&path, 16 << 20);
    let used = || fs::metadata(&path).unwrap().blocks() * 512;
    region.reserve(UNIT, UNIT).unwrap();
    region.store(UNIT + 8, 1);
    let before = used();
    // Not of a stretch that shares the unit.
    assert_eq!(region.discard_rest(UNIT, UNIT / 2, 8192).unwrap(), 0);
    assert_eq!(region.discard_rest(UNIT + 4096, 2 * UNIT, 8192).unwrap(), 0);
    assert_eq!(region.discard_rest(UNIT, UNIT, UNIT).unwrap(), 0, "there is no rest");
    assert_eq!((used(), before), (before, used()));
    assert_eq!(region.discard_rest(UNIT, 2 * UNIT, 5000).unwrap(), UNIT - 8192);
    assert_eq!(used(), before - (UNIT - 8192));
    region.overwrite(UNIT + 8, 2);
    assert_eq!((region.load(UNIT + 8), used()), (2, before - (UNIT - 8192)));
    region.reserve(UNIT, 8).unwrap();
    region.overwrite(UNIT + 8, 3);
    assert_eq!((region.load(UNIT + 8), used()), (3, before));
    drop(region);
    let region = Region::open(&path, FILE, Durability::Process).unwrap();
    region.overwrite(UNIT + 8, 4);
    assert_eq!(region.load(UNIT + 8), 4);
}

#[test]
fn a_limit_of_file_sizes_is_an_error_and_no_signal() {
    // Limits are those of a process.
    const CHILD: &str = "QUIPU_TEST_FILE_LIMIT";
    if let Some(path) = std::env::var_os(CHILD) {
        let error = Region::create(&path, 16 << 20, FILE, Durability::Process).map(drop).unwrap_err();
        let expected = |error: &_| matches!(error, MediumError::FileLimit { limit: 8388608, needed, .. } if *needed == 16 << 20);
        assert!(expected(&error) && error.to_string().contains("ulimit -f"), "{error}");
        assert!(Region::create(&path, 4 << 20, FILE, Durability::Process).is_ok());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let test = "storage::a_limit_of_file_sizes_is_an_error_and_no_signal";
    let output = Command::new("bash")
        .args(["-c", "ulimit -f 8192; exec \"$0\" --exact \"$1\""])
        .arg(std::env::current_exe().unwrap())
        .arg(test)
        .env(CHILD, folder.path().join("pool"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// A small file system in a file, unmounted when dropped.
struct Disk(tempfile::TempDir);

impl Disk {
    /// `None` if it cannot be made or mounted here.
    fn mount(mib: u64, make: &[&str]) -> Option<Disk> {
        let disk = Disk(tempfile::tempdir().unwrap());
        let (image, at) = (disk.0.path().join("image"), disk.at());
        fs::create_dir(&at).unwrap();
        fs::File::create(&image).unwrap().set_len(mib << 20).unwrap();
        let succeeds = |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
        let made = succeeds(Command::new(make[0]).args(&make[1..]).arg(&image))
            && succeeds(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&at));
        if !made {
            eprintln!("skipped: {} or mounting it needs root, or is not here", make[0]);
        }
        made.then_some(disk)
    }

    fn at(&self) -> PathBuf {
        self.0.path().join("disk")
    }

    /// Takes all that is left.
    fn fill(&self) {
        let filler = fs::File::create(self.at().join("filler")).unwrap();
        let mut end = 0;
        for len in [64 << 20, 4 << 20, 256 << 10, 16 << 10, 1 << 10] {
            while fallocate(&filler, FallocateFlags::empty(), end, len).is_ok() {
                end += len;
            }
        }
        filler.sync_all().unwrap();
    }

    /// Has the system read the file as a copy of it would, into the largest pages that it may take.
    fn read(&self, path: &Path) {
        fadvise(fs::File::open(path).unwrap(), 0, None, Advice::DontNeed).unwrap();
        fs::read(path).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.at()).output();
    }
}

/// Large pages over holes would end this process by a signal.
#[test]
fn stores_to_what_was_reserved_need_nothing_of_a_full_disk() {
    for block in ["1024", "4096"] {
        let Some(disk) = Disk::mount(24, &["mkfs.ext4", "-q", "-F", "-m", "0", "-b", block]) else { return };
        let path = disk.at().join("pool");
        let region = create(&path, 16 << 20);
        region.reserve(3 * UNIT + 8192, 4096).unwrap();
        region.store(3 * UNIT + 8192, 1);
        region.reserve(5 * UNIT, 4096).unwrap();
        region.store(5 * UNIT, 1);
        region.discard_rest(5 * UNIT, UNIT, 4096).unwrap();
        region.sync().unwrap();
        drop(region);
        disk.fill();
        disk.read(&path);
        let region = Region::open(&path, FILE, Durability::Process).unwrap();
        region.reserve(0, 4096).unwrap();
        region.reserve(3 * UNIT + 8192, 4096).unwrap();
        for at in (0..UNIT).step_by(4096) {
            region.store(at, 2);
            region.store(3 * UNIT + at, 2);
        }
        region.overwrite(5 * UNIT, 2);
        region.sync().unwrap();
        let error = region.reserve(5 * UNIT, 4096).unwrap_err();
        assert!(matches!(error, MediumError::DiskFull { needed: UNIT, .. }), "{error}");
    }
}

/// A store to a block that a copy shares needs another block.
#[test]
fn blocks_that_a_copy_shares_are_replaced_when_they_are_reserved() {
    for make in [&["mkfs.xfs", "-q", "-f"], &["mkfs.btrfs", "-q", "-f"]] {
        let Some(disk) = Disk::mount(320, make) else { continue };
        let (path, copy) = (disk.at().join("pool"), disk.at().join("copy"));
        let region = create(&path, 8 << 20);
        region.reserve(0, 8 << 20).unwrap();
        for at in (0..8 << 20).step_by(4096) {
            region.store(at, at | 1);
        }
        assert!(!region.shares_blocks());
        drop(region);
        // Where copies are written to new places by habit, this one is not.
        fs::File::create(&copy).unwrap();
        let _ = Command::new("chattr").arg("+C").arg(&copy).output();
        let copied = Command::new("cp").arg("--reflink=always").args([&path, &copy]).output().unwrap();
        assert!(copied.status.success(), "{copied:?}");
        let region = Region::open(&path, FILE, Durability::Process).unwrap();
        assert!(region.shares_blocks());
        region.reserve(0, 4 << 20).unwrap();
        disk.fill();
        for at in (0..4 << 20).step_by(4096) {
            region.store(at, at | 3);
        }
        region.sync().unwrap();
        let error = region.reserve(4 << 20, 4 << 20).unwrap_err();
        assert!(matches!(error, MediumError::DiskFull { .. }), "{error}");
        assert_eq!((region.load(4096), region.load(5 << 20)), (4096 | 3, 5 << 20 | 1));
    }
}
