//! A table of locks in DRAM for places in PM.
//!
//! A lock in PM beside its data costs a write to PM for each acquisition and each release, and a crash may
//! leave it locked. Locks in a small table in DRAM stay in the cache and vanish with the process (MPKV,
//! section 3.1: volatile lock management). Two places may share a lock; that seldom makes a thread wait.
//!
//! The paper's lock word tells which operation holds it (section 3.3). Here the lock of the key tells that,
//! which is held for longer: see [`commit`](crate::commit).

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Waiter, point};
use quipu_medium::LINE;
use quipu_medium::arch::prefetch_to_write;

/// Locks of a table: 32 KiB of them.
pub const LOCKS: usize = 4096;

const FREE: u64 = 0;
const HELD: u64 = 1;

/// See the module's documentation.
pub struct LockTable {
    words: Box<[AtomicU64]>,
}

impl LockTable {
    /// A table of [`LOCKS`] free locks.
    pub fn new() -> LockTable {
        LockTable { words: (0..LOCKS).map(|_| AtomicU64::new(FREE)).collect() }
    }

    /// The number of the lock of a place, the same for all places of a line.
    #[inline]
    pub(crate) fn of(&self, place: u64) -> usize {
        let mixed = (place / LINE).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> (u64::BITS - LOCKS.ilog2())) as usize
    }

    /// Prefetches the lock of a place ahead of [`lock`](LockTable::lock).
    #[inline]
    pub(crate) fn prefetch(&self, place: u64) {
        prefetch_to_write(&raw const self.words[self.of(place)]);
    }

    /// Waits for the lock of a place, and takes it until the guard drops.
    #[inline]
    pub fn lock(&self, place: u64) -> LockGuard<'_> {
        self.lock_number(self.of(place))
    }

    /// The locks of two places, or one lock if they share it. A thread that needs two locks takes them here,
    /// while it holds no other lock of the table.
    pub(crate) fn lock_both(&self, places: [u64; 2]) -> (LockGuard<'_>, Option<LockGuard<'_>>) {
        let [one, other] = places.map(|place| self.of(place));
        let first = self.lock_number(one.min(other));
        let second = (one != other).then(|| self.lock_number(one.max(other)));
        (first, second)
    }

    #[inline]
    fn lock_number(&self, number: usize) -> LockGuard<'_> {
        let word = &self.words[number];
        point();
        let mut waiter = Waiter::default();
        while word.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_err() {
            waiter.wait();
        }
        LockGuard { word }
    }

    /// Bytes of DRAM.
    pub fn bytes(&self) -> u64 {
        size_of_val::<[AtomicU64]>(&self.words) as u64
    }
}

impl Default for LockTable {
    fn default() -> LockTable {
        LockTable::new()
    }
}

/// Holds a lock of a [`LockTable`].
#[must_use = "the lock is given back when this drops"]
pub struct LockGuard<'t> {
    word: &'t AtomicU64,
}

impl Drop for LockGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.word.store(FREE, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn two_places_of_one_lock_are_locked_once() {
        let table = LockTable::new();
        assert_eq!(table.bytes(), 32 << 10);
        let other = (1..).map(|line| line * LINE).find(|place| table.of(*place) != table.of(0)).unwrap_or(0);
        let same = (1..).map(|line| line * LINE).find(|place| table.of(*place) == table.of(0)).unwrap_or(0);
        assert!(table.lock_both([0, same]).1.is_none());
        assert!(table.lock_both([0, other]).1.is_some());
        assert!(table.lock_both([other, 0]).1.is_some(), "both were given back");
    }

    #[test]
    fn neighbouring_lines_have_locks_of_their_own() {
        let table = LockTable::new();
        let mut numbers: Vec<usize> = (0..1000).map(|line| table.of((1 << 20) + line * LINE)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert!(numbers.len() > 900, "{} locks for 1000 lines", numbers.len());
    }

    #[test]
    fn one_at_a_time_holds_a_lock() {
        use std::sync::atomic::AtomicU64 as Plain;
        let (table, count) = (LockTable::new(), Plain::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        let _held = table.lock(64);
                        let seen = count.load(Ordering::Relaxed);
                        count.store(seen + 1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(count.into_inner(), 8_000);
    }
}
