//! The side of the walk that its clients use.

use super::{NlogSession, NlogSpine};
use crate::engine::Decide;
use crate::points::Walk;
use crate::types::error::Error;
use quipu_medium::Node;
use quipu_parts::epoch::Participant;
use quipu_parts::index::Imaged;
use quipu_parts::record::Content;

impl<I: Imaged> Walk for NlogSpine<I> {
    type Own = NlogSession;

    fn own(&self, node: Option<Node>) -> NlogSession {
        self.own_session(node)
    }

    fn participant(own: &NlogSession) -> &Participant {
        &own.participant
    }

    fn check_value(&self, value: &[u8]) -> Result<(), Error> {
        self.check_inline(value)
    }

    fn write_blind(&self, own: &mut NlogSession, content: &Content<'_>) -> Result<(), Error> {
        NlogSpine::write_blind(self, own, content)
    }

    fn modify<D: Decide + ?Sized>(
        &self,
        own: &mut NlogSession,
        key: &[u8],
        decide: &mut D,
    ) -> Result<(), Error> {
        NlogSpine::modify(self, own, key, decide)
    }
}
