//! Space comes back: blocks to clients, chunks at the end to the pool, and from a heap that is full.

use super::support::{Table, audit, fixed, heap, recover, region, value, variable};
use quipu_medium::sim::SimArena;
use quipu_parts::heap::slots::{Offset, PageBits, Reclaimed, SlotError, SlotSettings};
use std::collections::BTreeSet;

const ZONE: u64 = 64 << 10;

fn key(number: u64) -> Vec<u8> {
    number.to_le_bytes().to_vec()
}

#[test]
fn a_full_heap_is_reclaimed_with_its_reserve() {
    for settings in [fixed(), SlotSettings { pages_per_block: 3, ..variable() }] {
        let region = region(1 << 20);
        let table = Table::new(heap(&region, ZONE, settings, 2));
        let mut client = table.client(0);
        let mut count = 0;
        let full = loop {
            match client.put(&key(count), &value(count, 504)) {
                Ok(_) => count += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(full, SlotError::Full { .. }), "{full}");
        assert_eq!(table.heap.free_blocks(), 0);
        for number in (0..count).step_by(2) {
            assert!(client.delete(&key(number)), "a deletion needs no room");
        }
        let mut cleaner = table.cleaner(1);
        let mut blocks = 0;
        while cleaner.reclaim(40).expect("the reserve is there to move to") {
            cleaner.collect();
            blocks += 1;
        }
        assert!(blocks > 10 && table.heap.free_blocks() * 3 > blocks, "{blocks} blocks");
        for number in 0..count {
            let found = client.get(&key(number)).map(|(value, _)| value);
            assert_eq!(found, (number % 2 == 1).then(|| value(number, 504)));
        }
        client.put(&key(0), &value(0, 504)).expect("there is room again");
        drop((client, cleaner));
        drop(table);
        let recovered = recover(&region, settings, 2);
        assert_eq!((recovered.records.len() as u64, recovered.losers), (count / 2 + 1, 0));
    }
}

#[test]
fn chunks_that_nobody_uses_go_back_to_the_pool() {
    let settings = SlotSettings { fill_percent: 100, ..fixed() };
    let region = region(2 << 20);
    let table = Table::new(heap(&region, ZONE, settings, 2));
    let zones = table.heap.space().free_zones();
    let mut client = table.client(0);
    for number in 0..1000 {
        client.put(&key(number), &value(number, 504)).expect("room");
    }
    let grown = table.heap.space().free_zones();
    assert!(grown + 8 < zones);
    for number in 0..1000 {
        client.delete(&key(number));
    }
    client.leave();
    let mut cleaner = table.cleaner(1);
    let reader = table.reader();
    let pin = reader.pin();
    while cleaner.reclaim(50).expect("room") {}
    cleaner.collect();
    assert_eq!(table.heap.release_tail(), 0, "a reader may still be on its way there");
    drop(pin);
    cleaner.collect();
    let released = table.heap.release_tail();
    assert_eq!(table.heap.space().free_zones(), grown + released);
    assert!(released > 8, "{released} chunks");
    let usage = table.heap.usage();
    assert!(usage.allocated_blocks <= 2 * 15, "{usage:?}");

    // The heap grows again over the same numbers, and recovery finds what is there.
    let mut client = table.client(2);
    for number in 0..500 {
        client.put(&key(number), &value(number + 1, 504)).expect("room");
    }
    for number in 0..500 {
        assert_eq!(client.get(&key(number)).expect("put").0, value(number + 1, 504));
    }
    drop((client, cleaner, reader));
    drop(table);
    let recovered = recover(&region, settings, 2);
    assert_eq!(recovered.records.len(), 500);
    audit(&recovered.heap, 15);
}

/// Someone has replaced the record and not let it go yet: the block waits for that.
#[test]
fn a_record_that_the_index_no_longer_names_is_left_to_who_replaced_it() {
    let bits = PageBits::of(1);
    for settings in [fixed(), variable()] {
        let region = region(1 << 20);
        let heap = heap(&region, ZONE, settings, 1);
        let mut owner = heap.owner(0);
        let mut offsets: Vec<Offset> = Vec::new();
        for number in 0..7 {
            let placed = heap.place(&mut owner, &key(number), &value(number, 504), number);
            offsets.push(placed.expect("room").offset());
        }
        // The next block.
        let newer = heap.place(&mut owner, &key(0), &[9; 504], 10).expect("room").offset();
        assert_ne!(newer.block(bits), offsets[0].block(bits));
        drop(heap.delete(offsets.pop().expect("seven")).expect("sound").expect("it is there"));
        let mut cleaner = heap.cleaner(1);
        let victim = heap.victim(1).expect("a page has some room");
        assert_eq!(victim, offsets[0].block(bits));
        assert_eq!(heap.victim(1), None, "nobody else gets it");
        let mut moved = Vec::new();
        let reclaimed = heap.reclaim(&mut cleaner, victim, |record| {
            let names_it = record.key != key(0);
            if names_it {
                moved.push((record.from, record.to));
            }
            names_it
        });
        assert!(matches!(reclaimed, Ok(Reclaimed::Kept)));
        assert_eq!(moved.len(), 5);
        let mut buffer = Vec::new();
        for (number, (from, to)) in (1..).zip(&moved) {
            assert_eq!(*from, offsets[number as usize]);
            assert_eq!(heap.read(*from, &mut buffer).expect("sound"), None);
            let record = heap.read(*to, &mut buffer).expect("sound").expect("it moved");
            assert_eq!(
                (record.key, record.value, record.sequence),
                (&key(number)[..], &value(number, 504)[..], number)
            );
        }
        assert!(heap.read(offsets[0], &mut buffer).expect("sound").is_some());
        assert_eq!(heap.usage().live_records, 7);
        drop(heap.delete(offsets[0]).expect("sound").expect("it is there"));
        let victim = heap.victim(100).expect("nothing is left");
        let reclaimed = heap.reclaim(&mut cleaner, victim, |_| panic!("nothing is moved"));
        assert!(matches!(reclaimed, Ok(Reclaimed::Freed(_)) if victim == offsets[0].block(bits)));
    }
}

/// A reader has asked the index, and comes to a block that was one page when that is free again: it finds no
/// record, and no damage.
#[test]
fn a_reader_that_comes_late_to_a_large_block_finds_no_record_there() {
    let settings = SlotSettings { pages_per_block: 3, ..variable() };
    let region = region(1 << 20);
    let heap = heap(&region, ZONE, settings, 2);
    let mut owner = heap.owner(0);
    // More than a page, less than a block.
    let offset = heap.place(&mut owner, &[7; 8], &value(7, 6000), 1).expect("room").offset();
    drop(heap.delete(offset).expect("sound").expect("it is there"));
    heap.leave(owner);
    let mut cleaner = heap.cleaner(1);
    let block = heap.victim(100).expect("it is empty");
    let freed = heap.reclaim(&mut cleaner, block, |_| true).expect("nothing to move");
    assert!(matches!(freed, Reclaimed::Freed(_)));
    let mut buffer = Vec::new();
    assert_eq!(heap.read(offset, &mut buffer).expect("no damage"), None);
    assert_eq!(heap.read_value(offset, &[7; 8], &mut buffer).expect("no damage"), None);
    assert!(heap.delete(offset).expect("no damage").is_none());
    heap.leave(cleaner);
}

/// A client has published another value and waits for the page of the old one, of which reclamation makes a
/// copy: a crash then finds three records of the key. Those with the older number go, and with them, once,
/// the blocks of their value.
#[test]
fn a_crash_may_find_three_records_of_a_key() {
    let region = region(1 << 20);
    let sim = region.simulator().expect("a simulated region").clone();
    let heap = heap(&region, ZONE, variable(), 2);
    let mut owner = heap.owner(0);
    let old = heap.place(&mut owner, &key(0), &value(1, 9000), 1).expect("room").offset();
    let block = owner.block().expect("it writes there");
    let mut number = 1;
    while owner.block() == Some(block) {
        let offset = heap.place(&mut owner, &key(number), &value(2, 504), number + 1).expect("room").offset();
        if owner.block() == Some(block) {
            drop(heap.delete(offset).expect("sound").expect("it is there"));
        }
        number += 1;
    }
    let mut other = heap.owner(1);
    let new = heap.place(&mut other, &key(0), &value(3, 9000), 1000).expect("room").offset();
    let mut cleaner = heap.cleaner(1);
    let victim = heap.victim(50).expect("there is little in it");
    assert_eq!(victim, block);
    let mut crashed = None;
    let kept = heap.reclaim(&mut cleaner, victim, |moved| {
        assert_eq!((moved.key, moved.from), (&key(0)[..], old));
        crashed = Some(sim.snapshot());
        false
    });
    assert!(matches!(kept, Ok(Reclaimed::Kept)));
    let crashed = crashed.expect("one record is there");
    let region = SimArena::new().boot_process_crash(&crashed, 0);
    let recovered = recover(&region, variable(), 2);
    assert_eq!((recovered.records.len(), recovered.losers), (2, 2));
    assert_eq!(recovered.records[&key(0)[..]].offset, new);
    let mut buffer = Vec::new();
    let record = recovered.heap.read(new, &mut buffer).expect("sound").expect("it counts");
    assert_eq!((record.value, record.sequence), (&value(3, 9000)[..], 1000));
    // Of three blocks that hold the new value, and the page that names it, and the page of the last filler.
    let usage = recovered.heap.usage();
    assert_eq!((usage.used_blocks, usage.value_blocks), (5, 3), "{usage:?}");
    let mut owner = recovered.heap.owner(3);
    let mut blocks = BTreeSet::new();
    while let Ok(placed) = recovered.heap.place(&mut owner, &key(9), &value(9, 3000), 2000) {
        drop(placed);
        blocks.extend(owner.block());
    }
    assert_eq!(owner.taken(), blocks.len() as u64, "no block was given away twice");
}
