//! Tables of a pool, as people and scripts use them.

use crate::support::*;
use std::fs;
use std::path::{Path, PathBuf};

/// A new pool with tables, and these beside the default one.
fn pool_with<const N: usize>(tables: [&str; N]) -> (tempfile::TempDir, PathBuf) {
    let (folder, pool) = folder();
    succeed(args(["create"], &pool, ["--size", "4M", "--design", "xp"]));
    for table in tables {
        succeed(args(["table", "create"], &pool, [table]));
    }
    (folder, pool)
}

/// Names and records of the tables of a pool.
fn tables(pool: &Path) -> Vec<(String, u64)> {
    let listed = objects(&succeed(args(["table", "list"], pool, ["--json"])));
    let pair = |table: &serde_json::Value| {
        assert_eq!(names(table), words("name records live_bytes bytes"));
        (table["name"].as_str().unwrap().to_owned(), table["records"].as_u64().unwrap())
    };
    listed.iter().map(pair).collect()
}

fn owned(pairs: &[(&str, u64)]) -> Vec<(String, u64)> {
    pairs.iter().map(|(name, records)| ((*name).to_owned(), *records)).collect()
}

#[test]
fn a_table_is_created_filled_and_dropped() {
    let (_folder, pool) = pool_with([]);
    assert_eq!(tables(&pool), owned(&[("default", 0)]));
    let made = &objects(&succeed(args(["table", "create"], &pool, ["herd", "--json"])))[0];
    assert_eq!((names(made), &made["name"]), (words("pool name"), &"herd".into()));
    succeed(args(["table", "create"], &pool, ["high plains"]));
    succeed(args(["put"], &pool, ["llama", "none"]));
    let put = &objects(&succeed(args(["put"], &pool, ["llama", "wool", "--table", "herd", "--json"])))[0];
    assert_eq!(names(put), words("pool table key value_bytes"));
    succeed(args(["put"], &pool, ["alpaca", "finer wool", "--table", "herd"]));
    assert_eq!(succeed(args(["get"], &pool, ["llama"])), b"none");
    assert_eq!(succeed(args(["get"], &pool, ["llama", "--table", "default"])), b"none");
    assert_eq!(succeed(args(["get"], &pool, ["llama", "--table", "herd"])), b"wool");
    fail(args(["get"], &pool, ["llama", "--table", "high plains"]), 3);
    let got = text(args(["get"], &pool, ["llama", "--table", "herd", "--json"]));
    assert_eq!(got, "{\"table\":\"herd\",\"key\":\"llama\",\"value\":\"wool\"}\n");
    succeed(args(["del"], &pool, ["alpaca", "--table", "herd"]));
    fail(args(["del"], &pool, ["alpaca", "--table", "herd"]), 3);
    assert_eq!(tables(&pool), owned(&[("default", 1), ("herd", 1), ("high plains", 0)]));
    let listed = text(args(["table", "list"], &pool, []));
    assert!(listed.contains("\nherd: 1 record, ") && listed.ends_with("0 bytes of zones\n"), "{listed}");

    let told = fail(args(["table", "drop"], &pool, ["herd"]), 2);
    assert!(told.contains("holds 1 record\nhint: add --yes"), "{told}");
    assert_eq!(tables(&pool).len(), 3);
    let dropped = &objects(&succeed(args(["table", "drop"], &pool, ["herd", "--yes", "--json"])))[0];
    assert_eq!((names(dropped), &dropped["records"]), (words("pool name records"), &1.into()));
    succeed(args(["table", "drop"], &pool, ["high plains"]));
    assert_eq!(tables(&pool), owned(&[("default", 1)]));
    assert!(text(args(["check"], &pool, [])).contains("is sound: 1 key, 1 record in 1 segment proved, "));
    // The name is free again, and nothing of the old table is back.
    succeed(args(["table", "create"], &pool, ["herd"]));
    fail(args(["get"], &pool, ["llama", "--table", "herd"]), 3);
}

