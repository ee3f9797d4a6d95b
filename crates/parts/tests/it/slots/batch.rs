//! PACMAN's way of letting records go and of moving them, step by step: the marks in the pool, the bits in
//! DRAM, and the state that a crash between two steps leaves.

use super::support::{heap, region, variable};
use quipu_medium::sim::sched;
use quipu_medium::sim::{Image, SimArena, Snapshot};
use quipu_medium::{Pages, Region};
use quipu_parts::heap::slots::{
    Batch, Neighbor, Owner, Reclaimed, Record, SizedOffset, SlotError, SlotHeap, SlotSettings,
    SlotTechniques, Victim,
};
use quipu_parts::heap::{Clock, ClockSettings};
use quipu_parts::record::Certifier;
use quipu_parts::space::Space;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

const ZONE: u64 = 16 << 10;
const RESERVE: usize = 2;

/// Blocks of three pages, one of which fills a zone.
fn pacman() -> SlotSettings {
    SlotSettings { techniques: SlotTechniques::ALL, pages_per_block: 3, ..variable() }
}

/// What is marked in a pool: sequence numbers, whether of tombstones, in the order of their places.
type Marked = Vec<(u64, bool)>;

/// What is marked after a crash at this moment, with everything that is on its way or with nothing of it.
fn marked_after_crash(region: &Region, everything: bool) -> Marked {
    let snapshot = region.simulator().expect("simulated").snapshot();
    marked_in(&snapshot, &if everything { snapshot.everything() } else { snapshot.nothing() })
}

/// The marked records in the state that a crash has left.
fn marked_in(snapshot: &Snapshot, image: &Image) -> Marked {
    let rebooted = SimArena::new().boot(snapshot, image, 1);
    let (space, found) = Space::open(rebooted).expect("the pool opens");
    let certifier = Certifier::new(space.superblock().secret());
    let clock = Clock::resume(&space, ClockSettings { block: 1000, handful: 4 }, found.superblock_copy_lost);
    let (heap, damages) =
        SlotHeap::new(&Neighbor::default(), space, certifier, clock, pacman(), RESERVE).expect("settings");
    assert_eq!(damages, []);
    let mut marked = Marked::new();
    let damages =
        heap.scan(0..heap.blocks(), |found| marked.push((found.stands.sequence, found.stands.is_tombstone)));
    assert_eq!(damages, []);
    marked
}

fn marked(region: &Region) -> Marked {
    let found = marked_after_crash(region, true);
    assert_eq!(found, marked_after_crash(region, false), "all of it is durable");
    found
}

fn put(heap: &SlotHeap, owner: &mut Owner, number: u64, len: usize) -> SizedOffset {
    heap.place(owner, &number.to_be_bytes(), &vec![number as u8; len], number).expect("room").sized()
}

fn delete(heap: &SlotHeap, owner: &mut Owner, number: u64, sequence: u64) -> SizedOffset {
    let key = &number.to_be_bytes();
    let mut claim = heap.claim_tombstone(owner, key, sequence).expect("room");
    claim.persist(Record { key, value: &[], sequence });
    claim.sized()
}

/// Fills the owner's block, so that nobody writes to it any more, with records that are dead at once.
fn fill(heap: &SlotHeap, owner: &mut Owner, sequence: u64) {
    let block = owner.block();
    while owner.block() == block {
        let placed = heap.place(owner, b"filling.", &[0; 900], sequence).expect("room").sized();
        if owner.block() == block {
            heap.note_dead(placed.offset, placed.told_len().expect("short"), sequence + 1);
        }
    }
}

/// Begins to empty the only block that is worth it, and collects all of it.
fn begin(heap: &SlotHeap, batch: &mut Batch) -> Victim {
    let block = heap.victim(1).expect("a block is worth it");
    let mut victim = heap.evacuate(block);
    assert!(heap.collect(&mut victim, usize::MAX, batch).expect("sound"));
    victim
}

