//! Carrying out steps on a store and on the model.

use super::shrink::shrink;
use super::step::{CLIENTS, FIXED, Step, WORD, generate, key_bytes, value_bytes};
use crate::contract::{Contents, Ending, Fixture, Medium, verify_beside};
use quipu::internals::{CacheSize, NodePlace, RecordForm, Shortcut, Techniques};
use quipu::{Client, Design, Error, ErrorKind, Store, WriteBatch};
use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

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
    let all = generate(seed, steps);
    let Err(_) = run(&all) else { return Ok(()) };
    let steps = shrink(&all, |steps| run(steps).err().map(|(at, _)| at));
    let what = run(&steps).err().map_or("it fails only at times".to_owned(), |(_, what)| what);
    Err(Disagreement { seed, design, what, steps })
}

/// Runs steps on a fresh pool: at which step it fails, and how.
fn attempt(design: Design, medium: &Medium, seed: u64, steps: &[Step]) -> Result<(), (usize, String)> {
    let mut fixture = Fixture::new(design, medium, POOL, ZONE);
    fixture.options.testing.tiny_index = seed.is_multiple_of(2);
    fixture.options.offset_map.nodes =
        if (seed / 6).is_multiple_of(2) { NodePlace::Dram } else { NodePlace::Pm };
    fixture.options.techniques = techniques(design, seed / 2);
    fixture.options.testing.clock_block = seed.is_multiple_of(3).then_some(16);
    fixture.options.testing.stripes = seed.is_multiple_of(2).then_some(2);
    fixture.options.testing.handful = seed.is_multiple_of(2).then_some(3);
    if design.can().caches && seed % 3 == 1 {
        fixture.options.cache = CacheSize::Bytes(64 << 10);
        fixture.options.testing.cache_sample = Some(1 + seed as u32 % 2);
    }
    if design.can().updates_in_place && seed % 5 < 2 {
        fixture.options.slots.form = FIXED;
    }
    let at = Cell::new(0);
    let run = || -> Result<(), Error> {
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
        Ok(Err(error)) => error.to_string(),
        Err(panic) => crate::contract::message(&*panic),
    };
    Err((at.get(), what))
}

/// Half of the time all of PACMAN, else none of it, or all but one. Slots are not copied together where marks
/// in the pool count.
fn techniques(design: Design, number: u64) -> Techniques {
    match number % 10 {
        0 => Techniques::RAW,
        1 => Techniques { reduce: false, batch: design != Design::VIPER_PACMAN, ..Techniques::ALL },
        2 => Techniques { separate: false, ..Techniques::ALL },
        3 => Techniques { shortcut: Shortcut::Off, ..Techniques::ALL },
        4 => Techniques { batch: false, ..Techniques::ALL },
        _ => Techniques::ALL,
    }
}

/// A store and what it should hold.
struct Pair<'f> {
    fixture: &'f Fixture,
    // Clients go before the store that they belong to.
    clients: Vec<Client>,
    store: Option<Store>,
    model: Contents,
    /// Writes so far of values that had expired: as many keys the store may count beside those of the model.
    expired: usize,
}

