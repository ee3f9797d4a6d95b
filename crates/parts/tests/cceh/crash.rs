//! The oracle of the crash tests: what every key may be after a crash, and whether a crash image agrees.

use super::support::mix;
use quipu_medium::Region;
use quipu_medium::sim::{Event, Sim, SimArena, Snapshot};
use quipu_parts::epoch::{Collector, Guard};
use quipu_parts::index::cceh::{
    CcehError, CcehIndex, CcehRoot, CcehSettings, Cursor, Name, NodeMemory, PmNodes,
};
use quipu_parts::space::{Space, ZoneId};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::Mutex;

const VERSIONS: u64 = 1 << 20;

/// Hashes that all name the same bucket, so that a handful of keys makes a segment split.
pub fn hash_of(key: u64) -> u64 {
    mix(key) & !0x1FE | 0x6
}

pub fn reference(key: u64, version: u64) -> u64 {
    (key + 1) * VERSIONS + version
}

pub fn get<M: NodeMemory>(index: &CcehIndex<M>, guard: &Guard<'_>, key: u64) -> Option<u64> {
    index.get(guard, hash_of(key), |reference| reference / VERSIONS == key + 1)
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

    fn allocate(&self, name: Name, words: &[u64]) -> Result<u64, CcehError> {
        self.nodes.allocate(name, words)
    }

    fn narrow(&self, segment: u64, name: Name) {
        self.nodes.narrow(segment, name);
    }

    fn make_room(&self, segments: usize) -> Result<(), CcehError> {
        self.nodes.make_room(segments)
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
    root: CcehRoot,
    settings: CcehSettings,
    twin: Twin,
) -> Result<CcehIndex<Nodes>, CcehError> {
    let (nodes, segments) = PmNodes::open(space.clone(), root, 0)?;
    Ok(CcehIndex::over(Nodes { nodes, twin, held: Mutex::new(None) }, settings, &segments))
}

/// What a key is known to be, or to become.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Acknowledged, or answered to a reader.
    pub now: Option<u64>,
    /// What a write that has not returned makes of it.
    pub next: Option<Option<u64>>,
}

/// What those who use the index know of each key.
pub type Model = BTreeMap<u64, Known>;

/// What happened to the keys of a run.
#[derive(Default)]
pub struct History {
    pub model: RefCell<Model>,
    /// What each key was or was about to be, in order.
    values: RefCell<BTreeMap<u64, Vec<Option<u64>>>>,
}

impl History {
    fn known(&self, key: u64) -> Known {
        self.model.borrow().get(&key).copied().unwrap_or_default()
    }

    /// What a key is for who alone writes it.
    pub fn now(&self, key: u64) -> Option<u64> {
        self.known(key).now
    }

    /// A write of a key.
    pub fn write<T>(&self, key: u64, next: Option<u64>, act: impl FnOnce() -> T) -> T {
        self.values.borrow_mut().entry(key).or_insert_with(|| vec![None]).push(next);
        let known = Known { next: Some(next), ..self.known(key) };
        self.model.borrow_mut().insert(key, known);
        let result = act();
        self.model.borrow_mut().insert(key, Known { now: next, next: None });
        result
    }

    /// A read of a key: it answers what the key was at some time meanwhile, which is known from then on.
    pub fn read(&self, key: u64, act: impl FnOnce() -> Option<u64>) {
        let written = self.values.borrow().get(&key).map_or(0, Vec::len);
        let in_flight = usize::from(self.known(key).next.is_some());
        let answer = act();
        let values = self.values.borrow();
        let meanwhile =
            values.get(&key).map_or(&[None][..], |all| &all[written.saturating_sub(1 + in_flight)..]);
        assert!(meanwhile.contains(&answer), "key {key} is answered to be {answer:?}, and was {meanwhile:?}");
        // An answer that was also true before the write in flight proves nothing of that.
        let is_new = meanwhile.iter().filter(|value| **value == answer).count() == 1;
        if is_new && Some(answer) == self.known(key).next {
            self.model.borrow_mut().insert(key, Known { now: answer, next: None });
        }
    }
}

/// A pool and what is in it.
#[derive(Clone, Copy)]
pub struct Subject {
    pub root: CcehRoot,
    pub settings: CcehSettings,
    pub twin: Twin,
}

