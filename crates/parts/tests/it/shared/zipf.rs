//! Keys by rank, chosen as in YCSB: the i-th with a probability in proportion to `i^-theta`.

/// Chances of keys to be among the first so many.
pub struct Zipf {
    /// The chance of one of the first `i + 1` keys.
    sums: Vec<f64>,
}

impl Zipf {
    /// A choice among so many keys; uniform if `theta` is zero.
    pub fn new(keys: usize, theta: f64) -> Zipf {
        let mut sums = Vec::with_capacity(keys);
        let mut sum = 0.0;
        for rank in 1..=keys {
            sum += (rank as f64).powf(-theta);
            sums.push(sum);
        }
        sums.iter_mut().for_each(|chance| *chance /= sum);
        Zipf { sums }
    }

    /// The rank, from 0, that a number chooses of which all 64 bits look random.
    pub fn draw(&self, random: u64) -> u64 {
        let chance = (random >> 11) as f64 / (1u64 << 53) as f64;
        self.sums.partition_point(|sum| *sum <= chance).min(self.sums.len() - 1) as u64
    }

    /// The share of the draws that go to the `keys` most frequent ones: no set of as many hits more.
    pub fn ideal(&self, keys: usize) -> f64 {
        keys.checked_sub(1).map_or(0.0, |last| self.sums[last.min(self.sums.len() - 1)])
    }
}
