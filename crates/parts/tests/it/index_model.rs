//! The hash index against a map, one thread: random operations over hashes that are random, or chosen to
//! hurt.

use crate::shared::mix as numbers;

use crate::shared::keyed::ByHash;
use numbers::mix;
use proptest::prelude::*;
use quipu_parts::epoch::{Collector, Guard};
use quipu_parts::index::hash::{Cursor, HashIndex, HashIndexSettings};
use std::collections::{HashMap, HashSet};

/// How the hashes of a run are made from keys.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Hashes {
    Random,
    /// Every key wants the same home bucket.
    EqualLowBits,
    /// The directory cannot tell keys apart, and tags run out at once.
    EqualTopBits(u32),
    /// Tags cannot tell keys apart until the window has moved.
    EqualTags,
    /// This many different hashes for all keys.
    Few(u64),
}

impl Hashes {
    fn of(self, key: u64) -> u64 {
        match self {
            Hashes::Random => mix(key),
            Hashes::EqualLowBits => mix(key) << 16 | 0x1234,
            Hashes::EqualTopBits(bits) => mix(key) >> bits | 0xA5A5_A5A5_A5A5_A5A5 << (64 - bits),
            Hashes::EqualTags => mix(key) & 0xF000_FFFF_FFFF_FFFF | 0x0ABC_0000_0000_0000,
            Hashes::Few(different) => mix(key % different),
        }
    }
}

/// An index and the map that it should equal. A reference is a key and a version of it.
struct Pair<'a> {
    index: HashIndex,
    map: HashMap<u64, u64>,
    hashes: Hashes,
    guard: &'a Guard<'a>,
}

const VERSIONS: u64 = 1 << 20;

fn key_of(reference: u64) -> u64 {
    reference / VERSIONS
}

impl Pair<'_> {
    fn new<'a>(settings: HashIndexSettings, hashes: Hashes, guard: &'a Guard<'a>) -> Pair<'a> {
        Pair { index: HashIndex::new(settings), map: HashMap::new(), hashes, guard }
    }

    fn get(&self, key: u64) -> Option<u64> {
        self.index.get(self.guard, self.hashes.of(key), |reference| key_of(reference) == key)
    }

    fn put(&mut self, key: u64, version: u64) {
        let reference = key * VERSIONS + version;
        let hash = self.hashes.of(key);
        match self.map.insert(key, reference) {
            Some(old) => assert!(self.index.replace(self.guard, hash, old, reference)),
            None => {
                let hashes = self.hashes;
                self.index.insert(self.guard, hash, reference, &|reference| hashes.of(key_of(reference)));
            }
        }
    }

    fn remove(&mut self, key: u64) {
        let hash = self.hashes.of(key);
        if let Some(old) = self.map.remove(&key) {
            assert!(!self.index.remove(self.guard, hash, old ^ 1), "removed another reference");
            assert!(!self.index.replace(self.guard, hash, old ^ 1, old), "replaced another reference");
            assert!(self.index.remove(self.guard, hash, old));
        }
        assert_eq!(self.get(key), None);
    }

    fn iterate(&self) -> Vec<u64> {
        let (mut cursor, mut references) = (Cursor::default(), Vec::new());
        while self.index.next_batch(self.guard, &mut cursor, &mut references) {}
        references
    }

    fn check(&self, keys: u64) {
        for key in 0..keys {
            assert_eq!(self.get(key), self.map.get(&key).copied(), "key {key}");
        }
        assert_eq!(self.index.len(), self.map.len() as u64);
        let mut seen = self.iterate();
        let mut expected: Vec<u64> = self.map.values().copied().collect();
        seen.sort_unstable();
        expected.sort_unstable();
        assert_eq!(seen, expected);
        assert!(!self.index.growing());
    }
}

/// Fills, updates, removes half, refills and empties.
fn churn(settings: HashIndexSettings, hashes: Hashes, keys: u64) -> quipu_parts::index::hash::HashIndexStats {
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    let mut pair = Pair::new(settings, hashes, &guard);
    for key in 0..keys {
        pair.put(key, 1);
        if key % (keys / 8) == 0 {
            pair.check(keys);
        }
    }
    pair.check(keys);
    let stats = pair.index.stats();
    for round in 2..5 {
        for key in (0..keys).filter(|key| mix(key ^ round).is_multiple_of(2)) {
            pair.remove(key);
        }
        pair.check(keys);
        for key in (0..keys).filter(|key| !mix(key + round).is_multiple_of(3)) {
            pair.put(key, round);
        }
        pair.check(keys);
    }
    for key in 0..keys {
        pair.remove(key);
    }
    pair.check(keys);
    assert!(pair.index.is_empty());
    stats
}

const TINY: fn() -> HashIndexSettings = HashIndexSettings::tiny;

#[test]
fn random_hashes_need_no_record_until_tags_run_out() {
    let stats = churn(TINY(), Hashes::Random, 3_000);
    assert_eq!(stats.records_read_by_splits, 0);
    assert!(stats.depth <= 8 && stats.displacements > 0, "{stats:?}");
    assert_eq!(stats.overflowing, 0);
}

