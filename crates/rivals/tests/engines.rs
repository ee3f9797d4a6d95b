//! Each engine does through the interface what the runner takes for granted.
//!
//! RocksDB is the system's, so its test runs only where it is asked for: `cargo test -- --include-ignored`.

use quipu::MediumKind;
use quipu_lab::bench::{BenchError, Config, Engine, EngineClient, OpenEngine, Silent};
use quipu_lab::workload::Workload;
use quipu_rivals::compare::{self, Benchmark};
use quipu_rivals::engines::{Choice, Fjall, Kind, Redb, RocksDb, Setup};
use quipu_rivals::{Level, Place};
use std::path::Path;

fn choices(kind: Kind) -> Vec<Choice> {
    Choice::all().into_iter().filter(|choice| choice.kind == kind).collect()
}

fn tiny() -> Config {
    // Temporary folders are seldom in memory.
    let medium = MediumKind::File;
    Config { medium, records: 500, operations: 320, threads: 2, roofline: true, ..Config::default() }
}

/// All operations, at every level that the engine has.
fn does_what_it_should<E: Engine>(kind: Kind, make: impl Fn(Setup) -> E) {
    assert!(choices(kind).len() >= 2);
    for choice in choices(kind) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("place");
        let engine = make(choice.setup(&tiny(), Place::new(&path)));
        assert_eq!(engine.name(), choice.to_string());
        let opened = engine.create(10).unwrap();
        operations(&opened);
        assert!(opened.pool_bytes() > 0);
        assert!(engine.create(10).is_err(), "a place that is taken is not used again");
        drop(opened);
        assert!(path.exists());
        engine.remove().unwrap();
        assert!(!path.exists());
    }
}

fn operations(opened: &impl OpenEngine) {
    let mut client = opened.client();
    let mut value = b"left over".to_vec();
    assert!(!client.get_into(b"llama", &mut value).unwrap());
    assert!(value.is_empty());
    client.put(b"llama", b"wool").unwrap();
    client.put(b"alpaca", b"").unwrap();
    // Seen by another thread's client at once, not only by one's own.
    let mut other = opened.client();
    assert!(other.get_into(b"llama", &mut value).unwrap());
    assert_eq!(value, b"wool");
    other.put(b"llama", b"finer wool").unwrap();
    assert!(client.get_into(b"llama", &mut value).unwrap());
    assert_eq!(value, b"finer wool");
    assert!(client.get_into(b"alpaca", &mut value).unwrap());
    assert!(value.is_empty(), "an empty value is not an absent one");

    for number in 0..100u32 {
        client.put(&number.to_be_bytes(), &[number as u8; 300]).unwrap();
    }
    assert!(opened.records().is_none_or(|records| records == 102));
    let keys: Vec<Vec<u8>> = (0..103u32).rev().map(|number| number.to_be_bytes().to_vec()).collect();
    let mut seen = Vec::new();
    client.get_many(&keys, |position, found| seen.push((position, found.map(<[u8]>::to_vec)))).unwrap();
    assert_eq!(seen.len(), keys.len());
    for (nth, (position, found)) in seen.into_iter().enumerate() {
        assert_eq!(position, nth, "in order");
        let number = 102 - nth;
        assert_eq!(found, (number < 100).then(|| vec![number as u8; 300]));
    }

    assert!(client.remove(b"llama").unwrap());
    assert!(!client.remove(b"llama").unwrap());
    client.delete(b"alpaca").unwrap();
    client.delete(b"alpaca").unwrap();
    assert!(!other.get_into(b"llama", &mut value).unwrap());
    assert!(!other.get_into(b"alpaca", &mut value).unwrap());
    assert!(opened.records().is_none_or(|records| records == 100));
}

/// The runner's own checks: every value read, counts, what was deleted.
fn runs_every_benchmark(kind: Kind) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("place");
    let workload = Workload { records: 300, operations: 400, ..Workload::published("d").unwrap() };
    for (benchmark, phases) in [
        (Benchmark::Ops, vec!["insert", "get", "get_many", "update", "delete", "remove"]),
        (Benchmark::Ycsb(workload), vec!["load_d", "run_d"]),
    ] {
        // Syncs are slow on a disk, and the runner does not care about the level.
        let chosen: Vec<Choice> =
            choices(kind).into_iter().filter(|choice| choice.level != Level::Power).collect();
        let mut rows = Vec::new();
        let sink = &mut |choice: &Choice, row: quipu_lab::bench::Row| rows.push((choice.to_string(), row));
        compare::run(&chosen, &benchmark, &tiny(), &path, &Silent, sink).unwrap();
        assert_eq!(rows.len(), chosen.len() * phases.len());
        for (number, (name, row)) in rows.iter().enumerate() {
            assert_eq!((&row.design, row.phase.as_str()), (name, phases[number % phases.len()]));
            assert!(row.mops.unwrap() > 0.0 && row.p999_ns >= row.p50_ns);
            assert!(row.roofline.unwrap() > 0.0);
        }
        assert!(!path.exists());
    }
}

#[test]
fn redb() {
    does_what_it_should(Kind::Redb, Redb::new);
    runs_every_benchmark(Kind::Redb);
}

#[test]
fn fjall() {
    does_what_it_should(Kind::Fjall, Fjall::new);
    runs_every_benchmark(Kind::Fjall);
}

#[test]
#[ignore = "needs the system's RocksDB, on Debian librocksdb-dev"]
fn rocksdb() {
    does_what_it_should(Kind::RocksDb, RocksDb::new);
    runs_every_benchmark(Kind::RocksDb);
}

#[test]
fn our_own_designs_are_measured_in_the_same_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("place");
    let choice: Choice = "quipu".parse().unwrap();
    let survival = compare::survival(&choice, &tiny(), &path).unwrap();
    assert_eq!(survival.process_crash, "yes");
    let weaker = compare::survival(&"redb:memory".parse().unwrap(), &tiny(), &path).unwrap();
    assert_eq!(weaker.process_crash, "no");
    let mut rows = 0;
    compare::run(&[choice], &Benchmark::Ops, &tiny(), &path, &Silent, &mut |_, _| rows += 1).unwrap();
    assert_eq!(rows, 5);
    assert!(!path.exists());
}

#[test]
fn what_is_in_the_way_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine"), "precious").unwrap();
    for choice in ["redb", "fjall", "quipu"] {
        let choice: Choice = choice.parse().unwrap();
        let run =
            |path: &Path| compare::run(&[choice], &Benchmark::Ops, &tiny(), path, &Silent, &mut |_, _| ());
        assert!(matches!(
            run(folder.path()).unwrap_err(),
            BenchError::File { .. } | BenchError::Store { .. }
        ));
        assert_eq!(std::fs::read(folder.path().join("mine")).unwrap(), b"precious");
    }
}
