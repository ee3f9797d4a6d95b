//! The help that people meet first.

use crate::PROGRAM;
use crate::support::*;
use std::process::Command;

#[test]
fn without_arguments_there_is_help() {
    let output = quipu::<&str>([]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("Usage: quipu <COMMAND>"));
}

#[test]
fn every_help_shows_examples_and_defaults() {
    for command in [
        &["create"][..],
        &["put"],
        &["get"],
        &["del"],
        &["delete-range"],
        &["scan"],
        &["import"],
        &["export"],
        &["table"],
        &["table", "create"],
        &["table", "list"],
        &["table", "drop"],
        &["info"],
        &["check"],
        &["compact"],
        &["probe"],
        &["designs"],
        &["bench"],
        &["bench", "ops"],
        &["bench", "ycsb"],
    ] {
        let help = text(command.iter().chain(&["--help"]));
        assert!(help.contains("Examples:\n  quipu "), "{command:?}: {help}");
    }
    assert!(text(["create", "--help"]).contains("[default: quipu]"));
    assert!(text(["bench", "ops", "--help"]).contains("[default: 200]"));
    assert!(text(["--help"]).contains("Exit codes:"));
    assert!(
        text(["create", "--help"]).contains("takes disk space only as it fills"),
        "the long help is shown"
    );
}

/// 30 lines of a terminal of 80 columns.
#[test]
fn the_first_help_is_one_screen() {
    let output = Command::new(PROGRAM).arg("--help").env("COLUMNS", "80").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    assert!(help.lines().count() <= 30, "{} lines:\n{help}", help.lines().count());
    let longest = help.lines().map(|line| line.chars().count()).max();
    assert!(longest <= Some(80), "{longest:?} columns:\n{help}");
}

#[test]
fn the_version_is_that_of_the_package() {
    assert_eq!(text(["--version"]), format!("quipu {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_reader_or_listener_that_goes_away_ends_the_program_quietly() {
    let closed = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        writer
    };
    for (args, code) in [(&["designs"][..], 1), (&["--help"], 0)] {
        let output = Command::new(PROGRAM).args(args).stdout(closed()).output().unwrap();
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(code), ""), "{args:?}");
    }
    for args in [&["get", "nowhere", "key"][..], &["get"]] {
        let status = Command::new(PROGRAM).args(args).stderr(closed()).status().unwrap();
        assert_eq!(status.code(), Some(2), "{args:?}");
    }
}
