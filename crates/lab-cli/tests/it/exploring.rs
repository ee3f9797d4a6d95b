//! The crash explorer, on a small scale.

use crate::program::*;

#[test]
fn exploration_reports_what_it_judged() {
    let report = &objects(&succeed(["crash", "--states", "300", "--seed", "3", "--json"]))[0];
    let fields = "design seed operations states nested during_compaction during_recovery during_growth \
         during_index_split after_index_split after_index_removal during_index_zone after_index_zone word_keys \
         after_clock nested_again expired during_survey during_close fixed during_in_place ordered tables \
         during_table_change with_snapshot after_range_delete after_ten_commits from_checkpoint commits eliminated \
         violations";
    assert_eq!(names(report), words(fields));
    assert!(report["states"].as_u64().unwrap() >= 300 && report["violations"] == 0, "{report}");
    assert!(text(["crash", "--runs", "1", "--seed", "3"]).contains("no violation"));
}

#[test]
fn exploration_moves_amounts_in_designs_with_transactions() {
    let command = ["crash", "--design", "xp", "--transfers", "--threads", "3", "--states", "100", "--json"];
    let report = &objects(&succeed(command))[0];
    assert!(report["commits"].as_u64() >= Some(50) && report["violations"] == 0, "{report}");
    assert!(fail(["crash", "--design", "quipu", "--transfers"], 2).contains("has no transactions"));
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
    let output = run(["crash", "--states", "50k", "--twin", twin, "--json"]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(1), ""));
    let report = &objects(&output.stdout)[0];
    let details = report["details"].as_array().unwrap();
    assert_eq!(report["violations"].as_u64(), Some(details.len() as u64));
    assert_eq!(names(&details[0]), words("seed operation what image replay"));
    let replay = details[0]["replay"].as_str().unwrap();
    let again = run(replay.split(' ').skip(1));
    assert_eq!(again.status.code(), Some(1), "{replay}");
    let again = String::from_utf8(again.stdout).unwrap();
    assert!(again.contains(details[0]["what"].as_str().unwrap()), "{replay}: {again}");
}
