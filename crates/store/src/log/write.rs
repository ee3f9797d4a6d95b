//! Writing one key: every kind of write is a decision made on the old record under the key's lock.

use super::hot::writer_for;
use super::lag::Noted;
use super::{Located, Placed, Session, Spine, Writer, reference_of};
use crate::engine::{Decide, Decision};
use crate::options::Twin;
use crate::types::change::{Entry, Expiry};
use crate::types::error::Error;
use quipu_medium::{MediumError, Node};
use quipu_parts::epoch::{Guard, Participant};
use quipu_parts::heap::Reference;
use quipu_parts::heap::segments::{LastLine, OpenSegment, Shard, Use};
use quipu_parts::index::{Index, Key};
use quipu_parts::record::{Content, Kind};
use quipu_parts::stripes::StripeGuard;

/// Why a decision was not carried out, and the bytes and zones it wanted.
struct Refusal {
    error: Error,
    wanted: (u64, u32),
    purpose: Use,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal { error, wanted: (0, 0), purpose: Use::Put }
    }
}

impl<I: Index> Spine<I> {
    /// Gives a key this value, or deletes it with [`Kind::Tombstone`], whatever it was.
    ///
    /// The order of the steps is that of a processor that waits at its first locked instruction until the last write has
    /// reached the medium: what can be done before is done before.
    #[inline]
    pub(crate) fn write_blind(&self, session: &mut Session, content: &Content<'_>) -> Result<(), Error> {
        self.check_key(content.key)?;
        if I::DURABLE && content.kind == Kind::Tombstone {
            return self.take_out(session, content.key);
        }
        if self.is_large(content.value) {
            return self.put_large(session, content);
        }
        self.relieve()?;
        self.write_record(session, content)
    }

    /// The same for what has been checked to fit a record, with no look at how much room is left.
    #[inline]
    pub(super) fn write_record(&self, session: &mut Session, content: &Content<'_>) -> Result<(), Error> {
        let kind = content.kind;
        let key = self.key(content.key);
        let near = if self.takes_hint(kind) { None } else { self.index.prefetch_to_write(key) };
        self.stripes.prefetch(key.hash);
        let Session { participant, writer: cold, hot, lag } = session;
        let is_hot = self.is_hot(hot, participant, kind, key.hash);
        let content = &self.hinted(*content, key, participant, is_hot)?;
        let (guard, stripe) = loop {
            let writer = writer_for(is_hot, cold, hot);
            if let Err(error) = self.prepare(writer, content) {
                self.leave_both(cold, hot);
                self.make_space_or(error, cold, (content.record_len(), 0), purpose_of(kind))?;
                continue;
            }
            let guard = participant.pin();
            let room = self.index_room(&guard, 1, key.bytes.len());
            if self.publishes_late {
                self.finish_oldest(&guard, writer.shard, lag);
            }
            let stripe = self.lock(&guard, key.hash);
            if self.is_overwritten(&guard, &stripe, key, content) {
                return Ok(());
            }
            if let Err(error) = room
                && self.locate::<false>(&guard, key)?.is_none()
            {
                drop(stripe);
                drop(guard);
                self.leave_both(cold, hot);
                self.make_space_or(error, cold, (content.record_len(), 1), purpose_of(kind))?;
                continue;
            }
            if !self.drop_revoked(writer) {
                break (guard, stripe);
            }
        };
        let writer = writer_for(is_hot, cold, hot);
        let sequence = self.draw(writer, &stripe, content);
        if self.elimination.concerns(content) {
            stripe.offer(sequence);
        }
        let new = self.append(writer, sequence, content, LastLine::Written);
        let placed = self.placed(key, new, sequence, content).near(near);
        let parked = placed.parked();
        if self.publishes_late {
            self.prefetch_old(&guard, lag);
            lag.note(parked, key.bytes, Noted::of(sequence, &placed));
            if self.twin == Some(Twin::PublishBeforePersist) {
                stripe.park(parked, || ());
                self.region().fence();
            } else {
                stripe.park(parked, || self.region().fence());
            }
        } else {
            self.persist_and_publish(&guard, &stripe, writer.shard, &placed, None)?;
            drop(stripe);
        }
        if kind == Kind::Tombstone {
            self.heap.share_reserve(&mut writer.segment);
        }
        Ok(())
    }

