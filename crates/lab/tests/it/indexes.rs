//! Indexes alone: every index of the house on every set of keys, and what a wrong one is told.

use quipu::MediumKind;
use quipu_bench::arguments::of_words;
use quipu_bench::choice::Named;
use quipu_bench::{BenchError, Config, Fault, Row, Silent, Sink};
use quipu_lab::bench::{
    Access, Contender, HouseIndex, IndexKind, IndexLoad, IndexRun, NoBulk, SCANNED, index_table, indexes,
};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

fn load(words: &str) -> IndexLoad {
    of_words(&words.split(' ').collect::<Vec<_>>())
}

fn measured<K: IndexKind>(medium: MediumKind, words: &str, kinds: &[K]) -> Result<Vec<Row>, BenchError> {
    let (load, mut rows) = (load(words), Vec::new());
    let config = load.apply(Config { medium, ..Config::default() });
    indexes(&config, &load, kinds, &Silent, &mut |row| rows.push(row))?;
    Ok(rows)
}

fn phases(index: HouseIndex, times: bool) -> Vec<&'static str> {
    let is_ordered = matches!(index, HouseIndex::Alex | HouseIndex::Masstree | HouseIndex::FastFair);
    let is_loaded = matches!(index, HouseIndex::Alex | HouseIndex::Masstree | HouseIndex::Hash);
    let mut phases = vec!["insert", "get", "get_many"];
    phases.extend(is_ordered.then_some("scan"));
    phases.push("remove");
    phases.extend(["bulk_load", "loaded_get"].iter().filter(|_| times && is_loaded));
    phases
}

/// Each index has its rows on each set of keys; `check` looks at each.
fn all_are_measured(medium: MediumKind, words: &str, sets: &[&str], check: impl Fn(&Row)) {
    let rows = measured(medium, words, HouseIndex::EVERY).unwrap();
    let mut rest = rows.iter();
    for set in sets {
        for index in HouseIndex::EVERY {
            for phase in phases(*index, medium != MediumKind::Sim) {
                let row = rest.next().expect("a row");
                let of = (row.keys, row.design.as_str(), row.phase.as_str());
                assert_eq!(of, (Some(*set), index.name(), phase));
                check(row);
            }
        }
    }
    assert_eq!(rest.next(), None);
}

const SETS: [&str; 9] =
    ["uniform", "longlat", "osm", "fb", "prefix", "sequential", "decimal8", "decimal16", "fields"];

#[test]
fn every_index_is_measured_on_every_set_of_keys() {
    all_are_measured(MediumKind::Dram, "--keys all --records 1000", &SETS, |row| {
        assert!(row.mops > Some(0.0) && row.fences_per_op.is_none(), "{row:?}");
        assert_eq!(row.pm_bytes_per_record.is_some(), ["insert", "bulk_load"].contains(&&*row.phase));
    });
    all_are_measured(MediumKind::Sim, "--keys all --records 500", &SETS, |row| {
        let is_in_dram = ["alex", "masstree", "hash", "cceh"].contains(&&*row.design);
        let changes = ["insert", "remove"].contains(&&*row.phase);
        assert!(row.mops.is_none() && (row.lines_read_per_op == Some(0.0)) == is_in_dram, "{row:?}");
        assert!((row.fences_per_op >= Some(1.0)) == (changes && !is_in_dram), "{row:?}");
    });
}

#[test]
fn threads_share_an_index_and_orders_are_kept() {
    let words = "--keys uniform --records 3k --threads 2 --order ascending";
    all_are_measured(MediumKind::Dram, words, &["uniform"], |row| {
        assert_eq!(row.threads, if row.phase == "bulk_load" { 1 } else { 2 });
        assert_eq!(row.order, Some("ascending"));
    });
}

#[test]
fn the_table_has_a_line_for_each_index_and_set() {
    let words = "--keys osm,fb,osm --records 200";
    let rows = measured(MediumKind::Dram, words, &[HouseIndex::Alex, HouseIndex::Cceh]).unwrap();
    let text = index_table(&rows);
    let lines: Vec<Vec<&str>> = text.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
    let named: Vec<_> = lines[1..].iter().map(|line| [line[0], line[1]]).collect();
    assert_eq!(named, [["osm", "alex"], ["osm", "cceh"], ["fb", "alex"], ["fb", "cceh"]]);
    assert!(
        text.contains("get of 32") && text.contains("scan of 100") && text.contains("bulk load"),
        "{text}"
    );
}

/// A map of numbers alone.
struct OfNumbers(Map);

impl Contender for OfNumbers {
    const ORDERED: bool = true;
    const ONLY_NUMBERS: bool = true;

    type Access<'c> = MapAccess<'c>;
    type Bulk = NoBulk;

    fn access(&self) -> MapAccess<'_> {
        self.0.access()
    }

    fn bulk(&self) -> Option<NoBulk> {
        None
    }

    fn load(bulk: &NoBulk) -> Result<OfNumbers, BenchError> {
        match *bulk {}
    }
}

struct NumbersKind;

impl IndexKind for NumbersKind {
    fn measure(&self, run: &IndexRun<'_>, sink: Sink<'_>) -> Result<(), BenchError> {
        let make = || Ok(OfNumbers(Map { map: Mutex::default(), broken: Broken::Not }));
        run.measure("numbers", make, sink)
    }
}