impl<'f> Pair<'f> {
    fn new(fixture: &'f Fixture) -> Result<Pair<'f>, Error> {
        let store = fixture.create()?;
        let clients = (0..CLIENTS).map(|_| store.client()).collect();
        Ok(Pair { fixture, clients, store: Some(store), model: Contents::new(), expired: 0 })
    }

    fn store(&mut self) -> &mut Store {
        self.store.as_mut().expect("a store is open between steps")
    }

    fn reopen(&mut self, ending: Ending) -> Result<(), Error> {
        self.clients.clear();
        let store = self.store.take().expect("a store is open between steps");
        self.store = Some(self.fixture.reopen(store, ending)?);
        self.check()
    }

    /// Compares everything, with no client open.
    fn check(&mut self) -> Result<(), Error> {
        self.clients.clear();
        let Pair { store, model, expired, .. } = self;
        let store = store.as_mut().expect("a store is open between steps");
        verify_beside(store, model, *expired);
        self.clients = (0..CLIENTS).map(|_| store.client()).collect();
        Ok(())
    }

    /// Gives the key its new state in the model, or insists that a value was too large to be written.
    fn expect(
        &mut self,
        key: Vec<u8>,
        new: Option<Vec<u8>>,
        outcome: Result<(), Error>,
    ) -> Result<(), Error> {
        let (_, limit) = self.store().limits();
        if new.as_ref().is_some_and(|new| new.len() as u64 > limit) {
            let error = outcome.expect_err("a value that is too large is refused");
            assert_eq!(error.kind(), ErrorKind::Argument, "{error}");
            return Ok(());
        }
        match new {
            Some(new) => drop(self.model.insert(key, new)),
            None => drop(self.model.remove(&key)),
        }
        outcome
    }

    fn take(&mut self, step: &Step) -> Result<(), Error> {
        let (_, limit) = self.store().limits();
        let form = self.fixture.options.slots.form;
        let value_bytes = |value: usize| value_bytes(value, form, ZONE / 4, limit);
        match step {
            Step::Put(client, key, value) => {
                let (key, value) = (key_bytes(*key, form), value_bytes(*value));
                let outcome = self.clients[*client].put(&key, &value);
                self.expect(key, Some(value), outcome)?;
            }
            Step::Get(client, key) => {
                let key = key_bytes(*key, form);
                let mut out = b"from before".to_vec();
                let found = self.clients[*client].get_into(&key, &mut out)?;
                assert_eq!(found.then_some(&out), self.model.get(&key), "get_into");
                assert_eq!(self.clients[*client].get(&key)?.as_ref(), self.model.get(&key), "get");
            }
            Step::GetMany(client, keys) => {
                let keys: Vec<_> = keys.iter().map(|key| key_bytes(*key, form)).collect();
                let mut found = Vec::new();
                self.clients[*client].get_many(&keys, |_, value| found.push(value.map(<[u8]>::to_vec)))?;
                let expected: Vec<_> = keys.iter().map(|key| self.model.get(key).cloned()).collect();
                assert_eq!(found, expected, "get_many");
            }
            Step::PutMany(client, pairs) => {
                let pairs: Vec<_> =
                    pairs.iter().map(|(key, value)| (key_bytes(*key, form), value_bytes(*value))).collect();
                let outcome = self.clients[*client].put_many(&pairs);
                if pairs.iter().any(|(_, value)| value.len() as u64 > limit) {
                    outcome.expect_err("a batch with a value that is too large is refused");
                } else {
                    outcome?;
                    self.model.extend(pairs);
                }
            }
            Step::Write(client, entries) => {
                let mut batch = WriteBatch::new();
                let mut changed = self.model.clone();
                let mut fits = true;
                for (key, value, expires) in entries {
                    let (key, value) = (key_bytes(*key, form), value.map(value_bytes));
                    match value {
                        Some(value) => {
                            fits &= value.len() as u64 <= ZONE / 4;
                            batch.put(&key, &value);
                            changed.insert(key, value);
                        }
                        None => {
                            if *expires {
                                batch.put_until(&key, b"too late", 1);
                                self.expired += 1;
                            } else {
                                batch.delete(&key);
                            }
                            changed.remove(&key);
                        }
                    }
                }
                let batches = self.store().design().can().batches;
                match self.clients[*client].write(&batch) {
                    Err(Error::Unsupported { .. }) if !batches => {}
                    Ok(()) if fits => self.model = changed,
                    Err(Error::BatchTooLarge { len, limit }) if len > limit => {}
                    Err(error) if !fits => assert_eq!(error.kind(), ErrorKind::Argument, "{error}"),
                    other => panic!("a batch of {} writes, fits: {fits}: {other:?}", entries.len()),
                }
            }
            Step::Delete(client, key, tell) => {
                let key = key_bytes(*key, form);
                let was_there = self.model.remove(&key).is_some();
                if *tell {
                    assert_eq!(self.clients[*client].remove(&key)?, was_there, "remove");
                } else {
                    self.clients[*client].delete(&key)?;
                }
            }
            Step::Update(client, key, value) => {
                let (key, value) = (key_bytes(*key, form), value.map(value_bytes));
                let model = &self.model;
                let outcome = self.clients[*client].update(&key, |old| {
                    assert_eq!(old, model.get(&key).map(Vec::as_slice), "update shows the value");
                    value.clone()
                });
                self.expect(key, value, outcome)?;
            }
            Step::PutIfAbsent(client, key, value) => {
                let (key, value) = (key_bytes(*key, form), value_bytes(*value));
                let outcome = self.clients[*client].put_if_absent(&key, &value);
                if self.model.contains_key(&key) {
                    assert!(!outcome?, "put_if_absent over a value");
                } else {
                    let outcome = outcome.map(|put| assert!(put, "put_if_absent of an absent key"));
                    self.expect(key, Some(value), outcome)?;
                }
            }
            Step::Swap(client, key, right, value) => {
                let (key, value) = (key_bytes(*key, form), value.map(value_bytes));
                let held = self.model.get(&key).map(Vec::as_slice);
                let expected = if *right { held } else { Some(&b"nobody wrote this"[..]) };
                let outcome = self.clients[*client].compare_and_swap(&key, expected, value.as_deref());
                if *right {
                    let outcome =
                        outcome.map(|swapped| assert!(swapped, "compare_and_swap of the right value"));
                    self.expect(key, value, outcome)?;
                } else {
                    assert!(!outcome?, "compare_and_swap of the wrong value");
                }
            }
            Step::Change(client, key, number) => {
                let key = key_bytes(*key, form);
                let can = self.store().design().can().updates_in_place;
                let add = |old: u64| old.wrapping_add(*number);
                match (self.clients[*client].update_in_place(&key, WORD, add), self.model.get_mut(&key)) {
                    (Err(Error::Unsupported { .. }), _) if !can => {}
                    (Err(Error::NotInPlace), Some(_)) if form == RecordForm::Variable => {}
                    (Ok(old), None) => assert_eq!(old, None, "update_in_place of an absent key"),
                    (Ok(old), Some(value)) => {
                        let word = value[WORD as usize..].first_chunk_mut().expect("the value has the word");
                        assert_eq!(old, Some(u64::from_le_bytes(*word)), "update_in_place");
                        *word = add(u64::from_le_bytes(*word)).to_le_bytes();
                    }
                    (Err(error), _) => return Err(error),
                }
            }
            Step::Iterate(client) => {
                let guard = self.clients[*client].pin();
                let all: Vec<_> = guard.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
                assert_eq!(all.len(), self.model.len(), "iteration");
                assert_eq!(Contents::from_iter(all), self.model, "iteration");
            }
            Step::Renew(client) => self.clients[*client] = self.store().client(),
            Step::Close => self.reopen(Ending::Closed)?,
            Step::Drop => self.reopen(Ending::Dropped)?,
            Step::Check => self.check()?,
        }
        // Counting publishes what writers have left to later, so only some steps count.
        if matches!(step, Step::Iterate(_) | Step::GetMany(..) | Step::Close | Step::Drop) {
            let counted = self.store().stats().records as usize;
            let counts = self.model.len()..=self.model.len() + self.expired;
            assert!(counts.contains(&counted), "the count of records: {counted}, not {counts:?}");
        }
        Ok(())
    }
}
