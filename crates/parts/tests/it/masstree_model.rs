//! The Masstree against a `BTreeMap`, one thread: random operations over keys of awkward shapes.

use crate::masstree::support;

use proptest::prelude::*;
use quipu_parts::epoch::{Collector, Guard, Participant};
use quipu_parts::index::masstree::{BackCursor, Cursor, Hint, Masstree, MasstreeError, Upserted};
use std::collections::BTreeMap;
use support::{Keys, Random, mix};

/// An index and the map that it should equal.
#[derive(Default)]
struct Pair {
    index: Masstree,
    map: BTreeMap<Vec<u8>, u64>,
    /// Words are never used twice.
    words: u64,
}

impl Pair {
    fn next_word(&mut self) -> u64 {
        self.words += 1;
        // Words of all sizes, some of which could be taken for links.
        if self.words.is_multiple_of(2) { self.words } else { mix(self.words) | 1 << 63 }
    }

    fn put(&mut self, guard: &Guard<'_>, key: &[u8]) -> Hint {
        let word = self.next_word();
        let old = self.map.insert(key.to_vec(), word);
        assert_eq!(self.index.locate(guard, key).0, old);
        let Upserted { old: found, hint } = self.index.upsert(guard, key, word).expect("room");
        assert_eq!(found, old, "{key:?}");
        assert_eq!(self.index.locate(guard, key), (Some(word), hint), "{key:?}");
        hint
    }

    fn replace(&mut self, guard: &Guard<'_>, key: &[u8]) {
        let new = self.next_word();
        match self.map.get_mut(key) {
            Some(word) => {
                assert!(!self.index.replace(guard, key, *word ^ 1 << 62, new));
                assert!(self.index.replace(guard, key, *word, new));
                *word = new;
            }
            None => assert!(!self.index.replace(guard, key, 1, new)),
        }
    }

    fn replace_at(&mut self, guard: &Guard<'_>, key: &[u8]) {
        let new = self.next_word();
        let (found, hint) = self.index.locate(guard, key);
        assert_eq!(found, self.map.get(key).copied());
        assert!(hint.bits() != 0 && hint.bits() < 1 << Hint::BITS);
        if let Some(word) = self.map.get_mut(key) {
            self.index.prefetch_at(hint);
            assert!(self.index.replace_at(guard, Hint::from_bits(hint.bits()), *word, new));
            assert!(!self.index.replace_at(guard, hint, *word, new), "replaced twice");
            *word = new;
        }
    }

    fn remove(&mut self, guard: &Guard<'_>, key: &[u8]) {
        let old = self.map.remove(key);
        if let Some(old) = old
            && old.is_multiple_of(3)
        {
            assert!(!self.index.remove(guard, key, old ^ 1 << 62), "removed another word");
            assert!(self.index.remove(guard, key, old));
        } else {
            assert_eq!(self.index.take(guard, key), old, "{key:?}");
        }
        assert_eq!(self.index.get(guard, key), None);
    }

