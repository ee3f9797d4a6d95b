//! Short soaks; `quipu soak` runs long ones.

use quipu::Design;
use quipu::internals::Twin;
use quipu_lab::soak::{SoakConfig, SoakReport, explore};

fn short(config: &SoakConfig) -> SoakReport {
    explore(config, &mut |_, _, _| {}).expect("a run")
}

#[test]
fn every_design_does_what_its_models_say() {
    for (number, design) in Design::ALL.iter().enumerate() {
        let report = short(&SoakConfig {
            design: *design,
            pools: 1,
            seed: 1 + number as u64,
            ..SoakConfig::default()
        });
        assert_eq!(report.violations, 0, "{:#?}", report.details);
        // Otherwise nothing was put at risk.
        assert!(report.calls > 6000 && report.freed_segments > 30, "{report:?}");
        assert_eq!(report.closed + report.dropped + report.abandoned, 6, "{report:?}");
    }
}

#[test]
fn pools_in_files_are_abandoned_and_go() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = Some(folder.path().to_owned());
    for design in [Design::QUIPU, Design::XP] {
        let report = short(&SoakConfig { design, pools: 1, folder: folder.clone(), ..SoakConfig::default() });
        assert_eq!((report.violations, &report.medium[..]), (0, "file"), "{:#?}", report.details);
    }
    assert_eq!(std::fs::read_dir(folder.expect("it is set")).expect("a folder").count(), 0);
}

/// Real threads: nothing says in which run they meet.
fn convicted(design: Design, twin: Twin, seeds: [u64; 3], pools: u64, faults: &[&str]) {
    for seed in seeds {
        let config = SoakConfig { design, seed, pools, twin: Some(twin), ..SoakConfig::default() };
        let report = short(&config);
        assert_eq!(report.violations, 1, "seed {seed}: {report:?}");
        let conviction = &report.details[0];
        println!("{twin:?}, seed {seed}: {conviction}");
        assert!(faults.iter().any(|fault| conviction.what.contains(fault)), "{conviction}");
        assert!(conviction.replay.ends_with(&format!(" --twin {}", twin.name())), "{conviction}");
    }
}

/// Tombstones go while older values of their keys remain.
#[test]
fn tombstones_that_go_early_are_convicted() {
    let faults = ["returned after it was deleted"];
    convicted(Design::QUIPU, Twin::TombstoneDroppedEarly, [1, 11, 21], 8, &faults);
}

/// Memory that a scan looks into is used again.
#[test]
fn memtables_that_are_retired_in_view_are_convicted() {
    convicted(Design::XP, Twin::RetiredInView, [1, 101, 201], 20, &[""]);
}
