//! Writing many keys so that a crash leaves all of the writes or none.
//!
//! The records stand in one frame under one check, in one segment: one fence makes them durable together. From then on they
//! are records like any others: the index names each, and compaction moves each alone. Large values, which have zones of
//! their own, cannot be among them.

use super::{Session, Spine};
use crate::batch::WriteBatch;
use crate::error::Error;
use crate::options::Twin;
use quipu_parts::heap::segments::Use;
use quipu_parts::index::{Index, Key};
use quipu_parts::record::{Kind, frame_len};

impl<I: Index> Spine<I> {
    /// Carries out a batch; it is durable when this returns.
    pub(crate) fn write_batch(&self, session: &mut Session, batch: &WriteBatch) -> Result<(), Error> {
        if I::DURABLE {
            return Err(Error::Unsupported { what: "atomic batches" });
        }
        for content in batch.contents() {
            self.check_key(content.key)?;
            self.check_inline(content.value)?;
        }
        if batch.is_empty() {
            return Ok(());
        }
        let (len, limit) = (frame_len(batch.contents()), self.heap.longest_record());
        if len > limit {
            return Err(Error::BatchTooLarge { len, limit });
        }
        if self.twin == Some(Twin::BatchInPieces) {
            return batch.contents().try_for_each(|content| self.write_blind(session, &content));
        }
        self.relieve()?;
        let count = batch.len();
        let mut hashes = Vec::with_capacity(count);
        for content in batch.contents() {
            let key = self.key(content.key);
            self.index.prefetch_to_write(key);
            hashes.push(key.hash);
        }
        let Session { participant, writer, .. } = session;
        let is_deletion = batch.contents().all(|content| content.kind == Kind::Tombstone);
        let purpose = if is_deletion { Use::Delete } else { Use::Put };
        let (mut places, mut holders) = (Vec::with_capacity(count), vec![0; count]);
        let (guard, guards) = loop {
            while let Err(error) = self.make_room(purpose, &mut writer.segment, len, writer.node) {
                self.make_space_or(error, writer, (len, 0), purpose)?;
            }
            let open = writer.segment.as_ref().expect("room was just made");
            places.clear();
            self.heap.prepare_frame(open, &mut writer.encoder, batch.contents(), |place| places.push(place));
            let guard = participant.pin();
            let mut guards = Vec::with_capacity(count);
            guards.resize_with(count, || None);
            self.lock_in_order(&guard, &hashes, &mut vec![0; count], &mut guards, &mut holders);
            if !self.drop_revoked(writer) {
                break (guard, guards);
            }
        };
        let mut numbers = Vec::with_capacity(count);
        for (i, content) in batch.contents().enumerate() {
            let stripe = guards[holders[i]].as_ref().expect("the stripe of every key is locked");
            let sequence = self.draw(writer, stripe, &content);
            writer.encoder.number(places[i], sequence);
            numbers.push(sequence);
        }
        let open = writer.segment.as_mut().expect("room was made for the frame");
        let highest = numbers.iter().copied().max().unwrap_or_default();
        let frame = self.heap.append_frame(writer.shard, open, &mut writer.encoder, highest);
        self.region().fence();
        for (i, content) in batch.contents().enumerate() {
            let new = frame.plus(places[i]);
            self.count(writer.shard, new, &content);
            let key = Key { bytes: content.key, hash: hashes[i] };
            let placed = self.placed(key, new, numbers[i], &content);
            self.publish(&guard, writer.shard, &placed, None)?;
        }
        if is_deletion {
            self.heap.share_reserve(&mut writer.segment);
        }
        Ok(())
    }
}
