//! The cache with real threads.

use quipu_parts::cache::{Cache, CacheSettings, Item};
use quipu_parts::epoch::Collector;
use quipu_parts::sync::SpinLock;
use std::sync::atomic::{AtomicU64, Ordering};

const KEYS: usize = 16;

/// Threads write numbers that rise, with the lock of a key in hand, as values of so many bytes. No reader
/// finds a number below one that was there before it looked. With `forgets` off, a reader must. In the
/// end no byte of a pair is left.
fn is_coherent(forgets: bool, budget: u64, len: usize) -> bool {
    const WRITES: u64 = 20_000;
    let cache = Cache::new(CacheSettings::of(budget), 1, |_, _| 10);
    let empty = cache.bytes();
    let collector = Collector::new();
    let locks: [SpinLock<()>; KEYS] = Default::default();
    let numbers: [AtomicU64; KEYS] = Default::default();
    let is_stale = AtomicU64::new(0);
    let hash = |key: usize| (key as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    std::thread::scope(|scope| {
        for first in 0..2usize {
            let (cache, collector, locks, numbers, is_stale) =
                (&cache, &collector, &locks, &numbers, &is_stale);
            scope.spawn(move || {
                let participant = collector.register();
                for turn in 0..WRITES {
                    let key = (turn as usize + first * 3) % KEYS;
                    participant.collect();
                    let guard = participant.pin();
                    if turn % 5 == 0 {
                        let _held = locks[key].lock();
                        if forgets {
                            cache.forget(&guard, hash(key));
                        }
                        numbers[key].fetch_add(1, Ordering::Release);
                    }
                    let before = numbers[key].load(Ordering::Acquire);
                    match cache.get(&guard, hash(key), &[key as u8]) {
                        Some(hit) => {
                            let (number, rest) = hit.value().split_first_chunk().expect("eight bytes");
                            let found = u64::from_le_bytes(*number);
                            assert!(rest.iter().all(|byte| *byte == key as u8), "another pair's bytes");
                            is_stale.fetch_or(u64::from(found < before), Ordering::Relaxed);
                        }
                        None => {
                            let _held = locks[key].lock();
                            let mut value = vec![key as u8; len];
                            value[..8].copy_from_slice(&numbers[key].load(Ordering::Relaxed).to_le_bytes());
                            let (hash, key) = (hash(key), &[key as u8]);
                            cache.fill(&guard, &Item { hash, key, value: &value, expires: 0, node: 0 }, 0);
                        }
                    }
                }
            });
        }
    });
    let participant = collector.register();
    (0..KEYS).for_each(|key| cache.forget(&participant.pin(), hash(key)));
    participant.collect();
    assert_eq!(cache.bytes(), empty);
    is_stale.load(Ordering::Relaxed) == 0
}

#[test]
fn no_reader_finds_what_was_overwritten_before_it_looked() {
    assert!(is_coherent(true, 1 << 16, 8));
    assert!(!is_coherent(false, 1 << 16, 8), "a cache that is not told of writes must be noticed");
}

/// Half of the pairs have room, so readers take out pairs of others all the time.
#[test]
fn a_full_cache_counts_what_threads_put_in_and_take_out() {
    assert!(is_coherent(true, 4096, 450));
}
