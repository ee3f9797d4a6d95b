//! The walk over an index that survives a crash by itself (PACMAN sections 2.1 and 3.5).
//!
//! The index is believed, and no record is: a record counts if the index names it. A record that the index
//! does not name is dead for good. So
//! - a put is acknowledged when the index has durably named the record, which was durable before;
//! - a deletion takes the key out of the index, durably, and writes nothing; there are no tombstones, and an
//!   older record that still exists cannot come back;
//! - a put that finds no room in the index changes nothing: its record is dead. To make that rare, the put
//!   asks the index for room before it places the record;
//! - a batch of several keys cannot be atomic: after a crash nothing would name the records of a frame that
//!   are missing in the index.
//!
//! Compaction first surveys the segments of an earlier run for dead records: see [`LogHeap::take_over`] and
//! the module behind it, which has the argument.

use super::{Session, Spine, Writer};
use crate::log::recovery::MOST_EFFORT;
use crate::points::reference_of;
use crate::types::error::Error;
use quipu_parts::epoch::Guard;
#[cfg(doc)]
use quipu_parts::heap::segments::LogHeap;
use quipu_parts::heap::segments::{Found, PastHole, Position, Scan, ScanError, Shard};
use quipu_parts::index::{Index, Key};
use quipu_parts::record::{HEADER, Kind, RecordView};
use quipu_parts::space::ZoneId;
use std::collections::BTreeSet;

/// With more free zones than this, beside those that the index leaves, it is not asked for room. It would
/// have to take that many between the question and the change.
const PLENTY: u32 = 8;

/// The least number of records that a survey takes at a time, also where a cleaner moves them one by one.
const LEAST_PIECE: usize = 32;

/// A segment that is being surveyed, and the position reached.
pub(super) type Surveying = Option<(ZoneId, Position)>;

impl<I: Index> Spine<I> {
    /// Ensures, unless others take the room, that the index can take so many keys of at most so many bytes.
    /// The caller's records are not placed yet.
    #[inline]
    pub(super) fn index_room(&self, guard: &Guard<'_>, keys: usize, key_len: usize) -> Result<(), Error> {
        if !I::DURABLE || self.heap.space().free_zones() > self.heap.reserve() + PLENTY {
            return Ok(());
        }
        Ok(self.index.make_room(guard, keys, key_len)?)
    }

    /// Deletes a key by taking it out of the index.
    pub(super) fn take_out(&self, session: &mut Session, key: &[u8]) -> Result<(), Error> {
        self.relieve()?;
        let Session { participant, writers, .. } = session;
        let key = self.key(key);
        self.index.prefetch_to_write(participant, key);
        self.common.stripes.prefetch(key.hash);
        let guard = participant.pin();
        let _stripe = self.lock(&guard, key.hash);
        self.forget(&guard, key.hash);
        self.erase(&guard, &mut writers.cold, key)
    }

    /// Deletes a key that the caller has locked by taking it out of the index.
    pub(super) fn erase(&self, guard: &Guard<'_>, writer: &mut Writer, key: Key<'_>) -> Result<(), Error> {
        // The first number of a run makes its begin durable, which must precede every change. No record has
        // this number.
        self.heap.clock().draw_above(self.heap.space(), &mut writer.numbers, 0);
        let mut header = None;
        let old = self.index.take(guard, key, None, |word| {
            header = self.named::<false>(guard, word, key.bytes).map(|named| named.record.header);
            header.is_some()
        })?;
        if let Some(old) = old {
            self.release(guard, writer.shard, old, header);
        }
        Ok(())
    }

    /// Surveys the next few records of a segment whose dead records are not known yet, and tells whether
    /// there was one. One worker surveys at a time; the others wait for it.
    pub(super) fn survey(&self, guard: &Guard<'_>, writer: &Writer, piece: usize) -> Result<bool, Error> {
        if !I::DURABLE {
            return Ok(false);
        }
        let mut surveying = self.compactor.surveying.lock();
        let begun = surveying.take().or_else(|| Some((self.heap.unsurveyed()?, Position::START)));
        let Some((zone, position)) = begun else { return Ok(false) };
        *surveying = self.survey_piece(guard, writer, zone, position, piece.max(LEAST_PIECE))?;
        Ok(true)
    }

    /// Surveys a piece; returns where to continue, unless the segment is done.
    fn survey_piece(
        &self,
        guard: &Guard<'_>,
        writer: &Writer,
        zone: ZoneId,
        position: Position,
        piece: usize,
    ) -> Result<Surveying, Error> {
        // SAFETY: nobody appends to the segment, and it is not given back before it has been surveyed.
        let Ok(scan) = (unsafe { self.heap.scan(zone) }) else {
            self.heap.give_up_survey(zone);
            return Ok(None);
        };
        let mut scan = scan.from(position);
        if scan.info().sealed_end.is_none() {
            // As in a sealed segment, an unreadable record stays as it is.
            return Ok(self.look_for_end(guard, writer.shard, scan, piece).unwrap_or_else(|_| {
                self.heap.give_up_survey(zone);
                None
            }));
        }
        for _ in 0..piece {
            match scan.advance() {
                Ok(Some(Found::Record { reference, record })) => {
                    let len = record.header.record_len();
                    if !self.is_live(guard, &record, self.word(reference, record.kind(), len))? {
                        self.heap.note_dead(writer.shard, reference, len);
                    } else if record.expires != 0 {
                        self.heap.note_expiring(reference, len, record.expires);
                    }
                }
                Ok(Some(Found::Frame { reference, .. })) => {
                    self.heap.note_dead(writer.shard, reference, HEADER);
                }
                Ok(None) => {
                    self.heap.note_surveyed(zone);
                    return Ok(None);
                }
                // As with a victim, the segment stays as it is, if need be for ever.
                Ok(Some(Found::Gap { .. })) | Err(_) => {
                    self.heap.give_up_survey(zone);
                    return Ok(None);
                }
            }
        }
        Ok(Some((zone, scan.position())))
    }

