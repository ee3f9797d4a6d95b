//! The proof of one record at its place, for a reader that the index has led there.
//!
//! A scan proves all records of a segment in order. A reader has only a reference, and other threads may
//! append to the segment meanwhile. So only the segment's header, the record, and the frame around it, if it
//! has one, are read.
//!
//! A record of a frame has a check of zero, and nothing in it tells where the frame begins. The search for
//! the frame goes backwards from the record: a candidate whose records lead to this one must prove itself.
//! The authors of values decide how many candidates there are. If there are too many, the search starts again
//! from the first record of the segment, where no value can interfere.
//!
//! Only the record is borrowed. A candidate may reach to where the owner of the segment is writing, so it is
//! proved in a copy.

use super::header::FIRST_RECORD;
use super::log::LogHeap;
use crate::heap::Reference;
use crate::record::{HEADER, Header, Kind, LifeKey, RecordView};
use crate::space::ZoneId;
use std::ops::Range;
use zerocopy::{FromZeros, IntoBytes};

/// How many times the bytes of a segment may be read from candidates for the frame of one record.
const MOST_EFFORT: u64 = 4;

impl LogHeap {
    /// The record at a reference, if it proves itself there: by its own check, or by that of the frame around
    /// it.
    ///
    /// # Safety
    /// As for [`RecordView::published`]: the referenced record is immutable and cannot be reused while the
    /// view lives.
    #[cold]
    pub unsafe fn prove(&self, reference: Reference) -> Option<RecordView<'_>> {
        let (zone, offset) = (reference.zone(self.zone_shift()), reference.offset(self.zone_shift()));
        if offset < FIRST_RECORD {
            return None;
        }
        let life = self.proved_life(zone)?;
        // SAFETY: forwarded.
        let bytes = unsafe { self.claimed(zone, offset) }?;
        if let Ok(record) = RecordView::certified(bytes, self.certifier(), life, offset) {
            return (record.kind() != Kind::Frame).then_some(record);
        }
        let record = RecordView::member(bytes).filter(|record| record.header.check.get() == 0)?;
        let start = self.space().checked_zone_offset(zone)?;
        let place = offset..offset + record.header.record_len();
        let mut search = Search { heap: self, start, life, record: place, effort: 0, copy: Vec::new() };
        (search.backwards().unwrap_or_else(|| search.forwards())).then_some(record)
    }

    /// The contribution of a segment's life to the checks of its records, if its header proves itself.
    fn proved_life(&self, zone: ZoneId) -> Option<LifeKey> {
        self.proved_header(zone).map(|(_, life)| life)
    }

    /// The bytes that the record at this offset of a zone claims, if the zone has so many.
    ///
    /// # Safety
    /// As for [`prove`](LogHeap::prove).
    unsafe fn claimed(&self, zone: ZoneId, offset: u64) -> Option<&[u8]> {
        let start = self.space().checked_zone_offset(zone)?;
        let room = self.space().zone_size().checked_sub(offset)?;
        let len_of =
            |head: &[u8]| RecordView::stated_len(head).filter(|len| *len <= room).unwrap_or_default();
        // SAFETY: forwarded.
        unsafe { self.region().bytes_sized(start + offset, HEADER, len_of) }
    }
}

struct Search<'a> {
    heap: &'a LogHeap,
    start: u64,
    life: LifeKey,
    record: Range<u64>,
    /// Bytes of candidates that may still be read.
    effort: u64,
    copy: Vec<u8>,
}

