//! The simulator's own source of chance: small, seeded, and the same on every machine.
//!
//! A replay must not depend on the version of a library, so the generator is spelled out: SplitMix64 (Steele,
//! Lea, Flood, "Fast Splittable Pseudorandom Number Generators"), which needs one word of state and no
//! warm-up.

/// A seeded generator.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        // One round apart from the raw seed, so that neighbouring seeds share no beginning.
        Random { state: mix(seed) }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.state)
    }

    /// A number below `bound`, which is not zero. The bias of the multiplication is too small for sampling to
    /// notice.
    #[inline]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

/// Scatters a word: a bijection whose every output bit depends on every input bit.
#[inline]
pub(crate) fn mix(word: u64) -> u64 {
    let mut z = word;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
