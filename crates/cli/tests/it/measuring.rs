//! Benchmarks, on a small scale.

use crate::rows::*;
use crate::support::*;
use serde_json::Value;

/// The phases of basic operations of a design without order.
const OPERATIONS: [&str; 8] =
    ["insert", "get", "get_in_loop", "get_many", "update", "update_in_loop", "blind_delete", "remove"];

#[test]
fn operations_are_measured_on_every_medium() {
    let (_folder, pool) = folder();
    let path = pool.to_str().unwrap();
    let cases: [(&[&str], &str); 4] = [
        (&["--medium", "dram"], TIMED_OPERATION),
        (&["--medium", "file"], TIMED_OPERATION),
        (&["--medium", "file", "--pool", path, "--threads", "2"], TIMED_OPERATION),
        (&["--medium", "sim"], COUNTED),
    ];
    for (flags, fields) in cases {
        let command = ["bench", "ops", "--records", "2k", "--ops", "500", "--json"].iter().chain(flags);
        let rows = objects(&succeed(command));
        let all = OPERATIONS.iter().filter(|phase| flags[1] != "sim" || !phase.ends_with("_in_loop"));
        assert_eq!(phases(&rows), all.copied().collect::<Vec<_>>());
        for row in rows {
            assert_eq!(names(&row), words(fields), "{flags:?}");
            assert_eq!((&row["design"], &row["medium"]), (&"quipu".into(), &flags[1].into()));
            assert!(row["dram_bytes_per_record"].as_f64().is_none_or(|bytes| bytes > 1.0), "{row}");
        }
    }
    assert!(!pool.exists(), "the benchmark's pool is removed");
}

#[test]
fn keys_are_drawn_from_a_set() {
    let command = "bench ops --design nstore --records 2k --key-size 8 --value-size 8 --keys longlat";
    let rows = objects(&succeed(command.split(' ').chain(["--json"])));
    assert!(rows.iter().any(|row| row["phase"] == "scan"), "{rows:?}");
    assert!(rows.iter().all(|row| row["keys"] == "longlat"), "{rows:?}");
    assert!(text(command.split(' ')).contains("8 + 8 bytes, keys longlat"));
    assert!(fail(["bench", "ops", "--keys", "latlong"], 2).contains("longlat"));
}

#[test]
fn settings_are_measured_and_named() {
    let command =
        "bench ops --design quipu,viper --records 2k --medium sim --set offset-map=pm --set cceh=paper";
    let rows = objects(&succeed(command.split(' ').chain(["--json"])));
    let fences = |design: &str, settings: Option<&str>| {
        let is_insert = |row: &&Value| {
            row["design"] == design && row["phase"] == "insert" && row["settings"].as_str() == settings
        };
        rows.iter().find(is_insert).expect("a row")["fences_per_op"].as_f64().unwrap()
    };
    fences("quipu", None);
    let rest = fences("viper", Some("offset-map=pm cceh=paper")) - 3.0;
    assert!((0.0..0.5).contains(&rest), "the index takes a third fence, and {rest} for all else");
    assert!(text(command.split(' ')).contains("With offset-map=pm.\nWith cceh=paper.\n"));
}

