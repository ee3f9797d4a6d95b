//! Which block is reclaimed next.
//!
//! Viper takes the blocks with the most free space, from a share on (section 4.6). Where it is known in DRAM what is dead, that
//! share still says what is worth the trouble, and among those cost and benefit decide, as in the systems that PACMAN is made
//! for (section 2.1): free space over what has to move, times the age, so that blocks of hot records are left to die by
//! themselves.
//!
//! There a block full of tombstones counts as full until no other block holds them back (`dead`), and as empty from then on. If
//! they are many, or nothing else is worth it, the marks of what is dead are cleared in the blocks that hold back the oldest.

use super::chunks::{Block, BlockState};
use super::dead::{Dead, HOLDS_NONE};
use super::heap::SlotHeap;
use super::owner::Place;

/// Blocks that are looked at for each victim that is found by it, and most victims that are found at a time.
const BLOCKS_A_VICTIM: u64 = 64;
const MOST_VICTIMS: u64 = 64;

/// Share of all room for records, as a divisor, that tombstones may take which are held back, before marks are cleared for
/// their sake.
const DEBT_SHARE: u64 = 16;

/// Blocks whose marks are cleared at a time.
const SCRUBBED_TOGETHER: usize = 64;

/// From which numbers on blocks held tombstones back when somebody looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Horizon {
    lowest: u64,
    /// The block that holds from there on.
    block: u64,
    /// The lowest but for that.
    next: u64,
}

impl Default for Horizon {
    fn default() -> Horizon {
        Horizon { lowest: 0, block: u64::MAX, next: 0 }
    }
}

impl Horizon {
    fn of(holds: impl Iterator<Item = (u64, u64)>) -> Horizon {
        let nothing = Horizon { lowest: HOLDS_NONE, block: u64::MAX, next: HOLDS_NONE };
        holds.fold(nothing, |horizon, (block, from)| match horizon {
            Horizon { lowest, .. } if from < lowest => Horizon { lowest: from, block, next: lowest },
            _ => Horizon { next: horizon.next.min(from), ..horizon },
        })
    }

    /// All blocks but this one held back tombstones with this number or a higher one, and no others.
    pub(super) fn without(&self, block: u64) -> u64 {
        if block == self.block { self.next } else { self.lowest }
    }
}

/// Blocks that were worth reclaiming, the best last, and what held tombstones back then. All of them had been written to their
/// end before anybody looked at that, so what each tombstone in them beats was among it.
#[derive(Default)]
pub(super) struct Victims {
    blocks: Vec<u64>,
    pub(super) horizon: Horizon,
}

/// What a look at all blocks has found.
struct Found {
    /// Blocks that are worth it, with their worth.
    victims: Vec<(u64, u64)>,
    /// Bytes of tombstones that are held back.
    debt: u64,
    /// One would be worth it if none were.
    is_hoped: bool,
}

impl SlotHeap {
    /// A block that is worth it among those that nobody writes to and of which `percent` or more is free, or one that was left
    /// without any record. It is the caller's to [reclaim](SlotHeap::reclaim), or, where it is known what is dead, to
    /// [evacuate](SlotHeap::evacuate); one caller at a time.
    pub fn victim(&self, percent: u8) -> Option<u64> {
        self.left_empty().or_else(|| {
            let mut victims = self.supply.victims.lock();
            self.take_victim(&mut victims, percent).or_else(|| {
                *victims = if self.knows_dead() { self.best(percent) } else { self.emptiest(percent) };
                self.take_victim(&mut victims, percent)
            })
        })
    }

    /// Free bytes of a block, tombstones that may go among them, if nobody writes to it and they are so many percent of it.
    fn free_of(&self, number: u64, horizon: &Horizon, percent: u8) -> Option<(&Block, u64)> {
        let (block, capacity) = (self.chunks.block(number)?, self.chunks.geometry.capacity());
        let outlived = self.chunks.dead(number).map_or(0, |dead| dead.tombstones(horizon.without(number)).0);
        let free = (capacity + outlived).saturating_sub(block.bytes());
        let is_worth = block.state() == BlockState::Idle && free * 100 >= capacity * u64::from(percent);
        is_worth.then_some((block, free))
    }

    /// The last of these blocks that is still worth it, taken away from everybody else.
    fn take_victim(&self, victims: &mut Victims, percent: u8) -> Option<u64> {
        let Victims { blocks, horizon } = victims;
        std::iter::from_fn(|| blocks.pop()).find(|number| {
            self.free_of(*number, horizon, percent)
                .is_some_and(|(block, _)| block.advance(BlockState::Idle, BlockState::Cleaning))
        })
    }

    /// Some blocks that are worth it, the emptiest last: one look at all blocks serves for several victims.
    fn emptiest(&self, percent: u8) -> Victims {
        let horizon = Horizon::default();
        let worth = |number| Some((self.free_of(number, &horizon, percent)?.1, number));
        Victims { blocks: self.some_of((0..self.blocks()).filter_map(worth).collect()), horizon }
    }

    /// The best few, the best last, of blocks with their worth.
    fn some_of(&self, mut victims: Vec<(u64, u64)>) -> Vec<u64> {
        let most = (self.blocks() / BLOCKS_A_VICTIM).clamp(1, MOST_VICTIMS) as usize;
        let needless = victims.len().saturating_sub(most);
        if needless > 0 {
            victims.select_nth_unstable(needless);
            victims.drain(..needless);
        }
        victims.sort_unstable();
        victims.into_iter().map(|(_, number)| number).collect()
    }

