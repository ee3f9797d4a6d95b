//! Every design keeps every promise on every medium that this machine has.

use quipu_lab::contract::{Medium, judge};

/// Names a folder on a file system that maps persistent memory directly.
const DAX_FOLDER: &str = "QUIPU_DAX_FOLDER";

fn keeps_the_contract(medium: &Medium) {
    let filter = std::env::var("QUIPU_CONTRACT").unwrap_or_default();
    let failures = judge(medium, &filter);
    let listed: Vec<_> =
        failures.iter().map(|f| format!("\n  {} breaks {}: {}", f.design, f.check, f.what)).collect();
    assert!(failures.is_empty(), "on {medium:?}:{}", listed.concat());
}

#[test]
fn on_dram() {
    keeps_the_contract(&Medium::Dram);
}

#[test]
fn on_files() {
    let folder = tempfile::tempdir().unwrap();
    keeps_the_contract(&Medium::File(folder.path().to_owned()));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "fixtures clean up");
}

#[test]
fn on_the_simulator() {
    keeps_the_contract(&Medium::Sim);
}

#[test]
fn on_dax() {
    match std::env::var(DAX_FOLDER) {
        Ok(folder) => keeps_the_contract(&Medium::Dax(folder.into())),
        Err(_) => println!("skipped: {DAX_FOLDER} names no folder on a DAX file system"),
    }
}