/// Ways to ask an index what a key is, each of which must make durable what it answers.
#[derive(Clone, Copy, Debug)]
enum Way {
    Lookup,
    Walk,
    /// By replacing what it may be with itself, which succeeds if it is that.
    Change,
}

fn walk(index: &CcehIndex<Nodes>, guard: &Guard<'_>) -> Vec<u64> {
    let (mut cursor, mut walked) = (Cursor::default(), Vec::new());
    while index.next_batch(guard, &mut cursor, &mut walked) {}
    let mut walked: Vec<_> = walked.into_iter().map(|(_, reference)| reference).collect();
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

/// Opens a crash image and holds it against the model; `reads` takes what it answers, as it answers.
fn verify(
    region: &Region,
    subject: &Subject,
    model: &Model,
    way: Way,
    reads: &RefCell<BTreeMap<u64, Option<u64>>>,
) -> Result<(), String> {
    let (space, _) = Space::open(region.clone()).map_err(|error| error.to_string())?;
    let space = Arc::new(space);
    let index =
        open(&space, subject.root, subject.settings, subject.twin).map_err(|error| error.to_string())?;
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    let mut present = Vec::new();
    let walked = if matches!(way, Way::Walk) { walk(&index, &guard) } else { Vec::new() };
    for (key, known) in model {
        let found = ask(&index, &guard, way, &walked, *key, known);
        reads.borrow_mut().insert(*key, found);
        if found != known.now && Some(found) != known.next {
            return Err(format!("key {key} is {found:?}, and should be {known:?}, by {way:?}"));
        }
        present.extend(found);
    }
    let walked = walk(&index, &guard);
    present.sort_unstable();
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

/// What an index that works on after a crash must hold, and what is not its own.
#[derive(Clone, Default)]
struct Expected {
    references: BTreeMap<u64, u64>,
    foreign: Vec<ZoneId>,
}

impl Expected {
    fn check(&self, space: &Space, index: &CcehIndex<PmNodes>, guard: &Guard<'_>) -> Result<(), String> {
        for (key, reference) in &self.references {
            let found = get(index, guard, *key);
            if found != Some(*reference) {
                return Err(format!("key {key} is {found:?} after the crash was over, and was {reference}"));
            }
        }
        let mut zones = index.memory().zones();
        zones.extend(&self.foreign);
        zones.sort_unstable();
        let committed = space.committed_zones();
        if zones != committed {
            return Err(format!("{committed:?} are committed; index and others have {zones:?}"));
        }
        space.audit().map(|_| ()).map_err(|error| error.to_string())
    }

    /// First others take zones, then keys are changed, then keys are added until segments split.
    fn work_on(
        &mut self,
        region: &Region,
        subject: &Subject,
        model: &Model,
        round: u64,
    ) -> Result<(), String> {
        let collector = Collector::new();
        let participant = collector.register();
        let guard = participant.pin();
        let (space, index) = open_sound(region, subject.root)?;
        if round == 0 {
            for key in model.keys() {
                self.references.extend(get(&index, &guard, *key).map(|found| (*key, found)));
            }
            let zone = space.get_zone(None, 2).map_err(|error| error.to_string())?;
            zone.iter().for_each(|zone| space.commit_zone(*zone));
            self.foreign.extend(zone);
            return self.check(&space, &index, &guard);
        }
        self.check(&space, &index, &guard)?;
        if round == 1 {
            for (key, old) in &mut self.references {
                if !index.replace(&guard, hash_of(*key), *old, *old + 100) {
                    return Err(format!("key {key} cannot be changed"));
                }
                *old += 100;
            }
            return self.check(&space, &index, &guard);
        }
        for key in 10_000..10_012 {
            match index.insert(&guard, hash_of(key), reference(key, 0)) {
                Ok(()) => drop(self.references.insert(key, reference(key, 0))),
                Err(CcehError::Full { .. }) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        self.check(&space, &index, &guard)
    }
}

/// The pool and the index, without a twin.
fn open_sound(region: &Region, root: CcehRoot) -> Result<(Arc<Space>, CcehIndex<PmNodes>), String> {
    let (space, _) = Space::open(region.clone()).map_err(|error| error.to_string())?;
    let space = Arc::new(space);
    let index = CcehIndex::open(space.clone(), root, 0).map_err(|error| error.to_string())?;
    Ok((space, index))
}

/// Calls `each` before every operation of `act` on the medium.
pub fn at_each_operation(region: &Region, mut each: impl FnMut(&Snapshot) + 'static, act: impl FnOnce()) {
    let sim = region.simulator().expect("simulated").clone();
    sim.set_observer(Some(Box::new(move |sim: &Sim, _: Event| each(&sim.snapshot()))));
    act();
    sim.set_observer(None);
}

/// What an exploration has found so far.
#[derive(Clone, Default)]
pub struct Findings {
    arena: Rc<RefCell<SimArena>>,
    pub states: Rc<Cell<usize>>,
    pub violations: Rc<RefCell<Vec<String>>>,
}

impl Findings {
    fn note(&self, result: Result<(), String>) {
        self.states.set(self.states.get() + 1);
        self.violations.borrow_mut().extend(result.err());
    }

    /// The image of a crash point in which nothing arrived that need not have.
    pub fn glance(&self, snapshot: &Snapshot, subject: &Subject, model: &Model, seed: u64) {
        let region = self.arena.borrow_mut().boot(snapshot, &snapshot.nothing(), seed);
        self.note(verify(&region, subject, model, Way::Lookup, &RefCell::default()));
    }

    /// So many images of a crash point, of crashes while it is being recovered and read, and of a power failure after the
    /// process alone has died.
    pub fn explore(&self, snapshot: &Snapshot, subject: &Subject, model: &Model, seed: u64, budget: usize) {
        for image in snapshot.images(seed, budget) {
            self.go_on(|| self.arena.borrow_mut().boot(snapshot, &image, seed), subject, model, seed, 3);
        }
        if seed.is_multiple_of(3) {
            let boot = || self.arena.borrow_mut().boot_process_crash(snapshot, seed);
            self.go_on(boot, subject, model, seed, 1);
        }
    }

    /// Recovers, and works on, be it after that or at once.
    fn go_on(&self, boot: impl Fn() -> Region, subject: &Subject, model: &Model, seed: u64, every: usize) {
        let region = boot();
        self.recover(&region, subject, model, seed, every);
        let region = if seed.is_multiple_of(2) { boot() } else { region };
        self.note(self.work_on(&region, subject, model, seed));
    }

    /// The pool works on, and the power fails once more, at the end of a round.
    fn work_on(&self, region: &Region, subject: &Subject, model: &Model, seed: u64) -> Result<(), String> {
        let mut expected = Expected::default();
        for round in 0..3 {
            expected.work_on(region, subject, model, round)?;
            if round == seed / 9 % 3 {
                let during = region.simulator().expect("simulated").snapshot();
                let region = self.arena.borrow_mut().boot(&during, &during.nothing(), seed);
                let (space, index) = open_sound(&region, subject.root)?;
                let collector = Collector::new();
                expected.check(&space, &index, &collector.register().pin())?;
            }
        }
        Ok(())
    }

    /// Verifies, and crashes at every so many operations on the way; what was answered before must then still be true.
    fn recover(&self, region: &Region, subject: &Subject, model: &Model, seed: u64, every: usize) {
        let reads = Rc::new(RefCell::new(BTreeMap::new()));
        let crashes = Rc::new(RefCell::new(Vec::new()));
        let (answered, noted) = (reads.clone(), crashes.clone());
        let way = [Way::Lookup, Way::Walk, Way::Change][(seed / 3 % 3) as usize];
        let note =
            move |during: &Snapshot| noted.borrow_mut().push((during.clone(), answered.borrow().clone()));
        at_each_operation(region, note, || self.note(verify(region, subject, model, way, &reads)));
        let sim = region.simulator().expect("simulated");
        crashes.borrow_mut().push((sim.snapshot(), reads.borrow().clone()));
        let crashes = crashes.take();
        for (during, answers) in crashes.iter().rev().step_by(every) {
            let mut model = model.clone();
            model.extend(answers.iter().map(|(key, now)| (*key, Known { now: *now, next: None })));
            for image in during.images(seed, 3) {
                let region = self.arena.borrow_mut().boot(during, &image, seed);
                self.note(verify(&region, subject, &model, way, &RefCell::default()));
            }
        }
    }
}
