//! Levels in files: foreign folders, damage, full disks, and changes of names that fail.

use crate::runs::{Folder, Place, Records, TABLE, get, nobody, publish, purge, settings, value, write};
use crate::shared::small_disk::on_small_disk;
use quipu_parts::runs::lsm::{LsmForest, LsmSettings};
use quipu_parts::runs::{Compact, Forest, LevelRecord, NameError, Runs, RunsError};
use std::fs;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub fn folder() -> Folder {
    Folder(tempfile::tempdir().unwrap())
}

pub fn names(folder: impl AsRef<Path>) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

pub fn tree(place: &Folder) -> PathBuf {
    place.0.path().join(TABLE.to_string())
}

fn tables(place: &Folder) -> Vec<String> {
    names(tree(place).join("tables"))
}

pub fn open(place: &Folder) -> Arc<dyn Runs> {
    place.forest().open(TABLE).expect("opened")
}

/// The finding of damage.
pub fn finding<T>(result: Result<T, RunsError>) -> String {
    match result {
        Err(RunsError::Damaged { place, what }) => format!("{place}: {what}"),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("no damage"),
    }
}

#[test]
fn a_folder_that_is_not_the_pools_is_refused_by_name() {
    let place = folder();
    let missing = place.0.path().join("not").join("yet");
    let forest = LsmForest::open(&missing, settings()).expect("no trees");
    assert_eq!((forest.trees().expect("sound"), missing.exists()), (vec![], false));
    drop(forest.open(TABLE).expect("made"));
    assert_eq!(names(&missing), ["7", "pool"]);
    fs::create_dir(missing.join("lost+found")).unwrap();
    fs::create_dir(missing.join("3.gone")).unwrap();
    assert_eq!(LsmForest::open(&missing, settings()).expect("ours").trees().expect("sound"), [TABLE]);
    assert!(!missing.join("3.gone").exists());

    let open = |settings| finding(LsmForest::open(&missing, settings));
    let another = open(LsmSettings { pool: 6, ..settings() });
    assert!(another.contains("another pool") && another.contains("not/yet"), "{another}");
    fs::write(missing.join("holiday.png"), b"").unwrap();
    assert!(open(settings()).contains("`holiday.png` is not a part of levels"));
    fs::remove_file(missing.join("holiday.png")).unwrap();
    fs::write(missing.join("pool"), b"a pool of water").unwrap();
    assert!(open(settings()).contains("the file `pool` is not of levels"));
    fs::remove_file(missing.join("pool")).unwrap();
    assert!(open(settings()).contains("no file `pool` beside the tree `7`"));
    // A crash before the folder has its pool leaves this.
    fs::remove_dir_all(missing.join("7")).unwrap();
    fs::write(missing.join("pool.new"), b"").unwrap();
    let forest = LsmForest::open(&missing, settings()).expect("nobody's");
    drop(forest.open(TABLE).expect("made"));
    assert_eq!(names(&missing), ["7", "lost+found", "pool"]);
}

#[test]
fn a_tree_with_foreign_files_or_without_its_names_is_refused() {
    let place = folder();
    publish(&*open(&place), &[value(b"a", 1)]);
    let reopen = || place.forest().open(TABLE).map(drop);
    fs::write(tree(&place).join(".tmp123"), b"").unwrap();
    reopen().expect("sound");
    assert!(!tree(&place).join(".tmp123").exists());
    fs::create_dir(tree(&place).join("tables/x")).unwrap();
    assert!(finding(reopen()).contains("`tables/x` is not a file of a tree"));
    fs::remove_dir(tree(&place).join("tables/x")).unwrap();
    let file = tree(&place).join("tables").join(&tables(&place)[0]);
    let bytes = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();
    finding(reopen());
    fs::write(&file, bytes).unwrap();
    reopen().expect("sound");
    fs::remove_file(tree(&place).join("current")).unwrap();
    assert!(finding(reopen()).contains("`current` is missing"));
}