#[test]
fn wrong_names_are_refused_and_create_nothing() {
    let (folder, pool) = pool_with(["herd"]);
    let long = "x".repeat(129);
    for (name, word) in
        [("herd", "has a table \"herd\" already"), ("", "1 to 128 bytes"), (&long, "not of 129")]
    {
        assert!(fail(args(["table", "create"], &pool, [name]), 2).contains(word));
    }
    let file = folder.path().join("file");
    let wrong = ["--table", "heard"];
    for (before, after) in [
        (vec!["put"], vec!["llama", "wool"]),
        (vec!["get"], vec!["llama"]),
        (vec!["del"], vec!["llama"]),
        (vec!["scan"], vec![]),
        (vec!["export"], vec![file.to_str().unwrap()]),
    ] {
        let command = before.into_iter().chain([pool.to_str().unwrap()]).chain(after).chain(wrong);
        let told = fail(command, 2);
        let hint = "has no table \"heard\"\nhint: `quipu table list POOL` shows those that it has";
        assert!(told.contains(hint) && told.contains("p.pool: "), "{told}");
    }
    assert!(!file.exists());
    assert!(fail(args(["table", "drop"], &pool, ["heard", "--yes"]), 2).contains("no table \"heard\""));
    for more in [&[][..], &["--yes"]] {
        let command = args(["table", "drop"], &pool, ["default"]);
        let told = fail(command.iter().map(String::as_str).chain(more.iter().copied()), 2);
        assert!(told.contains("default table cannot be dropped\nhint: delete its keys"), "{told}");
    }
    let told = fail_in_json(args(["table", "drop"], &pool, ["heard", "--json"]), 2);
    assert!(told["hint"].as_str().unwrap().contains("table list"), "{told}");
    assert_eq!(tables(&pool), owned(&[("default", 0), ("herd", 0)]));
    // A terminal would obey such a name.
    succeed(args(["table", "create"], &pool, ["\u{1b}[2J"]));
    for command in [args(["table", "list"], &pool, []), args(["info"], &pool, [])] {
        let told = text(command);
        assert!(told.contains("\\x1b[2J: 0 records") && !told.contains('\u{1b}'), "{told}");
    }
}

#[test]
fn designs_without_tables_say_so() {
    for design in objects(&succeed(["designs", "--json"])) {
        let (_folder, pool) = folder();
        let name = design["name"].as_str().unwrap();
        succeed(args(["create"], &pool, ["--size", "4M", "--design", name]));
        let info = &objects(&succeed(args(["info"], &pool, ["--json"])))[0];
        let mut limits = design["limits"].as_array().unwrap().iter().filter_map(|limit| limit.as_str());
        assert_eq!(design["tables"] == false, limits.any(|limit| limit.starts_with("no tables")), "{name}");
        if design["tables"] == true {
            assert_eq!(info["tables"][0]["name"], "default", "{name}");
            assert_eq!(tables(&pool), owned(&[("default", 0)]), "{name}");
            continue;
        }
        assert!(info["tables"].is_null(), "{name}");
        for command in [
            args(["table", "create"], &pool, ["herd"]),
            args(["table", "list"], &pool, []),
            args(["table", "drop"], &pool, ["herd"]),
            args(["put"], &pool, ["llama", "wool", "--table", "default"]),
            args(["export"], &pool, ["-", "--table", "default"]),
        ] {
            let told = fail(&command, 2);
            assert!(told.contains("no tables\nhint: `quipu designs` says"), "{name}: {told}");
        }
        let import = args(["import"], &pool, ["-", "--form", "tsv", "--table", "herd"]);
        let output = quipu_with_input(import, b"llama\twool\n");
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{name}: {told}");
        assert!(told.contains("no tables\nhint: ") && told.contains("Nothing was put"), "{name}: {told}");
    }
}

