//! A store on the simulator whose writers run in schedules of the simulator's scheduler, each told by its
//! seed, and everything that they are told.
//!
//! `QUIPU_SCHEDULES` runs more than every change can afford, and `QUIPU_SCHEDULE` one alone.

use quipu::internals::Testing;
use quipu::{Design, Error, Options, Store};
use quipu_lab::action::Action;
use quipu_lab::linear::{BUDGET, Caller, Clock, History, Log, Operation, Subject, Timing, Verdict, check};
use quipu_medium::Region;
use quipu_medium::sim::{SimArena, SimOptions, sched};
use std::cell::RefCell;
use std::ops::Range;

/// The seeds of so many schedules, unless the environment asks for others.
pub fn seeds(schedules: u64) -> Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    match number("QUIPU_SCHEDULE") {
        Some(seed) => seed..seed + 1,
        None => 0..number("QUIPU_SCHEDULES").unwrap_or(schedules),
    }
}

/// Small zones, and nobody at work but those that a schedule has.
pub fn options(design: Design, testing: Testing) -> Options {
    Options::new()
        .design(design)
        .zone_size(16 << 10)
        .recovery_threads(1)
        .cleaner(false)
        .with(|options| options.testing = testing)
}

/// One writer, or another task beside them.
pub type Task<'t> = Box<dyn FnOnce(&Store, &Clock) -> Result<Vec<Operation>, Error> + 't>;

/// A store that has so many keys, and what has been done to it.
pub struct Scheduled<'o> {
    options: &'o Options,
    seed: u64,
    pub store: Store,
    clock: Clock,
    done: Vec<Operation>,
}

impl<'o> Scheduled<'o> {
    /// A new store of so many bytes with these keys.
    pub fn new(options: &'o Options, seed: u64, len: u64, keys: u64) -> Result<Scheduled<'o>, Error> {
        let region = Region::sim(SimOptions { len, seed, ..SimOptions::default() });
        let store = Store::create_on(region, options)?;
        let clock = Clock::default();
        let mut first = Log::new(&clock, Caller::Afterwards);
        let mut client = Subject::new(store.client(), None, 0);
        for key in 0..keys {
            first.call(&mut client, key, Action::Put(key), &Timing::FREE)?;
        }
        drop(client);
        let done = first.into_operations();
        Ok(Scheduled { options, seed, store, clock, done })
    }

    /// Runs these tasks at once, in the order that the seed says.
    pub fn run(&mut self, tasks: Vec<Task<'_>>) -> Result<(), Error> {
        let told = RefCell::new(Ok(Vec::new()));
        let (store, clock, told_of_all) = (&self.store, &self.clock, &told);
        let note = move |some: Result<Vec<Operation>, Error>| {
            let mut told = told_of_all.borrow_mut();
            match (&mut *told, some) {
                (Ok(all), Ok(some)) => all.extend(some),
                (all, Err(error)) => *all = Err(error),
                (Err(_), Ok(_)) => {}
            }
        };
        let mut all: Vec<Box<dyn FnOnce() + '_>> = Vec::new();
        for task in tasks {
            all.push(Box::new(move || note(task(store, clock))));
        }
        sched::run(self.seed, all).unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
        self.done.extend(told.into_inner()?);
        Ok(())
    }

    /// Reads these keys, and again after a power failure that left nothing but what was durable, and after a
    /// compaction of that; everything that anybody was told.
    pub fn end(mut self, arena: &mut SimArena, keys: u64) -> Result<Vec<Operation>, Error> {
        let Scheduled { options, seed, store, clock, done } = &mut self;
        done.extend(read(store, clock, keys)?);
        let sim = store.region().simulator().expect("simulated");
        let power_lost = sim.snapshot();
        let region = arena.boot(&power_lost, &power_lost.nothing(), *seed);
        let mut store = Store::open_on(region, options)?;
        done.extend(read(&store, clock, keys)?);
        store.compact()?;
        done.extend(read(&store, clock, keys)?);
        let checked = store.check(&|_, _| {})?;
        assert!(checked.is_sound(), "seed {seed}: {}", checked.damage);
        Ok(self.done)
    }
}

/// Reads these keys.
fn read(store: &Store, clock: &Clock, keys: u64) -> Result<Vec<Operation>, Error> {
    let mut log = Log::new(clock, Caller::Afterwards);
    let mut client = Subject::new(store.client(), None, 0);
    (0..keys).try_for_each(|key| log.call(&mut client, key, Action::Get, &Timing::FREE).map(drop))?;
    Ok(log.into_operations())
}

/// Why no order explains what was told, in words; nothing if one does.
pub fn unexplained(of: &str, operations: Vec<Operation>) -> Option<String> {
    match check(&History { operations, ..History::default() }, BUDGET) {
        Verdict::Linearizable => None,
        Verdict::Undecided { key, .. } => panic!("{of}: key {key} is undecided"),
        Verdict::Violation(violation) => Some(format!("{of}: {violation}")),
    }
}