#[test]
fn orders_have_lines_of_their_own_and_what_is_not_run_says_why() {
    let words = "--keys sequential,fields --order multiplicative,random --records 200";
    let rows = measured(MediumKind::Dram, words, &[NumbersKind]).unwrap();
    let (run, not_run): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.not_run.is_none());
    assert!(run.iter().all(|row| row.keys == Some("sequential")) && run.len() == 10, "{run:?}");
    assert!(not_run.iter().all(|row| row.keys == Some("fields")) && not_run.len() == 2, "{not_run:?}");
    let text = index_table(&rows);
    let lines: Vec<Vec<&str>> = text.lines().skip(3).map(|line| line.split_whitespace().collect()).collect();
    let named: Vec<_> = lines.iter().map(|line| (line[0], line[1], line[2])).collect();
    let of = |keys, order| (keys, order, "numbers");
    let expected = [
        of("sequential", "multiplicative"),
        of("sequential", "random"),
        of("fields", "multiplicative"),
        of("fields", "random"),
    ];
    assert_eq!(named, expected, "{text}");
    assert!(lines[2].ends_with(&["its", "keys", "are", "numbers"]), "{text}");
}

#[test]
fn settings_without_a_batch_or_with_threads_on_the_simulator_are_refused() {
    let named = |medium, words: &str, name: &str| {
        let error = measured(medium, words, HouseIndex::EVERY).unwrap_err().to_string();
        assert!(error.starts_with(name), "{error}");
    };
    named(MediumKind::Dram, "--records 63 --threads 2", "records");
    named(MediumKind::Sim, "--records 1k --threads 2", "threads");
    named(MediumKind::Dram, "--records 200M --keys decimal8", "records");
}

/// A fault of an index, if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    /// It is sound.
    Not,
    /// It forgets some of its keys.
    Forgets,
    /// It tells the word of another key.
    Confuses,
    /// Batches do so.
    ConfusesInBatches,
    /// Scans tell two keys in the wrong order.
    Disorders,
    /// Scans end early.
    EndsEarly,
    /// Removed keys are found.
    Keeps,
}

struct Map {
    map: Mutex<BTreeMap<Vec<u8>, u64>>,
    broken: Broken,
}

struct MapAccess<'c> {
    map: MutexGuard<'c, BTreeMap<Vec<u8>, u64>>,
    broken: Broken,
}

impl IndexKind for Broken {
    fn measure(&self, run: &IndexRun<'_>, sink: Sink<'_>) -> Result<(), BenchError> {
        run.measure("map", || Ok(Map { map: Mutex::default(), broken: *self }), sink)
    }
}

impl Contender for Map {
    const ORDERED: bool = true;

    type Access<'c> = MapAccess<'c>;
    type Bulk = NoBulk;

    fn access(&self) -> MapAccess<'_> {
        MapAccess { map: self.map.lock().unwrap(), broken: self.broken }
    }

    fn bulk(&self) -> Option<NoBulk> {
        None
    }

    fn load(bulk: &NoBulk) -> Result<Map, BenchError> {
        match *bulk {}
    }
}

impl Access for MapAccess<'_> {
    fn insert(&mut self, key: &[u8], word: u64) -> Result<Option<u64>, BenchError> {
        Ok(self.map.insert(key.to_vec(), word))
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<u64>, BenchError> {
        Ok(match (self.map.get(key).copied(), self.broken) {
            (Some(100), Broken::Forgets) => None,
            (Some(100), Broken::Confuses) => Some(101),
            (found, _) => found,
        })
    }

    fn get_many(&mut self, keys: &[&[u8]], words: &mut Vec<Option<u64>>) -> Result<(), BenchError> {
        words.extend(keys.iter().map(|key| self.map.get(*key).copied()));
        if self.broken == Broken::ConfusesInBatches {
            words.swap(3, 4);
        }
        Ok(())
    }

    fn scan(&mut self, from: &[u8], words: &mut Vec<u64>) -> Result<(), BenchError> {
        let count = if self.broken == Broken::EndsEarly { SCANNED / 2 } else { SCANNED };
        words.extend(self.map.range(from.to_vec()..).take(count).map(|(_, word)| *word));
        if self.broken == Broken::Disorders {
            words[1..].reverse();
        }
        Ok(())
    }

    fn remove(&mut self, key: &[u8]) -> Result<Option<u64>, BenchError> {
        if self.broken == Broken::Keeps { self.get(key) } else { Ok(self.map.remove(key)) }
    }
}

#[test]
fn a_wrong_answer_ends_the_run() {
    let run = |broken: Broken| measured(MediumKind::Dram, "--records 1k", &[broken]);
    assert_eq!(run(Broken::Not).unwrap().len(), 5);
    let fault = |broken| match run(broken) {
        Err(BenchError::Fault { phase, fault, .. }) => (phase, fault),
        other => panic!("{broken:?} is not noticed: {other:?}"),
    };
    assert!(matches!(fault(Broken::Forgets), (phase, Fault::Missing(99)) if phase == "get"));
    let (phase, confused) = fault(Broken::Confuses);
    assert!(phase == "get" && matches!(confused, Fault::WrongWord { record: 99, found: 101 }));
    assert!(confused.to_string().contains("record 99 has the word 101"), "{confused}");
    assert_eq!(fault(Broken::ConfusesInBatches).0, "get_many");
    assert!(matches!(fault(Broken::Disorders), (_, Fault::Disorder(_))));
    assert!(matches!(fault(Broken::EndsEarly), (_, Fault::Count { found: 50, expected: 100 })));
    assert!(matches!(fault(Broken::Keeps), (_, Fault::Undead(_))));
}
