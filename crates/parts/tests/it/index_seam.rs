//! Promises of every index to a store over logs, tested for all in the same way. Words come back whole and
//! are told apart from those of other keys; no replaced word is replaced twice. A walk sees a word that is
//! there all the time once, and beside a cleaner no writer's word is lost.

mod walks;

use crate::shared::mix as numbers;
use crate::shared::pool;

use numbers::mix;
use quipu_medium::{Pages, Region};
use quipu_parts::epoch::{Collector, Guard};
use quipu_parts::index::InPool;
use quipu_parts::index::alex::Alex;
use quipu_parts::index::buckets::{BucketIndex, BucketLocks, BucketSettings, Locking, TableLocks};
use quipu_parts::index::cceh::{CcehIndex, CcehSettings, PmNodes};
use quipu_parts::index::fastfair::FastFairIndex;
use quipu_parts::index::hash::{HashIndex, HashIndexSettings};
use quipu_parts::index::masstree::Masstree;
use quipu_parts::index::{Index, IndexError, Key, PmWords, Records};
use quipu_parts::record::Certifier;
use quipu_parts::space::Space;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Keys of eight bytes and of other lengths, some with much in common; no two are equal.
fn key_of(number: u64) -> Vec<u8> {
    match number % 4 {
        0 => mix(number).to_le_bytes().to_vec(),
        1 => number.to_be_bytes().to_vec(),
        2 => format!("key {number}").into_bytes(),
        _ => [&[b'k'; 20][..], &number.to_be_bytes()].concat(),
    }
}

const NUMBER_BITS: u32 = 20;

/// A word that says whose it is, of a version, with as many bits as the index has for words.
fn word_of<I: Index>(number: u64, version: u64) -> u64 {
    let above = u64::MAX << 48 & ((1 << I::WORD_BITS) - 1);
    (number + 1) | version << NUMBER_BITS | mix(number ^ version) & above
}

fn number_of(word: u64) -> u64 {
    (word & ((1 << NUMBER_BITS) - 1)) - 1
}

/// A key with its hash.
struct Hashed {
    number: u64,
    bytes: Vec<u8>,
    hash: u64,
}

/// An index with what its callers bring along.
struct Subject<I> {
    index: I,
    certifier: Certifier,
    collector: Collector,
}

impl<I: Index> Subject<I> {
    fn new(index: I) -> Subject<I> {
        Subject { index, certifier: Certifier::new(&[7; 32]), collector: Collector::new() }
    }

    fn key(&self, number: u64) -> Hashed {
        let bytes = key_of(number);
        Hashed { number, hash: I::key_hash(&self.certifier, &bytes), bytes }
    }

    fn get(&self, guard: &Guard<'_>, key: &Hashed) -> Option<u64> {
        let (near, matches) = (self.near(guard, key, key.number), |word| number_of(word) == key.number);
        self.index.get_near(guard, key.key(), near, matches).expect("sound")
    }

    fn near(&self, guard: &Guard<'_>, key: &Hashed, draw: u64) -> Option<u64> {
        let hint = self.index.hint(guard, key.key()).unwrap();
        [hint, self.index.prefetch_to_write(guard.participant(), key.key()), Some(mix(draw) >> 52 << 5), None]
            [draw as usize % 4]
    }

    fn try_upsert(&self, guard: &Guard<'_>, key: &Hashed, new: u64) -> Result<Option<u64>, IndexError> {
        let (near, matches) = (self.near(guard, key, new), |word| number_of(word) == key.number);
        self.index.upsert(guard, key.key(), new, near, matches, self)
    }

    fn upsert(&self, guard: &Guard<'_>, key: &Hashed, new: u64) -> Option<u64> {
        self.try_upsert(guard, key, new).expect("room")
    }

    fn take(&self, guard: &Guard<'_>, key: &Hashed) -> Option<u64> {
        self.index
            .take(guard, key.key(), self.near(guard, key, key.number), |word| number_of(word) == key.number)
            .expect("sound")
    }

    fn walk(&self, guard: &Guard<'_>) -> Vec<u64> {
        let (mut cursor, mut words) = (I::Cursor::default(), Vec::new());
        while self.index.next_batch(guard, &mut cursor, &mut words).expect("sound") {}
        words.sort_unstable();
        words
    }
}

impl<I: Index> Records for Subject<I> {
    fn hash_of(&self, word: u64) -> u64 {
        self.key(number_of(word)).hash
    }

    fn key_of(&self, word: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&key_of(number_of(word)));
    }
}

impl Hashed {
    fn key(&self) -> Key<'_> {
        Key { bytes: &self.bytes, hash: self.hash }
    }
}

