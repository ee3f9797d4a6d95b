//! Benchmarks and the crash explorer, on a small scale.

use crate::support::*;
use serde_json::Value;
use std::collections::HashSet;

const TIMED: &str = "design phase medium threads records ops seconds mops p50_ns p99_ns p999_ns dram_bytes_per_record \
                     pm_bytes_per_record";

/// The same of a basic operation.
const TIMED_OPERATION: &str = "design phase medium threads records ops seconds mops own_ns p50_ns p99_ns p999_ns \
                               dram_bytes_per_record pm_bytes_per_record";

const COUNTED: &str = "design phase medium threads records ops pm_bytes_per_record fences_per_op \
                       lines_flushed_per_op lines_read_per_op media_write_bytes_per_op remote_writes_per_op \
                       remote_reads_per_op modelled_ns_per_op";

fn phases(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["phase"].as_str().unwrap()).collect()
}

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
        assert_eq!(phases(&rows), ["insert", "get", "get_many", "update", "blind_delete", "remove"]);
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
fn overwriting_is_measured_at_utilizations() {
    let command = ["bench", "util", "--utilization", "50,80", "--zipf", "--records", "80k", "--json"];
    let rows = objects(&succeed(command));
    let mut fields = words(TIMED);
    fields.extend(words(
        "utilization distribution segments windows steady write_amplification reserve_bytes metadata_bytes put \
         moved_bytes moved_records moved_by_hint cleaned_bytes cleaned_bytes_per_second owed_zones helped_writes stalled_writes \
         stalled_ms",
    ));
    fields.sort_unstable();
    let asked: Vec<_> =
        rows.iter().map(|row| (&row["phase"], &row["utilization"], &row["distribution"])).collect();
    let [util, zipf] = [Value::from("util"), Value::from("zipf 0.99")];
    assert_eq!(asked, [(&util, &50.into(), &zipf), (&util, &80.into(), &zipf)]);
    for row in &rows {
        assert_eq!(names(row), fields);
        assert!(row["segments"].as_u64().unwrap() >= 1000, "{row}");
    }
    let text = fail(["bench", "util", "--records", "1k"], 2);
    assert!(text.contains("--records must be at least"), "{text}");
    assert!(fail(["bench", "util", "--put", "101"], 2).contains("--put must be"));
}

#[test]
fn a_load_lasts_for_its_time_and_tells_each_second() {
    let (folder, _) = folder();
    let file = folder.path().join("steady.svg");
    let path = file.to_str().unwrap();
    let small = ["bench", "steady", "--records", "2k", "--seconds", "2", "--zipf"];
    let rows = objects(&succeed(small.iter().chain(&["--design", "quipu,xp", "--plot", path, "--json"])));
    let mut fields = words(TIMED);
    fields.extend(words(
        "distribution put mops_by_second median_second_mops slowest_second_mops slowest_over_median get_p50_ns \
         get_p99_ns get_p999_ns get_max_ns put_p50_ns put_p99_ns put_p999_ns put_max_ns stalls stalls_of_store \
         stalls_of_machine disk_read_bytes disk_written_bytes",
    ));
    fields.sort_unstable();
    assert_eq!(phases(&rows), ["steady", "steady"]);
    for row in &rows {
        let missing = |field: &&&str| !names(row).iter().any(|name| name == *field);
        assert!(fields.iter().find(missing).is_none(), "{row}");
        let by_second = row["mops_by_second"].as_array().unwrap();
        let sum: f64 = by_second.iter().map(|mops| mops.as_f64().unwrap()).sum();
        let all = row["ops"].as_f64().unwrap() / 1e6;
        // A few calls end behind the last second.
        assert!(by_second.len() == 2 && sum <= all + 1e-9 && sum > all * 0.5, "{row}");
        assert_eq!((&row["distribution"], &row["put"]), (&"zipf 0.99".into(), &50.into()));
        assert!(row["get_max_ns"].as_u64() >= row["get_p999_ns"].as_u64(), "{row}");
    }
    assert!(std::fs::read_to_string(&file).unwrap().contains("Throughput by the second"));
    let text = text(["bench", "steady", "--records", "1k", "--seconds", "1", "--put", "100"]);
    for part in ["1 s of 100 % puts, keys uniform", "slowest second", "longest put ns", "of the machine"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("get p50 ns"), "{text}");
    assert!(fail(["bench", "steady", "--put", "101"], 2).contains("--put must be"));
    assert!(fail(["bench", "steady", "--zipf", "2"], 2).contains("--zipf must be"));
}

