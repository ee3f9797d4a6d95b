//! [`Patience`]: how long a writer that finds no room waits for others: readers that keep what is free from reuse, and writers that
//! have for a moment what could be cleaned, or take what was.

use quipu_medium::{MediumKind, Region};
use quipu_parts::sync::Waiter;

/// What is waited for others at least before the pool is taken for full, in turns and in milliseconds: one that is in no
/// hurry may not be running while others are. A simulated clock stands still.
const PATIENCE_TURNS: u32 = 4096;
const PATIENCE_MILLISECONDS: u64 = 100;

/// Waiting that ends.
pub(crate) struct Patience<'s> {
    region: &'s Region,
    began: u64,
    turns: u32,
    waiter: Waiter,
}

impl Patience<'_> {
    pub(crate) fn new(region: &Region) -> Patience<'_> {
        Patience { region, began: region.now(), turns: 0, waiter: Waiter::default() }
    }

    /// Waits a turn; `false` if there is none left.
    pub(crate) fn lasts(&mut self) -> bool {
        self.turns += 1;
        let has_time = || {
            let passed = self.region.now().checked_sub(self.began);
            self.region.kind() != MediumKind::Sim
                && passed.is_some_and(|passed| passed < PATIENCE_MILLISECONDS)
        };
        let lasts = self.turns <= PATIENCE_TURNS || has_time();
        if lasts {
            self.waiter.wait();
        }
        lasts
    }
}
