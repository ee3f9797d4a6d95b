//! Appending records to a segment that one client owns, so that nobody has to be kept out.
//!
//! Records are handed to the medium in whole lines: what stands before a record in its first line is written again, and
//! zeros follow it in its last one. A line that is written in one go is one that the medium need not read.

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
    /// Where the next record goes.
    pub(super) next: u64,
    /// Up to where the records have been handed to the medium: at most `next`, at least the start of its line.
    pub(super) written: u64,
    /// The line of `next`, filled up to there.
    pub(super) last_line: [u8; LINE as usize],
    /// Up to where there is storage: at most the end of the zone.
    pub(super) limit: u64,
    /// Its zone came from the reserve, so it is not for puts.
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

/// What becomes of the line that an appended record ends in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastLine {
    /// It is written.
    Written,
    /// It is left to the next record or to [`LogHeap::complete`]: several records under one fence write each line once.
    Left,
}

impl LogHeap {
    /// Builds the next record of a segment, all but its sequence number. The caller has made room; nothing changes yet.
    #[inline]
    pub fn prepare(&self, segment: &OpenSegment, encoder: &mut Encoder, content: &Content<'_>) {
        encoder.prepare(self.certifier(), segment.life, segment.next, content);
        bring_along(segment, encoder);
    }

    /// Builds a frame as the next record of a segment, all but the sequence numbers; `each` is told the places of its
    /// records in it. The caller has made room; nothing changes yet.
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

    /// Appends the frame that was prepared for this place and whose records were all numbered. Durable after the next fence
    /// of this thread. Returns the reference of the frame, from which the places of its records count.
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
    // Always, so that what becomes of the last line is decided when this is compiled.
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

    /// Writes the line that the last record ends in, if it was left out. Durable after the next fence of this thread.
    #[inline]
    pub fn complete(&self, segment: &mut OpenSegment) {
        if segment.written < segment.next {
            let line = segment.next / LINE * LINE;
            let known = segment.written - line;
            self.region().write_lines_nt(segment.start + line, &segment.last_line, known as usize);
            segment.written = segment.next;
        }
    }
}

/// Fills in what stands before the record in its first line.
#[inline]
fn bring_along(segment: &OpenSegment, encoder: &mut Encoder) {
    let before = encoder.before();
    before.copy_from_slice(&segment.last_line[..before.len()]);
}
