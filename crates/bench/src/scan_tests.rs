//! A scan that reads something else than it claims is found out.

use super::*;
use crate::workload::Workload;
use crate::{Config, OpsPhase, Silent, ops_of, ycsb_of};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

/// A fault of the scans of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    /// Nothing.
    None,
    /// They begin behind the key that they are asked for.
    Late,
    /// They end early.
    Short,
    /// A pair is shown before the one that comes before it.
    Swapped,
    /// A pair is shown twice.
    Twice,
    /// A value is another record's.
    Foreign,
    /// A value is damaged.
    Damaged,
    /// One pair is left out, and another shown for it.
    Hole,
}

/// Position of the pair that is wrong: the last of the shortest scan but one.
const WRONG: usize = 98;

type Map = Arc<Mutex<BTreeMap<Vec<u8>, Vec<u8>>>>;

struct Liar(Lie);

struct Opened(Map, Lie);

impl Engine for Liar {
    type Opened = Opened;

    fn name(&self) -> &str {
        "liar"
    }

    fn create(&self, _records: u64) -> Result<Opened, BenchError> {
        Ok(Opened(Map::default(), self.0))
    }

    fn remove(&self) -> Result<(), BenchError> {
        Ok(())
    }
}

impl OpenEngine for Opened {
    type Client = Opened;

    fn client(&self) -> Opened {
        Opened(Arc::clone(&self.0), self.1)
    }

    fn records(&self) -> Option<u64> {
        Some(self.0.lock().unwrap().len() as u64)
    }

    fn pool_bytes(&self) -> u64 {
        0
    }

    fn is_ordered(&self) -> bool {
        true
    }
}

impl EngineClient for Opened {
    type Error = Infallible;

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Infallible> {
        self.0.lock().unwrap().insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn get_into(&mut self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Infallible> {
        let map = self.0.lock().unwrap();
        let found = map.get(key);
        out.clear();
        out.extend_from_slice(found.map_or(&[], Vec::as_slice));
        Ok(found.is_some())
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), Infallible> {
        self.0.lock().unwrap().remove(key);
        Ok(())
    }

    fn scan(
        &mut self,
        from: &[u8],
        count: usize,
        mut each: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, Infallible> {
        let map = self.0.lock().unwrap();
        let spare = count.saturating_add(1);
        let mut pairs: Vec<_> = map.range(from.to_vec()..).take(spare).collect();
        if pairs.len() > WRONG + 2 {
            match self.1 {
                Lie::None => {}
                Lie::Late => _ = pairs.remove(0),
                Lie::Short => pairs.truncate(WRONG),
                Lie::Swapped => pairs.swap(WRONG - 1, WRONG),
                Lie::Twice => pairs[WRONG] = pairs[WRONG - 1],
                Lie::Foreign => pairs[WRONG].1 = pairs[0].1,
                Lie::Damaged => {}
                Lie::Hole => _ = pairs.remove(WRONG),
            }
        }
        pairs.truncate(count);
        for (at, (key, value)) in pairs.iter().enumerate() {
            let mut value = (*value).clone();
            if at == WRONG && self.1 == Lie::Damaged {
                *value.last_mut().unwrap() ^= 1;
            }
            each(key, &value);
        }
        Ok(pairs.len())
    }
}

/// The phase and the fault of scans, in `ops` and in YCSB's workload E.
fn faults(lie: Lie) -> [Option<(String, Fault)>; 2] {
    let config =
        Config { records: 2_000, operations: 20_000, phases: vec![OpsPhase::Scan], ..Config::default() };
    let scans = Workload { records: 2_000, operations: 1_000, ..Workload::published("e").unwrap() };
    let sink = &mut |_| ();
    let run = [
        ops_of(&config, &Liar(lie), None, &Silent, sink),
        ycsb_of(&config, &scans, &Liar(lie), None, &Silent, sink),
    ];
    run.map(|result| match result {
        Ok(()) => None,
        Err(BenchError::Fault { phase, fault, .. }) => Some((phase, fault)),
        Err(error) => panic!("{error}"),
    })
}

#[test]
fn honest_scans_pass() {
    assert!(faults(Lie::None).iter().all(Option::is_none));
}

#[test]
fn each_lie_is_found_by_the_scan_that_tells_it() {
    for lie in [Lie::Late, Lie::Short, Lie::Swapped, Lie::Twice, Lie::Foreign, Lie::Damaged, Lie::Hole] {
        for (found, phase) in faults(lie).into_iter().zip(["scan", "run_e"]) {
            let (at, fault) = found.unwrap_or_else(|| panic!("{lie:?} is not noticed in {phase}"));
            assert_eq!(at, phase, "{lie:?}");
            let is_it = match lie {
                Lie::None => false,
                Lie::Late | Lie::Short => matches!(fault, Fault::Missing(_)),
                Lie::Swapped | Lie::Twice => matches!(fault, Fault::Disorder(_)),
                Lie::Foreign | Lie::Damaged => matches!(fault, Fault::WrongValue(..)),
                Lie::Hole => matches!(fault, Fault::Count { .. }),
            };
            assert!(is_it, "{lie:?} in {phase}: {fault:?}");
        }
    }
}

#[test]
fn pairs_are_copied_one_behind_the_other() {
    let mut pairs = Pairs::default();
    let all: [(&[u8], &[u8]); 3] = [(b"a", b"first"), (b"", b""), (b"bc", b"")];
    for _ in 0..2 {
        pairs.clear();
        all.iter().for_each(|(key, value)| pairs.push(key, value));
        assert!(pairs.iter().eq(all));
    }
}
