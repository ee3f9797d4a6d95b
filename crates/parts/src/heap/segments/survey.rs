//! Finding the dead records of segments that a store took over from an earlier run by their headers alone.
//!
//! A store whose index survives crashes by itself need not read its records to open (PACMAN section 3.5). It
//! only lacks state in DRAM: how much of each segment is garbage, and which of its records are dead. A
//! *survey* finds that out later, segment by segment: it walks over the records, asks the index about each,
//! and [notes](LogHeap::note_dead) those that the index does not name. A segment is no candidate for cleaning
//! before its survey ends.
//!
//! # Beside writers
//!
//! Meanwhile writers supersede records of the segment and note them dead. Each record still counts once:
//! - The index never starts to name a record of the segment: nobody appends to it, and copies go elsewhere.
//!   So a record that the index does not name is dead for good, and the survey may note it at any time.
//! - A record that the index names may die right after the survey has asked. The writer that supersedes it
//!   got it from the index, and notes it.
//! - If the survey asks between a writer's change of the index and its note, both note the record. Only the
//!   one that sets the record's bit counts its bytes.
//!
//! After the survey, bits and counter are exact except during writes. Before, the counter may be too low.
//!
//! # Ends
//!
//! A segment that a crash has left open has no end mark. Looking for its end takes as long as it has records,
//! so its survey does that, not the open. The survey flushes the records on the way, because after a crash of
//! the process they may be only in a cache, and a mark vouches for them. Then it marks the end. Until then
//! the segment stays as the crash left it: nobody appends to it, cleans it or counts its records, and a
//! further crash leaves it so again. Records that the index names in it were durable before they were named,
//! so they are read as any others. The pool is not marked clean before all ends are.
//!
//! For the same reason, invalid bytes are damage and no end if the index names a record behind them. The
//! search looks behind them, too ([`pass_hole`](super::Scan::pass_hole)), and marks the end behind all named
//! records. As in any sealed segment, the damage keeps the segment from being cleaned and its zone from being
//! freed.
//!
//! # Durable answers
//!
//! After a crash of the process, the index's last change may be only in a cache, and a further crash may
//! revoke it. A record that such an answer declared dead would be live again. So a survey asks for a durable
//! answer. For changes of this run that is not needed: a writer stays pinned until its change is durable, and
//! no segment is freed before it unpins.

use super::header::FIRST_RECORD;
use super::log::LogHeap;
use super::scan::SegmentInfo;
use super::usage::{RecordBytes, Shard};
use crate::space::ZoneId;
use std::ops::Range;

impl LogHeap {
    /// Takes over a segment that was sealed with its records ending at `end`. A survey must find its dead
    /// records.
    pub fn take_over(&self, info: &SegmentInfo, end: u64) {
        let written = end - FIRST_RECORD;
        self.usage.restore(info.zone, RecordBytes { written, ..RecordBytes::default() });
        self.take_over_open(info);
    }

    /// Takes over a segment that a crash has left open. A survey must find its end, and then its dead
    /// records.
    pub fn take_over_open(&self, info: &SegmentInfo) {
        if let Some(dead) = &self.dead {
            dead.restore(info.zone);
        }
        self.lives.begin_unsurveyed(info.zone, info.life_number);
    }

    /// Makes records of a segment that was taken over open durable, those in this range, when this returns.
    pub fn keep_found(&self, info: &SegmentInfo, range: Range<u64>) {
        self.region().flush(self.space.zone_offset(info.zone) + range.start, range.end - range.start);
        self.region().fence();
    }

    /// Marks the end of a segment that was taken over open, durably when this returns, or frees it if it has
    /// no record. All records before the end were [kept](LogHeap::keep_found). Returns whether there are any.
    pub fn end_open(&self, shard: Shard, info: &SegmentInfo, end: u64) -> bool {
        // This may be the first change of the run.
        self.clock().begin(&self.space);
        if end == FIRST_RECORD {
            self.give_up_survey(info.zone);
            self.free(info.zone);
            return false;
        }
        self.seal_at(self.space.zone_offset(info.zone), info.life, end);
        self.region().fence();
        self.note_written(shard, info.zone, end - FIRST_RECORD);
        true
    }

    /// Any segment that is not surveyed. It is not freed before that.
    pub fn unsurveyed(&self) -> Option<ZoneId> {
        self.lives.unsurveyed()
    }

    /// All dead records of this segment have been noted; it becomes a candidate.
    pub fn note_surveyed(&self, zone: ZoneId) {
        if let Some(dead) = &self.dead {
            dead.know(zone);
        }
        self.lives.note_surveyed(zone);
    }

    /// The dead records of this segment cannot be found; it stays as it is.
    pub fn give_up_survey(&self, zone: ZoneId) {
        self.lives.withdraw(zone);
        self.lives.note_surveyed(zone);
    }

    /// Bytes of a segment's records that are counted as garbage, for a check, if all its dead records are
    /// noted.
    pub fn known_garbage(&self, zone: ZoneId) -> Option<u64> {
        let knows = self.dead.as_ref().is_some_and(|dead| dead.knows(zone));
        knows.then(|| self.usage.of_zone(zone).garbage)
    }
}

