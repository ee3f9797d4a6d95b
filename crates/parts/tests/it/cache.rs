//! The cache with real threads.

use quipu_parts::cache::{Cache, CacheSettings, Item};
use quipu_parts::epoch::Collector;
use quipu_parts::sync::SpinLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Threads write numbers that rise, with the lock of a key in hand. No reader finds a number below one that
/// was there before it looked. With `forgets` off, a reader must.
fn is_coherent(forgets: bool) -> bool {
    const KEYS: usize = 8;
    const WRITES: u64 = 20_000;
    let cache = Cache::new(CacheSettings::of(1 << 16), 1, |_, _| 10);
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
                            let found = u64::from_le_bytes(hit.value().try_into().expect("eight bytes"));
                            is_stale.fetch_or(u64::from(found < before), Ordering::Relaxed);
                        }
                        None => {
                            let _held = locks[key].lock();
                            let number = numbers[key].load(Ordering::Relaxed).to_le_bytes();
                            let (hash, key) = (hash(key), &[key as u8]);
                            cache.fill(&guard, &Item { hash, key, value: &number, expires: 0, node: 0 }, 0);
                        }
                    }
                }
            });
        }
    });
    is_stale.load(Ordering::Relaxed) == 0
}

#[test]
fn no_reader_finds_what_was_overwritten_before_it_looked() {
    assert!(is_coherent(true));
    assert!(!is_coherent(false), "a cache that is not told of writes must be noticed");
}
