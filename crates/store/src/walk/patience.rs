//! [`Patience`]: how long a writer that finds no room waits for others. Readers keep free zones from reuse.
//! Other writers hold segments for a moment that could be cleaned, or take the room that was made.

use quipu_medium::{MediumKind, Region};
use quipu_parts::sync::Waiter;

/// Turns that a wait has at least, whatever the clock says: on a busy machine the time may pass before the
/// others have run. A turn may take some milliseconds then, so there are few.
const LEAST_TURNS: u32 = 256;

/// The turns of a wait of ten seconds where the clock stands still, as a simulated one does. A shorter wait
/// has fewer. Several tasks may wait for what one of them holds, and a simulated run ends if none gets on for
/// long.
const SIMULATED_TURNS: u64 = 4096;
const SIMULATED_LIMIT: u64 = 10_000;

/// Bounds of a rest behind the least turns, in microseconds, and its share of the wait so far, as a divisor:
/// a look for room may take long in a large pool.
const SHORTEST_REST: u64 = 200;
const LONGEST_REST: u64 = 10_000;
const RESTS: u64 = 64;

/// Waiting that ends. It begins with the first turn: the time that work takes before is no waiting.
pub(crate) struct Patience<'s> {
    region: &'s Region,
    /// Milliseconds.
    limit: u64,
    began: Option<u64>,
    turns: u32,
    waiter: Waiter,
}

impl Patience<'_> {
    /// Waiting for so many milliseconds.
    pub(crate) fn new(region: &Region, limit: u64) -> Patience<'_> {
        Patience { region, limit, began: None, turns: 0, waiter: Waiter::default() }
    }

    /// Begins anew, since there was work to do, or another thread gets on with the only work that there is.
    /// Such work ends by itself: a search cleans nothing that was written since it began.
    pub(crate) fn renew(&mut self) {
        *self = Patience::new(self.region, self.limit);
    }

    /// Milliseconds that it has lasted.
    pub(crate) fn waited(&self) -> u64 {
        self.began.map_or(0, |began| self.region.ticks().saturating_sub(began))
    }

    /// Whether it has had the least turns.
    pub(crate) fn is_long(&self) -> bool {
        self.turns >= LEAST_TURNS
    }

    /// Whether it has lasted for its time.
    pub(crate) fn is_over(&self) -> bool {
        match self.region.kind() {
            MediumKind::Sim => self.turns > self.simulated_turns(),
            _ => self.is_long() && self.waited() >= self.limit,
        }
    }

    /// The turns of a wait where the clock stands still.
    fn simulated_turns(&self) -> u32 {
        let share = self.limit.min(SIMULATED_LIMIT) * SIMULATED_TURNS / SIMULATED_LIMIT;
        LEAST_TURNS.max(share as u32)
    }

    /// Waits a turn; `false` if there is none left.
    pub(crate) fn lasts(&mut self) -> bool {
        self.turns = self.turns.saturating_add(1);
        let is_short = self.turns <= LEAST_TURNS;
        let lasts = match self.region.kind() {
            MediumKind::Sim => self.turns <= self.simulated_turns(),
            _ => {
                let now = self.region.ticks();
                let passed = now.checked_sub(*self.began.get_or_insert(now));
                is_short || passed.is_some_and(|passed| passed < self.limit)
            }
        };
        if lasts && (is_short || self.region.kind() == MediumKind::Sim) {
            self.waiter.wait();
        } else if lasts {
            self.region.pause((self.waited() * 1000 / RESTS).clamp(SHORTEST_REST, LONGEST_REST));
        }
        lasts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_medium::Pages;

    /// On a busy machine a turn is long, and thousands of them are seconds.
    #[test]
    fn when_the_time_has_passed_few_turns_are_left() {
        let region = Region::dram(4096, Pages::Ordinary).expect("memory");
        let mut patience = Patience::new(&region, 100);
        patience.began = Some(region.ticks() - 100);
        let turns = std::iter::repeat_with(|| patience.lasts()).take_while(|lasts| *lasts).count();
        assert_eq!(turns, LEAST_TURNS as usize);
    }
}
