//! The oracle of the crash tests of the CCEH index: whether a crash image agrees with what every key may be.

use super::support::mix;
use crate::crashes::{self, Answers, Expected, Known, Model, Way, explained};
use quipu_medium::Region;
use quipu_parts::epoch::{Collector, Guard};
use quipu_parts::index::IndexError;
use quipu_parts::index::cceh::{CcehIndex, CcehSettings, Cursor, Name, NodeMemory, PmNodes};
use quipu_parts::index::{InPool, IndexRoot};
use quipu_parts::space::{Space, ZoneId};
use std::sync::Arc;
use std::sync::Mutex;

const VERSIONS: u64 = 1 << 20;
/// Set in references to copies that a cleaner has made.
pub const COPY: u64 = 1 << 60;

/// Hashes that all name the same bucket, so that a handful of keys makes a segment split.
pub fn hash_of(key: u64) -> u64 {
    mix(key) & !0x1FE | 0x6
}

pub fn reference(key: u64, version: u64) -> u64 {
    (key + 1) * VERSIONS + version
}

pub fn get<M: NodeMemory>(index: &CcehIndex<M>, guard: &Guard<'_>, key: u64) -> Option<u64> {
    let found = index.get(guard, hash_of(key), |reference| (reference & !COPY) / VERSIONS == key + 1);
    found.map(|reference| reference & !COPY)
}

/// How the index is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Twin {
    /// Not at all.
    Sound,
    /// The value word is stored before the hash word.
    ValueFirst,
    /// Readers act on words without a mark.
    NoHelp,
    /// Writers do not make entries durable.
    NoFlush,
    /// Removed and changed entries keep their mark meanwhile.
    MarkKept,
    /// Entries that are changed by the batch are not flushed.
    NoBatch,
}

/// The memory of an index in PM, broken or not.
pub struct Nodes {
    nodes: PmNodes,
    twin: Twin,
    /// A hash word that waits for its value word.
    held: Mutex<Option<(u64, u64)>>,
}

impl Nodes {
    pub fn zones(&self) -> usize {
        self.nodes.zones().len()
    }
}

impl NodeMemory for Nodes {
    const MARK: u64 = PmNodes::MARK;

    fn load(&self, place: u64) -> u64 {
        self.nodes.load(place)
    }

    fn store(&self, place: u64, word: u64) {
        let is_hash = place.is_multiple_of(16);
        match self.twin {
            Twin::ValueFirst if is_hash && word & Self::MARK == 0 => {
                *self.held.lock().expect("no panic") = Some((place, word));
            }
            Twin::MarkKept if is_hash => self.nodes.store(place, word | Self::MARK),
            _ => self.nodes.store(place, word),
        }
        let held = if is_hash { None } else { self.held.lock().expect("no panic").take() };
        if let Some((place, word)) = held {
            self.nodes.store(place, word);
        }
    }

    fn flush(&self, place: u64, len: u64) {
        if self.twin != Twin::NoBatch {
            self.nodes.flush(place, len);
        }
    }

    fn fence(&self) {
        self.nodes.fence();
    }

    fn persist(&self, place: u64, len: u64) {
        if self.twin != Twin::NoFlush {
            self.nodes.persist(place, len);
        }
    }

    fn help(&self, place: u64, len: u64) {
        if self.twin != Twin::NoHelp {
            self.nodes.help(place, len);
        }
    }

    fn prefetch(&self, place: u64) {
        self.nodes.prefetch(place);
    }

    fn prefetch_to_write(&self, place: u64) {
        self.nodes.prefetch_to_write(place);
    }

    fn allocate(&self, name: Name, words: &[u64]) -> Result<u64, IndexError> {
        self.nodes.allocate(name, words)
    }

    fn narrow(&self, segment: u64, name: Name) {
        self.nodes.narrow(segment, name);
    }

    fn make_room(&self, segments: usize) -> Result<(), IndexError> {
        self.nodes.make_room(segments)
    }

    fn chained(&self) -> (u32, bool) {
        (0, false)
    }

    fn dram_bytes(&self) -> u64 {
        self.nodes.dram_bytes()
    }

    fn pm_bytes(&self) -> u64 {
        self.nodes.pm_bytes()
    }

    fn repair(&self, begin: impl FnOnce()) {
        self.nodes.repair(begin);
    }

    fn zones(&self) -> Vec<ZoneId> {
        self.nodes.zones()
    }
}

/// The index of a root as it is after a crash, or as a twin of it would be.
pub fn open(
    space: &Arc<Space>,
    root: IndexRoot,
    settings: CcehSettings,
    twin: Twin,
) -> Result<CcehIndex<Nodes>, IndexError> {
    let (nodes, segments) = PmNodes::examine(space.clone(), root, 0)?;
    nodes.repair(|| ());
    Ok(CcehIndex::over(Nodes { nodes, twin, held: Mutex::new(None) }, settings, &segments))
}

