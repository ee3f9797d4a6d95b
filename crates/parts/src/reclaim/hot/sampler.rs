//! A client's side: asking, counting, and sampling keys.
//!
//! A write pays for a question, an addition and a countdown. The work at the end of the countdown, to sample
//! a key or to report, is out of line. Without sampling, that is every few thousand writes.

use super::reports::Round;
use super::set::HotSet;
use crate::epoch::Participant;

/// Asks a [`HotSet`] on behalf of one client, always the same one. Never waits, and allocates nothing after
/// its creation.
pub struct Sampler {
    left: u32,
    hits: u32,
    /// Lookups from the last turn to the next.
    stride: u32,
    /// Lookups from the last report to the last turn.
    lookups: u32,
    round: Round,
    /// The state from which strides are derived.
    state: u64,
    noted: usize,
    ring: Box<[u64]>,
}

impl Sampler {
    /// A sampler for a client of this set.
    pub fn new(set: &HotSet) -> Sampler {
        Sampler {
            left: 1,
            hits: 0,
            stride: 1,
            lookups: 0,
            round: set.reports().round(),
            state: 0,
            noted: 0,
            ring: vec![0; set.settings().ring()].into(),
        }
    }

    /// Whether the key with this hash, which will be written next, is hot. The participant must be of the
    /// set's collector.
    #[inline]
    pub fn is_hot(&mut self, set: &HotSet, participant: &Participant, hash: u64) -> bool {
        let hot = set.is_hot(participant, hash);
        self.hits += u32::from(hot);
        self.left -= 1;
        if self.left == 0 {
            self.turn(set, hash);
        }
        hot
    }

    /// Samples the key, reports, or both, and sets the next countdown.
    #[cold]
    #[inline(never)]
    fn turn(&mut self, set: &HotSet, hash: u64) {
        self.lookups += self.stride;
        if self.round.samples() {
            self.ring[self.noted] = hash;
            self.noted += 1;
            if self.noted == self.ring.len() {
                // Whether these were taken or not, the next keys overwrite them.
                self.noted = 0;
                set.reports().hand_over(self.round, &self.ring, set.settings());
            }
        }
        let window = set.settings().window();
        if self.lookups >= window {
            self.report(set);
        }
        self.stride =
            if self.round.samples() { self.next_stride(hash, set.settings().interval) } else { window };
        self.left = self.stride;
    }

    fn report(&mut self, set: &HotSet) {
        let round = set.reports().round();
        if round == self.round {
            set.reports().count(self.lookups, self.hits);
        } else {
            // These counts and samples may be about another set.
            self.round = round;
            self.noted = 0;
        }
        self.lookups = 0;
        self.hits = 0;
    }

    /// A number from 1 to twice the interval less one, on average the interval. It must not follow any rhythm
    /// of the load, or the same keys would be sampled again and again. So it is a congruential generator that
    /// the sampled keys disturb.
    fn next_stride(&mut self, hash: u64, interval: u32) -> u32 {
        self.state =
            (self.state ^ hash).wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        let most = 2 * u64::from(interval) - 1;
        (((self.state >> 32) * most) >> 32) as u32 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epoch::Collector;
    use crate::reclaim::hot::HotSetSettings;

    #[test]
    fn what_was_counted_and_noted_in_another_round_is_forgotten() {
        let set = HotSet::new(HotSetSettings { interval: 1, samples: 1024, ..Default::default() });
        let participant = Collector::new().register();
        let (mut sampler, window) = (Sampler::new(&set), set.settings().window());
        let mut ask = |times| (0..times).for_each(|_| _ = sampler.is_hot(&set, &participant, 1));
        ask(window + window / 2);
        assert_eq!(set.reports().totals().lookups, u64::from(window));
        set.reports().begin_counting();
        // The window ends, and another one.
        ask(window / 2);
        assert_eq!(set.reports().totals().lookups, u64::from(window));
        ask(window);
        assert_eq!(set.reports().totals().lookups, u64::from(2 * window));
        set.reports().begin_sampling(set.settings());
        ask(window);
        assert_eq!(set.reports().totals().lookups, u64::from(2 * window));
        assert_eq!(sampler.noted, 0);
    }

    #[test]
    fn strides_have_the_interval_as_their_mean_and_no_rhythm() {
        let set = HotSet::new(HotSetSettings::default());
        let mut sampler = Sampler::new(&set);
        for interval in [1u32, 2, 4, 100] {
            // A load of 64 keys in turn: the keys noted must not repeat with it.
            let mut at = 0u64;
            let mut noted = [0u32; 64];
            for _ in 0..64_000 {
                let hash = (at % 64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                let stride = sampler.next_stride(hash, interval);
                assert!((1..2 * interval).contains(&stride));
                at += u64::from(stride);
                noted[(at % 64) as usize] += 1;
            }
            let mean = at as f64 / 64_000.0;
            assert!((mean - f64::from(interval)).abs() < 0.01 * f64::from(interval), "{mean}");
            assert!(noted.iter().all(|count| (800..1200).contains(count)), "{interval}: {noted:?}");
        }
    }
}
