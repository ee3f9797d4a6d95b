//! Items over memtables: what was written is there after a close, and a pool that is full says so.

use crate::shared::pool;
use quipu_medium::{Pages, Region};
use quipu_parts::commit::ring::Grants;
use quipu_parts::heap::chain::anchor::Anchor;
use quipu_parts::heap::chain::{ANCHOR_LEN, ChainError, ChainHeap, ChainLog, Item, MEMTABLE_LEN, Recovered};
use quipu_parts::heap::{Clock, ClockSettings, Reference};
use quipu_parts::record::{Certifier, Content, Kind};
use quipu_parts::space::{ObjectId, PoolSpec, Space};
use std::collections::BTreeMap;
use std::sync::Arc;

const MEMTABLES: u32 = 1;
const ANCHOR: u32 = 2;
const ZONE: u64 = 4096;
const SLOTS: u32 = 3;

/// A pool for memtables of three zones, with an anchor.
pub fn format(region: Region, memtables: u64) -> Arc<Space> {
    let pools = vec![
        PoolSpec { id: MEMTABLES, object_size: MEMTABLE_LEN, count: memtables },
        PoolSpec { id: ANCHOR, object_size: ANCHOR_LEN, count: 1 },
    ];
    let space = pool::format_with(region, ZONE, pools);
    let objects = space.pool(ANCHOR).expect("the pool of the anchor");
    let anchor = objects.get().expect("sound").expect("there is one");
    let at = objects.object_offset(anchor).expect("it is there");
    Anchor::create(space.region(), &certifier(), at);
    objects.commit(anchor);
    space
}

fn certifier() -> Certifier {
    Certifier::new(&[3; 32])
}

/// Opens the heap and the anchor of a pool.
pub fn open(space: &Arc<Space>, reserve: u32) -> Result<(ChainHeap, Anchor), ChainError> {
    let clock = Clock::resume(space, ClockSettings { block: 64, handful: 4 }, false);
    let heap = ChainHeap::new(space.clone(), certifier(), clock, MEMTABLES, SLOTS, reserve);
    let at = space.pool(ANCHOR).and_then(|pool| pool.object_offset(ObjectId(0))).expect("the anchor");
    let anchor = Anchor::open(space.region(), &certifier(), at)?;
    Ok((heap, anchor))
}

/// A record as it is read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    pub subtable: u32,
    pub key: Vec<u8>,
    pub value: Vec<u8>,
    pub reference: Reference,
}

/// All records of recovered memtables, by their numbers.
pub fn read_all(heap: &ChainHeap, recovered: &Recovered) -> BTreeMap<u64, Read> {
    let mut all = BTreeMap::new();
    for memtable in &recovered.memtables {
        let subtable = memtable.memtable.subtable();
        // SAFETY: nobody writes to a memtable that has been recovered.
        unsafe {
            heap.records(&memtable.memtable, Some(memtable.end), |record| {
                let (key, value) = (record.key.to_vec(), record.value.to_vec());
                let read = Read { subtable, key, value, reference: record.reference };
                assert_eq!((record.kind, record.expires), (Kind::Value, 0));
                assert!(all.insert(record.sequence, read).is_none(), "two records of one number");
            })
        }
        .expect("sound");
    }
    all
}

#[test]
fn what_was_written_is_there_after_a_close() {
    let space = format(Region::dram(1 << 20, Pages::Ordinary).expect("memory"), 16);
    let mut expected = BTreeMap::new();
    for run in 0..3 {
        let (heap, anchor) = open(&space, 0).expect("sound");
        let recovered = heap.recover(&anchor).expect("sound");
        assert_eq!(read_all(&heap, &recovered), expected);
        let log = ChainLog::new(heap, Grants::default(), recovered.cut);
        for table in 0..2 {
            log.open(table, 7 + table as u32, None).expect("room");
        }
        let mut item = Item::default();
        for nth in 0..40u32 {
            item.clear();
            let mut contents = Vec::new();
            for record in 0..=nth % 5 {
                let table = ((nth + record) % 2) as usize;
                let (key, value) = (format!("{run} {nth} {record}").into_bytes(), vec![record as u8; 100]);
                item.chunk(table).push(&Content::value(&key, &value));
                contents.push((table, key, value));
            }
            let mut numbers = Vec::new();
            let publish = |written: &quipu_parts::heap::chain::Written<'_>| {
                let own = contents.iter().filter(|(table, ..)| *table == written.table);
                let references = written.references();
                assert_eq!(references.len(), own.clone().count());
                for (((_, key, value), reference), number) in own.zip(references).zip(written.first..) {
                    let (subtable, key, value) = (7 + written.table as u32, key.clone(), value.clone());
                    expected.insert(number, Read { subtable, key, value, reference });
                    numbers.push(number);
                }
            };
            let last = log.commit(&mut item, None, |_| {}, publish).expect("room");
            assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]) && numbers.last() == Some(&last));
            assert_eq!(log.visible(), last);
        }
        log.close().expect("nobody panicked");
    }
}

