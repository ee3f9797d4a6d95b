//! Each engine does through the interface what the runner takes for granted.
//!
//! RocksDB and pmemkv are the system's. Where one cannot be loaded its test says so on standard error, past
//! the harness, and measures nothing.

mod skip;

use quipu::MediumKind;
use quipu_bench::workload::Workload;
use quipu_bench::{BenchError, Config, Engine, EngineClient, OpenEngine, Silent};
use quipu_lab::bench::paper::Benchmark;
use quipu_lab::bench::{Keys, Overwrites};
use quipu_rivals::compare;
use quipu_rivals::engines::pmemkv::environment;
use quipu_rivals::engines::{
    Choice, Fjall, FjallOptimistic, Kind, Pmemkv, Redb, Rival, RocksDb, Setup, Sqlite,
};
use quipu_rivals::{Level, Place};
use skip::is_here;
use std::path::Path;
use std::process::Command;

fn choices(kind: Kind) -> Vec<Choice> {
    Choice::all().into_iter().filter(|choice| choice.kind == kind).collect()
}

fn tiny() -> Config {
    // Temporary folders are seldom in memory.
    let medium = MediumKind::File;
    Config {
        medium,
        records: 500,
        operations: 320,
        threads: 2,
        batch: 7,
        roofline: true,
        ..Config::default()
    }
}

/// All operations, at every level that the engine has.
fn does_what_it_should<E: Engine>(kind: Kind, make: impl Fn(Setup) -> E) {
    assert!(choices(kind).len() >= 2);
    does_at(&choices(kind), make);
}

fn does_at<E: Engine>(choices: &[Choice], make: impl Fn(Setup) -> E) {
    for choice in choices {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("place");
        let engine = make(choice.setup(&tiny(), Place::new(&path)));
        assert_eq!(engine.name(), choice.to_string());
        let opened = engine.create(10).unwrap();
        operations(&opened);
        assert_eq!(opened.has_transactions(), choice.kind.has_transactions());
        if opened.has_transactions() {
            no_transfer_is_lost(&opened);
        }
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

    let many = [(b"vicuna".to_vec(), b"finest".to_vec()), (b"llama".to_vec(), b"shorn".to_vec())];
    client.put_many(&many).unwrap();
    for (key, expected) in &many {
        assert!(other.get_into(key, &mut value).unwrap());
        assert_eq!(&value, expected, "with the others, over an older one too");
    }
    other.delete(b"vicuna").unwrap();
    if opened.is_ordered() {
        scans(&mut client);
    }

    assert!(client.remove(b"llama").unwrap());
    assert!(!client.remove(b"llama").unwrap());
    client.delete(b"alpaca").unwrap();
    client.delete(b"alpaca").unwrap();
    assert!(!other.get_into(b"llama", &mut value).unwrap());
    assert!(!other.get_into(b"alpaca", &mut value).unwrap());
    assert!(opened.records().is_none_or(|records| records == 100));
}

/// Numbers from 0 to 99, then alpaca and llama.
fn scans(client: &mut impl EngineClient) {
    let mut scan = |from: &[u8], count: usize| {
        let mut keys = Vec::new();
        let found = client.scan(from, count, |key, value| keys.push((key.to_vec(), value.len()))).unwrap();
        assert_eq!(found, keys.len());
        keys
    };
    let numbers = |range: std::ops::Range<u32>| range.map(|number| (number.to_be_bytes().to_vec(), 300));
    assert!(scan(&17u32.to_be_bytes(), 5).into_iter().eq(numbers(17..22)));
    assert!(
        scan(&[0, 0, 0, 7, 0], 3).into_iter().eq(numbers(8..11)),
        "from the next one where there is none"
    );
    let end = [(b"alpaca".to_vec(), 0), (b"llama".to_vec(), 5)];
    assert!(scan(b"", 1000).into_iter().eq(numbers(0..100).chain(end.clone())));
    assert_eq!(scan(b"alpaca", 5), end);
    assert!(scan(b"m", 5).is_empty() && scan(b"", 0).is_empty());
}

/// Two threads move ones from the same account to the same other, at every turn from what they have read.
fn no_transfer_is_lost(opened: &impl OpenEngine) {
    const EACH: u64 = 40;
    let add = |value: &mut [u8], by: u64| {
        let old = u64::from_le_bytes((&*value).try_into().unwrap());
        value.copy_from_slice(&old.wrapping_add(by).to_le_bytes());
    };
    let mut client = opened.client();
    for key in [b"debit".as_slice(), b"credit"] {
        client.put(key, &1000u64.to_le_bytes()).unwrap();
    }
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = opened.client();
                let mut change = |from: &mut [u8], to: &mut [u8]| {
                    add(from, u64::MAX);
                    add(to, 1);
                };
                for _ in 0..EACH {
                    assert!(client.transfer(b"debit", b"credit", &mut change).unwrap() >= 1);
                }
            });
        }
    });
    let mut value = Vec::new();
    for (key, expected) in [(b"debit".as_slice(), 1000 - 2 * EACH), (b"credit", 1000 + 2 * EACH)] {
        assert!(client.get_into(key, &mut value).unwrap());
        assert_eq!(value, expected.to_le_bytes());
    }
}

