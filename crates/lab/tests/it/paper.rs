//! The evaluations of papers, on a small scale: every figure has the rows that it promises, and says
//! something of every statement of the paper's that it can.

mod nstore;
mod xp;

use quipu::{Design, MediumKind};
use quipu_bench::{Config, Row, Silent};
use quipu_lab::bench::paper::{PAPERS, Paper, Scale, paper, text};

const RECORDS: u64 = 2_000;

fn on_dram(threads: &[usize]) -> Scale {
    Scale { records: RECORDS, threads: threads.to_vec(), ..Scale::default() }
}

fn on_sim() -> Scale {
    Scale {
        base: Config { medium: MediumKind::Sim, ..Config::default() },
        records: 1_000,
        ..Scale::default()
    }
}

fn viper() -> &'static Paper {
    Paper::named("viper").expect("it is built")
}

fn pacman() -> &'static Paper {
    Paper::named("pacman").expect("it is built")
}

/// Runs a figure of Viper's, checks what holds for all, and returns its rows.
fn rows(figure: &str, scale: &Scale) -> Vec<Row> {
    rows_of(viper(), figure, scale, |_| true)
}

/// The same of any paper's, whose rows can say something of these designs.
fn rows_of(of: &Paper, figure: &str, scale: &Scale, says: fn(&str) -> bool) -> Vec<Row> {
    let preset = of.figure(figure).expect("it is there");
    let mut rows = Vec::new();
    paper(of, preset, scale, &Silent, &mut |row| rows.push(row)).expect("it runs");
    for row in &rows {
        let within = row.paper.as_ref().expect("where it belongs");
        assert_eq!((within.paper.as_str(), within.figure.as_str()), (of.name, figure), "{row:?}");
        let json = serde_json::to_value(row).expect("an object");
        assert_eq!((&json["figure"], &json["setting"]), (&figure.into(), &within.setting.as_str().into()));
        if row.not_run.is_some() {
            assert!(row.ops == 0 && row.mops.is_none(), "{row:?}");
        } else if row.medium == "sim" {
            assert!(row.mops.is_none() && row.fences_per_op.is_some(), "{row:?}");
        } else {
            assert!(row.ops > 0 && row.mops.is_some_and(|mops| mops > 1e-5), "{row:?}");
        }
    }
    let compared = preset.compare(of, &rows);
    if !scale.is_simulated() {
        for statement in compared.iter().filter(|statement| says(statement.statement)) {
            let needs_threads =
                statement.statement.contains("most threads over one") && scale.threads.len() == 1;
            let ours = statement.ours.is_some_and(|ours| ours.is_finite() && ours > 0.0);
            assert!(ours || needs_threads, "{figure}: {statement:?}");
        }
    }
    let text = text(preset, &rows, &preset.ratios(of, &rows), &compared);
    for part in [preset.title, "What carries over:"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    rows
}

/// Setting and phase of each row.
fn names(rows: &[Row]) -> Vec<String> {
    let name = |row: &Row| format!("{}: {}", row.paper.as_ref().expect("a paper").setting, row.phase);
    rows.iter().map(name).collect()
}

fn each(settings: &[&str], phases: &[&str]) -> Vec<String> {
    let of = |setting: &&str| phases.iter().map(|phase| format!("{setting}: {phase}")).collect::<Vec<_>>();
    settings.iter().flat_map(of).collect()
}

fn find<'r>(rows: &'r [Row], name: &str) -> &'r Row {
    let position = names(rows).iter().position(|found| found == name);
    &rows[position.unwrap_or_else(|| panic!("no {name} among {:?}", names(rows)))]
}

const PATTERNS: [&str; 8] = [
    "64 B in a log each",
    "64 B at random",
    "64 B in one log",
    "64 B in 2 logs",
    "64 B in 8 logs",
    "4 KiB, aligned",
    "4 KiB, 1024 B off",
    "4 KiB, 2048 B off",
];

#[test]
fn access_patterns_are_timed_and_modelled() {
    let found = rows("1", &on_dram(&[1, 2]));
    assert_eq!(names(&found), each(&["timed", "timed", "modelled"], &PATTERNS));
    let found = rows("1", &on_sim());
    assert_eq!(names(&found), each(&["modelled"], &PATTERNS));
    let at = |phase: &str| find(&found, &format!("modelled: {phase}"));
    let media = |phase| at(phase).media_write_bytes_per_op.expect("counted");
    assert!(media("64 B in a log each") < 80.0 && media("64 B at random") > 200.0, "{found:?}");
    let dimms = |phase| at(phase).dimms_per_op.expect("counted");
    assert_eq!((dimms("4 KiB, aligned"), dimms("4 KiB, 2048 B off")), (1.0, 2.0));
    let most = |phase| at(phase).writers_at_one_dimm.expect("counted");
    assert!(most("64 B in one log") > 24.0 && most("64 B in a log each") < 16.0, "{found:?}");
}

