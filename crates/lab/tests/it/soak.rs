//! A short soak; `quipu soak` runs long ones.

use quipu::internals::Twin;
use quipu_lab::crash::Broken;
use quipu_lab::soak::{SoakConfig, SoakReport, explore};

fn short(config: SoakConfig) -> SoakReport {
    let folder = tempfile::tempdir().expect("a folder");
    let config = SoakConfig { pool: folder.path().join("pool"), ops: 20_000, clean: 6, unclean: 6, ..config };
    explore(&config, &mut |_| {}).expect("a run")
}

#[test]
fn what_is_deleted_stays_away_and_nothing_else_does() {
    for (seed, keys, threads) in [(1, 2000, 2), (2, 60, 3), (3, 400, 1)] {
        let report = short(SoakConfig { seed, keys, threads, ..SoakConfig::of("pool") });
        assert_eq!(report.violations, 0, "{:#?}", report.details);
        // Otherwise nothing was put at risk.
        assert!(report.freed_segments > 200 && report.moved_bytes > 100_000, "{report:?}");
        assert!(report.most_tombstone_bytes > 8 * report.tombstone_bytes, "{report:?}");
        assert_eq!((report.clean, report.unclean), (6, 6));
    }
}

/// The fault that this is for: tombstones go while older values of their keys remain.
#[test]
fn tombstones_that_go_early_are_convicted() {
    // Real threads: nothing says in which run a tombstone goes too early.
    let twin = Some(Broken::Store(Twin::TombstoneDroppedEarly));
    let run = |seed| (seed, short(SoakConfig { seed, twin, ..SoakConfig::of("pool") }));
    let convicted = (1..=8).map(run).find(|(_, report)| report.violations > 0);
    let (seed, report) = convicted.expect("one of eight runs convicts it");
    let conviction = &report.details[0];
    assert!(conviction.what.contains("returned after it was deleted"), "{conviction:?}");
    assert!(
        conviction.replay.ends_with(&format!("--seed {seed} --twin tombstone-dropped-early")),
        "{conviction:?}"
    );
}
