//! Promises of indexes that keep their keys in order.

use super::numbers::mix;
use super::{Subject, fastfair, key_of, number_of, word_of};
use quipu_parts::index::alex::Alex;
use quipu_parts::index::masstree::Masstree;
use quipu_parts::index::{BothWays, InOrder, Index};
use std::collections::BTreeMap;
use std::ops::Bound;

/// Words of keys beyond where a walk begins, which an index without its keys may tell first.
fn without_first<I: Index>(mut found: Vec<u64>, is_beyond: impl Fn(&[u8]) -> bool) -> Vec<u64> {
    let first = found.iter().take_while(|word| is_beyond(&key_of(number_of(**word)))).count();
    assert!(first == 0 || !I::HAS_KEYS);
    found.drain(..first);
    found
}

/// An ordered index walks from any key on, and from any bound back.
fn walks_are_in_order<I: BothWays>(index: I) {
    let subject = Subject::new(index);
    let participant = subject.collector.register();
    let mut model = BTreeMap::new();
    for number in 0..600 {
        let (key, word) = (subject.key(number), word_of::<I>(number, 1));
        subject.upsert(&participant.pin(), &key, word);
        model.insert(key.bytes, word);
    }
    for (number, limit) in (0..40).zip([1, 7, 1_000, 0].into_iter().cycle()) {
        let from = if number % 2 == 0 { key_of(number * 9) } else { mix(number).to_be_bytes().to_vec() };
        let (mut scan, mut found) = (subject.index.scan_from(&from), Vec::new());
        let mut next = || {
            let before = found.len();
            let each = |word| found.push(word);
            let more = subject.index.next_words(&participant.pin(), &mut scan, limit, each);
            assert!(found.len() - before <= limit.max(1));
            more.expect("sound")
        };
        while next() {}
        assert!(!next(), "the end is the end");
        let found = without_first::<I>(found, |key| key < &*from);
        assert_eq!(found, model.range(from..).map(|(_, word)| *word).collect::<Vec<_>>());
    }
    for (number, limit) in (0..40).zip([1, 7, 1_000, 0].into_iter().cycle()) {
        let key = match number % 4 {
            // Longer than any key of an index.
            0 => vec![b'k'; 1 << 17],
            1 => mix(number).to_be_bytes().to_vec(),
            _ => key_of(number * 9),
        };
        for bound in [Bound::Included(&key[..]), Bound::Excluded(&key), Bound::Unbounded] {
            let (mut scan, mut found) = (subject.index.scan_back_from(bound), Vec::new());
            let mut next = || {
                let before = found.len();
                let each = |word| found.push(word);
                let more = subject.index.prev_words(&participant.pin(), &mut scan, limit, each);
                assert!(found.len() - before <= limit.max(1));
                more.expect("sound")
            };
            while next() {}
            assert!(!next(), "the end is the end");
            let found = without_first::<I>(found, |key| match bound {
                Bound::Included(to) => key > to,
                Bound::Excluded(to) => key >= to,
                Bound::Unbounded => false,
            });
            let expected = model.range::<[u8], _>((Bound::Unbounded, bound)).rev();
            assert_eq!(found, expected.map(|(_, word)| *word).collect::<Vec<_>>());
        }
    }
}

/// An index that has its keys tells them with their words.
fn walks_tell_keys<I: InOrder>(index: I) {
    let subject = Subject::new(index);
    let participant = subject.collector.register();
    let guard = participant.pin();
    for number in 0..600 {
        subject.upsert(&guard, &subject.key(number), word_of::<I>(number, 1));
    }
    let (mut scan, mut back) = (subject.index.scan_from(&[]), subject.index.scan_back_from(Bound::Unbounded));
    let (mut told, mut told_back) = (0, 0);
    let is_its_own = |key: &[u8], word| assert_eq!(key_of(number_of(word)), key);
    let mut each = |key: &[u8], word| {
        is_its_own(key, word);
        told += 1;
    };
    while subject.index.next_in_order(&guard, &mut scan, 7, &mut each).expect("sound") {}
    let mut each = |key: &[u8], word| {
        is_its_own(key, word);
        told_back += 1;
    };
    while subject.index.prev_in_order(&guard, &mut back, 7, &mut each).expect("sound") {}
    assert_eq!((told, told_back), (600, 600));
}

#[test]
fn fastfair_walks_in_order() {
    walks_are_in_order(fastfair(1_000));
    walks_tell_keys(fastfair(1_000));
}

#[test]
fn masstree_walks_in_order() {
    walks_are_in_order(Masstree::new());
    walks_tell_keys(Masstree::new());
}

#[test]
fn alex_walks_in_order() {
    walks_are_in_order(Alex::new());
    walks_are_in_order(Alex::tiny());
}
