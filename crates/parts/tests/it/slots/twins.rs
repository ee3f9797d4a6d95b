//! Viper's own tie-break brings older values back; the one that replaces it does not. (That a version of one
//! byte misses writes is a test beside the locks.)

use super::support::{fixed, heap, recover, region};
use quipu_medium::sim::{SimArena, Snapshot, sched};
use quipu_parts::sync::Waiter;
use quipu_parts::twin::{self, Twin};
use std::cell::{Cell, RefCell};

/// The value that recovery finds for a key when a second replacement was acknowledged and the first was not.
/// The crossing of locks lets the second client finish while the oldest record is still marked, since its
/// page is held by a third.
fn recovered_after_crossing() -> Vec<u8> {
    let settings = fixed();
    let region = region(128 << 10);
    let heap = heap(&region, 16 << 10, settings, 0);
    let number = |number: u8| vec![number; 504];
    let (mut second, mut first, mut holder) = (heap.owner(1), heap.owner(2), heap.owner(3));
    // Blocks are numbered in the order in which they are taken: the oldest record gets the highest.
    for (owner, key) in [(&mut second, [7; 8]), (&mut first, [8; 8])] {
        drop(heap.place(owner, &key, &number(0), 1).expect("room"));
    }
    let oldest = heap.place(&mut holder, b"the key.", &number(1), 2).expect("room").offset();
    let stage = Cell::new(0);
    let wait_for = |wanted: u32| {
        let mut waiter = Waiter::default();
        while stage.get() < wanted {
            waiter.wait();
        }
    };
    let published = Cell::new(oldest);
    let crash: RefCell<Option<Snapshot>> = RefCell::new(None);
    let tasks: Vec<Box<dyn FnOnce() + '_>> = vec![
        Box::new(|| {
            let held = heap.place(&mut holder, &[9; 8], &number(9), 3).expect("room");
            stage.set(1);
            wait_for(3);
            drop(held);
        }),
        Box::new(|| {
            wait_for(1);
            let placed = heap.place(&mut first, b"the key.", &number(2), 4).expect("room");
            let old = published.replace(placed.offset());
            stage.set(2);
            placed.release_old(old).expect("it is there");
        }),
        Box::new(|| {
            wait_for(2);
            let placed = heap.place(&mut second, b"the key.", &number(3), 5).expect("room");
            let old = published.replace(placed.offset());
            placed.release_old(old).expect("it is there");
            // The write is acknowledged here.
            *crash.borrow_mut() = Some(region.simulator().expect("simulated").snapshot());
            stage.set(3);
        }),
    ];
    sched::run(1, tasks).expect("nobody waits for ever");
    let snapshot = crash.take().expect("it was acknowledged");
    let rebooted = SimArena::new().boot(&snapshot, &snapshot.nothing(), 1);
    let recovered = recover(&rebooted, settings, 0);
    assert_eq!(recovered.losers, 1, "the oldest record is still marked");
    let offset = recovered.records[&b"the key."[..]].offset;
    let mut buffer = Vec::new();
    recovered.heap.read(offset, &mut buffer).expect("sound").expect("found").value.to_vec()
}

#[test]
fn the_order_of_blocks_brings_back_an_old_value_and_numbers_do_not() {
    assert_eq!(recovered_after_crossing(), [3; 504], "acknowledged");
    let _left_out = twin::leave_out(Some(Twin::TiesByBlock));
    assert_eq!(recovered_after_crossing(), [1; 504], "older by two");
}
