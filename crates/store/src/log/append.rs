//! A record on its way into its client's segment: room, hint, sequence number, and the bytes.

use super::writers::{Writer, Writers};
use super::{Placed, Spine};
use crate::types::error::Error;
use quipu_medium::Node;
use quipu_parts::commit::StripeGuard;
use quipu_parts::epoch::Participant;
use quipu_parts::heap::Reference;
use quipu_parts::heap::segments::{LastLine, OpenSegment, Shard, Use};
use quipu_parts::index::{Index, Key};
use quipu_parts::record::{Content, Kind};
use quipu_parts::twin;

impl<I: Index> Spine<I> {
    /// Finds room for a record and builds it, except its sequence number.
    #[inline]
    pub(super) fn prepare(
        &self,
        purpose: Use,
        writer: &mut Writer,
        content: &Content<'_>,
    ) -> Result<(), Error> {
        let open = self.make_room(purpose, &mut writer.segment, content.record_len(), writer.node)?;
        self.heap.prepare(open, &mut writer.encoder, content);
        Ok(())
    }

    /// Whether a writer's segment has room for so many bytes.
    #[inline]
    pub(super) fn has_room(&self, purpose: Use, segment: &Option<OpenSegment>, len: u64) -> bool {
        segment.as_ref().is_some_and(|open| self.heap.has_room(open, len, purpose))
    }

    /// The writer's segment, or another one if the writer's has no room for so many bytes.
    #[inline]
    pub(super) fn make_room<'w>(
        &self,
        purpose: Use,
        segment: &'w mut Option<OpenSegment>,
        len: u64,
        node: Option<Node>,
    ) -> Result<&'w mut OpenSegment, Error> {
        if !self.has_room(purpose, segment, len) {
            self.heap.make_room(segment, len, node, purpose)?;
        }
        Ok(segment.as_mut().expect("there is one with room"))
    }

    /// Appends the record that was prepared to the writer's segment; durable after the next fence. The key's
    /// stripe is held, so that sequence numbers have the order of the writes.
    #[inline]
    pub(super) fn place<'k>(
        &self,
        writer: &mut Writer,
        stripe: &StripeGuard<'_>,
        key: Key<'k>,
        content: &Content<'_>,
    ) -> Placed<'k> {
        let sequence = self.draw(writer, stripe, content);
        let new = self.append(writer, sequence, content, LastLine::Written);
        self.placed(key, new, sequence, content)
    }

    /// Appends the record that was prepared, with this sequence number, and counts it by its kind.
    #[inline(always)]
    pub(super) fn append(
        &self,
        writer: &mut Writer,
        sequence: u64,
        content: &Content<'_>,
        last_line: LastLine,
    ) -> Reference {
        let Writer { segment, encoder, shard, .. } = writer;
        let open = segment.as_mut().expect("room was made when the record was prepared");
        let new = self.heap.append(*shard, open, encoder, sequence, last_line);
        self.count(*shard, new, content);
        new
    }

    /// Counts a record that will not be live for ever.
    #[inline(always)]
    pub(super) fn count(&self, shard: Shard, new: Reference, content: &Content<'_>) {
        if content.kind == Kind::Tombstone {
            self.heap.note_tombstone(shard, new, content.record_len());
        } else if content.expires != 0 {
            self.heap.note_expiring(new, content.record_len(), content.expires);
        }
    }

    /// The sequence number of the record that was prepared. A tombstone, and a record that may expire and act
    /// as one, has a number above all present lives, which decides how long it must stay.
    #[inline]
    pub(super) fn draw(&self, writer: &mut Writer, stripe: &StripeGuard<'_>, content: &Content<'_>) -> u64 {
        let open = writer.segment.as_ref().expect("room was made when the record was prepared");
        let sequence = if content.kind == Kind::Tombstone || content.expires != 0 {
            self.heap.draw()
        } else {
            let newest = if twin!(NewestIgnored) { 0 } else { stripe.newest() };
            self.heap.draw_above(open, &mut writer.numbers, newest)
        };
        stripe.note_newest(sequence);
        sequence
    }

    /// Whether records of this kind are given hints, unless they are hot. The search for a hint reads the
    /// lines of the index that a write needs, so no prefetch is needed then.
    #[inline]
    pub(super) fn takes_hint(&self, kind: Kind) -> bool {
        I::HINTS && self.gives_hints && kind == Kind::Value
    }

    /// The hint of a record to its key's entry in the index, for a cleaner; 0 for none. A hot record gets
    /// none: it is dead before a cleaner comes.
    #[inline]
    pub(super) fn hint(
        &self,
        kind: Kind,
        key: Key<'_>,
        participant: &Participant,
        is_hot: bool,
    ) -> Result<u64, Error> {
        if is_hot || !self.takes_hint(kind) {
            return Ok(0);
        }
        Ok(self.index.hint(&participant.pin(), key)?.unwrap_or_default())
    }

    /// Gives up a segment that was revoked from its client, and tells whether it did. A stripe is held: while
    /// it is, the segment stays the client's.
    #[inline]
    pub(super) fn drop_revoked(&self, writer: &mut Writer) -> bool {
        match writer.segment.take_if(|segment| self.heap.is_revoked(segment) && !twin!(RevocationUnseen)) {
            None => false,
            Some(segment) => {
                self.heap.leave(segment);
                true
            }
        }
    }

    /// Makes room for so many bytes, and for so many zones beside them, after a write found none. Returns the
    /// write's error if no room can be made.
    #[cold]
    pub(super) fn make_space_or(
        &self,
        error: Error,
        writers: &mut Writers,
        wanted: (u64, u32),
        purpose: Use,
    ) -> Result<(), Error> {
        self.leave(writers);
        self.make_space(error, wanted, purpose)
    }
}
