//! Commands that are killed leave nothing that is taken for a whole, or that stands in the way of the next.

use crate::support::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A process that is not there any more.
fn dead() -> u32 {
    let mut child = Command::new(env!("CARGO_BIN_EXE_quipu")).arg("--version").stdout(Stdio::null()).spawn();
    let child = child.as_mut().unwrap();
    child.wait().unwrap();
    child.id()
}

#[test]
fn an_export_that_is_killed_leaves_no_file_and_the_next_one_succeeds() {
    let (folder, pool) = folder();
    succeed(args(["create"], &pool, ["--size", "64M"]));
    let lines: String = (0..60_000).map(|n| format!("key {n:06}\t{}\n", "v".repeat(300))).collect();
    assert!(
        quipu_with_input(args(["import"], &pool, ["-", "--form", "tsv"]), lines.as_bytes()).status.success()
    );
    let file = folder.path().join("file");
    let export = args(["export"], &pool, [file.to_str().unwrap()]);
    let begun = Instant::now();
    // One that ends before it is killed is tried again.
    loop {
        let mut child =
            Command::new(env!("CARGO_BIN_EXE_quipu")).args(&export).stdout(Stdio::null()).spawn().unwrap();
        let is_partial = |name: &String| name.starts_with(".file.partial-");
        while child.try_wait().unwrap().is_none() && !names_in(folder.path()).iter().any(is_partial) {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if !file.exists() {
            assert!(names_in(folder.path()).iter().any(is_partial));
            break;
        }
        fs::remove_file(&file).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(8), "no export was killed in the midst of it");
    }
    succeed_once_free(&export);
    assert_eq!(names_in(folder.path()), ["file", "p.pool"]);
    assert_eq!(fs::read(&file).unwrap().iter().filter(|byte| **byte == b'\n').count(), 60_002);
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "as private as the pool");
}

#[test]
fn an_export_that_runs_is_not_disturbed_and_a_foreign_name_is_kept() {
    let (folder, pool) = pool();
    let kept = [format!(".file.partial-{}", std::process::id()), ".file.partial-x".to_owned()];
    for name in kept.iter().chain(&[format!(".file.partial-{}", dead())]) {
        fs::write(folder.path().join(name), "").unwrap();
    }
    succeed(args(["export"], &pool, [folder.path().join("file").to_str().unwrap()]));
    let mut expected = vec![kept[0].as_str(), kept[1].as_str(), "file", "p.pool"];
    expected.sort_unstable();
    assert_eq!(names_in(folder.path()), expected);
}

#[test]
fn a_salvage_has_its_name_only_when_it_is_whole() {
    let (folder, pool) = pool();
    succeed(args(["put"], &pool, ["llama", "wool"]));
    fs::write(folder.path().join(format!(".rescued.partial-{}", dead())), "half of a pool").unwrap();
    let into = folder.path().join("rescued");
    succeed(args(["check"], &pool, ["--salvage", into.to_str().unwrap()]));
    assert_eq!(names_in(folder.path()), ["p.pool", "rescued"]);
    assert_eq!(succeed(args(["get"], &into, ["llama"])), b"wool");
}

#[test]
fn the_temporary_pool_of_a_benchmark_that_was_killed_is_removed_by_the_next() {
    let (folder, _) = folder();
    let old = folder.path().join(format!(".quipu-bench-{}.pool", dead()));
    fs::write(&old, "1.5 GB").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_quipu"))
        .args(["bench", "ops", "--records", "1k", "--medium", "file"])
        .env("TMPDIR", folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(names_in(folder.path()), [""; 0]);
}
