//! The refusals of the program, their words, and that they leave everything as it was.

use crate::support::*;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Every command that opens a pool.
fn openers(pool: &Path) -> Vec<Vec<String>> {
    vec![
        args(["put"], pool, ["key", "value"]),
        args(["get"], pool, ["key"]),
        args(["del"], pool, ["key"]),
        args(["import"], pool, ["-"]),
        args(["export"], pool, ["-"]),
        args(["scan"], pool, []),
        args(["table", "create"], pool, ["herd"]),
        args(["table", "list"], pool, []),
        args(["table", "drop"], pool, ["herd", "--yes"]),
        args(["info"], pool, []),
        args(["check"], pool, []),
    ]
}

#[test]
fn a_pool_in_use_is_refused_by_all() {
    let (_folder, pool) = pool();
    let store = quipu::Store::open(&pool, &quipu::Options::default()).unwrap();
    for command in openers(&pool) {
        let text = fail(&command, 1);
        assert!(text.contains("is in use") && text.contains("\nhint: close it there first"), "{text}");
    }
    drop(store);
    succeed_once_free(&args(["put"], &pool, ["key", "value"]));
}

#[test]
fn a_foreign_file_is_no_pool_and_stays_as_it_is() {
    let (_folder, path) = folder();
    let foreign: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
    for bytes in [&foreign[..], b"short", b"", &[0; 8192]] {
        fs::write(&path, bytes).unwrap();
        for command in openers(&path) {
            fail(&command, 2);
            assert_eq!(fs::read(&path).unwrap(), bytes, "{command:?} changed the file");
        }
    }
    assert!(fail(args(["create"], &path, ["--size", "4M"]), 2).contains("exists already"));
    assert_eq!(fs::read(&path).unwrap(), [0; 8192]);
}

#[test]
fn a_file_that_is_not_there_is_no_pool() {
    let (folder, path) = folder();
    for command in openers(&path) {
        assert!(fail(&command, 2).contains("p.pool"));
    }
    assert!(!path.exists());
    fail(args(["info"], folder.path(), []), 2);
    fail(args(["probe"], &path, []), 2);
}

#[test]
fn a_truncated_pool_is_refused_and_stays_as_it_is() {
    let (_folder, pool) = pool();
    succeed(args(["put"], &pool, ["key", "value"]));
    fs::OpenOptions::new().write(true).open(&pool).unwrap().set_len(1 << 20).unwrap();
    let before = fs::read(&pool).unwrap();
    for command in openers(&pool) {
        let output = quipu(&command);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{output:?}");
        let said = stderr(&output) + std::str::from_utf8(&output.stdout).unwrap();
        assert!(said.contains("4194304") && said.contains("1048576"), "{said}");
        assert!(fs::read(&pool).unwrap() == before, "{command:?} changed the file");
    }
}

#[test]
fn damage_is_found_placed_and_left_alone() {
    let (_folder, pool) = pool();
    succeed(args(["put"], &pool, ["key", &"knot".repeat(100)]));
    let bytes = fs::read(&pool).unwrap();
    let at = bytes.windows(8).position(|window| window == b"knotknot").unwrap();
    fs::OpenOptions::new().write(true).open(&pool).unwrap().write_all_at(b"K", at as u64).unwrap();
    let before = fs::read(&pool).unwrap();

    let output = quipu(args(["check"], &pool, ["--json"]));
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(1), ""));
    let check = &objects(&output.stdout)[0];
    assert_eq!(check["sound"], false);
    let place = &check["damage"][0];
    let (offset, len) = (place["offset"].as_u64().unwrap(), place["len"].as_u64().unwrap());
    assert!((offset..offset + len).contains(&(at as u64)), "byte {at} is not in {place}");
    let output = quipu(args(["check"], &pool, []));
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stdout).unwrap().contains("is damaged in 1 place."));
    assert!(fail(args(["get"], &pool, ["key"]), 1).contains("\nhint: restore"));
    assert!(fs::read(&pool).unwrap() == before);
}

