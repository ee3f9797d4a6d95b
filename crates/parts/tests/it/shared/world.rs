//! An index in order that several threads work on, and what each of them may demand of it.
//!
//! Every key has a *state* beside the index, which its one writer changes before and after each of its
//! operations. A thread that finds the same state before and after an operation, and no change under way,
//! knows the right result.

use super::keyed::Walked;
use super::keys::{Keys, Random};
use quipu_medium::sim::sched;
use quipu_parts::epoch::{Collector, Participant};
use quipu_parts::index::{BothWays, InOrder, Key, Records};
use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A word says whose it is, in which version, and how often a cleaner has moved that.
const COPIES: u64 = 1 << 20;
const VERSIONS: u64 = 1 << 24;

/// The key, by its number.
fn key_of(word: u64) -> usize {
    (word / COPIES / VERSIONS) as usize - 1
}

fn version_of(word: u64) -> u64 {
    word / COPIES % VERSIONS
}

/// A state: the version that is present, or none; or that there is a change under way.
const CHANGING: u64 = 1;
const PRESENT: u64 = 2;

fn state(version: u64, is_present: bool) -> u64 {
    version << 2 | if is_present { PRESENT } else { 0 }
}

/// How a schedule begins and what its writers do.
#[derive(Clone, Copy)]
pub struct Plan {
    pub keys: u64,
    /// Keys that are there from the start.
    pub present: u64,
    /// Operations of a writer.
    pub steps: u64,
    /// Removals among ten of these, in the first half and in the second.
    pub removals: [u64; 2],
}

/// What one more task of a schedule does with a limit, again and again.
pub type Walk<'w> = &'w dyn Fn(&Participant, usize);

pub struct World<I> {
    pub index: I,
    pub collector: Collector,
    keys: Vec<Vec<u8>>,
    numbers: HashMap<Vec<u8>, usize>,
    states: Vec<AtomicU64>,
    /// The hint that the writer of a key was given last.
    hints: Vec<AtomicU64>,
    shape: Keys,
}

impl<I: BothWays> Records for World<I> {
    fn hash_of(&self, _word: u64) -> u64 {
        unreachable!("indexes in order ask for keys")
    }

    fn key_of(&self, word: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.keys[key_of(word)]);
    }
}

impl<I: BothWays> World<I> {
    /// An empty index, and about so many keys for it.
    pub fn new(index: I, shape: Keys, count: u64, seed: u64) -> World<I> {
        let keys: BTreeSet<Vec<u8>> = (0..count).map(|number| shape.key(number)).collect();
        let mut keys: Vec<Vec<u8>> = keys.into_iter().collect();
        let mut random = Random(seed);
        (1..keys.len()).for_each(|at| keys.swap(at, random.below(at as u64 + 1) as usize));
        World {
            index,
            collector: Collector::new(),
            numbers: keys.iter().cloned().zip(0..).collect(),
            states: keys.iter().map(|_| AtomicU64::new(0)).collect(),
            hints: keys.iter().map(|_| AtomicU64::new(0)).collect(),
            keys,
            shape,
        }
    }

    pub fn len(&self) -> u64 {
        self.keys.len() as u64
    }

