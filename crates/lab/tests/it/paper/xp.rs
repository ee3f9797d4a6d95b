//! The figures of XP's parts.

use super::{RECORDS, each, names, on_dram, on_sim, rows_of};
use quipu::Design;
use quipu_lab::bench::Row;
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
