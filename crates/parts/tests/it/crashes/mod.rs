//! What crash tests of indexes share: what every key may be after a crash, and which crashes are looked at.

pub mod creation;
mod expected;

pub use expected::{Expected, explained};

use quipu_medium::Region;
use quipu_medium::sim::{Event, Sim, SimArena, Snapshot};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

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

    /// The state of a key for its only writer.
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

/// Ways to ask an index what a key is, each of which must make durable what it answers.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    Lookup,
    Walk,
    /// By replacing what it may be with itself, which succeeds if it is that.
    Change,
}

/// What is told to those who ask, as they are told it.
pub type Answers = RefCell<BTreeMap<u64, Option<u64>>>;

/// A pool with an index, and how crashes of it are judged.
pub trait Subject {
    /// Opens a crash image and holds it against the model; `answers` takes what it answers, as it answers.
    fn verify(&self, region: &Region, model: &Model, way: Way, answers: &Answers) -> Result<(), String>;

    /// Works on in a pool that has been recovered, in three rounds, which begin with a look at what is
    /// expected.
    fn work_on(
        &self,
        expected: &mut Expected,
        region: &Region,
        model: &Model,
        round: u64,
    ) -> Result<(), String>;

    /// Opens the pool once more, and looks for what is expected.
    fn check(&self, expected: &Expected, region: &Region) -> Result<(), String>;
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
    pub fn glance(&self, snapshot: &Snapshot, subject: &impl Subject, model: &Model, seed: u64) {
        let region = self.arena.borrow_mut().boot(snapshot, &snapshot.nothing(), seed);
        self.note(subject.verify(&region, model, Way::Lookup, &Answers::default()));
    }

    /// So many images of a crash point, and nothing that comes after it.
    pub fn skim(&self, snapshot: &Snapshot, subject: &impl Subject, model: &Model, seed: u64, budget: usize) {
        for image in snapshot.images(seed, budget) {
            let region = self.arena.borrow_mut().boot(snapshot, &image, seed);
            self.note(subject.verify(&region, model, Way::Lookup, &Answers::default()));
        }
    }

    /// So many images of a crash point, of crashes while it is being recovered and read, and of a power
    /// failure after the process alone has died.
    pub fn explore(
        &self,
        snapshot: &Snapshot,
        subject: &impl Subject,
        model: &Model,
        seed: u64,
        budget: usize,
    ) {
        for image in snapshot.images(seed, budget) {
            self.go_on(|| self.arena.borrow_mut().boot(snapshot, &image, seed), subject, model, seed, 3);
        }
        if seed.is_multiple_of(3) {
            let boot = || self.arena.borrow_mut().boot_process_crash(snapshot, seed);
            self.go_on(boot, subject, model, seed, 1);
        }
    }

    /// Recovers, and works on, be it after that or at once.
    fn go_on(
        &self,
        boot: impl Fn() -> Region,
        subject: &impl Subject,
        model: &Model,
        seed: u64,
        every: usize,
    ) {
        let region = boot();
        self.recover(&region, subject, model, seed, every);
        let region = if seed.is_multiple_of(2) { boot() } else { region };
        self.note(self.work_on(&region, subject, model, seed));
    }

    /// The pool works on, and the power fails once more, at the end of a round.
    fn work_on<S: Subject>(
        &self,
        region: &Region,
        subject: &S,
        model: &Model,
        seed: u64,
    ) -> Result<(), String> {
        let mut expected = Expected::default();
        for round in 0..3 {
            subject.work_on(&mut expected, region, model, round)?;
            if round == seed / 9 % 3 {
                let during = region.simulator().expect("simulated").snapshot();
                let region = self.arena.borrow_mut().boot(&during, &during.nothing(), seed);
                subject.check(&expected, &region)?;
            }
        }
        Ok(())
    }

    /// Verifies, and crashes at every so many operations on the way; earlier answers must then still
    /// be true.
    fn recover(&self, region: &Region, subject: &impl Subject, model: &Model, seed: u64, every: usize) {
        let reads = Rc::new(Answers::default());
        let crashes = Rc::new(RefCell::new(Vec::new()));
        let (answered, noted) = (reads.clone(), crashes.clone());
        let way = [Way::Lookup, Way::Walk, Way::Change][(seed / 3 % 3) as usize];
        let note =
            move |during: &Snapshot| noted.borrow_mut().push((during.clone(), answered.borrow().clone()));
        at_each_operation(region, note, || self.note(subject.verify(region, model, way, &reads)));
        let sim = region.simulator().expect("simulated");
        crashes.borrow_mut().push((sim.snapshot(), reads.borrow().clone()));
        let crashes = crashes.take();
        for (during, answers) in crashes.iter().rev().step_by(every) {
            let mut model = model.clone();
            model.extend(answers.iter().map(|(key, now)| (*key, Known { now: *now, next: None })));
            for image in during.images(seed, 3) {
                let region = self.arena.borrow_mut().boot(during, &image, seed);
                self.note(subject.verify(&region, &model, way, &Answers::default()));
            }
        }
    }
}
