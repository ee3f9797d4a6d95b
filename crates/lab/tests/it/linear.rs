//! Answers of every design to real threads fit one order of their calls, and broken stores are convicted.
//!
//! `QUIPU_LINEAR_HISTORIES` runs more histories than every change can afford; `quipu-lab linear` does so too.

use quipu::Design;
use quipu::internals::Twin;
use quipu_lab::linear::{Broken, Lie, LinearConfig, LinearReport, explore};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Calls meet only on processors that nobody else keeps busy, so one test runs at a time.
static PROCESSORS: Mutex<()> = Mutex::new(());

/// Operations that another thread's at the same key has met: without them a run proves nothing.
const MET: u64 = 2000;

fn run(config: &LinearConfig) -> LinearReport {
    let _alone = PROCESSORS.lock().unwrap_or_else(PoisonError::into_inner);
    let report = explore(config, &mut |_| {}).expect("the store works");
    println!("{report:?}");
    report
}

fn holds(folder: Option<PathBuf>, threads: usize, histories: u64, overlapping: u64) {
    let asked = std::env::var("QUIPU_LINEAR_HISTORIES").ok().and_then(|text| text.parse().ok());
    let histories = asked.unwrap_or(histories);
    for design in Design::ALL {
        let folder = folder.clone();
        let own = LinearConfig { design: *design, folder, threads, histories, ..LinearConfig::default() };
        let report = run(&LinearConfig { overlapping, ..own });
        assert_eq!((report.violations, report.undecided), (0, 0), "{:#?}", report.details);
        assert!(report.histories >= histories && report.overlapping >= overlapping, "{report:?}");
        // How often puts meet is up to the machine; `elimination.rs` lets them.
        assert!(report.eliminated == 0 || design.can().eliminates, "{report:?}");
    }
}

#[test]
fn in_memory() {
    holds(None, 2, 800, MET);
}

#[test]
fn in_memory_with_more_threads_than_processors() {
    holds(None, 5, 200, 300);
}

#[test]
fn in_files() {
    let folder = tempfile::tempdir().expect("a folder");
    holds(Some(folder.path().to_owned()), 2, 800, 300);
    assert_eq!(folder.path().read_dir().expect("it is there").count(), 0, "no pool is left behind");
}

/// Runs a broken store until it is convicted, of what only that fault can do.
fn convict(lie: Lie, charge: &str) {
    let twin = Some(Broken::Client(lie));
    convict_of(LinearConfig { histories: 200, twin, ..LinearConfig::default() }, 1, charge);
}

/// The same with any settings, and up to so many seeds.
fn convict_of(config: LinearConfig, seeds: u64, charge: &str) {
    let mut convictions = Vec::new();
    for seed in 1..=seeds {
        let report = run(&LinearConfig { seed, ..config.clone() });
        assert_eq!(report.details.is_empty(), report.violations == 0);
        if report.details.iter().any(|conviction| conviction.what.contains(charge)) {
            return;
        }
        convictions.extend(report.details);
    }
    let twin = config.twin.expect("a broken store");
    assert!(!convictions.is_empty(), "{twin} got away");
    panic!("{twin} is convicted, but not of its own fault: {convictions:#?}");
}

#[test]
fn stale_reads_are_convicted() {
    convict(Lie::StaleRead, "get, saw");
}

#[test]
fn late_puts_are_convicted() {
    convict(Lie::LatePut, "put value");
}

#[test]
fn split_updates_are_convicted() {
    convict(Lie::SplitUpdate, "update to");
}

#[test]
fn phantom_removes_are_convicted() {
    convict(Lie::PhantomRemove, "remove, told yes");
}

#[test]
fn a_cache_that_is_not_told_of_writes_is_convicted() {
    for design in [Design::QUIPU, Design::NSTORE] {
        let twin = Some(Broken::Store(Twin::CacheNotToldOfWrites));
        convict_of(LinearConfig { design, twin, histories: 200, ..LinearConfig::default() }, 1, "get, saw");
    }
}

#[test]
fn a_cache_that_is_filled_without_the_lock_of_a_key_is_convicted() {
    let (design, twin) = (Design::NSTORE, Some(Broken::Store(Twin::CacheFilledUnlocked)));
    convict_of(LinearConfig { design, twin, histories: 2000, ..LinearConfig::default() }, 400, "get, saw");
}

/// While it is off, writers pass it by.
#[test]
fn a_cache_that_keeps_its_pairs_while_it_is_off_is_convicted() {
    let (design, twin) = (Design::NSTORE, Some(Broken::Store(Twin::CacheNotEmptied)));
    convict_of(LinearConfig { design, twin, histories: 2000, ..LinearConfig::default() }, 400, "get, saw");
}

/// Two values of one thread's get around a put of its own: the put was eliminated for one that the thread had
/// seen.
#[test]
fn elimination_as_published_is_convicted() {
    let (design, twin) = (Design::MPKV, Some(Broken::Store(Twin::SeenWhileOnOffer)));
    // Between the moment at which a write can be seen and its end there is little time for a read and a put.
    convict_of(LinearConfig { design, twin, histories: 2000, ..LinearConfig::default() }, 400, "put value");
}
