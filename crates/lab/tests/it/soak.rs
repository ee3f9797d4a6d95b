//! Short soaks; `quipu-lab soak` runs long ones.

use quipu::Design;
use quipu::internals::Twin;
use quipu_lab::soak::{SoakConfig, SoakReport, explore};
use std::thread;

fn short(config: &SoakConfig) -> SoakReport {
    explore(config, &mut |_, _, _| {}).expect("a run")
}

#[test]
fn every_design_does_what_its_models_say() {
    let lives_through = |number: usize| {
        let (design, seed) = (Design::ALL[number], 1 + number as u64);
        let report = short(&SoakConfig { design, pools: 1, seed, ..SoakConfig::default() });
        assert_eq!(report.violations, 0, "{:#?}", report.details);
        // Otherwise nothing was put at risk.
        assert!(report.calls > 6000 && report.freed_segments > 30, "{report:?}");
        assert_eq!(report.closed + report.dropped + report.abandoned, 6, "{report:?}");
    };
    // Threads that dawdle leave the processors to others.
    thread::scope(|scope| {
        for number in 0..Design::ALL.len() {
            scope.spawn(move || lives_through(number));
        }
    });
}

#[test]
fn pools_in_files_are_abandoned_and_go() {
    let folder = tempfile::tempdir().expect("a folder");
    for design in [Design::QUIPU, Design::XP] {
        let report = short(&SoakConfig {
            design,
            pools: 1,
            folder: Some(folder.path().to_owned()),
            ..SoakConfig::default()
        });
        assert_eq!((report.violations, &report.medium[..]), (0, "file"), "{:#?}", report.details);
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

/// What a broken store may answer to a call.
const WRONG: &[&str] =
    &["twice", "is lost", "another value", "returned after", "nobody wrote", "is refused", "panic"];

/// Real threads: nothing says in which pool they meet.
fn convicted(design: Design, twin: Twin, seed: u64, faults: &[&str]) {
    let config = SoakConfig { design, seed, pools: 200, twin: Some(twin), ..SoakConfig::default() };
    let report = short(&config);
    assert_eq!(report.violations, 1, "seed {seed}: {report:?}");
    let conviction = &report.details[0];
    println!("{twin:?}, seed {seed}, {:.1} s: {conviction}", report.seconds);
    assert!(faults.iter().any(|fault| conviction.what.contains(fault)), "{conviction}");
    assert!(conviction.replay.ends_with(&format!(" --twin {}", twin.name())), "{conviction}");
}

/// A client writes into a segment that the cleaner has taken.
#[test]
fn a_segment_that_is_written_to_while_it_is_cleaned_is_convicted() {
    convicted(Design::QUIPU, Twin::RevocationUnseen, 1, WRONG);
}

/// What a dump took below comes back from there.
#[test]
fn a_range_that_is_forgotten_early_is_convicted() {
    convicted(Design::XP, Twin::RangeForgottenEarly, 1, WRONG);
}

/// Tombstones go while older values of their keys remain. Of a large one the zones may be gone.
#[test]
#[ignore = "at night: cargo test -p quipu-lab --test it soak:: -- --ignored"]
fn tombstones_that_go_early_are_convicted() {
    let faults = ["returned after it was deleted", "is damaged: a large value"];
    convicted(Design::QUIPU, Twin::TombstoneDroppedEarly, 1, &faults);
}

/// Memory that a walk looks into is used again.
#[test]
#[ignore = "at night: cargo test -p quipu-lab --test it soak:: -- --ignored"]
fn memtables_that_are_retired_in_view_are_convicted() {
    for seed in [1, 1001, 2001] {
        convicted(Design::XP, Twin::RetiredInView, seed, WRONG);
    }
}
