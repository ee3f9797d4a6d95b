//! Transfers by transactions: after every crash all that committed is there, and the sum is right.

use super::{explored, run};
use quipu::Design;
use quipu::internals::Twin;
use quipu_lab::crash::{Broken, CrashConfig};

fn transfers(design: Design) -> CrashConfig {
    CrashConfig { design, transfers: true, threads: 3, ..CrashConfig::default() }
}

#[test]
fn no_crash_takes_a_part_of_a_transfer() {
    for design in Design::ALL.iter().copied().filter(|design| design.can().transactions) {
        let (report, of_states) = explored(CrashConfig { states: Some(1000), ..transfers(design) });
        of_states("behind ten commits", report.count("after_ten_commits") * 10 / 9, 1);
        of_states("nested", report.count("nested"), 20);
        of_states("during compaction", report.count("during_compaction"), 20);
        assert!(report.commits * 3 > report.operations, "{report:?}");
    }
}

/// Each of these charges must stand against a store that is broken in this way.
fn convicted(twin: Twin, charges: &[&str]) {
    let config = CrashConfig { twin: Some(Broken::Store(twin)), states: Some(500), ..transfers(Design::XP) };
    let report = run(&config);
    for charge in charges {
        let is_charged = report.details.iter().any(|violation| violation.what.contains(charge));
        assert!(is_charged, "{charge}: {:#?}", report.details);
    }
}

#[test]
fn a_commit_that_is_several_items_is_convicted() {
    convicted(Twin::BatchInPieces, &["is there in part", "; the sum of all accounts is"]);
}

/// Transactions that begin later do not see it.
#[test]
fn a_commit_that_returns_too_early_is_convicted() {
    convicted(Twin::AcknowledgedEarly, &["no prefix"]);
}
