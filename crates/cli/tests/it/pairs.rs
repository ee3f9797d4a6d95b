//! A pool and its levels, which belong together: by their time, their names and their modes.

use super::support::{args, fail, folder, quipu, quipu_with_input, succeed, text};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// More than the pool holds, so that levels are there, however late the thread comes that dumps.
const KEYS: usize = 12_000;

fn create(pool: &Path) {
    succeed(args(["create"], pool, ["--size", "2M", "--design", "xp", "--zone-size", "16K"]));
}

fn import(pool: &Path, keys: std::ops::Range<usize>, mark: char) {
    let line = |number: usize| format!("key {number:05}\t{mark}{}\n", "x".repeat(200));
    let lines: String = keys.map(line).collect();
    let output = quipu_with_input(args(["import"], pool, ["-", "--form", "tsv"]), lines.as_bytes());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

fn runs(pool: &Path) -> PathBuf {
    PathBuf::from(format!("{}.runs", pool.display()))
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if path.is_dir() { copy_all(&path, &to) } else { _ = fs::copy(path, to).unwrap() }
    }
}

/// A name beside a folder that nobody has.
fn folder_beside(folder: &Path) -> PathBuf {
    let mut names = (0..).map(|number| folder.with_extension(format!("aside{number}")));
    names.find(|path| !path.exists()).unwrap()
}

/// Puts other levels in place of those of a pool. Returns where they are then.
fn exchange(pool: &Path, levels: &Path) -> PathBuf {
    let aside = folder_beside(levels);
    fs::rename(runs(pool), &aside).unwrap();
    fs::rename(levels, runs(pool)).unwrap();
    aside
}

/// All commands must refuse a pool, and so must one that would write.
fn refused(pool: &Path, why: &str) {
    for command in [
        args(["check"], pool, []),
        args(["get"], pool, ["key 00001"]),
        args(["scan"], pool, []),
        args(["put"], pool, ["key", "value"]),
        args(["compact"], pool, []),
    ] {
        let output = quipu(&command);
        let told = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(output.status.code() == Some(1) && told.contains(why), "{command:?}: {told}");
    }
}

#[test]
fn levels_of_another_time_are_refused() {
    let (folder, pool) = folder();
    create(&pool);
    import(&pool, 0..KEYS, 'A');
    let (old_levels, old_pool) = (folder.path().join("old.runs"), folder.path().join("old.pool"));
    copy_all(&runs(&pool), &old_levels);
    fs::copy(&pool, &old_pool).unwrap();
    import(&pool, 0..KEYS, 'B');
    // Older levels.
    let levels = exchange(&pool, &old_levels);
    refused(&pool, "older than the pool");
    let old_levels = exchange(&pool, &levels);
    assert!(text(args(["check"], &pool, [])).contains("sound"));
    // An older pool, also after a compaction that has dropped all that was newer.
    for number in 0..40 {
        succeed(args(["del"], &pool, [&*format!("key {number:05}")]));
    }
    succeed(args(["compact"], &pool, []));
    let newer = folder.path().join("newer.pool");
    fs::rename(&pool, &newer).unwrap();
    fs::copy(&old_pool, &pool).unwrap();
    refused(&pool, "newer than the pool");
    // The older pool and the older levels belong together, and go on. The pool of the other branch is as far
    // then.
    let levels = exchange(&pool, &old_levels);
    assert!(text(args(["get"], &pool, ["key 00001"])).starts_with('A'));
    let state = |levels: &Path| {
        let note = fs::read_to_string(levels.join("pool")).unwrap();
        u64::from_str_radix(note.lines().nth(2).unwrap(), 16).unwrap()
    };
    while state(&runs(&pool)) < state(&levels) {
        succeed(args(["put"], &pool, ["key", "value"]));
        succeed(args(["compact"], &pool, []));
    }
    if state(&runs(&pool)) == state(&levels) {
        exchange(&pool, &levels);
        refused(&pool, "another copy");
    }
}

/// A copy that was made file by file during a dump may have a tree of before it, and the note of behind it.
#[test]
fn levels_that_were_copied_while_they_changed_are_refused() {
    let (folder, pool) = folder();
    create(&pool);
    import(&pool, 0..KEYS, 'A');
    let is_tree = |path: &PathBuf| path.is_dir();
    let tree = fs::read_dir(runs(&pool)).unwrap().map(|entry| entry.unwrap().path()).find(is_tree).unwrap();
    let [torn, whole] = ["torn", "whole"].map(|name| folder.path().join(name));
    copy_all(&tree, &torn);
    import(&pool, 0..KEYS, 'B');
    fs::rename(&tree, &whole).unwrap();
    fs::rename(&torn, &tree).unwrap();
    refused(&pool, "copied while it changed");
    fs::rename(&tree, &torn).unwrap();
    fs::rename(&whole, &tree).unwrap();
    assert!(text(args(["check"], &pool, [])).contains("sound"));
}

