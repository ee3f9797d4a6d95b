//! Items over memtables: writes are there after a close and a death, and a full pool says so.

use crate::shared::pool;
use quipu_medium::sim::SimOptions;
use quipu_medium::{Pages, Region};
use quipu_parts::commit::ring::Grants;
use quipu_parts::heap::chain::anchor::Anchor;
use quipu_parts::heap::chain::{
    ANCHOR_LEN, ChainError, ChainHeap, ChainLog, ChainPools, GroupSettings, Groups, Item, MEMTABLE_LEN,
    Recovered, RecoveredMemtable, SUBTABLE_LEN, Supply, Written,
};
use quipu_parts::heap::{Clock, ClockSettings, Reference};
use quipu_parts::record::{Certifier, Content, Kind};
use quipu_parts::space::{ObjectId, PoolSpec, Space};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const MEMTABLES: u32 = 1;
const ANCHOR: u32 = 2;
const SUBTABLES: u32 = 3;
const POOLS: ChainPools = ChainPools { memtables: MEMTABLES, subtables: SUBTABLES };
const CLOCK: ClockSettings = ClockSettings { block: 64, handful: 4 };
const ZONE: u64 = 4096;
const SLOTS: u32 = 3;

/// A pool for memtables of three zones, with an anchor.
pub fn format(region: Region, memtables: u64) -> Arc<Space> {
    let pools = vec![
        PoolSpec { id: MEMTABLES, object_size: MEMTABLE_LEN, count: memtables },
        PoolSpec { id: ANCHOR, object_size: ANCHOR_LEN, count: 1 },
        PoolSpec { id: SUBTABLES, object_size: SUBTABLE_LEN, count: 6 },
    ];
    let space = pool::format_with(region, ZONE, pools);
    let objects = space.pool(ANCHOR).expect("the pool of the anchor");
    let anchor = objects.get().expect("sound").expect("there is one");
    let at = objects.object_offset(anchor).expect("it is there");
    Anchor::create(space.region(), &certifier(), at);
    objects.commit(anchor);
    let (heap, _) = open(&space).expect("a new pool");
    for number in 0..3 {
        heap.create_subtable(&format!("table {number}")).expect("room");
    }
    space
}

/// Lets so many of the pool's subtables take writes.
pub fn open_tables(log: &ChainLog, count: usize) {
    for (table, subtable) in log.heap().subtables().expect("sound").iter().take(count).enumerate() {
        log.open(table, subtable.created).expect("room");
    }
}

pub fn certifier() -> Certifier {
    Certifier::new(&[3; 32])
}

/// Opens the heap and the anchor of a pool.
pub fn open(space: &Arc<Space>) -> Result<(ChainHeap, Anchor), ChainError> {
    open_with(space, certifier(), SLOTS)
}

/// The same with another certifier, and memtables of so many zones.
pub fn open_with(
    space: &Arc<Space>,
    certifier: Certifier,
    slots: u32,
) -> Result<(ChainHeap, Anchor), ChainError> {
    let clock = Clock::resume(space, CLOCK, false);
    let at = space.pool(ANCHOR).and_then(|pool| pool.object_offset(ObjectId(0))).expect("the anchor");
    let anchor = Anchor::open(space.region(), &certifier, at)?;
    Ok((ChainHeap::new(space.clone(), certifier, clock, POOLS, slots), anchor))
}

/// Recovers all memtables of a heap.
pub fn recover(heap: &mut ChainHeap, anchor: &Anchor) -> Result<Recovered, ChainError> {
    heap.recover(anchor, |_| Ok(()))
}

/// Recovers a pool, and lets so many of its subtables take writes.
pub fn log(space: &Arc<Space>, tables: usize, grants: Grants) -> (ChainLog, Anchor) {
    let (mut heap, anchor) = open(space).expect("sound");
    let recovered = recover(&mut heap, &anchor).expect("sound");
    let log = ChainLog::new(heap, grants, recovered);
    open_tables(&log, tables);
    (log, anchor)
}

