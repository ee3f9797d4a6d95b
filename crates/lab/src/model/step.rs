//! Steps of a model run, and drawing them from a seed.

use crate::calls::{Call, Draw, Scope};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// Clients that are open at once, each with its own snapshots.
pub(super) const HANDS: usize = 3;
/// Keys of a run: few, so that calls meet.
pub(super) const KEYS: u32 = 40;
/// Tables of a run, where the design has tables.
pub(super) const TABLES: usize = 3;

/// A call, or the end of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A call by a client, on a table.
    Call(usize, usize, Call),
    /// A client ends, and another takes its place.
    Renew(usize),
    /// Some milliseconds pass.
    Tick(u64),
    /// The store is closed and opened.
    Close,
    /// The store is dropped and opened.
    Drop,
    /// `check`.
    Check,
}

/// The steps of a seed, over so many tables.
pub fn generate(seed: u64, steps: usize, tables: usize) -> Vec<Step> {
    let mut random = SmallRng::seed_from_u64(seed);
    // Half of the runs use a few keys only: they rewrite, delete and reinsert.
    let keys = if random.random_ratio(1, 2) { 6 } else { KEYS };
    let scope = Scope {
        can: None,
        keys,
        tables,
        lives: 3,
        odd_values: 20,
        is_alone: true,
        deletes: 20,
        compacts: 100,
        looks: 0,
    };
    let mut draw = Draw::new(scope, random.random());
    (0..steps)
        .map(|_| {
            let client = random.random_range(0..HANDS);
            match random.random_range(0..100) {
                0..3 => Step::Renew(client),
                3..5 => Step::Close,
                5..7 => Step::Drop,
                7..9 => Step::Check,
                9 => Step::Tick(random.random_range(1..3)),
                _ => {
                    let (table, call) = draw.call();
                    Step::Call(client, table, call)
                }
            }
        })
        .collect()
}
