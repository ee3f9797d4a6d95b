//! The figures of XP's parts.

use super::{RECORDS, each, names, on_dram, on_sim, rows_of};
use quipu::Design;
use quipu_bench::Row;
use quipu_lab::bench::paper::{Paper, Scale};

fn xp() -> &'static Paper {
    Paper::named("xp").expect("it is built")
}

#[test]
fn memtables_are_measured_by_index_and_the_others_say_why_they_are_not() {
    let is_built = |says: &str| !says.contains("FPM") && !says.contains("SPM-P");
    let found = rows_of(xp(), "14", &on_dram(&[1, 2]), is_built);
    // Three memtables with two phases each, and two that are not built; three designs.
    let memtables = ["insert", "get", "insert", "get", "insert", "get", "insert", "insert"];
    let stores = ["insert", "get"].repeat(3);
    let of_threads =
        || [each(&["sequential", "random"], &memtables), each(&["whole stores"], &stores)].concat();
    let modelled = ["insert", "get", "insert", "get", "insert", "insert"];
    assert_eq!(names(&found), [of_threads(), of_threads(), each(&["modelled"], &modelled)].concat());
    let run = || found.iter().filter(|row| row.not_run.is_none());
    assert!(run().all(|row| row.ops == RECORDS && row.records == RECORDS), "{found:?}");
    assert!(run().filter(|row| row.phase == "insert").all(|row| row.batch == Some(50)), "{found:?}");
    let only = Scale { only: vec![Design::XP], ..on_dram(&[1]) };
    let stores = rows_of(xp(), "14", &only, is_built).into_iter().filter(|row| row.design == "xp");
    assert_eq!(stores.count(), 2, "what runs no design is run in any case");

    let found = rows_of(xp(), "14", &on_sim(), |_| false);
    assert_eq!(names(&found), each(&["modelled"], &modelled));
    let [in_dram, _, in_pm, lookup, ..] = &found[..] else { panic!("{found:?}") };
    let each_item = |row: &Row| row.fences_per_op.expect("counted") * 50.0;
    assert!((1.0..2.0).contains(&each_item(in_dram)), "an item is one fence: {in_dram:?}");
    assert!(each_item(in_pm) > 50.0, "and each change of an index in PM: {in_pm:?}");
    let read = |row: &Row| row.lines_read_per_op.expect("counted");
    assert!(read(lookup) > read(&found[1]) + 1.0, "nodes in PM are read there: {found:?}");
}

#[test]
fn the_ring_is_measured_over_batches_and_threads_beside_raw_writes() {
    let found = rows_of(xp(), "16", &on_dram(&[1, 2]), |_| true);
    let both = |sizes: &[u64]| -> Vec<String> {
        sizes.iter().flat_map(|size| [format!("items of {size}"), format!("items of {size}")]).collect()
    };
    let batches = both(&[1, 2, 4, 8, 16, 32, 50, 64, 90, 128]);
    let of = |setting: &str, phases: &[String]| -> Vec<String> {
        phases.iter().map(|phase| format!("{setting}: {phase}")).collect()
    };
    let raw = each(&["raw", "raw"], &["24 B at random"]);
    let modelled = each(&["modelled"], &["items of 1", "items of 10", "items of 50", "items of 90"]);
    let threads = of("threads", &both(&[50, 50]));
    assert_eq!(names(&found), [of("batches", &batches), threads, raw, modelled.clone()].concat());
    let ring = |row: &&Row| row.medium == "dram" && row.design.starts_with("ring");
    assert!(found.iter().filter(ring).all(|row| row.roofline.is_some_and(|share| share > 0.0)), "{found:?}");
    let found = rows_of(xp(), "16", &on_sim(), |_| false);
    assert_eq!(names(&found), modelled);
    for (row, records) in found.iter().zip([1.0, 10.0, 50.0, 90.0]) {
        // A new zone costs a few more.
        let fences = row.fences_per_op.expect("counted") * records;
        assert!((1.0..1.2).contains(&fences), "{row:?}");
    }
}

/// Statements that need another engine beside ours.
fn is_ours(says: &str) -> bool {
    !says.contains("RocksDB")
}

/// The settings of the rows, each once, and all of their phases.
fn settings(rows: &[Row]) -> Vec<String> {
    let mut settings: Vec<String> =
        rows.iter().map(|row| row.paper.as_ref().expect("a paper").setting.clone()).collect();
    settings.dedup();
    settings
}