/// Closes a log, and opens its pool anew.
fn close(space: &Arc<Space>, log: ChainLog) -> (ChainHeap, Anchor) {
    log.close().expect("nobody panicked");
    drop(log);
    open(space).expect("sound")
}

/// Recovers a pool, and reads all of it.
fn recover_all(heap: &mut ChainHeap, anchor: &Anchor) -> BTreeMap<u64, Read> {
    let recovered = recover(heap, anchor).expect("sound");
    read_all(heap, &recovered)
}

/// A record as it is read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    pub subtable: u64,
    pub key: Vec<u8>,
    pub value: Vec<u8>,
    pub reference: Reference,
}

/// All records of recovered memtables, by their numbers.
pub fn read_all(heap: &ChainHeap, recovered: &Recovered) -> BTreeMap<u64, Read> {
    let mut all = BTreeMap::new();
    for memtable in &recovered.memtables {
        let subtable = memtable.memtable.subtable();
        assert_eq!(memtable.memtable.end(), Some(memtable.end));
        let last_zone = u64::from(memtable.end - 1) * 64 / ZONE;
        assert_eq!(memtable.memtable.zones().len() as u64, last_zone + 1, "no zone is behind the end");
        // SAFETY: nobody writes to a memtable that has been recovered.
        unsafe {
            heap.records(&memtable.memtable, memtable.end, |record| {
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

/// Writes items over two tables, and notes their records.
fn write_items(log: &ChainLog, mark: &str, expected: &mut BTreeMap<u64, Read>) {
    let tables = log.heap().subtables().expect("sound");
    let mut item = Item::default();
    for nth in 0..40u32 {
        let mut contents = Vec::new();
        for record in 0..=nth % 5 {
            let table = ((nth + record) % 2) as usize;
            let (key, value) = (format!("{mark} {nth} {record}").into_bytes(), vec![record as u8; 100]);
            item.chunk(table).push(&Content::value(&key, &value));
            contents.push((table, key, value));
        }
        let mut numbers = Vec::new();
        let publish = |written: &Written<'_>| {
            let own = contents.iter().filter(|(table, ..)| *table == written.table);
            let references = written.references();
            assert_eq!(references.len(), own.clone().count());
            for (((_, key, value), reference), number) in own.zip(references).zip(written.first..) {
                let (key, value, subtable) = (key.clone(), value.clone(), tables[written.table].created);
                expected.insert(number, Read { subtable, key, value, reference });
                numbers.push(number);
            }
        };
        let last = log.commit(&mut item, Supply::default(), |_| {}, publish).expect("room");
        assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]) && numbers.last() == Some(&last));
        assert!(log.visible() == last && item.is_empty());
    }
}

/// The pool as it would be if the process died now.
fn died(space: &Space) -> Arc<Space> {
    let copy = Region::dram(space.region().len(), Pages::Ordinary).expect("memory");
    copy.write(0, &bytes_of(space));
    Arc::new(Space::open(copy).expect("sound").0)
}

fn bytes_of(space: &Space) -> Vec<u8> {
    let mut bytes = vec![0; space.region().len() as usize];
    space.region().read_racing(0, &mut bytes);
    bytes
}

#[test]
fn what_was_written_is_there_after_a_close_and_after_a_death() {
    let space = format(Region::dram(1 << 20, Pages::Ordinary).expect("memory"), 30);
    let mut expected = BTreeMap::new();
    for run in 0..3 {
        let (own, _) = log(&space, 2, Grants::default());
        let names: Vec<_> =
            own.heap().subtables().expect("sound").into_iter().map(|table| table.name).collect();
        assert_eq!(names, ["table 0", "table 1", "table 2"]);
        write_items(&own, &format!("{run}"), &mut expected);
        // The process goes on after a close, and then dies.
        let (mut heap, anchor) = close(&space, own);
        let closed = bytes_of(&space);
        assert_eq!(recover_all(&mut heap, &anchor), expected);
        assert!(bytes_of(&space) == closed, "a pool that was closed is not changed");
        let recovered = recover(&mut heap, &anchor).expect("sound");
        let own = ChainLog::new(heap, Grants::default(), recovered);
        open_tables(&own, 2);
        write_items(&own, &format!("{run} again"), &mut expected);
        drop(own);
        let (mut heap, anchor) = open(&space).expect("sound");
        assert_eq!(recover_all(&mut heap, &anchor), expected);
    }
}

/// A memtable ends with an item that has records in another one, too, and the next item was granted before
/// that item was visible.
#[test]
fn a_memtable_ends_at_the_end_of_an_item() {
    let space = format(Region::dram(1 << 20, Pages::Ordinary).expect("memory"), 16);
    let (own, _) = log(&space, 2, Grants::default());
    let (mut item, mut next, mut count) = (Item::default(), Item::default(), 0);
    // Twice the bytes of a memtable, in items that lie across its end at some time.
    for nth in 0..2 * u64::from(SLOTS) * ZONE / 500 {
        for table in 0..2 {
            item.chunk(table).push(&Content::value(&nth.to_le_bytes(), &vec![1; 400 * (1 - table)]));
        }
        let publish = |written: &Written<'_>| {
            if written.table == 0 {
                next.clear();
                next.chunk(1).push(&Content::value(b"next", b""));
                own.write(&mut next, Supply::default(), |_, _| (), |_| {}, |_| {}).expect("room");
            }
        };
        own.commit(&mut item, Supply::default(), |_| {}, publish).expect("room");
        count += 3;
        let dead = died(&space);
        let (mut heap, anchor) = open(&dead).expect("sound");
        assert_eq!(recover_all(&mut heap, &anchor).len(), count, "after item {nth}");
    }
    // The first one is full, and has ended without a close. Its end mark is the word behind its first line.
    let first = space.pool(MEMTABLES).and_then(|pool| pool.object_offset(ObjectId(0))).expect("it is there");
    assert_ne!(space.region().load(first + 64), 0);
}

