//! Zipfian choice as YCSB makes it.
//!
//! The distribution is that of Gray, Sundaresan, Englert, Baclawski and Weinberger, "Quickly Generating
//! Billion-Record Synthetic Databases" (SIGMOD 1994, section 5). Item `i` of `n` (from 1) is chosen with
//! probability `1 / (i^theta zeta(n))`, by inverting an approximation of the distribution function that is
//! exact for the first two items. `rand_distr` has a Zipf distribution by rejection sampling with other
//! probabilities in the tail, a fixed number of items and no scrambling. Its results would not compare with
//! published YCSB numbers.
//!
//! YCSB's own additions: the number of items may grow, and `zeta` is then continued instead of summed anew.
//! And popular items are scattered by drawing from ten billion items and hashing the outcome onto the
//! existing ones.

use crate::workload::ycsb_hash;
use rand::{Rng, RngExt};

/// Items that a scrambled choice draws from before it hashes, as in YCSB.
pub const SCRAMBLED_ITEMS: u64 = 10_000_000_000;

/// Terms that are summed one by one before the rest of a sum is integrated.
const SUMMED: u64 = 10_000;

/// The generalised harmonic number: the sum of `i^-theta` for `i` in `1..=items`.
///
/// Beyond ten thousand terms the rest comes from the Euler-Maclaurin formula, whose error there is below the
/// rounding of the sum; ten billion terms one by one would take minutes.
pub fn zeta(items: u64, theta: f64) -> f64 {
    let summed: f64 = (1..=items.min(SUMMED)).map(|i| (i as f64).powf(-theta)).sum();
    if items <= SUMMED {
        return summed;
    }
    let (from, to) = (SUMMED as f64, items as f64);
    let integral = (to.powf(1.0 - theta) - from.powf(1.0 - theta)) / (1.0 - theta);
    let ends = (to.powf(-theta) - from.powf(-theta)) / 2.0;
    let slopes = -theta * (to.powf(-theta - 1.0) - from.powf(-theta - 1.0)) / 12.0;
    summed + integral + ends + slopes
}

/// Chooses items from `0..items`, the lower the likelier.
#[derive(Clone, Debug)]
pub struct Zipfian {
    items: u64,
    theta: f64,
    alpha: f64,
    zeta: f64,
    eta: f64,
    second: f64,
}

impl Zipfian {
    /// A choice among `items` items, or `None` unless there is one and `0 < theta < 1` (Gray's inversion
    /// needs that).
    pub fn new(items: u64, theta: f64) -> Option<Zipfian> {
        if items == 0 || !(theta > 0.0 && theta < 1.0) {
            return None;
        }
        let mut zipfian = Zipfian {
            items,
            theta,
            alpha: 1.0 / (1.0 - theta),
            zeta: zeta(items, theta),
            eta: 0.0,
            second: 1.0 + 0.5f64.powf(theta),
        };
        zipfian.set_eta();
        Some(zipfian)
    }

    /// The number of items.
    pub fn items(&self) -> u64 {
        self.items
    }

    /// Makes the choice one among `items`, if that is more than before. Costs one step for each new item.
    pub fn grow(&mut self, items: u64) {
        if items > self.items {
            self.zeta += (self.items + 1..=items).map(|i| (i as f64).powf(-self.theta)).sum::<f64>();
            self.items = items;
            self.set_eta();
        }
    }

    fn set_eta(&mut self) {
        // With one or two items the two branches of `draw` decide alone.
        if self.items > 2 {
            self.eta =
                (1.0 - (2.0 / self.items as f64).powf(1.0 - self.theta)) / (1.0 - self.second / self.zeta);
        }
    }

    /// Draws an item.
    #[inline]
    pub fn draw(&self, random: &mut impl Rng) -> u64 {
        let uniform: f64 = random.random();
        let scaled = uniform * self.zeta;
        if scaled < 1.0 || self.items == 1 {
            return 0;
        }
        if scaled < self.second || self.items == 2 {
            return 1;
        }
        let item = self.items as f64 * (self.eta * uniform - self.eta + 1.0).powf(self.alpha);
        (item as u64).min(self.items - 1)
    }
}

/// A zipfian choice whose popular items lie scattered among `0..items`.
#[derive(Clone, Debug)]
pub struct ScrambledZipfian {
    items: u64,
    ranks: Zipfian,
}

impl ScrambledZipfian {
    /// A choice among `items` items; `None` as for [`Zipfian::new`].
    pub fn new(items: u64, theta: f64) -> Option<ScrambledZipfian> {
        let ranks = Zipfian::new(SCRAMBLED_ITEMS, theta)?;
        (items > 0).then_some(ScrambledZipfian { items, ranks })
    }

    /// Draws an item.
    #[inline]
    pub fn draw(&self, random: &mut impl Rng) -> u64 {
        ycsb_hash(self.ranks.draw(random)) % self.items
    }
}

#[cfg(test)]
#[path = "zipfian_tests.rs"]
mod tests;
