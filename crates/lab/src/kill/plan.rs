//! The calls of a writer, drawn from the seed alone.
//!
//! Writer and parent draw the same calls, so the parent knows which call was in flight: the one behind the
//! last that was acknowledged. That is why no call here depends on what an earlier one returned.

use super::transfers;
use crate::action::{Action, Value};
use quipu::{Client, Design, Error, Store};
use quipu_bench::workload::mix;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// Keys that many of the calls go to, so that threads meet and keys change often.
const HOT: u64 = 6;

/// The extent of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    /// Keys that writers use.
    pub keys: u64,
    /// One of so many calls goes to a hot key.
    hot: u32,
    /// Tables that have the keys by turns; the first one is there by itself.
    pub tables: &'static [&'static str],
    /// Bytes of a pool.
    pub size: u64,
    /// Bytes of its zones: so few that they fill up and change hands within a round.
    pub zone: u64,
    /// Whether writers live long enough for dumps and compaction.
    pub is_long: bool,
}

impl Extent {
    /// That for a design: with levels, one that has more data than its pool, and dumps in most rounds.
    pub fn of(design: Design) -> Extent {
        match design.can().levels {
            true => Extent {
                keys: 30_000,
                hot: 8,
                tables: &["default", "second", "third"],
                size: 2 << 20,
                zone: 16 << 10,
                is_long: true,
            },
            false => Extent {
                keys: 300,
                hot: 2,
                tables: &["default"],
                size: 64 << 20,
                zone: 64 << 10,
                is_long: false,
            },
        }
    }

    /// That of transfers in a design.
    pub fn of_transfers(design: Design) -> Extent {
        Extent { keys: transfers::KEYS, ..Extent::of(design) }
    }

    /// The place of a key's table.
    pub fn table_of(&self, key: u64) -> usize {
        (key % self.tables.len() as u64) as usize
    }

    /// The keys of a table.
    pub fn keys_of(&self, table: usize) -> Vec<u64> {
        (0..self.keys).filter(|key| self.table_of(*key) == table).collect()
    }

    /// Clients for the tables of a store.
    pub fn clients(&self, store: &Store) -> Result<Vec<Client>, Error> {
        let (_, further) = self.tables.split_first().expect("each design has one");
        let further = further.iter().map(|name| store.client().on(&store.table(name)?));
        std::iter::once(Ok(store.client())).chain(further).collect()
    }
}

/// More threads than this would share values.
pub(super) const MOST_THREADS: usize = 15;

/// The calls of one thread of one round, without end.
pub(super) struct Plan {
    extent: Extent,
    random: SmallRng,
    next_value: Value,
}

impl Plan {
    pub fn new(extent: Extent, seed: u64, round: u64, thread: u64) -> Plan {
        let random = SmallRng::seed_from_u64(mix(mix(seed) ^ mix(round << 8 | thread)));
        // A value says which call of which thread of which round wrote it.
        Plan { extent, random, next_value: (round + 1) << 36 | thread << 32 }
    }
}

impl Iterator for Plan {
    type Item = (u64, Action);

    fn next(&mut self) -> Option<(u64, Action)> {
        let random = &mut self.random;
        let keys = if random.random_ratio(1, self.extent.hot) { HOT } else { self.extent.keys };
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
        let extent = Extent::of(Design::default());
        let mut values = std::collections::BTreeSet::new();
        for (round, thread) in (0..5).flat_map(|round| (0..3).map(move |thread| (round, thread))) {
            let written =
                Plan::new(extent, 1, round, thread).take(1000).filter_map(|(_, action)| action.written()?);
            for value in written {
                assert!(values.insert(value), "value {value}");
            }
        }
        assert!(values.len() > 5000);
    }
}