    /// The walk from a cursor, in batches of `limit`, equals the map from there on, for so many keys.
    fn check_walk<'m>(
        &self,
        guard: &Guard<'_>,
        mut cursor: Cursor,
        limit: usize,
        keys: usize,
        mut expected: impl Iterator<Item = (&'m Vec<u8>, &'m u64)>,
    ) {
        let mut left = keys;
        loop {
            let asked = limit.min(left);
            let visited = self.index.next_batch(guard, &mut cursor, asked, |key, word| {
                let expected = expected.next().map(|(key, word)| (key.as_slice(), *word));
                assert_eq!(Some((key, word)), expected);
            });
            left -= visited;
            if left == 0 {
                return;
            }
            if visited < asked {
                assert!(expected.next().is_none(), "the walk ends too early");
                assert_eq!(self.index.next_batch(guard, &mut cursor, 1, |_, _| panic!("behind the end")), 0);
                return;
            }
        }
    }

    /// The walk back from a cursor, in batches of `limit`, equals the map from there on, for at least so many keys.
    fn check_walk_back<'m>(
        &self,
        guard: &Guard<'_>,
        mut cursor: BackCursor,
        limit: usize,
        keys: usize,
        mut expected: impl Iterator<Item = (&'m Vec<u8>, &'m u64)>,
    ) {
        let mut seen = 0;
        while seen < keys {
            let visited = self.index.prev_batch(guard, &mut cursor, limit, |key, word| {
                let expected = expected.next().map(|(key, word)| (key.as_slice(), *word));
                assert_eq!(Some((key, word)), expected);
            });
            seen += visited;
            if visited < limit {
                assert!(expected.next().is_none(), "the walk ends too early");
                assert_eq!(self.index.prev_batch(guard, &mut cursor, 1, |_, _| panic!("behind the end")), 0);
                return;
            }
        }
    }

    fn check(&self, guard: &Guard<'_>) {
        for (key, word) in &self.map {
            assert_eq!(self.index.get(guard, key), Some(*word), "{key:?}");
        }
        assert_eq!(self.index.len(), self.map.len() as u64);
        assert_eq!(self.index.is_empty(), self.map.is_empty());
        for limit in [1, 7, usize::MAX] {
            self.check_walk(guard, Cursor::default(), limit, usize::MAX, self.map.iter());
            self.check_walk_back(guard, BackCursor::default(), limit, usize::MAX, self.map.iter().rev());
        }
    }

    /// Walks that begin at and behind a key.
    fn check_from(&self, guard: &Guard<'_>, key: &[u8]) {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let from = |bound| self.map.range::<[u8], _>((bound, Unbounded));
        self.check_walk(guard, Cursor::at(key), 3, 20, from(Included(key)));
        self.check_walk(guard, Cursor::behind(key), 4, 20, from(Excluded(key)));
        let to = |bound| self.map.range::<[u8], _>((Unbounded, bound)).rev();
        self.check_walk_back(guard, BackCursor::at(key), 5, 20, to(Included(key)));
        self.check_walk_back(guard, BackCursor::before(key), 6, 20, to(Excluded(key)));
    }
}

fn participant() -> Participant {
    Collector::new().register()
}

/// Fills, changes, removes half, refills and empties.
fn churn(keys: Keys, count: u64) {
    let participant = participant();
    let mut pair = Pair::default();
    for number in 0..count {
        let guard = participant.pin();
        pair.put(&guard, &keys.key(number));
        if number % (count / 6) == 0 {
            pair.check(&guard);
        }
    }
    pair.check(&participant.pin());
    for round in 1..4u64 {
        for number in 0..count {
            let guard = participant.pin();
            let key = keys.key(number);
            match mix(number ^ round << 32) % 8 {
                0..4 => pair.remove(&guard, &key),
                4 => pair.replace(&guard, &key),
                5 => pair.replace_at(&guard, &key),
                6 => pair.check_from(&guard, &key),
                _ => assert_eq!(pair.index.get(&guard, &key), pair.map.get(&key).copied()),
            }
        }
        pair.check(&participant.pin());
        for number in (0..count).filter(|number| !mix(number + round).is_multiple_of(3)) {
            pair.put(&participant.pin(), &keys.key(number));
        }
        pair.check(&participant.pin());
    }
    for number in 0..count {
        pair.remove(&participant.pin(), &keys.key(mix(number) % count));
    }
    pair.check(&participant.pin());
    for number in 0..count {
        pair.remove(&participant.pin(), &keys.key(number));
    }
    pair.check(&participant.pin());
    let stats = pair.index.stats();
    assert_eq!((stats.layers, pair.index.len()), (0, 0), "{keys:?}");
    // Two epochs must pass.
    (0..3).for_each(|_| _ = participant.collect());
    let stats = pair.index.stats();
    assert_eq!((stats.borders, stats.inners, stats.suffix_bytes), (1, 0, 0), "{keys:?}");
}

#[test]
fn keys_of_all_shapes() {
    for keys in Keys::ALL {
        churn(keys, 3_000);
        churn(keys, 40);
    }
}

#[test]
fn many_keys() {
    churn(Keys::Random8, 60_000);
    churn(Keys::Names, 30_000);
}