#[test]
fn what_proves_itself_is_salvaged() {
    let (folder, pool) = pool();
    for key in ["alpaca", "knot", "llama"] {
        succeed(args(["put"], &pool, [key, &key.repeat(100)]));
    }
    let bytes = fs::read(&pool).unwrap();
    let at = bytes.windows(8).position(|window| window == b"knotknot").unwrap();
    fs::OpenOptions::new().write(true).open(&pool).unwrap().write_all_at(b"K", at as u64 + 8).unwrap();
    let before = fs::read(&pool).unwrap();
    let into = folder.path().join("rescued");
    let output = quipu(args(["check"], &pool, ["--json", "--salvage", into.to_str().unwrap()]));
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(1), ""));
    let report = &objects(&output.stdout)[0];
    assert_eq!((report["keys"].as_u64(), report["lost_keys"][0]["key"].as_str()), (Some(2), Some("knot")));
    assert!(fs::read(&pool).unwrap() == before);
    assert!(text(args(["get"], &into, ["llama"])).starts_with(&"llama".repeat(100)));
    assert!(fail(args(["check"], &pool, ["--salvage", into.to_str().unwrap()]), 2).contains("exists"));
    let output = quipu(args(["check"], &into, ["--salvage", folder.path().join("copy").to_str().unwrap()]));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn what_cannot_be_read_names_the_flag() {
    let (_folder, path) = folder();
    let cases: [(&[&str], &str); 8] = [
        (&["create", "P", "--size", "4GB"], "--size"),
        (&["create", "P"], "--size"),
        (&["create", "P", "--size", "4M", "--zone-size", "big"], "--zone-size"),
        (&["create", "P", "--size", "4M", "--medium", "sim"], "--medium"),
        (&["create", "P", "--size", "4M", "--durability", "never"], "--durability"),
        (&["bench", "ops", "--records", "0"], "--records"),
        (&["bench", "ops", "--key-size", "1", "--records", "10"], "--key-size"),
        (&["bench", "ops", "--medium", "dax"], "--pool"),
    ];
    for (command, flag) in cases {
        let command = command.iter().map(|word| if *word == "P" { path.to_str().unwrap() } else { word });
        let text = fail(command, 2);
        assert!(text.contains(flag), "{flag}: {text}");
    }
    assert!(!path.exists());
    fail(args(["create"], &path, ["--size", "5000"]), 2);
    fail(args(["create"], &path, ["--size", "4M", "--zone-size", "1000"]), 2);
    assert!(!path.exists(), "a pool that could not be made leaves no file");
}

#[test]
fn an_unknown_design_is_named() {
    let (_folder, path) = folder();
    for command in [
        args(["create"], &path, ["--size", "4M", "--design", "abacus"]),
        ["bench", "ops", "--design", "quipu,abacus"].map(str::to_owned).to_vec(),
    ] {
        let text = fail(command, 2);
        assert!(text.contains("abacus") && text.contains("quipu"), "{text}");
    }
}

#[test]
fn too_large_a_value_says_how_large_it_may_be() {
    let (_folder, pool) = pool();
    let limit = objects(&succeed(args(["info"], &pool, ["--json"])))[0]["longest_value"].as_u64().unwrap();
    let value = vec![b'x'; limit as usize + 1];
    let output = quipu_with_input(args(["put"], &pool, ["key", "-"]), &value);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains(&limit.to_string()), "{output:?}");
    let output = quipu_with_input(args(["put"], &pool, ["key", "-"]), &value[1..]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn a_setting_that_there_is_not_is_told_with_those_that_there_are() {
    let (_folder, pool) = folder();
    let create = |design, set| {
        let text = fail(args(["create"], &pool, ["--size", "4M", "--design", design, "--set", set]), 2);
        assert!(!pool.exists(), "no pool is left behind");
        text
    };
    assert!(create("viper", "pages=4").contains("pages-per-block"));
    assert!(create("viper", "page-size=5000").contains("a multiple of 4096"));
    assert!(create("viper", "offset-map").contains("NAME=VALUE"));
    assert!(create("quipu", "offset-map=pm").contains("design viper"));
    assert!(create("quipu", "late=off").contains("a pool does not store this setting"));
    // A page that no block has room for.
    assert!(create("viper", "page-size=1048576").contains("512 KiB"));
    let text = fail(["bench", "ops", "--design", "quipu", "--set", "offset-map=pm"], 2);
    assert!(text.contains("--set offset-map=pm"), "{text}");
}