#[test]
fn no_files_stay_of_parts_and_runs_that_went() {
    let place = folder();
    let runs = open(&place);
    let part = write(&*runs, &[value(b"a", 1)]);
    assert_eq!(tables(&place).len(), 1);
    runs.discard(part);
    assert!(tables(&place).is_empty());
    runs.publish(vec![]).expect("nothing to do");
    for number in 1..=3 {
        publish(&*runs, &[value(b"a", number), value(b"b", number)]);
    }
    let reader = runs.levels();
    runs.compact(Compact::All, purge(3), &nobody()).expect("compacted");
    assert_eq!(tables(&place).len(), 4, "somebody reads three of them");
    assert_eq!(get(&*reader, b"a", 2).map(|found| found.0.number), Some(2));
    drop(reader);
    assert_eq!(tables(&place).len(), 4, "a reader removes nothing");
    runs.compact(Compact::Due, purge(3), &nobody()).expect("nothing to do");
    assert_eq!(tables(&place).len(), 1);
    drop(runs);
    place.forest().remove(TABLE).expect("removed");
    assert_eq!(names(place.0.path()), ["pool"]);
}

/// Records of a tree that is damaged later, in several files.
fn some_records() -> Vec<LevelRecord> {
    (0..60u64).map(|at| value(format!("key {at:02}").as_bytes(), at + 1)).collect()
}

/// Reads all in all ways; every answer must be right.
fn read_all(place: &Folder) -> Result<(), RunsError> {
    let runs = LsmForest::open(place.0.path(), settings())?.open(TABLE)?;
    let (levels, expected) = (runs.levels(), some_records());
    for record in &expected {
        let mut out = Vec::new();
        let head = levels.get(&record.key, u64::MAX, &mut out)?;
        assert_eq!((head, &out), (Some(record.head), &record.value));
    }
    let scanned: Vec<LevelRecord> = levels.scan(b"", u64::MAX).collect::<Result<_, _>>()?;
    assert!(scanned == expected);
    let back: Vec<LevelRecord> = levels.scan_back(Bound::Unbounded, u64::MAX).collect::<Result<_, _>>()?;
    assert!(back.iter().rev().eq(&expected));
    levels.check(&mut |_, _| ())
}

/// Whether each wrong byte in some of the files is found.
fn find_damage(place: &Folder) {
    read_all(place).expect("sound");
    for file in tables(place).iter().map(|name| tree(place).join("tables").join(name)) {
        let sound = fs::read(&file).unwrap();
        let is_found = || matches!(read_all(place), Err(RunsError::Damaged { .. }));
        for at in (0..sound.len()).step_by(61).chain(sound.len() - 40..sound.len()) {
            let mut bytes = sound.clone();
            bytes[at] ^= 0x10;
            fs::write(&file, bytes).unwrap();
            assert!(is_found(), "byte {at} of {}", file.display());
        }
        for len in [0, 1, sound.len() / 2, sound.len() - 1] {
            fs::write(&file, &sound[..len]).unwrap();
            assert!(is_found(), "cut to {len}: {}", file.display());
        }
        fs::write(&file, sound).unwrap();
    }
    read_all(place).expect("sound again");
}

#[test]
fn a_wrong_byte_is_found() {
    let place = folder();
    let runs = open(&place);
    runs.publish(some_records().chunks(30).map(|part| write(&*runs, part)).collect()).expect("published");
    drop(runs);
    assert_eq!(tables(&place).len(), 2);
    let hook = std::panic::take_hook();
    // The library's assertions at opening become errors.
    std::panic::set_hook(Box::new(|panic| {
        if panic.location().is_some_and(|location| location.file() == file!()) {
            eprintln!("{panic}");
        }
    }));
    let in_two = std::panic::catch_unwind(|| find_damage(&place));
    open(&place).compact(Compact::All, purge(60), &nobody()).expect("compacted");
    let in_one = std::panic::catch_unwind(|| find_damage(&place));
    std::panic::set_hook(hook);
    in_two.and(in_one).expect("each is found");
}

