//! The careful way of compaction, under the locks of the keys: for tombstones and for records that have expired.
//!
//! Whether a tombstone may go depends on what else there is of its key, so nobody may change that meanwhile. And a record that has
//! expired becomes a tombstone, which the index names no more.

use super::relocate::Relocated;
use crate::error::Error;
use crate::options::Twin;
use crate::spine::batch::BATCH;
use crate::spine::{Spine, Writer};
use quipu_parts::epoch::Guard;
use quipu_parts::heap::Reference;
use quipu_parts::heap::segments::{LastLine, Use};
use quipu_parts::heap::values::ValueZones;
use quipu_parts::index::{Index, Key};
use quipu_parts::record::{Content, Kind, RecordView};
use quipu_parts::space::ZoneId;

impl<I: Index> Spine<I> {
    /// Moves what has to stay of up to [`BATCH`] such records. On an error, those before the one that failed have moved. Large
    /// values that have expired are added to `expired`.
    pub(super) fn move_carefully(
        &self,
        guard: &Guard<'_>,
        writer: &mut Writer,
        victim: ZoneId,
        batch: &[(Reference, RecordView<'_>)],
        expired: &mut Vec<ValueZones>,
        done: &mut Relocated,
    ) -> Result<(), Error> {
        let mut hashes = [0; BATCH];
        for (hash, (_, record)) in hashes.iter_mut().zip(batch) {
            let key = self.key(record.key);
            self.index.prefetch_to_write(key);
            *hash = key.hash;
        }
        let _locks = self.lock_all(guard, &hashes[..batch.len()]);
        let mut turns = [const { Turn::Stays }; BATCH];
        let mut outcome = Ok(());
        for (i, (reference, record)) in batch.iter().enumerate() {
            let key = Key { bytes: record.key, hash: hashes[i] };
            let content = match self.fate(guard, victim, key, *reference, record)? {
                Fate::Dead => continue,
                Fate::Forgotten => {
                    turns[i] = Turn::Leaves;
                    continue;
                }
                Fate::Moves(content) => content,
            };
            outcome = self.prepare_for(Use::Move, writer, &content);
            if outcome.is_err() {
                break;
            }
            let copy = self.append(writer, record.header.sequence.get(), &content, LastLine::Left);
            done.bytes += content.record_len();
            done.records += 1;
            turns[i] = match (record.kind(), content.kind) {
                (Kind::Tombstone, _) => Turn::Stays,
                (_, Kind::Tombstone) => Turn::Leaves,
                (kind, _) => Turn::Names(self.word(copy, kind, content.record_len())),
            };
        }
        if let Some(open) = &mut writer.segment {
            self.heap.complete(open);
        }
        self.region().fence();
        for (i, (old, record)) in batch.iter().enumerate() {
            let (key, len) = (Key { bytes: record.key, hash: hashes[i] }, record.header.record_len());
            let word = self.word(*old, record.kind(), len);
            let changed = match turns[i] {
                Turn::Stays => continue,
                Turn::Leaves => {
                    if record.is_large() {
                        expired.extend(self.zones_of(guard, record));
                    }
                    self.index.take(guard, key, |named| named == word)?.is_some()
                }
                Turn::Names(copy) => self.index.replace(guard, key, word, copy)?,
            };
            debug_assert!(changed, "the key is locked");
            self.heap.note_dead(writer.shard, *old, len);
        }
        outcome
    }

    /// What becomes of a record of a victim. Its key is locked.
    fn fate<'r>(
        &self,
        guard: &Guard<'_>,
        victim: ZoneId,
        key: Key<'_>,
        reference: Reference,
        record: &RecordView<'r>,
    ) -> Result<Fate<'r>, Error> {
        let word = self.word(reference, record.kind(), record.header.record_len());
        let is_named = self.index.names(guard, key, word)?;
        let may_go = || {
            I::DURABLE
                || self.twin == Some(Twin::TombstoneDroppedEarly)
                || self.heap.outlived(record.header.sequence.get(), victim)
        };
        Ok(match record.kind() {
            Kind::Value | Kind::Large if !is_named => Fate::Dead,
            kind @ (Kind::Value | Kind::Large) if !self.has_expired(record) => {
                let RecordView { key, value, expires, .. } = *record;
                Fate::Moves(Content { kind, expires, ..Content::value(key, value) })
            }
            Kind::Value | Kind::Large if may_go() => Fate::Forgotten,
            Kind::Tombstone if may_go() || self.locate::<false>(guard, key)?.is_some() => Fate::Dead,
            Kind::Value | Kind::Large | Kind::Tombstone => Fate::Moves(Content::tombstone(record.key)),
            Kind::Frame | Kind::Void => Fate::Dead,
        })
    }
}

/// What becomes of a record.
enum Fate<'r> {
    /// Nothing depends on it.
    Dead,
    /// It has expired, and no older record of its key can be anywhere: the index need not know of it.
    Forgotten,
    /// It is copied, one that has expired as a tombstone.
    Moves(Content<'r>),
}

/// What becomes of a record's entry in the index, once the copies are durable.
enum Turn {
    /// Nothing.
    Stays,
    /// It goes.
    Leaves,
    /// It has this word, of the copy.
    Names(u64),
}
