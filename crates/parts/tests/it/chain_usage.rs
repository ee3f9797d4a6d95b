//! Records of a chain in place, the counts of what zones hold, and memtables that end early.

use crate::chain::{format, log, open, recover};
use quipu_medium::{Pages, Region};
use quipu_parts::commit::ring::Grants;
use quipu_parts::heap::Reference;
use quipu_parts::heap::chain::{
    CHUNK_HEADER, ChainError, ChainHeap, ChainLog, Held, Item, RECORD_HEADER, RecordFound, Supply, Written,
};
use quipu_parts::record::{Content, Kind};
use quipu_parts::space::ZoneId;
use std::collections::BTreeMap;

/// A record as it was published: its content, number and reference.
type Published<'c> = (Content<'c>, u64, Reference);

/// Writes an item to the first table, and returns the records that were published.
fn write<'c>(log: &ChainLog, contents: &[Content<'c>]) -> Vec<Published<'c>> {
    let (mut item, mut published) = (Item::default(), Vec::new());
    contents.iter().for_each(|content| item.chunk(0).push(content));
    let publish = |written: &Written<'_>| {
        for (record, content) in written.records().zip(contents) {
            assert_eq!((record.key, record.value), (content.key, content.value));
            assert_eq!((record.kind, record.expires), (content.kind, content.expires));
            published.push((*content, record.sequence, record.reference));
        }
        assert!(written.references().eq(written.records().map(|record| record.reference)));
    };
    log.commit(&mut item, Supply::default(), |_| {}, publish).expect("room");
    assert_eq!(published.len(), contents.len());
    published
}

fn expiring<'c>(key: &'c [u8], value: &'c [u8], expires: u64) -> Content<'c> {
    Content { expires, ..Content::value(key, value) }
}

/// Bytes that records take, and those of their chunk.
fn lens(contents: &[Content<'_>]) -> (u64, u64) {
    let len = |content: &Content<'_>| {
        let expiry = if content.expires == 0 { 0 } else { 8 };
        (RECORD_HEADER + expiry + (content.key.len() + content.value.len()) as u64).next_multiple_of(8)
    };
    let packed = contents.iter().map(len).sum();
    (packed, (CHUNK_HEADER + packed).next_multiple_of(64))
}

/// Checks that a record reads as it was published.
fn check(heap: &ChainHeap, (content, number, reference): &Published<'_>) {
    // SAFETY: it has been published, and nothing is released.
    let (record, found) = unsafe { (heap.record(*reference).expect("sound"), heap.number(*reference)) };
    assert_eq!((found, record.sequence, record.version), (*number, *number, *number));
    assert_eq!((record.kind, record.expires), (content.kind, content.expires));
    assert_eq!((record.key, record.value), (content.key, content.value));
    assert_eq!((record.reference, record.len), (*reference, lens(&[*content]).0));
}

#[test]
fn records_are_read_in_place() {
    let space = format(Region::dram(1 << 20, Pages::Ordinary).expect("memory"), 16);
    let (log, _) = log(&space, 1, Grants::default());
    let heap = log.heap();
    let contents = [
        Content::value(b"key", b"a value"),
        Content::tombstone(b"another key"),
        expiring(b"k", b"and one that expires", 1 << 40),
        Content::value(b"", b""),
        expiring(b"without a value", b"", u64::MAX),
    ];
    let published = write(&log, &contents);
    published.iter().for_each(|record| check(heap, record));
    // Tags of references are their owners', and lead nowhere else.
    for (content, number, reference) in &published {
        (1..4).for_each(|tag| check(heap, &(*content, *number, reference.with_tag(tag))));
    }
    // A copy is a record of its own, and tells the number of the first one.
    let (mut item, mut copies) = (Item::default(), Vec::new());
    contents.iter().zip(3..).for_each(|(content, version)| item.chunk(0).push_copy(content, version));
    let publish = |written: &Written<'_>| {
        copies.extend(written.records().map(|record| (record.sequence, record.version, record.reference)));
    };
    let last = log.commit(&mut item, Supply::default(), |_| {}, publish).expect("room");
    for (((number, published, reference), content), version) in copies.iter().zip(&contents).zip(3..) {
        // SAFETY: it has been published, and nothing is released.
        let (record, found) = unsafe { (heap.record(*reference).expect("sound"), heap.number(*reference)) };
        assert_eq!((found, record.sequence), (*number, *number));
        assert_eq!((*published, record.version), (version, version));
        assert_eq!((record.key, record.value), (content.key, content.value));
        assert_eq!((record.kind, record.expires), (content.kind, content.expires));
    }
    assert_eq!(copies.last().map(|(number, ..)| *number), Some(last));
}