#[test]
fn info_shows_tables_with_their_sizes() {
    let (_folder, pool) = pool_with(["herd"]);
    succeed(args(["put"], &pool, ["llama", "wool", "--table", "herd"]));
    let shown = text(args(["info"], &pool, []));
    assert!(
        shown.contains("\n  tables     default: 0 records, ") && shown.contains(" herd: 1 record, "),
        "{shown}"
    );
    let info = &objects(&succeed(args(["info"], &pool, ["--json"])))[0];
    let listed = objects(&succeed(args(["table", "list"], &pool, ["--json"])));
    assert_eq!(info["tables"].as_array().unwrap(), &listed);
    assert!(listed[1]["bytes"].as_u64() >= listed[1]["live_bytes"].as_u64());
    for number in 0..25 {
        succeed(args(["table", "create"], &pool, [&format!("t{number}")]));
    }
    let shown = text(args(["info"], &pool, []));
    assert!(shown.contains("7 more; `quipu table list ") && !shown.contains("t24"), "{shown}");
}

#[test]
fn ranges_are_deleted_at_once() {
    let (_folder, pool) = pool_with(["log"]);
    for key in ["2025-12", "2026-01", "2026-02", "session/1", "session/2"] {
        succeed(args(["put"], &pool, [key, "x"]));
        succeed(args(["put"], &pool, [key, "x", "--table", "log"]));
    }
    let keys = |table: &str| text(args(["scan"], &pool, ["--table", table])).replace("\tx\n", " ");
    succeed(args(["delete-range"], &pool, ["--to", "2026-01"]));
    assert_eq!(keys("default"), "2026-01 2026-02 session/1 session/2 ");
    succeed(args(["delete-range"], &pool, ["--from", "2026-02", "--to", "3"]));
    let done = &objects(&succeed(args(["delete-range"], &pool, ["--prefix", "session/", "--json"])))[0];
    assert_eq!((names(done), keys("default")), (words("pool"), "2026-01 ".to_owned()));
    assert_eq!(keys("log"), "2025-12 2026-01 2026-02 session/1 session/2 ");
    succeed(args(["delete-range"], &pool, ["--all", "--table", "log"]));
    assert_eq!(keys("log"), "");
    // Nothing is deleted by a slip.
    fail(args(["delete-range"], &pool, []), 2);
    fail(args(["delete-range"], &pool, ["--all", "--from", "a"]), 2);
    assert_eq!(keys("default"), "2026-01 ");
    let (_folder, other) = folder();
    succeed(args(["create"], &other, ["--size", "4M"]));
    let told = fail(args(["delete-range"], &other, ["--all"]), 2);
    assert!(told.contains("no range deletes"), "{told}");
}

