//! What keys cost in DRAM, and that c-ALEX knows what it has allocated, to the byte.

#[path = "it/shared/mod.rs"]
#[expect(dead_code, reason = "shared with tests that need more")]
mod shared;

use quipu_parts::epoch::{Collector, Guard};
use quipu_parts::index::alex::Alex;
use quipu_parts::index::{Index, Key, Records};
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