/// References that a damaged index may have, and records that are damaged themselves.
#[test]
fn damage_is_an_error_and_no_panic() {
    let space = format(Region::dram(1 << 20, Pages::Ordinary).expect("memory"), 16);
    let (log, _) = log(&space, 1, Grants::default());
    let (heap, shift) = (log.heap(), space.zone_size().trailing_zeros());
    let record = write(&log, &[expiring(b"key", b"a value", 5)])[0];
    let at = heap.resolve(record.2);
    // SAFETY: nobody writes while it is read, and nothing is released.
    let read = |reference| unsafe { heap.record(reference).map(|record| record.key.len()) };
    // SAFETY: as above.
    let number = |reference| unsafe { heap.number(reference) };
    let word = space.region().load(at + 8);
    let (kind, flags, value_len) = (0xff, 0xff << 8, 0xffff_ffff << 32);
    for changed in [word & !kind, word ^ 0x70, word ^ 0x80 << 8, word | flags] {
        space.region().store(at + 8, changed);
        assert!(matches!(read(record.2), Err(ChainError::Unknown { offset, .. }) if offset == at));
    }
    for changed in [word | value_len, word ^ 1 << 63, word ^ 1 << 52] {
        space.region().store(at + 8, changed);
        assert!(matches!(read(record.2), Err(ChainError::Damaged { offset, .. }) if offset == at));
    }
    space.region().store(at + 8, word);
    check(heap, &record);
    // Each place of the pool's zones.
    let (mut sound, last) = (0, ZoneId(space.zone_count() - 1));
    for zone in (0..=last.0).map(ZoneId) {
        for offset in (0..space.zone_size()).step_by(8) {
            let reference = Reference::new(zone, offset, shift);
            let _ = number(reference);
            sound += usize::from(read(reference).is_ok());
        }
    }
    // Nothing is proved here: a few words of headers look like a record.
    assert!((1..10).contains(&sound), "{sound} places have a record");
    assert_eq!(number(Reference::new(last, space.zone_size() - 8, shift)), 0);
}

/// A zone number that the pool does not have.
#[test]
fn a_reference_that_leaves_the_pool_is_an_error_and_no_panic() {
    let space = format(Region::dram(1 << 20, Pages::Ordinary).expect("memory"), 16);
    let (log, _) = log(&space, 1, Grants::default());
    let shift = space.zone_size().trailing_zeros();
    let beyond = Reference::new(ZoneId(space.zone_count()), 64, shift);
    for reference in [beyond, Reference::from_word((1 << Reference::BITS) - 1)] {
        // SAFETY: there are no such bytes to be written or released.
        let (record, number) = unsafe { (log.heap().record(reference), log.heap().number(reference)) };
        assert!(matches!(record, Err(ChainError::Damaged { .. })));
        assert_eq!(number, 0);
    }
}

#[test]
fn zones_count_what_they_hold() {
    let space = format(Region::dram(1 << 20, Pages::Ordinary).expect("memory"), 16);
    let (log, _) = log(&space, 1, Grants::default());
    let usage = log.heap().usage();
    let mut bytes = (0, 0);
    let mut write = |contents: &[Content<'_>]| {
        let (packed, chunk) = lens(contents);
        bytes = (bytes.0 + packed, bytes.1 + chunk);
        (write(&log, contents)[0].2, bytes)
    };
    let (reference, _) = write(&[Content::value(b"key", b"value"), Content::tombstone(b"other")]);
    let zone = log.heap().zone_of(reference);
    let (_, (packed, chunks)) = write(&[
        expiring(b"soon", b"value", 100),
        expiring(b"late", b"value", 200),
        Content::tombstone(b"key"),
        Content::value(b"longer", &[1; 300]),
    ]);
    let held = Held { bytes: chunks, packed, records: 6, tombstones: 2, dead: 0, expired: 0 };
    assert_eq!((usage.of(zone, 0), usage.of(zone, 199)), (held, held), "one of them has not expired");
    assert_eq!(usage.of(zone, 200), Held { expired: 2, ..held });
    assert_eq!((held.live(), held.bytes_of(6), held.bytes_of(0)), (6, packed, 0));
    usage.note_dead(zone, false);
    usage.note_dead(zone, true);
    let less = Held { dead: 2, tombstones: 1, ..held };
    assert_eq!((usage.of(zone, 0), less.live(), less.bytes_of(3)), (less, 4, packed / 2));
    let others = (0..space.zone_count()).map(ZoneId).filter(|other| *other != zone);
    assert_eq!(usage.of_all(others, 0), Held::default());
    assert_eq!(Held::default().bytes_of(3), 0, "nothing has no average");
}