#[test]
fn a_full_pool_says_so_and_loses_nothing() {
    for (len, memtables) in [(1 << 20, 3), (64 << 10, 100)] {
        let space = format(Region::dram(len, Pages::Ordinary).expect("memory"), memtables);
        let (heap, anchor) = open(&space, 1).expect("sound");
        let recovered = heap.recover(&anchor).expect("sound");
        let log = ChainLog::new(heap, Grants::Ticket, recovered.cut);
        log.open(0, 1, None).expect("room");
        let (mut item, mut count) = (Item::default(), 0u64);
        let refused = loop {
            item.clear();
            item.chunk(0).push(&Content::value(&count.to_le_bytes(), &[1; 300]));
            match log.commit(&mut item, None, |_| {}, |_| {}) {
                Ok(_) => count += 1,
                Err(error) => break error,
            }
        };
        let is_right = matches!(refused, ChainError::NoMemtable { .. }) == (memtables == 3)
            && matches!(refused, ChainError::Full(_)) == (memtables == 100);
        assert!(is_right && count > 50, "{refused} after {count}");
        item.clear();
        item.chunk(0).push(&Content::value(b"long", &[1; ZONE as usize]));
        let refused = log.commit(&mut item, None, |_| {}, |_| {}).expect_err("longer than a zone");
        assert!(matches!(refused, ChainError::TooLong { .. }));
        drop(log);
        let (heap, anchor) = open(&space, 1).expect("sound");
        let recovered = heap.recover(&anchor).expect("sound");
        assert_eq!(read_all(&heap, &recovered).len() as u64, count);
    }
}

/// Each chunk that is damaged below a floor is noticed, the newest of a memtable too.
#[test]
fn damage_is_not_taken_for_the_end() {
    let space = format(Region::dram(1 << 20, Pages::Ordinary).expect("memory"), 16);
    let (heap, anchor) = open(&space, 0).expect("sound");
    let cut = heap.recover(&anchor).expect("sound").cut;
    let log = ChainLog::new(heap, Grants::default(), cut);
    (0..2).for_each(|table| log.open(table, table as u32, None).expect("room"));
    let (mut item, mut places) = (Item::default(), Vec::new());
    for nth in 0..20u64 {
        item.clear();
        item.chunk((nth % 2) as usize).push(&Content::value(&nth.to_le_bytes(), &[1; 200]));
        let publish = |written: &quipu_parts::heap::chain::Written<'_>| places.extend(written.references());
        log.commit(&mut item, None, |_| {}, publish).expect("room");
    }
    drop(log);
    let shift = ZONE.trailing_zeros();
    let at = |place: &Reference| space.zone_offset(place.zone(shift)) + place.offset(shift);
    let recover = || {
        let (heap, anchor) = open(&space, 0).expect("sound");
        heap.recover(&anchor).map(|recovered| recovered.cut)
    };
    // The last item was not below any floor, so its loss cannot be told from a crash.
    for place in &places[..19] {
        for at in [at(place), at(place) + 32] {
            let sound = space.region().load(at);
            space.region().store(at, sound ^ 1 << 17);
            assert!(matches!(recover(), Err(ChainError::Missing(_))), "damage at {at}");
            space.region().store(at, sound);
        }
    }
    let cut = recover().expect("sound again");
    assert_eq!(recover().expect("ended since"), cut);
}
