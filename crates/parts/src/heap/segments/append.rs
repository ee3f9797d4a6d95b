//! Appending records to a segment that one client owns, so that no lock is needed.
//!
//! Records reach the medium in whole lines: the bytes before a record in its first line are written again,
//! and zeros follow it in its last line. The medium need not read a line that is written as a whole.

use super::log::LogHeap;
use super::usage::Shard;
use crate::heap::Reference;
use crate::record::{Content, Encoder, HEADER, LifeKey};
use crate::space::ZoneId;
use quipu_medium::LINE;

/// A segment that its owner appends to.
#[derive(Debug)]
pub struct OpenSegment {
    pub(super) zone: ZoneId,
    pub(super) start: u64,
    pub(super) life_number: u64,
    pub(super) life: LifeKey,
    /// Offset of the next record.
    pub(super) next: u64,
    /// The records up to here have been handed to the medium: at most `next`, at least the start of its line.
    pub(super) written: u64,
    /// The line of `next`, filled up to `next`.
    pub(super) last_line: [u8; LINE as usize],
    /// The zone has storage up to here: at most to its end.
    pub(super) limit: u64,
    /// Its zone came from the reserve, so puts may not use it.
    pub(super) reserved: bool,
}

impl OpenSegment {
    pub(super) fn new(
        zone: ZoneId,
        start: u64,
        life_number: u64,
        life: LifeKey,
        next: u64,
        limit: u64,
    ) -> OpenSegment {
        let last_line = [0; LINE as usize];
        OpenSegment { zone, start, life_number, life, next, written: next, last_line, limit, reserved: false }
    }
}

/// Whether an append writes the last line of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastLine {
    /// It is written.
    Written,
    /// It is left to the next record or to [`LogHeap::complete`]: several records under one fence write each
    /// line once.
    Left,
}

impl LogHeap {
    /// Encodes the next record of a segment, except for its sequence number. The caller has made room;
    /// nothing changes yet.
    #[inline]
    pub fn prepare(&self, segment: &OpenSegment, encoder: &mut Encoder, content: &Content<'_>) {
        encoder.prepare(self.certifier(), segment.life, segment.next, content);
        bring_along(segment, encoder);
    }

    /// Encodes a frame as the next record of a segment, except for the sequence numbers. Tells `each` the
    /// offsets of its records. The caller has made room; nothing changes yet.
    pub fn prepare_frame<'a>(
        &self,
        segment: &OpenSegment,
        encoder: &mut Encoder,
        contents: impl Iterator<Item = Content<'a>> + Clone,
        each: impl FnMut(u64),
    ) {
        encoder.prepare_frame(segment.next, contents, each);
        bring_along(segment, encoder);
    }

    /// Appends the frame that was prepared for this place, once all its records are numbered. Durable after
    /// the next fence of this thread. Returns the frame's reference; the offsets of its records count from
    /// it.
    pub fn append_frame(
        &self,
        shard: Shard,
        segment: &mut OpenSegment,
        encoder: &mut Encoder,
        sequence: u64,
    ) -> Reference {
        encoder.check_body(self.certifier(), segment.life);
        let frame = self.append(shard, segment, encoder, sequence, LastLine::Written);
        self.note_dead(shard, frame, HEADER);
        frame
    }

    /// Appends the record that was prepared for this place. Durable after the next fence of this thread.
    // Always inlined, so that `last_line` is known at compile time.
    #[inline(always)]
    pub fn append(
        &self,
        shard: Shard,
        segment: &mut OpenSegment,
        encoder: &mut Encoder,
        sequence: u64,
        last_line: LastLine,
    ) -> Reference {
        debug_assert_eq!(encoder.offset(), segment.next, "prepared for another place");
        encoder.stamp(sequence);
        let (offset, len) = (segment.next, encoder.record().len() as u64);
        segment.next = offset + len;
        if let Some(last) = encoder.lines().last_chunk() {
            segment.last_line = *last;
        }
        self.note_written(shard, segment.zone, len);
        let first_line = offset / LINE * LINE;
        let end = match last_line {
            LastLine::Written => segment.next.next_multiple_of(LINE),
            LastLine::Left => segment.next / LINE * LINE,
        };
        if end > first_line {
            let known = segment.written - first_line;
            let lines = &encoder.lines()[..(end - first_line) as usize];
            self.region().write_lines_nt(segment.start + first_line, lines, known as usize);
            segment.written = end.min(segment.next);
        }
        Reference::new(segment.zone, offset, self.zone_shift())
    }

    /// Writes the last line of the last record, if it was left out. Durable after the next fence of this
    /// thread.
    #[inline]
    pub fn complete(&self, segment: &mut OpenSegment) {
        if segment.written < segment.next {
            let line = segment.next / LINE * LINE;
            // A simulated run that is stopped unwinds its tasks in the middle of an append.
            let Some(known) = segment.written.checked_sub(line) else { return };
            self.region().write_lines_nt(segment.start + line, &segment.last_line, known as usize);
            segment.written = segment.next;
        }
    }
}

/// Fills in the bytes before the record in its first line.
#[inline]
fn bring_along(segment: &OpenSegment, encoder: &mut Encoder) {
    let before = encoder.before();
    before.copy_from_slice(&segment.last_line[..before.len()]);
}
