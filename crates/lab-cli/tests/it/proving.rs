//! Real threads and real deaths, on a small scale.

use crate::program::*;
use quipu::{Options, Store};
use std::fs::{self, File};
use std::process::Command;
use std::time::Duration;

/// Writers that every change kills; `QUIPU_KILL_ROUNDS` kills more.
const ROUNDS: &str = "50";

#[test]
fn what_threads_are_told_is_judged() {
    let report = &objects(&succeed(["linear", "--histories", "300", "--seed", "3", "--json"]))[0];
    let fields =
        "design medium seed threads histories operations overlapping eliminated undecided violations";
    assert_eq!(names(report), words(fields));
    assert_eq!((&report["histories"], &report["violations"]), (&300.into(), &0.into()), "{report}");
    let (folder, _) = folder();
    let folder = folder.path().to_str().unwrap();
    let text = text(["linear", "--histories", "100", "--folder", folder]);
    assert!(text.contains("on file: 100 histories of 2 threads") && text.contains("no violation"), "{text}");
}

#[test]
fn a_store_that_lies_to_threads_is_convicted() {
    let command = ["linear", "--histories", "200", "--twin", "phantom-remove"];
    let output = run(command.iter().chain(&["--json"]));
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(1), ""));
    let report = &objects(&output.stdout)[0];
    let details = report["details"].as_array().unwrap();
    assert_eq!(names(&details[0]), words("history what replay"));
    let replay = details[0]["replay"].as_str().unwrap();
    assert_eq!(run(replay.split(' ').skip(1)).status.code(), Some(1), "{replay}");
    let output = run(command);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("no order explains") && text.contains("remove, told yes"), "{text}");
}

#[test]
fn what_transactions_see_is_judged() {
    let command = ["isolation", "--level", "serializable,snapshot", "--transactions", "300", "--json"];
    let reports = objects(&succeed(command));
    let fields = "level ground seed histories transactions committed conflicts reads lost_updates skewed \
                  dumped_bytes moved_records violations";
    assert_eq!(names(&reports[0]), words(fields));
    assert_eq!((&reports[0]["level"], &reports[1]["level"]), (&"serializable".into(), &"snapshot".into()));
    assert!(reports.iter().all(|report| report["violations"] == 0), "{reports:?}");
    let text = text(["isolation", "--level", "read-committed", "--transactions", "100", "--threads"]);
    assert!(text.contains("read-committed on threads: ") && text.contains("no violation"), "{text}");
}

#[test]
fn transactions_that_do_not_see_their_writes_are_convicted() {
    let command =
        ["isolation", "--level", "snapshot", "--transactions", "300", "--twin", "own-writes-not-merged"];
    let output = run(command.iter().chain(&["--json"]));
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(1), ""));
    let report = &objects(&output.stdout)[0];
    let details = report["details"].as_array().unwrap();
    assert_eq!(names(&details[0]), words("seed what replay"));
    let replay = details[0]["replay"].as_str().unwrap();
    assert_eq!(run(replay.split(' ').skip(1)).status.code(), Some(1), "{replay}");
    let text = String::from_utf8(run(command).stdout).unwrap();
    assert!(text.contains("an own write not seen") && text.contains("violation"), "{text}");
}

#[test]
fn what_killed_writers_acknowledged_is_there() {
    let (_folder, pool) = folder();
    let rounds = std::env::var("QUIPU_KILL_ROUNDS").unwrap_or(ROUNDS.to_owned());
    let report = &objects(&succeed(args(["kill"], &pool, ["--rounds", &rounds, "--seed", "5", "--json"])))[0];
    println!("{report}");
    let fields =
        "design seed threads rounds early acknowledged refused in_flight level_bytes pools violations";
    assert_eq!(names(report), words(fields));
    assert_eq!((report["rounds"].to_string(), &report["violations"]), (rounds, &0.into()), "{report}");
    // Otherwise nothing was put at risk: writers must die at work as well as before it.
    for (what, least) in [("acknowledged", 5000), ("early", 1)] {
        assert!(report[what].as_u64().unwrap() >= least, "{what}: {report}");
    }
    assert!(!pool.exists(), "the pool is removed");
}

