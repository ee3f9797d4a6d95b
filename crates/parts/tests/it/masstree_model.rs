//! The Masstree against a `BTreeMap`, one thread: random operations over keys of awkward shapes.

use crate::masstree::pair::{Pair, participant};
use crate::shared::keys::{Keys, Random, mix};

use crate::shared::keyed::ByKey;
use proptest::prelude::*;
use quipu_parts::index::IndexError;
use quipu_parts::index::masstree::Masstree;

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
                _ => assert_eq!(pair.index.get(&guard, &key).expect("sound"), pair.map.get(&key).copied()),
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
    assert_eq!((stats.layers, pair.index.keys()), (0, 0), "{keys:?}");
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
    assert!(matches!(refused, Err(IndexError::KeyTooLong { len: 65_536, max: 65_535 })));
    assert_eq!(pair.index.get(&guard, &[9; Masstree::MAX_KEY + 1]).expect("sound"), None);
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
