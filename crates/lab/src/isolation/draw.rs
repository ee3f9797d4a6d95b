//! [`Shape`] and [`Plan`]: the store of a history, and what its tasks do, drawn from a seed.
//!
//! Each history leans to some kinds of steps: a mixture of everything would seldom have much of the two or
//! three kinds that a fault needs. Keys are few, so that transactions meet.

use super::config::MERGING;
use super::history::{Key, Level};
use quipu::internals::Merging;
use quipu_bench::workload::mix;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

/// Tasks with transactions.
pub(super) const TASKS: usize = 3;

/// Keys of a table that there may be, the used ones and others.
pub(super) const STRIDE: Key = 16;

/// The weights that a kind of steps may have in a history.
const WEIGHTS: [u32; 6] = [0, 0, 1, 2, 4, 8];

/// A range of neighbouring keys of a table, both ends included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys {
    pub first: Key,
    pub last: Key,
}

/// A step of a transaction.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Get(Key),
    GetForUpdate(Key),
    Put(Key),
    /// A get and a put.
    Change(Key),
    Delete(Key),
    /// Up to so many keys from the front, and then so many from the back.
    Scan(Keys, usize, usize),
    Savepoint,
    /// To the last savepoint but so many, if there is one.
    RollBackTo(usize),
}

/// A transaction.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub steps: Vec<Step>,
    pub commits: bool,
}

/// A single call of the voice beside the transactions.
#[derive(Clone, Debug)]
pub(super) enum Call {
    Get(Key),
    Put(Key),
    Delete(Key),
    DeleteRange(Keys),
    /// Values, or deletions.
    Batch(Vec<(Key, bool)>),
    Update(Key),
    /// A put of a long value to a key of this table that nobody reads.
    Fill(usize),
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub seed: u64,
    pub level: Level,
    pub merging: Merging,
    pub has_levels: bool,
    pub tables: usize,
    /// Keys of each table that are used.
    pub keys: Key,
    pub dump_at: u32,
    pub stripes: Option<usize>,
    /// Compactions beside the transactions.
    pub compactions: usize,
    pub is_reopened: bool,
    /// The transactions of each task.
    pub plans: Vec<Vec<Plan>>,
    /// The single calls.
    pub calls: Vec<Call>,
}

impl Shape {
    /// That of a seed.
    pub fn of(seed: u64, level: Level, merging: Option<Merging>) -> Shape {
        let mut random = SmallRng::seed_from_u64(mix(seed ^ mix(level as u64)));
        let merging = merging.unwrap_or(MERGING[seed as usize % MERGING.len()].1);
        let mut shape = Shape {
            seed,
            level,
            merging,
            has_levels: random.random_ratio(1, 2) || merging != Merging::Direct,
            tables: random.random_range(1..=3),
            keys: random.random_range(2..=4),
            dump_at: random.random_range(1..=8),
            stripes: [None, Some(1), Some(4)].choose(&mut random).copied().flatten(),
            compactions: random.random_range(0..6),
            is_reopened: random.random_ratio(1, 4),
            plans: Vec::new(),
            calls: Vec::new(),
        };
        let mut weights = [0; 8].map(|_| *WEIGHTS.choose(&mut random).expect("there are some"));
        // Without puts and reads there is nothing to see.
        weights[0] += 2;
        weights[2] += 2;
        let longest = random.random_range(3..=9);
        let plan = |random: &mut SmallRng| Plan {
            steps: (0..random.random_range(2..=longest)).map(|_| shape.step(&weights, random)).collect(),
            commits: random.random_ratio(7, 8),
        };
        let each = random.random_range(2..=6);
        let plans = (0..TASKS).map(|_| (0..each).map(|_| plan(&mut random)).collect()).collect();
        let weights = [0; 7].map(|_| *WEIGHTS.choose(&mut random).expect("there are some"));
        let speaks = random.random_ratio(3, 4) && weights.iter().any(|weight| *weight > 0);
        let calls = if speaks { random.random_range(1..=16) } else { 0 };
        let fills = random.random_range(0..=24) * random.random_range(0..=1);
        let mut all: Vec<_> = (0..calls).map(|_| shape.call(&weights, &mut random)).collect();
        for _ in 0..fills {
            let at = random.random_range(0..=all.len());
            all.insert(at, Call::Fill(random.random_range(0..shape.tables)));
        }
        (shape.plans, shape.calls) = (plans, all);
        shape
    }

    /// All keys that are used.
    pub fn all(&self) -> impl Iterator<Item = Key> {
        let keys = self.keys;
        (0..self.tables as Key).flat_map(move |table| (0..keys).map(move |key| table * STRIDE + key))
    }

    fn key(&self, random: &mut SmallRng) -> Key {
        random.random_range(0..self.tables as Key) * STRIDE + random.random_range(0..self.keys)
    }

    fn some(&self, random: &mut SmallRng) -> Keys {
        let table = random.random_range(0..self.tables as Key) * STRIDE;
        let (one, other) = (random.random_range(0..self.keys), random.random_range(0..self.keys));
        Keys { first: table + one.min(other), last: table + one.max(other) }
    }

    fn step(&self, weights: &[u32; 8], random: &mut SmallRng) -> Step {
        match draw(weights, random) {
            0 => Step::Get(self.key(random)),
            1 => Step::GetForUpdate(self.key(random)),
            2 => Step::Put(self.key(random)),
            3 => Step::Change(self.key(random)),
            4 => Step::Delete(self.key(random)),
            5 => match random.random_range(0..4) {
                0 => Step::Scan(self.some(random), random.random_range(1..4), random.random_range(0..3)),
                1 => Step::Scan(self.some(random), 0, random.random_range(1..4)),
                2 => Step::Scan(self.some(random), 0, usize::MAX),
                _ => Step::Scan(self.some(random), usize::MAX, 0),
            },
            6 => Step::Savepoint,
            _ => Step::RollBackTo(random.random_range(0..2)),
        }
    }

    fn call(&self, weights: &[u32; 7], random: &mut SmallRng) -> Call {
        match draw(weights, random) {
            0 => Call::Get(self.key(random)),
            1 => Call::Put(self.key(random)),
            2 => Call::Delete(self.key(random)),
            3 => Call::DeleteRange(self.some(random)),
            4 => {
                let count = random.random_range(1..=4);
                Call::Batch((0..count).map(|_| (self.key(random), random.random_ratio(2, 3))).collect())
            }
            5 => Call::Update(self.key(random)),
            _ => Call::Fill(random.random_range(0..self.tables)),
        }
    }
}

/// The number of a weight, drawn in proportion.
fn draw(weights: &[u32], random: &mut SmallRng) -> usize {
    let mut rest = random.random_range(0..weights.iter().sum());
    weights
        .iter()
        .position(|weight| {
            let is_it = rest < *weight;
            rest = rest.saturating_sub(*weight);
            is_it
        })
        .unwrap_or(0)
}