    /// Locks `key`, shows what it has to `decide`, and carries out the decision durably.
    ///
    /// If there is no room for what was decided, the key is let go while some is made, and then it is decided again: as long as
    /// room can be made, nobody is refused because another one took it before the key was locked.
    #[inline]
    pub(crate) fn modify<D: Decide + ?Sized>(
        &self,
        session: &mut Session,
        key: &[u8],
        decide: &mut D,
    ) -> Result<(), Error> {
        self.check_key(key)?;
        loop {
            self.relieve()?;
            let decided = match decide.needs_value() {
                true => self.decide::<true, D>(session, key, decide),
                false => self.decide::<false, D>(session, key, decide),
            };
            let Err(Refusal { error, wanted, purpose }) = decided else { return Ok(()) };
            self.leave_all(session);
            self.make_space_or(error, &mut session.writer, wanted, purpose)?;
        }
    }

    /// The same with no look at how much room is left. Without `WHOLE` the value is shown empty.
    #[inline]
    fn decide<const WHOLE: bool, D: Decide + ?Sized>(
        &self,
        session: &mut Session,
        key: &[u8],
        decide: &mut D,
    ) -> Result<(), Refusal> {
        let Session { participant, writer: cold, hot, .. } = session;
        let key = self.key(key);
        let near = self.index.prefetch_to_write(key);
        let guard = participant.pin();
        let stripe = self.lock(&guard, key.hash);
        let old = self.locate::<WHOLE>(&guard, key)?;
        if let Some(old) = &old {
            self.heap.prefetch_dead(reference_of(old.word));
        }
        let seen = old.as_ref().map(|located| &located.record).filter(|record| !self.has_expired(record));
        let entry = seen.map(|record| Entry {
            value: record.value,
            expiry: Expiry::of_field(record.expires),
            version: Some(record.header.sequence.get()),
        });
        let decision = match (seen, entry) {
            (Some(record), Some(entry)) if WHOLE && record.is_large() => {
                decide.decide(Some(Entry { value: &self.assemble(&guard, record)?, ..entry }))
            }
            _ => decide.decide(entry),
        };
        let content = match decision {
            Decision::Keep => return Ok(()),
            Decision::Put(value, expiry) => {
                Content { expires: expiry.field(), ..Content::value(key.bytes, value) }
            }
            Decision::Delete if seen.is_none() => return Ok(()),
            Decision::Delete if I::DURABLE => return Ok(self.erase(&guard, cold, key)?),
            Decision::Delete => Content::tombstone(key.bytes),
        };
        let (kind, purpose) = (content.kind, purpose_of(content.kind));
        let is_hot = self.is_hot(hot, participant, kind, key.hash);
        let writer = writer_for(is_hot, cold, hot);
        self.drop_revoked(writer);
        if self.is_large(content.value) {
            let refused = |error| Refusal { error, wanted: self.wanted(&content), purpose };
            let replaced = self.replace_by_large(&guard, writer, &stripe, key, old.as_ref(), &content);
            return replaced.map_err(refused);
        }
        let content = self.hinted(content, key, participant, is_hot)?;
        let refused = |zones| move |error| Refusal { error, wanted: (content.record_len(), zones), purpose };
        if old.is_none() {
            self.index_room(&guard, 1, key.bytes.len()).map_err(refused(1))?;
        }
        self.prepare(writer, &content).map_err(refused(0))?;
        let placed = self.place(writer, &stripe, key, &content).near(near);
        self.persist_and_publish(&guard, &stripe, writer.shard, &placed, old.as_ref())?;
        if kind == Kind::Tombstone {
            self.heap.share_reserve(&mut writer.segment);
        }
        Ok(())
    }

    /// Whether records of this kind are given hints, unless they are hot. Looking for one reads what a write needs of the index, so
    /// that need not be asked for ahead.
    #[inline]
    pub(super) fn takes_hint(&self, kind: Kind) -> bool {
        I::HINTS && self.gives_hints && kind == Kind::Value
    }

