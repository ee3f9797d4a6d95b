//! Mapped files: making, opening, locking and refusing them.

use quipu_medium::{Durability, FlushKind, MediumError, MediumKind, Region, Survives};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const LEN: u64 = 1 << 20;
const FILE: Option<MediumKind> = Some(MediumKind::File);

/// A folder that is removed at the end, on the file system that temporary files are on.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let pool = folder.path().join("pool");
    (folder, pool)
}

fn create(path: &Path, len: u64) -> Result<Region, MediumError> {
    Region::create(path, len, FILE, Durability::Process)
}

fn open(path: &Path) -> Result<Region, MediumError> {
    Region::open(path, FILE, Durability::Process)
}

fn reason(error: MediumError) -> String {
    match error {
        MediumError::Unsuitable { reason, .. } => reason,
        other => panic!("expected Unsuitable, got {other}"),
    }
}

#[test]
fn a_pool_is_created_sparse_and_found_again() {
    let (_folder, path) = folder();
    {
        let region = create(&path, 64 << 20).unwrap();
        assert_eq!((region.len(), region.kind()), (64 << 20, MediumKind::File));
        assert_eq!(region.flush_kind(), FlushKind::None, "no flush on the write path of a file");
        assert_eq!(region.mapping().path(), Some(path.as_path()));
        assert!(fs::metadata(&path).unwrap().blocks() * 512 < 4 << 20, "sparse");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        region.write_nt(100, b"hello");
        region.store(LEN, 42);
        region.fence();
    }
    let region = open(&path).unwrap();
    let mut bytes = [0; 5];
    region.read_racing(100, &mut bytes);
    assert_eq!((&bytes, region.load(LEN), region.load(LEN + 8)), (b"hello", 42, 0));
}

#[test]
fn what_was_written_is_in_the_file_without_closing_or_syncing() {
    let (_folder, path) = folder();
    let region = create(&path, LEN).unwrap();
    region.write(4096, b"there at once");
    let bytes = fs::read(&path).unwrap();
    assert_eq!(&bytes[4096..4109], b"there at once");
    region.sync().unwrap();
}

#[test]
fn reserving_allocates_and_keeps_what_is_there() {
    let (_folder, path) = folder();
    let region = create(&path, 16 << 20).unwrap();
    region.write(8192, b"kept");
    region.reserve(4096, 8 << 20).unwrap();
    region.reserve(0, 0).unwrap();
    assert!(fs::metadata(&path).unwrap().blocks() * 512 >= 8 << 20);
    region.prefault(4096, 1 << 20).unwrap();
    let mut bytes = [0; 4];
    region.read_racing(8192, &mut bytes);
    assert_eq!(&bytes, b"kept");
    assert_eq!(fs::metadata(&path).unwrap().len(), 16 << 20, "reserving never grows the file");
}

#[test]
fn a_second_opener_is_refused_until_the_last_clone_is_gone() {
    let (_folder, path) = folder();
    let region = create(&path, LEN).unwrap();
    let clone = region.clone();
    drop(region);
    let error = open(&path).unwrap_err();
    assert!(matches!(&error, MediumError::InUse { path: p, .. } if *p == path), "{error}");
    clone.store(0, 1);
    drop(clone);
    assert_eq!(open(&path).unwrap().load(0), 1);
}

#[test]
fn creating_never_destroys_a_file() {
    let (_folder, path) = folder();
    fs::write(&path, "mine").unwrap();
    assert!(matches!(create(&path, LEN), Err(MediumError::Exists { .. })));
    assert_eq!(fs::read(&path).unwrap(), b"mine");
}

#[test]
fn a_failed_create_leaves_nothing() {
    let (folder, path) = folder();
    let attempts: [(u64, Option<MediumKind>, Durability); 7] = [
        (0, FILE, Durability::Process),
        (4097, FILE, Durability::Process),
        (LEN, FILE, Durability::Always),
        (LEN, FILE, Durability::Interval { ms: 10 }),
        (LEN, Some(MediumKind::Sim), Durability::Process),
        // More than any file system addresses: the length cannot be set.
        (1 << 62, FILE, Durability::Process),
        (LEN, Some(MediumKind::Dax), Durability::Always),
    ];
    for (len, kind, durability) in attempts {
        assert!(Region::create(&path, len, kind, durability).is_err(), "{len} {kind:?} {durability}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{len} {kind:?} {durability}");
    }
}

