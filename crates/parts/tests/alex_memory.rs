//! What keys cost in DRAM, and that c-ALEX knows what it has allocated, to the byte.

#[path = "it/shared/mod.rs"]
#[expect(dead_code, reason = "shared with tests that need more")]
mod shared;

use quipu_parts::epoch::{Collector, Guard};
use quipu_parts::index::alex::Alex;
use quipu_parts::index::{Imaged, Index, Key, Records};
use shared::mix::mix;
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

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        ALLOCATED.set(ALLOCATED.get() - layout.size() as i64);
        // SAFETY: the caller's word.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Keys by their numbers, which are also their words, less one.
type Shape = fn(u64) -> Vec<u8>;

const SHAPES: &[(&str, Shape)] = &[
    ("scattered", |number| mix(number).to_be_bytes().to_vec()),
    ("rising", |number| number.to_be_bytes().to_vec()),
    // Far apart, and in each place a few that no line meets: leaves are not worth being cut.
    ("clusters", |number| ((mix(number / 50) & !0xF_FFFF) | (mix(number) & 0xF_FFFF)).to_be_bytes().to_vec()),
    ("clusters that rise", |number| (((number / 40) << 40) | (number % 40)).to_be_bytes().to_vec()),
    ("names", |number| format!("user{number}").into_bytes()),
    ("long ones", |number| [&[7; 40][..], &mix(number % 999).to_be_bytes(), &number.to_be_bytes()].concat()),
];

struct Keys(Shape);

impl Records for Keys {
    fn hash_of(&self, _word: u64) -> u64 {
        unreachable!("it asks for keys")
    }

    fn key_of(&self, word: u64, out: &mut Vec<u8>) {
        out.extend(self.0(word - 1));
    }
}

fn put(index: &Alex, guard: &Guard<'_>, shape: Shape, number: u64) {
    let (key, word) = (shape(number), number + 1);
    let key = Key { bytes: &key, hash: number };
    index.upsert(guard, key, word, None, |found| found == word, &Keys(shape)).expect("room");
}

fn take(index: &Alex, guard: &Guard<'_>, shape: Shape, number: u64) {
    let key = shape(number);
    let key = Key { bytes: &key, hash: number };
    index.take(guard, key, None, |found| found == number + 1).expect("sound");
}

#[test]
fn every_byte_is_accounted_for() {
    for (name, shape) in SHAPES {
        for (kind, make) in
            [("tiny", Alex::tiny as fn() -> Alex), ("in chunks", Alex::tiny_in_chunks), ("large", Alex::new)]
        {
            let collector = Collector::new();
            let participant = collector.register();
            // What retired things wait in is the collector's and keeps its size.
            for _ in 0..2_000 {
                participant.pin().defer(Box::new(|| ()));
            }
            (0..3).for_each(|_| _ = participant.collect());
            let start = ALLOCATED.get();
            let index = make();
            for round in 0..20 {
                for number in round * 3_000..(round + 1) * 3_000 {
                    put(&index, &participant.pin(), *shape, number);
                    if number % 3 == 0 {
                        take(&index, &participant.pin(), *shape, number / 2);
                    }
                }
                (0..3).for_each(|_| _ = participant.collect());
                let heap = (ALLOCATED.get() - start) as u64;
                assert_eq!(index.stats().bytes, heap, "{name}, {kind}");
            }
            drop(index);
            assert_eq!(ALLOCATED.get(), start, "{name}, {kind}: something was not freed");
        }
    }
}

/// Bytes of DRAM for each of `count` keys: at the end, and the most from 100,000 keys on.
fn bytes_per_key(shape: Shape, count: u64) -> (f64, f64) {
    let participant = Collector::new().register();
    let index = Alex::new();
    let mut most = 0.0f64;
    for number in 0..count {
        put(&index, &participant.pin(), shape, number);
        if number >= 100_000 && number % 1_000 == 0 {
            most = most.max(index.stats().bytes as f64 / number as f64);
        }
    }
    (0..3).for_each(|_| _ = participant.collect());
    (index.stats().bytes as f64 / count as f64, most)
}

#[test]
fn a_million_keys_of_eight_bytes() {
    let [(scattered, most), (rising, _)] = [0, 1].map(|shape| bytes_per_key(SHAPES[shape].1, 1_000_000));
    assert!(scattered <= 26.0 && rising <= 18.0, "{scattered:.1} and {rising:.1} bytes a key");
    assert!(most <= 30.0, "{most:.1} bytes a key of scattered ones");
}

/// Rounds of new keys that all go again, in the order of their numbers or in another. A few slots are
/// left, also behind a close, and nothing of layers.
#[test]
fn an_emptied_index_gives_its_memory_back() {
    for (name, shape) in SHAPES {
        for (kind, make) in
            [("tiny", Alex::tiny as fn() -> Alex), ("in chunks", Alex::tiny_in_chunks), ("large", Alex::new)]
        {
            let participant = Collector::new().register();
            let index = make();
            let mut peak = 0;
            for round in 0..4u64 {
                let numbers = || round * 20_000..(round + 1) * 20_000;
                numbers().for_each(|number| put(&index, &participant.pin(), *shape, number));
                peak = peak.max(index.stats().bytes);
                let mut order: Vec<u64> = numbers().collect();
                if round % 2 == 0 {
                    order.sort_by_key(|number| mix(*number));
                }
                order.into_iter().for_each(|number| take(&index, &participant.pin(), *shape, number));
                (0..3).for_each(|_| _ = participant.collect());
                let left = index.stats().bytes;
                // Chunks go with their last array, and an empty leaf has one.
                assert!(left <= make().stats().bytes + 4096, "{name}, {kind}: {left} bytes of {peak}");
            }
            assert_eq!(index.len(&participant.pin()).expect("sound"), 0);
            let guard = participant.pin();
            assert_eq!(index.image(&guard).expect("an image").len(), 32, "{name}, {kind}: no slots");
        }
    }
}

/// A queue: keys are put at the end, and taken from the front.
#[test]
fn a_queue_takes_no_memory_for_keys_that_have_gone() {
    for (name, shape) in [SHAPES[1], ("decimal", |number| format!("{number:016}").into_bytes())] {
        let (participant, index, mut early) = (Collector::new().register(), Alex::new(), 0);
        for number in 0..300_000u64 {
            put(&index, &participant.pin(), shape, number);
            if let Some(gone) = number.checked_sub(5_000) {
                take(&index, &participant.pin(), shape, gone);
            }
            if number == 20_000 {
                (0..3).for_each(|_| _ = participant.collect());
                early = index.stats().bytes;
            }
        }
        (0..3).for_each(|_| _ = participant.collect());
        let late = index.stats().bytes;
        assert!(late <= 2 * early, "{name}: {late} bytes, {early} after 20,000 keys");
    }
}
