//! Lengths that vary from record to record, around a mean.
//!
//! A record must have the same length whenever it is asked for, by whichever thread, so the length is a
//! function of the record's number and nothing is drawn. The numbers of ones among 64 random bits are
//! distributed as nearly normally as any measurement could tell, and counting them is one instruction.

use crate::workload::mix;

/// Standard deviation of the number of ones among 64 random bits.
const DEVIATION: f64 = 4.0;

/// A step of that number, divided so finely that no length is left out.
const FINE: i64 = 16;

/// Lengths that are normally distributed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    mean: f64,
    per_step: f64,
    least: usize,
    salt: u64,
}

impl Spread {
    /// Lengths around `mean` with this standard deviation, in bytes, and none below `least`. Another `salt`,
    /// other lengths.
    pub fn new(mean: usize, deviation: f64, least: usize, salt: u64) -> Spread {
        Spread { mean: mean as f64, per_step: deviation / DEVIATION / FINE as f64, least, salt }
    }

    /// The length of number `number`.
    // Kept out of the code that makes keys and values of one length, which would save registers for it.
    #[inline(never)]
    pub fn of(&self, number: u64) -> usize {
        let bits = mix(number ^ self.salt);
        let ones = i64::from(mix(bits).count_ones()) - 32;
        let steps = ones * FINE + (bits % FINE as u64) as i64 - FINE / 2;
        let length = self.mean + steps as f64 * self.per_step;
        (length.round().max(0.0) as usize).max(self.least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_the_mean_and_the_deviation_asked_for() {
        for (mean, deviation) in [(200, 40.0), (16, 3.2), (1000, 100.0)] {
            let spread = Spread::new(mean, deviation, 0, 7);
            let lengths: Vec<f64> = (0..100_000).map(|number| spread.of(number) as f64).collect();
            let found = lengths.iter().sum::<f64>() / lengths.len() as f64;
            let squares: f64 = lengths.iter().map(|length| (length - found) * (length - found)).sum();
            let spread = (squares / lengths.len() as f64).sqrt();
            assert!((found - mean as f64).abs() < deviation / 20.0, "mean {found} instead of {mean}");
            assert!((spread / deviation - 1.0).abs() < 0.1, "{spread} instead of {deviation}");
            let within = lengths.iter().filter(|length| (*length - mean as f64).abs() <= deviation).count();
            assert!((60_000..80_000).contains(&within), "{within} within one deviation");
        }
    }

    #[test]
    fn no_length_is_below_the_least_and_none_between_is_left_out() {
        let spread = Spread::new(16, 3.2, 8, 1);
        let mut seen: Vec<usize> = (0..100_000).map(|number| spread.of(number)).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen[..20], (8..28).collect::<Vec<_>>()[..]);
    }
}
