//! The hot set of a store: the current set, the reports of clients, and the decisions that follow from them.

use super::choose::{Choice, choose};
use super::keys::KeySet;
use super::reports::{Halves, Reports, Totals};
use super::settings::HotSetSettings;
use crate::epoch::Current;
use crate::epoch::Participant;
use crate::sync::SpinLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The longest rest, in rounds of sampling. It bounds how late a load that is no longer uniform is noticed.
const REST_MAX: u64 = 16;

/// Counts of a hot set's work so far, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HotSetStats {
    /// Keys that are hot now.
    pub keys: u64,
    /// Questions that clients reported; a few thousand of each client may be missing.
    pub lookups: u64,
    /// Of these, how many found the key hot.
    pub hits: u64,
    /// Whether keys are being noted.
    pub sampling: bool,
    /// Sets that were chosen.
    pub rebuilds: u64,
    /// Decisions that nothing is hot, since the load was uniform.
    pub clears: u64,
}

/// The event for which the set waits.
enum Phase {
    /// Samples.
    Sampling,
    /// A hit ratio below the expected one, counted from these totals on.
    Watching { promised: f64, since: Totals },
    /// So many lookups in all.
    Resting { until: u64 },
}

struct Plan {
    phase: Phase,
    /// Rounds to rest for if the load is uniform.
    rest: u64,
}

/// Tells the hot keys of a store from the others; see the [room](super).
///
/// All guards and participants must be of one [`Collector`](crate::epoch::Collector).
///
/// ```
/// use quipu_parts::epoch::Collector;
/// use quipu_parts::reclaim::hot::{HotSet, HotSetSettings, Sampler};
/// let (collector, set) = (Collector::new(), HotSet::new(HotSetSettings::default()));
/// let participant = collector.register();
/// let mut sampler = Sampler::new(&set);
/// // Before a write:
/// let hot = sampler.is_hot(&set, &participant, 0x0123_4567_89AB_CDEF);
/// assert!(!hot, "nothing is hot at first");
/// // In the background, now and then:
/// set.tend(&participant);
/// ```
pub struct HotSet {
    current: Current<KeySet>,
    settings: HotSetSettings,
    reports: Reports,
    plan: SpinLock<Plan>,
    keys: AtomicU64,
    rebuilds: AtomicU64,
    clears: AtomicU64,
}

impl HotSet {
    /// A store's hot set: nothing is hot yet, and clients note keys.
    pub fn new(settings: HotSetSettings) -> HotSet {
        let settings = settings.in_range();
        let reports = Reports::default();
        reports.begin_sampling(&settings);
        HotSet {
            current: Current::default(),
            settings,
            reports,
            plan: SpinLock::new(Plan { phase: Phase::Sampling, rest: 1 }),
            keys: AtomicU64::new(0),
            rebuilds: AtomicU64::new(0),
            clears: AtomicU64::new(0),
        }
    }

    /// Whether the key with this hash is hot, for a caller that is no client: nothing is counted. While
    /// nothing is hot, the caller is not pinned for it, since the processor would then wait for the caller's
    /// stores.
    #[inline]
    pub fn is_hot(&self, participant: &Participant, hash: u64) -> bool {
        let contains = |set: &KeySet| set.contains(hash);
        !self.current.is_empty() && self.current.get(&participant.pin()).is_some_and(contains)
    }

    /// Does the work that is due, on a background thread that calls it now and then. Mostly nothing is due,
    /// and this is a few loads; a decision sorts the samples. Does nothing if another thread is here. The
    /// participant should not be pinned, since a decision would then hold back all reclamation.
    pub fn tend(&self, participant: &Participant) {
        let Some(mut plan) = self.plan.try_lock() else { return };
        let totals = self.reports.totals();
        match plan.phase {
            Phase::Sampling => {
                if let Some(halves) = self.reports.take(&self.settings) {
                    self.decide(&mut plan, participant, halves);
                }
            }
            Phase::Watching { promised, since } => {
                let lookups = totals.lookups - since.lookups;
                if lookups >= self.settings.judged() {
                    let ratio = (totals.hits - since.hits) as f64 / lookups as f64;
                    if ratio < self.settings.shift * promised {
                        self.sample(&mut plan);
                    } else {
                        plan.phase = Phase::Watching { promised, since: totals };
                    }
                }
            }
            Phase::Resting { until } => {
                if totals.lookups >= until {
                    self.sample(&mut plan);
                }
            }
        }
    }

    fn sample(&self, plan: &mut Plan) {
        self.reports.begin_sampling(&self.settings);
        plan.phase = Phase::Sampling;
    }

    fn decide(&self, plan: &mut Plan, participant: &Participant, halves: Halves) {
        let choice = choose(halves, &self.settings);
        let set = choice.as_ref().map(|choice| KeySet::new(&choice.hashes));
        self.keys.store(set.as_ref().map_or(0, KeySet::keys) as u64, Ordering::Relaxed);
        self.current.replace(&participant.pin(), set);
        self.reports.begin_counting();
        let totals = self.reports.totals();
        match choice {
            Some(Choice { promised, .. }) => {
                self.rebuilds.fetch_add(1, Ordering::Relaxed);
                *plan = Plan { phase: Phase::Watching { promised, since: totals }, rest: 1 };
            }
            None => {
                self.clears.fetch_add(1, Ordering::Relaxed);
                let until = totals.lookups + plan.rest * self.settings.round();
                *plan = Plan { phase: Phase::Resting { until }, rest: (2 * plan.rest).min(REST_MAX) };
            }
        }
    }

    /// Counts of its work so far.
    pub fn stats(&self) -> HotSetStats {
        let Totals { lookups, hits } = self.reports.totals();
        HotSetStats {
            keys: self.keys.load(Ordering::Relaxed),
            lookups,
            hits,
            sampling: self.reports.round().samples(),
            rebuilds: self.rebuilds.load(Ordering::Relaxed),
            clears: self.clears.load(Ordering::Relaxed),
        }
    }

    pub(super) fn reports(&self) -> &Reports {
        &self.reports
    }

    pub(super) fn settings(&self) -> &HotSetSettings {
        &self.settings
    }
}