/// Random operations, held against a map.
fn behaves_like_a_map<I: Index>(index: I) {
    const KEYS: u64 = 700;
    let subject = Subject::new(index);
    let participant = subject.collector.register();
    let (mut model, mut hints, mut unflushed) = (HashMap::new(), HashMap::new(), Vec::new());
    let mut by_hint = 0;
    for step in 1..30_000u64 {
        let guard = participant.pin();
        let draw = mix(step);
        let key = subject.key(draw % KEYS);
        let now = model.get(&key.number).copied();
        let new = word_of::<I>(key.number, step);
        if step % 3 == 0 {
            subject.index.prefetch(&participant, key.key());
        }
        match draw >> 32 & 15 {
            0..=5 => {
                assert_eq!(subject.upsert(&guard, &key, new), now);
                model.insert(key.number, new);
                hints.insert(key.number, subject.index.hint(&guard, key.key()).expect("sound"));
            }
            6..=7 => {
                assert_eq!(subject.take(&guard, &key), now);
                model.remove(&key.number);
            }
            8 => {
                let old = now.unwrap_or(new ^ 1);
                assert_eq!(subject.index.replace(&guard, key.key(), old, new).expect("sound"), now.is_some());
                assert!(!subject.index.replace(&guard, key.key(), old, new).expect("sound"));
                now.map(|_| model.insert(key.number, new));
            }
            9..=11 => {
                // Right, out of date, anything, or none.
                let hint = match draw >> 40 & 3 {
                    0 => None,
                    1 => Some(mix(draw) >> 16),
                    _ => hints.get(&key.number).copied().flatten(),
                };
                let old = now.unwrap_or(new ^ 1);
                let hint = subject.index.prefetch_repoint(&participant, hint, key.key());
                let done = subject.index.repoint(&guard, hint, key.key(), old, new).expect("sound");
                assert_eq!(done.is_some(), now.is_some());
                if let Some(done) = done {
                    by_hint += u64::from(done.by_hint);
                    unflushed.push(done.unflushed);
                    model.insert(key.number, new);
                }
                let again = subject.index.repoint(&guard, hint, key.key(), old, new).expect("sound");
                assert!(again.is_none());
                if unflushed.len() > 40 {
                    subject.index.persist(&guard, &mut unflushed);
                    assert!(unflushed.is_empty());
                }
            }
            _ => {
                assert_eq!(subject.get(&guard, &key), now);
                let names = |word| subject.index.names(&guard, key.key(), word).expect("sound");
                assert!(!names(new), "this word was never given");
                assert!(now.is_none_or(names));
                let guess = subject.index.candidate(&guard, key.key(), subject.near(&guard, &key, step));
                assert!(guess.is_none_or(|guess| model.get(&number_of(guess)) == Some(&guess)));
            }
        }
    }
    let guard = participant.pin();
    subject.index.persist(&guard, &mut unflushed);
    for number in 0..KEYS {
        assert_eq!(subject.get(&guard, &subject.key(number)), model.get(&number).copied());
    }
    let mut words: Vec<u64> = model.values().copied().collect();
    words.sort_unstable();
    assert_eq!(subject.walk(&guard), words);
    assert_eq!(subject.index.len(&guard).expect("sound"), words.len() as u64);
    assert_eq!(by_hint > 1_500, I::HINTS, "{by_hint} by hint");
    assert!(subject.index.stats().splits > 0 && subject.index.stats().bytes > 0);
    assert_eq!(subject.index.stats().pm_bytes, subject.index.zones().len() as u64 * ZONE);
    assert_eq!(subject.index.zones().is_empty(), !I::DURABLE);
    assert!(!subject.index.growing());
    assert_eq!(subject.index.hint(&guard, subject.key(0).key()).expect("sound").is_some(), I::HINTS);
}

/// What is there from the first call to the last is told once, though the index grows meanwhile.
fn a_walk_sees_each_resident_once<I: Index>(index: I) {
    let subject = Subject::new(index);
    let participant = subject.collector.register();
    const RESIDENTS: u64 = 500;
    for number in 0..RESIDENTS {
        subject.upsert(&participant.pin(), &subject.key(number), word_of::<I>(number, 1));
    }
    let (mut cursor, mut words, mut visitor) = (I::Cursor::default(), Vec::new(), RESIDENTS);
    let splits = subject.index.stats().splits;
    while subject.index.next_batch(&participant.pin(), &mut cursor, &mut words).expect("sound") {
        // Not without end: those that come in order run ahead of a walk in order.
        for _ in 0..if visitor < 8_000 { 200 } else { 0 } {
            let guard = participant.pin();
            subject.upsert(&guard, &subject.key(visitor), word_of::<I>(visitor, 1));
            let gone = visitor - RESIDENTS / 2;
            if gone >= RESIDENTS {
                subject.take(&guard, &subject.key(gone));
            }
            visitor += 1;
        }
    }
    assert!(subject.index.stats().splits > splits + 3);
    words.retain(|word| number_of(*word) < RESIDENTS);
    words.sort_unstable();
    let mut residents: Vec<u64> = (0..RESIDENTS).map(|number| word_of::<I>(number, 1)).collect();
    residents.sort_unstable();
    assert_eq!(words, residents);
}