/// Writers put more into it than the pool holds, and die at any moment of compaction too.
#[test]
fn a_small_pool_is_written_to_for_long_by_writers_that_are_killed() {
    let (_folder, pool) = folder();
    let report = &objects(&succeed(args(["kill"], &pool, ["--rounds", "20", "--size", "1M", "--json"])))[0];
    let acknowledged = report["acknowledged"].as_u64().unwrap();
    assert!(acknowledged > 10_000, "{report}");
}

/// Dumps and compaction are under way when they die, in three tables.
#[test]
fn writers_with_levels_below_them_lose_nothing() {
    let (_folder, pool) = folder();
    let report = &objects(&succeed(args(["kill"], &pool, ["--design", "xp", "--rounds", "12", "--json"])))[0];
    println!("{report}");
    assert_eq!((&report["violations"], &report["pools"]), (&0.into(), &1.into()), "{report}");
    assert!(report["level_bytes"].as_u64() > Some(2 << 20), "{report}");
    assert!(!pool.exists() && !pool.with_extension("pool.runs").exists(), "both are removed");
}

/// What they move is there, and the sum is right; in one design by transactions over three tables.
#[test]
fn writers_of_transfers_keep_the_sum() {
    let rounds = std::env::var("QUIPU_KILL_ROUNDS").unwrap_or("6".to_owned());
    for (design, least) in [("xp", 5000), ("quipu", 200), ("flatstore-h", 200), ("flatstore-m", 200)] {
        let (_folder, pool) = folder();
        let options = ["--design", design, "--transfers", "--rounds", &rounds, "--seed", "2", "--json"];
        let report = &objects(&succeed(args(["kill"], &pool, options)))[0];
        println!("{report}");
        assert_eq!(report["violations"], 0, "{report}");
        assert!(report["acknowledged"].as_u64() >= Some(least), "{report}");
    }
}

#[test]
fn transfers_that_are_acknowledged_early_or_in_pieces_are_convicted_by_a_death() {
    // A death between the accounts shows in the sum, one before the journal in the accounts alone.
    let charges = [
        ("late-put", &["the journal of thread"][..]),
        ("split-update", &["the sum of all accounts", "in place of"]),
    ];
    for (twin, charge) in charges {
        let (_folder, pool) = folder();
        let options = ["--design", "xp", "--transfers", "--threads", "1", "--twin", twin, "--json"];
        let output = run(args(["kill"], &pool, options));
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(1), ""));
        let report = &objects(&output.stdout)[0];
        let [what, replay] = ["what", "replay"].map(|name| report["details"][0][name].as_str().unwrap());
        assert!(charge.iter().any(|charge| what.contains(charge)), "{twin}: {what}");
        assert!(replay.contains(" --transfers --twin "), "{replay}");
    }
    let (_folder, pool) = folder();
    let refused = fail(args(["kill"], &pool, ["--design", "viper", "--transfers"]), 2);
    assert!(refused.contains("neither transactions nor batches"), "{refused}");
    let refused = fail(args(["kill"], &pool, ["--transfers", "--twin", "phantom-remove"]), 2);
    assert!(refused.contains("late-put, split-update"), "{refused}");
}

/// One thread alone sees every put that it holds back, so only a death can tell.
#[test]
fn acknowledging_too_early_is_convicted_by_a_death() {
    let (_folder, pool) = folder();
    let command = args(["kill"], &pool, ["--threads", "1", "--twin", "late-put", "--json"]);
    let output = run(command);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(1), ""));
    let report = &objects(&output.stdout)[0];
    assert_eq!(names(&report["details"][0]), words("round what replay"));
    let what = report["details"][0]["what"].as_str().unwrap();
    assert!(what.contains("put value") && what.contains("afterwards: get"), "{what}");
    assert!(pool.exists(), "the pool is left for whoever wants to look at it");
}

