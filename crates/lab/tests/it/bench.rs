//! Every benchmark runs on a tiny store, on every medium that a build machine has, and its rows say what they
//! must.

use quipu::{Design, MediumKind};
use quipu_bench::workload::{Mix, Workload};
use quipu_bench::{BenchError, Config, Roofline, Row, Silent, ops, queue, table, ycsb};
use quipu_lab::bench::{
    Grants, Items, Keys, Order, Overwrites, SteadyLoad, memtables, recovery, recovery_of_overwritten, ring,
    steady, util,
};
use std::path::PathBuf;

const PHASES: [&str; 8] =
    ["insert", "get", "get_in_loop", "get_many", "update", "update_in_loop", "blind_delete", "remove"];

fn tiny() -> Config {
    Config { records: 2_000, operations: 1_504, threads: 2, pool_size: Some(16 << 20), ..Config::default() }
}

fn on_sim() -> Config {
    Config { medium: MediumKind::Sim, threads: 1, records: 300, operations: 200, pool_size: None, ..tiny() }
}

fn rows(run: impl FnOnce(&mut dyn FnMut(Row)) -> Result<(), BenchError>) -> Vec<Row> {
    let mut rows = Vec::new();
    run(&mut |row| rows.push(row)).unwrap();
    rows
}

fn on_file(name: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let pool = directory.path().join(name);
    (directory, pool)
}

fn check_times(row: &Row) {
    assert!(row.seconds.unwrap() > 0.0 && row.mops.unwrap() > 0.0, "{row:?}");
    assert!((row.mops.unwrap() - row.ops as f64 / row.seconds.unwrap() / 1e6).abs() < 1e-6, "{row:?}");
    assert_eq!(row.fences_per_op, None);
}

#[test]
fn ops_in_memory_with_limits() {
    let config = Config { roofline: true, ..tiny() };
    let rows = rows(|sink| ops(&config, &Silent, sink));
    assert_eq!(rows.iter().map(|row| row.phase.as_str()).collect::<Vec<_>>(), PHASES);
    for row in &rows {
        check_times(row);
        assert!(row.p50_ns.unwrap() <= row.p99_ns.unwrap() && row.p99_ns <= row.p999_ns, "{row:?}");
        assert!(row.roofline.unwrap() > 0.0, "{row:?}");
        assert_eq!((row.threads, row.records, row.medium.as_str()), (2, 2_000, "dram"));
        assert!(row.pm_bytes_per_record.unwrap() >= 216.0, "{row:?}");
    }
    let ops: Vec<_> = rows.iter().map(|row| row.ops).collect();
    assert_eq!(ops, [2_000, 1_504, 1_504, 1_504, 1_504, 1_504, 752, 752]);
    assert_eq!(table(&rows).lines().count(), 9);
}

