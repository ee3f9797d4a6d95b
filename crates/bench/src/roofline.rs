//! The limits of the medium: its speed for code that does nothing but the accesses themselves.
//!
//! A number alone says little on a shared machine. So the limits are measured in the same run, on the same
//! medium, with as many threads and the same record size, and results are given as shares of them. The *write
//! limit* appends records with non-temporal stores and one fence each. The *read limit* loads an index word
//! at a random place and copies the record that it names; one read does not wait for another, so that they
//! overlap as far as the processor can. Memory comes in ordinary pages: huge pages are then a gain of the
//! store and not of the limit. The limits in huge pages, which a store in memory has, are measured once, in
//! the beginning, and stand beside.
//!
//! The care is that of the operations: everything is touched and written once beforehand, threads begin
//! behind the same barrier, and indices are drawn inside the loop. A repetition takes a fraction of a second,
//! and a phase is one long stretch. So the benchmark runs repetitions before, between and after its phases,
//! and takes the median: the machine's good and bad moments then count for the limits as for the phases.

use super::config::Config;
use super::drive::{Phase, drive};
use super::error::BenchError;
use super::progress::Silent;
use super::target::scratch;
use crate::workload::{Permutation, mix};
use quipu_medium::{Pages, Region, WORD};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::hint::black_box;

/// Records that a thread writes in a repetition: some tens of milliseconds.
const WRITES: u64 = 1 << 18;

/// Records that a thread reads in a repetition: the same.
const READS: u64 = 1 << 19;

/// Accesses between two looks at the clock; the runner's own sampling is too dear for accesses of 40 ns.
const BLOCK: u64 = 256;

/// The limits, in million operations a second of all threads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Appends of a record, each durable before the next.
    pub write_mops: f64,
    /// Independent reads of a record through an index word.
    pub read_mops: f64,
}

impl Limits {
    /// The limit of operations that on average make so many reads and so many writes, one after the other.
    pub fn mixed(&self, reads: f64, writes: f64) -> f64 {
        1.0 / (reads / self.read_mops + writes / self.write_mops)
    }
}

/// The limits that results are compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Roof {
    /// Those in ordinary pages: shares are of these.
    pub ordinary: Limits,
    /// Those in huge pages, of memory that can have them.
    pub huge: Option<Limits>,
}

/// Repetitions of the limits before a design; between its phases there is one each, and as many again at the
/// end.
pub(super) const REPETITIONS: usize = 3;

/// Measures the limits; holds the memory that this takes.
pub struct Roofline {
    records: Region,
    index: Region,
    count: u64,
    size: u64,
    stride: u64,
    threads: usize,
    repetitions: Vec<Limits>,
    huge: Option<Limits>,
}

impl Roofline {
    /// Measures the limits in huge pages. Then makes and touches as many records as the benchmark will have,
    /// and an index of them in random order.
    pub fn new(config: &Config) -> Result<Roofline, BenchError> {
        config.check_run()?;
        let mut huge = None;
        if config.pool.is_none() {
            let mut roofline = Roofline::in_pages(config, Pages::Huge)?;
            for _ in 0..REPETITIONS {
                huge = Some(roofline.repeat()?.ordinary);
            }
        }
        Ok(Roofline { huge, ..Roofline::in_pages(config, Pages::Ordinary)? })
    }

    fn in_pages(config: &Config, pages: Pages) -> Result<Roofline, BenchError> {
        let size = config.record_bytes();
        let stride = size.next_multiple_of(WORD);
        let count = config.records.max(config.threads as u64);
        let records = scratch(config, count * stride, pages)?;
        let index_bytes = (count * WORD).next_multiple_of(4096);
        let index = Region::dram(index_bytes, pages)?;
        index.prefault(0, index_bytes)?;
        let order = Permutation::new(count, config.seed);
        let filling: Vec<u8> = (0..size).map(|byte| byte as u8).collect();
        for number in 0..count {
            index.store(number * WORD, order.at(number) * stride);
            records.write_nt(number * stride, &filling);
        }
        records.fence();
        let threads = config.threads;
        Ok(Roofline { records, index, count, size, stride, threads, repetitions: Vec::new(), huge: None })
    }

    /// Forgets the repetitions so far: what follows is compared with limits of its own time.
    pub fn restart(&mut self) {
        self.repetitions.clear();
    }

    /// Measures once more, and returns the limits of all repetitions since the last restart.
    pub fn repeat(&mut self) -> Result<Roof, BenchError> {
        let limits = Limits { write_mops: self.writes()?, read_mops: self.reads()? };
        self.repetitions.push(limits);
        Ok(self.limits())
    }

    /// The median of the repetitions, each limit by itself: a phase is one long stretch, and takes the
    /// machine's good and bad moments as they come; so must what it is compared with.
    pub fn limits(&self) -> Roof {
        let median = |limit: fn(&Limits) -> f64| {
            let mut sorted: Vec<f64> = self.repetitions.iter().map(limit).collect();
            sorted.sort_unstable_by(f64::total_cmp);
            sorted.get(sorted.len() / 2).copied().unwrap_or_default()
        };
        let ordinary = Limits {
            write_mops: median(|limits| limits.write_mops),
            read_mops: median(|limits| limits.read_mops),
        };
        Roof { ordinary, huge: self.huge }
    }

    /// The number of the repetition that is under way.
    fn round(&self) -> u64 {
        self.repetitions.len() as u64 + 1
    }

    fn phase(&self, stage: &'static str, accesses: u64) -> Phase<'static> {
        let calls = accesses / BLOCK * self.threads as u64;
        Phase { operations_per_call: BLOCK, warm_up: 16, ..Phase::new(stage, self.threads, calls, &Silent) }
    }

    fn writes(&self) -> Result<f64, BenchError> {
        let share = self.count / self.threads as u64;
        let outcome = drive(&self.phase("write limit", WRITES), |thread| {
            // Each thread appends in a part of its own, and goes on where the last repetition stopped.
            let first = thread as u64 * share;
            let mut next = self.round() * WRITES % share;
            let mut record = vec![0; self.size as usize];
            Ok(move |call: u64| {
                record[0] = call as u8;
                for _ in 0..BLOCK {
                    self.records.write_nt((first + next) * self.stride, &record);
                    self.records.fence();
                    next += 1;
                    if next == share {
                        next = 0;
                    }
                }
                Ok(())
            })
        })?;
        Ok(outcome.mops())
    }

    fn reads(&self) -> Result<f64, BenchError> {
        let outcome = drive(&self.phase("read limit", READS), |thread| {
            let mut random = SmallRng::seed_from_u64(mix(self.round() << 16 | thread as u64));
            let mut copy = vec![0; self.size as usize];
            Ok(move |_| {
                for _ in 0..BLOCK {
                    let offset = self.index.load(random.random_range(0..self.count) * WORD);
                    // SAFETY: `writes` has returned and `&self` keeps the next repetition away, so no one
                    // writes.
                    let record = unsafe { self.records.bytes(offset, self.size) };
                    copy.copy_from_slice(record.expect("the index names records of the region"));
                    black_box(&copy);
                }
                Ok(())
            })
        })?;
        Ok(outcome.mops())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixed_limits_lie_between_the_two() {
        let limits = Limits { write_mops: 5.0, read_mops: 20.0 };
        assert_eq!((limits.mixed(1.0, 0.0), limits.mixed(0.0, 1.0)), (20.0, 5.0));
        assert_eq!(limits.mixed(0.5, 0.5), 8.0);
        assert_eq!(limits.mixed(1.0, 1.0), 4.0, "a read and a write each");
    }
}
