//! The program does what its page says: libraries that are missing, levels that need an environment, and
//! tables.

mod skip;

use quipu_rivals::engines::{Choice, Kind};
use std::path::Path;
use std::process::{Command, Output};

fn program(folder: &Path, line: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu-rivals"));
    command.args(line).env("TMPDIR", folder).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_whole_comparison_is_one_command() {
    let folder = tempfile::tempdir().unwrap();
    let mut line = vec!["compare", "--records", "400", "--ops", "300", "--synced", "40", "--medium", "file"];
    line.extend(["--engine", "quipu,redb:memory,redb:power"]);
    let output = program(folder.path(), &line);
    let (tables, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{errors}");
    let rows: Vec<&str> = tables.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(rows.len(), 2 * 4, "{tables}");
    for row in &rows {
        let measured = if row.contains("redb:power") { 1 } else { 0 };
        assert_eq!(row.matches("– / –").count(), measured, "only reads of few records are left out: {row}");
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        for figure in cells[2..].iter().flat_map(|cell| cell.split(" / ")).filter(|figure| *figure != "–") {
            assert!(figure.parse::<f64>().unwrap() >= 0.0);
        }
    }
    assert!(rows[0].starts_with("| `quipu` | process crash |"));
    assert!(rows[1].starts_with("| `redb:memory` | nothing |"));
    assert!(rows[2].starts_with("| `redb:power` | power loss |"));
    assert!(rows[3].starts_with("| `quipu`, again |"));
    assert!(tables.contains("40 records and operations"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "every place is removed");

    line.extend(["--threads", "1", "--json"]);
    let output = program(folder.path(), &line);
    for line in text(&output.stdout).lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(row["mops"].as_f64().unwrap() > 0.0);
        assert!(row["setting"].is_string() && row["process_crash"].is_string(), "{row}");
        assert_eq!(row["records"], if row["design"] == "redb:power" { 40 } else { 400 });
    }
    // Only redb is ordered, and scans.
    assert_eq!(text(&output.stdout).lines().count(), 4 * (6 + 4) + 2 * 2);
}

#[test]
fn gets_and_puts_are_mixed_in_ours_at_a_utilization_and_in_others_without() {
    let folder = tempfile::tempdir().unwrap();
    let measure = |engine: &str, records: &str| -> serde_json::Value {
        let line = ["mix", "--engine", engine, "--medium", "file", "--etc", "--records", records, "--json"];
        let output = program(folder.path(), &line);
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_str(&text(&output.stdout)).unwrap()
    };
    let rows = [measure("flatstore-h", "130000"), measure("redb:memory", "500")];
    let of = |row: &serde_json::Value| (row["utilization"].as_u64(), row["segments"].is_u64());
    assert_eq!(rows.each_ref().map(of), [(Some(80), true), (None, false)]);
    for row in rows {
        assert!(row["distribution"] == "etc" && row["put"] == 50, "{row}");
        assert!(row["get_p99_ns"].as_u64() > Some(0) && row["put_p99_ns"].as_u64() > Some(0), "{row}");
    }
}

#[test]
fn a_load_lasts_for_its_time_on_ours_and_on_others() {
    let folder = tempfile::tempdir().unwrap();
    let mut line = vec!["steady", "--engine", "quipu,redb:memory", "--medium", "file", "--records", "500"];
    line.extend(["--seconds", "1", "--zipf", "0.9", "--put", "20", "--json"]);
    let output = program(folder.path(), &line);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let rows: Vec<serde_json::Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.iter().map(|row| &row["design"]).collect::<Vec<_>>(), ["quipu", "redb:memory"]);
    for row in rows {
        assert_eq!((&row["phase"], &row["put"]), (&"steady".into(), &20.into()));
        assert!(row["mops_by_second"].as_array().is_some_and(|by_second| by_second.len() == 1), "{row}");
        assert!(row["get_max_ns"].as_u64() > Some(0) && row["stalls_of_store"].is_u64(), "{row}");
    }
}

#[test]
fn amounts_move_in_engines_with_transactions() {
    let folder = tempfile::tempdir().unwrap();
    let mut line = vec!["transfers", "--medium", "file", "--records", "300", "--threads", "2", "--json"];
    line.extend(["--seconds", "1", "--few", "3", "--engine"]);
    let engines = ["xp", "redb:memory", "fjall-optimistic:process", "sqlite:process"];
    let output = program(folder.path(), &[&line[..], &[&engines.join(",")]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let rows: Vec<serde_json::Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |row: &serde_json::Value| format!("{} {}", row["design"], row["phase"]);
    let expected = engines.iter().flat_map(|engine| {
        ["four_calls", "transaction", "few_accounts"].map(|phase| format!("{engine:?} {phase:?}"))
    });
    assert_eq!(rows.iter().map(of).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    for row in rows.iter().filter(|row| row["phase"] == "few_accounts") {
        assert!(row["tries_per_op"].as_f64() >= Some(1.0) && row["least_share"].is_f64(), "{row}");
    }

    for (more, why) in [
        (["quipu"].as_slice(), "quipu has no transactions"),
        (&["redb:memory,fjall"], "fjall:process has no transactions"),
        (&["redb:memory", "--roofline"], "--roofline"),
    ] {
        let output = program(folder.path(), &[&line[..], more].concat());
        assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), true));
        assert!(text(&output.stderr).contains(why), "{}", text(&output.stderr));
    }
    let help = text(&program(folder.path(), &["transfers", "--help"]).stdout);
    assert!(help.contains("[default: xp,") || help.contains("xp,rocksdb-optimistic:process"), "{help}");
}

#[test]
fn other_indexes_stand_beside_ours() {
    let folder = tempfile::tempdir().unwrap();
    let measure = |line: &[&str]| program(folder.path(), &[&["index", "--records", "2k"][..], line].concat());
    let output = measure(&["--keys", "uniform,osm", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let rows: Vec<serde_json::Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let all = ["insert", "get", "get_many", "scan", "remove", "bulk_load", "loaded_get"];
    let of_one: Vec<(&str, &str)> = ["alex", "masstree", "btree", "congee"]
        .iter()
        .flat_map(|index| all.iter().map(|phase| (*index, *phase)))
        .filter(|(index, phase)| *index != "congee" || !["bulk_load", "loaded_get"].contains(phase))
        .collect();
    let found: Vec<_> =
        rows.iter().map(|row| (row["design"].as_str().unwrap(), row["phase"].as_str().unwrap())).collect();
    assert_eq!(found, of_one.repeat(2));
    for row in rows.iter().filter(|row| row["phase"] == "insert") {
        assert!(row["dram_bytes_per_record"].as_f64() > Some(8.0), "the allocator counts: {row}");
    }
    let table = text(&measure(&["--index", "all", "--keys", "sequential"]).stdout);
    assert!(table.contains("sequential  buckets") && table.contains("sequential  congee"), "{table}");
    let refused = |line: &[&str], why: &str| {
        let output = measure(line);
        assert_eq!((output.status.code(), text(&output.stderr).contains(why)), (Some(2), true));
    };
    refused(&["--threads", "2", "--index", "btree"], "threads must be 1 for btree");
    refused(&["--index", "art"], "choose from alex, ");
}

#[test]
fn papers_are_repeated_beside_others() {
    let folder = tempfile::tempdir().unwrap();
    let mut line = vec!["paper", "mpkv", "--figure", "6", "--engine", "redb:memory", "--medium", "file"];
    line.extend(["--threads", "1", "--records", "1000"]);
    let output = program(folder.path(), &line);
    let said = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(said.contains("Figure 6") && said.contains("What carries over"), "{said}");
    assert_eq!(said.lines().filter(|line| line.contains("run_mix")).count(), 4, "{said}");
    line.extend(["--json", "--rounds", "2"]);
    let designs: Vec<_> = text(&program(folder.path(), &line).stdout)
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|row| row["phase"] == "run_mix" && row["setting"] == "50 % queries" && row["figure"] == "6")
        .map(|row| row["design"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(designs, ["mpkv", "mpkv-baseline", "quipu", "redb:memory"].repeat(2));
    let only_ours = "measures what only";
    for (paper, figure, wrong) in
        [("mpkv", "5.3.8", "has no figure"), ("pacman", "6", only_ours), ("xp", "14", only_ours)]
    {
        let output = program(folder.path(), &["paper", paper, "--figure", figure, "--engine", "redb:memory"]);
        assert_eq!((output.status.code(), text(&output.stderr).contains(wrong)), (Some(2), true));
    }
}

#[test]
fn pools_may_be_elsewhere_and_caches_limited() {
    let (folder, pools) = (tempfile::tempdir().unwrap(), tempfile::tempdir_in("/dev/shm").unwrap());
    let mut line = vec!["paper", "xp", "--figure", "12", "--engine", "fjall", "--medium", "file", "--json"];
    line.extend(["--threads", "1", "--records", "1000", "--cache", "1M", "--pm-dir"]);
    line.push(pools.path().to_str().unwrap());
    let output = program(folder.path(), &line);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let rows: Vec<serde_json::Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |row: &serde_json::Value| format!("{} {}", row["design"], row["medium"]);
    let both = [r#""xp" "dram""#, r#""fjall:process" "file""#].map(|name| [name; 2]).concat();
    assert_eq!(rows.iter().map(of).collect::<Vec<_>>(), both.repeat(4));
    let left = |folder: &Path| std::fs::read_dir(folder).unwrap().count();
    assert_eq!(left(pools.path()), 0, "pools are removed");

    line.pop();
    let output = program(folder.path(), &[&line[..], &["/nowhere"]].concat());
    assert_eq!((output.status.code(), text(&output.stderr).contains("is no folder")), (Some(2), true));
}

#[test]
fn workloads_are_loaded_in_batches_run_by_the_clock_and_scan() {
    let folder = tempfile::tempdir().unwrap();
    let mut line = vec!["ycsb", "e", "--engine", "flatstore-m,fjall", "--medium", "file", "--records", "300"];
    line.extend(["--value-size", "100", "--batch", "50", "--seconds", "1", "--json"]);
    let output = program(folder.path(), &line);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let rows: Vec<serde_json::Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |row: &serde_json::Value| (row["design"].clone(), row["phase"].clone(), row["batch"].as_u64());
    let expected = ["flatstore-m", "fjall:process"]
        .into_iter()
        .flat_map(|design| [(design, "load_e", Some(50)), (design, "run_e", None)]);
    assert!(rows.iter().map(of).eq(expected.map(|(design, phase, batch)| (
        design.into(),
        phase.into(),
        batch
    ))));
    let lasted = |row: &&serde_json::Value| row["seconds"].as_f64().is_some_and(|s| (1.0..3.0).contains(&s));
    assert_eq!(rows.iter().filter(lasted).count(), 2, "{rows:?}");

    let refused = |line: &[&str]| {
        let output = program(folder.path(), line);
        assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), true));
        text(&output.stderr)
    };
    assert!(refused(&["ycsb", "a", "e", "--engine", "redb:memory,quipu"]).contains("quipu keeps no order"));
    assert!(refused(&["ycsb", "g", "--engine", "redb:memory"]).contains("from a to f"));
    let log = ["ycsb", "a", "--wal-dir", "log", "--engine"];
    assert!(refused(&[&log[..], &["redb:memory"]].concat()).contains("not among the engines"));
    let taken = ["ycsb", "a", "--engine", "rocksdb", "--wal-dir", folder.path().to_str().unwrap()];
    assert!(refused(&taken).contains("exists already"));
}

/// Only where one is missing: a library that the system has cannot be hidden from the loader.
#[test]
fn a_missing_library_is_named_with_what_to_do_and_never_counts_as_measured() {
    let folder = tempfile::tempdir().unwrap();
    for (name, advice) in
        [("pmemkv:process", "scripts/pmemkv-from-debian.sh"), ("rocksdb:memory", "librocksdb-dev")]
    {
        let choice: Choice = name.parse().unwrap();
        if choice.kind.present().is_ok() {
            continue;
        }
        let line = ["ops", "--engine", &format!("quipu,{name}"), "--records", "100"];
        let output = program(folder.path(), &line);
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.is_empty(), "it is known before anything is measured");
        assert!(text(&output.stderr).contains(advice), "{}", text(&output.stderr));

        let line = ["compare", "--engine", &format!("quipu,{name}"), "--records", "100", "--ops", "100"];
        let output = program(folder.path(), &line);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stdout).contains(&format!("| `{name}` | not measured | – / –")));
        assert!(text(&output.stderr).contains(advice));
    }
}

#[test]
fn pmemkv_finds_its_environment_at_each_level() {
    if !skip::is_here(Kind::Pmemkv) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for medium in ["file", "dram"] {
        for name in ["pmemkv:process", "pmemkv:power"] {
            let line = ["ycsb", "a", "--engine", name, "--medium", medium, "--records", "50", "--json"];
            let output = program(folder.path(), &line);
            assert!(output.status.success(), "{}", text(&output.stderr));
            assert_eq!(text(&output.stdout).lines().count(), 2);
        }
    }
    let output = program(folder.path(), &["ops", "--engine", "pmemkv:process,pmemkv:power"]);
    assert_eq!(output.status.code(), Some(2));
}
