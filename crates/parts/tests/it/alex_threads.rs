//! c-ALEX under several threads, real ones and those of the simulator's scheduler, while leaves and layers
//! come and go. Lookups find the keys that are there and no others. A walk sees a key exactly once and in
//! order, and per key reads never go back. In the end nothing is left of leaves and layers.

use crate::masstree::support::{Keys, Random};
use quipu_medium::sim::sched;
use quipu_parts::epoch::{Collector, Participant};
use quipu_parts::index::alex::Alex;
use quipu_parts::index::{BothWays, Imaged, Index, Key, Records};
use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

/// A word says whose it is, and in which version.
const VERSIONS: u64 = 1 << 24;

fn number_of(word: u64) -> u64 {
    word / VERSIONS - 1
}

/// The state of a key beside the index, which its one writer changes before and after each operation: the
/// version that is present, or none; or that there is a change under way.
const CHANGING: u64 = 1;
const PRESENT: u64 = 2;

struct World {
    index: Alex,
    collector: Collector,
    /// In order.
    keys: Vec<Vec<u8>>,
    states: Vec<AtomicU64>,
    shape: Keys,
}

impl Records for World {
    fn hash_of(&self, _word: u64) -> u64 {
        unreachable!("it asks for keys")
    }

    fn key_of(&self, word: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.keys[number_of(word) as usize]);
    }
}

impl World {
    fn new(shape: Keys, count: u64) -> World {
        let keys: BTreeSet<Vec<u8>> = (0..count).map(|number| shape.key(number)).collect();
        let states = keys.iter().map(|_| AtomicU64::new(0)).collect();
        World {
            index: Alex::tiny(),
            collector: Collector::new(),
            keys: keys.into_iter().collect(),
            states,
            shape,
        }
    }

    fn len(&self) -> u64 {
        self.keys.len() as u64
    }

    fn key(&self, number: u64) -> Key<'_> {
        Key { bytes: &self.keys[number as usize], hash: number }
    }

    /// Adds a key, changes it, or removes it; its one writer calls this.
    fn write(&self, participant: &Participant, number: u64, remove: bool) {
        let (guard, state) = (participant.pin(), &self.states[number as usize]);
        let before = state.load(Ordering::Relaxed);
        let (version, is_present) = (before >> 2, before & PRESENT != 0);
        state.store(before | CHANGING, Ordering::Release);
        let is_it = |word| number_of(word) == number;
        let (old, after) = if remove {
            (self.index.take(&guard, self.key(number), None, is_it).expect("sound"), version << 2)
        } else {
            let word = (number + 1) * VERSIONS + version + 1;
            let old = self.index.upsert(&guard, self.key(number), word, None, is_it, self).expect("room");
            (old, (version + 1) << 2 | PRESENT)
        };
        let old = old.map(|old| (number_of(old), old % VERSIONS));
        assert_eq!(old, is_present.then_some((number, version)), "{:?} key {number}", self.shape);
        state.store(after, Ordering::Release);
    }

    /// Asserts what must come out for a key if its state has not changed since it was `before`.
    fn expect(&self, number: u64, before: u64, found: Option<u64>) {
        fence(Ordering::Acquire);
        let found = found.map(|word| (number_of(word), word % VERSIONS));
        if before & CHANGING == 0 && self.states[number as usize].load(Ordering::Relaxed) == before {
            let expected = (before & PRESENT != 0).then_some((number, before >> 2));
            assert_eq!(found, expected, "{:?} key {number}", self.shape);
        } else if let Some((owner, version)) = found {
            assert_eq!(owner, number);
            assert!(version >= before >> 2, "{:?} key {number} went back", self.shape);
        }
    }

    fn read(&self, participant: &Participant, number: u64) {
        let guard = participant.pin();
        let before = self.states[number as usize].load(Ordering::Acquire);
        let is_it = |word| number_of(word) == number;
        self.expect(number, before, self.index.get(&guard, self.key(number), is_it).expect("sound"));
    }

    /// Goes over all keys in batches, unpinned between them, in order or against it.
    fn walk(&self, participant: &Participant, limit: usize, back: bool) {
        let before: Vec<u64> = self.states.iter().map(|state| state.load(Ordering::Acquire)).collect();
        let mut told: Vec<u64> = Vec::new();
        let (mut scan, mut scan_back) =
            (self.index.scan_from(&[]), self.index.scan_back_from(Bound::Unbounded));
        loop {
            let (guard, each) = (participant.pin(), |word| told.push(word));
            let more = match back {
                false => self.index.next_words(&guard, &mut scan, limit, each),
                true => self.index.prev_words(&guard, &mut scan_back, limit, each),
            };
            if !more.expect("sound") {
                break;
            }
        }
        let numbers = || told.iter().map(|word| number_of(*word));
        let is_in_order = if back {
            numbers().rev().is_sorted_by(|a, b| a < b)
        } else {
            numbers().is_sorted_by(|a, b| a < b)
        };
        assert!(is_in_order, "{:?} {:?}", self.shape, numbers().collect::<Vec<_>>());
        let words: HashMap<u64, u64> = told.iter().map(|word| (number_of(*word), *word)).collect();
        for (number, before) in (0..).zip(before) {
            self.expect(number, before, words.get(&number).copied());
        }
    }

    /// Nobody works on the index: it is what the states say. Once all keys are removed, it has given
    /// everything back.
    fn check_and_clear(&self) {
        let participant = self.collector.register();
        self.walk(&participant, usize::MAX, false);
        self.walk(&participant, 3, true);
        let is_present = |state: &&AtomicU64| state.load(Ordering::Relaxed) & PRESENT != 0;
        let present = self.states.iter().filter(is_present).count() as u64;
        assert_eq!(self.index.len(&participant.pin()).expect("sound"), present);
        for number in 0..self.len() {
            self.read(&participant, number);
            self.write(&participant, number, true);
        }
        (0..3).for_each(|_| _ = participant.collect());
        let bytes = self.index.stats().bytes;
        assert!(bytes < Alex::tiny().stats().bytes + 4096, "{:?}: {bytes} bytes, no key", self.shape);
        let guard = participant.pin();
        assert_eq!(self.index.image(&guard).expect("an image").len(), 32, "{:?}: no layers", self.shape);
    }
}