fn free(heap: &SlotHeap, victim: &Victim, cleaner: &mut Owner) {
    match heap.free_victim(victim, cleaner, |_| unreachable!("no values in blocks of their own")) {
        Ok(Reclaimed::Freed(block)) => heap.recycle(block),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_dead_stays_marked_and_is_not_collected() {
    let region = region(128 << 10);
    let heap = heap(&region, ZONE, pacman(), RESERVE);
    let (mut owner, mut batch) = (heap.owner(1), Batch::default());
    let places: Vec<_> = (1..=4).map(|number| put(&heap, &mut owner, number, 100)).collect();
    let before = region.simulator().expect("simulated").cost();
    assert!(heap.note_dead(places[1].offset, places[1].told_len().expect("short"), 9));
    assert!(!heap.note_dead(places[1].offset, places[1].told_len().expect("short"), 9), "once");
    let cost = region.simulator().expect("simulated").cost() - before;
    assert_eq!((cost.words_stored, cost.reads), (0, 0), "nothing is written or read for it: {cost:?}");
    assert_eq!(marked(&region), [(1, false), (2, false), (3, false), (4, false)]);
    fill(&heap, &mut owner, 100);
    let _ = begin(&heap, &mut batch);
    let numbers: Vec<_> = batch.records().map(|(_, record)| record.sequence).collect();
    assert_eq!(numbers[..3], [1, 3, 4]);
    assert!(!numbers.contains(&2));
}

#[test]
fn copies_count_when_all_of_them_are_durable_and_not_before() {
    let region = region(128 << 10);
    let heap = heap(&region, ZONE, pacman(), RESERVE);
    let (mut owner, mut cleaner, mut batch) = (heap.owner(1), heap.cleaner(2), Batch::default());
    // Short ones, and some that continue on the next page.
    for number in 1..=8 {
        put(&heap, &mut owner, number, (number as usize % 4) * 700);
    }
    fill(&heap, &mut owner, 100);
    let of_keys =
        |marked: Marked| -> Vec<u64> { marked.into_iter().map(|(n, _)| n).filter(|n| *n < 10).collect() };
    let originals: Vec<u64> = of_keys(marked(&region));
    let victim = begin(&heap, &mut batch);
    let live = batch.records().count();
    heap.copy(&mut cleaner, &mut batch).expect("room");
    for everything in [false, true] {
        assert_eq!(of_keys(marked_after_crash(&region, everything)), originals, "no copy counts yet");
    }
    heap.reveal(&batch);
    heap.settle_copies();
    let both = marked(&region).len();
    assert_eq!(of_keys(marked(&region)).len(), 2 * originals.len(), "originals and copies");
    for (key, record) in batch.records() {
        let copy = record.to.expect("it was copied");
        assert_ne!(copy.offset, record.from.offset);
        let mut buffer = Vec::new();
        let found = heap.read(copy.offset, &mut buffer).expect("sound").expect("a record");
        assert_eq!((found.key, found.sequence), (key, record.sequence));
        assert!(heap.note_dead(record.from.offset, record.len, record.sequence));
    }
    free(&heap, &victim, &mut cleaner);
    assert!(both - marked(&region).len() >= live, "the originals went as a whole");
    let mut copies = of_keys(marked(&region));
    copies.sort_unstable();
    assert_eq!(copies, (1..=8).collect::<Vec<_>>());
    assert_eq!(heap.verify(|_| ()), [], "what blocks hold is counted right");
}

#[test]
fn a_copy_that_has_lost_is_gone_before_its_original() {
    let region = region(128 << 10);
    let heap = heap(&region, ZONE, pacman(), RESERVE);
    let (mut owner, mut cleaner, mut batch) = (heap.owner(1), heap.cleaner(2), Batch::default());
    let first = put(&heap, &mut owner, 1, 300);
    put(&heap, &mut owner, 2, 300);
    fill(&heap, &mut owner, 100);
    let victim = begin(&heap, &mut batch);
    heap.copy(&mut cleaner, &mut batch).expect("room");
    // The key is deleted while its record moves.
    delete(&heap, &mut owner, 1, 500);
    heap.note_dead(first.offset, first.told_len().expect("short"), 500);
    heap.reveal(&batch);
    let lost = batch.records().find(|(_, record)| record.sequence == 1).and_then(|(_, record)| record.to);
    heap.void(lost.expect("it was copied")).expect("sound");
    heap.settle_copies();
    for (_, record) in batch.records().filter(|(_, record)| record.sequence != 1) {
        heap.note_dead(record.from.offset, record.len, record.sequence);
    }
    let ones = |region: &Region| marked(region).iter().filter(|(number, _)| *number == 1).count();
    assert_eq!(ones(&region), 1, "the original is marked, and its copy is not");
    free(&heap, &victim, &mut cleaner);
    assert_eq!(ones(&region), 0);
    assert!(marked(&region).contains(&(500, true)));
    assert_eq!(heap.verify(|_| ()), []);
}

/// A block with a tombstone that has nothing else to do, one that holds it back, and what reclamation makes
/// of the first.
fn tombstone_moves(heap: &SlotHeap, older_is_marked: bool) -> bool {
    let (mut owner, mut other, mut batch) = (heap.owner(1), heap.owner(2), Batch::default());
    let record = put(heap, &mut other, 1, 300);
    delete(heap, &mut owner, 1, 50);
    if older_is_marked {
        heap.note_dead(record.offset, record.told_len().expect("short"), 50);
    }
    put(heap, &mut owner, 2, 300);
    fill(heap, &mut owner, 100);
    let victim = begin(heap, &mut batch);
    let gone = batch.drop_tombstones(|_, sequence| !victim.may_go(sequence));
    assert!(gone.len() <= 1);
    gone.is_empty()
}

#[test]
fn a_tombstone_moves_as_long_as_another_block_holds_an_older_record() {
    let of = |older_is_marked| {
        let region = region(128 << 10);
        tombstone_moves(&heap(&region, ZONE, pacman(), RESERVE), older_is_marked)
    };
    assert!(of(true), "the record in the other block would come back");
    assert!(!of(false), "nothing would");
}

#[test]
fn marks_are_cleared_where_nothing_but_tombstones_is_to_be_gained() {
    let region = region(128 << 10);
    let heap = heap(&region, ZONE, pacman(), RESERVE);
    let (mut owner, mut other) = (heap.owner(1), heap.owner(2));
    // The block of the other client is open, so it cannot be reclaimed.
    let record = put(&heap, &mut other, 1, 300);
    let block = owner.block();
    delete(&heap, &mut owner, 1, 50);
    heap.note_dead(record.offset, record.told_len().expect("short"), 50);
    let mut number = 1000;
    let first = owner.block();
    assert_ne!(first, block);
    while owner.block() == first {
        delete(&heap, &mut owner, number, number);
        number += 1;
    }
    assert!(marked(&region).contains(&(1, false)));
    let victim = heap.victim(100).expect("a block of tombstones that nothing needs");
    assert_eq!(Some(victim), first);
    assert!(!marked(&region).contains(&(1, false)), "what held them back is not marked any more");
    let (mut victim, mut batch) = (heap.evacuate(victim), Batch::default());
    assert!(heap.collect(&mut victim, usize::MAX, &mut batch).expect("sound"));
    let (most, gone) =
        (batch.records().count(), batch.drop_tombstones(|_, sequence| !victim.may_go(sequence)));
    assert_eq!((gone.len(), batch.records().count()), (most, 0), "none of them moves");
}

/// A tombstone goes with the block that has all it beats. If the block stays, for want of room, and its marks
/// are cleared for the sake of others, the marks of the records that it beats may arrive last.
#[test]
fn a_tombstone_is_marked_as_long_as_what_it_beats() {
    let region = region(256 << 10);
    let heap = heap(&region, ZONE, pacman(), RESERVE);
    let (mut owner, mut batch) = (heap.owner(1), Batch::default());
    let record = put(&heap, &mut owner, 1, 300);
    delete(&heap, &mut owner, 1, 50);
    heap.note_dead(record.offset, record.told_len().expect("short"), 50);
    fill(&heap, &mut owner, 100);
    let victim = begin(&heap, &mut batch);
    let gone = batch.drop_tombstones(|_, sequence| !victim.may_go(sequence));
    assert!(gone.len() == 1 && heap.note_tombstone_gone(gone[0]));
    heap.give_up(&victim, &SlotError::Full(heap.shortage(1)));
    let mut other = heap.owner(2);
    delete(&heap, &mut other, 1000, 1000);
    let block = other.block();
    let mut number = 1001;
    while other.block() == block {
        delete(&heap, &mut other, number, number);
        number += 1;
    }
    let snapshots = Rc::new(RefCell::new(Vec::new()));
    let taken = snapshots.clone();
    let sim = region.simulator().expect("simulated");
    sim.set_observer(Some(Box::new(move |sim, _| taken.borrow_mut().push(sim.snapshot()))));
    assert_eq!(heap.victim(100), block, "of which nothing is held back any more");
    sim.set_observer(None);
    assert!(!marked(&region).contains(&(1, false)), "its mark was cleared");
    let snapshots = snapshots.take();
    for (snapshot, image) in snapshots.iter().flat_map(|it| it.images(1, 8).map(move |image| (it, image))) {
        let marked = marked_in(snapshot, &image);
        assert!(
            !marked.contains(&(1, false)) || marked.contains(&(50, true)),
            "{}",
            image.describe(snapshot)
        );
    }
}

/// A record dies while the marks of its block are being cleared, and its own has been looked at already: from
/// then on the block holds its tombstone back.
#[test]
fn a_record_that_dies_behind_the_look_of_a_scrub_holds_its_tombstone_back() {
    let region = region(256 << 10);
    let heap = Rc::new(heap(&region, ZONE, pacman(), RESERVE));
    let (mut owner, mut other) = (heap.owner(1), heap.owner(2));
    // The first is looked at before the mark of the second is cleared.
    let [first, second] = [1, 2].map(|number| put(&heap, &mut other, number, 300));
    heap.note_dead(second.offset, second.told_len().expect("short"), 50);
    for number in 1000.. {
        let block = owner.block();
        delete(&heap, &mut owner, number, number);
        if block.is_some() && owner.block() != block {
            break;
        }
    }
    let (scrubbed, died) = (heap.clone(), Rc::new(Cell::new(false)));
    let dies = died.clone();
    let sim = region.simulator().expect("simulated");
    sim.set_observer(Some(Box::new(move |_, _| {
        if !dies.replace(true) {
            scrubbed.note_dead(first.offset, first.told_len().expect("short"), 60);
        }
    })));
    assert_eq!(heap.victim(100), None, "the first record would come back");
    sim.set_observer(None);
    assert!(died.get(), "no mark was cleared");
    assert!(heap.victim(100).is_some(), "it is cleared too, and then nothing needs the tombstones");
}

/// A tombstone may be written, be noted, and come to lie in a block that is done, all while somebody looks at
/// all blocks.
#[test]
fn a_tombstone_that_was_at_work_when_somebody_looked_does_not_go() {
    const ROUNDS: u64 = 8000;
    let region = Region::dram(64 << 20, Pages::Ordinary).expect("memory");
    let heap = heap(&region, 1 << 20, SlotSettings { pages_per_block: 1, ..pacman() }, RESERVE);
    let mut owner = heap.owner(1);
    // Each in a block that is too full to be worth it. They die with falling numbers, so none of them holds
    // the tombstone of the next one back.
    let sequence = |number| 2 * ROUNDS - number;
    let records: Vec<_> = (0..ROUNDS)
        .map(|number| {
            put(&heap, &mut owner, ROUNDS + number, 3900);
            heap.place(&mut owner, &number.to_be_bytes(), b"", 0).expect("room").sized()
        })
        .collect();
    heap.leave(owner);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut owner = heap.owner(1);
            for (number, record) in (0..).zip(&records) {
                for _ in 0..2 {
                    let filling = put(&heap, &mut owner, number, 1900);
                    heap.note_dead(filling.offset, filling.told_len().expect("short"), u64::MAX - 1);
                }
                delete(&heap, &mut owner, number, sequence(number));
                heap.note_dead(record.offset, record.told_len().expect("short"), sequence(number));
            }
            heap.leave(owner);
            is_done.store(true, Ordering::Release);
        });
        let (mut cleaner, mut batch) = (heap.cleaner(2), Batch::default());
        while !is_done.load(Ordering::Acquire) {
            let Some(block) = heap.victim(33) else { continue };
            let mut victim = heap.evacuate(block);
            while heap.collect(&mut victim, usize::MAX, &mut batch).expect("sound") {
                let gone = batch.drop_tombstones(|key, sequence| {
                    let number = u64::from_be_bytes(key.try_into().expect("a number"));
                    let record = heap.stands(records[number as usize].offset).expect("sound");
                    assert!(record.is_none() || !victim.may_go(sequence), "{number} would come back");
                    !victim.may_go(sequence)
                });
                for tombstone in gone {
                    heap.note_tombstone_gone(tombstone);
                }
                heap.copy(&mut cleaner, &mut batch).expect("room");
                heap.reveal(&batch);
                for (_, tombstone) in batch.records() {
                    heap.note_tombstone_gone(tombstone.from);
                }
                heap.settle_copies();
            }
            free(&heap, &victim, &mut cleaner);
        }
        heap.leave(cleaner);
    });
}