#[test]
fn three_tables_go_out_and_come_back() {
    let (folder, pool) = pool_with(["herd", "tab\tname"]);
    succeed(args(["put"], &pool, ["in herd", "1"]));
    succeed(args(["put"], &pool, ["llama", "wool", "--table", "herd"]));
    succeed(args(["put"], &pool, ["session", "open", "--table", "herd", "--for", "1h"]));
    succeed(args(["put"], &pool, ["00ff0a09", "ff", "--hex", "--table", "tab\tname"]));
    let file = folder.path().join("file");
    let file = file.to_str().unwrap();
    let exported = &objects(&succeed(args(["export"], &pool, [file, "--json"])))[0];
    assert_eq!(exported["tables"], serde_json::json!(["default", "herd", "tab\tname"]));
    assert_eq!(exported["records"], 4);
    let whole = fs::read(file).unwrap();
    let first = objects(&whole)[..2].to_vec();
    assert_eq!(first[0]["tables"], exported["tables"]);
    assert_eq!(first[1], serde_json::json!({ "table": "default", "key": "in herd", "value": "1" }));
    assert_eq!(succeed(args(["export"], &pool, ["-"])), whole);

    let other = folder.path().join("other");
    succeed(args(["create"], &other, ["--size", "4M", "--design", "xp"]));
    let imported = &objects(&succeed(args(["import"], &other, [file, "--json"])))[0];
    assert_eq!(imported["created"], serde_json::json!(["herd", "tab\tname"]));
    assert_eq!((&imported["records"], &imported["replaced"]), (&4.into(), &0.into()));
    assert_eq!(succeed(args(["export"], &other, ["-"])), whole);
    let again = text(args(["import"], &other, [file]));
    assert!(again.starts_with("Imported 4 records, 4 of them in place of others, "), "{again}");
    let lines = succeed(args(["export"], &pool, ["-", "--form", "jsonl"]));
    assert_eq!(lines, whole, "the default");
    assert!(objects(&lines)[1..5].iter().all(|record| record["table"].is_string()));
    let third = folder.path().join("third");
    succeed(args(["create"], &third, ["--size", "4M", "--design", "xp"]));
    let output = quipu_with_input(args(["import"], &third, ["-", "--form", "jsonl"]), &lines);
    assert!(String::from_utf8(output.stdout).unwrap().contains(" Created 2 tables."));
    assert_eq!(succeed(args(["export"], &third, ["-"])), whole);

    let one = succeed(args(["export"], &pool, ["-", "--table", "herd"]));
    let told = objects(&one);
    assert_eq!(told[0]["tables"], serde_json::json!(["herd"]));
    assert_eq!((&told[1]["key"], &told[1]["table"]), (&"llama".into(), &"herd".into()));
    assert_eq!((&told[2]["key"], told[2]["expires"].is_u64()), (&"session".into(), true));
    let output = quipu_with_input(args(["import"], &other, ["-", "--table", "tab\tname"]), &one);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(2));
    assert!(told.contains("no table \"tab\\tname\", only table \"herd\"\nhint: choose another"), "{told}");
    let told = fail(args(["export"], &pool, ["-", "--form", "tsv"]), 2);
    assert!(
        told.contains("form tsv has no place") && told.contains("\nhint: choose one with --table"),
        "{told}"
    );
}

#[test]
fn a_pool_without_tables_takes_the_default_table_or_one_that_is_chosen() {
    let (folder, from) = pool_with(["herd"]);
    succeed(args(["put"], &from, ["knot", "figure-eight"]));
    succeed(args(["put"], &from, ["llama", "wool", "--table", "herd"]));
    let all = succeed(args(["export"], &from, ["-"]));
    let default = succeed(args(["export"], &from, ["-", "--table", "default"]));
    assert!(default.starts_with(b"{\"quipu_export\":1}\n{\"key\":\"knot\","));
    let pool = folder.path().join("plain");
    succeed(args(["create"], &pool, ["--size", "4M"]));
    let before = fs::read(&pool).unwrap();
    let output = quipu_with_input(args(["import"], &pool, ["-"]), &all);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(
        told.contains("the tables \"default\" and \"herd\", and the design quipu has no tables"),
        "{told}"
    );
    assert!(told.contains("--table, or import it into a pool of design xp. Nothing was put"), "{told}");
    assert!(fs::read(&pool).unwrap().len() == before.len());
    assert_eq!(objects(&succeed(args(["info"], &pool, ["--json"])))[0]["records"], 0);

    assert!(quipu_with_input(args(["import"], &pool, ["-"]), &default).status.success());
    assert_eq!(succeed(args(["export"], &pool, ["-"])), default);
    let output = quipu_with_input(args(["import"], &pool, ["-", "--table", "herd"]), &all);
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(
        told.starts_with("Imported 1 record, ") && told.contains(" Passed over 1 record of other"),
        "{told}"
    );
    assert_eq!(succeed(args(["get"], &pool, ["llama"])), b"wool");

    // And back, from a file that names no table, into a new one.
    let file = succeed(args(["export"], &pool, ["-"]));
    assert!(quipu_with_input(args(["import"], &from, ["-", "--table", "both"]), &file).status.success());
    assert_eq!(tables(&from), owned(&[("default", 1), ("herd", 1), ("both", 2)]));
}