/// The runner's own checks: every value read, counts, what was deleted.
fn runs_every_benchmark(kind: Kind) {
    // Syncs are slow on a disk, and the runner does not care about the level.
    let weak = |choice: &Choice| choice.level != Level::Power;
    runs_at(&choices(kind).into_iter().filter(weak).collect::<Vec<_>>());
}

fn runs_at(chosen: &[Choice]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("place");
    let workload = |letter: &str| {
        let published = Workload::published(letter).unwrap();
        Benchmark::Ycsb(Box::new(Workload { records: 300, operations: 400, ..published }))
    };
    let ordered = chosen.iter().all(|choice| choice.kind.is_ordered());
    let scans: &[&str] = if ordered { &["scan", "scan_some"] } else { &[] };
    let (reads, changes) = (["insert", "get", "get_in_loop", "get_many"], ["update", "update_in_loop"]);
    let phases = [&reads[..], scans, &changes, &["blind_delete", "remove"]].concat();
    for (benchmark, phases) in [
        (Benchmark::Ops, phases),
        (workload("d"), vec!["load_d", "run_d"]),
        (workload("e"), vec!["load_e", "run_e"]),
        (
            Benchmark::Util(Overwrites { keys: vec![Keys::Etc], put: 50, ..Overwrites::default() }),
            vec!["util"],
        ),
    ] {
        if benchmark.needs_order() && !ordered {
            continue;
        }
        let mut rows = Vec::new();
        let sink = &mut |choice: &Choice, row: quipu_bench::Row| rows.push((choice.to_string(), row));
        compare::run(chosen, &benchmark, &tiny(), &Place::new(&path), &Silent, sink).unwrap();
        assert_eq!(rows.len(), chosen.len() * phases.len());
        for (number, (name, row)) in rows.iter().enumerate() {
            assert_eq!((&row.design, row.phase.as_str()), (name, phases[number % phases.len()]));
            assert!(row.mops.unwrap() > 0.0 && row.p999_ns >= row.p50_ns);
            assert!(row.roofline.unwrap() > 0.0);
            let batched = ["insert", "update", "update_in_loop", "load_d", "load_e", "util"]
                .contains(&row.phase.as_str());
            assert_eq!(row.batch, batched.then_some(7));
        }
        assert!(!path.exists());
    }
}

/// The sum at the end is the runner's own check.
fn transfers(kind: Kind) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("place");
    let weak = |choice: &Choice| choice.level != Level::Power;
    let chosen: Vec<Choice> = choices(kind).into_iter().filter(weak).collect();
    let config = Config { seconds: Some(1), roofline: false, ..tiny() };
    let mut rows = Vec::new();
    let sink = &mut |_: &Choice, row: quipu_bench::Row| rows.push(row);
    compare::run(&chosen, &Benchmark::Transfers { few: 3 }, &config, &Place::new(&path), &Silent, sink)
        .unwrap();
    assert!(!path.exists());
    let phases = ["four_calls", "transaction", "few_accounts"];
    assert_eq!(rows.len(), chosen.len() * phases.len());
    for (number, row) in rows.iter().enumerate() {
        assert_eq!(row.phase, phases[number % phases.len()]);
        assert!(row.mops.unwrap() > 0.0);
        assert_eq!(row.tries_per_op.is_some_and(|tries| tries >= 1.0), row.phase != "four_calls");
        assert_eq!(row.least_share.is_some(), row.phase == "few_accounts");
    }
}

#[test]
fn redb() {
    does_what_it_should(Kind::Redb, Rival::<Redb>::new);
    runs_every_benchmark(Kind::Redb);
    transfers(Kind::Redb);
}

#[test]
fn sqlite() {
    does_what_it_should(Kind::Sqlite, Rival::<Sqlite>::new);
    runs_every_benchmark(Kind::Sqlite);
    transfers(Kind::Sqlite);
}

#[test]
fn fjall() {
    does_what_it_should(Kind::Fjall, Rival::<Fjall>::new);
    runs_every_benchmark(Kind::Fjall);
}

#[test]
fn fjall_with_transactions() {
    does_what_it_should(Kind::FjallOptimistic, Rival::<FjallOptimistic>::new);
    runs_every_benchmark(Kind::FjallOptimistic);
    transfers(Kind::FjallOptimistic);
}

#[test]
fn rocksdb() {
    if is_here(Kind::RocksDb) {
        does_what_it_should(Kind::RocksDb, Rival::<RocksDb>::new);
        runs_every_benchmark(Kind::RocksDb);
    }
}

#[test]
fn rocksdb_with_transactions() {
    for kind in [Kind::RocksDbOptimistic, Kind::RocksDbLocking] {
        if is_here(kind) {
            does_what_it_should(kind, Rival::<RocksDb>::new);
            runs_every_benchmark(kind);
            transfers(kind);
        }
    }
}

