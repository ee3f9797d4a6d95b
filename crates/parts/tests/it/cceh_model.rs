//! The CCEH index against a map, one thread, in DRAM and in PM: random operations over hashes that are
//! random, or chosen to hurt.

use crate::cceh::support;

use proptest::prelude::*;
use quipu_parts::epoch::{Collector, Guard};
use quipu_parts::index::InPool;
use quipu_parts::index::cceh::{CcehIndex, CcehSettings, CcehStats, Cursor, NodeMemory};
use quipu_parts::index::{Index as _, IndexError};
use std::collections::HashMap;
use support::{create, format, mix};

/// How the hashes of a run are made from keys.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Hashes {
    Random,
    /// Every key wants the same home bucket.
    EqualLowBits,
    /// The directory cannot tell keys apart until it is this deep.
    EqualTopBits(u32),
    /// This many different hashes for all keys.
    Few(u64),
}

impl Hashes {
    fn of(self, key: u64) -> u64 {
        match self {
            Hashes::Random => mix(key),
            Hashes::EqualLowBits => mix(key) << 16 | 0x1234,
            Hashes::EqualTopBits(bits) => mix(key) >> bits | 0xA5A5_A5A5_A5A5_A5A5 << (64 - bits),
            Hashes::Few(different) => mix(key % different),
        }
    }
}

/// An index and the map that it should equal. A reference is a key and a version of it; the highest bit is
/// set, since a reference has 64.
struct Pair<'a, M> {
    index: CcehIndex<M>,
    map: HashMap<u64, u64>,
    hashes: Hashes,
    guard: &'a Guard<'a>,
}

const VERSIONS: u64 = 1 << 20;

fn reference(key: u64, version: u64) -> u64 {
    1 << 63 | (key * VERSIONS + version)
}

fn key_of(reference: u64) -> u64 {
    (reference & !(1 << 63)) / VERSIONS
}

impl<M: NodeMemory> Pair<'_, M> {
    fn get(&self, key: u64) -> Option<u64> {
        self.index.get(self.guard, self.hashes.of(key), |reference| key_of(reference) == key)
    }

    /// Puts a key by one of two ways; false if it was refused.
    fn put(&mut self, key: u64, version: u64) -> bool {
        let (hash, new) = (self.hashes.of(key), reference(key, version));
        if version.is_multiple_of(2) {
            let matches = |reference| key_of(reference) == key;
            return match self.index.upsert(self.guard, hash, new, matches) {
                Ok(old) => {
                    assert_eq!(old, self.map.insert(key, new));
                    true
                }
                Err(error) => self.is_refused(key, &error),
            };
        }
        match self.map.get(&key).copied() {
            Some(old) => assert!(self.index.replace(self.guard, hash, old, new)),
            None => {
                if let Err(error) = self.index.insert(self.guard, hash, new) {
                    return self.is_refused(key, &error);
                }
            }
        }
        self.map.insert(key, new);
        true
    }

    fn is_refused(&self, key: u64, error: &IndexError) -> bool {
        assert!(matches!(error, IndexError::Crowded | IndexError::Full { .. }), "{error}");
        assert!(!self.map.contains_key(&key), "only a new key can be refused");
        assert_eq!(self.get(key), None);
        false
    }

    fn remove(&mut self, key: u64) {
        let hash = self.hashes.of(key);
        if let Some(old) = self.map.remove(&key) {
            assert!(self.index.candidate(self.guard, hash).is_some());
            assert!(!self.index.remove(self.guard, hash, old ^ 1), "removed another reference");
            assert!(!self.index.replace(self.guard, hash, old ^ 1, old), "replaced another reference");
            if key.is_multiple_of(2) {
                assert!(self.index.remove(self.guard, hash, old));
            } else {
                let taken = self.index.take(self.guard, hash, |reference| key_of(reference) == key);
                assert_eq!(taken, Some(old));
            }
        }
        assert_eq!(self.index.take(self.guard, hash, |reference| key_of(reference) == key), None);
        assert_eq!(self.get(key), None);
    }

    fn check(&self, keys: u64) {
        for key in 0..keys {
            assert_eq!(self.get(key), self.map.get(&key).copied(), "key {key}");
        }
        assert_eq!(self.index.len(), self.map.len() as u64);
        assert_eq!(self.index.is_empty(), self.map.is_empty());
        let mut seen = walk(&self.index, self.guard);
        // In PM one bit of the hash is the mark of the memory.
        let hash = |key: &u64| self.hashes.of(*key) & !M::MARK;
        let mut expected: Vec<_> = self.map.iter().map(|(key, reference)| (hash(key), *reference)).collect();
        seen.sort_unstable();
        expected.sort_unstable();
        assert_eq!(seen, expected);
        assert!(!self.index.growing());
    }
}

fn walk<M: NodeMemory>(index: &CcehIndex<M>, guard: &Guard<'_>) -> Vec<(u64, u64)> {
    let (mut cursor, mut references) = (Cursor::default(), Vec::new());
    while index.next_batch(guard, &mut cursor, &mut references) {}
    references
}

