//! Benchmarks of the lab, on a small scale.

use crate::program::*;
use crate::rows::*;
use serde_json::Value;
use std::collections::HashSet;

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