#[test]
fn operations_run_over_threads_on_prefilled_stores() {
    let phases = ["insert", "get", "update_in_place", "remove"];
    let found = rows("6", &on_dram(&[1, 2]));
    assert_eq!(names(&found), each(&["fixed", "fixed"], &phases));
    assert!(found.iter().all(|row| (row.records, row.ops) == (RECORDS * 3 / 2, RECORDS / 2)), "{found:?}");
    assert_eq!(found.iter().map(|row| row.threads).collect::<Vec<_>>(), [1, 1, 1, 1, 2, 2, 2, 2]);
    let found = rows("6", &on_sim());
    let fences = |phase| find(&found, phase).fences_per_op.expect("counted");
    assert!((2.0..2.2).contains(&fences("fixed: insert")), "{found:?}");
    assert_eq!((fences("fixed: get"), fences("fixed: update_in_place")), (0.0, 1.0));
    assert_eq!(fences("fixed: remove"), 1.0);
}

#[test]
fn sizes_share_one_volume() {
    let found = rows("7", &on_dram(&[2]));
    let sizes = ["8 + 8 B", "16 + 200 B", "32 + 500 B", "100 + 900 B"];
    assert_eq!(names(&found), each(&sizes, &["insert", "get"]));
    for (pair, bytes) in found.chunks(2).zip([16, 216, 532, 1000]) {
        let volume = pair[0].records * bytes;
        assert!(volume.abs_diff(RECORDS * 216 * 3 / 2) <= 2 * bytes, "{volume}: {pair:?}");
        assert_eq!(pair[1].ops, RECORDS / 2, "{pair:?}");
    }
}

#[test]
fn sizes_vary_where_they_are_to() {
    let found = rows("8", &on_dram(&[1]));
    assert_eq!(names(&found), each(&["fixed", "variable"], &["insert", "get"]));
    assert_eq!(rows("8", &on_sim()).len(), 4);
}

#[test]
fn memory_is_that_of_the_records() {
    let found = rows("9", &on_dram(&[1]));
    assert_eq!(found.iter().map(|row| row.records).collect::<Vec<_>>(), [2000, 3000, 4000]);
    assert!(found.iter().all(|row| row.pm_bytes_per_record.expect("counted") >= 216.0), "{found:?}");
}

#[test]
fn updates_in_place_save_two_fences() {
    let phases = ["insert", "update", "read_modify_write", "update_in_place"];
    let found = rows("10", &on_dram(&[1]));
    assert_eq!(names(&found), each(&["timed", "timed, late", "modelled", "modelled, late"], &phases));
    let fences = |phase| find(&found, phase).fences_per_op.expect("counted");
    assert_eq!(fences("modelled: update_in_place"), 1.0);
    assert!((2.0..2.2).contains(&fences("modelled, late: read_modify_write")), "{found:?}");
    // Now and then a block is begun, which takes one more.
    assert!((3.0..3.2).contains(&fences("modelled: read_modify_write")), "{found:?}");
}

#[test]
fn versions_differ_in_what_dimms_see() {
    let found = rows("11", &on_dram(&[1]));
    let timed = ["hybrid", "unaligned", "all in PM", "all in DRAM"];
    let modelled = ["hybrid, modelled", "unaligned, modelled", "all in PM, modelled"];
    assert_eq!(names(&found), each(&[&timed[..], &modelled].concat(), &["insert", "get"]));
    assert_eq!(names(&rows("11", &on_sim())), each(&modelled, &["insert", "get"]));
    let dimms = |setting| find(&found, &format!("{setting}: insert")).dimms_per_op.expect("counted");
    assert!(dimms("hybrid, modelled") < 1.1, "{found:?}");
    assert!((1.4..1.6).contains(&dimms("unaligned, modelled")), "{found:?}");
    let fences = |setting| find(&found, &format!("{setting}: insert")).fences_per_op.expect("counted");
    assert!(
        fences("all in PM, modelled") > fences("hybrid, modelled") + 0.9,
        "the index is made durable: {found:?}"
    );
}

