//! Random steps between the reads of a client that count.

use std::cell::Cell;

/// Random steps, another series for each client and the same in each run. They are cheap, and not hard to
/// foretell.
#[derive(Debug)]
pub struct Steps {
    /// Of a xorshift generator; never zero.
    state: Cell<u64>,
    /// The longest step.
    most: u64,
}

impl Steps {
    /// The series of this number, of steps from 1 to twice the `mean`.
    pub fn new(number: u64, mean: u32) -> Steps {
        // The numbers of clients are small: SplitMix64 parts them.
        let mut state = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Steps {
            state: Cell::new((state ^ (state >> 31)) | 1),
            most: (u64::from(mean) * 2).saturating_sub(1).max(1),
        }
    }

    /// The next step.
    pub fn next(&self) -> u32 {
        let mut state = self.state.get();
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.state.set(state);
        // The high bits of a product, which are as random as all.
        let step = (u128::from(state) * u128::from(self.most)) >> u64::BITS;
        step as u32 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_have_their_mean_and_no_period() {
        for (number, mean) in [(0, 1), (0, 2), (1, 32), (7, 100)] {
            let steps = Steps::new(number, mean);
            let taken: Vec<u32> = (0..40_000).map(|_| steps.next()).collect();
            assert!(taken.iter().all(|step| (1..2 * mean).contains(step)));
            let found = taken.iter().map(|step| f64::from(*step)).sum::<f64>() / taken.len() as f64;
            assert!((found / f64::from(mean) - 1.0).abs() < 0.02, "{found} in place of {mean}");
            // The places at which they end are spread evenly over the keys of a client that goes round.
            let mut counts = [0; 32];
            let mut place = 0;
            for step in &taken {
                place += *step as usize;
                counts[place % 32] += 1;
            }
            assert!(mean == 1 || counts.iter().all(|count| (900..1600).contains(count)), "{counts:?}");
        }
        assert_ne!(Steps::new(0, 32).next(), Steps::new(1, 32).next());
    }
}