/// Every design with an order, in a table of its own where there are tables.
#[test]
fn scans_go_backwards_and_over_prefixes() {
    let ordered =
        objects(&succeed(["designs", "--json"])).into_iter().filter(|design| design["ordered"] == true);
    let mut count = 0;
    for design in ordered {
        count += 1;
        let (_folder, pool) = folder();
        succeed(args(["create"], &pool, ["--size", "4M", "--design", design["name"].as_str().unwrap()]));
        let table: &[&str] = match design["tables"] == true {
            true => &["--table", "jobs"],
            false => &[],
        };
        let run = |words: &[&str], input: &[u8]| {
            let command = [&words[..1], &[pool.to_str().unwrap()], &words[1..], table].concat();
            let output = quipu_with_input(command, input);
            (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), stderr(&output))
        };
        let input = b"job/1\tweave\njob/2\tdye\njob0\t\njoke\t!\nj\t\n\\xff\\xff\tlast\n\\xff\tbut one\n";
        let (code, _, told) = run(&["import", "-", "--form", "tsv"], input);
        assert_eq!(code, Some(0), "{told}");
        let scan = |words: &[&str]| {
            let (code, told, error) = run(&[&["scan"], words].concat(), b"");
            assert_eq!((code, error.as_str()), (Some(0), ""), "{words:?}");
            let keys: Vec<&str> = told.lines().filter_map(|line| line.split('\t').next()).collect();
            keys.join(" ")
        };
        assert_eq!(scan(&[]), "j job/1 job/2 job0 joke \\xff \\xff\\xff", "{design}");
        assert_eq!(scan(&["--reverse"]), "\\xff\\xff \\xff joke job0 job/2 job/1 j");
        assert_eq!(scan(&["--reverse", "--limit", "2"]), "\\xff\\xff \\xff");
        assert_eq!(scan(&["--reverse", "--from", "job/2", "--to", "joke"]), "job0 job/2");
        assert_eq!(scan(&["--prefix", "job/"]), "job/1 job/2");
        assert_eq!(scan(&["--prefix", "job/", "--reverse", "--limit", "1"]), "job/2");
        assert_eq!(scan(&["--prefix", "job/3"]), "");
        assert_eq!(scan(&["--prefix", "", "--limit", "1"]), "j");
        assert_eq!(scan(&["--prefix", "ff", "--hex", "--reverse"]), "\\xff\\xff \\xff");
        assert_eq!(scan(&["--from", "z", "--to", "a"]), "", "bounds that have nothing between them");
        assert_eq!(scan(&["--from", "z", "--to", "a", "--reverse"]), "");
        let (code, _, told) = run(&["scan", "--prefix", "j", "--from", "a"], b"");
        assert!(code == Some(2) && told.contains("--prefix") && told.contains("--from"), "{told}");
        let (code, _, told) = run(&["scan", "--prefix", "j", "--hex"], b"");
        assert!(code == Some(2) && told.contains("the prefix j is not hexadecimal"), "{told}");
    }
    assert!(count >= 3);
}

#[test]
fn a_damaged_pool_with_tables_is_told_and_salvaged() {
    let (folder, pool) = pool_with(["herd"]);
    succeed(args(["put"], &pool, ["llama", "wool of the herd", "--table", "herd"]));
    succeed(args(["put"], &pool, ["vicuna", "finest wool", "--table", "herd"]));
    let mut bytes = fs::read(&pool).unwrap();
    let at = bytes.windows(16).position(|window| window == b"wool of the herd").unwrap();
    bytes[at] ^= 1;
    fs::write(&pool, &bytes).unwrap();
    let output = quipu(args(["check"], &pool, []));
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("p.pool is damaged in ") && told.contains("--salvage NEWPOOL"), "{told}");
    let into = folder.path().join("into");
    let output = quipu(args(["check"], &pool, ["--salvage", into.to_str().unwrap()]));
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("lost: the latest record of llama; nothing of it is left"), "{told}");
    assert!(told.contains("Copied 1 key from "), "{told}");
    assert!(fs::read(&pool).unwrap() == bytes);
    assert_eq!(text(args(["get"], &into, ["vicuna", "--table", "herd"])), "finest wool");
    fail(args(["get"], &into, ["llama", "--table", "herd"]), 3);
}