#[test]
fn operations_and_their_steps_are_measured_alike() {
    let found = rows("12", &on_dram(&[2]));
    let steps = [
        "insert",
        "get",
        "update_in_place",
        "remove",
        "insert: record",
        "insert: map",
        "get: map",
        "get: record",
        "update_in_place: record",
        "remove: record",
        "remove: map",
    ];
    assert_eq!(names(&found), each(&["timed", "modelled"], &steps));
    assert!(found.iter().all(|row| row.ops == RECORDS), "{found:?}");
    let counted = |step: &str| find(&found, &format!("modelled: {step}"));
    for (whole, record, map) in
        [("insert", "insert: record", "insert: map"), ("remove", "remove: record", "remove: map")]
    {
        let fences = |step| counted(step).fences_per_op.expect("counted");
        assert!((fences(whole) - fences(record)).abs() < 0.05, "a put persists its record and nothing else");
        assert_eq!(fences(map), 0.0, "the index is in DRAM");
    }
    assert_eq!(counted("get: map").lines_read_per_op, Some(1.0), "a look at the key in PM");
}

#[test]
fn mixes_run_with_both_choices_of_keys() {
    let found = rows("13", &on_dram(&[1]));
    let of = |mix: &str| {
        let settings = ["uniform", "zipfian"].map(|keys| format!("{mix} {keys}"));
        let phases = [format!("load_{mix}"), format!("run_{mix}")];
        each(&settings.each_ref().map(String::as_str), &phases.each_ref().map(String::as_str))
    };
    assert_eq!(names(&found), [of("50:50"), of("10:90")].concat());
    assert!(
        found.iter().all(|row| row.ops == if row.phase.starts_with("load") { RECORDS } else { RECORDS / 2 })
    );
    let found = rows("13", &on_sim());
    let fences = |mix| find(&found, &format!("{mix} uniform: run_{mix}")).fences_per_op.expect("counted");
    // Three fences a write, and now and then a block is begun.
    let (half, most) = (fences("50:50"), fences("10:90"));
    assert!((1.3..1.8).contains(&half) && (2.5..3.0).contains(&most), "{half} and {most}");
}

#[test]
fn reclamation_runs_beside_reads_and_writes() {
    let found = rows("5.3.8", &on_dram(&[1]));
    let phases = [
        "get",
        "get beside reclaim",
        "reclaim beside get",
        "insert",
        "insert beside reclaim",
        "reclaim beside insert",
    ];
    assert_eq!(names(&found), each(&["a third deleted"], &phases));
    let blocks = |phase| find(&found, &format!("a third deleted: {phase}")).ops;
    // 2000 records fill 18 blocks and a half; a third of each is free, so as many are freed, less what is
    // filled anew.
    assert!((10..=20).contains(&blocks("reclaim beside get")), "{found:?}");
    let found = rows("5.3.8", &on_sim());
    assert_eq!(names(&found), ["a third deleted: reclaim"]);
    assert!(found[0].ops > 5 && found[0].fences_per_op > Some(2.0), "{found:?}");
}

#[test]
fn recovery_runs_over_threads() {
    let found = rows("5.3.9", &on_dram(&[1, 2]));
    assert_eq!(names(&found), each(&["fixed", "fixed"], &["recovery", "reopen"]));
    assert!(found.iter().all(|row| row.ops == RECORDS));
    assert_eq!(found.iter().map(|row| row.threads).collect::<Vec<_>>(), [1, 1, 2, 2]);
}

/// As large as a pool with compaction at work has to be.
fn few(only: &[Design], threads: &[usize]) -> Scale {
    Scale { records: 20_000, only: only.to_vec(), ..on_dram(threads) }
}

/// Whether a statement is about FlatStore-H, or about no design.
fn of_h(statement: &str) -> bool {
    !["-M", "-PH", "-FF", "Viper"]
        .iter()
        .any(|other| statement.starts_with(other) || statement.contains(&format!("on {other}")))
}

fn of_m(statement: &str) -> bool {
    statement.contains("-M")
}

#[test]
fn utilizations_are_measured_with_pacman_and_raw_in_turn() {
    let found = rows_of(pacman(), "5", &few(&[Design::FLATSTORE_H], &[1]), of_h);
    let at = |row: &Row| row.utilized.as_ref().and_then(|at| at.utilization).expect("it is limited");
    let [names, percents] = [names(&found), found.iter().map(|row| at(row).to_string()).collect()];
    assert_eq!(names, each(&["PACMAN", "raw"].repeat(5), &["util"]));
    assert_eq!(percents.join(" "), "50 50 60 60 70 70 80 80 90 90");
    let did = |row: &Row| row.utilized.as_ref().and_then(|at| at.compaction).expect("it counts");
    assert!(
        found.iter().all(|row| row.records.abs_diff(20_000) < 1_000 && did(row).segments >= 90),
        "{found:?}"
    );
    assert!(found.iter().all(|row| row.utilized.as_ref().is_some_and(|at| at.put == 50)), "{found:?}");
    let ratios = pacman().figure("5").expect("it is there").ratios(pacman(), &found);
    let over = ratios.iter().filter(|ratio| ratio.ratio == "PACMAN over raw").count();
    let kept = ratios.iter().filter(|ratio| ratio.ratio == "over itself at 50 %").count();
    assert_eq!((over, kept, ratios.len()), (5, 8, 13));
}