/// Fills, updates, removes half, refills and empties. Returns the statistics when it was fullest.
fn churn<M: NodeMemory>(index: CcehIndex<M>, hashes: Hashes, keys: u64) -> (CcehStats, bool) {
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    let mut pair = Pair { index, map: HashMap::new(), hashes, guard: &guard };
    let mut refused = false;
    for key in 0..keys {
        refused |= !pair.put(key, key & 1);
        if key % (keys / 4).max(1) == 0 {
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
            refused |= !pair.put(key, round);
        }
        pair.check(keys);
    }
    for key in 0..keys {
        pair.remove(key);
    }
    pair.check(keys);
    (stats, refused)
}

/// The same in DRAM and in PM, where it grows by the same splits.
fn churn_everywhere(settings: CcehSettings, hashes: Hashes, keys: u64) -> (CcehStats, bool) {
    let in_dram = churn(CcehIndex::in_dram(settings), hashes, keys);
    let space = format(1 << 20, 1);
    let (index, _) = create(&space, settings);
    let first = index.stats().segments;
    let in_pm = churn(index, hashes, keys);
    assert_eq!(in_pm.1, in_dram.1);
    if first == 1 << settings.initial_depth {
        let shape = |stats: CcehStats| (stats.segments, stats.depth, stats.splits, stats.slots);
        assert_eq!(shape(in_pm.0), shape(in_dram.0));
    }
    assert!(in_pm.0.pm_bytes > 0 && in_dram.0.pm_bytes == 0);
    in_dram
}

#[test]
fn random_hashes() {
    let (stats, refused) = churn_everywhere(CcehSettings::tiny(), Hashes::Random, 2_000);
    assert!(!refused && stats.splits > 100 && stats.depth > 7, "{stats:?}");
    let odd = CcehSettings { initial_depth: 2, bucket_bits: 3, probe: 5 };
    churn_everywhere(odd, Hashes::Random, 2_000);
    let one_bucket = CcehSettings { initial_depth: 0, bucket_bits: 0, probe: 1 };
    churn_everywhere(one_bucket, Hashes::Random, 500);
    churn(CcehIndex::in_dram(CcehSettings::paper()), Hashes::Random, 60_000);
    churn(CcehIndex::in_dram(CcehSettings::dense()), Hashes::Random, 60_000);
}

#[test]
fn keys_that_want_the_same_bucket() {
    churn_everywhere(CcehSettings::tiny(), Hashes::EqualLowBits, 300);
    churn(CcehIndex::in_dram(CcehSettings::paper()), Hashes::EqualLowBits, 3_000);
}

#[test]
fn equal_top_bits_deepen_one_segment() {
    let (stats, refused) = churn_everywhere(CcehSettings::tiny(), Hashes::EqualTopBits(8), 200);
    assert!(!refused && stats.depth > 8, "{stats:?}");
}

#[test]
fn hopeless_hashes_are_refused_instead_of_growing_the_directory() {
    for hashes in [Hashes::EqualTopBits(30), Hashes::Few(1), Hashes::Few(3)] {
        let (stats, refused) = churn_everywhere(CcehSettings::tiny(), hashes, 300);
        assert!(refused && stats.depth <= 16, "{hashes:?}: {stats:?}");
    }
}

#[test]
fn keys_of_one_hash_fill_the_lines_that_are_theirs() {
    let (stats, refused) = churn_everywhere(CcehSettings::tiny(), Hashes::Few(1), 8);
    assert!(!refused && stats.splits == 0, "two lines hold eight entries: {stats:?}");
}

#[test]
fn a_full_pool_refuses_new_keys_and_nothing_else() {
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    let space = format(40 << 10, 1);
    let (index, _) = create(&space, CcehSettings::tiny());
    let mut pair = Pair { index, map: HashMap::new(), hashes: Hashes::Random, guard: &guard };
    let refused = (0..10_000).find(|key| !pair.put(*key, 0)).expect("the pool is small");
    assert_eq!(space.free_zones(), 0);
    pair.check(refused);
    for key in 0..refused {
        pair.put(key, 1);
        pair.put(key, 2);
    }
    for key in 0..refused {
        pair.remove(key);
    }
    // In another order, a few may not find room in the lines that are theirs.
    let back = (0..refused).filter(|key| pair.put(*key, 4)).count() as u64;
    assert!(back * 10 > refused * 9, "{back} of {refused} fit again");
    pair.check(refused);
}

#[test]
fn room_that_was_made_is_there() {
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    let space = format(64 << 10, 1);
    let (index, _) = create(&space, CcehSettings::tiny());
    let mut next = 0;
    while index.make_room(4).is_ok() {
        for _ in 0..4 {
            index.insert(&guard, mix(next), next + 1).expect("room was made");
            next += 1;
        }
    }
    assert_eq!(space.free_zones(), 0);
    assert!(next > 500, "{next} keys are too few");
}

