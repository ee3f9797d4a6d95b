//! Which records are overwritten, and what each must have in the end.
//!
//! Choosing by a zipfian distribution costs as much as a third of a put, and noting the choice a cache miss; so a window's
//! choices are made before its clock starts, and read from an array while it runs. Each thread has records of its own, so
//! that there is no doubt which value was last.

use super::settings::Keys;
use crate::workload::{ScrambledZipfian, mix};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The requests of all threads, and the number of each record's last value.
pub(super) struct Requests {
    keys: Keys,
    seed: u64,
    /// One for each thread.
    drawn: Vec<Mutex<Vec<u64>>>,
    newest: Vec<AtomicU64>,
}

enum Choice {
    Uniform(u64),
    Zipf(ScrambledZipfian),
}

impl Requests {
    /// For at most so many records and writes of a window. All memory is taken and touched here, before that of the store
    /// is measured.
    pub(super) fn new(keys: Keys, seed: u64, threads: usize, records: u64, writes: u64) -> Requests {
        let share = writes as usize / threads + 1;
        let touched = |_| {
            let mut drawn = vec![1; share];
            drawn.clear();
            Mutex::new(drawn)
        };
        let newest = (0..records).map(|_| AtomicU64::new(0)).collect();
        Requests { keys, seed, drawn: (0..threads).map(touched).collect(), newest }
    }

    /// Draws the records, out of the first `records`, that `thread` overwrites in a window with its share of the values. The
    /// numbers of the values are never used again.
    pub(super) fn draw(
        &self,
        thread: usize,
        window: u64,
        records: u64,
        values: Range<u64>,
    ) -> MutexGuard<'_, Vec<u64>> {
        let threads = self.drawn.len() as u64;
        // Each thread has every so-manieth record.
        let own = (records - thread as u64).div_ceil(threads);
        let choice = match self.keys {
            Keys::Zipf(theta) => ScrambledZipfian::new(own, theta).map(Choice::Zipf),
            Keys::Uniform => None,
        };
        let choice = choice.unwrap_or(Choice::Uniform(own));
        let mut random = SmallRng::seed_from_u64(mix(mix(self.seed) ^ (window << 16 | thread as u64)));
        let mut drawn = self.drawn[thread].lock().unwrap_or_else(PoisonError::into_inner);
        drawn.clear();
        drawn.extend(values.map(|value| {
            let chosen = match &choice {
                Choice::Uniform(own) => random.random_range(0..*own),
                Choice::Zipf(zipfian) => zipfian.draw(&mut random),
            };
            let record = chosen * threads + thread as u64;
            self.newest[record as usize].store(value, Ordering::Relaxed);
            record
        }));
        drawn
    }

    /// Number of the last value that was written to a record.
    pub(super) fn newest(&self, record: u64) -> u64 {
        self.newest[record as usize].load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn threads_have_records_of_their_own_and_the_last_value_is_known() {
        for keys in [Keys::Uniform, Keys::Zipf(0.99)] {
            let requests = Requests::new(keys, 3, 2, 101, 1000);
            let mut last = HashMap::new();
            for window in 0..3u64 {
                for thread in 0..2 {
                    let first = 1 + window * 1000 + thread as u64 * 500;
                    let drawn = requests.draw(thread, window, 101, first..first + 500);
                    assert!(drawn.iter().all(|record| *record < 101 && *record % 2 == thread as u64));
                    last.extend(drawn.iter().copied().zip(first..));
                }
            }
            assert!(last.len() > 60, "{keys}: {}", last.len());
            assert!(
                (0..101).all(|record| requests.newest(record) == last.get(&record).copied().unwrap_or(0))
            );
        }
    }
}
