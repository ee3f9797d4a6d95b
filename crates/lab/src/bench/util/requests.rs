//! The records that are overwritten and read, and the value that each must have.
//!
//! A zipfian choice costs as much as a third of a put, and noting the choice a cache miss. So a window's
//! choices are made before its clock starts, and read from an array while it runs. Each thread has records of
//! its own, so that there is no doubt which value was last, in the end and at every get.

use super::settings::Keys;
use quipu_bench::workload::mix;
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
    drawn: Vec<Mutex<Drawn>>,
    newest: Vec<AtomicU64>,
}

/// The requests of a thread in a window.
#[derive(Default)]
pub(super) struct Drawn {
    pub(super) requests: Vec<Request>,
    /// Puts among them.
    pub(super) puts: u64,
    /// Bytes of their records.
    pub(super) bytes: u64,
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Request {
    pub(super) record: u64,
    /// Number of the value: of a put the one to write, of a get the one to find.
    pub(super) value: u64,
    pub(super) is_put: bool,
}

/// A draw.
pub(super) struct Draw<'a> {
    pub(super) thread: usize,
    pub(super) window: u64,
    /// The records that there are.
    pub(super) records: u64,
    /// Per cent of puts.
    pub(super) put: u64,
    /// Numbers of the values, one for each operation. They are never used again.
    pub(super) values: Range<u64>,
    /// Bytes of a record.
    pub(super) bytes: &'a dyn Fn(u64) -> u64,
}

impl Requests {
    /// For at most so many records and operations of a window. All memory is taken and touched here, before
    /// that of the store is measured.
    pub(super) fn new(keys: Keys, seed: u64, threads: usize, records: u64, operations: u64) -> Requests {
        let share = operations as usize / threads + 1;
        let touched = |_| {
            let mut requests = vec![Request { record: 1, value: 1, is_put: true }; share];
            requests.clear();
            Mutex::new(Drawn { requests, ..Drawn::default() })
        };
        let newest = (0..records).map(|_| AtomicU64::new(0)).collect();
        Requests { keys, seed, drawn: (0..threads).map(touched).collect(), newest }
    }

    fn of_thread(&self, thread: usize) -> MutexGuard<'_, Drawn> {
        self.drawn[thread].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Draws what a thread does in a window.
    pub(super) fn draw(&self, draw: Draw<'_>) -> MutexGuard<'_, Drawn> {
        let Draw { thread, window, records, put, values, bytes } = draw;
        let threads = self.drawn.len() as u64;
        // Each thread has every so-manieth record.
        let choice = self.keys.choice((records - thread as u64).div_ceil(threads));
        let record = |position: u64| position * threads + thread as u64;
        let mut random = SmallRng::seed_from_u64(mix(mix(self.seed) ^ (window << 16 | thread as u64)));
        let mut drawn = self.of_thread(thread);
        drawn.requests.clear();
        (drawn.puts, drawn.bytes) = (0, 0);
        for value in values {
            let record = record(choice.draw(&mut random, record));
            let newest = &self.newest[record as usize];
            // Where there are only puts nothing else is drawn: their choices stay those of runs without gets.
            let is_put = put == 100 || random.random_range(0..100) < put;
            if is_put {
                newest.store(value, Ordering::Relaxed);
                drawn.puts += 1;
                drawn.bytes += bytes(record);
            }
            drawn.requests.push(Request { record, value: newest.load(Ordering::Relaxed), is_put });
        }
        drawn
    }

    /// Bytes of the records that all threads have put in the last window.
    pub(super) fn bytes_put(&self) -> u64 {
        (0..self.drawn.len()).map(|thread| self.of_thread(thread).bytes).sum()
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

    fn draw(thread: usize, window: u64, put: u64) -> Draw<'static> {
        let first = 1 + window * 1000 + thread as u64 * 500;
        Draw { thread, window, records: 101, put, values: first..first + 500, bytes: &|record| record + 1 }
    }

    #[test]
    fn threads_have_records_of_their_own_and_the_last_value_is_known() {
        for keys in [Keys::Uniform, Keys::Zipf(0.99), Keys::Etc] {
            let requests = Requests::new(keys, 3, 2, 101, 1000);
            let (mut last, mut bytes) = (HashMap::new(), 0);
            for window in 0..3u64 {
                bytes = 0;
                for thread in 0..2 {
                    let drawn = requests.draw(draw(thread, window, 100));
                    assert_eq!((drawn.requests.len(), drawn.puts), (500, 500));
                    for request in &drawn.requests {
                        assert!(
                            request.record < 101 && request.record % 2 == thread as u64 && request.is_put
                        );
                        last.insert(request.record, request.value);
                        bytes += request.record + 1;
                    }
                }
            }
            assert_eq!(requests.bytes_put(), bytes, "of the last window");
            assert!(last.len() > 60, "{keys}: {}", last.len());
            assert!(
                (0..101).all(|record| requests.newest(record) == last.get(&record).copied().unwrap_or(0))
            );
        }
    }

    #[test]
    fn gets_stand_among_puts_and_know_what_they_must_find() {
        for put in [0, 20, 50, 95] {
            let requests = Requests::new(Keys::Zipf(0.99), 3, 2, 101, 1000);
            let mut last = HashMap::new();
            let mut puts = 0;
            for window in 0..3 {
                for thread in 0..2 {
                    let drawn = requests.draw(draw(thread, window, put));
                    for request in &drawn.requests {
                        if request.is_put {
                            last.insert(request.record, request.value);
                        } else {
                            assert_eq!(request.value, last.get(&request.record).copied().unwrap_or(0));
                        }
                    }
                    puts += drawn.puts;
                }
            }
            assert!(puts.abs_diff(30 * put) < 150, "{puts} of 3000 at {put} %");
        }
    }
}
