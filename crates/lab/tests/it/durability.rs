//! `docs/DURABILITY.md` promises; this holds its table against what stores state, and its prose against the
//! code.

use quipu::{Durability, MediumKind, Options, Store, Survives};
use quipu_medium::{Pages, Region};

fn document() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/DURABILITY.md");
    std::fs::read_to_string(path).expect("docs/DURABILITY.md is part of the repository")
}

/// The answers of the first row that begins with these cells: process crash, OS crash, power loss.
fn promised(document: &str, medium: &str, durability: &str) -> Vec<String> {
    let row = document
        .lines()
        .find(|line| line.starts_with(&format!("| {medium}")) && line.contains(durability))
        .unwrap_or_else(|| panic!("no row for {medium} {durability}"));
    row.split('|').skip(3).take(3).map(|cell| cell.trim().to_string()).collect()
}

fn stated(store: &Store) -> Vec<&'static str> {
    let statement = store.statement();
    [statement.process_crash, statement.os_crash, statement.power_loss]
        .map(|answer| match answer.survives {
            Survives::Yes => "yes",
            Survives::No => "no",
            Survives::Unknown => "unknown",
        })
        .to_vec()
}

#[test]
fn a_file_survives_what_the_table_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options::new().size(4 << 20).medium(MediumKind::File);
    let store = Store::create(folder.path().join("pool"), &options).expect("a new pool");
    assert_eq!(stated(&store), promised(&document(), "`file`", "`process`"));
}

#[test]
fn memory_survives_what_the_table_says() {
    let region = Region::dram(4 << 20, Pages::Ordinary).expect("memory");
    let store = Store::create_on(region, &Options::default()).expect("a new pool");
    let promised = promised(&document(), "`dram`", "none");
    assert!(promised[0].starts_with(stated(&store)[0]), "{promised:?}");
    assert_eq!(stated(&store)[1..], promised[1..]);
}

#[test]
fn what_the_table_refuses_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(document().contains("| `file` | `interval`, `always` | refused"));
    for durability in [Durability::Interval { ms: 100 }, Durability::Always] {
        let options = Options::new().size(4 << 20).medium(MediumKind::File).durability(durability);
        let refused = Store::create(folder.path().join("pool"), &options);
        assert!(refused.is_err(), "{durability}");
    }
}

/// The order of persists that the document lists, counted on the simulator: a segment costs two fences to
/// open (its header, its commit bit) beside one for its first record, and nothing is fenced twice.
#[test]
fn the_fences_are_those_that_the_document_lists() {
    let region = Region::sim(quipu_medium::sim::SimOptions::default());
    let sim = region.simulator().expect("simulated").clone();
    let options = Options::new().zone_size(16 << 10);
    let store = Store::create_on(region, &options).expect("a new pool");
    let mut client = store.client();
    let fences = || sim.cost().fences;
    let before = fences();
    client.put(b"key", b"value").expect("room");
    let first = fences() - before;
    // The first change of a run also begins the run: one superblock update, and one fence before it, since
    // the copy that is overwritten next may still be in a cache.
    assert!((4..=5).contains(&first), "{first} fences for the first put of a run");
    let before = fences();
    client.put(b"key", b"other").expect("room");
    assert_eq!(fences() - before, 1);
}
