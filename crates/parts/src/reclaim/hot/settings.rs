//! The settings of a hot set, and values derived from them.

/// Hashes that a sampler collects before it hands them over: two kilobytes.
const RING_MAX: usize = 256;
/// Lookups that a sampler counts before it reports them and looks for a new round.
const WINDOW_MAX: u64 = 4096;

/// How a [`HotSet`](super::HotSet) chooses its keys. Values out of range count as the nearest within.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HotSetSettings {
    /// The most keys that are hot at a time; at least one. The set takes 2.3 bytes for each.
    pub keys: usize,
    /// While keys are sampled, one of so many written keys is, on average; at least one.
    pub interval: u32,
    /// Samples before a decision; at least 32. They take eight bytes each while they are collected.
    pub samples: usize,
    /// The hot keys have shifted when the hit ratio is below this share of the expected one, from 0 (never)
    /// to 1.
    pub shift: f64,
    /// The load is uniform unless the hottest keys are written so many times as often as the coldest sampled
    /// ones.
    pub uniform: f64,
    /// Standard deviations by which their counts must differ, or it is chance. With four, chance deceives one
    /// decision in 30,000, and a key that occurs less than 17 times in half of the samples is never hot.
    pub certain: f64,
}

impl Default for HotSetSettings {
    /// 128 K keys and a factor of 3 as in the paper (sections 3.4 and 4.1), which leaves the others open.
    fn default() -> HotSetSettings {
        const KEYS: usize = 128 << 10;
        HotSetSettings { keys: KEYS, interval: 4, samples: 4 * KEYS, shift: 0.5, uniform: 3.0, certain: 4.0 }
    }
}

impl HotSetSettings {
    /// These settings with every value in its range.
    pub(super) fn in_range(self) -> HotSetSettings {
        HotSetSettings {
            keys: self.keys.max(1),
            interval: self.interval.clamp(1, 1 << 16),
            samples: self.samples.clamp(32, 1 << 28),
            ..self
        }
    }

    /// Writes in which enough keys for a decision are sampled.
    pub(super) fn round(&self) -> u64 {
        self.samples as u64 * u64::from(self.interval)
    }

    /// Hashes in a sampler's ring, an even number.
    pub(super) fn ring(&self) -> usize {
        (self.samples / 16).min(RING_MAX) & !1
    }

    /// Lookups between the reports of a sampler.
    pub(super) fn window(&self) -> u32 {
        (self.round() / 64).clamp(1, WINDOW_MAX) as u32
    }

    /// Lookups over which a hit ratio is taken.
    pub(super) fn judged(&self) -> u64 {
        (self.round() / 8).max(1)
    }
}
