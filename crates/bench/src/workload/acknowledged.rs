//! Numbers for new records, and the highest below which all are stored.
//!
//! While some threads insert, others read what is there. A number that has been handed out may not be stored
//! yet, so readers choose only among those below which every insert has returned. Then a missing record is an
//! error of the store and never of the workload. Inserts finish out of order; a window of flags remembers the
//! early ones.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How far inserts may run ahead of the oldest one in flight: milliseconds of inserts, since its thread may
/// have lost its processor.
const WINDOW: usize = 1 << 16;

/// Hands out numbers and tracks which of them are stored. Shared by all threads of a run.
pub struct AcknowledgedCounter {
    next: AtomicU64,
    stored: AtomicU64,
    early: Vec<AtomicBool>,
    advance: Mutex<()>,
}

impl AcknowledgedCounter {
    /// A counter for a store that holds the records `0..stored`.
    pub fn new(stored: u64) -> AcknowledgedCounter {
        AcknowledgedCounter {
            next: AtomicU64::new(stored),
            stored: AtomicU64::new(stored),
            early: (0..WINDOW).map(|_| AtomicBool::new(false)).collect(),
            advance: Mutex::new(()),
        }
    }

    /// The number of the next new record.
    pub fn next(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Notes that the record `number` is stored. Waits while it is a whole window ahead of the oldest in
    /// flight.
    pub fn acknowledge(&self, number: u64) {
        while number - self.stored() >= WINDOW as u64 {
            std::thread::yield_now();
        }
        self.flag(number).store(true, Ordering::SeqCst);
        // The flag is set before the lock is tried, and the holder of the lock looks once more after leaving
        // it: a number is never left behind without a thread that will pass it.
        while self.flag(self.stored()).load(Ordering::SeqCst) {
            let Ok(_held) = self.advance.try_lock() else { return };
            while self.flag(self.stored()).swap(false, Ordering::SeqCst) {
                self.stored.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    /// All records below this number are stored.
    #[inline]
    pub fn stored(&self) -> u64 {
        self.stored.load(Ordering::SeqCst)
    }

    fn flag(&self, number: u64) -> &AtomicBool {
        &self.early[number as usize % WINDOW]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_for_the_oldest() {
        let counter = AcknowledgedCounter::new(10);
        let (first, second, third) = (counter.next(), counter.next(), counter.next());
        assert_eq!((first, second, third), (10, 11, 12));
        counter.acknowledge(third);
        counter.acknowledge(second);
        assert_eq!(counter.stored(), 10, "number 10 is still in flight");
        counter.acknowledge(first);
        assert_eq!(counter.stored(), 13);
    }

    #[test]
    fn a_number_beyond_the_window_waits_for_the_oldest() {
        let counter = AcknowledgedCounter::new(0);
        let ahead = WINDOW as u64;
        for number in 1..ahead {
            counter.acknowledge(number);
        }
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| counter.acknowledge(ahead));
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!waiting.is_finished(), "its flag is still that of number 0");
            counter.acknowledge(0);
        });
        assert_eq!(counter.stored(), ahead + 1);
    }

    #[test]
    fn threads_lose_no_number() {
        let counter = AcknowledgedCounter::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        let number = counter.next();
                        counter.acknowledge(number);
                    }
                });
            }
        });
        assert_eq!(counter.stored(), 80_000);
    }
}
