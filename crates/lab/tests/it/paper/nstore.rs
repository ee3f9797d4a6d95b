//! The figures of NStore.

use super::{RECORDS, each, find, names, on_dram, on_sim, rows_of};
use quipu::{Design, MediumKind};
use quipu_bench::{Config, Row};
use quipu_lab::bench::paper::{Paper, Scale};

fn nstore() -> &'static Paper {
    Paper::named("nstore").expect("it is built")
}

/// Statements that are positive numbers here: counts of zero and Nap are not.
fn has_number(says: &str) -> bool {
    !says.starts_with("lines of") && !says.contains("Nap-FF")
}

fn setting(row: &Row) -> &str {
    &row.paper.as_ref().expect("a paper").setting
}

/// The rows of a setting and phase of one design.
fn of<'r>(rows: &'r [Row], design: &str, name: &str) -> &'r Row {
    let (at, phase) = name.split_once(": ").expect("setting and phase");
    let is_it = |row: &&Row| row.design == design && setting(row) == at && row.phase == phase;
    rows.iter().find(is_it).unwrap_or_else(|| panic!("no {design} {name}"))
}

const ALONE: [&str; 4] = ["insert", "get", "update", "remove"];
const MIXES: [&str; 3] = ["put95 get5", "put50 get50", "get50 upd50"];
const MIXED: [&str; 2] = ["load_mix", "run_mix"];

/// Five designs alone, and in each mix.
fn mixes(mark: &str) -> Vec<String> {
    let alone = format!("{mark}alone");
    let mixed = MIXES.map(|mix| format!("{mark}{mix}"));
    let mixed: Vec<&str> = mixed.iter().flat_map(|mix| [mix.as_str(); 5]).collect();
    [each(&[alone.as_str(); 5], &ALONE), each(&mixed, &MIXED)].concat()
}

#[test]
fn seven_mixes_run_on_both_sets_of_keys() {
    for (figure, keys, threads) in [("7", None, &[1, 2][..]), ("8", Some("longlat"), &[2])] {
        let found = rows_of(nstore(), figure, &on_dram(threads), |says| {
            has_number(says) && !says.contains("most threads over one")
        });
        let timed = threads.iter().flat_map(|_| mixes("")).collect();
        assert_eq!(names(&found), [timed, mixes("modelled, ")].concat());
        assert!(found.iter().all(|row| row.keys == keys), "{figure}");
    }
    let found = rows_of(nstore(), "7", &on_sim(), |_| false);
    assert_eq!(names(&found), mixes("modelled, "));
    assert!(found.iter().all(|row| row.threads == 2 && row.modelled_ns_per_op.is_some()), "{found:?}");
    for phase in ["update", "remove"] {
        let row = of(&found, "nstore", &format!("modelled, alone: {phase}"));
        assert_eq!(row.remote_writes_per_op, Some(0.0), "{row:?}");
        assert!(row.fences_per_op.is_some_and(|fences| fences < 1.05), "{row:?}");
    }
    let remote = of(&found, "mpkv", "modelled, alone: update").remote_writes_per_op;
    assert!(remote > Some(0.5), "an index in PM lies on both nodes: {remote:?}");
}

