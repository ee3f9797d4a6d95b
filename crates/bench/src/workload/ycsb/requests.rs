//! The stream of requests that a workload makes, one for each thread.

use super::settings::{Distribution, Workload};
use crate::workload::{AcknowledgedCounter, ScrambledZipfian, Zipfian, mix};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// One request; records are named by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Read a record.
    Read(u64),
    /// Replace a record's value.
    Update(u64),
    /// Store a new record. Its number must be acknowledged to the counter when it is stored.
    Insert(u64),
    /// Read this many records in key order from a record on.
    Scan(u64, u64),
    /// Read a record, then replace its value.
    ReadModifyWrite(u64),
}

#[derive(Clone)]
enum Chooser {
    Uniform(u64),
    Zipfian(ScrambledZipfian),
    Latest(Zipfian),
}

/// Makes one thread's requests. Expensive to begin (sums over all records), cheap to clone for the next
/// thread.
#[derive(Clone)]
pub struct Requests {
    random: SmallRng,
    bounds: [f64; 5],
    chooser: Chooser,
    scan_length: (u64, u64),
    short_scans: Option<Zipfian>,
}

impl Requests {
    /// The requests of thread 0 under `seed`.
    ///
    /// # Panics
    /// If the workload's fields break the bounds that parsing checks.
    pub fn new(workload: &Workload, seed: u64) -> Requests {
        let weights = workload.mix.weights();
        let sum: f64 = weights.iter().sum();
        let mut passed = 0.0;
        let mut bounds = weights.map(|weight| {
            passed += weight / sum;
            passed
        });
        // Rounding may leave the last bound a little below one; no draw may fall past it.
        let last = weights.iter().rposition(|&weight| weight > 0.0).expect("bounds are checked");
        bounds[last] = f64::INFINITY;
        let chooser = match workload.distribution {
            Distribution::Uniform => Chooser::Uniform(workload.records),
            Distribution::Zipfian => {
                // Choosing among more records than exist keeps the popular ones the same while inserts go on;
                // a choice of one that does not exist yet is drawn again. Twice the expected inserts, as in
                // YCSB.
                let inserts = (workload.operations as f64 * workload.mix.insert / sum * 2.0) as u64;
                let items = workload.records + inserts;
                Chooser::Zipfian(ScrambledZipfian::new(items, workload.theta).expect("bounds are checked"))
            }
            Distribution::Latest => {
                Chooser::Latest(Zipfian::new(workload.records, workload.theta).expect("bounds are checked"))
            }
        };
        let (least, most) = workload.scan_length;
        let short_scans = workload
            .zipfian_scans
            .then(|| Zipfian::new(most - least + 1, workload.theta).expect("bounds are checked"));
        Requests {
            random: SmallRng::seed_from_u64(mix(seed)),
            bounds,
            chooser,
            scan_length: workload.scan_length,
            short_scans,
        }
    }

    /// The requests of another thread.
    pub fn for_thread(&self, seed: u64, thread: u64) -> Requests {
        Requests { random: SmallRng::seed_from_u64(mix(mix(seed).wrapping_add(thread))), ..self.clone() }
    }

    /// The next request, over the records that `stored` counts.
    #[inline]
    pub fn next(&mut self, stored: &AcknowledgedCounter) -> Operation {
        let draw: f64 = self.random.random();
        match self.bounds.iter().position(|&bound| draw < bound) {
            Some(0) => Operation::Read(self.choose(stored)),
            Some(1) => Operation::Update(self.choose(stored)),
            Some(2) => Operation::Insert(stored.next()),
            Some(3) => Operation::Scan(self.choose(stored), self.scan_records()),
            _ => Operation::ReadModifyWrite(self.choose(stored)),
        }
    }

    #[inline]
    fn choose(&mut self, stored: &AcknowledgedCounter) -> u64 {
        match &mut self.chooser {
            Chooser::Uniform(records) => self.random.random_range(0..*records),
            Chooser::Zipfian(scrambled) => loop {
                let record = scrambled.draw(&mut self.random);
                if record < stored.stored() {
                    return record;
                }
            },
            Chooser::Latest(ages) => {
                let newest = stored.stored();
                ages.grow(newest);
                newest - 1 - ages.draw(&mut self.random).min(newest - 1)
            }
        }
    }

    fn scan_records(&mut self) -> u64 {
        let (least, most) = self.scan_length;
        match &self.short_scans {
            Some(lengths) => least + lengths.draw(&mut self.random),
            None => self.random.random_range(least..=most),
        }
    }
}
