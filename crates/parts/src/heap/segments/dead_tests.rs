use super::super::test_heap::{self, heap};
use super::super::{Found, LastLine, OpenSegment, Use};
use super::*;
use crate::record::{Content, Encoder, mix};
use crate::twin::{Twin, leave_out};

/// A sealed segment of records of all lengths, some in frames, some of them noted as dead.
struct Segment {
    heap: LogHeap,
    zone: ZoneId,
    /// Reference and bytes of each record.
    records: Vec<(Reference, u64)>,
    /// Offset and bytes of each frame.
    frames: Vec<(u64, u64)>,
}

impl Segment {
    /// With as many records and frames as there are numbers: of records if below 1000, of frames of so many
    /// records above it.
    fn of(sizes: impl IntoIterator<Item = u64>) -> Segment {
        let (heap, shard) = (heap().with_dead_bits(), Shard::default());
        let (mut open, mut encoder) = (None, Encoder::default());
        heap.make_room(&mut open, 64, None, Use::Put).unwrap();
        let mut open: OpenSegment = open.unwrap();
        let (mut records, mut frames) = (Vec::new(), Vec::new());
        let bytes = vec![0xa5; 1000];
        for size in sizes {
            if size < 1000 {
                let content = Content::value(b"key", &bytes[..size as usize]);
                heap.prepare(&open, &mut encoder, &content);
                let reference = heap.append(shard, &mut open, &mut encoder, heap.draw(), LastLine::Written);
                records.push((reference, content.record_len()));
            } else {
                let contents = (0..size - 1000).map(|i| Content::value(b"member", &bytes[..i as usize * 9]));
                let mut places = Vec::new();
                heap.prepare_frame(&open, &mut encoder, contents.clone(), |place| places.push(place));
                places.iter().for_each(|place| encoder.number(*place, heap.draw()));
                frames.push((encoder.offset(), encoder.record().len() as u64));
                let frame = heap.append_frame(shard, &mut open, &mut encoder, heap.draw());
                let members = places.iter().zip(contents);
                records.extend(members.map(|(place, content)| (frame.plus(*place), content.record_len())));
            }
        }
        let zone = open.zone;
        assert!(heap.has_room(&open, 0, Use::Put), "all of them are in the segment");
        heap.leave(open);
        heap.seal_idle();
        Segment { heap, zone, records, frames }
    }

    fn kill(&self, is_dead: impl Fn(usize) -> bool) {
        for (i, (reference, len)) in self.records.iter().enumerate() {
            if is_dead(i) {
                self.heap.note_dead(Shard::default(), *reference, *len);
            }
        }
    }

    fn live(&self) -> Vec<Reference> {
        let references = self.records.iter().map(|(reference, _)| *reference);
        references.filter(|reference| !self.heap.is_dead(*reference)).collect()
    }

    /// The records that a cleaner would find; `None` if it finds damage.
    fn found(&self) -> Option<Vec<Reference>> {
        // SAFETY: one thread, which writes only between walks.
        let mut scan = unsafe { self.heap.scan(self.zone) }.ok()?.live_only();
        let mut found = Vec::new();
        loop {
            match scan.advance().ok()? {
                Some(Found::Record { reference, .. }) => found.push(reference),
                Some(Found::Frame { .. }) => {}
                Some(Found::Gap { .. }) => return None,
                None => return Some(found),
            }
        }
    }

    /// Adds these bits to the word at an offset, or takes them away.
    fn flip(&self, offset: u64, bits: u64) {
        let at = self.heap.space().zone_offset(self.zone) + offset;
        let region = self.heap.region();
        region.store(at, region.load(at) ^ bits);
    }

    fn offset(&self, record: usize) -> u64 {
        self.records[record].0.offset(self.heap.zone_shift())
    }
}

/// Kind, flags and lengths of a record, and how far its value's length is shifted there.
const LENGTHS: u64 = 16;
const VALUE_LEN: u32 = 32;

#[test]
fn what_is_noted_twice_counts_once() {
    let segment = Segment::of([1, 900, 5]);
    let (reference, len) = segment.records[1];
    let garbage = || segment.heap.usage().garbage;
    assert!(segment.heap.note_dead(Shard::default(), reference, len));
    assert!(!segment.heap.note_dead(Shard::default(), reference, len));
    assert_eq!(garbage(), len);
    assert_eq!(segment.live(), [segment.records[0].0, segment.records[2].0]);
    segment.heap.free(segment.zone);
    assert!(!segment.heap.is_dead(reference), "the zone may hold other records now");
    let without = heap();
    assert!(
        without.note_dead(Shard::default(), reference, len)
            && without.note_dead(Shard::default(), reference, len)
    );
    assert_eq!((without.usage().garbage, without.is_dead(reference)), (2 * len, false));
}

#[test]
fn what_is_dead_in_a_segment_is_not_known_after_it_was_taken_over_from_a_checkpoint() {
    let segment = Segment::of([1, 900, 5]);
    let (reference, heap) = (segment.records[1].0, &segment.heap);
    assert!(heap.knows_dead(reference));
    let states = heap.states().expect("it is sealed");
    let (next, without) = (test_heap::heap().with_dead_bits(), test_heap::heap());
    assert!(next.knows_dead(reference) && !without.knows_dead(reference));
    next.restore(&states[0]);
    without.restore(&states[0]);
    assert!(!next.knows_dead(reference) && !without.knows_dead(reference));
    next.forget(segment.zone);
    assert!(next.knows_dead(reference), "another segment begins there");
}

