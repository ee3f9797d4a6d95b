//! The calls of a writer, drawn from the seed alone.
//!
//! Writer and parent draw the same calls, so the parent knows which call was in flight: the one behind the
//! last that was acknowledged. That is why no call here depends on what an earlier one returned.

use crate::linear::{Action, Value};
use crate::workload::mix;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// Keys that writers use.
pub(super) const KEYS: u64 = 300;

/// Keys that half of the calls go to, so that threads meet and keys change often.
const HOT: u64 = 6;

/// More threads than this would share values.
pub(super) const MOST_THREADS: usize = 15;

/// The calls of one thread of one round, without end.
pub(super) struct Plan {
    random: SmallRng,
    next_value: Value,
}

impl Plan {
    pub fn new(seed: u64, round: u64, thread: u64) -> Plan {
        let random = SmallRng::seed_from_u64(mix(mix(seed) ^ mix(round << 8 | thread)));
        // A value says which call of which thread of which round wrote it.
        Plan { random, next_value: (round + 1) << 36 | thread << 32 }
    }
}

impl Iterator for Plan {
    type Item = (u64, Action);

    fn next(&mut self) -> Option<(u64, Action)> {
        let random = &mut self.random;
        let keys = if random.random_ratio(1, 2) { HOT } else { KEYS };
        let key = random.random_range(0..keys);
        self.next_value += 1;
        let value = self.next_value;
        let action = match random.random_range(0..20) {
            0..9 => Action::Put(value),
            9..12 => Action::Remove,
            12..13 => Action::Delete,
            13..17 => Action::Update(random.random_ratio(5, 6).then_some(value)),
            17..18 => Action::PutIfAbsent(value),
            _ => Action::Get,
        };
        Some((key, action))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_calls_write_the_same_value() {
        let mut values = std::collections::BTreeSet::new();
        for (round, thread) in (0..5).flat_map(|round| (0..3).map(move |thread| (round, thread))) {
            let written = Plan::new(1, round, thread).take(1000).filter_map(|(_, action)| action.written());
            for value in written {
                assert!(values.insert(value), "value {value}");
            }
        }
        assert!(values.len() > 5000);
    }
}
