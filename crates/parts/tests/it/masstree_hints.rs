//! Shortcuts: a right one leads to its word past all inner nodes; a stale, torn or forged one does no harm.

use crate::shared::keyed::{ByKey, by_bytes};
use crate::shared::keys::{Keys, Random, mix};

use quipu_parts::epoch::{Collector, Participant};
use quipu_parts::index::masstree::{Masstree, inner_nodes_visited};
use quipu_parts::index::{self, Hint};
use std::collections::HashMap;

/// An index, what it must hold, and for each key number the hints that were ever given for it, the latest
/// last.
struct Hinted {
    index: Masstree,
    participant: Participant,
    shape: Keys,
    words: HashMap<u64, u64>,
    hints: HashMap<u64, Vec<Hint>>,
    last_word: u64,
}

impl Hinted {
    fn new(shape: Keys) -> Hinted {
        let participant = Collector::new().register();
        let (words, hints) = Default::default();
        // Words far above all numbers of nodes.
        Hinted { index: Masstree::new(), participant, shape, words, hints, last_word: 1 << 40 }
    }

    fn next_word(&mut self) -> u64 {
        self.last_word += 1;
        self.last_word
    }

    fn put(&mut self, number: u64) {
        let word = self.next_word();
        let (guard, key) = (self.participant.pin(), self.shape.key(number));
        assert_eq!(self.index.upsert(&guard, &key, word).expect("room"), self.words.insert(number, word));
        self.hints.entry(number).or_default().push(self.index.locate(&guard, &key).expect("a hint"));
    }

    fn remove(&mut self, number: u64) {
        let found = self.index.take(&self.participant.pin(), &self.shape.key(number)).expect("sound");
        assert_eq!(found, self.words.remove(&number));
    }

    fn check(&self) {
        let guard = self.participant.pin();
        for (number, word) in &self.words {
            assert_eq!(self.index.get(&guard, &self.shape.key(*number)).expect("sound"), Some(*word));
        }
        assert_eq!(self.index.keys(), self.words.len() as u64);
    }

    /// Tries a hint for a key's word. If it is accepted the key has the new word, and else nothing has
    /// changed.
    fn try_hint(&mut self, number: u64, hint: Hint) -> bool {
        let new = self.next_word();
        let guard = self.participant.pin();
        let Some(old) = self.words.get_mut(&number) else { return false };
        self.index.prefetch_at(&guard, hint);
        let done = self.index.replace_at(&guard, hint, *old, new);
        if done {
            *old = new;
        }
        assert_eq!(self.index.get(&guard, &self.shape.key(number)).expect("sound"), Some(*old));
        done
    }

    /// Tries for every key all hints that it ever had; returns the share for which the last one was right.
    fn try_all(&mut self) -> f64 {
        let hints: Vec<(u64, Vec<Hint>)> =
            self.hints.iter().map(|(number, hints)| (*number, hints.clone())).collect();
        let mut right = 0;
        for (number, hints) in &hints {
            for hint in hints {
                right +=
                    u64::from(self.try_hint(*number, *hint) && hint == hints.last().expect("one at least"));
            }
        }
        right as f64 / self.words.len() as f64
    }
}

const KEYS: u64 = 20_000;

#[test]
fn a_right_hint_leads_past_all_inner_nodes() {
    for shape in [Keys::Random8, Keys::Suffixes, Keys::LongPrefix] {
        let mut hinted = Hinted::new(shape);
        (0..KEYS).for_each(|number| hinted.put(number));
        // Updates give hints of where everything stands now.
        (0..KEYS).for_each(|number| hinted.put(number));
        let guard = hinted.participant.pin();
        let before = inner_nodes_visited();
        for number in 0..KEYS {
            let hint = *hinted.hints[&number].last().expect("was given");
            let old = hinted.words[&number];
            hinted.index.prefetch_at(&guard, hint);
            assert!(hinted.index.replace_at(&guard, hint, old, old + (1 << 50)), "{shape:?} key {number}");
        }
        assert_eq!(inner_nodes_visited(), before, "{shape:?}");
        for number in 0..KEYS {
            let (key, word) = (shape.key(number), hinted.words[&number]);
            assert!(hinted.index.replace(&guard, &key, word + (1 << 50), word).expect("sound"));
        }
        let visited = inner_nodes_visited() - before;
        assert!(visited >= 3 * KEYS, "{shape:?}: looking by the key visits {visited} inner nodes");
        drop(guard);
        hinted.check();
    }
}

#[test]
fn locate_foresees_where_a_new_key_will_stand() {
    let mut hinted = Hinted::new(Keys::Random8);
    let mut right = 0;
    for number in 0..KEYS {
        let foreseen = hinted.index.locate(&hinted.participant.pin(), &hinted.shape.key(number));
        let foreseen = foreseen.expect("a hint");
        hinted.put(number);
        right += u64::from(foreseen == *hinted.hints[&number].last().expect("just put"));
        assert!(hinted.try_hint(number, foreseen), "not even in the next node");
    }
    assert!(right > KEYS * 8 / 10, "{right} of {KEYS} foreseen");
}