impl Search<'_> {
    /// Whether a candidate before the record is its frame. `None` if that takes too long.
    fn backwards(&mut self) -> Option<bool> {
        self.effort = self.most_effort();
        for at in (FIRST_RECORD..=self.record.start - HEADER).rev().step_by(8) {
            if self.is_frame(at)? {
                return Some(true);
            }
        }
        Some(false)
    }

    /// Whether the walk from the first record of the segment, from length to length, meets the frame.
    fn forwards(&mut self) -> bool {
        self.effort = self.most_effort();
        let mut at = FIRST_RECORD;
        while at < self.record.start {
            if self.len_around(at).is_some() {
                return self.is_frame(at) == Some(true);
            }
            let head = self.head(at);
            if Kind::from_byte(head.kind).is_none() {
                return false;
            }
            at += head.record_len();
        }
        false
    }

    fn most_effort(&self) -> u64 {
        MOST_EFFORT * self.heap.space().zone_size()
    }

    /// Whether a frame with this record begins here, and proves itself. `None` if that takes too long.
    fn is_frame(&mut self, at: u64) -> Option<bool> {
        let Some(len) = self.len_around(at) else { return Some(false) };
        let mut next = at + HEADER;
        while next < self.record.start {
            self.spend(HEADER)?;
            let head = self.head(next);
            if !matches!(Kind::from_byte(head.kind), Some(Kind::Value | Kind::Tombstone)) {
                return Some(false);
            }
            next += head.record_len();
        }
        if next != self.record.start {
            return Some(false);
        }
        self.spend(len)?;
        self.copy.clear();
        self.heap.region().append_racing(self.start + at, len, &mut self.copy);
        Some(RecordView::certified(&self.copy, self.heap.certifier(), self.life, at).is_ok())
    }

    /// The length of a candidate here, if it reaches around the whole record and stays in the zone.
    fn len_around(&self, at: u64) -> Option<u64> {
        let head = self.head(at);
        let is_frame = head.kind == Kind::Frame as u8 && head.flags == 0 && head.key_len.get() == 0;
        let zone_size = self.heap.space().zone_size();
        let room = zone_size.min(self.heap.region().len() - self.start);
        let len = Some(head.record_len()).filter(|_| is_frame)?;
        (self.record.end..=room).contains(&(at + len)).then_some(len)
    }

    fn head(&self, at: u64) -> Header {
        let mut head = Header::new_zeroed();
        self.heap.region().read_racing(self.start + at, head.as_mut_bytes());
        head
    }

    fn spend(&mut self, len: u64) -> Option<()> {
        self.effort = self.effort.checked_sub(len)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_heap::heap_on;
    use super::super::{Shard, Use};
    use super::*;
    use crate::record::{Content, Encoder};
    use quipu_medium::Region;
    use quipu_medium::sim::SimOptions;

    /// Bytes of the zone of a test heap.
    const ZONE: u64 = 16 << 10;

    /// A value for this offset of the zone, full of heads of frames whose records lead to its end.
    fn misleading(at: u64, len: u64) -> Vec<u8> {
        let mut value = Vec::new();
        for place in (at..at + len - 48).step_by(48) {
            let [mut frame, mut member] = [Header::new_zeroed(), Header::new_zeroed()];
            frame.kind = Kind::Frame as u8;
            frame.value_len.set((ZONE - place - HEADER) as u32);
            member.kind = Kind::Value as u8;
            member.key_len.set(1);
            member.value_len.set((at + len - place - 2 * HEADER - 1) as u32);
            value.extend_from_slice(frame.as_bytes());
            value.extend_from_slice(member.as_bytes());
        }
        value.resize(len as usize, 0);
        value
    }

    /// Otherwise, all lines of the zone would be hashed for each head.
    #[test]
    fn a_value_full_of_frames_neither_hides_its_neighbour_nor_costs_much() {
        let region = Region::sim(SimOptions { len: 1 << 20, ..SimOptions::default() });
        let sim = region.simulator().expect("simulated").clone();
        let heap = heap_on(region);
        let (mut open, mut encoder) = (None, Encoder::default());
        heap.make_room(&mut open, 10_000, None, Use::Put).expect("room");
        let mut open = open.expect("a segment");
        let value = misleading(open.next + 2 * HEADER + 8, 6000);
        let contents = [Content::value(b"8 bytes.", &value), Content::value(b"neighbour", b"whole")];
        let mut places = Vec::new();
        heap.prepare_frame(&open, &mut encoder, contents.into_iter(), |place| places.push(place));
        places.iter().for_each(|place| encoder.number(*place, heap.draw()));
        let frame = heap.append_frame(Shard::default(), &mut open, &mut encoder, heap.draw());
        heap.region().fence();
        let before = sim.cost();
        // SAFETY: nobody writes.
        let record = unsafe { heap.prove(frame.plus(places[1])) }.expect("it is proved by its frame");
        let lines = (sim.cost() - before).lines_read;
        assert_eq!((record.key, record.value), (&b"neighbour"[..], &b"whole"[..]));
        assert!(lines < 6 * ZONE / quipu_medium::LINE + 6000 / 4, "{lines} lines");
        heap.region().write(heap.space().zone_offset(open.zone) + open.next - 16, b"W");
        // SAFETY: as before.
        assert!(unsafe { heap.prove(frame.plus(places[1])) }.is_none(), "the frame does not prove itself");
    }
}
