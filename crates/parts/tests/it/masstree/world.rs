//! An index that several threads work on, and what each of them may demand of it.
//!
//! Every key has a *state* beside the index, which its one writer changes before and after each of its
//! operations. A thread that finds the same state before and after an operation, and no change under way,
//! knows the right result.

use super::support::{Keys, Random};
use crate::shared::keyed::{ByKey, Walked};
use quipu_parts::epoch::{Collector, Participant};
use quipu_parts::index::masstree::{BackCursor, Cursor, Masstree};
use quipu_parts::index::{BothWays, Hint};
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};

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

pub struct World {
    pub index: Masstree,
    pub collector: Collector,
    keys: Vec<Vec<u8>>,
    numbers: HashMap<Vec<u8>, usize>,
    states: Vec<AtomicU64>,
    /// The hint that the writer of a key was given last.
    hints: Vec<AtomicU64>,
    shape: Keys,
}

impl World {
    /// An empty index, and about so many keys for it.
    pub fn new(shape: Keys, count: u64, seed: u64) -> World {
        let keys: BTreeSet<Vec<u8>> = (0..count).map(|number| shape.key(number)).collect();
        let mut keys: Vec<Vec<u8>> = keys.into_iter().collect();
        let mut random = Random(seed);
        (1..keys.len()).for_each(|at| keys.swap(at, random.below(at as u64 + 1) as usize));
        World {
            index: Masstree::new(),
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

    /// Adds a key, changes it, or removes it; its one writer calls this.
    pub fn write(&self, participant: &Participant, number: u64, remove: bool) {
        let (guard, key) = (participant.pin(), &self.keys[number as usize]);
        let before = self.states[number as usize].load(Ordering::Relaxed);
        let (version, is_present) = (before >> 2, before & PRESENT != 0);
        self.states[number as usize].store(before | CHANGING, Ordering::Release);
        let expect = |old: Option<u64>| {
            let old = old.map(|old| (key_of(old) as u64, version_of(old)));
            assert_eq!(old, is_present.then_some((number, version)), "{:?} key {number}", self.shape);
        };
        if remove {
            expect(self.index.take(&guard, key).expect("sound"));
        } else {
            let word = ((number + 1) * VERSIONS + version + 1) * COPIES;
            expect(self.index.upsert(&guard, key, word).expect("room"));
            let hint = self.index.locate(&guard, key).expect("a hint");
            self.hints[number as usize].store(hint.bits(), Ordering::Relaxed);
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

    /// Looks for a key.
    pub fn read(&self, participant: &Participant, number: u64) {
        let guard = participant.pin();
        let before = self.states[number as usize].load(Ordering::Acquire);
        self.expect(number, before, self.index.get(&guard, &self.keys[number as usize]).expect("sound"));
    }

    /// Moves a key's word as a cleaner does: by the hint, and if that does not lead to it, by the key.
    pub fn move_word(&self, participant: &Participant, number: u64) {
        let (guard, key) = (participant.pin(), &self.keys[number as usize]);
        let before = self.states[number as usize].load(Ordering::Acquire);
        let Some(old) = self.index.get(&guard, key).expect("sound") else { return };
        let hint = Hint::from_bits(self.hints[number as usize].load(Ordering::Relaxed));
        let moved = self.index.replace_at(&guard, hint, old, old + 1)
            || self.index.replace(&guard, key, old, old + 1).expect("sound");
        let found = self.index.get(&guard, key).expect("sound");
        self.expect(number, before, found);
        std::sync::atomic::fence(Ordering::Acquire);
        if before & CHANGING == 0 && self.states[number as usize].load(Ordering::Relaxed) == before {
            assert!(moved && found == Some(old + 1), "{:?} key {number} was not moved", self.shape);
        }
    }

    /// Goes over all keys against their order, in batches, unpinned between them.
    pub fn walk_back(&self, participant: &Participant, limit: usize) {
        let before: Vec<u64> = self.states.iter().map(|state| state.load(Ordering::Acquire)).collect();
        let mut words: HashMap<usize, u64> = HashMap::new();
        let (mut cursor, mut last) = (BackCursor::default(), None::<Vec<u8>>);
        loop {
            let visited = self.index.prev_batch(&participant.pin(), &mut cursor, limit, |key, word| {
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
        let (mut cursor, mut last) = (Cursor::default(), None);
        loop {
            let visited = self.index.next_batch(&participant.pin(), &mut cursor, limit, |key, word| {
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

    /// Goes over all words, in batches, in order or against it, unpinned between them.
    pub fn walk_words(&self, participant: &Participant, limit: usize, back: bool) {
        let before: Vec<u64> = self.states.iter().map(|state| state.load(Ordering::Acquire)).collect();
        let mut seen: Vec<u64> = Vec::new();
        let (mut cursor, mut back_cursor) = (Cursor::default(), BackCursor::default());
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

    /// Nobody works on the index: it is what the states say; and once all keys are removed it has given
    /// everything back.
    pub fn check_and_clear(&self) {
        let participant = self.collector.register();
        self.walk(&participant, usize::MAX);
        self.walk_back(&participant, 3);
        self.walk_words(&participant, 3, false);
        self.walk_words(&participant, usize::MAX, true);
        let is_present = |state: &&AtomicU64| state.load(Ordering::Relaxed) & PRESENT != 0;
        assert_eq!(self.index.keys(), self.states.iter().filter(is_present).count() as u64);
        for number in 0..self.len() {
            self.read(&participant, number);
            self.write(&participant, number, true);
        }
        (0..3).for_each(|_| _ = participant.collect());
        let stats = self.index.stats();
        let left = (self.index.keys(), stats.layers, stats.borders, stats.inners, stats.suffix_bytes);
        assert_eq!(left, (0, 0, 1, 0, 0), "{:?}", self.shape);
    }
}