/// The counts of each zone are those of the records that are found there. They go with the zone.
#[test]
fn zones_that_are_given_back_hold_nothing() {
    let space = format(Region::dram(1 << 20, Pages::Ordinary).expect("memory"), 16);
    let (log, anchor) = log(&space, 2, Grants::default());
    let (heap, mut item) = (log.heap(), Item::default());
    let used = |zone| {
        let Held { records, tombstones, packed, .. } = heap.usage().of(zone, 0);
        (records, tombstones, packed)
    };
    let all_used = || (0..space.zone_count()).map(ZoneId).filter(|zone| used(*zone).0 > 0).count();
    let fill = |item: &mut Item| {
        for nth in 0..120u64 {
            let (key, value) = (nth.to_le_bytes(), vec![1; (nth % 7 * 40) as usize]);
            item.chunk(0).push(&Content::value(&key, &value));
            item.chunk((nth % 2) as usize).push(&Content::tombstone(&key));
            log.commit(item, Supply::default(), |_| {}, |_| {}).expect("room");
        }
    };
    fill(&mut item);
    let is_ended = |log: &ChainLog| {
        let mut memtables = log.memtables();
        memtables.retain(|memtable| memtable.end().is_some());
        memtables
    };
    let ended = is_ended(&log);
    assert!(ended.len() > 1 && ended.len() < log.memtables().len());
    let zones: Vec<ZoneId> = ended.iter().flat_map(|memtable| memtable.zones()).collect();
    let mut found = BTreeMap::<ZoneId, (u64, u64, u64)>::new();
    for memtable in &ended {
        let end = memtable.end().expect("it has ended");
        let note = |record: RecordFound<'_>| {
            let of_zone = found.entry(heap.zone_of(record.reference)).or_default();
            of_zone.0 += 1;
            of_zone.1 += u64::from(record.kind == Kind::Tombstone);
            of_zone.2 += record.len;
        };
        // SAFETY: it has ended, and is released below.
        unsafe { heap.records(memtable, end, note) }.expect("sound");
    }
    let counted: BTreeMap<_, _> = zones.iter().map(|zone| (*zone, used(*zone))).collect();
    assert_eq!(found, counted);
    zones.iter().for_each(|zone| heap.usage().note_dead(*zone, false));
    let (free, before) = (space.free_zones(), all_used());
    log.release(&ended, &anchor);
    assert_eq!(space.free_zones(), free + zones.len() as u32);
    assert_eq!(all_used(), before - zones.len());
    assert_eq!(heap.usage().of_all(zones.iter().copied(), u64::MAX), Held::default());
    assert!(is_ended(&log).is_empty() && ended.iter().all(|memtable| memtable.zones().is_empty()));
    assert!(anchor.through() > 0, "the anchor knows that they are gone");
    // The next life of the zones begins at nothing.
    fill(&mut item);
    let again = zones.iter().filter(|zone| used(**zone).0 > 0);
    assert!(again.clone().count() > 0 && again.clone().all(|zone| heap.usage().of(*zone, 0).dead == 0));
    // A close gives back zones that were ready.
    log.close().expect("nobody panicked");
    let in_use: Vec<ZoneId> = log.memtables().iter().flat_map(|memtable| memtable.zones()).collect();
    assert_eq!((all_used(), space.committed_zones().len()), (in_use.len(), in_use.len()));
}

/// A table that is sealed keeps nothing ready, and its next write goes to another memtable.
#[test]
fn a_table_that_is_sealed_ends_its_memtable() {
    let space = format(Region::dram(1 << 20, Pages::Ordinary).expect("memory"), 16);
    let (log, _) = log(&space, 2, Grants::default());
    let in_use =
        || (space.pool(1).expect("that of the memtables").committed().len(), space.committed_zones().len());
    let ends = || log.memtables().iter().map(|memtable| memtable.end().is_some()).collect::<Vec<_>>();
    log.seal(0).expect("nobody panicked");
    assert_eq!(in_use(), (0, 0), "a table without a write has nothing to end");
    let write = |value: usize| {
        let mut item = Item::default();
        item.chunk(0).push(&Content::value(b"key", &vec![1; value]));
        log.commit(&mut item, Supply::default(), |_| {}, |_| {}).expect("room")
    };
    write(100);
    // The second zone is ready.
    assert_eq!((in_use(), ends()), ((1, 2), vec![false]));
    for _ in 0..2 {
        log.seal(0).expect("nobody panicked");
        assert_eq!((in_use(), ends()), ((1, 1), vec![true]));
    }
    // Of three zones, all are in use, and another memtable is ready.
    (0..3).for_each(|_| _ = write(3000));
    assert_eq!((in_use(), ends()), ((3, 5), vec![true, false, false]));
    log.seal(1).expect("nobody panicked");
    log.seal(0).expect("nobody panicked");
    assert_eq!((in_use(), ends()), ((2, 4), vec![true, true]));
    write(100);
    assert_eq!((in_use(), ends()), ((3, 6), vec![true, true, false]));
    drop(log);
    let (mut heap, anchor) = open(&space).expect("sound");
    let recovered = recover(&mut heap, &anchor).expect("sound");
    assert_eq!((recovered.survey.left_open, recovered.memtables.len(), in_use()), (1, 3, (3, 5)));
}
