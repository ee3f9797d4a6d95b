//! Finding the block that is reclaimed next. One look at all blocks serves for several victims.

use super::choose::{Candidate, Terms, choose};
use super::chunks::BlockState;
use super::heap::SlotHeap;
use super::owner::Place;
use super::pacman::Horizon;

/// Blocks that are looked at for each victim that is found by it, and most victims that are found at a time.
const BLOCKS_A_VICTIM: u64 = 64;
const MOST_VICTIMS: u64 = 64;

/// Blocks that were worth reclaiming, the best last, and the numbers from which tombstones were held back
/// then. The blocks had been written to their end before anybody looked at those numbers, so these cover all
/// records that the tombstones in the blocks beat.
#[derive(Default)]
pub(super) struct Victims {
    blocks: Vec<u64>,
    pub(super) horizon: Horizon,
}

impl SlotHeap {
    /// A block that is worth it among those that nobody writes to and of which `percent` or more is free, or
    /// one that was left without any record. It is the caller's to [reclaim](SlotHeap::reclaim), or, where
    /// dead records are known, to [evacuate](SlotHeap::evacuate); one caller at a time.
    pub fn victim(&self, percent: u8) -> Option<u64> {
        self.left_empty().or_else(|| {
            let mut victims = self.supply.victims.lock();
            self.take_victim(&mut victims, percent).or_else(|| {
                *victims = if self.knows_dead() { self.best(percent) } else { self.emptiest(percent) };
                self.take_victim(&mut victims, percent)
            })
        })
    }

    /// The last of these blocks that is still worth it, taken away from everybody else.
    fn take_victim(&self, Victims { blocks, horizon }: &mut Victims, percent: u8) -> Option<u64> {
        let terms = self.terms(percent, None);
        std::iter::from_fn(|| blocks.pop()).find(|number| {
            self.candidate(*number, horizon).is_some_and(|candidate| terms.gives(&candidate))
                && self
                    .chunks
                    .block(*number)
                    .is_some_and(|block| block.advance(BlockState::Idle, BlockState::Cleaning))
        })
    }

    /// The numbers of a block, if nobody writes to it.
    pub(super) fn candidate(&self, block: u64, horizon: &Horizon) -> Option<Candidate> {
        let state = self.chunks.block(block).filter(|state| state.state() == BlockState::Idle)?;
        let candidate = Candidate { block, bytes: state.bytes(), ..Candidate::default() };
        let Some(dead) = self.chunks.dead(block) else { return Some(candidate) };
        let (outlived, held) = dead.tombstones(horizon.without(block));
        Some(Candidate { outlived, held, filled: dead.filled(), ..candidate })
    }

    pub(super) fn terms(&self, percent: u8, now: Option<u64>) -> Terms {
        Terms { capacity: self.chunks.geometry.capacity(), percent, now }
    }

    /// Some blocks that are worth it, the emptiest last.
    fn emptiest(&self, percent: u8) -> Victims {
        let horizon = Horizon::default();
        let candidates: Vec<_> =
            (0..self.blocks()).filter_map(|block| self.candidate(block, &horizon)).collect();
        self.victims(&candidates, &self.terms(percent, None), horizon)
    }

    /// The best few of the candidates.
    pub(super) fn victims(&self, candidates: &[Candidate], terms: &Terms, horizon: Horizon) -> Victims {
        let most = (self.blocks() / BLOCKS_A_VICTIM).clamp(1, MOST_VICTIMS) as usize;
        Victims { blocks: choose(candidates, terms, most), horizon }
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
