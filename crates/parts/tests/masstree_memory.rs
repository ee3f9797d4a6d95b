//! What keys cost in DRAM, and that the index knows what it has allocated, to the byte.

#[path = "it/shared/mod.rs"]
#[expect(dead_code, reason = "shared with tests that need more")]
mod shared;

use quipu_parts::epoch::{Collector, Guard};
use quipu_parts::index::masstree::Masstree;
use quipu_parts::index::{Index, Key};
use shared::keys::{Keys, Random};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, which counts what each thread has and has not given back.
struct Counting;

thread_local! {
    static ALLOCATED: Cell<i64> = const { Cell::new(0) };
}

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.set(ALLOCATED.get() + layout.size() as i64);
        // SAFETY: the caller's word.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.set(ALLOCATED.get() + layout.size() as i64);
        // SAFETY: the caller's word.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        ALLOCATED.set(ALLOCATED.get() - layout.size() as i64);
        // SAFETY: the caller's word.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn put(index: &Masstree, guard: &Guard<'_>, key: &[u8], word: u64) {
    let (key, never) = (Key { bytes: key, hash: 0 }, |_| unreachable!("it has the keys"));
    index.upsert(guard, key, word, None, never, &|_| unreachable!("it has the keys")).expect("room");
}

fn take(index: &Masstree, guard: &Guard<'_>, key: &[u8]) -> Option<u64> {
    let key = Key { bytes: key, hash: 0 };
    index.take(guard, key, None, |_| unreachable!("it has the keys")).expect("sound")
}

fn len(index: &Masstree) -> u64 {
    index.len(&Collector::new().register().pin()).expect("sound")
}

/// Bytes of DRAM for each of the keys of so many numbers, every `step`th.
fn bytes_per_key(shape: Keys, count: u64, step: usize) -> f64 {
    let participant = Collector::new().register();
    let index = Masstree::new();
    for number in (0..).step_by(step).take(count as usize) {
        put(&index, &participant.pin(), &shape.key(number), number + 1);
    }
    (0..3).for_each(|_| _ = participant.collect());
    let stats = index.stats();
    let bytes = stats.bytes as f64 / len(&index) as f64;
    println!("{shape:?}, {count} keys: {bytes:.1} bytes a key; {stats:?}");
    bytes
}

#[test]
fn a_million_random_keys_of_eight_bytes() {
    let bytes = bytes_per_key(Keys::Random8, 1_000_000, 1);
    assert!(bytes <= 33.0, "{bytes:.1} bytes a key");
}

#[test]
fn a_million_ascending_keys_of_eight_bytes() {
    let bytes = bytes_per_key(Keys::Ascending8, 1_000_000, 1);
    assert!(bytes <= 23.0, "{bytes:.1} bytes a key");
}

#[test]
fn keys_with_suffixes() {
    let bytes = bytes_per_key(Keys::Suffixes, 300_000, 1);
    assert!(bytes <= 66.0, "{bytes:.1} bytes a key of 24 bytes");
}

/// No two share a slice.
#[test]
fn keys_with_short_suffixes() {
    let bytes = bytes_per_key(Keys::Short, 1_000_000, 2);
    assert!(bytes <= 44.0, "{bytes:.1} bytes a key of 9 to 16 bytes");
}

#[test]
fn every_byte_is_accounted_for() {
    for shape in Keys::ALL {
        let collector = Collector::new();
        let participant = collector.register();
        // What retired things wait in is the collector's and keeps its size.
        for _ in 0..2_000 {
            participant.pin().defer(Box::new(|| ()));
        }
        (0..3).for_each(|_| _ = participant.collect());
        let start = ALLOCATED.get();
        let index = Masstree::new();
        let check = |index: &Masstree| {
            (0..3).for_each(|_| _ = participant.collect());
            let heap = (ALLOCATED.get() - start) as u64 + size_of::<Masstree>() as u64;
            assert_eq!(index.stats().bytes, heap, "{shape:?}");
        };
        check(&index);
        let mut random = Random(1);
        for removals in [2, 8, 5] {
            for _ in 0..20 {
                for _ in 0..300 {
                    let key = shape.key(random.below(5_000));
                    let guard = participant.pin();
                    if random.below(10) < removals {
                        take(&index, &guard, &key);
                    } else {
                        put(&index, &guard, &key, 1);
                    }
                }
                check(&index);
            }
        }
        drop(index);
        assert_eq!(ALLOCATED.get(), start, "{shape:?}: something was not freed");
    }
}

/// Memory that was given back serves the next keys, of whatever shape.
#[test]
fn what_was_given_back_is_used_again() {
    let participant = Collector::new().register();
    let index = Masstree::new();
    let mut highest = Vec::new();
    for round in 0..4 {
        for number in 0..50_000 {
            put(&index, &participant.pin(), &Keys::Names.key(number), number + 1);
        }
        highest.push(index.stats().bytes);
        for number in 0..50_000 {
            take(&index, &participant.pin(), &Keys::Names.key(number));
        }
        (0..3).for_each(|_| _ = participant.collect());
        assert_eq!(
            (len(&index), index.stats().borders, index.stats().suffix_bytes),
            (0, 1, 0),
            "round {round}"
        );
    }
    let (first, last) = (highest[0] as f64, highest[3] as f64);
    // The list of free nodes is all that may grow.
    assert!(last < first * 1.05, "{highest:?}");
}

/// Nodes that were taken out wait for everyone who was pinned then.
#[test]
fn nodes_are_not_used_again_under_a_reader() {
    let collector = Collector::new();
    let (writer, reader) = (collector.register(), collector.register());
    let index = Masstree::new();
    let keys = [Keys::Random8, Keys::LongPrefix, Keys::Suffixes];
    let all = || keys.iter().flat_map(|shape| (0..3_000).map(|number| shape.key(number)));
    all().for_each(|key| put(&index, &writer.pin(), &key, 1));
    (0..3).for_each(|_| _ = writer.collect());
    let full = index.stats();
    let guard = reader.pin();
    all().for_each(|key| assert!(take(&index, &writer.pin(), &key).is_some()));
    (0..3).for_each(|_| _ = writer.collect());
    let waiting = index.stats();
    assert_eq!((waiting.borders, waiting.inners), (full.borders, full.inners));
    assert!(waiting.suffix_bytes >= full.suffix_bytes);
    drop(guard);
    (0..3).for_each(|_| _ = writer.collect());
    let rest = index.stats();
    assert_eq!((rest.borders, rest.inners, rest.suffix_bytes, rest.layers), (1, 0, 0, 0));
}
