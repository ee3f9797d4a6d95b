//! A place that was given away. Its owner writes a record there, makes it durable, and publishes it; or the
//! place is covered, so that nothing in it ever counts.

use super::place::{CLOSED, Nlog};
use crate::heap::segments::{FIRST_RECORD, Shard};
use crate::heap::{Numbers, Reference};
use crate::record::{Content, Encoder, LifeKey};
use crate::space::ZoneId;
use crate::sync::atomic::Ordering;
use crate::sync::panicking;
use crate::twin;
use quipu_medium::{LINE, WORD};

/// A place in a file, whose owner is one of the file's writers until this drops.
///
/// A record that is valid and that the index never named would win at a later recovery, since nothing names
/// it as a parent. So a place whose record is not [published](Spot::published) is covered, durably. The owner
/// holds the stripe of the key until then.
#[must_use = "the place is covered when it drops"]
pub struct Spot<'h> {
    nlog: Nlog<'h>,
    zone: ZoneId,
    /// Where the zone begins.
    start: u64,
    offset: u64,
    len: u64,
    life_number: u64,
    life: LifeKey,
    is_published: bool,
}

impl<'h> Spot<'h> {
    pub(super) fn new(
        nlog: Nlog<'h>,
        zone: ZoneId,
        start: u64,
        offset: u64,
        len: u64,
        (life_number, life): (u64, LifeKey),
    ) -> Spot<'h> {
        Spot { nlog, zone, start, offset, len, life_number, life, is_published: false }
    }

    /// The record that stands here, or will.
    #[inline]
    pub fn reference(&self) -> Reference {
        Reference::new(self.zone, self.offset, self.nlog.heap.zone_shift())
    }

    /// Bytes of the place.
    #[inline]
    pub fn taken(&self) -> u64 {
        self.len
    }

    /// Whether it is the first of its file.
    #[inline]
    pub fn begins_file(&self) -> bool {
        self.offset == FIRST_RECORD
    }

    /// Draws a number for the record from a client's batch, above `newest` and above the life of the file.
    #[inline]
    pub fn draw_above(&self, numbers: &mut Numbers, newest: u64) -> u64 {
        let heap = self.nlog.heap;
        let life_number = if twin!(LifeUndercut) { 0 } else { self.life_number };
        heap.clock().draw_above(heap.space(), numbers, newest.max(life_number))
    }

    /// Writes a record, which fits. It is durable after the next fence of this thread, unless a line of it is
    /// held back: that one is to be [put](Nlog::put_held_back) first.
    #[inline]
    #[must_use = "a line may be held back"]
    pub fn write(&self, encoder: &mut Encoder, content: &Content<'_>, sequence: u64) -> Option<FirstLine> {
        let heap = self.nlog.heap;
        debug_assert!(content.record_len() <= self.len, "the place was made for it");
        if heap.certifier().is_of_headers_alone() {
            return self.write_op_last(encoder, content, sequence);
        }
        encoder.prepare(heap.certifier(), self.life, self.offset, content);
        encoder.stamp(sequence);
        heap.region().write_lines_nt(self.start + self.offset, encoder.lines(), 0);
        None
    }

    /// Writes a record whose first word, the *op word*, is to arrive last (section III-E, "Consistency of
    /// write operations"). Within a line it does so by itself.
    #[inline(never)]
    fn write_op_last(
        &self,
        encoder: &mut Encoder,
        content: &Content<'_>,
        sequence: u64,
    ) -> Option<FirstLine> {
        let (nlog, at) = (self.nlog, self.start + self.offset);
        encoder.prepare_by_header(nlog.heap.certifier(), self.life, self.offset, content);
        encoder.stamp(sequence);
        let (first, others) = encoder.lines().split_first_chunk().expect("a record has a line");
        let first = FirstLine { at, bytes: *first };
        if !others.is_empty() {
            nlog.heap.region().write_lines_nt(at + LINE, others, 0);
            if !twin!(OpBesideEntry) {
                return Some(first);
            }
        }
        nlog.put_first_line(&first);
        None
    }

    /// The index names the record, which is durable.
    #[inline]
    pub fn published(mut self) {
        self.is_published = true;
    }
}

/// The first line of a record that says whether the record is there, held back until the others are durable.
pub struct FirstLine {
    at: u64,
    bytes: [u8; LINE as usize],
}

impl Drop for Spot<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.is_published {
            if panicking() {
                // Nobody knows whether the index names the record. The file is never sealed then.
                return;
            }
            self.nlog.cover(self.zone, self.life, self.offset, self.len);
            self.nlog.heap.region().fence();
        }
        self.nlog.leave(self.zone);
    }
}

impl Nlog<'_> {
    /// Writes the first lines of records that this thread held back, behind a fence for their other lines.
    /// Durable with the next fence.
    #[inline]
    pub fn put_held_back(self, lines: &[FirstLine]) {
        if !lines.is_empty() {
            self.fence();
            lines.iter().for_each(|line| self.put_first_line(line));
        }
    }

    /// Writes a first line, its op word last: that one never arrives before the rest of the line. Durable
    /// with the next fence.
    fn put_first_line(self, line: &FirstLine) {
        let (region, (op, rest)) = (self.heap.region(), line.bytes.split_at(WORD as usize));
        region.write(line.at + WORD, rest);
        region.store(line.at, u64::from_le_bytes(op.try_into().expect("a word")));
        region.flush(line.at, LINE);
    }

    /// Covers a place with a void record. Durable with the next fence.
    #[cold]
    pub(super) fn cover(self, zone: ZoneId, life: LifeKey, offset: u64, len: u64) {
        self.heap.cover_at(zone, life, offset, len);
        let reference = Reference::new(zone, offset, self.heap.zone_shift());
        self.heap.note_garbage(Shard::default(), reference, len);
    }

    /// Gives up the place of a writer. The last one of a closed file seals it: all others had fenced and
    /// published before they left.
    #[inline]
    fn leave(self, zone: ZoneId) {
        let was_last = self.file(zone).flight.fetch_sub(1, Ordering::AcqRel) == CLOSED | 1;
        if was_last && !twin!(SealedInFlight) {
            self.seal(zone);
        }
    }

    /// Marks the end of a closed file without writers, durably. From then on it may be cleaned.
    #[cold]
    pub(super) fn seal(self, zone: ZoneId) {
        let end = self.file(zone).end.load(Ordering::Relaxed);
        self.heap.seal_file(zone, end);
        self.note_sealed();
    }
}
