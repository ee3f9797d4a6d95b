//! Hot records in blocks of their own (PACMAN section 3.4): what each client has for it. What is hot is known
//! as in a store over logs.

use crate::slots::{SlotSession, SlotSpine};
use quipu_parts::epoch::Participant;
use quipu_parts::heap::slots::Owner;
use quipu_parts::index::cceh::NodeMemory;
use quipu_parts::reclaim::hot::Sampler;

/// What a client has for hot records.
pub(in crate::slots) struct HotSide {
    sampler: Sampler,
    owner: Owner,
}

impl<M: NodeMemory, const REDUCED: bool> SlotSpine<M, REDUCED> {
    /// What a client of this store needs for hot records, if they are kept apart.
    pub(in crate::slots) fn hot_side(&self) -> Option<Box<HotSide>> {
        let hot = self.hot.as_ref()?;
        let (sampler, owner) = (Sampler::new(hot.set()), self.heap.hot_owner(self.seed()));
        Some(Box::new(HotSide { sampler, owner }))
    }

    /// Whether a record that is about to be written is hot.
    #[inline]
    pub(in crate::slots) fn is_hot(
        &self,
        side: &mut Option<Box<HotSide>>,
        participant: &Participant,
        hash: u64,
    ) -> bool {
        match (&self.hot, side) {
            (Some(hot), Some(side)) => side.sampler.is_hot(hot.set(), participant, hash),
            _ => false,
        }
    }

    /// Leaves a client's hot block to another.
    pub(in crate::slots) fn leave_hot(&self, session: &mut SlotSession) {
        if let Some(side) = &mut session.hot {
            self.heap.leave(std::mem::replace(&mut side.owner, self.heap.hot_owner(self.seed())));
        }
    }
}

/// The owner for a record.
#[inline]
pub(in crate::slots) fn owner_for<'o>(
    is_hot: bool,
    cold: &'o mut Owner,
    hot: &'o mut Option<Box<HotSide>>,
) -> &'o mut Owner {
    match hot {
        Some(side) if is_hot => &mut side.owner,
        _ => cold,
    }
}
