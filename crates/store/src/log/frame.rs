//! Writing many keys so that a crash leaves all of the writes or none.
//!
//! The records stand in one frame under one check, in one segment: one fence makes them durable together.
//! From then on they are records like any others: the index names each, and compaction moves each alone.
//! Large values, which have zones of their own, cannot be among them.
//!
//! A batch may have conditions: versions that keys still have. Their stripes are locked with those of the
//! batch, and they are looked at before any record gets its number.
//!
//! Readers see the records one after the other, as they are published. So of several writes to one key only
//! the last gets a record: otherwise a reader could see a value that the batch itself overwrites.

use super::{Session, Spine};
use crate::engine::NO_TABLES;
use crate::types::batch::WriteBatch;
use crate::types::conditions::{Conditions, Must};
use crate::types::error::Error;
use quipu_parts::epoch::Guard;
use quipu_parts::heap::segments::Use;
use quipu_parts::index::{Index, Key};
use quipu_parts::record::{Content, Kind, frame_len};
use quipu_parts::twin;

impl<I: Index> Spine<I> {
    /// Carries out a batch, if these conditions hold; it is durable when this returns.
    pub(crate) fn write_batch(
        &self,
        session: &mut Session,
        batch: &WriteBatch,
        conditions: &Conditions,
    ) -> Result<(), Error> {
        if batch.names_tables() || conditions.names_tables() {
            return Err(Error::Unsupported { what: NO_TABLES });
        }
        if I::DURABLE {
            return Err(Error::Unsupported { what: "atomic batches" });
        }
        for content in batch.contents() {
            self.check_key(content.key)?;
            self.check_inline(content.value)?;
        }
        conditions.all().try_for_each(|condition| self.check_key(condition.key))?;
        if batch.is_empty() {
            return self.prove(session, conditions);
        }
        let writes = self.last_of_each_key(batch);
        let contents = || writes.iter().map(|write| write.content);
        let (len, limit) = (frame_len(contents()), self.heap.longest_record());
        if len > limit {
            return Err(Error::BatchTooLarge { len, limit });
        }
        if twin!(BatchInPieces) {
            return contents().try_for_each(|content| self.write_blind(session, &content));
        }
        self.relieve()?;
        let count = writes.len();
        let Session { participant, writers, .. } = session;
        let mut hashes = Vec::with_capacity(count);
        for write in &writes {
            self.index.prefetch_to_write(participant, write.key());
            hashes.push(write.hash);
        }
        let read = conditions.all().map(|condition| self.hash(condition.key));
        hashes.extend(read);
        let is_deletion = contents().all(|content| content.kind == Kind::Tombstone);
        let purpose = if is_deletion { Use::Delete } else { Use::Put };
        let locked = hashes.len();
        let (mut places, mut holders) = (Vec::with_capacity(count), vec![0; locked]);
        let (guard, guards) = loop {
            let writer = &mut writers.cold;
            if let Err(error) = self.make_room(purpose, &mut writer.segment, len, writer.node) {
                self.make_space_or(error, writers, (len, 0), purpose)?;
                continue;
            }
            let open = writer.segment.as_ref().expect("room was just made");
            places.clear();
            self.heap.prepare_frame(open, &mut writer.encoder, contents(), |place| places.push(place));
            let guard = participant.pin();
            let mut guards = Vec::with_capacity(locked);
            guards.resize_with(locked, || None);
            self.lock_in_order(&guard, &hashes, &mut vec![0; locked], &mut guards, &mut holders);
            self.look_for(&guard, conditions)?;
            if !self.drop_revoked(writer) {
                break (guard, guards);
            }
        };
        let writer = &mut writers.cold;
        let mut numbers = Vec::with_capacity(count);
        for (i, content) in contents().enumerate() {
            let stripe = guards[holders[i]].as_ref().expect("the stripe of every key is locked");
            let sequence = self.draw(writer, stripe, &content);
            writer.encoder.number(places[i], sequence);
            numbers.push(sequence);
        }
        let open = writer.segment.as_mut().expect("room was made for the frame");
        let highest = numbers.iter().copied().max().unwrap_or_default();
        let frame = self.heap.append_frame(writer.shard, open, &mut writer.encoder, highest);
        self.region().fence();
        for (i, write) in writes.iter().enumerate() {
            let new = frame.plus(places[i]);
            self.count(writer.shard, new, &write.content);
            let placed = self.placed(write.key(), new, numbers[i], &write.content);
            self.publish(&guard, writer.shard, &placed, None)?;
        }
        if is_deletion {
            self.heap.share_reserve(&mut writer.segment);
        }
        Ok(())
    }

    /// Whether these conditions hold at a moment of this call; otherwise [`Error::Conflict`].
    fn prove(&self, session: &mut Session, conditions: &Conditions) -> Result<(), Error> {
        let guard = session.participant.pin();
        let hashes: Vec<u64> = conditions.all().map(|condition| self.hash(condition.key)).collect();
        let (mut guards, mut holders) = (Vec::new(), vec![0; hashes.len()]);
        guards.resize_with(hashes.len(), || None);
        self.lock_in_order(&guard, &hashes, &mut vec![0; hashes.len()], &mut guards, &mut holders);
        self.look_for(&guard, conditions)
    }

    /// As [`prove`](Spine::prove), of keys that are locked.
    fn look_for(&self, guard: &Guard<'_>, conditions: &Conditions) -> Result<(), Error> {
        for condition in conditions.all() {
            let found = self.locate_near::<false>(guard, self.key(condition.key), None)?;
            let record = found.map(|located| located.record).filter(|record| !self.has_expired(record));
            let version = record.map(|record| record.header.sequence.get());
            if condition.must != Must::Have(version) {
                return Err(Error::Conflict { key: Some(condition.key.into()) });
            }
        }
        Ok(())
    }

    /// The writes of a batch that count, in its order: the last one of each key.
    fn last_of_each_key<'b>(&self, batch: &'b WriteBatch) -> Vec<Write<'b>> {
        let hashed = |content: Content<'b>| Write { hash: self.hash(content.key), content };
        let mut writes: Vec<_> = batch.contents().map(hashed).collect();
        let mut by_hash: Vec<_> = writes.iter().enumerate().map(|(i, write)| (write.hash, i)).collect();
        by_hash.sort_unstable();
        let mut counts = vec![true; writes.len()];
        for alike in by_hash.chunk_by(|(one, _), (next, _)| one == next) {
            for (rank, (_, i)) in alike.iter().enumerate() {
                let is_same =
                    |(_, later): &(u64, usize)| writes[*later].content.key == writes[*i].content.key;
                counts[*i] = !alike[rank + 1..].iter().any(is_same);
            }
        }
        let mut counts = counts.into_iter();
        writes.retain(|_| counts.next() == Some(true));
        writes
    }
}

/// A write of a batch.
struct Write<'b> {
    hash: u64,
    content: Content<'b>,
}

impl<'b> Write<'b> {
    fn key(&self) -> Key<'b> {
        Key { bytes: self.content.key, hash: self.hash }
    }
}