#[test]
fn a_walk_sees_each_key_once_while_segments_split() {
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    let index = CcehIndex::in_dram(CcehSettings::tiny());
    const RESIDENTS: u64 = 200;
    for key in 0..RESIDENTS {
        index.insert(&guard, mix(key), key + 1).expect("room");
    }
    let (mut cursor, mut seen, mut visitor) = (Cursor::default(), Vec::new(), RESIDENTS);
    while index.next_batch(&guard, &mut cursor, &mut seen) {
        for _ in 0..20 {
            index.insert(&guard, mix(visitor), visitor + 1).expect("room");
            visitor += 1;
        }
    }
    seen.retain(|(_, reference)| *reference <= RESIDENTS);
    seen.sort_unstable_by_key(|(_, reference)| *reference);
    assert_eq!(seen, (0..RESIDENTS).map(|key| (mix(key), key + 1)).collect::<Vec<_>>());
}

#[test]
fn settings_out_of_range_are_brought_into_range() {
    let wild = CcehSettings { initial_depth: 60, bucket_bits: 40, probe: 0 };
    let tame = CcehIndex::in_dram(CcehSettings { initial_depth: 3, ..wild }).settings();
    assert_eq!((tame.bucket_bits, tame.probe), (10, 1));
    for (bucket_bits, probe) in [(1, 2), (10, 64)] {
        let far = CcehSettings { initial_depth: 0, bucket_bits, probe: 1000 };
        assert_eq!(
            CcehIndex::in_dram(far).settings().probe,
            probe,
            "no more lines than a segment has, or 64"
        );
    }
    let space = format(64 << 10, 1);
    let large = CcehIndex::create(space.clone(), CcehSettings::paper(), 0, |_| ()).err();
    assert!(matches!(large, Some(IndexError::ZoneTooSmall { bytes: 16384, zone: 4096 })), "{large:?}");
    assert_eq!(space.audit().expect("sound").zones.committed, 0);
    let deep = CcehSettings { initial_depth: 16, ..CcehSettings::tiny() };
    assert_eq!(create(&space, deep).0.stats().segments, 8, "as many as a zone holds, in a power of two");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn random_operations(
        operations in proptest::collection::vec((0u8..4, 0u64..60), 1..400),
        bucket_bits in 0u32..3,
        probe in 1u32..4,
        crowded in any::<bool>(),
    ) {
        let settings = CcehSettings { initial_depth: 0, bucket_bits, probe };
        let collector = Collector::new();
        let participant = collector.register();
        let guard = participant.pin();
        let hashes = if crowded { Hashes::EqualTopBits(6) } else { Hashes::Random };
        let mut pair = Pair { index: CcehIndex::in_dram(settings), map: HashMap::new(), hashes, guard: &guard };
        for (version, (operation, key)) in operations.into_iter().enumerate() {
            if operation == 0 {
                pair.remove(key);
            } else {
                pair.put(key, version as u64);
            }
        }
        pair.check(60);
    }
}

/// A sighting is as good as a search, whatever came, went and split meanwhile, as long as nobody else added
/// the key.
#[test]
fn keys_are_added_where_they_were_sighted() {
    for hashes in [Hashes::Random, Hashes::EqualTopBits(3), Hashes::Few(300)] {
        let collector = Collector::new();
        let participant = collector.register();
        let guard = participant.pin();
        let index = CcehIndex::in_dram(CcehSettings::tiny());
        let mut pair = Pair { index, map: HashMap::new(), hashes, guard: &guard };
        let (mut pending, mut added, mut searched) = (Vec::new(), 0, 0);
        for step in 0..40_000 {
            let (draw, key) = (mix(step), mix(step) >> 32 & 511);
            let is_pending = pending.iter().any(|(pending, _)| *pending == key);
            let is_there = pair.map.contains_key(&key);
            if draw % 4 == 0 && !pending.is_empty() {
                let (key, sighting) = pending.swap_remove(draw as usize / 4 % pending.len());
                let mut segment = pair.index.lock(hashes.of(key));
                if segment.add_where(sighting, reference(key, step)) {
                    pair.map.insert(key, reference(key, step));
                    added += 1;
                } else {
                    drop(segment);
                    searched += 1;
                    pair.put(key, step);
                }
            } else if is_pending {
                continue;
            } else if !is_there && draw % 3 == 0 {
                pending.push((key, pair.index.sight(&guard, hashes.of(key))));
            } else if is_there && draw % 2 == 0 {
                let named = |reference| key_of(reference) == key;
                assert_eq!(pair.index.take(&guard, hashes.of(key), named), pair.map.remove(&key));
            } else {
                pair.put(key, step);
            }
        }
        assert!(added > 500 && searched > 20, "{hashes:?}: {added} added, {searched} searched for");
        (0..512).for_each(|key| assert_eq!(pair.get(key), pair.map.get(&key).copied(), "{hashes:?}: {key}"));
        assert_eq!(pair.index.len(), pair.map.len() as u64);
    }
}
