//! Hot records in blocks of their own (PACMAN section 3.4): a client has a second place to write for them.

use crate::slots::{SlotSession, SlotSpine};
use quipu_medium::Node;
use quipu_parts::epoch::Participant;
use quipu_parts::heap::slots::Owner;
use quipu_parts::index::cceh::NodeMemory;
use quipu_parts::reclaim::hot::Sampler;

/// A client's share of the hot set, and its owner for hot records.
pub(in crate::slots) struct HotSide {
    sampler: Sampler,
    owner: Owner,
}

impl<M: NodeMemory, const REDUCED: bool> SlotSpine<M, REDUCED> {
    /// The hot side of a new client of this store, if hot records are kept apart.
    pub(in crate::slots) fn hot_side(&self, node: Option<Node>) -> Option<Box<HotSide>> {
        let hot = self.hot.as_ref()?;
        let owner = self.heap.hot_owner(self.seed()).near(node);
        let sampler = Sampler::new(hot.set());
        Some(Box::new(HotSide { sampler, owner }))
    }

    /// The owner for a record that is about to be written.
    #[inline]
    pub(in crate::slots) fn owner_for<'o>(
        &self,
        cold: &'o mut Owner,
        side: &'o mut Option<Box<HotSide>>,
        participant: &Participant,
        hash: u64,
    ) -> &'o mut Owner {
        let (Some(hot), Some(side)) = (&self.hot, side) else { return cold };
        let HotSide { sampler, owner } = &mut **side;
        if sampler.is_hot(hot.set(), participant, hash) { owner } else { cold }
    }

    /// Leaves a client's hot block to another.
    pub(in crate::slots) fn leave_hot(&self, session: &mut SlotSession) {
        if let Some(side) = &mut session.hot {
            self.heap.leave(std::mem::replace(&mut side.owner, self.heap.hot_owner(self.seed())));
        }
    }
}