#[test]
fn the_shortest_and_the_longest_keys() {
    let participant = participant();
    let guard = participant.pin();
    let mut pair = Pair::default();
    let longest = vec![9; Masstree::MAX_KEY];
    let refused = pair.index.upsert(&guard, &[9; Masstree::MAX_KEY + 1], 1);
    assert_eq!(refused, Err(MasstreeError::KeyTooLong { len: 65_536 }));
    assert_eq!(pair.index.get(&guard, &[9; Masstree::MAX_KEY + 1]), None);
    pair.put(&guard, &[]);
    pair.put(&guard, &longest);
    pair.check(&guard);
    assert_eq!(pair.index.stats().layers, 0);
    // Nearly all of it in common: a layer for each slice.
    let mut other = longest.clone();
    other[65_533] = 8;
    pair.put(&guard, &other);
    pair.put(&guard, &longest[..65_000]);
    pair.check(&guard);
    pair.check_from(&guard, &longest[..30_000]);
    assert_eq!(pair.index.stats().layers, 8_191);
    for key in [&longest, &other, &longest[..65_000].to_vec(), &Vec::new()] {
        pair.remove(&guard, key);
        pair.check(&guard);
    }
    assert_eq!(pair.index.stats().layers, 0);
}

#[test]
fn ascending_keys_fill_their_nodes() {
    let participant = participant();
    let index = Masstree::new();
    const KEYS: u64 = 100_000;
    for number in 1..=KEYS {
        index.upsert(&participant.pin(), &number.to_be_bytes(), number).expect("room");
    }
    let stats = index.stats();
    assert_eq!(stats.borders, KEYS.div_ceil(15));
    assert!(stats.inners < stats.borders / 14 + 20, "{stats:?}");
}

/// One step of a run that proptest can shrink.
#[derive(Clone, Debug)]
enum Step {
    Put(Vec<u8>),
    Remove(Vec<u8>),
    RemoveFrom(Vec<u8>, u8),
    Replace(Vec<u8>),
    ReplaceAt(Vec<u8>),
    Walk(Vec<u8>),
}

fn any_key() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0u8), Just(1), Just(255), any::<u8>()];
    let slice =
        prop_oneof![Just(*b"\0\0\0\0\0\0\0\0"), Just(*b"abcdefgh"), Just(*b"abcdefg\0"), any::<[u8; 8]>()];
    (prop::collection::vec(slice, 0..4), prop::collection::vec(byte, 0..9))
        .prop_map(|(slices, rest)| [slices.concat(), rest].concat())
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => any_key().prop_map(Step::Put),
        3 => any_key().prop_map(Step::Remove),
        2 => (any_key(), any::<u8>()).prop_map(|(key, keys)| Step::RemoveFrom(key, keys)),
        1 => any_key().prop_map(Step::Replace),
        1 => any_key().prop_map(Step::ReplaceAt),
        1 => any_key().prop_map(Step::Walk),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn equals_a_map(steps in prop::collection::vec(any_step(), 1..600)) {
        let participant = participant();
        let mut pair = Pair::default();
        for step in &steps {
            let guard = participant.pin();
            match step {
                Step::Put(key) => _ = pair.put(&guard, key),
                Step::Remove(key) => pair.remove(&guard, key),
                Step::RemoveFrom(key, keys) => {
                    let doomed = pair.map.range(key.clone()..).take(usize::from(*keys));
                    let doomed: Vec<Vec<u8>> = doomed.map(|(key, _)| key.clone()).collect();
                    doomed.iter().for_each(|key| pair.remove(&guard, key));
                }
                Step::Replace(key) => pair.replace(&guard, key),
                Step::ReplaceAt(key) => pair.replace_at(&guard, key),
                Step::Walk(key) => pair.check_from(&guard, key),
            }
        }
        pair.check(&participant.pin());
    }

    #[test]
    fn a_hundred_walks_from_anywhere(seed in any::<u64>(), shape in 0..Keys::ALL.len()) {
        let (participant, keys) = (participant(), Keys::ALL[shape]);
        let (mut pair, mut random) = (Pair::default(), Random(seed));
        let guard = participant.pin();
        (0..500).for_each(|_| _ = pair.put(&guard, &keys.key(random.below(2_000))));
        (0..100).for_each(|_| pair.check_from(&guard, &keys.key(random.below(2_000))));
    }
}
