//! The first command of the README, from any folder and in awkward ones.

use crate::PROGRAM;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Runs the tour from a folder that is not the repository's, with these temporary files.
fn tour(arguments: &[&str], temporary: &Path) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/tour");
    let mut command = Command::new(script);
    command.args(arguments).current_dir("/").env("TMPDIR", temporary).output().unwrap()
}

#[test]
fn a_tour_shows_each_command_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let awkward = folder.path().join("a folder with 'spaces'");
    fs::create_dir(&awkward).unwrap();
    let output = tour(&["--program", PROGRAM, "--records", "1k"], &awkward);
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{shown}");
    for part in [
        "$ quipu create animals.pool --size 64M\nCreated animals.pool: 64 MiB",
        "$ quipu put animals.pool alpaca 'finer wool'\n",
        "$ quipu get animals.pool alpaca\nfiner wool\n",
        "$ quipu scan animals.pool\nalpaca\tfiner wool\nllama\twool\nvisitor\tone hour\n",
        "$ quipu check animals.pool\nanimals.pool is sound: 2 keys",
        "$ quipu bench ycsb a b c d f --medium file --pool bench.pool --records 1k\n",
        "run_f",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(fs::read_dir(&awkward).unwrap().count(), 0, "all that was made is removed");
}

#[test]
fn a_tour_that_fails_says_what_to_do_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("nowhere");
    for (arguments, temporary, told) in [
        (
            &["--program", "/bin/false"][..],
            folder.path(),
            "quipu create animals.pool --size 64M ended with code 1",
        ),
        (&["--program", "/nowhere/quipu"], folder.path(), "leave out --program"),
        (&["--program", PROGRAM], &nowhere, "TMPDIR=/var/tmp scripts/tour"),
        (
            &["--program", PROGRAM, "--records", "no number"],
            folder.path(),
            "--records 'no number' ended with code 2",
        ),
        (&["--slow"], folder.path(), "there is no option --slow"),
    ] {
        let output = tour(arguments, temporary);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
        assert!(error.contains(told) && error.contains("\nhint: "), "{arguments:?}: {error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "all that was made is removed");
    }
}
