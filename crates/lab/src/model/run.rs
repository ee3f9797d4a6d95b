//! Carrying out steps on a store and on the model.

use super::shrink::shrink;
use super::step::{HANDS, KEYS, Step, TABLES, generate};
use crate::calls::{Call, Codec, Hand, Model, vary, verify};
use crate::contract::{Ending, Fixture, Medium};
use quipu::{Design, Store};
use quipu_bench::settings::capabilities;
use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// A pool in which no run becomes full, with zones so small that its records fill many.
const POOL: u64 = 8 << 20;
const ZONE: u64 = 16 << 10;

/// A sequence after which store and model disagree.
#[derive(Clone, Debug)]
pub struct Disagreement {
    /// The seed of the whole sequence.
    pub seed: u64,
    /// The design at fault.
    pub design: Design,
    /// The difference.
    pub what: String,
    /// A short sequence that shows it.
    pub steps: Vec<Step>,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Disagreement { seed, design, what, steps } = self;
        write!(f, "design {design}, seed {seed}: {what}; it takes these {} steps:", steps.len())?;
        steps.iter().try_for_each(|step| write!(f, "\n  {step:?}"))
    }
}

/// Runs the sequence of a seed.
pub fn explore(design: Design, medium: &Medium, seed: u64, steps: usize) -> Result<(), Disagreement> {
    let run = |steps: &[Step]| attempt(design, medium, seed, steps);
    let all = generate(seed, steps, names(design).len());
    let Err(_) = run(&all) else { return Ok(()) };
    let steps = shrink(&all, |steps| run(steps).err().map(|(at, _)| at));
    let what = run(&steps).err().map_or("it fails only at times".to_owned(), |(_, what)| what);
    Err(Disagreement { seed, design, what, steps })
}

/// The tables of a run.
fn names(design: Design) -> Vec<String> {
    let all = ["default", "side", "own"].map(str::to_owned);
    all[..if design.can().tables { TABLES } else { 1 }].to_vec()
}

/// Runs steps on a fresh pool: at which step it fails, and how.
fn attempt(design: Design, medium: &Medium, seed: u64, steps: &[Step]) -> Result<(), (usize, String)> {
    let mut fixture = Fixture::new(design, medium, POOL, ZONE);
    vary(&mut fixture.options, design, seed);
    let at = Cell::new(0);
    let run = || -> Result<(), String> {
        let mut pair = Pair::new(&fixture)?;
        for (number, step) in steps.iter().enumerate() {
            at.set(number);
            pair.take(step)?;
        }
        at.set(steps.len().saturating_sub(1));
        pair.reopen(Ending::Dropped)
    };
    let what = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(what)) => what,
        Err(panic) => crate::contract::message(&*panic),
    };
    Err((at.get(), what))
}

/// A store and what it should hold.
struct Pair<'f> {
    fixture: &'f Fixture,
    // Clients go before the store that they belong to.
    hands: Vec<Hand>,
    store: Option<Store>,
    model: Model,
    names: Vec<String>,
}

impl<'f> Pair<'f> {
    fn new(fixture: &'f Fixture) -> Result<Pair<'f>, String> {
        let store = fixture.create().map_err(|error| error.to_string())?;
        let (names, options) = (names(store.design()), &fixture.options);
        for name in names.iter().skip(1).take(names.len().saturating_sub(2)) {
            store.create_table(name).map_err(|error| error.to_string())?;
        }
        let codec = Codec::of(&store, options.slots.form);
        let model = Model::new((1, 1), codec, capabilities(options, store.design()), names.len());
        let mut pair = Pair { fixture, hands: Vec::new(), store: Some(store), model, names };
        pair.renew()?;
        Ok(pair)
    }

    fn store(&self) -> &Store {
        self.store.as_ref().expect("a store is open between steps")
    }

    fn hand(&self) -> Result<Hand, String> {
        Hand::new(self.store(), &self.names).map_err(|error| error.to_string())
    }

    fn renew(&mut self) -> Result<(), String> {
        self.hands = (0..HANDS).map(|_| self.hand()).collect::<Result<_, _>>()?;
        Ok(())
    }

    fn reopen(&mut self, ending: Ending) -> Result<(), String> {
        self.hands.clear();
        let store = self.store.take().expect("a store is open between steps");
        self.store = Some(self.fixture.reopen(store, ending).map_err(|error| error.to_string())?);
        self.check()
    }

    /// Compares everything, with no client open.
    fn check(&mut self) -> Result<(), String> {
        self.hands.clear();
        let store = self.store.as_mut().expect("a store is open between steps");
        verify(store, [(&mut self.model, &self.names[..])].into_iter(), KEYS)?;
        let (now, counted) = (store.region().now(), store.stats().records);
        let (alive, held) = self.model.counts(now);
        if !(alive..=held).contains(&counted) {
            return Err(format!("the count of records: {counted}, not {alive} to {held}"));
        }
        self.renew()
    }

    fn take(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Call(client, table, call) => {
                let Pair { hands, store, model, .. } = self;
                let store = store.as_ref().expect("a store is open between steps");
                hands[*client].perform(store, model, *table, call)?;
                if *call == Call::Turn {
                    // The others have not heard of it.
                    for other in (0..HANDS).filter(|other| other != client) {
                        self.hands[other] = self.hand()?;
                    }
                }
                Ok(())
            }
            Step::Renew(client) => {
                self.hands[*client] = self.hand()?;
                Ok(())
            }
            Step::Tick(time) => {
                self.fixture.pass(Duration::from_millis(*time));
                Ok(())
            }
            Step::Close => self.reopen(Ending::Closed),
            Step::Drop => self.reopen(Ending::Dropped),
            Step::Check => self.check(),
        }
    }
}