/// Keys come in random order and are never updated, so many hints are older than a split or two.
#[test]
fn hints_of_a_growing_index_stay_right_for_a_while() {
    let mut hinted = Hinted::new(Keys::Random8);
    (0..KEYS).for_each(|number| hinted.put(number));
    let right = hinted.try_all();
    println!("{:.0} % of the hints are right after {KEYS} insertions", right * 100.0);
    assert!(right > 0.5, "{right:.2} of the hints are right");
    hinted.check();
}

#[test]
fn stale_hints_do_no_harm() {
    for shape in Keys::ALL {
        // Several numbers may have one key; then the words of the last one count.
        let unique: HashMap<Vec<u8>, u64> = (0..3_000).map(|number| (shape.key(number), number)).collect();
        let numbers: Vec<u64> = unique.into_values().collect();
        let mut hinted = Hinted::new(shape);
        for round in 0..6u64 {
            for number in &numbers {
                match mix(*number ^ round << 32) % 4 {
                    0 if hinted.words.contains_key(number) => hinted.remove(*number),
                    0 | 1 => hinted.put(*number),
                    _ => {}
                }
            }
            hinted.try_all();
            hinted.check();
            // Everything goes, and nodes come back as others.
            if round == 3 {
                numbers.iter().filter(|number| !number.is_multiple_of(50)).for_each(|number| {
                    if hinted.words.contains_key(number) {
                        hinted.remove(*number);
                    }
                });
                (0..3).for_each(|_| _ = hinted.participant.collect());
                hinted.try_all();
                hinted.check();
            }
        }
    }
}

#[test]
fn torn_and_forged_hints_do_no_harm() {
    let mut hinted = Hinted::new(Keys::LongPrefix);
    (0..2_000).for_each(|number| hinted.put(number));
    let mut random = Random(7);
    for _ in 0..200_000 {
        let (a, b) = (random.below(2_000), random.below(2_000));
        let (one, other) = (hinted.hints[&a][0].bits(), hinted.hints[&b][0].bits());
        let mask = u64::MAX << random.below(64);
        let forged = match random.below(3) {
            0 => one & mask | other & !mask,
            1 => random.below(u64::MAX),
            _ => random.below(u64::MAX) >> random.below(64),
        };
        hinted.try_hint(a, Hint::from_bits(forged));
    }
    hinted.check();
}

/// A link is a word of its slot too, but none of a key.
#[test]
fn links_are_not_taken_for_words() {
    let mut hinted = Hinted::new(Keys::LongPrefix);
    (0..500).for_each(|number| hinted.put(number));
    let stats = hinted.index.stats();
    assert!(stats.layers > 10);
    let guard = hinted.participant.pin();
    // Every number that could be a link, at every place where one could stand.
    let numbers = 2 * stats.borders + stats.inners + 32;
    for border in 0..numbers {
        for slot in 0..32 {
            for link in (0..=stats.borders + 16).flat_map(|number| [number, number | 1 << 31]) {
                let hint = Hint::from_bits(border << 5 | slot);
                assert!(!hinted.index.replace_at(&guard, hint, link, 1 << 60), "took link {link} for a word");
            }
        }
    }
    drop(guard);
    hinted.check();
}

/// Every operation by a hint to any node at all, with keys whose slices occur in several layers: each finds
/// its own key.
#[test]
fn any_node_is_a_hint_to_any_key() {
    let slices: Vec<[u8; 8]> = (0..12u64).map(|number| (number * 1000).to_be_bytes()).collect();
    let (index, participant) = (Masstree::new(), Collector::new().register());
    let (mut model, mut word) = (HashMap::new(), 0);
    for step in 0..60_000u64 {
        let guard = participant.pin();
        let draw = mix(step);
        let bytes: Vec<u8> = (0..=draw % 3)
            .flat_map(|part| slices[(draw >> (8 + 8 * part)) as usize % slices.len()])
            .collect();
        let key = by_bytes(&bytes);
        // The number of a node stands above five bits of a slot.
        let near = Some(((draw >> 40) % (index.stats().borders + 4)) << 5);
        let never = |_| unreachable!("it has the keys");
        let rehash = |_| unreachable!("it has the keys");
        // It fills and empties by turns, so that nodes are used again in other layers.
        match draw >> 60 {
            0..4 => {
                assert_eq!(index::Index::candidate(&index, &guard, key, near), model.get(&bytes).copied())
            }
            4..9 if step / 6_000 % 2 == 1 => {
                let taken = index::Index::take(&index, &guard, key, near, never).expect("sound");
                assert_eq!(taken, model.remove(&bytes));
            }
            _ => {
                word += 1;
                let old =
                    index::Index::upsert(&index, &guard, key, word, near, never, &rehash).expect("room");
                assert_eq!(old, model.insert(bytes, word));
            }
        }
    }
    assert!(model.len() > 100 && index.stats().layers > 10);
    let guard = participant.pin();
    assert!(model.iter().all(|(key, word)| ByKey::get(&index, &guard, key).expect("sound") == Some(*word)));
}