#[test]
fn records_are_read_when_tags_run_out() {
    let stats = churn(TINY(), Hashes::Random, 20_000);
    assert!(stats.depth > 8);
    // Tags of 16 bits allow eight splits; the ninth reads, the next ones do not.
    let read = stats.records_read_by_splits;
    assert!((5_000..20_000).contains(&read), "{read} records read");
    assert_eq!(stats.overflowing, 0);
}

#[test]
fn equal_top_bits_make_tags_run_out() {
    for bits in [1, 8, 12] {
        let stats = churn(TINY(), Hashes::EqualTopBits(bits), 2_000);
        assert_eq!(stats.records_read_by_splits > 0, bits > 1, "{bits} bits: {stats:?}");
    }
}

#[test]
fn hopeless_prefixes_overflow_instead_of_growing_the_directory() {
    for bits in [20, 30, 50] {
        let stats = churn(TINY(), Hashes::EqualTopBits(bits), 600);
        assert!(stats.depth <= 16 && stats.overflowing > 0, "{bits} bits: {stats:?}");
    }
}

#[test]
fn keys_that_want_the_same_bucket() {
    churn(TINY(), Hashes::EqualLowBits, 2_000);
    churn(HashIndexSettings { initial_depth: 1, bucket_bits: 4 }, Hashes::EqualLowBits, 2_000);
    churn(HashIndexSettings::default(), Hashes::EqualLowBits, 10_000);
}

#[test]
fn keys_with_equal_tags() {
    churn(TINY(), Hashes::EqualTags, 1_000);
    churn(HashIndexSettings { initial_depth: 2, bucket_bits: 4 }, Hashes::EqualTags, 3_000);
}

#[test]
fn a_dozen_keys_with_one_hash_fit_into_two_buckets() {
    let stats = churn(TINY(), Hashes::Few(1), 12);
    assert_eq!((stats.overflowing, stats.splits), (0, 0));
}

#[test]
fn hundreds_of_keys_with_one_hash_overflow() {
    for different in [1, 2, 5] {
        let stats = churn(TINY(), Hashes::Few(different), 400);
        assert!(stats.overflowing > 300, "{stats:?}");
    }
    let stats = churn(HashIndexSettings::default(), Hashes::Few(3), 200);
    assert_eq!(stats.splits, 0, "a split cannot help, so none is made");
}

#[test]
fn every_shape_of_segment() {
    for bucket_bits in 1..=8 {
        for initial_depth in [0, 1, 4] {
            churn(HashIndexSettings { initial_depth, bucket_bits }, Hashes::Random, 4_000);
        }
    }
}

#[test]
fn segments_fill_before_they_split() {
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    for seed in 0..20 {
        let settings = HashIndexSettings { initial_depth: 0, ..HashIndexSettings::default() };
        let index = HashIndex::new(settings);
        let mut keys = 0u64;
        while index.stats().splits == 0 {
            keys += 1;
            index.insert(&guard, mix(keys << 8 | seed), keys, &|_| unreachable!("tags are fresh"));
        }
        let fill = (keys - 1) as f64 / 2048.0;
        assert!(fill > 0.90, "seed {seed} filled to {fill}");
    }
}

#[test]
fn bytes_per_record_stay_in_bounds_while_growing() {
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    let index = HashIndex::new(HashIndexSettings::default());
    let (mut sum, mut samples) = (0.0, 0.0);
    for key in 1..=2_000_000u64 {
        index.insert(&guard, mix(key), key, &|_| unreachable!("tags are fresh"));
        if key >= 750_000 && key % 10_000 == 0 {
            let bytes = index.stats().bytes as f64 / key as f64;
            assert!(bytes < 18.9, "{bytes} bytes per record at {key} records");
            sum += bytes;
            samples += 1.0;
        }
    }
    assert!(sum / samples < 14.5, "{} bytes per record on average", sum / samples);
    let empty = HashIndex::new(HashIndexSettings::default()).stats().bytes;
    assert!(empty < 600_000, "an empty index has {empty} bytes");
}

#[test]
fn a_candidate_is_the_record_to_prefetch() {
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    let mut pair = Pair::new(HashIndexSettings::default(), Hashes::Random, &guard);
    (0..50_000).for_each(|key| pair.put(key, 1));
    let right = (0..50_000).filter(|&key| {
        pair.index.prefetch(&guard, mix(key));
        pair.index.candidate(&guard, mix(key)) == pair.get(key)
    });
    assert!(right.count() > 49_000);
    let found = (50_000..100_000).filter(|&key| pair.index.candidate(&guard, mix(key)).is_some()).count();
    assert!(found < 2_500, "{found} of 50,000 absent keys have a candidate");
}

#[test]
#[should_panic(expected = "a reference has 1 to 48 bits")]
fn zero_is_no_reference() {
    let collector = Collector::new();
    let participant = collector.register();
    HashIndex::new(TINY()).insert(&participant.pin(), 1, 0, &|_| 0);
}

