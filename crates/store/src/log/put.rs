//! The life of a put, from top to bottom. A blind deletion goes the same way; [`super::modify`] looks at the
//! old record first.
//!
//! The order of the beats follows from the processor: the first locked instruction of a put waits until the
//! stores of the put before have reached the medium. That is the publication of an earlier put, or the key's
//! lock. So the prefetches and the building of the record come before. The end of a put, parked or published
//! at once, is in [`super::publish`].

use super::publish::Lag;
use super::writers::Writers;
use super::{Session, Spine};
use crate::types::error::Error;
use quipu_parts::commit::StripeGuard;
use quipu_parts::epoch::{Guard, Participant};
use quipu_parts::heap::segments::{LastLine, Use};
use quipu_parts::index::{Index, Key};
use quipu_parts::record::{Content, Kind};

/// A put under way.
#[derive(Clone, Copy)]
struct Put<'p> {
    key: Key<'p>,
    /// The place of the key in the index, from the prefetch. Only some indexes tell it.
    near: Option<u64>,
    /// The hint that the record is to have; 0 for none.
    hint: u64,
    is_hot: bool,
}

impl<I: Index> Spine<I> {
    /// Gives a key this value, or deletes it with [`Kind::Tombstone`], without a look at the old record.
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

    /// Writes a checked content that fits a record, without giving compaction its share of work first.
    #[inline]
    pub(super) fn write_record(&self, session: &mut Session, content: &Content<'_>) -> Result<(), Error> {
        let Session { participant, writers, lag } = session;
        let put = self.aim(participant, writers, content)?;
        let hinted;
        let content = if put.hint == 0 {
            content
        } else {
            hinted = content.hinted(put.hint);
            &hinted
        };
        let Some((guard, stripe)) = self.hold(participant, writers, lag, &put, content)? else {
            return Ok(()); // eliminated: the put that it met has overwritten it
        };
        self.forget(&guard, put.key.hash);
        let writer = writers.of(put.is_hot);
        let sequence = self.draw(writer, &stripe, content);
        self.offer(&stripe, sequence, content);
        let new = self.append(writer, sequence, content, LastLine::Written);
        let placed = self.placed(put.key, new, sequence, content).near(put.near);
        if self.publishes_late {
            self.park(&guard, &stripe, lag, &placed, sequence);
        } else {
            self.persist_and_publish(&guard, &stripe, writer.shard, &placed, None)?;
            drop(stripe);
        }
        if content.kind == Kind::Tombstone {
            self.heap.share_reserve(&mut writer.segment);
        }
        Ok(())
    }

    /// Prefetches the lines of index and stripe, and decides where the record goes. Holds nothing.
    #[inline(always)]
    fn aim<'p>(
        &self,
        participant: &Participant,
        writers: &mut Writers,
        content: &Content<'p>,
    ) -> Result<Put<'p>, Error> {
        let (kind, key) = (content.kind, self.key(content.key));
        let near = if self.takes_hint(kind) { None } else { self.index.prefetch_to_write(participant, key) };
        self.common.stripes.prefetch(key.hash);
        let is_hot = self.is_hot(writers, participant, kind, key.hash);
        Ok(Put { key, near, hint: self.hint(kind, key, participant, is_hot)?, is_hot })
    }

    /// Builds the record where there is room for it, publishes the client's write before last if it is still
    /// parked, and locks the key. `None` if the write is eliminated (see [`super::eliminate`]).
    #[inline(always)]
    fn hold<'s>(
        &'s self,
        participant: &'s Participant,
        writers: &mut Writers,
        lag: &mut Lag,
        put: &Put<'_>,
        content: &Content<'_>,
    ) -> Result<Option<(Guard<'s>, StripeGuard<'s>)>, Error> {
        let (Put { key, is_hot, .. }, purpose) = (*put, purpose_of(content.kind));
        loop {
            let writer = writers.of(is_hot);
            if let Err(error) = self.prepare(purpose, writer, content) {
                self.make_space_or(error, writers, (content.record_len(), 0), purpose)?;
                continue;
            }
            let guard = participant.pin();
            let room = self.index_room(&guard, 1, key.bytes.len());
            if self.publishes_late {
                self.publish_oldest(&guard, writer.shard, lag)?;
            }
            let stripe = self.lock(&guard, key.hash);
            if self.is_overwritten(&guard, &stripe, key, content) {
                return Ok(None);
            }
            if let Err(error) = room
                && self.locate::<false>(&guard, key)?.is_none()
            {
                drop(stripe);
                drop(guard);
                self.make_space_or(error, writers, (content.record_len(), 1), purpose)?;
                continue;
            }
            if !self.drop_revoked(writer) {
                return Ok(Some((guard, stripe)));
            }
        }
    }
}

/// The purpose of the room that a record of this kind takes.
#[inline]
pub(super) fn purpose_of(kind: Kind) -> Use {
    if kind == Kind::Tombstone { Use::Delete } else { Use::Put }
}