/// Writers of keys of their own, a reader, and a cleaner who moves everybody's records.
fn no_word_is_lost_beside_a_cleaner<I: Index>(index: I) {
    const WRITERS: u64 = 2;
    const KEYS: u64 = 300;
    const MOVES: u64 = 1_000;
    let subject = Subject::new(index);
    // Versions of writers are even, those of the cleaner odd.
    let write = |number, step: u64| word_of::<I>(number, step * 2);
    {
        let participant = subject.collector.register();
        for number in 0..KEYS {
            subject.upsert(&participant.pin(), &subject.key(number), write(number, 1));
        }
    }
    let (finished, cleaned) = (AtomicBool::new(false), AtomicU64::new(0));
    let (written, moved) = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (participant, subject, cleaned) = (subject.collector.register(), &subject, &cleaned);
                scope.spawn(move || {
                    // What each key was given, and what came back for what had been given before.
                    let mut given: HashMap<u64, Option<u64>> =
                        (0..KEYS).filter(|n| n % WRITERS == writer).map(|n| (n, Some(write(n, 1)))).collect();
                    let mut returned = Vec::new();
                    // At least so many, and as long as the cleaner takes to get its turn.
                    let more = |step: &u64| *step < 6_000 || cleaned.load(Ordering::Relaxed) < MOVES;
                    for step in (2u64..).take_while(more) {
                        let guard = participant.pin();
                        let draw = mix(step << 8 | writer);
                        let key = subject.key(draw % (KEYS / WRITERS) * WRITERS + writer);
                        let before = given.get(&key.number).copied().flatten();
                        // The first hundred stay.
                        let new = (key.number < 100 || draw >> 40 & 3 > 0).then_some(write(key.number, step));
                        let old = match new {
                            Some(new) => subject.upsert(&guard, &key, new),
                            None => subject.take(&guard, &key),
                        };
                        returned.push((before, old));
                        given.insert(key.number, new);
                        // Others that come and go make the index grow.
                        let visitor = subject.key(KEYS + step % 2_000 * WRITERS + writer);
                        subject.upsert(&guard, &visitor, write(visitor.number, step));
                        if step % 3 == 0 {
                            subject.take(&guard, &visitor);
                        }
                    }
                    (given, returned)
                })
            })
            .collect();
        let participant = subject.collector.register();
        let (subject, finished, cleaned) = (&subject, &finished, &cleaned);
        let cleaner = scope.spawn(move || {
            let (mut moved, mut unflushed, mut step) = (HashMap::new(), Vec::new(), 0u64);
            while !finished.load(Ordering::Relaxed) {
                let guard = participant.pin();
                for _ in 0..8 {
                    step += 1;
                    let key = subject.key(mix(step) % KEYS);
                    let Some(old) = subject.get(&guard, &key) else { continue };
                    let hint = subject.index.hint(&guard, key.key()).expect("sound");
                    let new = word_of::<I>(key.number, step * 2 + 1);
                    if step % 32 == 0 {
                        std::thread::yield_now();
                    }
                    let done = subject.index.repoint(&guard, hint, key.key(), old, new).expect("sound");
                    if let Some(done) = done {
                        assert!(moved.insert(old, new).is_none(), "a word was replaced twice");
                        unflushed.push(done.unflushed);
                    }
                }
                subject.index.persist(&guard, &mut unflushed);
                cleaned.store(moved.len() as u64, Ordering::Relaxed);
            }
            moved
        });
        let participant = subject.collector.register();
        let reader = scope.spawn(move || {
            let mut step = 0;
            while !finished.load(Ordering::Relaxed) {
                let guard = participant.pin();
                step += 1;
                let key = subject.key(mix(step) % 100);
                let word = subject.get(&guard, &key).expect("a resident is there all the time");
                assert_eq!(number_of(word), key.number);
                let foreign = subject.key(mix(step) % KEYS);
                assert!(subject.get(&guard, &foreign).is_none_or(|word| number_of(word) == foreign.number));
                if step % 512 == 0 {
                    let residents = subject.walk(&guard).into_iter().filter(|word| number_of(*word) < 100);
                    assert_eq!(residents.count(), 100, "a walk misses or repeats one");
                }
            }
        });
        let written: Vec<_> = writers.into_iter().map(|writer| writer.join().expect("no panic")).collect();
        finished.store(true, Ordering::Relaxed);
        reader.join().expect("no panic");
        (written, cleaner.join().expect("no panic"))
    });
    // What a word has become in the cleaner's hands.
    let chain = |word: u64| std::iter::successors(Some(word), |word| moved.get(word).copied());
    let participant = subject.collector.register();
    let guard = participant.pin();
    for (given, returned) in written {
        for (number, word) in given {
            let last = word.and_then(|word| chain(word).last());
            assert_eq!(subject.get(&guard, &subject.key(number)), last, "key {number}");
        }
        for (before, old) in returned {
            let is_it = before.map_or(old.is_none(), |before| chain(before).last() == old);
            assert!(is_it, "{before:?} was given, and {old:?} came back");
        }
    }
    assert_eq!(subject.walk(&guard).len() as u64, subject.index.len(&guard).expect("sound"));
}

