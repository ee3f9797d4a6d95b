//! The writers of a client: one for hot records, if these are kept apart, and one for all others (PACMAN
//! section 3.4).
//!
//! Deletions and atomic batches go with the others.

use super::Spine;
use quipu_medium::Node;
use quipu_parts::epoch::Participant;
use quipu_parts::heap::Numbers;
use quipu_parts::heap::segments::{LogHeap, OpenSegment, Shard};
use quipu_parts::index::Index;
use quipu_parts::reclaim::hot::Sampler;
use quipu_parts::record::{Encoder, Kind};

/// An open segment and the buffer in which records are built.
pub(crate) struct Writer {
    pub(super) segment: Option<OpenSegment>,
    pub(super) encoder: Encoder,
    pub(super) shard: Shard,
    pub(super) numbers: Numbers,
    pub(super) node: Option<Node>,
}

impl Writer {
    pub(super) fn new(heap: &LogHeap, node: Option<Node>) -> Writer {
        let (shard, numbers) = (heap.shard(), Numbers::default());
        Writer { segment: None, encoder: Encoder::default(), shard, numbers, node }
    }
}

/// The writers of a client.
pub(crate) struct Writers {
    pub(super) cold: Writer,
    hot: Option<Box<HotSide>>,
}

/// A client's share in keeping hot records apart.
struct HotSide {
    sampler: Sampler,
    writer: Writer,
}

impl Writers {
    /// The writer for a record.
    #[inline]
    pub(super) fn of(&mut self, is_hot: bool) -> &mut Writer {
        match &mut self.hot {
            Some(side) if is_hot => &mut side.writer,
            _ => &mut self.cold,
        }
    }

    /// Each of them.
    pub(super) fn each(&mut self) -> impl Iterator<Item = &mut Writer> {
        self.hot.iter_mut().map(|side| &mut side.writer).chain([&mut self.cold])
    }
}

impl<I: Index> Spine<I> {
    pub(super) fn writers(&self, node: Option<Node>) -> Writers {
        let writer = || Writer::new(&self.heap, node);
        let side =
            |hot: &crate::walk::hot::Hot| HotSide { sampler: Sampler::new(hot.set()), writer: writer() };
        Writers { cold: writer(), hot: self.hot.as_ref().map(|hot| Box::new(side(hot))) }
    }

    /// Whether a record that is about to be written is hot.
    #[inline]
    pub(super) fn is_hot(
        &self,
        writers: &mut Writers,
        participant: &Participant,
        kind: Kind,
        hash: u64,
    ) -> bool {
        match (&self.hot, &mut writers.hot) {
            (Some(hot), Some(side)) if kind != Kind::Tombstone => {
                side.sampler.is_hot(hot.set(), participant, hash)
            }
            _ => false,
        }
    }

    /// Leaves a client's segments to others: all reclaimable bytes may be in them. A hot record may then go
    /// to a segment of the others, if no zone is free for another one.
    pub(super) fn leave(&self, writers: &mut Writers) {
        writers
            .each()
            .filter_map(|writer| writer.segment.take())
            .for_each(|segment| self.heap.leave(segment));
    }
}
