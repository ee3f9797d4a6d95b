//! The pipeline by which the live records of a segment move: collect, copy, one fence, repoint, flush in
//! batches.
//!
//! PACMAN section 3.3. Writers are not kept out. The worker makes a copy, then repoints the index if it still
//! names the original. If a writer was faster, the copy is dead. The copy's segment may be younger than the
//! tombstone by which that writer deleted the key. From then on the segment [holds](LogHeap::hold_tombstones)
//! that tombstone, so the copy need not be made void. The index does not name a parked record yet; so before
//! the worker gives a copy up, it publishes the write that is parked for its key.
//!
//! Bits in DRAM tell which records are live (section 3.2) if the heap keeps them; otherwise the worker asks
//! the index about each record. A record with a hint to its entry (section 3.1) is repointed there.

use crate::log::{Spine, Writer};
use crate::points::{Points, reference_of};
use crate::types::error::Error;
use quipu_parts::epoch::Guard;
use quipu_parts::heap::Reference;
#[cfg(doc)]
use quipu_parts::heap::segments::LogHeap;
use quipu_parts::heap::segments::{LastLine, Use};
use quipu_parts::index::{Index, Key};
use quipu_parts::record::{Content, RecordView};
use quipu_parts::twin;
use std::mem;

/// Replaced words that are flushed together (`NUM_BATCH_FLUSH` in the paper's figure 4).
const FLUSHED_TOGETHER: usize = 32;

/// Records whose entries in the index are prefetched.
const AHEAD: usize = 16;

/// The results of a step of compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Relocated {
    /// Bytes copied.
    pub(super) bytes: u64,
    /// Records copied.
    pub(super) records: u64,
    /// Of these, records whose hint led to their entry.
    pub(super) by_hint: u64,
}

/// A record of the victim and its copy.
struct Copied<'r> {
    key: Key<'r>,
    hint: Option<u64>,
    /// Words and lengths of the original, which may have a hint, and of the copy, which has none.
    old: (u64, u64),
    new: (u64, u64),
    sequence: u64,
}

