//! Pools whose data are larger than themselves: the rest is in files, beside the pool or in a named folder.

use super::support::{args, fail, folder, objects, quipu, quipu_with_input, succeed, text};
use std::fs;
use std::path::Path;

const RECORDS: usize = 30_000;

/// More lines than a pool of 16 MiB has room for.
fn lines() -> Vec<u8> {
    let line = |number: usize| format!("key {number:05}\t{}{number}\n", "wool ".repeat(200));
    (0..RECORDS).flat_map(|number| line(number).into_bytes()).collect()
}

/// The words of a command on a pool, with those that name its levels.
fn line(command: &str, pool: &Path, own: &[&str], levels: &[&str]) -> Vec<String> {
    let pool = [command, pool.to_str().unwrap()];
    pool.iter().chain(own).chain(levels).map(|word| word.to_string()).collect()
}

fn fill(pool: &Path, levels: &[&str]) {
    succeed(line("create", pool, &["--size", "16M", "--design", "xp"], levels));
    let output = quipu_with_input(line("import", pool, &["-", "--form", "tsv"], levels), &lines());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    // All keys are new, and nobody counts those of levels.
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(!told.contains("in place of others"), "{told}");
}

#[test]
fn data_for_which_a_pool_has_no_room_are_beside_it() {
    let (folder, pool) = folder();
    fill(&pool, &[]);
    let runs = pool.with_extension("pool.runs");
    assert!(runs.is_dir(), "{runs:?}");
    assert!(text(args(["get"], &pool, ["key 00007"])).ends_with("wool 7"));
    assert_eq!(text(args(["scan"], &pool, ["--prefix", "key 000"])).lines().count(), 100);
    let info = objects(&succeed(args(["info"], &pool, ["--json"]))).remove(0);
    let levels = &info["levels"];
    assert_eq!(levels["folder"].as_str(), runs.to_str());
    assert!(levels["files"].as_u64() > Some(0) && levels["bytes"].as_u64() > Some(8 << 20), "{levels}");
    let told = text(args(["info"], &pool, []));
    assert!(
        told.contains("in the pool, and those on levels") && told.contains("of DRAM; compaction"),
        "{told}"
    );
    assert!(text(args(["check"], &pool, [])).contains("sound"));
    // A link of that name saves naming the folder.
    let elsewhere = folder.path().join("elsewhere");
    fs::rename(&runs, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &runs).unwrap();
    succeed(args(["put"], &pool, ["key 00007", "combed"]));
    assert_eq!(text(args(["get"], &pool, ["key 00007"])), "combed");
    assert_eq!(text(args(["export"], &pool, ["-", "--form", "tsv"])).lines().count(), RECORDS);
}

#[test]
fn a_folder_of_levels_is_named_to_each_command() {
    let (folder, pool) = folder();
    let elsewhere = folder.path().join("elsewhere");
    let levels = ["--levels", elsewhere.to_str().unwrap()];
    fill(&pool, &levels);
    assert!(elsewhere.is_dir() && !pool.with_extension("pool.runs").exists());
    let with = |command: &str, own: &[&str]| line(command, &pool, own, &levels);
    assert!(text(with("get", &["key 00007"])).ends_with("wool 7"));
    succeed(with("put", &["key 00007", "combed"]));
    succeed(with("del", &["key 00008"]));
    succeed(with("delete-range", &["--prefix", "key 0001"]));
    assert_eq!(text(with("scan", &["--to", "key 00020"])).lines().count(), 9);
    succeed(with("compact", &[]));
    succeed(with("sync", &[]));
    assert!(text(with("check", &[])).contains("sound"));
    assert!(text(with("info", &[])).contains(" in the pool, and those on levels"));
    let into = folder.path().join("into");
    assert_eq!(text(with("export", &["-", "--form", "tsv"])).lines().count(), RECORDS - 11);
    // Without them, nothing is found to be absent.
    assert!(fail(args(["get"], &pool, ["key 00007"]), 1).contains("--levels"));
    assert!(fail(args(["put"], &pool, ["key 00007", "lost"]), 1).contains("--levels"));
    let output = quipu(args(["check"], &pool, ["--salvage", into.to_str().unwrap()]));
    assert_eq!(output.status.code(), Some(1), "memory alone: {output:?}");
    fs::remove_file(&into).unwrap();
    succeed(with("check", &["--salvage", into.to_str().unwrap()]));
    assert_eq!(text(args(["get"], &into, ["key 00007"])), "combed");
    assert_eq!(text(args(["export"], &into, ["-", "--form", "tsv"])).lines().count(), RECORDS - 11);
}

#[test]
fn info_says_where_levels_would_be() {
    let (_folder, pool) = folder();
    succeed(args(["create"], &pool, ["--size", "16M", "--design", "xp"]));
    let told = text(args(["info"], &pool, []));
    assert!(
        told.contains("none yet; ") && told.contains(".runs will have them when the pool is full"),
        "{told}"
    );
    let (_folder, pool) = folder();
    succeed(args(["create"], &pool, ["--size", "16M"]));
    assert!(objects(&succeed(args(["info"], &pool, ["--json"])))[0]["levels"].is_null());
}