#[test]
fn scans_run_over_threads_and_sizes() {
    let sizes = ["8 B", "64 B", "256 B", "512 B"];
    let with = |mark: &str, readers: &[u32]| -> Vec<String> {
        let of =
            |size: &&str| readers.iter().map(|count| format!("{mark}, {size}, readers={count}")).collect();
        sizes.iter().flat_map::<Vec<String>, _>(of).collect()
    };
    let scanned = |settings: &[String]| -> Vec<String> {
        each(&settings.iter().map(String::as_str).collect::<Vec<_>>(), &["insert", "scan"])
    };
    let modelled = with("modelled", &[0, 2]);
    let timed = |over: usize| [&vec!["over threads"; 3 * over][..], &sizes].concat();
    let timed = |over: usize| timed(over).into_iter().map(str::to_owned).collect::<Vec<_>>();
    let found = rows_of(nstore(), "9", &on_dram(&[1, 2]), |says| has_number(says) && !says.contains("told"));
    assert_eq!(names(&found), scanned(&[timed(2), modelled.clone()].concat()));
    // A record of two words takes one line.
    let scan = find(&found, "modelled, 8 B, readers=0: scan");
    let [all, remote] = [scan.lines_read_per_op, scan.remote_reads_per_op].map(Option::unwrap);
    assert!((90.0..110.0).contains(&all) && (0.4..0.6).contains(&(remote / all)), "{scan:?}");
    // A scan reads a few itself, where too few of them stand together.
    let [far, near] = ["0", "2"].map(|readers| {
        find(&found, &format!("modelled, 512 B, readers={readers}: scan")).remote_reads_per_op.unwrap()
    });
    assert!(near <= far / 10.0 && far > 100.0, "{near} and {far} remote lines a scan");
    assert_eq!(names(&rows_of(nstore(), "9", &on_sim(), |_| false)), scanned(&modelled));

    let folder = tempfile::tempdir().unwrap();
    let scale = on_dram(&[2]);
    let base =
        Config { medium: MediumKind::File, pool: Some(folder.path().join("pool")), ..scale.base.clone() };
    let found = rows_of(nstore(), "9", &Scale { base, ..scale }, has_number);
    let told = if std::thread::available_parallelism().map_or(1, usize::from) > 1 {
        with("told", &[0, 1, 2])
    } else {
        Vec::new()
    };
    assert_eq!(names(&found), scanned(&[timed(1), told, modelled].concat()));
    assert!(folder.path().read_dir().unwrap().next().is_none(), "the pool and its part are removed");
}

#[test]
fn choices_are_skewed_with_caches_and_without() {
    let found = rows_of(nstore(), "10", &on_dram(&[2]), has_number);
    let constants = ["0.5", "0.6", "0.7", "0.8", "0.9", "0.99"];
    let settings: Vec<String> =
        constants.iter().flat_map(|theta| ["update", "get"].map(|mix| format!("{theta}, {mix}"))).collect();
    let settings: Vec<&str> = settings.iter().flat_map(|of| [of.as_str(); 5]).collect();
    assert_eq!(names(&found), each(&settings, &MIXED));

    let found = rows_of(nstore(), "11", &on_dram(&[2]), has_number);
    let timed = found.iter().filter(|row| row.medium == "dram").count();
    assert_eq!((timed, found.len() - timed), (4 * 4 * 2 * 2, 2 * 6 * 2));
    let gets = |policy: &str| of(&found, "nstore", &format!("modelled, {policy}, 0.99: run_mix"));
    let remote = |policy: &str| gets(policy).remote_reads_per_op.expect("counted");
    assert_eq!(gets("off").cache_hits_per_op, None);
    assert!(gets("raf").cache_hits_per_op > Some(0.1) && remote("raf") < 0.9 * remote("off"), "{found:?}");
    assert!((remote("raf") / remote("lfu") - 1.0).abs() < 0.05, "both nodes choose alike");
}

#[test]
fn sockets_are_counted_and_not_timed() {
    let found = rows_of(nstore(), "12", &on_dram(&[1, 2]), has_number);
    let nodes = ["1 node", "2 nodes", "4 nodes"].map(|nodes| [nodes; 5]).concat();
    assert_eq!(names(&found), each(&nodes, &["insert", "get"]));
    assert!(found.iter().all(|row| row.medium == "sim"));
    let remote = |nodes: &str| of(&found, "nstore", &format!("{nodes}: get")).remote_reads_per_op.unwrap();
    assert_eq!(remote("1 node"), 0.0);
    assert!(
        (0.45..0.55).contains(&remote("2 nodes")) && (0.7..0.8).contains(&remote("4 nodes")),
        "{found:?}"
    );
}