#[test]
fn trees_are_scanned_and_tables_say_why_they_are_not() {
    let mixes = each(&["A, PACMAN", "A, raw", "B, PACMAN", "B, raw", "C, PACMAN", "C, raw"], &["util"]);
    let found = rows_of(pacman(), "6", &few(&[Design::FLATSTORE_M], &[1]), of_m);
    let scans = each(&["E, PACMAN", "E, raw"], &["load_e", "run_e"]);
    assert_eq!(names(&found), [mixes.clone(), scans].concat());
    assert!(found.iter().all(|row| row.not_run.is_none() && row.mops.is_some()), "{found:?}");
    let compared = pacman().figure("6").expect("it is there").compare(pacman(), &found);
    assert!(compared.iter().any(|row| row.statement.starts_with("E on -M") && row.ours.is_some()));
    let found = rows_of(pacman(), "6", &few(&[Design::FLATSTORE_H], &[1]), of_h);
    assert_eq!(names(&found), [mixes, vec!["E: run_e".to_owned()]].concat());
    assert!(find(&found, "E: run_e").not_run.is_some_and(|why| why.contains("no order")), "{found:?}");
}

#[test]
fn techniques_are_put_on_top_of_each_other() {
    let found = rows_of(pacman(), "8", &few(&[Design::FLATSTORE_M], &[1]), of_m);
    let steps = ["raw", "+ reduce", "+ separate", "+ shortcut", "+ batch"];
    assert_eq!(names(&found), each(&steps, &["util"]));
    let hinted = |step: &str| {
        let row = find(&found, &format!("{step}: util"));
        row.utilized.as_ref().and_then(|at| at.compaction?.moved_by_hint).expect("some moved")
    };
    assert_eq!(steps[..3].iter().map(|step| hinted(step)).sum::<f64>(), 0.0, "no shortcuts yet");
    assert!(hinted("+ shortcut") > 0.0 && hinted("+ batch") > 0.0, "{found:?}");
    let found = rows_of(pacman(), "8", &few(&[Design::VIPER_PACMAN], &[1]), |says| says.starts_with("Viper"));
    assert_eq!(names(&found), each(&["raw", "+ reduce", "+ separate", "+ batch"], &["util"]));
}

#[test]
fn production_and_recovery_run() {
    let found = rows_of(pacman(), "9", &few(&[Design::FLATSTORE_H], &[1]), of_h);
    assert_eq!(names(&found), each(&["PACMAN", "raw"], &["util"]));
    for row in &found {
        let at = row.utilized.as_ref().expect("it overwrites");
        assert!(at.distribution == "etc" && at.mixed.is_some(), "{row:?}");
    }
    let found = rows_of(pacman(), "4.5", &few(&[Design::FLATSTORE_H], &[1, 2]), of_h);
    assert_eq!(names(&found), each(&["flatstore-h", "flatstore-h"], &["recovery"]));
    assert!(found.iter().all(|row| row.ops.abs_diff(20_000) < 1_000), "{found:?}");
}

fn mpkv() -> &'static Paper {
    Paper::named("mpkv").expect("it is built")
}