#[cfg(test)]
mod tests {
    use super::super::log::SHORTEST_RECORD;
    use super::super::test_heap::heap;
    use super::super::{LastLine, PastHole, Position, Use};
    use super::*;
    use crate::heap::Reference;
    use crate::record::{Content, Encoder, LENGTHS};

    /// A heap with a segment of so many records, taken over as a crash has left it, and where they end.
    fn crashed(records: u64) -> (LogHeap, SegmentInfo, u64) {
        let (heap, mut segment, mut encoder) = (heap().with_dead_bits(), None, Encoder::default());
        heap.make_room(&mut segment, 64, None, Use::Put).expect("room");
        let mut open = segment.expect("a segment");
        for _ in 0..records {
            heap.prepare(&open, &mut encoder, &Content::value(b"key", b"value"));
            heap.append(Shard::default(), &mut open, &mut encoder, heap.draw(), LastLine::Written);
        }
        heap.region().fence();
        let (zone, end) = (open.zone, open.next);
        heap.forget(zone);
        // SAFETY: its owner is gone.
        let info = unsafe { heap.segment_info(zone) }.expect("a header");
        heap.take_over_open(&info);
        (heap, info, end)
    }

    fn end_of(heap: &LogHeap, zone: ZoneId) -> Option<u64> {
        // SAFETY: nobody appends.
        unsafe { heap.segment_info(zone) }.expect("a header").sealed_end
    }

    #[test]
    fn a_segment_without_an_end_is_nobodys_until_it_has_one() {
        let (heap, info, end) = crashed(10);
        let is_candidate = || heap.candidates().0.iter().any(|candidate| candidate.zone == info.zone);
        let mut other = None;
        heap.make_room(&mut other, 64, None, Use::Put).expect("room");
        let other = other.expect("a segment");
        assert_ne!(other.zone, info.zone);
        heap.leave(other);
        heap.revoke(|| ());
        heap.seal_idle();
        assert_eq!((end_of(&heap, info.zone), heap.unsurveyed()), (None, Some(info.zone)));
        assert!(!is_candidate() && heap.states().is_none());
        // Superseded meanwhile.
        let (shard, first) = (Shard::default(), Reference::new(info.zone, FIRST_RECORD, heap.zone_shift()));
        heap.note_dead(shard, first, SHORTEST_RECORD);
        heap.keep_found(&info, FIRST_RECORD..end);
        assert!(heap.end_open(shard, &info, end));
        assert_eq!((end_of(&heap, info.zone), heap.unsurveyed()), (Some(end), Some(info.zone)));
        assert!(!is_candidate());
        heap.note_surveyed(info.zone);
        assert_eq!(heap.unsurveyed(), None);
        let candidates = heap.candidates().0;
        let found = candidates.iter().find(|candidate| candidate.zone == info.zone).expect("a candidate");
        assert_eq!((found.written, found.garbage), (end - FIRST_RECORD, SHORTEST_RECORD));
    }

    #[test]
    fn a_hole_is_passed_if_that_takes_little_proof() {
        let (heap, info, end) = crashed(3);
        let start = heap.space().zone_offset(info.zone);
        heap.region().store(start + FIRST_RECORD, 0);
        // SAFETY: nobody appends.
        let mut scan = unsafe { heap.scan(info.zone) }.expect("a header");
        assert!(matches!(scan.advance(), Ok(None)));
        assert_eq!(scan.legible().map(|(_, record)| record.key), Some(&b"key"[..]));
        const ANY: Range<u64> = 1..u64::MAX;
        let len = (end - FIRST_RECORD) / 3;
        // Its own length says where to look, once nothing else may be proved.
        let mut effort = len - 1;
        assert_eq!(scan.pass_hole(&ANY, &mut effort), PastHole::Record);
        assert_eq!((scan.offset(), effort), (FIRST_RECORD + len, len - 1));
        heap.region().store(start + FIRST_RECORD + LENGTHS.start, 0);
        scan = scan.from(Position::START);
        assert_eq!(scan.pass_hole(&ANY, &mut effort), PastHole::Unclear);
        assert_eq!((scan.offset(), effort), (FIRST_RECORD, len - 1));
        effort = len;
        assert_eq!(scan.pass_hole(&ANY, &mut effort), PastHole::Record);
        assert_eq!((scan.offset(), effort), (FIRST_RECORD + len, 0));
        while scan.advance().expect("records").is_some() {}
        assert_eq!(scan.offset(), end);
        assert_eq!(scan.pass_hole(&ANY, &mut effort), PastHole::Nothing);
    }

    #[test]
    fn a_segment_without_records_is_free_again() {
        let (heap, info, end) = crashed(0);
        let free = heap.space().free_zones();
        assert!(!heap.end_open(Shard::default(), &info, end));
        assert_eq!((heap.space().free_zones(), heap.unsurveyed()), (free + 1, None));
        assert!(!heap.space().committed_zones().contains(&info.zone));
        assert!(heap.candidates().0.is_empty() && heap.states().is_some());
    }
}