#[test]
fn queues_on_all_ordered_designs() {
    let ordered = Design::ALL.iter().copied().filter(|design| design.can().ordered);
    let one =
        Config { designs: ordered.collect(), threads: 1, operations: 20_000, pool_size: None, ..tiny() };
    for config in [one.clone(), Config { threads: 2, ..one.clone() }, Config { batch: 50, ..one.clone() }] {
        let rows = rows(|sink| queue(&config, &Silent, sink));
        assert_eq!(rows.len(), 10 * config.designs.len());
        for row in &rows {
            check_times(row);
            assert_eq!((row.ops, row.batch), (2_000, Some(config.batch).filter(|batch| *batch > 1)));
        }
    }
    for (refused, what) in [
        (Config { designs: vec![Design::VIPER], ..one.clone() }, "order"),
        (Config { threads: 2, batch: 2, ..one.clone() }, "batch"),
        (Config { key_size: 7, ..one }, "key size"),
    ] {
        let error = queue(&refused, &Silent, &mut |_| ()).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn ops_on_a_file_which_is_gone_afterwards() {
    let (directory, pool) = on_file("pool");
    let config = Config { medium: MediumKind::File, pool: Some(pool), roofline: true, ..tiny() };
    let rows = rows(|sink| ops(&config, &Silent, sink));
    assert_eq!(rows.len(), PHASES.len());
    rows.iter().for_each(check_times);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn an_existing_file_is_neither_used_nor_removed() {
    let (_directory, pool) = on_file("precious");
    std::fs::write(&pool, b"not a pool").unwrap();
    let config = Config { medium: MediumKind::File, pool: Some(pool.clone()), ..tiny() };
    assert!(matches!(ops(&config, &Silent, &mut |_| ()), Err(BenchError::Store { .. })));
    assert!(recovery(&config, &Silent, &mut |_| ()).is_err());
    assert_eq!(std::fs::read(&pool).unwrap(), b"not a pool");
}

#[test]
fn ops_on_the_simulator_count_and_repeat_exactly() {
    let run = || rows(|sink| ops(&on_sim(), &Silent, sink));
    let first = run();
    for row in &first {
        assert_eq!((row.seconds, row.mops, row.p50_ns), (None, None, None), "{row:?}");
        assert_eq!(row.dram_bytes_per_record, None, "the simulator's images are not the store's");
        let fences = row.fences_per_op.unwrap();
        match row.phase.as_str() {
            "get" | "get_many" => assert_eq!(fences, 0.0, "{row:?}"),
            _ => assert!(fences > 0.0 && row.lines_flushed_per_op.unwrap() > 0.0, "{row:?}"),
        }
    }
    let costs =
        |rows: &[Row]| rows.iter().map(|row| (row.fences_per_op, row.lines_read_per_op)).collect::<Vec<_>>();
    assert_eq!(costs(&first), costs(&run()));
}

#[test]
fn every_point_workload_loads_and_runs() {
    for letter in ["a", "b", "c", "d", "f"] {
        let workload = Workload { records: 1_000, operations: 2_000, ..Workload::published(letter).unwrap() };
        let rows = rows(|sink| ycsb(&tiny(), &workload, &Silent, sink));
        let phases: Vec<_> = rows.iter().map(|row| row.phase.clone()).collect();
        assert_eq!(phases, [format!("load_{letter}"), format!("run_{letter}")]);
        rows.iter().for_each(check_times);
        assert_eq!((rows[0].ops, rows[1].ops), (1_000, 2_000));
    }
}

#[test]
fn a_steady_load_runs_on_every_design_and_is_counted_on_the_simulator() {
    let load = SteadyLoad { seconds: 1, ..SteadyLoad::default() };
    let config = Config { designs: Design::ALL.to_vec(), pool_size: None, ..tiny() };
    let all = rows(|sink| steady(&config, &load, &Silent, sink));
    assert_eq!(all.len(), Design::ALL.len());
    for row in &all {
        check_times(row);
        let times = row.steady.as_ref().and_then(|steady| steady.times.as_ref()).unwrap();
        assert_eq!(times.mops_by_second.len(), 1, "{row:?}");
        assert!(times.median_second_mops > 0.0 && times.slowest_over_median == Some(1.0), "{row:?}");
        let longest = times.each.put_max_ns.max(times.each.get_max_ns).unwrap();
        assert!(row.p50_ns <= row.p99_ns && row.p999_ns <= Some(longest), "{row:?}");
        assert!(times.stalls.stalls_of_store <= times.stalls.stalls, "{row:?}");
    }
    let counted =
        rows(|sink| steady(&on_sim(), &SteadyLoad { keys: Keys::Zipf(0.9), ..load }, &Silent, sink));
    assert!(counted[0].fences_per_op.is_some_and(|fences| fences > 0.0), "{counted:?}");
    assert!(counted[0].steady.as_ref().is_some_and(|steady| steady.times.is_none()), "{counted:?}");
}

#[test]
fn scans_are_refused_by_name_where_there_is_no_order() {
    let Some(&design) = Design::ALL.iter().find(|design| !design.can().ordered) else { return };
    let config = Config { designs: vec![design], ..tiny() };
    let error = ycsb(&config, &Workload::published("e").unwrap(), &Silent, &mut |_| ()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("workload e") && text.contains(design.name()), "{text}");
}

#[test]
fn scans_read_what_they_claim_where_there_is_an_order() {
    let ordered: Vec<_> = Design::ALL.iter().copied().filter(|design| design.can().ordered).collect();
    for workload in
        [Workload::published("e").unwrap(), Workload { word_keys: true, ..Workload::published("e").unwrap() }]
    {
        let workload = Workload { records: 2_000, operations: 400, value_size: 100, ..workload };
        let config = Config { designs: ordered.clone(), pool_size: None, ..tiny() };
        let rows = rows(|sink| ycsb(&config, &workload, &Silent, sink));
        assert_eq!(rows.len(), 2 * ordered.len());
        rows.iter().for_each(check_times);
        let updates = Workload { mix: Mix { update: 0.1, ..workload.mix }, ..workload };
        let refused = ycsb(&config, &updates, &Silent, &mut |_| ()).unwrap_err().to_string();
        assert!(refused.contains("must not update what it scans"), "{refused}");
    }
    for design in ordered {
        let config = Config { designs: vec![design], ..on_sim() };
        let rows = rows(|sink| ops(&config, &Silent, sink));
        let scan = rows.iter().find(|row| row.phase == "scan").unwrap();
        assert_eq!((scan.ops, scan.fences_per_op), (2, Some(0.0)), "{scan:?}");
        assert!(scan.lines_read_per_op.unwrap() > 50.0, "{scan:?}");
    }
}

/// Puts that become durable together share one fence.
#[test]
fn batches_of_puts_share_their_fences() {
    let fences = |batch| {
        let designs = vec![Design::FLATSTORE_H];
        let config = Config { designs, batch, records: 320, operations: 320, ..on_sim() };
        let rows = rows(|sink| ops(&config, &Silent, sink));
        let of = |phase: &str| rows.iter().find(|row| row.phase == phase).unwrap().clone();
        let marked = rows.iter().filter(|row| row.batch == Some(batch)).map(|row| row.phase.as_str());
        let expected: &[&str] = if batch > 1 { &["insert", "update"] } else { &[] };
        assert_eq!(marked.collect::<Vec<_>>(), expected);
        of("update").fences_per_op.unwrap()
    };
    let (one, many) = (fences(1), fences(32));
    assert!((1.0..1.1).contains(&one) && many < 0.1, "{one} {many}");
    let overwrites = Overwrites { utilizations: vec![60], put: 50, segments: 100, ..Overwrites::default() };
    let config = Config {
        designs: vec![Design::FLATSTORE_H],
        batch: 16,
        records: 20_000,
        key_size: 8,
        value_size: 48,
        pool_size: None,
        ..tiny()
    };
    let found = rows(|sink| util(&config, &overwrites, &Silent, sink));
    let mixed = found[0].utilized.as_ref().unwrap().mixed.unwrap();
    assert_eq!(found[0].batch, Some(16));
    assert!(mixed.put_p50_ns > 0 && mixed.get_p50_ns > 0, "{mixed:?}");
    let refused = util(&Config { batch: 0, ..config }, &overwrites, &Silent, &mut |_| ()).unwrap_err();
    assert!(refused.to_string().starts_with("batch must be"), "{refused}");
}

#[test]
fn recovery_reopens_twice_in_memory_and_on_a_file() {
    let (directory, pool) = on_file("pool");
    let file = Config { medium: MediumKind::File, pool: Some(pool), ..tiny() };
    for config in [tiny(), file] {
        let rows = rows(|sink| recovery(&config, &Silent, sink));
        assert_eq!(rows.iter().map(|row| row.phase.as_str()).collect::<Vec<_>>(), ["recovery", "reopen"]);
        for row in &rows {
            check_times(row);
            assert_eq!((row.ops, row.p50_ns), (2_000, None));
        }
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    assert_eq!(rows(|sink| recovery(&on_sim(), &Silent, sink)).len(), 2);
}

/// Every record is read in the end, so this is a test of compaction too.
#[test]
fn overwriting_settles_at_every_utilization_with_every_choice_of_keys() {
    let (directory, pool) = on_file("pool");
    let medium = Config { records: 64_000, pool_size: None, ..tiny() };
    let file = Config { medium: MediumKind::File, pool: Some(pool), threads: 1, ..medium.clone() };
    for (config, utilizations, keys) in
        [(medium, vec![50, 90], Keys::Uniform), (file, vec![80], Keys::Zipf(0.99))]
    {
        let keys = vec![keys];
        let overwrites = Overwrites { utilizations: utilizations.clone(), keys, ..Overwrites::default() };
        let rows = rows(|sink| util(&config, &overwrites, &Silent, sink));
        assert_eq!(rows.len(), utilizations.len());
        for row in &rows {
            check_times(row);
            let at = row.utilized.as_ref().expect("what the benchmark is for");
            let (did, utilization) =
                (at.compaction.expect("it counts"), at.utilization.expect("it is limited"));
            assert!(did.segments >= 1000 && at.windows.len() >= 3, "{row:?}");
            let filled = (row.records * 240) as f64 / (did.segments * (16 << 10)) as f64;
            assert!((filled * 100.0 - utilization as f64).abs() < 0.1, "{filled}: {row:?}");
            // At 90 % uniformly, any choice of segments has to copy at least three bytes for each byte of the
            // user's.
            let least = if utilization == 90 && at.distribution == "uniform" { 3.0 } else { 1.0 };
            assert!((least..12.0).contains(&did.write_amplification.expect("it wrote")), "{row:?}");
            assert_eq!((did.moved_bytes, at.put), (did.moved_records * 240, 100), "{row:?}");
            assert!(
                did.cleaned_bytes_per_second.expect("it is timed") > 0.0 && at.mixed.is_none(),
                "{row:?}"
            );
        }
        assert!(table(&rows).contains("written/user B"));
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

fn few_segments(keys: Keys, put: u64) -> Overwrites {
    Overwrites { utilizations: vec![80], keys: vec![keys], put, segments: 100, ..Overwrites::default() }
}

/// Every get is held against the value that was written last before it.
#[test]
fn reads_stand_among_writes_with_times_of_their_own() {
    let config = Config {
        designs: vec![Design::QUIPU, Design::FLATSTORE_H],
        records: 20_000,
        key_size: 8,
        value_size: 48,
        pool_size: None,
        ..tiny()
    };
    for (keys, put) in [(Keys::Zipf(0.99), 50), (Keys::Etc, 50), (Keys::Uniform, 5), (Keys::Uniform, 0)] {
        let rows = rows(|sink| util(&config, &few_segments(keys, put), &Silent, sink));
        assert_eq!(rows.len(), 2);
        for row in &rows {
            check_times(row);
            let at = row.utilized.as_ref().expect("what the benchmark is for");
            assert_eq!((at.put, &at.distribution), (put, &keys.to_string()));
            let did = at.compaction.expect("it counts");
            assert_eq!(did.write_amplification.is_none(), put == 0, "{row:?}");
            assert_eq!(at.mixed.is_none(), put == 0, "{row:?}");
            if let Some(times) = at.mixed {
                assert!(0 < times.get_p50_ns && times.get_p50_ns <= times.get_p99_ns, "{row:?}");
                assert!(0 < times.put_p50_ns && times.put_p50_ns <= times.put_p99_ns, "{row:?}");
            }
        }
    }
    let overwrites = Overwrites { put: 101, ..Overwrites::default() };
    let error = util(&config, &overwrites, &Silent, &mut |_| ()).unwrap_err().to_string();
    assert!(error.starts_with("put must be"), "{error}");
}

#[test]
fn overwritten_stores_are_reopened_and_read() {
    let config = Config { records: 30_000, pool_size: None, ..tiny() };
    let rows =
        rows(|sink| recovery_of_overwritten(&config, &few_segments(Keys::Uniform, 100), &Silent, sink));
    assert_eq!((rows.len(), rows[0].phase.as_str()), (1, "recovery"));
    check_times(&rows[0]);
    assert!(rows[0].ops == rows[0].records && rows[0].ops > 25_000, "{rows:?}");
}

#[test]
fn limits_are_plausible_and_the_best_is_kept() {
    let mut roofline = Roofline::new(&Config { records: 10_000, ..tiny() }).unwrap();
    let [first, roof] = [(); 2].map(|()| roofline.repeat().unwrap());
    let (first, second) = (first.ordinary, roof.ordinary);
    assert!(second.write_mops >= first.write_mops && second.read_mops >= first.read_mops);
    // Wide bounds for any machine: a fenced append takes 10 ns to 100 us, a read 1 ns to 100 us.
    assert!((0.01..200.0).contains(&second.write_mops), "{second:?}");
    assert!((0.01..2_000.0).contains(&second.read_mops), "{second:?}");
    assert!(second.read_mops > second.write_mops, "a fenced write is dearer than a cached read: {second:?}");
    let huge = roof.huge.expect("memory has huge pages");
    assert!(huge.write_mops > 0.01 && huge.read_mops > 0.01, "{huge:?}");
    roofline.restart();
    assert_eq!(roofline.limits().ordinary.write_mops, 0.0);
}

#[test]
fn impossible_settings_are_named() {
    let named = |config: Config, name: &str| {
        let text = ops(&config, &Silent, &mut |_| ()).unwrap_err().to_string();
        assert!(text.starts_with(name), "{text}");
    };
    named(Config { designs: vec![], ..tiny() }, "designs");
    let at = |utilization: u64, keys: Keys| {
        let overwrites =
            Overwrites { utilizations: vec![utilization], keys: vec![keys], ..Overwrites::default() };
        util(&Config::default(), &overwrites, &Silent, &mut |_| ()).unwrap_err().to_string()
    };
    assert!(at(99, Keys::Uniform).starts_with("utilization must be 1 to 95"));
    assert!(at(90, Keys::Zipf(1.0)).starts_with("zipf must be"));
    named(Config { threads: 0, ..tiny() }, "threads");
    named(Config { records: 0, ..tiny() }, "records");
    named(Config { key_size: 7, ..tiny() }, "key size");
    named(Config { value_size: 7, ..tiny() }, "value size");
    named(Config { medium: MediumKind::File, ..tiny() }, "pool");
    named(Config { threads: 2, ..on_sim() }, "threads");
    named(Config { roofline: true, ..on_sim() }, "roofline");
}

#[test]
fn the_ring_on_all_media() {
    let items = |buckets| Items { batches: vec![1, 7], grants: vec![Grants::Lock, Grants::Ticket], buckets };
    for buckets in [None, Some(2)] {
        let rows = rows(|sink| ring(&tiny(), &items(buckets), &Silent, sink));
        assert_eq!(rows.len(), 4);
        for row in &rows {
            check_times(row);
            assert!(row.roofline.unwrap() > 0.0 && row.limit_mops.unwrap() > 0.0, "{row:?}");
        }
    }
    let rows = rows(|sink| ring(&on_sim(), &items(None), &Silent, sink));
    for (row, batch) in rows.iter().zip([1.0, 1.0, 7.0, 7.0]) {
        // A new zone of the log costs a few more.
        let fences = row.fences_per_op.unwrap() * batch;
        assert!((1.0..1.2).contains(&fences) && row.lines_read_per_op == Some(0.0), "{row:?}");
    }
    let (_directory, pool) = on_file("pool");
    let config = Config { medium: MediumKind::File, pool: Some(pool), ..tiny() };
    let rows = self::rows(|sink| ring(&config, &items(None), &Silent, sink));
    rows.iter().for_each(check_times);
    let refused = ring(&tiny(), &Items { batches: vec![1 << 20], ..items(None) }, &Silent, &mut |_| {});
    assert!(matches!(refused, Err(BenchError::Setting { setting: "batch", .. })));
}

#[test]
fn memtables_on_all_media() {
    let of = |config: Config| Config { key_size: 8, value_size: 32, batch: 50, ..config };
    let (_directory, pool) = on_file("pool");
    let on_file = Config { medium: MediumKind::File, pool: Some(pool.clone()), ..tiny() };
    for (config, order) in [
        (tiny(), Order::Sequential),
        (tiny(), Order::Random),
        (on_file, Order::Random),
        (on_sim(), Order::Sequential),
    ] {
        let is_simulated = config.medium == MediumKind::Sim;
        let rows = rows(|sink| memtables(&of(config), order, &Silent, sink));
        let (measured, absent): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.not_run.is_none());
        // The simulator has no time, and a skip list in DRAM costs it nothing.
        assert_eq!((measured.len(), absent.len()), (if is_simulated { 4 } else { 6 }, 2), "{rows:?}");
        for row in measured.into_iter().filter(|_| !is_simulated) {
            check_times(row);
            assert_eq!(row.pm_bytes_per_record > Some(0.0), !row.design.starts_with("SLM"), "{row:?}");
        }
    }
    assert!(!pool.exists());
    let named = |config: Config, what: &str| {
        let error = memtables(&config, Order::Random, &Silent, &mut |_| ()).unwrap_err().to_string();
        assert!(error.starts_with(what), "{error}");
    };
    named(Config { key_size: 16, ..of(tiny()) }, "key size");
    named(Config { value_size: 60_000, ..of(tiny()) }, "batch");
}