/// A close ends also the memtables that were full and that nobody has waited for.
#[test]
fn a_close_leaves_nothing_to_recovery() {
    let space = format(Region::dram(1 << 20, Pages::Ordinary).expect("memory"), 16);
    let (own, _) = log(&space, 1, Grants::default());
    let mut item = Item::default();
    for nth in 0..3 * u64::from(SLOTS) * ZONE / 500 {
        item.clear();
        item.chunk(0).push(&Content::value(&nth.to_le_bytes(), &[1; 400]));
        own.write(&mut item, Supply::default(), |_, _| (), |_| {}, |_| {}).expect("room");
    }
    let (mut heap, anchor) = close(&space, own);
    let closed = bytes_of(&space);
    assert!(recover(&mut heap, &anchor).expect("sound").memtables.len() > 2);
    assert!(bytes_of(&space) == closed, "a pool that was closed is not changed");
}

#[test]
fn records_come_once_and_pieces_without_any_are_none() {
    let space = format(Region::dram(1 << 20, Pages::Ordinary).expect("memory"), 16);
    let (own, _) = log(&space, 3, Grants::default());
    let mut item = Item::default();
    assert_eq!(own.commit(&mut item, Supply::default(), |_| {}, |_| {}).expect("nothing to do"), 0);
    for _ in 0..3 {
        item.chunk(0);
        item.chunk(2).push(&Content::value(b"key", b"value"));
        item.chunk(1);
        own.commit(&mut item, Supply::default(), |_| {}, |_| {}).expect("room");
        // It is empty now, and so this is nothing.
        own.commit(&mut item, Supply::default(), |_| {}, |_| {}).expect("nothing to do");
    }
    let groups = Groups::new(GroupSettings { buckets: 1, records: 8, bytes: 1000, linger: 0 });
    let mut client = groups.client(0);
    client.fill(|item| item.chunk(1).push(&Content::value(b"key", b"value")));
    for _ in 0..2 {
        groups.commit(&own, &mut client, Supply::default(), |_| {}, |_| {}).expect("room, or nothing to do");
    }
    let (mut heap, anchor) = close(&space, own);
    assert_eq!(recover_all(&mut heap, &anchor).len(), 4);
}