/// A pool and what is in it.
#[derive(Clone, Copy)]
pub struct Subject {
    pub root: IndexRoot,
    pub settings: CcehSettings,
    pub twin: Twin,
}

fn walk(index: &CcehIndex<Nodes>, guard: &Guard<'_>) -> Vec<u64> {
    let (mut cursor, mut walked) = (Cursor::default(), Vec::new());
    while index.next_batch(guard, &mut cursor, &mut walked) {}
    let mut walked: Vec<_> = walked.into_iter().map(|(_, reference)| reference & !COPY).collect();
    walked.sort_unstable();
    walked
}

/// What a key is; `walked` is what a walk has found, if that was the way.
fn ask(
    index: &CcehIndex<Nodes>,
    guard: &Guard<'_>,
    way: Way,
    walked: &[u64],
    key: u64,
    known: &Known,
) -> Option<u64> {
    match way {
        Way::Lookup => get(index, guard, key),
        Way::Walk => walked.iter().copied().find(|reference| reference / VERSIONS == key + 1),
        Way::Change => {
            let possible = known.now.into_iter().chain(known.next.flatten());
            possible.into_iter().find(|old| index.replace(guard, hash_of(key), *old, *old))
        }
    }
}

/// Whether the index holds what it must.
fn check(
    expected: &Expected,
    space: &Space,
    index: &CcehIndex<PmNodes>,
    guard: &Guard<'_>,
) -> Result<(), String> {
    expected.check(space, index.memory().zones(), |key| Ok(get(index, guard, key)))
}

/// The pool and the index, without a twin.
fn open_sound(region: &Region, root: IndexRoot) -> Result<(Arc<Space>, CcehIndex<PmNodes>), String> {
    let (space, _) = Space::open(region.clone()).map_err(|error| error.to_string())?;
    let space = Arc::new(space);
    let index = CcehIndex::open(space.clone(), root, 0).map_err(|error| error.to_string())?;
    Ok((space, index))
}

impl crashes::Subject for Subject {
    fn verify(&self, region: &Region, model: &Model, way: Way, answers: &Answers) -> Result<(), String> {
        let (space, _) = Space::open(region.clone()).map_err(|error| error.to_string())?;
        let space = Arc::new(space);
        let index = open(&space, self.root, self.settings, self.twin).map_err(|error| error.to_string())?;
        let collector = Collector::new();
        let participant = collector.register();
        let guard = participant.pin();
        let walked = if matches!(way, Way::Walk) { walk(&index, &guard) } else { Vec::new() };
        let present =
            explained(model, way, answers, |key, known| Ok(ask(&index, &guard, way, &walked, key, known)))?;
        let walked = walk(&index, &guard);
        if walked != present {
            return Err(format!("a walk gives {walked:?} where {way:?} gives {present:?}"));
        }
        if index.len() != present.len() as u64 {
            return Err(format!("{} keys are counted, {} found", index.len(), present.len()));
        }
        let zones = space.audit().map_err(|error| error.to_string())?.zones;
        if (zones.gotten, zones.committed) != (0, index.memory().zones() as u64) {
            return Err(format!("{zones:?}, and the index has {} zones", index.memory().zones()));
        }
        Ok(())
    }

    /// First others take zones, then keys are changed, then keys are added until segments split.
    fn work_on(
        &self,
        expected: &mut Expected,
        region: &Region,
        model: &Model,
        round: u64,
    ) -> Result<(), String> {
        let collector = Collector::new();
        let participant = collector.register();
        let guard = participant.pin();
        let (space, index) = open_sound(region, self.root)?;
        if round == 0 {
            expected.begin(&space, model, |key| Ok(get(&index, &guard, key)))?;
            return check(expected, &space, &index, &guard);
        }
        check(expected, &space, &index, &guard)?;
        if round == 1 {
            for (key, old) in &mut expected.references {
                if !index.replace(&guard, hash_of(*key), *old, *old + 100) {
                    return Err(format!("key {key} cannot be changed"));
                }
                *old += 100;
            }
            return check(expected, &space, &index, &guard);
        }
        for key in 10_000..10_012 {
            match index.insert(&guard, hash_of(key), reference(key, 0)) {
                Ok(()) => drop(expected.references.insert(key, reference(key, 0))),
                Err(IndexError::Full { .. }) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        check(expected, &space, &index, &guard)
    }

    fn check(&self, expected: &Expected, region: &Region) -> Result<(), String> {
        let (space, index) = open_sound(region, self.root)?;
        check(expected, &space, &index, &Collector::new().register().pin())
    }
}