#[test]
fn the_table_says_where_the_pool_was_and_what_that_survives() {
    let text = text(["bench", "ops", "--records", "1k", "--medium", "file"]);
    for part in ["quipu-bench-", "temporary file", "survive a crash of the process: yes", "Mops/s", "insert"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let name = text.split_whitespace().find(|word| word.contains("quipu-bench-")).unwrap();
    assert!(!std::path::Path::new(name.trim_end_matches(',')).exists(), "{name} is left behind");
}

#[test]
fn limits_are_measured_when_asked_for() {
    let rows = objects(&succeed(["bench", "ops", "--records", "1k", "--ops", "500", "--roofline", "--json"]));
    let mut fields = words(TIMED_OPERATION);
    fields.extend(["roofline", "limit_mops", "limit_huge_mops"]);
    fields.sort_unstable();
    assert!(rows.iter().all(|row| names(row) == fields && row["roofline"].as_f64().unwrap() > 0.0));
}

#[test]
fn results_are_drawn_when_asked_for() {
    let (folder, _) = folder();
    let file = folder.path().join("bench.svg");
    let path = file.to_str().unwrap();
    let rows = objects(&succeed(["bench", "ops", "--records", "1k", "--json", "--plot", path]));
    assert_eq!(rows.len(), OPERATIONS.len(), "standard output is as without a picture");
    let picture = std::fs::read_to_string(&file).unwrap();
    for part in ["<svg", "get_many", "1000 records of 16 + 200 bytes", "1 thread, dram", "</svg>"] {
        assert!(picture.contains(part), "{part}: {picture}");
    }
    let text = fail(["bench", "ops", "--medium", "sim", "--plot", path], 2);
    assert!(text.contains("--plot draws times"), "{text}");
}

#[test]
fn workloads_are_named_by_letter_or_file() {
    let (folder, _) = folder();
    let file = folder.path().join("mine.properties");
    std::fs::write(&file, "recordcount=700\noperationcount=900\nreadproportion=1\nupdateproportion=0\n")
        .unwrap();
    let file = file.to_str().unwrap();
    let rows =
        objects(&succeed(["bench", "ycsb", "a", "D", "--records", "1k", "--value-size", "100", "--json"]));
    assert_eq!(phases(&rows), ["load_a", "run_a", "load_d", "run_d"]);
    let mut fields = words(TIMED);
    fields.extend(["disk_read_bytes", "disk_written_bytes"]);
    fields.sort_unstable();
    assert!(rows.iter().all(|row| names(row) == fields && row["ops"] == 1000), "{rows:?}");
    let rows = objects(&succeed(["bench", "ycsb", file, "--json"]));
    assert_eq!(phases(&rows), ["load_mine", "run_mine"]);
    assert_eq!((rows[0]["records"].as_u64(), rows[1]["ops"].as_u64()), (Some(700), Some(900)));
}

#[test]
fn workloads_are_loaded_in_batches_and_run_by_the_clock() {
    let small = ["bench", "ycsb", "a", "--records", "1k", "--seconds", "1", "--design", "quipu,flatstore-ff"];
    let rows = objects(&succeed(small.iter().chain(&["--batch", "50", "--pool-size", "32M", "--json"])));
    assert_eq!(phases(&rows), ["load_a", "run_a"].repeat(2));
    let batches: Vec<_> = rows.iter().map(|row| row["batch"].as_u64()).collect();
    assert_eq!(batches, [Some(50), None].repeat(2));
    for row in rows.iter().filter(|row| row["phase"] == "run_a") {
        let (seconds, ops) = (row["seconds"].as_f64().unwrap(), row["ops"].as_u64().unwrap());
        assert!((1.0..3.0).contains(&seconds) && ops > 1_000, "{row}");
    }
    let text = text(small.iter().chain(&["--batch", "50"]));
    for part in ["puts in batches of 50, 1 s", "disk MiB written"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(fail(["bench", "ycsb", "a", "--seconds", "0"], 2).contains("--seconds"));
}

#[test]
fn workloads_that_cannot_run_are_refused_before_any_does() {
    let text = fail(["bench", "ycsb", "a", "e", "--records", "1k"], 2);
    assert!(text.contains("workload e") && text.contains("ordered"), "{text}");
    let text = fail(["bench", "ycsb", "a", "nowhere.properties"], 2);
    assert!(
        text.contains("nowhere.properties") && text.contains("hint: name a workload by its letter"),
        "{text}"
    );
    assert!(fail(["bench", "ycsb", "a", "--key-size", "8"], 2).contains("--key-size"));
    assert!(fail(["bench", "ycsb"], 2).contains("WORKLOAD"));
    let (folder, _) = folder();
    let file = folder.path().join("words.properties");
    std::fs::write(&file, "recordcount=7\noperationcount=9\nwordkeys=true\n").unwrap();
    let text = fail(["bench", "ycsb", file.to_str().unwrap(), "--key-size", "32"], 2);
    assert!(text.contains("keys are numbers"), "{text}");
}

#[test]
fn a_bench_does_not_touch_a_file_that_exists() {
    let (_folder, pool) = folder();
    std::fs::write(&pool, "mine").unwrap();
    let text = fail(args(["bench", "ops", "--records", "1k", "--medium", "file", "--pool"], &pool, []), 2);
    assert!(text.contains("exists already"), "{text}");
    assert_eq!(std::fs::read(&pool).unwrap(), b"mine");
}