    /// Passes over the next few records of a segment that a crash has left open, and marks its end if it
    /// comes there. Returns where to continue.
    ///
    /// # Errors
    /// [`ScanError::Unknown`] for a record of a newer version: the position behind it is unknown.
    fn look_for_end(
        &self,
        guard: &Guard<'_>,
        shard: Shard,
        mut scan: Scan<'_>,
        piece: usize,
    ) -> Result<Surveying, ScanError> {
        let (info, from) = (scan.info(), scan.offset());
        for _ in 0..piece {
            if scan.advance()?.is_none() {
                let end = self.end_of_named(guard, scan)?;
                self.heap.keep_found(&info, from..end);
                let has_records = self.heap.end_open(shard, &info, end);
                return Ok(has_records.then_some((info.zone, Position::START)));
            }
        }
        self.heap.keep_found(&info, from..scan.offset());
        Ok(Some((info.zone, scan.position())))
    }

    /// The end of a segment that a crash has left open. It is the first place where nothing proves itself,
    /// unless the index names a record there or behind it. Then the place is damaged, and the end is behind
    /// the last named record; the segment's survey will meet the damage, and leave the segment as it is.
    /// Where the index is damaged, a record counts as named.
    fn end_of_named(&self, guard: &Guard<'_>, mut scan: Scan<'_>) -> Result<u64, ScanError> {
        let is_named = |reference, record: &RecordView<'_>| {
            let word = self.word(reference, record.kind(), record.header.record_len());
            self.is_live(guard, record, word).unwrap_or(true)
        };
        let (mut end, mut effort) = (scan.offset(), MOST_EFFORT * self.heap.space().zone_size());
        loop {
            if let Some((reference, record)) = scan.legible().filter(|(at, record)| is_named(*at, record)) {
                end = reference.offset(self.heap.zone_shift()) + record.header.record_len();
            }
            match scan.pass_hole(&self.drawn(), &mut effort) {
                PastHole::Record => {}
                PastHole::Nothing => return Ok(end),
                PastHole::Unclear => return Ok(self.end_by_index(guard, scan.info().zone, end)),
            }
            while let Some(found) = scan.advance()? {
                if let Found::Record { reference, record } = found
                    && is_named(reference, &record)
                {
                    end = scan.offset();
                }
            }
        }
    }

    /// The end of a segment's records by the index alone: behind the last record that it names, and at least
    /// `least`. The index names nothing anew there meanwhile. With a damaged index, the end is the zone's.
    fn end_by_index(&self, guard: &Guard<'_>, zone: ZoneId, least: u64) -> u64 {
        let (shift, zone_size) = (self.heap.zone_shift(), self.heap.space().zone_size());
        let (mut end, mut cursor, mut words) = (least, I::Cursor::default(), Vec::new());
        loop {
            let Ok(more) = self.index.next_batch(guard, &mut cursor, &mut words) else { return zone_size };
            for word in words.drain(..).filter(|word| reference_of(*word).zone(shift) == zone) {
                let len = self.record_of(guard, word).map_or(zone_size, |record| record.header.record_len());
                end = end.max(reference_of(word).offset(shift).saturating_add(len).min(zone_size));
            }
            if !more {
                return end;
            }
        }
    }

    /// Marks the ends of all segments that a crash has left open, in a store without users.
    ///
    /// # Errors
    /// [`Error::NewerFormat`] if one has a record that a newer version wrote.
    pub(crate) fn end_all_open(&self) -> Result<(), Error> {
        if !I::DURABLE {
            return Ok(());
        }
        *self.compactor.surveying.lock() = None;
        let participant = self.common.epochs.register();
        let guard = participant.pin();
        let of_index: BTreeSet<_> = self.index.zones().into_iter().collect();
        let space = self.heap.space();
        for zone in space.committed_zones().into_iter().filter(|zone| !of_index.contains(zone)) {
            // SAFETY: nobody uses the store.
            let Ok(scan) = (unsafe { self.heap.scan(zone) }) else { continue };
            if scan.info().sealed_end.is_none() {
                let start = space.zone_offset(zone);
                let newer =
                    |_| Error::NewerFormat { what: format!("a record in the segment at byte {start}") };
                self.look_for_end(&guard, Shard::default(), scan, usize::MAX).map_err(newer)?;
            }
        }
        Ok(())
    }

    /// Whether the index names a record. If it does not, that fact is durable.
    fn is_live(&self, guard: &Guard<'_>, record: &RecordView<'_>, word: u64) -> Result<bool, Error> {
        if record.kind() != Kind::Value {
            return Ok(false);
        }
        let key = self.key(record.key);
        if self.index.names(guard, key, word)? {
            return Ok(true);
        }
        let named =
            self.index.get(guard, key, |word| self.named::<false>(guard, word, key.bytes).is_some())?;
        Ok(named == Some(word))
    }
}
