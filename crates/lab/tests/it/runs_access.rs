//! Whom the files of levels belong to, and where they may be.

use crate::runs::{Place, TABLE, publish, settings, value};
use crate::runs_files::{finding, folder, names, open, tree};
use quipu_parts::runs::lsm::{Access, LsmForest, LsmSettings};
use quipu_parts::runs::{Forest, LevelsState};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// A process with more rights than the owner of the pool, such as root, must not do to other files what the
/// owner may ask for by a link.
#[test]
fn no_link_below_the_first_folder_is_followed() {
    let (place, elsewhere) = (folder(), tempfile::tempdir().unwrap());
    publish(&*open(&place), &[value(b"a", 1)]);
    let victim = elsewhere.path().join("victim");
    fs::write(&victim, b"its bytes").unwrap();
    set_mode(&victim, 0o644);
    let readers = LsmSettings { read_only: true, ..settings() };
    let both = || {
        let writes = place.forest().open(TABLE).map(drop);
        let reads = LsmForest::open(place.0.path(), readers).and_then(|forest| forest.open(TABLE).map(drop));
        [writes, reads]
    };
    for name in ["tables/99", "v99", ".tmp99"] {
        symlink(&victim, tree(&place).join(name)).unwrap();
        both()
            .into_iter()
            .for_each(|opened| assert!(finding(opened).contains("no link is followed there"), "{name}"));
        fs::remove_file(tree(&place).join(name)).unwrap();
    }
    // Nor is a second name of a file of somebody else.
    fs::hard_link(&victim, tree(&place).join("tables/99")).unwrap();
    both().into_iter().for_each(|opened| opened.expect("sound"));
    // Nor a folder, where nothing is removed.
    for name in ["7", "7/tables"] {
        let (own, moved) = (place.0.path().join(name), elsewhere.path().join("moved"));
        fs::rename(&own, &moved).unwrap();
        set_mode(&moved, 0o755);
        fs::write(moved.join(".tmp1"), b"").unwrap();
        symlink(&moved, &own).unwrap();
        both().into_iter().for_each(|opened| assert!(finding(opened).contains("is not a folder"), "{name}"));
        assert!(mode(&moved) == 0o755 && moved.join(".tmp1").exists(), "{name}");
        fs::remove_file(moved.join(".tmp1")).unwrap();
        fs::remove_file(&own).unwrap();
        fs::rename(&moved, &own).unwrap();
    }
    // Nor where the note is written.
    symlink(&victim, place.0.path().join("pool.new")).unwrap();
    place.forest().note(LevelsState { number: 1, mark: 1 }).unwrap();
    assert_eq!((fs::read(&victim).unwrap(), mode(&victim)), (b"its bytes".to_vec(), 0o644));
    both().into_iter().for_each(|opened| opened.expect("sound"));
}

/// Levels may be put elsewhere by a link, which leads where its owner chose.
#[test]
fn a_link_gives_nobody_the_folder_to_which_it_leads() {
    let place = folder();
    let (levels, link) = (place.0.path().join("levels"), place.0.path().join("link"));
    fs::create_dir(&levels).unwrap();
    set_mode(&levels, 0o755);
    symlink(&levels, &link).unwrap();
    let before = fs::metadata(&levels).unwrap();
    let open = |owner| {
        let access = Access { mode: 0o600, owner: Some(owner) };
        LsmForest::open(&link, LsmSettings { access, ..settings() }).expect("empty")
    };
    open((before.uid() + 1, before.gid() + 1));
    let after = fs::metadata(&levels).unwrap();
    assert_eq!((after.uid(), after.gid(), mode(&levels)), (before.uid(), before.gid(), 0o755));
    let forest = open((before.uid(), before.gid()));
    assert_eq!(mode(&levels), 0o700);
    forest.open(TABLE).expect("made");
    assert!(levels.join("7").is_dir());
}

/// A folder that cannot be made is told before anything needs it.
#[test]
fn a_place_behind_a_link_that_leads_nowhere_is_refused() {
    let place = folder();
    symlink(place.0.path().join("gone"), place.0.path().join("link")).unwrap();
    fs::write(place.0.path().join("file"), b"").unwrap();
    for (name, what) in [("link", "leads to"), ("link/a/b", "leads to"), ("file/a", "is not a folder")] {
        let error = LsmForest::open(&place.0.path().join(name), settings()).map(drop).unwrap_err();
        assert!(error.to_string().contains(what), "{name}: {error}");
    }
}

/// Tells this program that it runs as another user.
const ANOTHER: &str = "QUIPU_TEST_ANOTHER_USER";

/// The pool's owner, and the group that shares it.
const OWNER: (u32, u32) = (61_001, 61_002);

#[test]
fn whoever_shares_a_pool_locks_its_owner_out_of_no_level() {
    if let Some(path) = std::env::var_os(ANOTHER) {
        let access = Access { mode: 0o660, owner: Some(OWNER) };
        let levels = Path::new(&path).join("levels");
        let made = LsmForest::open(&levels, LsmSettings { access, ..settings() }).unwrap().open(TABLE);
        match made {
            Ok(runs) => publish(&*runs, &[value(b"a", 1)]),
            Err(error) => assert!(error.to_string().contains("write as the owner"), "{error}"),
        }
        return;
    }
    let place = folder();
    if chown(place.0.path(), Some(OWNER.0), Some(OWNER.1)).is_err() {
        return println!("skipped: whoever_shares_a_pool_locks_its_owner_out_of_no_level (no root)");
    }
    set_mode(place.0.path(), 0o777);
    let test = concat!(module_path!(), "::whoever_shares_a_pool_locks_its_owner_out_of_no_level");
    let (_, test) = test.split_once("::").expect("the name of this program before the test's");
    // Where users can reach it.
    let program = place.0.path().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let levels = place.0.path().join("levels");
    for (group, is_shared) in [(61_004, false), (OWNER.1, true)] {
        let mut own = Command::new(&program);
        own.args(["--exact", test]).env(ANOTHER, place.0.path()).uid(61_003).gid(group);
        let output = own.output().unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{output:?}");
        assert_eq!(levels.join("7").exists(), is_shared, "nothing has a name that the owner cannot use");
        if !is_shared {
            assert!(!levels.join("pool").exists());
            fs::remove_dir_all(&levels).unwrap();
        }
    }
    let tree = levels.join("7");
    let folders = [&levels, &tree, &tree.join("tables")].map(|path| (path.clone(), 0o770));
    let files = names(tree.join("tables")).into_iter().map(|name| tree.join("tables").join(name));
    let files = files.chain([levels.join("pool"), tree.join("current")]).map(|path| (path, 0o660));
    for (path, expected) in folders.into_iter().chain(files) {
        let group = fs::metadata(&path).unwrap().gid();
        assert_eq!((group, mode(&path)), (OWNER.1, expected), "{}", path.display());
    }
}