/// A length from a damaged header once declared the records behind it dead.
#[test]
fn a_length_that_nothing_proves_declares_no_neighbour_dead() {
    let segment = Segment::of([100, 100, 100, 100]);
    let heap = &segment.heap;
    heap.restore(&heap.states().expect("it is sealed")[0]);
    let ((first, len), live) = (segment.records[0], segment.live()[1..].to_vec());
    // It says that it is as long as two, and its bytes say so too.
    segment.flip(segment.offset(0) + LENGTHS, (100 ^ (100 + len)) << VALUE_LEN);
    assert!(heap.note_superseded(Shard::default(), first, 2 * len));
    assert!(!heap.note_superseded(Shard::default(), first, len), "once");
    assert_eq!((segment.live(), segment.found()), (live.clone(), None), "the damage is met");
    segment.flip(segment.offset(0) + LENGTHS, (100 ^ (100 + len)) << VALUE_LEN);
    assert_eq!(segment.found(), Some(live));
    // Where records are proved, a run is known by its length.
    let _left_out = leave_out(Some(Twin::LengthBelieved));
    assert!(heap.note_superseded(Shard::default(), segment.records[2].0, len));
    segment.flip(segment.offset(2) + 48, 1);
    assert_eq!(segment.found(), Some(segment.live()), "its value is not read");
}

/// At every distance from the words of the bits, and over several of them.
#[test]
fn a_record_dies_alone() {
    let segment = Segment::of((0..60).map(|i| i * 37 % 290).chain([999, 999, 999]));
    for dies in 0..segment.records.len() {
        segment.kill(|i| i == dies);
        let alive = segment.records[dies + 1..].iter().map(|(reference, _)| *reference).collect::<Vec<_>>();
        assert_eq!((segment.live(), segment.found()), (alive.clone(), Some(alive)), "record {dies}");
    }
}

#[test]
fn a_frame_lives_as_long_as_any_of_its_records() {
    // Before it one of 32 bytes or none, and so on: its head begins at every place of a unit.
    for before in 0..8 {
        let segment = Segment::of((0..before).map(|_| 6).chain([1004, 7]));
        assert_eq!(segment.found(), Some(segment.live()));
        let first = before as usize;
        for dead in [2, 0, 3] {
            segment.kill(|i| i == first + dead);
            assert_eq!(segment.found(), Some(segment.live()));
        }
        // One check proves the whole frame, so damage to a dead record of it is found.
        segment.flip(segment.offset(first + 3) + 24, 1);
        assert_eq!(segment.found(), None);
        segment.kill(|i| i == first + 1);
        assert_eq!(segment.found(), Some(segment.live()), "nothing of it matters");
    }
}

#[test]
fn damage_in_a_live_record_is_reported_and_that_in_a_dead_value_is_not() {
    let segment = Segment::of([100, 100, 100]);
    segment.kill(|i| i == 1);
    segment.flip(segment.offset(1) + 48, 1);
    assert_eq!(segment.found(), Some(segment.live()));
    segment.flip(segment.offset(2) + 48, 1);
    assert_eq!(segment.found(), None);
}

#[test]
fn a_damaged_header_of_a_dead_record_is_reported() {
    let segment = Segment::of([100, 100, 100, 100]);
    segment.kill(|i| i == 1);
    let at = segment.offset(1) + LENGTHS;
    let len = segment.records[1].1;
    // Its kind; a length that leads a word further, over the next record to the one behind it, out of the
    // segment.
    for bits in [0xf0, 8 << VALUE_LEN, (100 ^ (100 + len)) << VALUE_LEN, 1 << 63] {
        segment.flip(at, bits);
        assert_eq!(segment.found(), None, "{bits:#x}");
        segment.flip(at, bits);
    }
    assert_eq!(segment.found(), Some(segment.live()));
}

/// After damage to a dead record or a live one, a walk either finds all live records or reports damage.
#[test]
fn damage_never_hides_a_live_record() {
    for seed in 0..12 {
        let random = |i: u64| mix(seed << 32 | i);
        let sizes = (0..24).map(|i| match random(i) % 6 {
            0 => 1000 + random(i + 100) % 4,
            1 | 2 => 1 + random(i + 200) % 4,
            _ => random(i + 300) % 90,
        });
        let segment = Segment::of(sizes);
        segment.kill(|i| random(i as u64 + 400) % 4 != 0);
        let live = segment.live();
        assert_eq!(segment.found().as_ref(), Some(&live));
        let heads = segment.frames.iter().map(|(offset, _)| *offset);
        let starts = heads.chain((0..segment.records.len()).map(|i| segment.offset(i))).collect::<Vec<_>>();
        let mut reported = 0;
        for at in starts.iter().map(|start| start + LENGTHS) {
            let kinds_and_flags = (0..16).map(|bit| 1 << bit);
            let lengths = (0..40).map(|i| (i * 8) << VALUE_LEN).chain((0..16).map(|bit| 1 << (bit + 16)));
            let anything = (0..60).map(|i| mix(at << 8 | i) >> (mix(i) % 3 * 12));
            for bits in kinds_and_flags.chain(lengths).chain(anything) {
                segment.flip(at, bits);
                match segment.found() {
                    Some(found) => assert_eq!(found, live, "seed {seed}, word at {at}, bits {bits:#x}"),
                    None => reported += 1,
                }
                segment.flip(at, bits);
            }
        }
        assert!(reported > 0);
    }
}
