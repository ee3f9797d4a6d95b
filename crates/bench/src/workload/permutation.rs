//! A cheap random order: visits each of `n` numbers once without an array of them.
//!
//! An array of five million positions would be read from memory beside the records and would so be measured
//! with the store; a shuffle computed from the position costs a few nanoseconds and no miss. The function is
//! a bijection on the next power of two, since multiplication by odd numbers, additions and shifted
//! exclusive-or are each invertible. A result outside `0..n` is put in again until it falls inside, which
//! keeps the function a bijection on `0..n`.

/// Spreads a number over all 64 bits; a bijection, so distinct numbers stay distinct.
///
/// The finalizer of the SplitMix64 generator (Steele, Lea, Flood: "Fast splittable pseudorandom number
/// generators", 2014).
#[inline]
pub fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The number that [`mix`] makes this of.
#[inline]
pub fn unmix(mixed: u64) -> u64 {
    let mut z = mixed;
    z = (z ^ (z >> 31) ^ (z >> 62)).wrapping_mul(0x3196_42b2_d24d_8ec3);
    z = (z ^ (z >> 27) ^ (z >> 54)).wrapping_mul(0x96de_1b17_3f11_9089);
    (z ^ (z >> 30) ^ (z >> 60)).wrapping_sub(0x9e37_79b9_7f4a_7c15)
}

/// A seeded order of the numbers `0..n`.
#[derive(Clone, Copy, Debug)]
pub struct Permutation {
    count: u64,
    mask: u64,
    shift: u32,
    start: u64,
    first: u64,
    second: u64,
}

impl Permutation {
    /// The order of `0..count` that belongs to `seed`.
    pub fn new(count: u64, seed: u64) -> Permutation {
        let bits = (u64::BITS - count.saturating_sub(1).leading_zeros()).max(2);
        Permutation {
            count,
            mask: u64::MAX >> (u64::BITS - bits),
            shift: bits / 2,
            start: mix(seed),
            first: mix(seed ^ 1) | 1,
            second: mix(seed ^ 2) | 1,
        }
    }

    /// The number at `position`.
    ///
    /// # Panics
    /// If `position` is not below the count.
    #[inline]
    pub fn at(&self, position: u64) -> u64 {
        assert!(position < self.count, "position {position} of an order of {}", self.count);
        let mut number = position;
        loop {
            number = number.wrapping_add(self.start) & self.mask;
            number = number.wrapping_mul(self.first) & self.mask;
            number ^= number >> self.shift;
            number = number.wrapping_mul(self.second) & self.mask;
            number ^= number >> self.shift;
            if number < self.count {
                return number;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visits_every_number_once() {
        for count in [1, 2, 3, 5, 64, 1000, 4096, 4097] {
            let order = Permutation::new(count, 7);
            let mut seen: Vec<u64> = (0..count).map(|position| order.at(position)).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..count), "{count} numbers");
        }
    }

    #[test]
    fn neighbours_are_scattered_and_seeds_differ() {
        let count = 100_000;
        let order = Permutation::new(count, 1);
        let near = (1..count).filter(|&p| order.at(p).abs_diff(order.at(p - 1)) < count / 100).count();
        assert!(near < 3 * count as usize / 100, "{near} of {count} steps are short");
        let other = Permutation::new(count, 2);
        assert!((0..count).filter(|&p| order.at(p) == other.at(p)).count() < 20);
        // A stride, which a prefetcher would learn, would repeat one difference.
        let stride = order.at(1).wrapping_sub(order.at(0));
        let same = (1..count).filter(|&p| order.at(p).wrapping_sub(order.at(p - 1)) == stride).count();
        assert!(same < count as usize / 50, "{same} equal strides");
    }
}