#[test]
fn too_many_runs_are_refused_until_a_compaction() {
    let place = folder();
    let runs = open(&place);
    let records = |number| [value(b"a", number), value(b"z", number)];
    for number in 1..=200 {
        publish(&*runs, &records(number));
    }
    assert_eq!(runs.stats().first_level, 200);
    let refused = runs.publish(vec![write(&*runs, &records(201))]);
    assert!(matches!(&refused, Err(NameError::NotNamed(error)) if error.to_string().contains("200 runs")));
    assert_eq!(tables(&place).len(), 200);
    let merged = runs.compact(Compact::Due, purge(200), &nobody()).expect("compacted");
    assert!(merged.has_worked && merged.read > merged.written && merged.written > 0);
    assert_eq!((runs.stats().first_level, runs.stats().records), (0, 2));
    publish(&*runs, &records(201));
}

#[test]
fn a_change_of_names_that_fails_is_known_to_have_happened_or_not() {
    let place = folder();
    let runs = open(&place);
    publish(&*runs, &[value(b"a", 1)]);
    let version = names(tree(&place)).into_iter().find_map(|name| name.strip_prefix('v')?.parse().ok());
    let version: u64 = version.expect("a version");
    // Nothing can be written in place of this.
    let blocked = tree(&place).join(format!("v{}", version + 1));
    fs::create_dir(&blocked).unwrap();
    let refused = runs.publish(vec![write(&*runs, &[value(b"a", 2)])]);
    assert!(matches!(refused, Err(NameError::NotNamed(_))), "{refused:?}");
    let refused = runs.compact(Compact::All, purge(2), &nobody());
    assert!(matches!(refused, Err(NameError::NotNamed(_))), "{refused:?}");
    assert_eq!(tables(&place).len(), 1, "no files stay");
    fs::remove_dir(&blocked).unwrap();
    publish(&*runs, &[value(b"a", 2)]);
    // Nor is it known here.
    fs::remove_file(tree(&place).join("current")).unwrap();
    fs::create_dir(tree(&place).join("current")).unwrap();
    for number in 3..5 {
        let poisoned = runs.publish(vec![write(&*runs, &[value(b"a", number)])]);
        assert!(matches!(poisoned, Err(NameError::Poisoned(_))), "{poisoned:?}");
    }
    assert!(matches!(runs.compact(Compact::All, purge(4), &nobody()), Err(NameError::Poisoned(_))));
    assert!(matches!(runs.drop_range(b"", b"", 9, &nobody()), Err(NameError::Poisoned(_))));
    assert_eq!(get(&*runs.levels(), b"a", 9).map(|found| found.0.number), Some(2));
}

#[test]
fn readers_find_whole_dumps_while_runs_are_merged() {
    const DUMPS: u64 = 80;
    let place = folder();
    let runs = open(&place);
    let published = AtomicU64::new(0);
    let all = |number| -> Vec<LevelRecord> { (0..40u8).map(|key| value(&[key], number)).collect() };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..=DUMPS {
                publish(&*runs, &all(number));
                published.store(number, Ordering::SeqCst);
            }
        });
        scope.spawn(|| {
            while published.load(Ordering::SeqCst) < DUMPS {
                let visible = published.load(Ordering::SeqCst);
                runs.compact(Compact::Due, purge(visible), &nobody()).expect("compacted");
            }
        });
        scope.spawn(|| {
            while published.load(Ordering::SeqCst) < DUMPS {
                let at_least = published.load(Ordering::SeqCst);
                let levels = runs.levels();
                let newest = get(&*levels, &[0], u64::MAX).map_or(0, |(head, _)| head.number);
                assert!(newest >= at_least);
                let scanned: Result<Vec<_>, _> = levels.scan(b"", u64::MAX).collect();
                assert!(scanned.expect("sound") == if newest == 0 { vec![] } else { all(newest) });
            }
        });
    });
    runs.compact(Compact::All, purge(DUMPS), &nobody()).expect("compacted");
    assert_eq!((runs.stats().records, tables(&place).len() as u64), (40, runs.stats().tables));
}

#[test]
fn a_full_disk_is_told_and_leaves_no_files() {
    on_small_disk("runs_files::a_full_disk_is_told_and_leaves_no_files", "2M", fill);
}

