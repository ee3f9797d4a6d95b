//! [`Draw`]: calls drawn from a seed.

use super::call::{Act, Call, Life, Look, Reply, Span, Write};
use super::codec::{Key, Value};
use quipu::designs::Capabilities;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::ops::Bound;

/// The extent of the calls of one owner.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Only calls that such a design offers; `None` for all.
    pub can: Option<Capabilities>,
    /// Keys.
    pub keys: Key,
    /// Tables, of which the last is the owner's own.
    pub tables: usize,
    /// The longest life of a value that expires, in milliseconds; 0 for none.
    pub lives: u64,
    /// One of so many values is large, or may not be written at all.
    pub odd_values: u32,
    /// Whether nobody else has keys, so that a call may change all there are.
    pub is_alone: bool,
    /// Of a hundred writes of one key, so many delete.
    pub deletes: u32,
    /// One of so many calls compacts; 0 for none.
    pub compacts: u32,
    /// Of a hundred calls, so many look through guards, beside those that do in any case.
    pub looks: u32,
}

/// See the module's documentation.
pub struct Draw {
    scope: Scope,
    random: SmallRng,
    next: Value,
}

impl Draw {
    /// The calls of a seed.
    pub fn new(scope: Scope, seed: u64) -> Draw {
        Draw { scope, random: SmallRng::seed_from_u64(seed), next: 0 }
    }

    /// Another seed's calls; values remain distinct.
    pub fn reseed(&mut self, seed: u64) {
        self.random = SmallRng::seed_from_u64(seed);
    }

    /// The next call, and the table that it is on.
    pub fn call(&mut self) -> (usize, Call) {
        loop {
            let table = self.table();
            let call = self.any();
            if self.scope.can.as_ref().is_none_or(|can| call.is_offered(can)) {
                return (table, call);
            }
        }
    }

    fn table(&mut self) -> usize {
        self.random.random_range(0..self.scope.tables)
    }

    fn key(&mut self) -> Key {
        self.random.random_range(0..self.scope.keys)
    }

    /// Most have ordinary sizes: full-sized ones would only fill the pool.
    fn value(&mut self) -> Value {
        self.next += 1;
        let class = match self.scope.odd_values {
            0 => 1 + self.next % 26,
            odd if self.random.random_ratio(1, odd) => self.next % 32,
            _ => self.next % 27,
        };
        self.next * 32 + class
    }

    fn life(&mut self) -> Life {
        match self.scope.lives {
            0 => Life::Ever,
            lives => match self.random.random_range(0..12) {
                0 => Life::Past,
                1 => Life::For(self.random.random_range(1..=lives)),
                _ => Life::Ever,
            },
        }
    }

    fn new_value(&mut self) -> Option<Value> {
        self.random.random_ratio(2, 3).then(|| self.value())
    }

    fn span(&mut self) -> Span {
        let (from, to) = (self.key(), self.key());
        let mut bound = |key| match self.random.random_range(0..if self.scope.is_alone { 6 } else { 4 }) {
            0 => Bound::Excluded(key),
            5 => Bound::Unbounded,
            _ => Bound::Included(key),
        };
        Span { from: bound(from), to: bound(to) }
    }

    fn look(&mut self) -> Look {
        let pattern = match self.random.random_range(0..3) {
            0 => 0,
            1 => u64::MAX,
            _ => self.random.random(),
        };
        match self.random.random_range(0..12) {
            0..4 => Look::Key(self.key()),
            4..7 => {
                let most =
                    if self.random.random_ratio(1, 3) { self.random.random_range(0..20) } else { usize::MAX };
                Look::Range(self.span(), most, pattern)
            }
            7 => Look::Prefix(self.key(), self.random.random_range(1..4), pattern),
            8 => Look::End(self.random.random_ratio(1, 2)),
            // All keys of everybody, in order.
            9 | 10 => Look::Range(Span { from: Bound::Unbounded, to: Bound::Unbounded }, usize::MAX, pattern),
            _ => Look::All(pattern),
        }
    }

    /// A call on one key.
    fn act(&mut self) -> Act {
        let (deletes, right) = (self.scope.deletes, self.random.random_ratio(3, 4));
        if self.random.random_range(0..100) < deletes {
            return if right { Act::Delete } else { Act::Remove };
        }
        match self.random.random_range(0..20) {
            0..8 => Act::Put(self.value(), self.life()),
            8 => Act::Remove,
            9..12 => Act::Update(self.new_value()),
            12..15 => Act::UpdateWith(match self.random.random_range(0..4) {
                0 => Reply::Keep,
                1 => Reply::Delete,
                _ => Reply::Put(self.value(), self.life()),
            }),
            15 | 16 => Act::PutIfAbsent(self.value()),
            17 => Act::Swap(right, self.new_value()),
            18 => Act::PutIfVersion(right, self.value()),
            _ => Act::Change(self.random.random()),
        }
    }

    fn any(&mut self) -> Call {
        if self.scope.compacts > 0 && self.random.random_ratio(1, self.scope.compacts) {
            return Call::Compact;
        }
        if self.random.random_range(0..100) < self.scope.looks {
            return match self.random.random_range(0..4) {
                0 => Call::LookBack(self.random.random_range(0..6), self.look()),
                _ => Call::Look(self.look()),
            };
        }
        match self.random.random_range(0..200) {
            0..96 => Call::One(self.key(), self.act()),
            96..124 => Call::One(self.key(), Act::Get),
            124..132 => {
                let keys = self.random.random_range(0..70);
                Call::GetMany((0..keys).map(|_| self.key()).collect())
            }
            132..140 => {
                let pairs = self.random.random_range(0..40);
                Call::PutMany((0..pairs).map(|_| (self.key(), self.value())).collect())
            }
            140..156 => {
                let entries = self.random.random_range(0..16);
                let mut entry = || match self.random.random_ratio(1, 3) {
                    true => (self.table(), self.key(), Write::Delete),
                    false => (self.table(), self.key(), Write::Put(self.value(), self.life())),
                };
                Call::Batch((0..entries).map(|_| entry()).collect())
            }
            156..163 => Call::DeleteRange(self.span()),
            163 => Call::DeletePrefix(self.key(), self.random.random_range(1..4)),
            164..176 => Call::Look(self.look()),
            176..181 => Call::Snapshot,
            181..194 => Call::LookBack(self.random.random_range(0..6), self.look()),
            194..197 => Call::Forget(self.random.random_range(0..6)),
            197 => Call::Turn,
            _ => Call::Look(Look::Key(self.key())),
        }
    }
}