#[test]
fn rocksdb_without_transactions_refuses_them() {
    if !is_here(Kind::RocksDb) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let choice: Choice = "rocksdb:memory".parse().unwrap();
    let setup = choice.setup(&tiny(), Place::new(&folder.path().join("place")));
    let opened = Rival::<RocksDb>::new(setup).create(10).unwrap();
    let refused = opened.client().transfer(b"llama", b"alpaca", &mut |_, _| ());
    assert!(refused.unwrap_err().to_string().contains("without transactions"));
}

#[test]
fn the_log_of_rocksdb_stands_where_it_is_wanted() {
    if !is_here(Kind::RocksDb) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [path, log] = ["place", "log"].map(|name| folder.path().join(name));
    let place = Place::new(&path).with_log(Some(log.clone()));
    let choice: Choice = "rocksdb:process".parse().unwrap();
    let engine = Rival::<RocksDb>::new(choice.setup(&tiny(), place.clone()));
    let opened = engine.create(10).unwrap();
    opened.client().put(b"llama", b"wool").unwrap();
    let logs = |folder: &Path| {
        let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        files.filter(|file| file.extension().is_some_and(|end| end == "log")).count()
    };
    assert_eq!((logs(&log), logs(&path)), (1, 0));
    drop(opened);
    engine.remove().unwrap();
    assert!(!log.exists() && !path.exists());

    std::fs::create_dir(&log).unwrap();
    assert!(engine.create(10).is_err(), "a folder that is taken is not used");
    assert!(log.exists() && !path.exists());
}

#[test]
fn a_log_in_memory_survives_no_power_loss_whatever_is_synced() {
    let folder = tempfile::tempdir().unwrap();
    let log = tempfile::Builder::new().tempdir_in("/dev/shm").unwrap();
    let place = Place::new(&folder.path().join("place"));
    let survives = |name: &str, place: &Place| {
        compare::survival(&name.parse().unwrap(), &tiny(), place).unwrap().power_loss
    };
    assert_eq!(survives("rocksdb:power", &place), "yes");
    let place = place.with_log(Some(log.path().join("log")));
    assert_eq!((survives("rocksdb:power", &place), survives("redb:power", &place)), ("no", "yes"));
}

/// Its libraries read their environment when they are loaded, so each level gets a process of its own: this
/// test once more, which then finds the environment that it needs.
#[test]
fn pmemkv() {
    let fits = |choice: &Choice| environment::fits(choice.level, tiny().medium);
    let levels = choices(Kind::Pmemkv);
    assert_eq!(levels.len(), 2);
    if let Some(choice) = levels.iter().find(|choice| fits(choice)) {
        does_at(&[*choice], Rival::<Pmemkv>::new);
        if choice.level == Level::Process {
            runs_at(&[*choice]);
        }
    } else if is_here(Kind::Pmemkv) {
        for choice in levels {
            let mut again = Command::new(std::env::current_exe().unwrap());
            for (name, value) in environment::wanted(choice.level, tiny().medium) {
                match value {
                    Some(value) => again.env(name, value),
                    None => again.env_remove(name),
                };
            }
            let output = again.args(["--exact", "pmemkv"]).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && text.contains("1 passed"), "{choice}: {text}");
        }
    }
}

#[test]
fn pmemkv_is_refused_where_it_would_persist_in_another_way() {
    let choice: Choice = "pmemkv:process".parse().unwrap();
    if environment::fits(choice.level, tiny().medium) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let setup = choice.setup(&tiny(), Place::new(&folder.path().join("place")));
    let Err(error) = Rival::<Pmemkv>::new(setup).create(10) else { panic!("it was created") };
    assert!(error.to_string().contains("env PMEM_IS_PMEM_FORCE=1 PMEM_NO_FLUSH=1 "), "{error}");
}

#[test]
fn our_own_designs_are_measured_in_the_same_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("place");
    let choice: Choice = "quipu".parse().unwrap();
    let survival = compare::survival(&choice, &tiny(), &Place::new(&path)).unwrap();
    assert_eq!(survival.process_crash, "yes");
    let weaker = compare::survival(&"redb:memory".parse().unwrap(), &tiny(), &Place::new(&path)).unwrap();
    assert_eq!(weaker.process_crash, "no");
    let mut rows = 0;
    compare::run(&[choice], &Benchmark::Ops, &tiny(), &Place::new(&path), &Silent, &mut |_, _| rows += 1)
        .unwrap();
    assert_eq!(rows, 6);
    assert!(!path.exists());
}

#[test]
fn what_is_in_the_way_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine"), "precious").unwrap();
    for choice in ["redb", "fjall", "quipu"] {
        let choice: Choice = choice.parse().unwrap();
        let run =
            |place: Place| compare::run(&[choice], &Benchmark::Ops, &tiny(), &place, &Silent, &mut |_, _| ());
        assert!(matches!(
            run(Place::new(folder.path())).unwrap_err(),
            BenchError::File { .. } | BenchError::Store { .. }
        ));
        assert_eq!(std::fs::read(folder.path().join("mine")).unwrap(), b"precious");
    }
}
