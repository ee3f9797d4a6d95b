//! Files that are opened for reading only: writes stay in the process, and readers keep writers out.

use quipu_medium::{Durability, FlushKind, MediumError, MediumKind, Region, Survives, Topology};
use std::fs::{self, Permissions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

const LEN: u64 = 1 << 20;

/// A file of `LEN` bytes that only its owner may read, and nobody write.
fn file_in(folder: &Path) -> PathBuf {
    let path = folder.join("pool");
    let bytes: Vec<u8> = (0..LEN).map(|at| (at / 7) as u8).collect();
    fs::write(&path, bytes).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o400)).unwrap();
    path
}

fn file() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = file_in(folder.path());
    (folder, path)
}

fn open(path: &Path) -> Result<Region, MediumError> {
    Region::open_read_only(path, None)
}

/// Whether each descriptor that this process has of the file can only read.
fn is_only_read(path: &Path) -> bool {
    let path = fs::canonicalize(path).unwrap();
    let descriptors = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let flags: Vec<u32> = descriptors
        .filter(|entry| fs::read_link(entry.path()).is_ok_and(|target| target == path))
        .map(|entry| {
            let info = Path::new("/proc/self/fdinfo").join(entry.file_name());
            let info = fs::read_to_string(info).unwrap();
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
            u32::from_str_radix(flags.trim(), 8).unwrap()
        })
        .collect();
    // The two lowest bits are the way of access, and zero is reading.
    !flags.is_empty() && flags.iter().all(|flags| flags & 3 == 0)
}

/// KiB of the mapping of a file that are copies of this process alone.
fn own_kib(path: &Path) -> u64 {
    let maps = fs::read_to_string("/proc/self/smaps").unwrap();
    let name = fs::canonicalize(path).unwrap();
    let mut lines = maps.lines().skip_while(|line| !line.ends_with(name.to_str().unwrap()));
    let line = lines.find_map(|line| line.strip_prefix("Anonymous:")).expect("the file is mapped");
    line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}

#[test]
fn what_is_written_stays_in_this_process_and_costs_a_page() {
    let places = [tempfile::tempdir(), tempfile::tempdir_in("/dev/shm")];
    for folder in places.into_iter().flatten() {
        let path = file_in(folder.path());
        let (bytes, changed) = (fs::read(&path).unwrap(), fs::metadata(&path).unwrap().mtime_nsec());
        let region = open(&path).unwrap();
        assert!(region.is_read_only() && region.clone().is_read_only() && is_only_read(&path));
        assert_eq!(region.flush_kind(), FlushKind::None);
        assert_eq!(region.load(8), u64::from_le_bytes(bytes[8..16].try_into().unwrap()));

        region.prefault(0, LEN).unwrap();
        assert_eq!(own_kib(&path), 0, "no page is touched before it is used");
        region.write(4096, b"mine");
        region.store(8192, 42);
        region.persist(4096, 8192);
        let pages = 2 * 4096u64.div_ceil(page());
        assert!((1..=pages * page() / 1024).contains(&own_kib(&path)), "{} KiB", own_kib(&path));
        region.reserve(0, LEN).unwrap();
        region.discard(4096, 4096).unwrap();
        region.write_back(0, LEN).unwrap();
        region.sync().unwrap();

        let mut seen = [0; 4];
        region.read_racing(4096, &mut seen);
        assert_eq!((&seen, region.load(8192)), (b"mine", 42));
        drop(region);
        assert!(fs::read(&path).unwrap() == bytes);
        assert_eq!(fs::metadata(&path).unwrap().mtime_nsec(), changed);
        assert_ne!(open(&path).unwrap().load(8192), 42, "each begins with the file");
    }
}

#[test]
fn a_reader_takes_no_page_of_a_file_system_in_memory() {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        return println!("skipped: this system has no /dev/shm");
    };
    // A part with a hole at its start and one in its middle, and one that is nothing but a hole.
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let len = 2 * Region::PART_UNIT;
    for path in [&first, &second] {
        fs::File::create(path).unwrap().set_len(len).unwrap();
    }
    let file = fs::File::options().write(true).open(&first).unwrap();
    for at in [page(), Region::PART_UNIT + 3 * page() + 5] {
        file.write_all_at(b"there", at).unwrap();
    }
    let blocks = |path| fs::metadata(path).unwrap().blocks();
    let before = (blocks(&first), blocks(&second));
    let parts = vec![open(&first).unwrap(), open(&second).unwrap()];
    let region = Region::join(parts, &Topology::of_machine().unwrap()).unwrap();
    let claim = region.claim().unwrap();
    let mut bytes = vec![1; 2 * len as usize];
    region.read_racing(0, &mut bytes);
    for at in [page(), Region::PART_UNIT + 3 * page() + 5] {
        bytes[at as usize..][..5].iter_mut().zip(b"there").for_each(|(byte, wanted)| *byte -= wanted);
    }
    assert!(bytes.iter().all(|byte| *byte == 0));
    (0..2 * len).step_by(page() as usize).for_each(|at| region.store(at, 7));
    drop(claim);
    let _next = region.claim().unwrap();
    assert!((0..2 * len).step_by(page() as usize).all(|at| region.load(at) == 7), "of the claim before");
    assert_eq!((blocks(&first), blocks(&second)), before);
}

/// Bytes of a page of the machine.
fn page() -> u64 {
    let maps = fs::read_to_string("/proc/self/smaps").unwrap();
    let line = maps.lines().find_map(|line| line.strip_prefix("KernelPageSize:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn readers_share_a_file_and_exclude_writers() {
    let (_folder, path) = file();
    let write = || Region::open(&path, None, Durability::Process);
    let (first, second) = (open(&path).unwrap(), open(&path).unwrap());
    first.store(0, 1);
    assert_ne!(second.load(0), 1);
    drop(first);
    let error = write().unwrap_err();
    assert!(matches!(&error, MediumError::InUse { path: p, .. } if *p == path), "{error}");
    drop(second);

    let writer = write().unwrap();
    let MediumError::InUse { process, .. } = open(&path).unwrap_err() else { panic!("a writer has it") };
    // Some file systems call their device by another number in the table of locks, and some systems have no
    // such table.
    assert!(process.is_none_or(|process| process == std::process::id()), "{process:?}");
    drop(writer);
    open(&path).unwrap();
}

#[test]
fn the_medium_is_a_writers_and_nothing_survives() {
    let (_folder, path) = file();
    let region = Region::open_read_only(&path, Some(MediumKind::File)).unwrap();
    let statement = region.statement();
    assert_eq!((region.kind(), statement.process_crash.survives), (MediumKind::File, Survives::No));
    assert!(statement.to_string().contains("for reading only"), "{statement}");
    drop(region);
    let refused = |kind| Region::open_read_only(&path, Some(kind)).unwrap_err().to_string();
    assert!(refused(MediumKind::Dax).contains("MAP_SYNC"));
    assert!(refused(MediumKind::Sim).contains("simulated"));
    assert!(open(Path::new("/dev/zero")).unwrap_err().to_string().contains("no devdax device"));
    assert!(open(&path.join("missing")).unwrap_err().to_string().starts_with("open "));
    let device = MediumError::NotPrivate { path: "/dev/dax0.0".into() }.to_string();
    assert!(device.contains("; open it for writing"), "{device}");
}