    /// The key of a number, which stands for its hash.
    fn key(&self, number: u64) -> Key<'_> {
        Key { bytes: &self.keys[number as usize], hash: number }
    }

    /// Adds a key, changes it, or removes it; its one writer calls this.
    pub fn write(&self, participant: &Participant, number: u64, remove: bool) {
        let (guard, key) = (participant.pin(), self.key(number));
        let before = self.states[number as usize].load(Ordering::Relaxed);
        let (version, is_present) = (before >> 2, before & PRESENT != 0);
        self.states[number as usize].store(before | CHANGING, Ordering::Release);
        let expect = |old: Option<u64>| {
            let old = old.map(|old| (key_of(old) as u64, version_of(old)));
            assert_eq!(old, is_present.then_some((number, version)), "{:?} key {number}", self.shape);
        };
        let near = self.index.prefetch_to_write(participant, key);
        let is_it = |word| key_of(word) as u64 == number;
        if remove {
            expect(self.index.take(&guard, key, near, is_it).expect("sound"));
        } else {
            let word = ((number + 1) * VERSIONS + version + 1) * COPIES;
            expect(self.index.upsert(&guard, key, word, near, is_it, self).expect("room"));
            let hint = self.index.hint(&guard, key).expect("sound");
            assert_eq!(hint.is_some(), I::HINTS);
            self.hints[number as usize].store(hint.unwrap_or(0), Ordering::Relaxed);
        }
        self.states[number as usize].store(state(version + u64::from(!remove), !remove), Ordering::Release);
    }

    /// Asserts what must come out for a key if its state has not changed since it was `before`.
    fn expect(&self, number: u64, before: u64, found: Option<u64>) {
        std::sync::atomic::fence(Ordering::Acquire);
        if before & CHANGING == 0 && self.states[number as usize].load(Ordering::Relaxed) == before {
            let found = found.map(|word| (key_of(word) as u64, version_of(word)));
            let expected = (before & PRESENT != 0).then_some((number, before >> 2));
            assert_eq!(found, expected, "{:?} key {number}", self.shape);
        } else if let Some(word) = found {
            assert_eq!(key_of(word) as u64, number);
            assert!(version_of(word) >= before >> 2, "{:?} key {number} went back", self.shape);
        }
    }

    fn find(&self, participant: &Participant, number: u64) -> Option<u64> {
        let is_it = |word| key_of(word) as u64 == number;
        self.index.get(&participant.pin(), self.key(number), is_it).expect("sound")
    }

    /// Looks for a key.
    pub fn read(&self, participant: &Participant, number: u64) {
        let before = self.states[number as usize].load(Ordering::Acquire);
        self.expect(number, before, self.find(participant, number));
    }

    /// Moves a key's word as a cleaner does: by the hint, if there are hints, or by the key.
    pub fn move_word(&self, participant: &Participant, number: u64) {
        let guard = participant.pin();
        let before = self.states[number as usize].load(Ordering::Acquire);
        let Some(old) = self.find(participant, number) else { return };
        let hint = I::HINTS.then(|| self.hints[number as usize].load(Ordering::Relaxed));
        let moved = self.index.repoint(&guard, hint, self.key(number), old, old + 1).expect("sound");
        let found = self.find(participant, number);
        self.expect(number, before, found);
        std::sync::atomic::fence(Ordering::Acquire);
        if before & CHANGING == 0 && self.states[number as usize].load(Ordering::Relaxed) == before {
            let is_moved = moved.is_some() && found == Some(old + 1);
            assert!(is_moved, "{:?} key {number} was not moved", self.shape);
        }
    }

    /// Goes over all words, in batches, in order or against it, unpinned between them.
    pub fn walk_words(&self, participant: &Participant, limit: usize, back: bool) {
        let before: Vec<u64> = self.states.iter().map(|state| state.load(Ordering::Acquire)).collect();
        let mut seen: Vec<u64> = Vec::new();
        let mut cursor = self.index.scan_from(&[]);
        let mut back_cursor = self.index.scan_back_from(Bound::Unbounded);
        loop {
            let (guard, each) = (participant.pin(), |word| seen.push(word));
            let more = if back {
                self.index.prev_words(&guard, &mut back_cursor, limit, each)
            } else {
                self.index.next_words(&guard, &mut cursor, limit, each)
            };
            if !more.expect("sound") {
                break;
            }
        }
        if back {
            seen.reverse();
        }
        let keys: Vec<&[u8]> = seen.iter().map(|word| &*self.keys[key_of(*word)]).collect();
        assert!(keys.is_sorted_by(|one, next| one < next), "{:?} {keys:?}", self.shape);
        let words: HashMap<usize, u64> = seen.into_iter().map(|word| (key_of(word), word)).collect();
        for (number, before) in before.into_iter().enumerate() {
            self.expect(number as u64, before, words.get(&number).copied());
        }
    }

    /// Nobody works on the index: it is what the states say. In the end all keys are removed.
    pub fn check_and_clear(&self) {
        let participant = self.collector.register();
        self.walk_words(&participant, 3, false);
        self.walk_words(&participant, usize::MAX, true);
        let is_present = |state: &&AtomicU64| state.load(Ordering::Relaxed) & PRESENT != 0;
        let present = self.states.iter().filter(is_present).count() as u64;
        assert_eq!(self.index.len(&participant.pin()).expect("sound"), present);
        for number in 0..self.len() {
            self.read(&participant, number);
            self.write(&participant, number, true);
        }
        (0..3).for_each(|_| _ = participant.collect());
    }

    /// Two writers, each of its own half of the keys, for so many rounds; two readers, a cleaner, and one who
    /// walks. In a round so many of ten operations are removals, in turn.
    pub fn in_threads(
        &self,
        rounds: u64,
        removals: [u64; 4],
        walk: impl Fn(&Participant, &mut Random) + Sync,
    ) {
        let (finished, walk) = (&AtomicBool::new(false), &walk);
        std::thread::scope(|scope| {
            for other in 0..4 {
                let participant = self.collector.register();
                scope.spawn(move || {
                    let mut random = Random(other << 32);
                    while !finished.load(Ordering::Relaxed) {
                        match other {
                            0 | 1 => self.read(&participant, random.below(self.len())),
                            2 => self.move_word(&participant, random.below(self.len())),
                            _ => walk(&participant, &mut random),
                        }
                    }
                });
            }
            let writers: Vec<_> = (0..2)
                .map(|writer| {
                    let participant = self.collector.register();
                    scope.spawn(move || {
                        let mut random = Random(writer << 40);
                        for round in 0..rounds {
                            let removals = removals[round as usize % 4];
                            for _ in 0..self.len() {
                                let number = random.below(self.len() / 2) * 2 + writer;
                                self.write(&participant, number, random.below(10) < removals);
                            }
                        }
                    })
                })
                .collect();
            let results: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
            finished.store(true, Ordering::Relaxed);
            assert!(results.iter().all(Result::is_ok), "a writer failed");
        });
    }

    /// One schedule: two writers, a reader, a cleaner, and each of these walks four times.
    pub fn in_schedule(&self, plan: Plan, seed: u64, walks: &[Walk<'_>]) {
        let setup = self.collector.register();
        (0..plan.present.min(self.len())).for_each(|number| self.write(&setup, number, false));
        drop(setup);
        let task = |task: u64| -> Box<dyn FnOnce() + '_> {
            let participant = self.collector.register();
            let mut random = Random(seed << 32 | task << 16);
            match task {
                0 | 1 => Box::new(move || {
                    for step in 0..plan.steps {
                        let number = random.below(self.len() / 2) * 2 + task;
                        let removals = plan.removals[usize::from(step >= plan.steps / 2)];
                        self.write(&participant, number, random.below(10) < removals);
                    }
                }),
                2 => Box::new(move || {
                    (0..2 * plan.steps).for_each(|_| self.read(&participant, random.below(self.len())));
                }),
                3 => Box::new(move || {
                    (0..plan.steps).for_each(|_| self.move_word(&participant, random.below(self.len())));
                }),
                _ => {
                    let walk = walks[task as usize - 4];
                    Box::new(move || (0..4).for_each(|_| walk(&participant, 1 + random.below(20) as usize)))
                }
            }
        };
        let tasks = (0..4 + walks.len() as u64).map(task).collect();
        sched::run(seed, tasks).unwrap_or_else(|error| panic!("{:?} seed {seed}: {error}", self.shape));
    }
}