#[test]
fn a_full_pool_says_so_and_loses_nothing() {
    const LEAVE: u32 = 2;
    for (len, memtables) in [(1 << 20, 3), (64 << 10, 100)] {
        let space = format(Region::dram(len, Pages::Ordinary).expect("memory"), memtables);
        let (log, _) = log(&space, 1, Grants::Ticket);
        let (mut item, mut count) = (Item::default(), 0u64);
        let supply = Supply { leave: LEAVE, ..Supply::default() };
        let refused = loop {
            item.clear();
            item.chunk(0).push(&Content::value(&count.to_le_bytes(), &[1; 300]));
            match log.commit(&mut item, supply, |_| {}, |_| {}) {
                Ok(_) => count += 1,
                Err(error) => break error,
            }
        };
        let is_right = matches!(refused, ChainError::NoMemtable { .. }) == (memtables == 3)
            && matches!(refused, ChainError::Full(_)) == (memtables == 100);
        assert!(is_right && count > 50, "{refused} after {count}");
        assert!(memtables == 3 || space.free_zones() == LEAVE, "{} zones are free", space.free_zones());
        item.clear();
        item.chunk(0).push(&Content::value(b"long", &[1; ZONE as usize]));
        let refused = log.commit(&mut item, supply, |_| {}, |_| {}).expect_err("longer than a zone");
        assert!(matches!(refused, ChainError::TooLong { .. }));
        drop(log);
        let (mut heap, anchor) = open(&space).expect("sound");
        assert_eq!(recover_all(&mut heap, &anchor).len() as u64, count);
    }
}

/// Each chunk that is damaged below a floor is noticed, the newest of a memtable too.
#[test]
fn damage_is_not_taken_for_the_end() {
    damaged(2);
}

/// Nothing in another memtable tells that the chunks behind were durable.
#[test]
fn damage_in_the_only_memtable_is_not_taken_for_its_end() {
    damaged(1);
}

fn damaged(tables: u64) {
    let space = format(Region::dram(1 << 20, Pages::Ordinary).expect("memory"), 16);
    let (log, _) = log(&space, 2, Grants::default());
    let (mut item, mut places) = (Item::default(), Vec::new());
    for nth in 0..20u64 {
        item.clear();
        item.chunk((nth % tables) as usize).push(&Content::value(&nth.to_le_bytes(), &[1; 200]));
        let publish = |written: &Written<'_>| places.extend(written.references());
        log.commit(&mut item, Supply::default(), |_| {}, publish).expect("room");
    }
    drop(log);
    let shift = ZONE.trailing_zeros();
    let at = |place: &Reference| space.zone_offset(place.zone(shift)) + place.offset(shift);
    let cut = || {
        let (mut heap, anchor) = open(&space).expect("sound");
        recover(&mut heap, &anchor).map(|recovered| recovered.cut)
    };
    // The last item was not below any floor, so its loss cannot be told from a crash.
    for place in &places[..19] {
        for at in [at(place), at(place) + 32] {
            let sound = space.region().load(at);
            space.region().store(at, sound ^ 1 << 17);
            assert!(matches!(cut(), Err(ChainError::Missing(_))), "damage at {at}");
            space.region().store(at, sound);
        }
    }
    // A number that nothing can follow, where the chunk is not even whole.
    let last = at(&places[19]);
    let sound = space.region().load(last);
    space.region().store(last, u64::MAX);
    let (mut heap, anchor) = open(&space).expect("sound");
    let recovered = recover(&mut heap, &anchor).expect("the end");
    space.region().store(last, sound);
    // Once they have ended, memtables that lose a chunk are damaged, also to a reader.
    let middle = at(&places[8]) + 32;
    space.region().store(middle, space.region().load(middle) ^ 1);
    let RecoveredMemtable { memtable, end } = &recovered.memtables[0];
    // SAFETY: nobody writes.
    let read = unsafe { heap.records(memtable, *end, |_| {}) };
    assert!(matches!(read, Err(ChainError::Damaged { .. })));
    assert!(matches!(cut(), Err(ChainError::Damaged { .. })));
}