/// A client that releases a record on a page where a cleaner writes must not write the whole line back. The
/// cleaner may reveal the first word of its batch in that line, with no lock of the page.
#[test]
fn a_record_that_is_released_does_not_hide_a_batch_that_is_revealed() {
    let mut lost = 0;
    for seed in 0..500 {
        let region = region(256 << 10);
        let heap = heap(&region, ZONE, pacman(), RESERVE);
        let (mut owner, mut other) = (heap.owner(1), heap.owner(3));
        let (mut cleaner, mut batch) = (heap.cleaner(2), Batch::default());
        // As a record that has moved alone.
        let large = put(&heap, &mut cleaner, 1, 13_000);
        for number in 2..=4 {
            put(&heap, &mut owner, number, 100);
        }
        fill(&heap, &mut owner, 100);
        let _victim = begin(&heap, &mut batch);
        heap.copy(&mut cleaner, &mut batch).expect("room");
        let to = batch.records().next().and_then(|(_, record)| record.to).expect("it was copied");
        let tasks: Vec<Box<dyn FnOnce() + '_>> = vec![
            Box::new(|| {
                let placed = heap.place(&mut other, &1u64.to_be_bytes(), b"new", 200).expect("room");
                placed.release_old(large.offset).expect("it is there");
            }),
            Box::new(|| {
                heap.reveal(&batch);
                heap.settle_copies();
            }),
        ];
        sched::run(seed, tasks).expect("nobody waits for ever");
        lost += u32::from(heap.stands(to.offset).expect("sound").is_none());
    }
    assert_eq!(lost, 0, "batches of 500 whose first record is gone, and all behind it");
}