#[test]
fn a_pool_that_a_link_leads_to_has_its_levels_beside_itself() {
    let (folder, pool) = folder();
    create(&pool);
    let elsewhere = folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let link = elsewhere.join("link");
    symlink(&pool, &link).unwrap();
    import(&link, 0..KEYS, 'A');
    assert!(runs(&pool).is_dir() && !runs(&link).exists());
    assert_eq!(succeed(args(["get"], &pool, ["key 00001"])), succeed(args(["get"], &link, ["key 00001"])));
}

/// The modes of all files and folders of levels.
fn modes(folder: &Path) -> Vec<(bool, u32)> {
    let mut modes = vec![(true, fs::metadata(folder).unwrap().permissions().mode() & 0o777)];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => modes.extend(self::modes(&path)),
            false => modes.push((false, fs::metadata(path).unwrap().permissions().mode() & 0o777)),
        }
    }
    modes
}

#[test]
fn levels_have_the_mode_of_the_pool() {
    let (_folder, pool) = folder();
    have_the_mode_of(&pool);
    // A file in memory is a file of somebody, too.
    match tempfile::tempdir_in("/dev/shm") {
        Ok(memory) => have_the_mode_of(&memory.path().join("pool")),
        Err(_) => println!("skipped: levels_have_the_mode_of_the_pool on tmpfs (no /dev/shm)"),
    }
}

fn have_the_mode_of(pool: &Path) {
    create(pool);
    import(pool, 0..KEYS, 'A');
    for (mode, of_folder) in [(0o600, 0o700), (0o640, 0o750), (0o644, 0o755), (0o600, 0o700)] {
        fs::set_permissions(pool, Permissions::from_mode(mode)).unwrap();
        import(pool, 0..KEYS, 'B');
        succeed(args(["compact"], pool, []));
        let expected = |is_folder| if is_folder { of_folder } else { mode };
        let found = modes(&runs(pool));
        assert!(found.iter().all(|(is_folder, mode)| *mode == expected(*is_folder)), "{mode:o}: {found:?}");
        assert!(found.len() > 6, "{found:?}");
    }
}

/// A reader of another user has no right to change anything, and must not need it: also after a kill, which
/// leaves files that nobody names.
#[test]
fn a_reader_changes_no_file_of_levels() {
    let (_folder, pool) = folder();
    create(&pool);
    import(&pool, 0..KEYS, 'A');
    let tree = runs(&pool).join("0");
    for name in ["tables/999", ".tmp12", "v999"] {
        fs::write(tree.join(name), b"left").unwrap();
    }
    fs::create_dir(runs(&pool).join("77.gone")).unwrap();
    let before = modes(&runs(&pool)).len();
    assert!(text(args(["check"], &pool, [])).contains("sound"));
    assert_eq!(text(args(["export"], &pool, ["-", "--form", "tsv"])).lines().count(), KEYS);
    assert_eq!(modes(&runs(&pool)).len(), before);
    succeed(args(["put"], &pool, ["key", "value"]));
    assert!(!tree.join("tables/999").exists() && !runs(&pool).join("77.gone").exists());
}

#[test]
fn a_link_that_leads_nowhere_is_told_at_creation() {
    let (folder, pool) = folder();
    symlink(folder.path().join("not").join("there"), runs(&pool)).unwrap();
    let told = fail(args(["create"], &pool, ["--size", "2M", "--design", "xp"]), 1);
    assert!(told.contains("leads to") && told.contains("not/there"), "{told}");
    assert!(!pool.exists());
    let further = runs(&pool).join("levels");
    let further = ["--size", "2M", "--design", "xp", "--levels", further.to_str().unwrap()];
    assert!(fail(args(["create"], &pool, further), 1).contains("not/there"));
    assert!(!pool.exists());
    fs::remove_file(runs(&pool)).unwrap();
    create(&pool);
    symlink(folder.path().join("not").join("there"), runs(&pool)).unwrap();
    assert!(fail(args(["get"], &pool, ["key"]), 1).contains("leads to"));
}