impl<I: Index> Spine<I> {
    /// Moves the live ones of these values; of a large one only the head moves. On an error, those before the
    /// failed one have moved.
    ///
    /// Copies that are repointed together stand in one segment, since a segment that was left may be cleaned
    /// at once. A cleaner would take copies that the index does not name yet for dead.
    pub(super) fn relocate(
        &self,
        guard: &Guard<'_>,
        writer: &mut Writer,
        mut values: &[(Reference, RecordView<'_>)],
        done: &mut Relocated,
    ) -> Result<(), Error> {
        let mut copies = Vec::with_capacity(values.len());
        while !values.is_empty() {
            let taken = self.copy(guard, writer, values, &mut copies);
            self.name_copies(guard, writer, &copies, done)?;
            values = &values[taken?..];
            copies.clear();
        }
        Ok(())
    }

    /// Makes copies durable and repoints the index to them.
    fn name_copies(
        &self,
        guard: &Guard<'_>,
        writer: &mut Writer,
        copies: &[Copied<'_>],
        done: &mut Relocated,
    ) -> Result<(), Error> {
        if copies.is_empty() {
            return Ok(());
        }
        if let Some(open) = writer.segment.as_mut().filter(|_| !twin!(LastLineForgotten)) {
            self.heap.complete(open);
        }
        if !twin!(CopyNamedEarly) {
            self.region().fence();
        }
        done.records += copies.len() as u64;
        done.bytes += copies.iter().map(|copy| copy.new.1).sum::<u64>();
        let mut unflushed = Vec::with_capacity(FLUSHED_TOGETHER);
        let repointed = self.repoint_all(guard, writer, copies, &mut unflushed, done);
        if !twin!(LastRepointedUnflushed) {
            self.index.persist(guard, &mut unflushed);
        }
        repointed
    }

    /// Copies the live ones, as many as one segment takes, and tells how many it has looked at.
    fn copy<'r>(
        &self,
        guard: &Guard<'_>,
        writer: &mut Writer,
        values: &[(Reference, RecordView<'r>)],
        copies: &mut Vec<Copied<'r>>,
    ) -> Result<usize, Error> {
        let mut taken = 0;
        for values in values.chunks(AHEAD) {
            let some = self.copy_some(guard, writer, values, copies)?;
            taken += some;
            if some < values.len() {
                break;
            }
        }
        Ok(taken)
    }

    /// Copies the live ones of up to [`AHEAD`].
    fn copy_some<'r>(
        &self,
        guard: &Guard<'_>,
        writer: &mut Writer,
        values: &[(Reference, RecordView<'r>)],
        copies: &mut Vec<Copied<'r>>,
    ) -> Result<usize, Error> {
        let mut keys = [Key { bytes: &[][..], hash: 0 }; AHEAD];
        let knows = |(reference, _): &(Reference, _)| self.heap.knows_dead(*reference);
        let asks = !(self.sizes_in_words && values.iter().all(knows));
        for (key, (_, record)) in keys.iter_mut().zip(values) {
            *key = self.key(record.key);
            if asks {
                self.index.prefetch_to_write(guard.participant(), *key);
            }
        }
        for (i, (key, (reference, record))) in keys.into_iter().zip(values).enumerate() {
            let (kind, len) = (record.kind(), record.header.record_len());
            let old = self.word(*reference, kind, len);
            if asks {
                self.settle(guard, key.hash)?;
                if !self.index.names(guard, key, old)? {
                    continue;
                }
            }
            let RecordView { key: bytes, value, expires, .. } = *record;
            let content = Content { kind, expires, ..Content::value(bytes, value) };
            if !copies.is_empty() && !self.has_room(Use::Move, &writer.segment, content.record_len()) {
                return Ok(i);
            }
            self.prepare(Use::Move, writer, &content)?;
            let sequence = record.header.sequence.get();
            let copy = self.append(writer, sequence, &content, LastLine::Left);
            let hint = (record.hint() != 0).then_some(record.hint());
            let copied = content.record_len();
            let new = (self.word(copy, kind, copied), copied);
            copies.push(Copied { key, hint, old: (old, len), new, sequence });
        }
        Ok(values.len())
    }

    /// Repoints the index to the copies, where it still names the originals.
    fn repoint_all(
        &self,
        guard: &Guard<'_>,
        writer: &Writer,
        copies: &[Copied<'_>],
        unflushed: &mut Vec<I::Unflushed>,
        done: &mut Relocated,
    ) -> Result<(), Error> {
        // Places of the prefetched entries, as a ring.
        let (mut places, participant) = ([None; AHEAD], guard.participant());
        for (place, ahead) in places.iter_mut().zip(copies) {
            *place = self.index.prefetch_repoint(participant, ahead.hint, ahead.key);
        }
        for (i, copied) in copies.iter().enumerate() {
            let ahead = copies.get(i + AHEAD);
            let next =
                ahead.and_then(|ahead| self.index.prefetch_repoint(participant, ahead.hint, ahead.key));
            let place = mem::replace(&mut places[i % AHEAD], next);
            let Copied { key, hint, old: (old, old_len), new: (new, new_len), sequence } = *copied;
            let mut repointed = self.index.repoint(guard, place, key, old, new)?;
            if repointed.is_none() && self.publishes_late && !twin!(ParkedNotSettled) {
                self.settle(guard, key.hash)?;
                repointed = self.index.repoint(guard, None, key, old, new)?;
            }
            if repointed.is_none()
                && twin!(RepointedBlindly)
                && let Some(found) = self.locate::<false>(guard, key)?
            {
                repointed = self.index.repoint(guard, None, key, found.word, new)?;
            }
            let (old, new) = (reference_of(old), reference_of(new));
            match repointed {
                Some(repointed) => {
                    done.by_hint += u64::from(repointed.by_hint && hint.is_some());
                    unflushed.push(repointed.unflushed);
                    self.heap.note_dead(writer.shard, old, old_len);
                }
                None => {
                    if !twin!(LoserHoldsNothing) {
                        self.heap.hold_tombstones(new, sequence);
                    }
                    self.heap.note_dead(writer.shard, new, new_len);
                }
            }
            if unflushed.len() == FLUSHED_TOGETHER {
                self.index.persist(guard, unflushed);
            }
        }
        Ok(())
    }
}
