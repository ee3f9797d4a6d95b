//! The benchmark's own part in the time of an operation.
//!
//! Keys and values are drawn, and values that were read are checked, inside of a phase's time. With records
//! in the cache of a fast engine that is a good part of it. So the same work is measured alone, on one
//! thread, and its cost is printed beside each result. It is not taken off: while an engine waits for the
//! memory, some of it is free.

use super::config::Config;
use super::scan::{Names, Pairs};
use crate::workload::{KeyShape, Values, mix};
use quipu::MediumKind;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::hint::black_box;
use std::time::Instant;

/// Records made and checked: some tens of milliseconds.
const RECORDS: u64 = 1 << 18;

/// Records between two looks at the clock.
const BLOCK: usize = 64;

/// Nanoseconds of each part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct OwnWork {
    /// To draw a record, and make its key.
    pub(super) key: f64,
    /// To make its value.
    pub(super) value: f64,
    /// To check a value that was read.
    pub(super) check: f64,
    /// To copy a pair that was scanned, and check it.
    pub(super) pair: f64,
}

impl OwnWork {
    /// Measures it. On the simulator nothing has a time.
    pub(super) fn of(config: &Config, keys: &KeyShape, values: Values) -> Option<OwnWork> {
        if config.medium == MediumKind::Sim {
            return None;
        }
        let mut random = SmallRng::seed_from_u64(mix(config.seed));
        let mut work = OwnWork::default();
        let mut pairs = vec![(0, Vec::new(), Vec::new()); BLOCK];
        let (mut copies, mut named) = (Pairs::default(), Vec::new());
        for _ in 0..RECORDS / BLOCK as u64 {
            work.key += nanoseconds(&mut pairs, |(record, key, _)| {
                *record = random.random_range(0..config.records);
                keys.fill(*record, key);
            });
            work.value += nanoseconds(&mut pairs, |(record, _, value)| values.fill(*record, 0, value));
            let check = nanoseconds(&mut pairs, |(record, _, value)| {
                black_box(values.check(*record, value, 0).is_ok());
            });
            work.check += check;
            copies.clear();
            work.pair += check
                + nanoseconds(&mut pairs, |(_, key, value)| copies.push(key, value))
                + nanoseconds(&mut pairs, |(_, key, value)| {
                    keys.fill(Names::number_of(keys, key, value), &mut named);
                    black_box(named == *key);
                });
        }
        let OwnWork { key, value, check, pair } = work;
        let [key, value, check, pair] = [key, value, check, pair].map(|sum| sum / RECORDS as f64);
        Some(OwnWork { key, value, check, pair })
    }
}

/// Number, key and value of a record.
type Record = (u64, Vec<u8>, Vec<u8>);

fn nanoseconds(pairs: &mut [Record], work: impl FnMut(&mut Record)) -> f64 {
    let begin = Instant::now();
    pairs.iter_mut().for_each(work);
    black_box(pairs);
    begin.elapsed().as_nanos() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_measured_in_nanoseconds() {
        let config = Config::default();
        let work = OwnWork::of(&config, &config.keys().unwrap(), config.values().unwrap()).unwrap();
        let OwnWork { key, value, check, pair } = work;
        // Far from what any machine takes, so that only wrong units are noticed.
        assert!([key, value, check, pair].iter().all(|ns| (0.1..50_000.0).contains(ns)), "{work:?}");
        assert!(pair > check, "{work:?}");
        let simulated = Config { medium: MediumKind::Sim, ..config };
        let values = simulated.values().unwrap();
        assert_eq!(OwnWork::of(&simulated, &simulated.keys().unwrap(), values), None);
    }
}