    /// The same with a hint to where the index has the key, for a cleaner: not if it is hot, and is dead before one comes.
    #[inline]
    pub(super) fn hinted<'c>(
        &self,
        content: Content<'c>,
        key: Key<'_>,
        participant: &Participant,
        is_hot: bool,
    ) -> Result<Content<'c>, Error> {
        if is_hot || !self.takes_hint(content.kind) {
            return Ok(content);
        }
        let hint = self.index.hint(&participant.pin(), key)?;
        Ok(Content { hint: hint.unwrap_or_default(), ..content })
    }

    /// Gives a segment up that was taken away from its client, and tells whether it did. A stripe is held: as long as it is,
    /// the segment stays the client's.
    #[inline]
    pub(super) fn drop_revoked(&self, writer: &mut Writer) -> bool {
        match writer.segment.take_if(|segment| self.heap.is_revoked(segment)) {
            None => false,
            Some(segment) => {
                self.heap.leave(segment);
                true
            }
        }
    }

    /// Makes room for so many bytes, and for so many zones beside them, that found none; the error that said so, if there is
    /// none to be made.
    #[cold]
    pub(super) fn make_space_or(
        &self,
        error: Error,
        writer: &mut Writer,
        wanted: (u64, u32),
        purpose: Use,
    ) -> Result<(), Error> {
        let made = match error {
            Error::PoolFull { .. } => {
                let make_space = || self.make_space(writer, wanted, purpose);
                self.compactor.stalls().waiting(self.region(), make_space)?
            }
            Error::Medium(MediumError::DiskFull { .. }) => self.win_storage_back(writer)?,
            _ => false,
        };
        match error {
            _ if made => Ok(()),
            // The figures of before are of no use to the user: room has been made since.
            Error::PoolFull { .. } => {
                let (len, zones) = wanted;
                let bytes = len + u64::from(zones) * self.heap.space().zone_size();
                Err(self.heap.shortage(bytes, purpose).into())
            }
            error => Err(error),
        }
    }

    /// Finds room for a record and builds it, all but its sequence number.
    #[inline]
    pub(super) fn prepare(&self, writer: &mut Writer, content: &Content<'_>) -> Result<(), Error> {
        self.prepare_for(purpose_of(content.kind), writer, content)
    }

    /// The same, for a use of room that the kind does not tell.
    #[inline]
    pub(super) fn prepare_for(
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

    /// The writer's segment, or another if that has no room for so many bytes.
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

    /// Appends the record that was prepared to the writer's segment; durable after the next fence. The key's stripe is
    /// held, so that sequence numbers have the order of the writes.
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

    /// Appends the record that was prepared, with this sequence number, and counts it for what it is.
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
    #[inline]
    pub(super) fn count(&self, shard: Shard, new: Reference, content: &Content<'_>) {
        if content.kind == Kind::Tombstone {
            self.heap.note_tombstone(shard, new, content.record_len());
        } else if content.expires != 0 {
            self.heap.note_expiring(new, content.record_len(), content.expires);
        }
    }

    /// The sequence number of the record that was prepared. That of a tombstone, and of a record that expires and becomes
    /// as good as one, is above all lives that there are, which decides how long it has to stay.
    #[inline]
    pub(super) fn draw(&self, writer: &mut Writer, stripe: &StripeGuard<'_>, content: &Content<'_>) -> u64 {
        let open = writer.segment.as_ref().expect("room was made when the record was prepared");
        let sequence = if content.kind == Kind::Tombstone || content.expires != 0 {
            self.heap.draw()
        } else {
            self.heap.draw_above(open, &mut writer.numbers, stripe.newest())
        };
        stripe.note_newest(sequence);
        sequence
    }

    /// Makes the placed record durable, then lets readers see it. The key's stripe is held.
    #[inline]
    pub(super) fn persist_and_publish(
        &self,
        guard: &Guard<'_>,
        stripe: &StripeGuard<'_>,
        shard: Shard,
        placed: &Placed<'_>,
        old: Option<&Located<'_>>,
    ) -> Result<(), Error> {
        if self.twin == Some(Twin::PublishBeforePersist) {
            self.publish(guard, shard, placed, old)?;
            self.region().fence();
            return Ok(());
        }
        self.region().fence();
        if self.twin != Some(Twin::SeenWhileOnOffer) {
            stripe.withdraw();
        }
        self.publish(guard, shard, placed, old)
    }
}

/// What room is wanted for by a record of this kind.
fn purpose_of(kind: Kind) -> Use {
    if kind == Kind::Tombstone { Use::Delete } else { Use::Put }
}
