//! The careful way of compaction, under the locks of the keys: for tombstones and for records that have
//! expired.
//!
//! Whether a tombstone may go depends on the other records of its key, so their writers are locked out
//! meanwhile. An expired record becomes a tombstone, which the index no longer names.

use super::relocate::Relocated;
use crate::engine::AT_ONCE;
use crate::log::{Spine, Writer};
use crate::types::error::Error;
use quipu_parts::epoch::Guard;
use quipu_parts::heap::Reference;
use quipu_parts::heap::segments::{LastLine, Use};
use quipu_parts::heap::values::ValueZones;
use quipu_parts::index::{Index, Key};
use quipu_parts::record::{Content, Kind, RecordView};
use quipu_parts::space::ZoneId;
use quipu_parts::twin;

impl<I: Index> Spine<I> {
    /// Moves those of up to [`AT_ONCE`] such records that have to stay. On an error, those before the failed
    /// one have moved. Large values that have expired are added to `expired`.
    pub(super) fn move_carefully(
        &self,
        guard: &Guard<'_>,
        writer: &mut Writer,
        victim: ZoneId,
        batch: &[(Reference, RecordView<'_>)],
        expired: &mut Vec<ValueZones>,
        done: &mut Relocated,
    ) -> Result<(), Error> {
        let mut hashes = [0; AT_ONCE];
        for (hash, (_, record)) in hashes.iter_mut().zip(batch) {
            let key = self.key(record.key);
            self.index.prefetch_to_write(guard.participant(), key);
            *hash = key.hash;
        }
        let _locks = self.lock_all(guard, &hashes[..batch.len()]);
        // Marks records whose entry in the index is removed once the copies are durable.
        let mut leaves = [false; AT_ONCE];
        let mut outcome = Ok(());
        for (i, (reference, record)) in batch.iter().enumerate() {
            let key = Key { bytes: record.key, hash: hashes[i] };
            let fate = self.fate(guard, victim, key, *reference, record)?;
            if fate == Fate::Dead {
                continue;
            }
            if fate == Fate::Forgotten {
                leaves[i] = true;
                continue;
            }
            let content = Content::tombstone(record.key);
            outcome = self.prepare(Use::Move, writer, &content);
            if outcome.is_err() {
                break;
            }
            self.append(writer, record.header.sequence.get(), &content, LastLine::Left);
            done.bytes += content.record_len();
            done.records += 1;
            leaves[i] = record.kind() != Kind::Tombstone;
        }
        if let Some(open) = &mut writer.segment {
            self.heap.complete(open);
        }
        if !twin!(TombstonesUnfenced) {
            self.region().fence();
        }
        for (i, (old, record)) in batch.iter().enumerate() {
            let (key, len) = (Key { bytes: record.key, hash: hashes[i] }, record.header.record_len());
            let word = self.word(*old, record.kind(), len);
            if !leaves[i] {
                continue;
            }
            if record.is_large() {
                expired.extend(self.zones_of(guard, record));
            }
            let gone = self.index.take(guard, key, None, |named| named == word)?;
            debug_assert!(gone.is_some(), "the key is locked");
            self.heap.note_dead(writer.shard, *old, len);
        }
        outcome
    }

    /// The fate of a record of a victim. Its key is locked.
    fn fate(
        &self,
        guard: &Guard<'_>,
        victim: ZoneId,
        key: Key<'_>,
        reference: Reference,
        record: &RecordView<'_>,
    ) -> Result<Fate, Error> {
        let word = self.word(reference, record.kind(), record.header.record_len());
        let is_named = self.index.names(guard, key, word)?;
        let may_go = || {
            I::DURABLE
                || twin!(TombstoneDroppedEarly)
                || self.heap.outlived(record.header.sequence.get(), victim)
        };
        Ok(match record.kind() {
            Kind::Value | Kind::Large if !is_named => Fate::Dead,
            Kind::Value | Kind::Large if may_go() => Fate::Forgotten,
            // A later record that is damaged proves nothing.
            Kind::Tombstone if may_go() || matches!(self.locate::<false>(guard, key), Ok(Some(_))) => {
                Fate::Dead
            }
            Kind::Value | Kind::Large | Kind::Tombstone => Fate::Stays,
            Kind::Frame | Kind::Void | Kind::Range => Fate::Dead,
        })
    }
}

/// The fate of a record.
#[derive(PartialEq)]
enum Fate {
    /// Nothing depends on it.
    Dead,
    /// It has expired, and no older record of its key can be anywhere: the index need not know of it.
    Forgotten,
    /// It is copied as a tombstone.
    Stays,
}
