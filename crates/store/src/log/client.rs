//! The side of the walk that its clients use.

use super::{Session, Spine};
use crate::engine::Decide;
use crate::points::Walk;
use crate::types::batch::WriteBatch;
use crate::types::conditions::Conditions;
use crate::types::error::Error;
use quipu_medium::Node;
use quipu_parts::epoch::Participant;
use quipu_parts::index::Index;
use quipu_parts::record::Content;

impl<I: Index> Walk for Spine<I> {
    type Own = Session;

    fn own(&self, node: Option<Node>) -> Session {
        self.own_session(node)
    }

    fn end(&self, own: &mut Session) {
        Spine::end(self, own);
    }

    fn participant(own: &Session) -> &Participant {
        &own.participant
    }

    fn check_value(&self, value: &[u8]) -> Result<(), Error> {
        Spine::check_value(self, value)
    }

    #[inline(always)]
    fn write_blind(&self, own: &mut Session, content: &Content<'_>) -> Result<(), Error> {
        Spine::write_blind(self, own, content)
    }

    fn modify<D: Decide + ?Sized>(&self, own: &mut Session, key: &[u8], decide: &mut D) -> Result<(), Error> {
        Spine::modify(self, own, key, decide)
    }

    fn put_many(&self, own: &mut Session, pairs: &[(&[u8], &[u8])]) -> Result<(), Error> {
        Spine::put_many(self, own, pairs)
    }

    fn write_batch(
        &self,
        own: &mut Session,
        batch: &WriteBatch,
        conditions: &Conditions,
    ) -> Result<(), Error> {
        Spine::write_batch(self, own, batch, conditions)
    }
}
