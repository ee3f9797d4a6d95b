//! Hot records in segments of their own: what a store, and each of its clients, needs for it.
//!
//! A client writes what is hot to one segment and all else to another (PACMAN section 3.4), so it has two writers. Deletions and
//! atomic batches go with the cold.

use super::{Session, Spine, Writer};
use quipu_parts::epoch::Participant;
use quipu_parts::index::Index;
use quipu_parts::reclaim::hot::Sampler;
use quipu_parts::record::Kind;

/// What a client has for hot records.
pub(crate) struct HotSide {
    sampler: Sampler,
    pub(super) writer: Writer,
}

impl<I: Index> Spine<I> {
    /// What a client of this store needs for hot records, if they are kept apart.
    pub(super) fn hot_side(&self, writer: impl FnOnce() -> Writer) -> Option<Box<HotSide>> {
        let hot = self.hot.as_ref()?;
        Some(Box::new(HotSide { sampler: Sampler::new(hot.set()), writer: writer() }))
    }

    /// Whether a record that is about to be written is hot.
    #[inline]
    pub(super) fn is_hot(
        &self,
        side: &mut Option<Box<HotSide>>,
        participant: &Participant,
        kind: Kind,
        hash: u64,
    ) -> bool {
        match (&self.hot, side) {
            (Some(hot), Some(side)) if kind != Kind::Tombstone => {
                side.sampler.is_hot(hot.set(), participant, hash)
            }
            _ => false,
        }
    }

    /// Leaves a client's segments to others: all that could be cleaned may be in these.
    pub(super) fn leave_all(&self, session: &mut Session) {
        self.leave_both(&mut session.writer, &mut session.hot);
    }

    /// The same for who has these in hand. A record that is hot may then go to a segment that was for the others, where there is no
    /// zone for another one.
    pub(super) fn leave_both(&self, cold: &mut Writer, hot: &mut Option<Box<HotSide>>) {
        let hot = hot.as_mut().and_then(|side| side.writer.segment.take());
        for segment in hot.into_iter().chain(cold.segment.take()) {
            self.heap.leave(segment);
        }
    }
}

/// The writer for a record.
#[inline]
pub(super) fn writer_for<'w>(
    is_hot: bool,
    cold: &'w mut Writer,
    hot: &'w mut Option<Box<HotSide>>,
) -> &'w mut Writer {
    match hot {
        Some(side) if is_hot => &mut side.writer,
        _ => cold,
    }
}