#[test]
fn ycsb_runs_beyond_the_pool_and_in_it() {
    let found = rows_of(xp(), "10", &on_dram(&[2]), is_ours);
    let uniform = ["A uniform", "B uniform", "C uniform", "D latest", "E uniform", "F uniform"];
    let zipfian = ["A zipfian", "B zipfian", "C zipfian", "E zipfian", "F zipfian"];
    let beyond: Vec<String> = uniform.iter().chain(&zipfian).map(|mix| mix.to_string()).collect();
    let in_pm: Vec<String> = beyond.iter().map(|mix| format!("{mix}, all in PM")).collect();
    assert_eq!(settings(&found), [beyond.clone(), in_pm.clone()].concat());
    assert!(found.iter().all(|row| row.design == "xp"), "{found:?}");
    assert_eq!(settings(&rows_of(xp(), "10", &on_sim(), |_| false)), in_pm, "there are no levels");
    let runs = (xp().figure("10").expect("it is there").runs)(&on_dram(&[1]));
    let alone = runs.iter().filter(|run| run.is_of_ours).map(|run| run.setting.clone());
    assert_eq!(alone.collect::<Vec<_>>(), in_pm, "others have no pool");
    assert!(runs.iter().all(|run| run.benchmark.is_of_any_engine()));
}

#[test]
fn databases_grow_over_one_pool() {
    let found = rows_of(xp(), "12", &on_dram(&[1]), is_ours);
    assert_eq!(settings(&found), ["1 unit", "2 units", "4 units", "8 units"]);
    let loaded: Vec<u64> = found.iter().filter(|row| row.phase == "load_d").map(|row| row.records).collect();
    assert_eq!(loaded, [1, 2, 4, 8].map(|units| units * RECORDS / 2));
    let run: Vec<u64> = found.iter().filter(|row| row.phase == "run_d").map(|row| row.ops).collect();
    assert_eq!(run, [RECORDS; 4]);
}

#[test]
fn the_index_is_measured_by_sizes_and_by_the_second() {
    let found = rows_of(xp(), "15", &on_dram(&[1]), is_ours);
    let of_sizes: Vec<String> = [64, 256, 1024, 4096]
        .iter()
        .flat_map(|size| [format!("{size} B, gets"), format!("{size} B, scans")])
        .collect();
    let merged: Vec<String> = ["direct", "key", "off"]
        .iter()
        .flat_map(|merge| ["gets", "scans"].map(|what| format!("64 B, {what}, merge={merge}")))
        .collect();
    let steady = ["half puts", "half puts, data twice the pool"].map(str::to_owned);
    assert_eq!(settings(&found), [&of_sizes[..], &merged, &steady].concat());
    assert_eq!(settings(&rows_of(xp(), "15", &on_sim(), |_| false)), of_sizes);

    let found = rows_of(xp(), "dumps", &on_dram(&[1]), is_ours);
    let read = ["get", "scan"];
    let expected =
        [each(&["all in PM", "several dumps"], &read), each(&["compacted"], &["compact", "get", "scan"])];
    assert_eq!(names(&found), expected.concat());
    let in_pool = |setting: &str| {
        let row = found.iter().find(|row| names(&[(*row).clone()])[0] == format!("{setting}: get"));
        row.and_then(|row| row.pm_bytes_per_record).expect("it is counted")
    };
    let [all, several, none] = ["all in PM", "several dumps", "compacted"].map(in_pool);
    assert!(all > 508.0 && several < all && none < several, "{all} {several} {none}");
}

#[test]
fn allocators_take_and_give_back_all_sizes() {
    let is_run = |phase: &str, row: &Row| row.phase.starts_with(phase) && row.not_run.is_none();
    let found = rows_of(xp(), "17", &on_dram(&[1]), is_ours);
    let of = |name: &str| found.iter().filter(|row| row.design == name && row.medium == "dram").count();
    // Two phases of eight sizes; zones have at least 4096 bytes.
    assert_eq!(
        ["Halloc-pool", "Halloc-zone", "malloc (DRAM)", "Ralloc", "pmemobj"].map(of),
        [16, 6, 16, 1, 1]
    );
    let found = rows_of(xp(), "17", &on_sim(), |_| false);
    for row in found.iter().filter(|row| is_run("take", row)) {
        assert_eq!((row.fences_per_op, row.lines_flushed_per_op), (Some(1.0), Some(1.0)), "{row:?}");
    }
}

#[test]
fn recovery_is_measured_by_data_threads_and_levels() {
    let found = rows_of(xp(), "18", &on_dram(&[1, 2]), is_ours);
    let both = ["recovery", "reopen"];
    let of_threads = each(&["a quarter", "half", "all", "all, most on levels"], &both);
    assert_eq!(names(&found), [of_threads.clone(), of_threads].concat());
    assert!(found.iter().zip([1; 8].into_iter().chain([2; 8])).all(|(row, threads)| row.threads == threads));
}
