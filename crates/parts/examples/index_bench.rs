//! Measures the hash index: speed of each operation, share of lookups that need only the home bucket, bytes
//! per record over its whole growth.
//!
//! `cargo run --release -p quipu-parts --example index_bench [-- RECORDS...]`, by default 5 and 8 million.
//! Records are 240 bytes in one large array, so that a lookup costs what it costs in a store: a random
//! bucket, then a random record.

use quipu_parts::epoch::{Collector, Guard};
use quipu_parts::index::hash::{HashIndex, HashIndexSettings};
use quipu_parts::index::{Index, Key};
use std::hint::black_box;

const RECORD_WORDS: usize = 30;
const BATCH: usize = 16;

/// A bijection of 64-bit numbers whose outputs look random.
fn mix(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// The n-th key of a random order over `count` keys, with repetitions.
fn random_key(n: u64, count: u64) -> u64 {
    mix(n ^ 0xABCD_EF01) % count
}

fn no_rehash(_reference: u64) -> u64 {
    unreachable!("tags do not run out at these sizes")
}

/// Nanoseconds that this thread has spent on a processor; other programs on the machine then disturb less.
fn processor_time() -> f64 {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = schedstat.split_whitespace().next().and_then(|field| field.parse().ok());
    nanoseconds.expect("this benchmark reads the processor time from Linux's /proc/thread-self/schedstat")
}

fn measure(name: &str, operations: u64, mut operation: impl FnMut(u64)) {
    let start = processor_time();
    for n in 0..operations {
        operation(n);
    }
    println!("  {name:<34} {:>7.2} Mops", operations as f64 * 1e3 / (processor_time() - start));
}

/// References are record numbers plus one.
fn reference(key: u64) -> u64 {
    key + 1
}

/// The key of a number, by its hash.
fn sought(number: u64) -> Key<'static> {
    Key { bytes: &[], hash: mix(number) }
}

/// Adds a key that is absent.
fn insert(index: &HashIndex, guard: &Guard<'_>, number: u64) {
    let old = index.upsert(guard, sought(number), reference(number), None, |_| false, &no_rehash);
    assert_eq!(old.expect("it never fails"), None);
}

fn main() {
    let sizes: Vec<u64> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![5_000_000, 8_000_000] } else { sizes };
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    for &count in &sizes {
        speed(&guard, count);
    }
    memory(&guard);
}

fn speed(guard: &Guard<'_>, count: u64) {
    println!("{count} records");
    let index = HashIndex::new(HashIndexSettings::default());
    let records: Vec<u64> = {
        let mut records = vec![0; count as usize * RECORD_WORDS];
        for key in 0..count {
            records[key as usize * RECORD_WORDS] = key;
        }
        records
    };
    let key_of = |reference: u64| records[(reference - 1) as usize * RECORD_WORDS];
    let plain: Vec<u64> = (0..count.next_power_of_two()).map(|n| reference(mix(n) % count)).collect();
    measure("limit: plain load, then record", count.min(5_000_000), |n| {
        let slot = random_key(n, count) as usize;
        black_box(key_of(plain[slot]) == n);
    });
    drop(plain);
    measure("insert", count, |n| insert(&index, guard, n));
    let operations = count.min(5_000_000);
    measure("get, present, index only", operations, |n| {
        let key = random_key(n, count);
        black_box(
            index.get(guard, sought(key), |candidate| candidate == reference(key)).expect("it never fails"),
        );
    });
    measure("get, present, with record", operations, |n| {
        let key = random_key(n, count);
        black_box(
            index.get(guard, sought(key), |candidate| key_of(candidate) == key).expect("it never fails"),
        );
    });
    let mut keys = [0; BATCH];
    let batches = operations / BATCH as u64;
    let start = processor_time();
    for batch in 0..batches {
        for (i, key) in keys.iter_mut().enumerate() {
            *key = random_key(batch * BATCH as u64 + i as u64, count);
            index.prefetch(guard.participant(), sought(*key));
        }
        for key in keys {
            if let Some(candidate) = index.candidate(guard, sought(key), None) {
                quipu_medium::arch::prefetch(&raw const records[(candidate - 1) as usize * RECORD_WORDS]);
            }
        }
        for key in keys {
            black_box(
                index.get(guard, sought(key), |candidate| key_of(candidate) == key).expect("it never fails"),
            );
        }
    }
    let rate = (batches * BATCH as u64) as f64 * 1e3 / (processor_time() - start);
    println!("  {:<34} {rate:>7.2} Mops", format!("get, batches of {BATCH}, with record"));
    measure("get, absent", operations, |n| {
        let key = count + random_key(n, count);
        black_box(
            index.get(guard, sought(key), |candidate| key_of(candidate) == key).expect("it never fails"),
        );
    });
    let mut tested = 0;
    for n in 0..operations {
        let key = random_key(n, count);
        index
            .get(guard, sought(key), |candidate| {
                tested += 1;
                candidate == reference(key)
            })
            .expect("it never fails");
    }
    println!("  {:<34} {:>7.4}", "candidates tested per hit", tested as f64 / operations as f64);
    let mut tested = 0;
    for n in 0..operations {
        index
            .get(guard, sought(count + n), |_| {
                tested += 1;
                false
            })
            .expect("it never fails");
    }
    println!("  {:<34} {:>7.4}", "candidates tested per miss", tested as f64 / operations as f64);
    measure("replace (twice)", operations, |n| {
        let key = random_key(n, count);
        let other = reference(key) + count;
        if !index.replace(guard, sought(key), reference(key), other).expect("it never fails") {
            index.replace(guard, sought(key), other, reference(key)).expect("it never fails");
        }
    });
    for key in 0..count {
        index.replace(guard, sought(key), reference(key) + count, reference(key)).expect("it never fails");
    }
    let stats = index.stats();
    measure("remove", count, |n| {
        index.take(guard, sought(n), None, |found| found == reference(n)).expect("it never fails");
    });
    assert_eq!(index.len(guard).expect("it never fails"), 0);
    println!("  {stats:?}");
}

fn memory(guard: &Guard<'_>) {
    println!("growth to 8 million records");
    let index = HashIndex::new(HashIndexSettings::default());
    let (mut sum, mut samples, mut worst) = (0.0f64, 0u32, 0.0f64);
    let mut at_millions = Vec::new();
    for n in 0..8_000_000u64 {
        insert(&index, guard, n);
        let count = n + 1;
        if count >= 3_000_000 && count % 100_000 == 0 {
            let bytes = index.stats().bytes as f64 / count as f64;
            (sum, samples, worst) = (sum + bytes, samples + 1, worst.max(bytes));
            if count % 1_000_000 == 0 {
                println!("  {:>34} {bytes:>7.2} bytes per record", count);
                at_millions.push(bytes);
            }
        }
    }
    let mean = at_millions.iter().sum::<f64>() / at_millions.len() as f64;
    println!("  {:<34} {mean:>7.2}", "mean at whole millions");
    println!("  {:<34} {:>7.2}", "mean of every 100,000", sum / f64::from(samples));
    println!("  {:<34} {worst:>7.2}", "worst of every 100,000");
    println!("  {:?}", index.stats());
}