/// Of indexes that tell keys.
impl<I: InOrder> World<I> {
    /// Goes over all keys against their order, in batches, unpinned between them.
    pub fn walk_back(&self, participant: &Participant, limit: usize) {
        let before: Vec<u64> = self.states.iter().map(|state| state.load(Ordering::Acquire)).collect();
        let mut words: HashMap<usize, u64> = HashMap::new();
        let (mut cursor, mut last) = (self.index.scan_back_from(Bound::Unbounded), None::<Vec<u8>>);
        loop {
            let visited =
                Walked::prev_batch(&self.index, &participant.pin(), &mut cursor, limit, |key, word| {
                    let number = *self.numbers.get(key).unwrap_or_else(|| panic!("{key:?} is no key"));
                    assert_eq!(key_of(word), number);
                    let is_lower = last.as_deref().is_none_or(|last| key < last);
                    assert!(is_lower, "{:?} {last:?} behind {key:?}", self.shape);
                    last = Some(key.to_vec());
                    words.insert(number, word);
                });
            if visited < limit {
                break;
            }
        }
        for (number, before) in before.into_iter().enumerate() {
            self.expect(number as u64, before, words.get(&number).copied());
        }
    }

    /// Goes over all keys, in batches, unpinned between them.
    pub fn walk(&self, participant: &Participant, limit: usize) {
        let before: Vec<u64> = self.states.iter().map(|state| state.load(Ordering::Acquire)).collect();
        let mut seen: Vec<(usize, u64)> = Vec::new();
        let (mut cursor, mut last) = (self.index.scan_from(&[]), None);
        loop {
            let visited =
                Walked::next_batch(&self.index, &participant.pin(), &mut cursor, limit, |key, word| {
                    let number = *self.numbers.get(key).unwrap_or_else(|| panic!("{key:?} is no key"));
                    assert_eq!(key_of(word), number);
                    assert!(last.as_deref() < Some(key), "{:?} {last:?} before {key:?}", self.shape);
                    last = Some(key.to_vec());
                    seen.push((number, word));
                });
            if visited < limit {
                break;
            }
        }
        let words: HashMap<usize, u64> = seen.into_iter().collect();
        for (number, before) in before.into_iter().enumerate() {
            self.expect(number as u64, before, words.get(&number).copied());
        }
    }
}
