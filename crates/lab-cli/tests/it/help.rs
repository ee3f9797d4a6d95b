//! The help that people meet first.

use crate::PROGRAM;
use crate::program::*;
use std::process::Command;

#[test]
fn without_arguments_there_is_help() {
    let output = run::<&str>([]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("Usage: quipu-lab <COMMAND>"));
}

#[test]
fn every_help_shows_examples_and_defaults() {
    for command in [
        &["crash"][..],
        &["linear"],
        &["isolation"],
        &["kill"],
        &["soak"],
        &["bench"],
        &["bench", "ops"],
        &["bench", "ycsb"],
        &["bench", "steady"],
        &["bench", "util"],
        &["bench", "recovery"],
        &["bench", "index"],
        &["bench", "ring"],
        &["bench", "paper"],
    ] {
        let help = text(command.iter().chain(&["--help"]));
        assert!(help.contains("Examples:\n  quipu"), "{command:?}: {help}");
    }
    assert!(text(["--help"]).contains("Exit codes:"));
    assert!(text(["bench", "paper", "--help"]).contains("nothing is read off plots"));
    assert!(text(["bench", "recovery", "--help"]).contains("drops the store without closing it"));
}

#[test]
fn the_version_is_that_of_the_package() {
    assert_eq!(text(["--version"]), format!("quipu-lab {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_reader_that_goes_away_ends_the_program_quietly() {
    for (args, code) in [(&["crash", "--runs", "1"][..], 1), (&["--help"], 0)] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = Command::new(PROGRAM).args(args).stdout(writer).output().unwrap();
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(code), ""), "{args:?}");
    }
}
