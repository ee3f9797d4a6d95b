//! Measures the CCEH index in DRAM beside the hash index: bytes per record while it grows, and the time of each operation.
//!
//! `cargo run --release -p quipu-parts --example cceh_bench [-- MILLIONS]`, by default 8 million records. Times are those of
//! one thread and include no record.

use quipu_parts::epoch::{Collector, Guard};
use quipu_parts::index::cceh::{CcehIndex, CcehSettings};
use quipu_parts::index::hash::{HashIndex, HashIndexSettings};
use std::hint::black_box;

/// A bijection of 64-bit numbers whose outputs look random.
fn mix(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Nanoseconds that this thread has spent on a processor; other programs on the machine then disturb less.
fn processor_time() -> f64 {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = schedstat.split_whitespace().next().and_then(|field| field.parse().ok());
    nanoseconds.expect("this benchmark reads the processor time from Linux's /proc/thread-self/schedstat")
}

fn measure(name: &str, operations: u64, mut operation: impl FnMut(u64)) {
    let start = processor_time();
    (0..operations).for_each(&mut operation);
    println!("  {name:<28} {:>7.1} ns", (processor_time() - start) / operations as f64);
}

/// The n-th key of a random order over `count` keys, with repetitions.
fn random_key(n: u64, count: u64) -> u64 {
    mix(n ^ 0xABCD_EF01) % count
}

fn main() {
    let millions = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(8);
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    hash(&guard, millions);
    let paper = CcehSettings::paper();
    cceh(&guard, "CCEH, as published", paper, millions);
    cceh(&guard, "CCEH, dense", CcehSettings::dense(), millions);
}

fn hash(guard: &Guard<'_>, millions: u64) {
    println!("hash index");
    let count = millions * 1_000_000;
    let index = HashIndex::new(HashIndexSettings::default());
    measure("insert", count, |n| index.insert(guard, mix(n), n + 1, &|_| unreachable!("tags suffice")));
    let operations = count.min(5_000_000);
    measure("get, present", operations, |n| {
        let key = random_key(n, count);
        black_box(index.get(guard, mix(key), |reference| reference == key + 1));
    });
    measure("get, absent", operations, |n| {
        black_box(index.get(guard, mix(count + n), |_| false));
    });
    measure("upsert, present", operations, |n| {
        let key = random_key(n, count);
        let rehash = |_| unreachable!("tags suffice");
        black_box(index.upsert(guard, mix(key), key + 1, |reference| reference == key + 1, &rehash));
    });
    println!("  bytes per record {:.2}", index.stats().bytes as f64 / count as f64);
}

fn cceh(guard: &Guard<'_>, name: &str, settings: CcehSettings, millions: u64) {
    println!("{name}: {settings:?}");
    let count = millions * 1_000_000;
    let index = CcehIndex::in_dram(settings);
    let mut sizes = Vec::new();
    measure("insert", count, |n| {
        index.insert(guard, mix(n), n + 1).expect("keyed hashes");
        if (n + 1) % 1_000_000 == 0 {
            sizes.push(index.stats().bytes as f64 / (n + 1) as f64);
        }
    });
    let operations = count.min(5_000_000);
    measure("get, present", operations, |n| {
        let key = random_key(n, count);
        black_box(index.get(guard, mix(key), |reference| reference == key + 1));
    });
    measure("get, absent", operations, |n| {
        black_box(index.get(guard, mix(count + n), |_| false));
    });
    measure("upsert, present", operations, |n| {
        let key = random_key(n, count);
        black_box(index.upsert(guard, mix(key), key + 1, |reference| reference == key + 1)).expect("room");
    });
    let sizes: Vec<String> = sizes.iter().map(|size| format!("{size:.2}")).collect();
    println!("  bytes per record at 1, 2, .. million: {}", sizes.join(" "));
    println!("  {:?}", index.stats());
}
