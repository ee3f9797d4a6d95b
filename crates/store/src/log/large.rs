//! Large values: their way into zones of their own, before the head goes the way of every record, and their
//! way out when the index lets the head go.
//!
//! The head is an ordinary record of kind [`Kind::Large`], so locks, publication, compaction and recovery
//! treat it as any other. The work around it differs: room for many zones at once, assembly of the value at a
//! read, and zones that are freed when the head is superseded. The next writer that makes room frees them, as
//! soon as no reader is left that could have seen the head.

use super::{Session, Spine, Writer};
use crate::points::{Located, reference_of};
use crate::types::error::Error;
use quipu_parts::commit::StripeGuard;
use quipu_parts::epoch::Guard;
use quipu_parts::heap::SizedReference;
use quipu_parts::heap::segments::{Shard, Use};
use quipu_parts::heap::values::{NewValue, ValueZones};
use quipu_parts::index::{Index, Key};
use quipu_parts::record::{Content, Header, Kind, RecordView, padded};
use quipu_parts::twin;

/// Longest value of any pool. Its head, with zones of 64 KiB and more, is still short.
const VALUE_MAX: u64 = 1 << 30;

impl<I: Index> Spine<I> {
    /// Longest value of this pool: its head is a record like others, and it must fit the pool.
    pub(crate) fn value_limit(&self) -> u64 {
        if I::DURABLE {
            // Recovery reads no records, so it would not know which zones have values.
            return self.inline_limit();
        }
        VALUE_MAX.min(self.heap.longest_value(self.inline_limit())).max(self.inline_limit())
    }

    #[inline]
    pub(super) fn is_large(&self, value: &[u8]) -> bool {
        value.len() as u64 > self.inline_limit()
    }

    /// Gives a key a large value, without a look at the old one.
    #[cold]
    pub(super) fn put_large(&self, session: &mut Session, content: &Content<'_>) -> Result<(), Error> {
        self.check_value(content.value)?;
        self.relieve()?;
        loop {
            let taking = self.heap.taking();
            match self.write_zones(&mut session.writers.cold, content) {
                Ok(new) => {
                    let written = self.with_zones(new, content, |head| self.write_record(session, head));
                    taking.done();
                    return written;
                }
                Err(error) => {
                    drop(taking);
                    self.make_space_or(error, &mut session.writers, self.wanted(content), Use::Put)?;
                }
            }
        }
    }

    /// Gives a key, whose stripe is held, a large value in place of its old record.
    #[cold]
    pub(super) fn replace_by_large(
        &self,
        guard: &Guard<'_>,
        writer: &mut Writer,
        stripe: &StripeGuard<'_>,
        key: Key<'_>,
        old: Option<&Located<'_>>,
        content: &Content<'_>,
    ) -> Result<(), Error> {
        self.check_value(content.value)?;
        let taking = self.heap.taking();
        let new = self.write_zones(writer, content)?;
        let written = self.with_zones(new, content, |head| {
            self.prepare(Use::Put, writer, head)?;
            let placed = self.place(writer, stripe, key, head);
            self.persist_and_publish(guard, stripe, writer.shard, &placed, old)
        });
        taking.done();
        written
    }

    /// Bytes of the record, and zones beside it, that a large value takes.
    pub(super) fn wanted(&self, content: &Content<'_>) -> (u64, u32) {
        let len = content.value.len() as u64;
        let record = padded(content.record_len() - len + self.heap.head_len(len));
        // A length that was checked has few zones.
        (record, self.heap.value_zones(len) as u32)
    }

    /// Writes a value into its zones, durably, when there is a segment with room for its head.
    fn write_zones(&self, writer: &mut Writer, content: &Content<'_>) -> Result<NewValue, Error> {
        self.make_room(Use::Put, &mut writer.segment, self.wanted(content).0, writer.node)?;
        Ok(self.heap.write_value(writer.node, content.value)?)
    }

    /// Commits a value's zones and writes its head, or frees them if the head cannot be written.
    fn with_zones(
        &self,
        new: NewValue,
        content: &Content<'_>,
        write_head: impl FnOnce(&Content<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let late = twin!(ValueCommittedLate);
        if !late {
            self.heap.commit_value(&new);
        }
        let written = write_head(&Content { kind: Kind::Large, value: new.head(), ..*content });
        if written.is_err() {
            self.heap.free_value(new.zones());
        } else if late {
            self.heap.commit_value(&new);
        }
        written
    }

    /// Counts a record that the index named by this word and no longer names, and frees the zones of its
    /// value. If the word does not tell the length, the record's header is read, unless it has been. The
    /// header is passed by pointer, since a view is moved by 16 bytes right after it was written by 8, which
    /// took 10 ns of a put.
    #[inline]
    pub(super) fn release(&self, guard: &Guard<'_>, shard: Shard, word: u64, seen: Option<&Header>) {
        let reference = reference_of(word);
        if I::DURABLE && self.place_of(word).is_none() {
            return;
        }
        if let Some(len) = SizedReference::from_word(word).record_len() {
            self.heap.note_superseded(shard, reference, len);
            return;
        }
        let read = || self.record_of(guard, word).map(|record| record.header);
        let Some(header) = seen.or_else(read) else { return };
        self.heap.note_superseded(shard, reference, header.record_len());
        if header.is_large() {
            self.release_value(guard, word);
        }
    }

    #[cold]
    fn release_value(&self, guard: &Guard<'_>, word: u64) {
        // SAFETY: the record was published until now and does not change, and the guard keeps it from reuse.
        let record = unsafe { RecordView::published(self.region(), self.heap.resolve(reference_of(word))) };
        if let Some(value) = record.and_then(|record| self.zones_of(guard, &record)) {
            if twin!(ValueFreedAtOnce) {
                self.heap.free_value(&value);
            } else {
                self.compactor.retire_value(guard, value);
            }
        }
    }

    /// The zones of the large value that a record names, which was live until now. `None` if the zones belong
    /// to another value: this is damage, which `check` and reads report.
    pub(super) fn zones_of(&self, _guard: &Guard<'_>, head: &RecordView<'_>) -> Option<ValueZones> {
        // SAFETY: only after this are the zones given up.
        self.heap.large_value(head.value).and_then(|value| unsafe { value.own_zones() })
    }
}
