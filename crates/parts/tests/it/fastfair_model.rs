//! The FAST&FAIR index against a map, one thread: random operations over keys of every kind, in pools that
//! are large enough and in such that are not.

use crate::fastfair::support;

use crate::shared::keyed::ByKey;
use proptest::prelude::*;
use quipu_parts::epoch::{Collector, Guard, Participant};
use quipu_parts::index::fastfair::FastFairIndex;
use quipu_parts::index::{BothWays, Hint, InOrder, IndexError};
use std::collections::BTreeMap;
use std::ops::Bound;
use support::{Keys, create, format, mix, quick};

/// An index and the map that it should equal.
struct Pair<'a> {
    index: FastFairIndex,
    map: BTreeMap<Vec<u8>, u64>,
    hints: BTreeMap<Vec<u8>, Hint>,
    participant: &'a Participant,
}

impl<'a> Pair<'a> {
    fn new(index: FastFairIndex, participant: &'a Participant) -> Pair<'a> {
        Pair { index, map: BTreeMap::new(), hints: BTreeMap::new(), participant }
    }

    fn guard(&self) -> Guard<'a> {
        self.participant.collect();
        self.participant.pin()
    }

    /// Puts a key; false if it was refused.
    fn put(&mut self, key: &[u8], value: u64) -> bool {
        match self.index.upsert(&self.guard(), key, value) {
            Ok(upserted) => {
                assert_eq!(upserted, self.map.insert(key.to_vec(), value));
                self.hints.insert(key.to_vec(), self.index.locate(&self.guard(), key).expect("sound"));
                true
            }
            Err(IndexError::Full { .. }) => {
                assert!(!self.map.contains_key(key), "only a new key can be refused");
                assert_eq!(self.index.get(&self.guard(), key).expect("sound"), None);
                false
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn change(&mut self, key: &[u8], value: u64, way: u64) {
        let guard = self.guard();
        let Some(old) = self.map.get(key).copied() else {
            assert!(!self.index.replace(&guard, key, 77, value).expect("sound"));
            return;
        };
        let hint = self.index.locate(&guard, key).expect("sound");
        assert!(!self.index.replace(&guard, key, old + 1, value).expect("sound"), "another value");
        match way % 4 {
            0 => assert!(self.index.replace(&guard, key, old, value).expect("sound")),
            1 => assert!(self.index.replace_at(&guard, hint, old, value)),
            2 => {
                let unflushed = self.index.replace_unflushed(&guard, key, old, value).expect("sound");
                self.index.persist_all(unflushed);
            }
            _ => {
                let unflushed = self.index.replace_at_unflushed(&guard, hint, old, value);
                assert_eq!(self.index.get(&guard, key).expect("sound"), Some(value));
                self.index.persist_all(unflushed);
            }
        }
        self.map.insert(key.to_vec(), value);
    }

    fn remove(&mut self, key: &[u8], way: u64) {
        let guard = self.guard();
        let old = self.map.remove(key);
        if way.is_multiple_of(2) {
            assert_eq!(self.index.take(&guard, key).expect("sound"), old);
        } else if let Some(old) = old {
            assert!(!self.index.remove_if(&guard, key, old + 1).expect("sound"), "another value");
            assert!(self.index.remove_if(&guard, key, old).expect("sound"));
        }
        assert_eq!(self.index.get(&guard, key).expect("sound"), None);
    }

    fn scan(&self, from: &[u8], limit: usize, at_most: usize) {
        let guard = self.guard();
        let (mut cursor, mut seen) = (self.index.scan_from(from), Vec::new());
        let each = |key: &[u8], value| (key.to_vec(), value);
        while seen.len() < at_most {
            let before = seen.len();
            let add = |key: &[u8], value| seen.push(each(key, value));
            let more = self.index.next_in_order(&guard, &mut cursor, limit, add).expect("sound");
            assert!(seen.len() - before <= limit && more == (seen.len() > before));
            if !more {
                break;
            }
        }
        let expected = self.map.range(from.to_vec()..).take(seen.len());
        assert!(expected.map(|(key, value)| (key.clone(), *value)).eq(seen.iter().cloned()));
        assert!(seen.len() >= at_most || seen.len() == self.map.range(from.to_vec()..).count());
    }

    fn scan_back(&self, bound: Bound<&[u8]>, limit: usize) {
        let guard = self.guard();
        let (mut cursor, mut seen) = (self.index.scan_back_from(bound), Vec::new());
        let mut each = |key: &[u8], value| seen.push((key.to_vec(), value));
        while self.index.prev_in_order(&guard, &mut cursor, limit, &mut each).expect("sound") {}
        let expected = self.map.range::<[u8], _>((Bound::Unbounded, bound)).rev();
        assert_eq!(seen, expected.map(|(key, value)| (key.clone(), *value)).collect::<Vec<_>>());
    }

    fn check(&self) {
        let guard = self.guard();
        for (key, value) in &self.map {
            assert_eq!(self.index.get(&guard, key).expect("sound"), Some(*value), "{key:?}");
            assert!(self.index.names(&guard, key, *value).expect("sound"));
        }
        assert_eq!(self.index.len(&guard).expect("sound"), self.map.len() as u64);
        self.scan(&[], usize::MAX, usize::MAX);
        self.scan_back(Bound::Unbounded, usize::MAX);
    }

    fn nodes(&self) -> u64 {
        self.index.audit(&self.guard()).expect("sound").nodes
    }
}

/// Fills, changes, removes half, refills, and removes all.
fn churn(index: FastFairIndex, keys: Keys, count: u64) -> (u64, u64, bool) {
    let collector = Collector::new();
    let participant = collector.register();
    let mut pair = Pair::new(index, &participant);
    let mut was_refused = false;
    for number in 0..count {
        was_refused |= !pair.put(&keys.of(number), number + 1);
    }
    pair.check();
    let full = pair.nodes();
    for number in 0..count {
        pair.change(&keys.of(number), number + 1_000_000, mix(number));
    }
    pair.check();
    for number in (0..count).filter(|number| mix(*number).is_multiple_of(2)) {
        pair.remove(&keys.of(number), number);
    }
    pair.check();
    for number in 0..count {
        was_refused |= !pair.put(&keys.of(number), number + 2_000_000);
    }
    pair.check();
    for number in 0..count {
        pair.remove(&keys.of(number), number);
    }
    pair.check();
    let empty = pair.nodes();
    // What is left is known to be free.
    for _ in 0..4 {
        drop(pair.guard());
    }
    (full, empty, was_refused)
}

#[test]
fn keys_of_every_kind() {
    for keys in [Keys::Words, Keys::Rising, Keys::Long, Keys::Mixed] {
        let (full, empty, was_refused) = churn(create(&quick(16 << 20, 16 << 10)).0, keys, 5_000);
        assert!(!was_refused && full > 150, "{keys:?}: {full} nodes");
        assert!(empty * 10 < full, "{keys:?}: {empty} of {full} nodes are left");
    }
}

#[test]
fn a_full_pool_refuses_new_keys_and_nothing_else() {
    for keys in [Keys::Words, Keys::Rising, Keys::Long, Keys::Mixed] {
        let (.., was_refused) = churn(create(&format(128 << 10, 4 << 10, 1)).0, keys, 8_000);
        assert!(was_refused, "{keys:?}");
    }
}

/// Queues, in which keys come in order and go in order, use the same nodes again and again.
#[test]
fn a_queue_stays_small() {
    let collector = Collector::new();
    let participant = collector.register();
    for keys in [Keys::Rising, Keys::Mixed] {
        let mut pair = Pair::new(create(&quick(1 << 20, 16 << 10)).0, &participant);
        let key = |number: u64| match keys {
            Keys::Rising => keys.of(number),
            _ => format!("{number:012}").into_bytes(),
        };
        for number in 0..40_000 {
            assert!(pair.put(&key(number), number + 1), "{keys:?}: no room for {number}");
            if number >= 500 {
                pair.remove(&key(number - 500), number);
            }
        }
        pair.check();
        let nodes = pair.nodes();
        assert!(nodes < 100, "{keys:?}: {nodes} nodes for 500 keys");
        // And backwards.
        for number in (0..40_000u64).rev() {
            assert!(pair.put(&key(number), number + 1), "{keys:?}: no room for {number}");
            pair.remove(&key(number + 500), number);
        }
        pair.check();
        let nodes = pair.nodes();
        assert!(nodes < 150, "{keys:?}: {nodes} nodes for 500 keys");
    }
}

#[test]
fn keys_at_the_limits() {
    let collector = Collector::new();
    let participant = collector.register();
    let mut pair = Pair::new(create(&quick(4 << 20, 4 << 10)).0, &participant);
    let long = vec![7u8; 65_535];
    let mut other = long.clone();
    other[65_534] = 8;
    for (value, key) in
        [&[][..], &[0], &[0; 8], &[0xFF; 8], &[0xFF; 9], &long, &other].into_iter().enumerate()
    {
        assert!(pair.put(key, value as u64 + 1));
    }
    pair.check();
    pair.scan(&[7], 2, usize::MAX);
    pair.scan(&long, 1, usize::MAX);
    pair.scan(&vec![7u8; 70_000], 1, usize::MAX);
    for key in [&[7][..], &long, &vec![7u8; 70_000]] {
        pair.scan_back(Bound::Included(key), 2);
        pair.scan_back(Bound::Excluded(key), 1);
    }
    let too_long = vec![7u8; 65_536];
    let refused = pair.index.upsert(&participant.pin(), &too_long, 1);
    assert!(matches!(refused, Err(IndexError::KeyTooLong { len: 65_536, max: 65_535 })));
    pair.remove(&long, 0);
    pair.check();
}

#[derive(Clone, Debug)]
enum Action {
    Put(u64, u64),
    Change(u64, u64),
    Remove(u64),
    Scan(u64, usize),
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let key = 0u64..120;
    let action = prop_oneof![
        4 => (key.clone(), 1u64..1 << 62).prop_map(|(key, value)| Action::Put(key, value)),
        1 => (key.clone(), 1u64..1 << 62).prop_map(|(key, value)| Action::Change(key, value)),
        3 => key.clone().prop_map(Action::Remove),
        1 => (key, 1usize..40).prop_map(|(key, limit)| Action::Scan(key, limit)),
    ];
    prop::collection::vec(action, 1..600)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn random_operations(kind in 0usize..4, actions in actions()) {
        let keys = [Keys::Words, Keys::Rising, Keys::Long, Keys::Mixed][kind];
        let collector = Collector::new();
        let participant = collector.register();
        let mut pair = Pair::new(create(&quick(512 << 10, 4 << 10)).0, &participant);
        for (step, action) in actions.into_iter().enumerate() {
            match action {
                Action::Put(key, value) => drop(pair.put(&keys.of(key), value)),
                Action::Change(key, value) => pair.change(&keys.of(key), value, step as u64),
                Action::Remove(key) => pair.remove(&keys.of(key), step as u64),
                Action::Scan(key, limit) => {
                    pair.scan(&keys.of(key), limit, 3 * limit);
                    pair.scan_back(Bound::Included(&keys.of(key)), limit);
                    pair.scan_back(Bound::Excluded(&keys.of(key)), limit);
                }
            }
        }
        pair.check();
    }
}