#[test]
fn refusals_say_what_to_do() {
    let (folder, path) = folder();
    let always = Region::create(&path, LEN, FILE, Durability::Always).unwrap_err();
    assert!(reason(always).contains("use process, or a dax medium"));
    let dax = Region::create(&path, LEN, Some(MediumKind::Dax), Durability::Always).unwrap_err();
    let dax = reason(dax);
    assert!(dax.contains("MAP_SYNC") && dax.contains("medium file"), "{dax}");
    drop(create(&path, LEN).unwrap());
    let dax = Region::open(&path, Some(MediumKind::Dax), Durability::Always).unwrap_err();
    assert!(reason(dax).contains("MAP_SYNC"));
    let null = Region::open("/dev/null", None, Durability::Process).unwrap_err();
    assert!(reason(null).contains("no devdax device"));
    let missing = open(&folder.path().join("absent")).unwrap_err();
    assert!(matches!(missing, MediumError::Io { action: "open", .. }));
    assert!(matches!(open(folder.path()), Err(MediumError::Io { .. })));
    assert!(matches!(create(&folder.path().join("no/pool"), LEN), Err(MediumError::Io { .. })));
}

#[test]
fn files_cut_short_are_mapped_as_far_as_they_go() {
    let (_folder, path) = folder();
    for (len, expected) in [(4096, 4096), (4097, 4096), (20_000, 16_384)] {
        fs::write(&path, vec![7; len]).unwrap();
        let region = open(&path).unwrap();
        assert_eq!(region.len(), expected);
        assert_eq!(region.load(expected - 8), 0x0707_0707_0707_0707);
    }
    for len in [0, 1, 4095] {
        fs::write(&path, vec![7; len]).unwrap();
        assert!(reason(open(&path).unwrap_err()).contains("too short to be a pool"));
        assert_eq!(fs::read(&path).unwrap(), vec![7; len], "not changed");
    }
}

#[test]
fn without_a_kind_the_path_decides() {
    let (_folder, path) = folder();
    let region = Region::create(&path, LEN, None, Durability::Process).unwrap();
    let expected = quipu_medium::probe(path.parent().unwrap()).unwrap();
    assert_eq!(region.kind(), expected.choice);
    assert_eq!(region.statement(), expected.statement);
    assert_eq!(region.flush_kind(), expected.flush);
    assert_eq!(region.statement().process_crash.survives, Survives::Yes);
    // A pool in use can be probed, and probing keeps nobody out.
    let probe = quipu_medium::probe(&path).unwrap();
    assert_eq!((probe.choice, probe.map_sync.is_some()), (expected.choice, true));
}

/// A child that is being started holds a copy of every descriptor for a moment; the lock must not wait for
/// it.
#[test]
fn the_lock_ends_with_the_region_even_while_a_child_has_the_descriptor() {
    use std::os::fd::AsFd;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pool");
    drop(Region::create(&path, 8192, Some(MediumKind::File), Durability::Process).expect("a new file"));
    // The system knows a file by this name that was opened by it.
    let region = Region::open(&path, Some(MediumKind::File), Durability::Process).expect("it is there");
    // As after a fork: another descriptor of the same open file.
    let held: Vec<_> = std::fs::read_dir("/proc/self/fd")
        .expect("a list of descriptors")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
        .filter(|fd| std::fs::read_link(format!("/proc/self/fd/{fd}")).is_ok_and(|target| target == path))
        .map(|fd| {
            // SAFETY: the region holds this descriptor open.
            let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
            fd.as_fd().try_clone_to_owned().expect("a copy")
        })
        .collect();
    assert!(!held.is_empty(), "the region's descriptor was found");
    drop(region);
    Region::open(&path, Some(MediumKind::File), Durability::Process).expect("the lock is gone");
}

/// A forked child would be a second engine on the same bytes.
#[test]
fn a_child_of_this_process_does_not_have_the_mapping() {
    let (_folder, path) = folder();
    drop(create(&path, LEN).unwrap());
    let region = open(&path).unwrap();
    let maps = fs::read_to_string("/proc/self/smaps").unwrap();
    let name = path.to_str().unwrap();
    let mut lines = maps.lines().skip_while(|line| !line.ends_with(name));
    let flags = lines.find(|line| line.starts_with("VmFlags:")).expect("it is mapped");
    assert!(flags.split(' ').any(|flag| flag == "dc"), "{flags}");
    drop(region);
}

/// A process that dies while it makes a pool leaves nothing in the way of the next one.
#[test]
fn a_new_file_has_its_name_when_it_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    let new = || Region::create_unnamed(&path, LEN, FILE, Durability::Process).unwrap();
    drop(new());
    assert_eq!(files(), 0);
    let (first, second) = (new(), new());
    assert!(first.reserve(0, LEN).is_ok() && files() == 0, "this file system makes no file without a name");
    first.store(8, 77);
    first.give_name().unwrap();
    let error = second.give_name().unwrap_err();
    assert!(matches!(error, MediumError::Exists { .. }), "{error}");
    drop((first, second));
    assert_eq!(Region::open(&path, FILE, Durability::Process).unwrap().load(8), 77);
    assert_eq!(files(), 1);
}