/// An item costs one fence, and the lines of its chunks: no more for several memtables, and none is read.
#[test]
fn an_item_costs_one_fence_and_its_own_lines() {
    let region = Region::sim(SimOptions { len: 1 << 20, ..SimOptions::default() });
    let space = format(region.clone(), 16);
    let (log, _) = log(&space, 3, Grants::default());
    let mut item = Item::default();
    let mut commit = |tables: usize, records: usize, value: usize| {
        item.clear();
        for record in 0..records {
            item.chunk(record % tables).push(&Content::value(&[1; 8], &vec![2; value]));
        }
        log.commit(&mut item, Supply::default(), |_| {}, |_| {}).expect("room");
    };
    // The first ones draw numbers, and each makes the next zone of a memtable ready.
    (1..=3).for_each(|tables| commit(tables, tables, 8));
    for (tables, records, value) in [(1, 1, 32), (1, 7, 100), (2, 2, 40), (3, 9, 20)] {
        let before = region.simulator().expect("simulated").cost();
        commit(tables, records, value);
        let cost = region.simulator().expect("simulated").cost() - before;
        let record = (16 + 8 + value as u64).next_multiple_of(8);
        let lines = |table: usize| (64 + (records - table).div_ceil(tables) as u64 * record).div_ceil(64_u64);
        let expected = (0..tables).map(lines).sum::<u64>();
        let found = (cost.fences, cost.lines_persisted(), cost.lines_read);
        assert_eq!(found, (1, expected, 0), "{records} records of {value} in {tables} tables");
    }
}

/// Clients that meet write one item together; the records of each are found, in the order of each.
#[test]
fn clients_that_meet_write_one_item() {
    const CLIENTS: usize = 4;
    const WRITES: u32 = 300;
    for records in [1, 3, 100] {
        let space = format(Region::dram(4 << 20, Pages::Ordinary).expect("memory"), 200);
        let (log, _) = log(&space, 2, Grants::default());
        let groups = Groups::new(GroupSettings { buckets: 1, records, bytes: 2000, linger: 0 });
        let items = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                let (log, groups, items) = (&log, &groups, &items);
                scope.spawn(move || {
                    let (mut own, mut before) = (groups.client(client), 0);
                    for nth in 0..WRITES {
                        own.fill(|item| {
                            for table in 0..2 {
                                let key = format!("{client} {table}");
                                item.chunk(table).push(&Content::value(key.as_bytes(), &nth.to_le_bytes()));
                            }
                        });
                        let counted = |_: &_| {
                            items.fetch_add(1, Ordering::Relaxed);
                        };
                        let last =
                            groups.commit(log, &mut own, Supply::default(), counted, |_| {}).expect("room");
                        assert!(last > before && log.visible() >= last);
                        before = last;
                    }
                });
            }
        });
        let all = u64::from(WRITES) * CLIENTS as u64;
        let items = items.into_inner();
        assert!(items <= all && (records > 1 || items == all), "{items} items for {all} writes");
        let (mut heap, anchor) = close(&space, log);
        let found = recover_all(&mut heap, &anchor);
        assert_eq!(found.len() as u64, all * 2);
        let mut next = BTreeMap::new();
        for read in found.values() {
            let next: &mut u32 = next.entry(read.key.clone()).or_default();
            assert_eq!(read.value, next.to_le_bytes(), "each client's writes stay in order");
            *next += 1;
        }
    }
}