/// As where the machine dies with the writer, and the next boot judges.
#[test]
fn a_writer_is_judged_by_another_process() {
    let (folder, pool) = folder();
    let options = Options::new().size(64 << 20).with(|options| options.zone_size = Some(64 << 10));
    Store::create(&pool, &options).unwrap().close().unwrap();
    let [sent, contents] = ["sent", "contents"].map(|name| folder.path().join(name));
    let about = |round: u64| format!("--seed 3 --threads 2 --round {round}");
    let judge = |round| {
        let [sent, contents] = [&sent, &contents].map(|file| file.to_str().unwrap());
        let files = ["--acknowledgements", sent, "--contents", contents, "--json"];
        let mut command = args(["kill-judge"], &pool, files);
        command.extend(about(round).split(' ').map(str::to_owned));
        run(command)
    };
    for round in 0..3 {
        let start = || {
            let mut writer = Command::new(crate::PROGRAM);
            writer.arg("kill-writer").arg(&pool).args(about(round).split(' '));
            writer.stdout(File::create(&sent).unwrap()).spawn().unwrap()
        };
        let mut writer = start();
        while fs::metadata(&sent).unwrap().len() < 100_000 {
            // A process that another test has just forked holds the pool's lock until it runs its program.
            if writer.try_wait().unwrap().is_some() {
                writer = start();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        writer.kill().unwrap();
        writer.wait().unwrap();
        if round < 2 {
            let report = &objects(&judge(round).stdout)[0];
            assert_eq!(names(report), words("round acknowledged in_flight keys violation"));
            assert_eq!((&report["round"], &report["violation"]), (&round.into(), &serde_json::Value::Null));
            assert!(report["acknowledged"].as_u64() > Some(500) && report["keys"].as_u64() > Some(50));
        }
    }
    // If the last of them are missing, too many calls took effect without one.
    let all = fs::read_to_string(&sent).unwrap();
    let lines: Vec<&str> = all.lines().collect();
    fs::write(&sent, lines[..lines.len() - 300].join("\n") + "\n").unwrap();
    let output = judge(2);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(1), ""));
    let report = &objects(&output.stdout)[0];
    assert!(report["violation"].as_str().is_some_and(|what| what.contains("no order explains")), "{report}");
    fs::write(&sent, all).unwrap();
    assert_eq!(judge(2).status.code(), Some(0));
}

#[test]
fn writers_need_a_pool_of_their_own() {
    let (_folder, pool) = folder();
    fs::write(&pool, "mine").unwrap();
    assert!(fail(args(["kill"], &pool, []), 2).contains("exists already"));
    assert!(pool.exists());
}

#[test]
fn every_answer_of_a_soak_is_that_of_a_model() {
    let lines = objects(&succeed(["soak", "--pools", "2", "--json"]));
    let fields = "design medium seed threads pools calls full closed dropped abandoned freed_segments moved_bytes \
                  dumped_bytes most_tombstone_bytes tombstone_bytes violations seconds";
    assert_eq!(names(&lines[0]), words(fields));
    // The report is written as it goes, and the last line has all of it.
    let pools: Vec<_> = lines.iter().map(|line| line["pools"].as_u64().unwrap()).collect();
    assert_eq!(pools, [1, 2]);
    assert_eq!((&lines[1]["violations"], &lines[1]["medium"]), (&0.into(), &"dram".into()), "{}", lines[1]);
}

#[test]
fn the_pool_of_a_convicted_soak_stays() {
    let (folder, _) = folder();
    let folder = folder.path();
    let command = ["soak", "--pools", "8", "--twin", "revocation-unseen", "--json", "--folder"];
    let output = run(command.iter().copied().chain([folder.to_str().unwrap()]));
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(1), ""));
    let lines = objects(&output.stdout);
    let details = &lines[lines.len() - 1]["details"][0];
    assert_eq!(names(details), words("reopenings what replay"));
    let replay = details["replay"].as_str().unwrap();
    assert!(replay.contains("--pools 1") && replay.ends_with("--twin revocation-unseen"), "{replay}");
    assert!(fs::read_dir(folder).unwrap().count() > 0, "the pool is left for whoever wants to look at it");
}