    /// The same by cost and benefit. Clears marks, if tombstones are held back that are many, or where nothing else is worth it: as
    /// long as one of the blocks would be without them, or if it is soon done. Who wants nothing but what is empty is closing, and
    /// does not wait for more than that.
    fn best(&self, percent: u8) -> Victims {
        let room = self.blocks() * self.chunks.geometry.capacity();
        // At most once through all blocks, whoever else makes work meanwhile.
        let mut rounds = if percent == 100 { 1 } else { self.blocks() / SCRUBBED_TOGETHER as u64 + 1 };
        let mut is_first = true;
        loop {
            let idle = self.idle();
            let holds = self.holds();
            let horizon = Horizon::of(holds.iter().map(|(from, block)| (*block, *from)));
            let Found { victims, debt, is_hoped } = self.by_cost_and_benefit(percent, &idle, &horizon);
            let is_soon_done = holds.len() <= SCRUBBED_TOGETHER && debt > 0;
            let is_due = match victims.is_empty() {
                true => is_hoped || (is_soon_done && is_first),
                false => debt * DEBT_SHARE > room && is_first,
            };
            if rounds == 0 || !is_due || !self.scrub_first(holds) {
                return Victims { blocks: self.some_of(victims), horizon };
            }
            (rounds, is_first) = (rounds - 1, false);
        }
    }

    /// The blocks that nobody writes to. Only the tombstones in these have been noted as what some block holds back: the last one
    /// that a client has written may still be at work, and that block is done a moment later.
    fn idle(&self) -> Vec<u64> {
        let is_idle =
            |number: &u64| self.chunks.block(*number).is_some_and(|block| block.state() == BlockState::Idle);
        (0..self.blocks()).filter(is_idle).collect()
    }

    /// From which numbers on blocks hold tombstones back, and which these are.
    fn holds(&self) -> Vec<(u64, u64)> {
        let hold = |number| {
            let state = self.chunks.block(number)?.state();
            let is_gone = matches!(state, BlockState::Free | BlockState::Fresh);
            Some((self.chunks.dead(number)?.holds(), number))
                .filter(|(from, _)| !is_gone && *from != HOLDS_NONE)
        };
        (0..self.blocks()).filter_map(hold).collect()
    }

    /// Clears marks in the blocks that hold back most. `false` if there is none that can be read.
    fn scrub_first(&self, mut holds: Vec<(u64, u64)>) -> bool {
        let is_damaged = |block: &Block| block.state() == BlockState::Damaged;
        holds.retain(|(_, number)| !self.chunks.block(*number).is_some_and(is_damaged));
        holds.sort_unstable();
        holds.truncate(SCRUBBED_TOGETHER);
        self.scrub(holds.into_iter().map(|(_, number)| number))
    }

    /// What is worth it of the blocks that were idle before it was known what holds tombstones back, and what would be.
    fn by_cost_and_benefit(&self, percent: u8, idle: &[u64], horizon: &Horizon) -> Found {
        let nothing = Horizon::of(std::iter::empty());
        let numbered = || (0..self.blocks()).filter_map(|number| Some((number, self.chunks.dead(number)?)));
        let held = |number, dead: &Dead| dead.tombstones(horizon.without(number)).1;
        let now = numbered().map(|(_, dead)| dead.filled()).max().unwrap_or_default() + 1;
        let debt = numbered().map(|(number, dead)| held(number, dead)).sum();
        let mut found = Found { victims: Vec::new(), debt, is_hoped: false };
        for number in idle.iter().copied() {
            let Some(dead) = self.chunks.dead(number) else { continue };
            if let Some((_, free)) = self.free_of(number, horizon, percent) {
                let live = self.chunks.geometry.capacity().saturating_sub(free);
                // Clients go on meanwhile.
                let age = now.saturating_sub(dead.filled()).max(1);
                let worth = free as f64 / live as f64 * age as f64;
                // Worth is not negative, and the bits of such a number have its order.
                found.victims.push((worth.to_bits(), number));
            } else {
                found.is_hoped |= held(number, dead) > 0 && self.free_of(number, &nothing, percent).is_some();
            }
        }
        found
    }

    /// Takes away a block without records that a client has left.
    fn left_empty(&self) -> Option<u64> {
        let mut left = self.supply.left.lock();
        let block_of = |place: &Place| self.chunks.block(place.block);
        let is_empty = |place: &Place| block_of(place).is_some_and(|block| block.live() == 0);
        let place = left.iter().position(is_empty).map(|place| left.swap_remove(place))?;
        block_of(&place)?.set_state(BlockState::Cleaning);
        Some(place.block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_does_not_hold_back_its_own_tombstones() {
        let horizon = |holds: &[(u64, u64)]| Horizon::of(holds.iter().copied());
        assert_eq!(horizon(&[]).without(3), HOLDS_NONE);
        assert_eq!((horizon(&[(3, 70)]).without(3), horizon(&[(3, 70)]).without(4)), (HOLDS_NONE, 70));
        let some = horizon(&[(1, 50), (2, 30), (3, 40), (4, 30)]);
        assert_eq!([1, 2, 3, 4].map(|block| some.without(block)), [30; 4], "another one does as well");
        let some = horizon(&[(2, 60), (1, 50), (4, 55)]);
        assert_eq!([1, 2, 4].map(|block| some.without(block)), [55, 50, 50]);
    }
}