/// A full pool is an error that changes nothing, and room that was made can be used.
fn a_full_pool_is_an_error<I: Index>(make: impl Fn(u64) -> I) {
    let subject = Subject::new(make(24));
    let participant = subject.collector.register();
    let guard = participant.pin();
    let refused = (0..100_000).find_map(|number| {
        let full = subject.try_upsert(&guard, &subject.key(number), word_of::<I>(number, 1)).err();
        full.map(|error| (number, error))
    });
    let (number, error) = refused.expect("the pool is small");
    assert!(matches!(error, IndexError::Full { .. }), "{error}");
    assert_eq!(subject.get(&guard, &subject.key(number)), None);
    assert!((0..number).all(|number| subject.get(&guard, &subject.key(number)).is_some()));
    assert_eq!(subject.index.len(&guard).expect("sound"), number);
    assert!(matches!(subject.index.make_room(&guard, 10_000, 20), Err(IndexError::Full { .. })));

    let subject = Subject::new(make(200));
    subject.index.make_room(&guard, 150, 28).expect("room");
    let zones = subject.index.zones();
    for number in 0..150 {
        subject.upsert(&guard, &subject.key(number), word_of::<I>(number, 1));
    }
    assert_eq!(subject.index.zones(), zones, "room was made");
}

const ZONE: u64 = 4 << 10;

/// A pool of so many zones in memory.
fn space(zones: u64) -> Arc<Space> {
    pool::format_in(Region::dram((zones + 8) * ZONE, Pages::Ordinary).expect("memory"), ZONE)
}

fn cceh(zones: u64) -> CcehIndex<PmNodes> {
    CcehIndex::create(space(zones), CcehSettings::tiny(), 0, |_| ()).expect("room")
}

fn fastfair(zones: u64) -> FastFairIndex {
    FastFairIndex::create(space(zones), (), 0, |_| ()).expect("room")
}

fn buckets<L: Locking>(zones: u64) -> BucketIndex<PmWords, L> {
    BucketIndex::create(space(zones), BucketSettings::tiny(), 0, |_| ()).expect("room")
}

macro_rules! contract {
    ($name:ident, $make:expr) => {
        mod $name {
            use super::*;

            #[test]
            fn behaves_like_a_map() {
                super::behaves_like_a_map($make);
            }

            #[test]
            fn a_walk_sees_each_resident_once() {
                super::a_walk_sees_each_resident_once($make);
            }

            #[test]
            fn no_word_is_lost_beside_a_cleaner() {
                super::no_word_is_lost_beside_a_cleaner($make);
            }
        }
    };
}

contract!(hash, HashIndex::new(HashIndexSettings::tiny()));
contract!(masstree, Masstree::new());
contract!(alex, Alex::tiny());
contract!(cceh, CcehIndex::in_dram(CcehSettings::tiny()));
contract!(cceh_in_pm, cceh(1_000));
contract!(fastfair, fastfair(4_000));
contract!(buckets, buckets::<TableLocks>(1_000));
contract!(buckets_with_locks, buckets::<BucketLocks>(1_000));

#[test]
fn a_pool_full_of_cceh_is_an_error() {
    a_full_pool_is_an_error(cceh);
}

#[test]
fn a_pool_full_of_fastfair_is_an_error() {
    a_full_pool_is_an_error(fastfair);
}

#[test]
fn a_pool_full_of_buckets_is_an_error() {
    a_full_pool_is_an_error(buckets::<TableLocks>);
    a_full_pool_is_an_error(buckets::<BucketLocks>);
}

#[test]
fn a_key_too_long_for_a_masstree_is_an_error() {
    let subject = Subject::new(Masstree::new());
    let participant = subject.collector.register();
    let long = Hashed { number: 0, bytes: vec![1; Masstree::MAX_KEY + 1], hash: 0 };
    let error = subject.try_upsert(&participant.pin(), &long, 1).expect_err("too long");
    assert!(matches!(error, IndexError::KeyTooLong { .. }));
    assert_eq!(subject.get(&participant.pin(), &long), None);
}