#[test]
fn queries_and_updates_are_mixed_over_threads_and_sizes() {
    let without_rivals = |says: &str| !says.contains("pmemkv");
    let phases = ["load_mix", "run_mix"];
    for (figure, threads, settings) in [
        (
            "4",
            &[2][..],
            &["0 %", "20 %", "40 %", "50 %", "60 %", "80 %", "100 %"].map(|of| format!("{of} queries"))[..],
        ),
        ("6", &[1, 2], &["50 % queries".to_owned()]),
        ("7", &[2], &["95 % queries".to_owned()]),
    ] {
        // Three designs with each number of threads.
        let of_all = |of| std::iter::repeat_n(of, 3 * threads.len());
        let settings: Vec<&str> = settings.iter().flat_map(|of| of_all(of.as_str())).collect();
        let found = rows_of(mpkv(), figure, &on_dram(threads), without_rivals);
        assert_eq!(names(&found), each(&settings, &phases));
    }
    let found = rows_of(mpkv(), "5", &on_dram(&[1]), without_rivals);
    let settings = ["64 B", "128 B", "256 B", "512 B", "1024 B"].map(|size| [size; 3]).concat();
    assert_eq!(names(&found), each(&settings, &phases));
    let found = rows_of(mpkv(), "4", &on_sim(), |_| false);
    let fences = |design: &str| {
        let is_it = |row: &&Row| {
            row.design == design
                && row.phase == "run_mix"
                && row.paper.as_ref().is_some_and(|of| of.setting.starts_with("100 "))
        };
        found.iter().find(is_it).and_then(|row| row.fences_per_op).expect("it is counted")
    };
    assert_eq!((fences("mpkv"), fences("mpkv-baseline")), (0.0, 0.0), "queries make nothing durable");
}

#[test]
fn writers_of_few_keys_are_eliminated_and_not() {
    let scale = Scale { records: 50_000, ..on_dram(&[2]) };
    let found = rows_of(mpkv(), "contention", &scale, |_| true);
    let settings =
        ["1 hot key, on", "1 hot key, off", "16 hot keys, on", "16 hot keys, off"].map(|of| [of; 3]);
    assert_eq!(names(&found), each(&settings.concat(), &["load_mix", "run_mix"]));
    for row in found.iter().filter(|row| row.eliminated_per_op.is_some()) {
        let setting = &row.paper.as_ref().expect("a paper").setting;
        assert!(setting.ends_with(", on") && row.design != "mpkv-baseline", "{row:?}");
    }
}

#[test]
fn rounds_are_run_forwards_and_back_and_designs_chosen() {
    let scale = Scale { rounds: 2, only: vec![Design::VIPER], ..on_dram(&[1]) };
    assert_eq!(
        names(&rows("8", &scale)),
        each(&["fixed", "variable", "variable", "fixed"], &["insert", "get"])
    );
    let scale = Scale { only: vec![Design::QUIPU], ..scale };
    assert!(rows_of(viper(), "8", &scale, |_| false).is_empty(), "the figure does not have it");
}

#[test]
fn loads_are_varied_one_by_one() {
    let settings = |figure: &str| {
        let runs = (pacman().figure(figure).expect("it is there").runs)(&few(&[], &[1, 2]));
        runs.into_iter().map(|run| run.setting).collect::<Vec<_>>()
    };
    let both = |of: &[&str]| -> Vec<String> {
        of.iter().flat_map(|of| ["PACMAN", "raw"].map(|kind| format!("{of}, {kind}"))).collect()
    };
    assert_eq!(settings("7a"), ["PACMAN", "raw"].repeat(5));
    assert_eq!(settings("7b"), ["PACMAN", "raw"].repeat(2));
    assert_eq!(settings("7c"), both(&["32 B", "48 B", "64 B", "128 B", "256 B", "512 B"]));
    assert_eq!(settings("7d"), both(&["20 % put", "40 % put", "60 % put", "80 % put", "100 % put"]));
    let objects = ["5000 objects", "10000 objects", "20000 objects", "40000 objects"];
    assert_eq!(settings("7e"), both(&objects));
}

#[test]
fn papers_and_figures_have_names_of_their_own() {
    for paper in PAPERS {
        let figures: Vec<&str> = paper.presets.iter().map(|preset| preset.figure).collect();
        for (position, figure) in figures.iter().enumerate() {
            assert!(!figures[..position].contains(figure) && *figure != "all", "{figure} twice");
        }
        for preset in paper.presets {
            assert!(!preset.statements.is_empty() && !preset.carries_over.is_empty(), "{}", preset.figure);
        }
    }
    assert!(Paper::named("vipers").is_err() && viper().figure("5").is_none());
}

#[test]
fn an_impossible_scale_is_refused() {
    let refused = |scale: Scale, what: &str| {
        let preset = viper().figure("6").expect("it is there");
        let error = paper(viper(), preset, &scale, &Silent, &mut |_| ()).expect_err("impossible").to_string();
        assert!(error.starts_with(what), "{error}");
    };
    refused(on_dram(&[]), "threads");
    refused(on_dram(&[0]), "threads");
    refused(Scale { threads: vec![1, 2], ..on_sim() }, "threads");
    refused(Scale { rounds: 0, ..on_dram(&[1]) }, "rounds");
    refused(Scale { records: 10, ..on_dram(&[1]) }, "records");
}
