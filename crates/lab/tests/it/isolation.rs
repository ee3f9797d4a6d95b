//! Transactions see of each other what their level promises, and stores that leave out a rule are convicted.
//!
//! `QUIPU_ISOLATION_TRANSACTIONS` judges more of each level than every change can afford; so does
//! `quipu-lab isolation`.

use quipu::internals::{Merging, Twin};
use quipu_lab::isolation::{IsolationConfig, IsolationReport, Level, explore};

/// Transactions of each level and kind of merging.
const TRANSACTIONS: u64 = 3000;

/// Those of each level on real threads.
const ON_THREADS: u64 = 600;

const MERGING: [Merging; 3] = [Merging::Direct, Merging::Key, Merging::Off];

fn asked() -> Option<u64> {
    std::env::var("QUIPU_ISOLATION_TRANSACTIONS").ok().and_then(|text| text.parse().ok())
}

fn run(config: &IsolationConfig) -> IsolationReport {
    let report = explore(config, &mut |_| {}).expect("the store works");
    println!("{report:?}");
    report
}

/// The level's promises hold in runs that try them: transactions met, and the store was at work beside them.
fn holds(level: Level) {
    let (mut lost_updates, mut skewed) = (0, 0);
    for merging in MERGING {
        let transactions = asked().unwrap_or(TRANSACTIONS);
        let config =
            IsolationConfig { level, merging: Some(merging), transactions, ..IsolationConfig::default() };
        let report = run(&config);
        assert_eq!(report.violations, 0, "{:#?}", report.details);
        assert!(report.committed > report.transactions / 3 && report.conflicts > 20, "{report:?}");
        assert!(report.dumped_bytes > 0, "{report:?}");
        // Memtables that have levels below them are dumped in place of being rewritten.
        assert!(report.moved_records > 0 || merging != Merging::Direct, "{report:?}");
        lost_updates += report.lost_updates;
        skewed += report.skewed;
    }
    assert_eq!(lost_updates > 50, level == Level::ReadCommitted, "{lost_updates} lost updates");
    assert_eq!(skewed > 20, level == Level::Snapshot, "{skewed} histories with write skew");
}

#[test]
fn read_committed_loses_updates_and_shows_nothing_uncommitted() {
    holds(Level::ReadCommitted);
}

#[test]
fn snapshots_have_write_skew_and_nothing_else() {
    holds(Level::Snapshot);
}

#[test]
fn serializable_transactions_have_an_order() {
    holds(Level::Serializable);
}

#[test]
fn on_real_threads() {
    for level in Level::ALL {
        let transactions = asked().unwrap_or(ON_THREADS);
        let config = IsolationConfig { level, threads: true, transactions, ..IsolationConfig::default() };
        let report = run(&config);
        assert_eq!(report.violations, 0, "{:#?}", report.details);
        assert!(report.conflicts > 0, "{report:?}");
    }
}

#[test]
fn a_seed_makes_the_same_history_again() {
    let config = IsolationConfig { transactions: 100, seed: 7, ..IsolationConfig::default() };
    let [one, other] = [&config, &config].map(run);
    assert_eq!(format!("{:?}", IsolationReport { seconds: 0.0, ..one }), {
        format!("{:?}", IsolationReport { seconds: 0.0, ..other })
    });
}

/// A key was put between the looks for its version and for its value, and deleted before the commit, which
/// went through: it was checked for absence.
#[test]
fn a_key_that_is_read_for_update_is_looked_up_as_a_whole() {
    for (merging, seed) in [
        (Merging::Direct, 616),
        (Merging::Key, 264),
        (Merging::Key, 300),
        (Merging::Off, 127),
        (Merging::Off, 237),
    ] {
        let config = IsolationConfig { merging: Some(merging), ..one(Level::ReadCommitted, seed) };
        let report = run(&config);
        assert_eq!(report.violations, 0, "{merging:?}: {:#?}", report.details);
    }
}

/// A broken store, the level at which it is convicted, the charge, and seeds of histories that convict it.
struct Row {
    twin: Twin,
    level: Level,
    charge: &'static str,
    seeds: [u64; 3],
}

/// The names of tests, and their rows.
macro_rules! twins {
    ($($name:ident: $twin:expr, $level:ident, $charge:expr, $seeds:expr;)*) => {
        const TWINS: &[Row] = &[$(Row {
            twin: $twin,
            level: Level::$level,
            charge: $charge,
            seeds: $seeds,
        }),*];
        $(#[test]
        fn $name() {
            convict($twin);
        })*
    };
}

twins! {
    checked_early: Twin::CheckedEarly, Snapshot, "a lost update", [2, 3, 4];
    checked_by_number: Twin::CheckedByNumber, Snapshot, "a conflict with nobody", [96, 123, 180];
    scan_not_repeated: Twin::ScanNotRepeated, Serializable, "a cycle with anti-dependencies", [4, 22, 34];
    own_writes_not_merged: Twin::OwnWritesNotMerged, Snapshot, "an own write not seen", [3, 4, 5];
    young_tombstone_dropped: Twin::YoungTombstoneDropped, Snapshot, "a lost update", [87, 1377, 1404];
    snapshot_forgotten: Twin::SnapshotForgotten, Snapshot, "read skew", [20, 42, 43];
}

impl Row {
    /// Whether the history of a seed convicts it of its own fault.
    fn is_convicted_by(&self, seed: u64) -> bool {
        let found = explore(&IsolationConfig { twin: Some(self.twin), ..one(self.level, seed) }, &mut |_| {});
        found.is_ok_and(|report| report.details.iter().any(|found| found.what.contains(self.charge)))
    }
}

/// Each of its seeds must convict a twin. A change of the engine or of the histories may make others of them:
/// then let [`search`] find some.
fn convict(twin: Twin) {
    let row = TWINS.iter().find(|row| row.twin == twin).expect("it has a row");
    for seed in row.seeds {
        assert!(row.is_convicted_by(seed), "{twin:?} is not convicted by seed {seed}");
        assert_eq!(run(&one(row.level, seed)).violations, 0, "seed {seed} without the twin");
    }
}

/// The history of a seed.
fn one(level: Level, seed: u64) -> IsolationConfig {
    IsolationConfig { level, seed, transactions: 1, ..IsolationConfig::default() }
}

/// Looks for seeds: of the twin that `QUIPU_TWIN` names, otherwise of all.
#[test]
#[ignore = "it looks for seeds to pin: cargo test -p quipu-lab --test it -- --ignored --nocapture isolation::search"]
fn search() {
    let asked = std::env::var("QUIPU_TWIN").ok();
    let is_asked = |row: &&Row| asked.as_deref().is_none_or(|name| name == row.twin.name());
    for row in TWINS.iter().filter(is_asked) {
        let seeds: Vec<_> = (1..20_000).filter(|seed| row.is_convicted_by(*seed)).take(3).collect();
        println!("{:?} at {}: {seeds:?}", row.twin, row.level);
    }
}