#[test]
fn the_raw_store_is_one_word_and_reads_stand_among_writes() {
    let command = "bench util --design flatstore-h --key-size 8 --value-size 2000 --utilization 80 --zipf 0.99 --put 50 \
                   --records 7k --set pacman=off --json";
    let row = &objects(&succeed(command.split_whitespace()))[0];
    assert_eq!((&row["settings"], &row["put"]), (&"pacman=off".into(), &50.into()));
    assert_eq!((&row["moved_by_hint"], row["steady"].is_boolean()), (&0.0.into(), true));
    for times in ["get_p50_ns", "get_p99_ns", "put_p50_ns", "put_p99_ns"] {
        assert!(row[times].as_u64().is_some_and(|time| time > 0), "{row}");
    }
    let text =
        text("bench util --etc --put 50 --key-size 8 --utilization 20 --records 22k".split_whitespace());
    for part in ["etc: sizes of its own", "50 % puts", "get p99 ns", "cleaned MiB/s"] {
        assert!(text.contains(part), "{part}: {text}");
    }
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
    assert_eq!(rows.len(), 6, "standard output is as without a picture");
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
fn opening_is_measured_after_a_crash_and_after_a_close() {
    let rows = objects(&succeed(["bench", "recovery", "--records", "5k", "--medium", "file", "--json"]));
    assert_eq!(phases(&rows), ["recovery", "reopen"]);
    assert!(rows.iter().all(|row| row["seconds"].as_f64().unwrap() > 0.0));
}

#[test]
fn a_papers_evaluation_stands_beside_what_the_paper_says() {
    let command = ["bench", "paper", "viper", "--figure", "10,5.3.9", "--records", "1k", "--threads", "1"];
    let lines = objects(&succeed(command.iter().chain(&["--json"])));
    let (rows, statements): (Vec<Value>, Vec<Value>) =
        lines.into_iter().partition(|line| line.get("phase").is_some());
    let update = ["insert", "update", "read_modify_write", "update_in_place"];
    // Timed and modelled, in the paper's order and late.
    assert_eq!(phases(&rows), [update.repeat(4), vec!["recovery", "reopen"]].concat());
    let mut fields = words(TIMED_OPERATION);
    fields.extend(["paper", "figure", "setting"]);
    fields.sort_unstable();
    assert_eq!(names(&rows[0]), fields);
    assert_eq!(
        (&rows[0]["paper"], &rows[0]["figure"], &rows[0]["setting"]),
        (&"viper".into(), &"10".into(), &"timed".into())
    );
    assert!(statements.len() >= 5);
    for statement in &statements {
        assert_eq!(names(statement), words("paper figure statement paper_says ours unit"));
    }
    assert_eq!(statements[1]["paper_says"], statements[1]["ours"].to_string().trim_end_matches(".0"));

    let text = text(command);
    for part in [
        "Here: 1000 records",
        "Figure 10 (section 5.3.5)",
        "Section 5.3.9",
        "more than 2",
        "What carries over:",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn figures_are_chosen_by_number_and_drawn_one_at_a_time() {
    let (folder, pool) = folder();
    let file = folder.path().join("figure.svg");
    let path = file.to_str().unwrap();
    let small = ["bench", "paper", "viper", "--records", "1k"];
    let text = fail(small.iter().chain(&["--figure", "6,5"]), 2);
    assert!(text.contains("no figure 5") && text.contains("1, 6, 7"), "{text}");
    assert!(fail(["bench", "paper", "vipers"], 2).contains("viper"));
    assert!(fail(["bench", "paper"], 2).contains("PAPER"));
    assert!(fail(small.iter().chain(&["--medium", "sim", "--threads", "2"]), 2).contains("--threads"));
    assert!(fail(small.iter().chain(&["--plot", path]), 2).contains("--plot draws one figure"));
    let pool = pool.to_str().unwrap();
    let command = ["--figure", "11", "--threads", "2", "--medium", "file", "--pool", pool, "--plot", path];
    assert!(String::from_utf8(succeed(small.iter().chain(&command))).unwrap().contains("all in DRAM"));
    let picture = std::fs::read_to_string(&file).unwrap();
    for part in ["<svg", "unaligned, 2 threads", "placement", "</svg>"] {
        assert!(picture.contains(part), "{part}: {picture}");
    }
    assert!(!picture.contains("modelled"), "a picture shows times");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "the benchmark's pool is removed");
}

#[test]
fn parts_that_a_paper_compares_have_rows_also_where_they_are_not_built() {
    let small = ["bench", "paper", "xp", "--figure", "14", "--records", "1k", "--threads", "1"];
    let lines = objects(&succeed(small.iter().chain(&["--design", "xp", "--json"])));
    let (rows, statements): (Vec<Value>, Vec<Value>) =
        lines.into_iter().partition(|line| line.get("phase").is_some());
    let designs: HashSet<&str> = rows.iter().map(|row| row["design"].as_str().unwrap()).collect();
    let expected = ["SPM-D (Masstree)", "FFM (FAST&FAIR)", "SLM (skip list)", "SPM-P", "FPM", "xp"];
    assert_eq!(designs, HashSet::from(expected));
    let is_built = |row: &Value| row.get("not_run").is_none();
    assert!(rows.iter().all(|row| is_built(row) != (row["design"] == "SPM-P" || row["design"] == "FPM")));
    let of_fpm = statements.iter().filter(|statement| statement["ours"].is_null());
    assert_eq!(of_fpm.count(), 4, "{statements:?}");
    let text = text(small);
    for part in ["not run", "unsorted leaves", "lookups, SPM-D over FFM"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_bench_does_not_touch_a_file_that_exists() {
    let (_folder, pool) = folder();
    std::fs::write(&pool, "mine").unwrap();
    let text = fail(args(["bench", "ops", "--records", "1k", "--medium", "file", "--pool"], &pool, []), 2);
    assert!(text.contains("exists already"), "{text}");
    assert_eq!(std::fs::read(&pool).unwrap(), b"mine");
}

#[test]
fn exploration_reports_what_it_judged() {
    let report = &objects(&succeed(["crash", "--states", "300", "--seed", "3", "--json"]))[0];
    let fields = "design seed operations states nested during_compaction during_recovery during_growth \
         during_index_split after_index_split after_index_removal during_index_zone after_index_zone word_keys \
         after_clock nested_again expired during_survey during_close fixed during_in_place ordered tables \
         during_table_change with_snapshot after_range_delete from_checkpoint eliminated violations";
    assert_eq!(names(report), words(fields));
    assert!(report["states"].as_u64().unwrap() >= 300 && report["violations"] == 0, "{report}");
    assert!(text(["crash", "--runs", "1", "--seed", "3"]).contains("no violation"));
}

#[test]
fn indexes_are_measured_alone() {
    let small = ["bench", "index", "--records", "500", "--keys", "osm,sequential"];
    let of = |index| small.iter().chain(&["--index", index]).copied().collect::<Vec<_>>();
    let rows = objects(&succeed(of("alex,hash").iter().chain(&["--json"])));
    let alex = ["insert", "get", "get_many", "scan", "remove", "bulk_load", "loaded_get"];
    let hash = ["insert", "get", "get_many", "remove", "bulk_load", "loaded_get"];
    assert_eq!(phases(&rows), [&alex[..], &hash].concat().repeat(2));
    let mut fields = words("design keys order phase medium threads records ops seconds mops");
    fields.extend(words("p50_ns p99_ns p999_ns dram_bytes_per_record resident_bytes_per_record"));
    fields.push("pm_bytes_per_record");
    fields.sort_unstable();
    assert_eq!(names(&rows[0]), fields);
    assert_eq!((&rows[0]["keys"], &rows[0]["order"]), (&"osm".into(), &"random".into()));
    let table = text(of("all"));
    for part in ["Indexes of 500 keys", "PM B/key", "osm         buckets-locks", "sequential  alex"] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let rows = objects(&succeed(of("fastfair").iter().chain(&["--medium", "sim", "--json"])));
    let mut fields = words(COUNTED);
    fields.extend(words("keys order"));
    fields.sort_unstable();
    assert_eq!(names(&rows[0]), fields);
    assert_eq!(phases(&rows), alex[..5].repeat(2));
    let refusal = fail(of("alix"), 2);
    assert!(
        refusal.contains("choose from alex, masstree, hash") && refusal.contains("mean alex?"),
        "{refusal}"
    );
    let refusal = fail(["bench", "index", "--keys", "random"], 2);
    assert!(refusal.contains("no set of keys is called \"random\"; choose from uniform, "), "{refusal}");
    assert!(fail(["bench", "index", "--records", "31"], 2).contains("--records must be at least 32"));
}

#[test]
fn exploration_takes_settings_of_the_design() {
    let plain = text(["crash", "--design", "flatstore-m", "--runs", "1", "--seed", "3"]);
    let raw = text(["crash", "--design", "flatstore-m", "--runs", "1", "--seed", "3", "--set", "pacman=off"]);
    assert!(raw.contains("no violation") && raw.split(';').nth(1) != plain.split(';').nth(1), "{raw}");
    let refused = |design: &str, set: &str| fail(["crash", "--design", design, "--set", set], 2);
    assert!(refused("quipu", "pacman=off").contains("quipu has eliminate"));
    assert!(refused("flatstore-h", "pacman=some").contains("on or off"));
    assert!(refused("viper", "form=fixed:2:8").contains("form"));
}

#[test]
fn a_broken_store_is_convicted_and_the_conviction_replays() {
    let twin = "publish-before-persist";
    let output = quipu(["crash", "--states", "50k", "--twin", twin, "--json"]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(1), ""));
    let report = &objects(&output.stdout)[0];
    let details = report["details"].as_array().unwrap();
    assert_eq!(report["violations"].as_u64(), Some(details.len() as u64));
    assert_eq!(names(&details[0]), words("seed operation what image replay"));
    let replay = details[0]["replay"].as_str().unwrap();
    let again = quipu(replay.split(' ').skip(1));
    assert_eq!(again.status.code(), Some(1), "{replay}");
    let again = String::from_utf8(again.stdout).unwrap();
    assert!(again.contains(details[0]["what"].as_str().unwrap()), "{replay}: {again}");
}