/// Records whose hash has changed are damaged, and found by nobody. The index drops them where it notices,
/// and goes on.
#[test]
fn a_changed_hash_is_noticed() {
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    let index = HashIndex::new(TINY());
    let damaged = |key: u64| key % 7 == 3;
    let rehash = |key: u64| if damaged(key) { mix(key + 1) } else { mix(key) };
    for key in 1..=20_000 {
        index.insert(&guard, mix(key), key, &rehash);
    }
    let strays = index.stats().strays;
    assert!(strays > 1000 && index.len() == 20_000 - strays, "{strays} of 20,000");
    let is_there = |key: u64| index.get(&guard, mix(key), |reference| reference == key).is_some();
    assert!((1..=20_000).filter(|key| !damaged(*key)).all(is_there));
}

/// Splits between two steps of an iteration neither hide nor repeat a key that is present throughout.
#[test]
fn iteration_while_splitting() {
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    for hashes in [Hashes::Random, Hashes::EqualTopBits(6), Hashes::Few(40)] {
        let mut pair = Pair::new(TINY(), hashes, &guard);
        (0..500).for_each(|key| pair.put(key, 1));
        let (mut cursor, mut references, mut next) = (Cursor::default(), Vec::new(), 500);
        while pair.index.next_batch(&guard, &mut cursor, &mut references) {
            // Keys of one hash are looked through one by one.
            for _ in 0..if matches!(hashes, Hashes::Few(_)) { 10 } else { 200 } {
                pair.put(next, 1);
                next += 1;
            }
        }
        let unique: HashSet<u64> = references.iter().copied().collect();
        assert_eq!(unique.len(), references.len(), "{hashes:?}: a key was seen twice");
        assert!((0..500).all(|key| unique.contains(&(key * VERSIONS + 1))), "{hashes:?}: a key was missed");
    }
}

#[derive(Clone, Debug)]
enum Act {
    Put(u64),
    Remove(u64),
    Get(u64),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = (0u8..5, 0u64..400).prop_map(|(kind, key)| match kind {
        0..=2 => Act::Put(key),
        3 => Act::Remove(key),
        _ => Act::Get(key),
    });
    prop::collection::vec(act, 1..1_500)
}

fn kinds() -> impl Strategy<Value = Hashes> {
    prop_oneof![
        Just(Hashes::Random),
        Just(Hashes::EqualLowBits),
        (1u32..40).prop_map(Hashes::EqualTopBits),
        Just(Hashes::EqualTags),
        (1u64..60).prop_map(Hashes::Few),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn equals_a_map(acts in acts(), hashes in kinds(), initial_depth in 0u32..3, bucket_bits in 1u32..5) {
        let collector = Collector::new();
        let participant = collector.register();
        let guard = participant.pin();
        let mut pair = Pair::new(HashIndexSettings { initial_depth, bucket_bits }, hashes, &guard);
        for (version, act) in acts.into_iter().enumerate() {
            match act {
                Act::Put(key) => pair.put(key, version as u64 + 1),
                Act::Remove(key) => pair.remove(key),
                Act::Get(key) => assert_eq!(pair.get(key), pair.map.get(&key).copied()),
            }
        }
        pair.check(400);
    }
}

/// Readers call back between looking at one place and the next, so one thread can let keys come, go, move and
/// split exactly there. A key that is present throughout must be found all the same.
#[test]
fn a_present_key_is_found_whatever_moves_while_it_is_looked_for() {
    const RESIDENTS: u64 = 24;
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    for seed in 0..6_000u64 {
        // Tags differ in few bits, so that most lookups see foreign candidates first.
        let hash_of = |key: u64| mix(key ^ seed << 32) & 0xF000_0001_FFFF_FFFF;
        let rehash = |reference: u64| hash_of(key_of(reference));
        let index = HashIndex::new(HashIndexSettings::tiny());
        for key in 0..RESIDENTS {
            index.insert(&guard, hash_of(key), key * VERSIONS + 1, &rehash);
        }
        let (mut next, mut visitors, mut random) = (RESIDENTS, Vec::new(), seed);
        for turn in 0..200 {
            let key = turn % RESIDENTS;
            let mut meddling = 60;
            let found = index.get(&guard, hash_of(key), |reference| {
                if meddling > 0 {
                    meddling -= 1;
                    random = mix(random);
                    // Now and then not, so that disturbances also begin in the middle of a second look.
                    if random >> 60 < 9 {
                        return key_of(reference) == key;
                    }
                    for _ in 0..random % 4 {
                        index.insert(&guard, hash_of(next), next * VERSIONS + 1, &rehash);
                        visitors.push(next);
                        next += 1;
                    }
                    for _ in 0..(random >> 8) % 4 {
                        if !visitors.is_empty() {
                            let visitor = visitors.swap_remove((random >> 16) as usize % visitors.len());
                            assert!(index.remove(&guard, hash_of(visitor), visitor * VERSIONS + 1));
                        }
                    }
                }
                key_of(reference) == key
            });
            assert_eq!(found, Some(key * VERSIONS + 1), "seed {seed}, turn {turn}");
        }
    }
}
