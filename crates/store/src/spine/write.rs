//! Writing one key: every kind of write is a decision made on the old record under the key's lock.

use super::{Located, Session, Spine, Writer};
use crate::error::Error;
use crate::options::Twin;
use quipu_parts::epoch::Guard;
use quipu_parts::heap::Reference;
use quipu_parts::heap::segments::Use;
use quipu_parts::record::{HEADER, Kind, RecordView, padded};

/// What a write decided.
pub(crate) enum Change<V> {
    /// Leave the key as it is.
    Keep,
    /// Give it this value.
    Put(V),
    /// Delete it.
    Delete,
}

impl Spine {
    /// Gives `key` this value, whatever it was. The record is on its way to the medium while the old one is looked up,
    /// so that their waits overlap.
    #[inline]
    pub(crate) fn put(&self, session: &mut Session, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.check_key(key)?;
        self.check_value(value)?;
        let hash = self.hash(key);
        let Session { participant, writer } = session;
        let guard = participant.pin();
        self.index.prefetch_to_write(&guard, hash);
        let _stripe = self.stripes.lock(self.stripes.of(hash));
        let new = self.place(writer, Kind::Value, key, value)?;
        let old = self.locate::<false>(&guard, hash, key);
        self.persist_and_publish(&guard, hash, old, new, Kind::Value);
        Ok(())
    }

    /// Locks `key`, shows its record to `decide`, and carries out the decision durably. With `WHOLE` the record shows
    /// its value, otherwise only that it exists.
    #[inline]
    pub(crate) fn modify<const WHOLE: bool, V: AsRef<[u8]>, T>(
        &self,
        session: &mut Session,
        key: &[u8],
        decide: impl FnOnce(Option<&RecordView<'_>>) -> (Change<V>, T),
    ) -> Result<T, Error> {
        self.check_key(key)?;
        let hash = self.hash(key);
        let Session { participant, writer } = session;
        let guard = participant.pin();
        self.index.prefetch_to_write(&guard, hash);
        let _stripe = self.stripes.lock(self.stripes.of(hash));
        let old = self.locate::<WHOLE>(&guard, hash, key);
        let (change, outcome) = decide(old.as_ref().map(|located| &located.record));
        let (kind, value) = match &change {
            Change::Keep => return Ok(outcome),
            Change::Put(value) => (Kind::Value, value.as_ref()),
            Change::Delete if old.is_none() => return Ok(outcome),
            Change::Delete => (Kind::Tombstone, &[][..]),
        };
        self.check_value(value)?;
        let new = self.place(writer, kind, key, value)?;
        self.persist_and_publish(&guard, hash, old, new, kind);
        if kind == Kind::Tombstone {
            self.heap.share_reserve(&mut writer.segment);
        }
        Ok(outcome)
    }

    /// Appends a record to the writer's segment; durable after the next fence.
    #[inline]
    pub(super) fn place(
        &self,
        writer: &mut Writer,
        kind: Kind,
        key: &[u8],
        value: &[u8],
    ) -> Result<Reference, Error> {
        let len = padded(HEADER + (key.len() + value.len()) as u64);
        let Writer { segment, encoder, node } = writer;
        let purpose = if kind == Kind::Tombstone { Use::Delete } else { Use::Put };
        let open = match segment {
            Some(open) if self.heap.has_room(open, len, purpose) => open,
            _ => {
                self.heap.make_room(segment, len, *node, purpose)?;
                segment.as_mut().expect("room was just made")
            }
        };
        let sequence = self.heap.draw();
        let new = self.heap.append(open, encoder, sequence, kind, key, value);
        if kind == Kind::Tombstone {
            self.heap.note_garbage(new, len);
        }
        Ok(new)
    }

    /// Makes the placed record durable, then lets readers see it.
    #[inline]
    fn persist_and_publish(
        &self,
        guard: &Guard<'_>,
        hash: u64,
        old: Option<Located<'_>>,
        new: Reference,
        kind: Kind,
    ) {
        if self.twin == Some(Twin::PublishBeforePersist) {
            self.publish(guard, hash, old, new, kind);
            self.region().fence();
        } else {
            self.region().fence();
            self.publish(guard, hash, old, new, kind);
        }
    }

    /// Lets readers see the new record in place of the old one, and releases that.
    #[inline]
    pub(super) fn publish(
        &self,
        guard: &Guard<'_>,
        hash: u64,
        old: Option<Located<'_>>,
        new: Reference,
        kind: Kind,
    ) {
        match old {
            Some(old) => {
                let word = old.reference.word();
                let done = match kind {
                    Kind::Tombstone => self.index.remove(guard, hash, word),
                    _ => self.index.replace(guard, hash, word, new.word()),
                };
                debug_assert!(done, "the key is locked, so nobody else replaced its reference");
                self.heap.note_garbage(old.reference, old.record.header.record_len());
            }
            None if kind == Kind::Tombstone => {}
            None => self.index.insert(guard, hash, new.word(), &|word| self.rehash(word)),
        }
    }
}