/// A group that finds no room is written by each of its clients alone, as far as there is room.
#[test]
fn a_full_pool_refuses_each_client_of_a_group() {
    let space = format(Region::dram(1 << 20, Pages::Ordinary).expect("memory"), 3);
    let (log, _) = log(&space, 1, Grants::default());
    let groups = Groups::new(GroupSettings { buckets: 1, records: 8, bytes: 4000, linger: 2 });
    let written: usize = std::thread::scope(|scope| {
        let clients = (0..4).map(|client| {
            let (log, groups) = (&log, &groups);
            scope.spawn(move || {
                let mut own = groups.client(client);
                let mut write = |nth: usize| {
                    own.fill(|item| item.chunk(0).push(&Content::value(&nth.to_le_bytes(), &[1; 300])));
                    groups.commit(log, &mut own, Supply::default(), |_| {}, |_| {})
                };
                let full = (0..).map(&mut write).take_while(Result::is_ok).count();
                assert!(matches!(write(full), Err(ChainError::NoMemtable { count: 3 })));
                full
            })
        });
        clients.collect::<Vec<_>>().into_iter().map(|client| client.join().expect("no panic")).sum()
    });
    let (mut heap, anchor) = close(&space, log);
    assert_eq!(recover_all(&mut heap, &anchor).len(), written);
}

/// With a copy of the superblock, the clock's ceiling may be lost; numbers of the chain are not used again.
#[test]
fn no_number_is_used_twice_when_a_superblock_is_lost() {
    let space = format(Region::dram(1 << 20, Pages::Ordinary).expect("memory"), 30);
    let (own, _) = log(&space, 1, Grants::default());
    let mut item = Item::default();
    let (mut last, mut is_tried) = (0, false);
    for nth in 0..760u64 {
        item.chunk(0).push(&Content::value(&nth.to_le_bytes(), b""));
        last = own.commit(&mut item, Supply::default(), |_| {}, |_| {}).expect("room");
    }
    let bytes = bytes_of(&space);
    for copy in 0..2usize {
        let region = Region::dram(1 << 20, Pages::Ordinary).expect("memory");
        region.write(0, &bytes);
        let byte = 4096 * copy + 64;
        region.write(byte as u64, &[!bytes[byte]]);
        let (space, recovery) = Space::open(region).expect("the other copy is there");
        assert!(recovery.superblock_copy_lost);
        let space = Arc::new(space);
        let clock = Clock::resume(&space, CLOCK, true);
        is_tried |= Clock::resume(&space, CLOCK, true).draw(&space) <= last;
        let mut heap = ChainHeap::new(space.clone(), certifier(), clock, POOLS, SLOTS);
        let at = space.pool(ANCHOR).and_then(|pool| pool.object_offset(ObjectId(0))).expect("the anchor");
        let anchor = Anchor::open(space.region(), &certifier(), at).expect("sound");
        let recovered = recover(&mut heap, &anchor).expect("sound");
        assert_eq!(recovered.cut, last);
        let late = heap.create_subtable("late").expect("room").created;
        assert!(late > last, "a table would have the number of another one");
        let own = ChainLog::new(heap, Grants::default(), recovered);
        open_tables(&own, 1);
        item.chunk(0).push(&Content::value(b"after", b""));
        assert!(own.commit(&mut item, Supply::default(), |_| {}, |_| {}).expect("room") > last);
        drop(own);
        let (mut heap, anchor) = open(&space).expect("sound");
        assert_eq!(recover_all(&mut heap, &anchor).len(), 761);
    }
    assert!(is_tried, "one copy alone lets the clock go back");
}