/// The test on a disk of two MiB.
fn fill(disk: &Path) {
    let levels = disk.join("levels");
    let count = || names(levels.join("7").join("tables")).len();
    let forest = LsmForest::open(&levels, settings()).expect("new");
    let runs = forest.open(TABLE).expect("opened");
    // Half zeros, so that the second level would take less.
    let records = |number: u64| -> Vec<LevelRecord> {
        (0..400u64).map(|at| value(format!("key {at:03}").as_bytes(), number * 400 + at)).collect()
    };
    let mut number = 1;
    let full = loop {
        let records = records(number);
        match runs.write(&[], &mut Records(records.iter())) {
            Ok(part) => runs.publish(vec![part]).expect("a little room"),
            Err(error) => break error,
        }
        number += 1;
    };
    assert!(matches!(full, RunsError::Full { .. }), "{full}");
    assert!(full.to_string().contains("levels/7"), "{full}");
    let last = (number - 1) * 400 + 7;
    assert_eq!(count() as u64, number - 1);
    // Not a byte is left for the names of a run, either.
    let filler = disk.join("filler");
    let part = {
        let part = write(&*runs, &[value(b"key 007", number * 400)]);
        let mut file = fs::File::create(&filler).unwrap();
        while std::io::Write::write_all(&mut file, &[1; 4096]).is_ok() {}
        part
    };
    let refused = runs.publish(vec![part]);
    assert!(matches!(refused, Err(NameError::NotNamed(RunsError::Full { .. }))), "{refused:?}");
    let refused = runs.compact(Compact::All, purge(number * 400), &nobody());
    assert!(matches!(refused, Err(NameError::NotNamed(RunsError::Full { .. }))), "{refused:?}");
    assert_eq!(count() as u64, number - 1);
    assert_eq!(get(&*runs.levels(), b"key 007", u64::MAX).map(|found| found.0.number), Some(last));
    // Opening needs no room.
    drop(runs);
    let runs = forest.open(TABLE).expect("opened");
    assert_eq!(get(&*runs.levels(), b"key 007", u64::MAX).map(|found| found.0.number), Some(last));
    fs::remove_file(filler).unwrap();
    runs.compact(Compact::All, purge(number * 400), &nobody()).expect("room again");
    assert_eq!(runs.stats().records, 400);
    publish(&*runs, &records(number));
}

/// The name of the test below, which runs itself in a process of its own: descriptors belong to the process.
const FEW: &str = "runs_files::a_lack_of_descriptors_passes";

#[test]
fn a_lack_of_descriptors_passes() {
    if std::env::var_os("FEW_DESCRIPTORS").is_none() {
        let exe = std::env::current_exe().unwrap();
        let mut own = Command::new("sh");
        own.args(["-c", "ulimit -n 64 && exec \"$0\" \"$@\""]).arg(exe).args(["--exact", FEW]);
        let output = own.env("FEW_DESCRIPTORS", "1").output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && told.contains("1 passed"), "{told}");
        return;
    }
    let place = folder();
    let runs = open(&place);
    publish(&*runs, &[value(b"a", 1)]);
    let (mut number, mut failures) = (1, 0);
    for left in 0..8 {
        number += 1;
        let part = write(&*runs, &[value(b"a", number), value(b"b", number)]);
        let mut all: Vec<fs::File> = std::iter::from_fn(|| fs::File::open("/dev/null").ok()).collect();
        all.truncate(all.len() - left);
        let published = runs.publish(vec![part]);
        let compacted = runs.compact(Compact::All, purge(number), &nobody());
        let written = runs.write(&[], &mut Records([value(b"a", number)].iter()));
        drop(all);
        for error in [published.as_ref().err(), compacted.as_ref().err()].into_iter().flatten() {
            assert!(matches!(error, NameError::NotNamed(RunsError::Device { .. })), "{error:?}");
            failures += 1;
        }
        written.map_or_else(
            |error| assert!(matches!(error, RunsError::Device { .. })),
            |part| runs.discard(part),
        );
        // The next ones go on.
        number += 1;
        publish(&*runs, &[value(b"a", number)]);
        runs.compact(Compact::All, purge(number), &nobody()).expect("compacted");
        assert_eq!(get(&*runs.levels(), b"a", u64::MAX).map(|found| found.0.number), Some(number));
    }
    assert!(failures >= 4, "{failures} calls had too few descriptors");
    drop(runs);
    assert_eq!(get(&*open(&place).levels(), b"a", u64::MAX).map(|found| found.0.number), Some(number));
}
