//! [`FreeBlocks`]: the free blocks of a heap, apart by the node of their bytes.
//!
//! In a pool of one node there is one lane. In a pool of several, a chunk's blocks are free from the moment
//! it is laid out, so that each client takes blocks of its own node. Blocks of another node are taken only
//! when that one has neither a free block nor a free zone.

use super::heap::SlotHeap;
use quipu_medium::Node;
use std::collections::VecDeque;

/// Free blocks, those that were freed first in front.
pub(super) struct FreeBlocks {
    lanes: Box<[VecDeque<u64>]>,
}

impl FreeBlocks {
    pub(super) fn new(lanes: usize) -> FreeBlocks {
        FreeBlocks { lanes: (0..lanes).map(|_| VecDeque::new()).collect() }
    }

    pub(super) fn len(&self) -> usize {
        self.lanes.iter().map(VecDeque::len).sum()
    }

    pub(super) fn push(&mut self, lane: usize, block: u64) {
        self.lanes[lane].push_back(block);
    }

    /// The next block of this lane.
    pub(super) fn pop_near(&mut self, lane: usize) -> Option<u64> {
        self.lanes[lane].pop_front()
    }

    /// The next block of this lane, or of another.
    pub(super) fn pop(&mut self, lane: usize) -> Option<u64> {
        self.pop_near(lane).or_else(|| self.lanes.iter_mut().find_map(VecDeque::pop_front))
    }

    /// How many have this number or a higher one.
    pub(super) fn count_from(&self, first: u64) -> usize {
        self.lanes.iter().flatten().filter(|block| **block >= first).count()
    }

    /// Forgets those with this number or a higher one.
    pub(super) fn cut(&mut self, first: u64) {
        self.lanes.iter_mut().for_each(|lane| lane.retain(|block| *block < first));
    }
}

impl SlotHeap {
    /// The node of a block's bytes, in a pool of several nodes.
    pub fn node_of(&self, block: u64) -> Option<Node> {
        if !self.supply.is_spread() {
            return None;
        }
        let zone = self.chunks.zone((block / self.chunks.geometry.blocks_per_chunk) as u32)?;
        Some(self.space.zone_node(zone))
    }

    /// The lane of a node.
    pub(super) fn lane(&self, node: Option<Node>) -> usize {
        self.supply.nodes.iter().position(|known| Some(*known) == node).unwrap_or(0)
    }

    /// Puts free blocks where others find them.
    pub(super) fn offer(&self, blocks: impl IntoIterator<Item = u64>) {
        self.supply.with_queue(|queue| {
            blocks.into_iter().for_each(|block| queue.push(self.lane(self.node_of(block)), block));
        });
    }
}
