//! The help that people meet first.

use crate::support::*;

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
        &["info"],
        &["check"],
        &["probe"],
        &["designs"],
        &["crash"],
        &["bench"],
        &["bench", "ops"],
        &["bench", "ycsb"],
        &["bench", "recovery"],
    ] {
        let help = text(command.iter().chain(&["--help"]));
        assert!(help.contains("Examples:\n  quipu "), "{command:?}: {help}");
    }
    assert!(text(["create", "--help"]).contains("[default: quipu]"));
    assert!(text(["bench", "ops", "--help"]).contains("[default: 200]"));
    assert!(text(["--help"]).contains("Exit codes:"));
}

#[test]
fn the_version_is_that_of_the_package() {
    assert_eq!(text(["--version"]), format!("quipu {}\n", env!("CARGO_PKG_VERSION")));
}