/// Two writers, each of its own half of the keys; two readers, and walks both ways.
fn real_threads(shape: Keys, keys: u64, rounds: u64) {
    let world = World::new(shape, keys);
    let finished = AtomicBool::new(false);
    let (world, finished) = (&world, &finished);
    std::thread::scope(|scope| {
        for reader in 0..2 {
            let participant = world.collector.register();
            scope.spawn(move || {
                let mut random = Random(reader << 32);
                while !finished.load(Ordering::Relaxed) {
                    world.read(&participant, random.below(world.len()));
                }
            });
        }
        let walker = world.collector.register();
        scope.spawn(move || {
            let mut random = Random(4 << 32);
            while !finished.load(Ordering::Relaxed) {
                world.walk(&walker, 1 + random.below(100) as usize, random.below(2) == 0);
            }
        });
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let participant = world.collector.register();
                scope.spawn(move || {
                    let mut random = Random(writer << 40);
                    // The share of removals swings, so that leaves and layers fill up and go.
                    for round in 0..rounds {
                        let removals = [1, 9, 3, 10][round as usize % 4];
                        for _ in 0..world.len() {
                            let number = random.below(world.len() / 2) * 2 + writer;
                            world.write(&participant, number, random.below(10) < removals);
                        }
                    }
                })
            })
            .collect();
        let results: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        finished.store(true, Ordering::Relaxed);
        assert!(results.iter().all(Result::is_ok), "a writer failed");
    });
    world.check_and_clear();
}

#[test]
fn keys_of_all_shapes() {
    for shape in Keys::ALL {
        real_threads(shape, 2_000, 12);
        real_threads(shape, 60, 200);
    }
}

/// One schedule: two writers, a reader, and a walk each way, over keys that share leaves and layers.
fn schedule(shape: Keys, keys: u64, removals: [u64; 2], seed: u64) {
    let world = &World::new(shape, keys);
    let setup = world.collector.register();
    (0..world.len()).for_each(|number| world.write(&setup, number, false));
    drop(setup);
    let task = |task: u64| -> Box<dyn FnOnce() + '_> {
        let (participant, steps) = (world.collector.register(), 2 * keys);
        let mut random = Random(seed << 32 | task << 16);
        match task {
            0 | 1 => Box::new(move || {
                for step in 0..steps {
                    let number = random.below(world.len() / 2) * 2 + task;
                    let removals = removals[usize::from(step >= steps / 2)];
                    world.write(&participant, number, random.below(10) < removals);
                }
            }),
            2 => Box::new(move || {
                (0..2 * steps).for_each(|_| world.read(&participant, random.below(world.len())));
            }),
            _ => Box::new(move || {
                (0..4).for_each(|_| world.walk(&participant, 1 + random.below(20) as usize, task == 4));
            }),
        }
    };
    let tasks = (0..5).map(task).collect();
    sched::run(seed, tasks).unwrap_or_else(|error| panic!("{shape:?} seed {seed}: {error}"));
    world.check_and_clear();
}

/// Removals soon empty leaves and layers, which then come again.
#[test]
fn schedules_in_which_leaves_and_layers_go() {
    for seed in 0..100 {
        for shape in Keys::ALL {
            let keys = [12, 40, 120][seed as usize % 3];
            schedule(shape, keys, [10, [2, 5, 10][seed as usize / 3 % 3]], seed);
        }
    }
}