#[test]
fn parts_and_clusters_are_varied() {
    let found = rows_of(nstore(), "13", &on_dram(&[1, 2]), has_number);
    let parts =
        ["c-ALEX + Nlog", "c-ALEX + FlatStore's log", "Masstree + FlatStore's log", "CCEH + Viper's pages"];
    let modelled = parts.map(|part| format!("modelled, {part}"));
    let modelled = modelled.each_ref().map(String::as_str);
    assert_eq!(names(&found), each(&[parts, parts, modelled].concat(), &["insert", "get"]));

    let clusters = ["16", "32", "64", "128", "256"].map(|number| format!("{number} clusters"));
    let clusters: Vec<&str> = clusters.iter().map(String::as_str).collect();
    let all = each(&clusters, &["insert", "get", "load_mix", "run_mix"]);
    let found = rows_of(nstore(), "14", &on_dram(&[2]), has_number);
    assert_eq!(names(&found), all);
    let best = nstore().figure("14").expect("it is there").compare(nstore(), &found)[0].ours;
    assert!([16.0, 32.0, 64.0, 128.0, 256.0].map(Some).contains(&best), "{best:?}");
    let found = rows_of(nstore(), "14", &on_sim(), |_| false);
    assert_eq!(names(&found), all);
    // Each cluster begins a file of its own.
    let fences = |number: &str| find(&found, &format!("{number} clusters: insert")).fences_per_op.unwrap();
    assert!(fences("16") < 1.1 && fences("256") > 1.3, "{found:?}");
}

#[test]
fn garbage_is_collected_by_threshold_and_by_several() {
    // Enough for files that are full.
    let scale = Scale { records: 50_000, ..on_dram(&[1]) };
    let found = rows_of(nstore(), "15", &scale, has_number);
    let thresholds = ["10 %", "30 %", "50 %", "70 %", "90 %"];
    let cleaners = ["10 %, 1 cleaner", "10 %, 2 cleaners", "10 %, 4 cleaners"];
    assert_eq!(names(&found), each(&[&thresholds[..], &cleaners].concat(), &["update", "at rest"]));
    let at_rest = |threshold: &str| find(&found, &format!("{threshold}: at rest"));
    let space = |threshold| at_rest(threshold).pm_bytes_per_record.expect("counted");
    assert!(space("10 %") < space("90 %") && space("50 %") < space("90 %"), "{found:?}");
    assert!(at_rest("10 %").moved_per_op > Some(0.0), "{found:?}");
    assert_eq!(at_rest("90 %").moved_per_op, Some(0.0), "no file of the load is so dead");
    let found = rows_of(nstore(), "15", &on_sim(), |_| false);
    assert_eq!(names(&found), each(&["modelled"], &["update", "at rest"]));
    assert!(find(&found, "modelled: at rest").moved_per_op > Some(0.0), "{found:?}");
}

#[test]
fn recovery_runs_over_records_values_and_threads() {
    let found = rows_of(nstore(), "16", &on_dram(&[1, 2]), has_number);
    let sizes = ["64 B", "256 B", "512 B"].map(|size| format!("all, values of {size}"));
    let sizes: Vec<&str> = sizes.iter().map(String::as_str).collect();
    let settings = [&["half", "all", "one and a half"], &sizes[..]].concat();
    assert_eq!(names(&found), each(&[&settings[..], &settings].concat(), &["recovery", "reopen"]));
    let records: Vec<u64> = found[..6].iter().map(|row| row.ops).collect();
    assert_eq!(records, [1, 1, 2, 2, 3, 3].map(|halves| halves * RECORDS / 2));
    assert!(rows_of(nstore(), "16", &on_sim(), |_| false).iter().all(|row| row.design == "nstore"));
}

#[test]
fn other_engines_run_no_setting_of_ours() {
    for (figure, ours) in [("7", false), ("14", true), ("15", true), ("16", true)] {
        let runs = (nstore().figure(figure).expect("it is there").runs)(&on_dram(&[1]));
        assert!(runs.iter().all(|run| run.is_of_ours == ours), "{figure}");
    }
    let scale = Scale { only: vec![Design::VIPER], ..on_dram(&[1]) };
    assert!(rows_of(nstore(), "14", &scale, |_| false).is_empty());
}
