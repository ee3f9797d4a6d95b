//! Segments of an earlier run that a store took over by their headers alone, and finding out what is dead in them.
//!
//! A store whose index survives crashes by itself need not read its records to open (PACMAN section 3.5). What it lacks then
//! is in DRAM only: how much of each segment is garbage, and which of its records are dead. That is found out later, segment by
//! segment, by a *survey*: it walks over the records, asks the index about each, and [notes](LogHeap::note_dead) those that the
//! index does not name. Before its survey is over a segment is no candidate for cleaning.
//!
//! # Beside writers
//!
//! Writers supersede records of such a segment meanwhile, and note them dead. Each record is noted once all the same:
//! - The index names no record of the segment anew: nobody appends to it, and copies go elsewhere. So a record that it does not
//!   name is dead for good, and the survey may say so at any time after.
//! - A record that it names when asked may die right after. Whoever supersedes it notes it, since it was the index that told
//!   them of it.
//! - Both may note the same record, if the survey asks between the change of the index and the note. The record's bit is
//!   set by one of them; only that one counts its bytes.
//!
//! So the bits and the counter of a segment are exact when its survey is over and nobody is at work, and until then the counter
//! is too low if anything.
//!
//! # Ends
//!
//! A segment that a crash has left open has no end mark. To look for its end takes as long as it has records, so that is not
//! done when the store opens either, but at the beginning of its survey. What is passed over on the way is flushed, since after a
//! crash of the process alone it may stand in a cache, and a mark vouches for all before it; then the end is marked.
//! Until then the segment is as the crash has left it: nobody appends to it, cleans it or counts its records, and a further crash
//! leaves it so again. What the index names in it was durable before it was named, so that is read like any other record. A pool is
//! not marked clean before all ends are.
//!
//! For the same reason an end that has something behind it that the index names is none, but damage. Whoever looks for the end looks behind it,
//! too ([`pass_hole`](super::Scan::pass_hole)), and marks the end behind all that is named: as in any segment that was sealed, the
//! damage keeps it from being cleaned and its zone from being freed.
//!
//! # What is not durable yet
//!
//! That the index does not name a record may be something that a crash takes back: after a crash of the process alone, its last
//! change may stand in a cache, and whoever made it is gone. A record that such an answer declared dead would come to life
//! again. So whoever surveys asks for an answer that is durable. (In later runs of the same segment's life that is not needed:
//! who has changed the index is pinned until the change is durable, and a segment is not freed before they have left.)

use super::header::FIRST_RECORD;
use super::log::LogHeap;
use super::scan::SegmentInfo;
use super::usage::{RecordBytes, Shard};
use crate::space::ZoneId;
use std::ops::Range;

impl LogHeap {
    /// Takes over a segment that was sealed with its records ending at `end`. What is dead in it is to be found out.
    pub fn take_over(&self, info: &SegmentInfo, end: u64) {
        let written = end - FIRST_RECORD;
        self.usage.restore(info.zone, RecordBytes { written, ..RecordBytes::default() });
        self.take_over_open(info);
    }

    /// Takes over a segment that a crash has left open. Where its records end is to be found out, and then what is dead in it.
    pub fn take_over_open(&self, info: &SegmentInfo) {
        if let Some(dead) = &self.dead {
            dead.restore(info.zone);
        }
        self.lives.begin_unsurveyed(info.zone, info.life_number);
    }

    /// Makes records of a segment that was taken over open durable for good: those in this range of it, when this returns.
    pub fn keep_found(&self, info: &SegmentInfo, range: Range<u64>) {
        self.region().flush(self.space.zone_offset(info.zone) + range.start, range.end - range.start);
        self.region().fence();
    }

    /// Marks the end of a segment that was taken over open, durably when this returns, or frees it if it has no record. All records
    /// before it were [kept](LogHeap::keep_found). Tells whether there is one.
    pub fn end_open(&self, shard: Shard, info: &SegmentInfo, end: u64) -> bool {
        // Nobody may have written in this run yet.
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

    /// A segment of which it is not known what is dead in it, if there is one. It is not given back before that is known.
    pub fn unsurveyed(&self) -> Option<ZoneId> {
        self.lives.unsurveyed()
    }

    /// Everything that is dead in this segment has been noted; from here on it is a candidate.
    pub fn note_surveyed(&self, zone: ZoneId) {
        if let Some(dead) = &self.dead {
            dead.know(zone);
        }
        self.lives.note_surveyed(zone);
    }

    /// What is dead in this segment cannot be found out: it stays as it is.
    pub fn give_up_survey(&self, zone: ZoneId) {
        self.lives.withdraw(zone);
        self.lives.note_surveyed(zone);
    }

    /// Bytes of the records of a segment that are counted as garbage, for a check, if all that are dead in it have been noted.
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
