//! The hot keys of a store (PACMAN section 3.4).

use crate::options::Testing;
use quipu_parts::epoch::Participant;
use quipu_parts::reclaim::hot::{HotSet, HotSetSettings};
use quipu_parts::sync::SpinLock;

/// So few samples that short runs find hot keys, and the least certainty that a key is hot.
const TINY: HotSetSettings =
    HotSetSettings { keys: 8, interval: 1, samples: 32, shift: 0.5, uniform: 1.5, certain: 1.0 };

/// The hot set of a store.
pub(crate) struct Hot {
    set: HotSet,
    /// To tend the set with.
    participant: SpinLock<Participant>,
}

impl Hot {
    pub(crate) fn new(settings: HotSetSettings, participant: Participant) -> Hot {
        Hot { set: HotSet::new(settings), participant: SpinLock::new(participant) }
    }

    /// Does what is due for the set: most of the time nothing.
    pub(crate) fn tend(&self) {
        if let Some(participant) = self.participant.try_lock() {
            self.set.tend(&participant);
        }
    }

    /// Which keys are hot.
    #[inline]
    pub(crate) fn set(&self) -> &HotSet {
        &self.set
    }

    /// How keys are chosen; in short runs after few samples, so that some come to be hot.
    pub(crate) fn settings(testing: &Testing) -> HotSetSettings {
        let usual = if testing.tiny_index { TINY } else { HotSetSettings::default() };
        testing.hot_set.unwrap_or(usual)
    }
}
