//! Reports of clients to the thread that tends the hot set: counts, and sampled keys. Clients never wait for
//! it.
//!
//! Nothing here orders anything else: a client that sees a new round a little late, or before the new set,
//! miscounts one window.

use super::settings::HotSetSettings;
use crate::sync::SpinLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// A stretch of time with one set and either sampling or not. Counts and keys of one round say nothing about
/// another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Round(u64);

impl Round {
    /// Whether keys are sampled. Of two successive rounds, the one that samples has the odd number.
    #[inline]
    pub(super) fn samples(self) -> bool {
        self.0 & 1 != 0
    }

    fn next(self, samples: bool) -> Round {
        let next = Round(self.0 + 1);
        if next.samples() == samples { next } else { Round(self.0 + 2) }
    }
}

/// Two halves of the same load: every ring that is handed over goes to both.
pub(super) type Halves = [Vec<u64>; 2];

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) lookups: u64,
    pub(super) hits: u64,
}

#[derive(Default)]
pub(super) struct Reports {
    round: AtomicU64,
    lookups: AtomicU64,
    hits: AtomicU64,
    /// Keys sampled in this round, with capacity reserved at its beginning; empty in a round that does not
    /// sample.
    noted: SpinLock<Halves>,
}

/// Whether there are enough keys.
fn is_full(noted: &Halves, wanted: usize) -> bool {
    noted.iter().all(|half| half.len() == wanted)
}

impl Reports {
    /// The round that clients should be in.
    pub(super) fn round(&self) -> Round {
        Round(self.round.load(Ordering::Relaxed))
    }

    pub(super) fn totals(&self) -> Totals {
        Totals { lookups: self.lookups.load(Ordering::Relaxed), hits: self.hits.load(Ordering::Relaxed) }
    }

    pub(super) fn count(&self, lookups: u32, hits: u32) {
        self.lookups.fetch_add(lookups.into(), Ordering::Relaxed);
        self.hits.fetch_add(hits.into(), Ordering::Relaxed);
    }

    /// Takes the keys that a client sampled in `round`, unless another client is here, the round is over, or
    /// there are enough. The client that brings the last ones ends the round. Does not allocate.
    pub(super) fn hand_over(&self, round: Round, ring: &[u64], settings: &HotSetSettings) {
        let Some(mut noted) = self.noted.try_lock() else { return };
        if self.round() != round {
            return;
        }
        let wanted = settings.samples / 2;
        let (first, second) = ring.split_at(ring.len() / 2);
        for (half, keys) in noted.iter_mut().zip([first, second]) {
            half.extend_from_slice(&keys[..keys.len().min(wanted - half.len())]);
        }
        if is_full(&noted, wanted) {
            self.round.store(round.next(false).0, Ordering::Relaxed);
        }
    }

    pub(super) fn begin_sampling(&self, settings: &HotSetSettings) {
        let room = || Vec::with_capacity(settings.samples / 2);
        self.begin(true, [room(), room()]);
    }

    pub(super) fn begin_counting(&self) {
        self.begin(false, Halves::default());
    }

    fn begin(&self, samples: bool, room: Halves) {
        let mut noted = self.noted.lock();
        *noted = room;
        self.round.store(self.round().next(samples).0, Ordering::Relaxed);
    }

    /// Removes and returns the keys, if there are enough.
    pub(super) fn take(&self, settings: &HotSetSettings) -> Option<Halves> {
        let mut noted = self.noted.lock();
        is_full(&noted, settings.samples / 2).then(|| std::mem::take(&mut *noted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> HotSetSettings {
        HotSetSettings { samples: 32, ..Default::default() }
    }

    #[test]
    fn keys_are_taken_until_there_are_enough_and_not_from_another_round() {
        let (reports, settings) = (Reports::default(), settings());
        let before = reports.round();
        assert!(!before.samples());
        reports.begin_sampling(&settings);
        let round = reports.round();
        assert!(round.samples());
        reports.hand_over(before, &[9; 10], &settings);
        for i in 0..4 {
            assert!(reports.take(&settings).is_none());
            reports.hand_over(round, &[[i; 5], [100 + i; 5]].concat(), &settings);
        }
        assert!(!reports.round().samples(), "who brought the last one ended the round");
        reports.hand_over(round, &[9; 10], &settings);
        let [first, second] = reports.take(&settings).expect("there are enough");
        assert_eq!(first, [[0; 5], [1; 5], [2; 5]].concat().into_iter().chain([3]).collect::<Vec<_>>());
        assert_eq!(second, first.iter().map(|key| key + 100).collect::<Vec<_>>());
        assert!(reports.take(&settings).is_none());
    }

    #[test]
    fn nobody_waits_and_nothing_grows() {
        let (reports, settings) = (Reports::default(), settings());
        reports.begin_sampling(&settings);
        let places = reports.noted.lock().each_ref().map(|half| half.as_ptr());
        {
            let held = reports.noted.lock();
            reports.hand_over(reports.round(), &[1; 10], &settings);
            assert!(held[0].is_empty());
        }
        for _ in 0..100 {
            reports.hand_over(reports.round(), &[1; 10], &settings);
        }
        assert_eq!(reports.noted.lock().each_ref().map(|half| half.as_ptr()), places);
    }

    #[test]
    fn every_round_is_another() {
        let mut round = Round(0);
        for samples in [true, true, false, false, true, false] {
            let next = round.next(samples);
            assert!(next.0 > round.0 && next.samples() == samples);
            round = next;
        }
    }
}
