//! States that explorations meet too seldom, made on purpose.

use crate::chain::{certifier, format, open_tables, open_with, recover};
use crate::crashes::at_each_operation;
use quipu_medium::Region;
use quipu_medium::sim::{SimArena, SimOptions, Snapshot};
use quipu_parts::commit::ring::{Grants, Place};
use quipu_parts::heap::chain::anchor::Anchor;
use quipu_parts::heap::chain::{ChainError, ChainLog, Item, Memtable, Supply};
use quipu_parts::record::Content;
use quipu_parts::space::Space;
use quipu_parts::twin::{Twin, leave_out};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Opens a pool and recovers it.
fn recovered(region: &Region) -> Result<(ChainLog, Anchor), ChainError> {
    let space = Arc::new(Space::open(region.clone()).expect("sound").0);
    let (mut heap, anchor) = open_with(&space, certifier(), 1)?;
    let recovered = recover(&mut heap, &anchor)?;
    Ok((ChainLog::new(heap, Grants::default(), recovered), anchor))
}

/// The crashes at each operation while an anchor is raised.
fn crashes_of_raise(region: &Region, anchor: &Anchor, through: u64) -> Vec<Snapshot> {
    let crashes = Rc::new(RefCell::new(Vec::new()));
    let noted = crashes.clone();
    at_each_operation(
        region,
        move |during| noted.borrow_mut().push(during.clone()),
        || anchor.raise(region, &certifier(), through),
    );
    crashes.take()
}

/// The process dies while it writes one of the two copies of the anchor, which was known to tell 20.
/// Recovery acts on what that copy has in the caches, and the next write replaces the other one, which may be
/// all that the medium has. Then the power fails. Returns the lowest number that the anchor tells, or nothing
/// if it may be lost.
fn lowest_after_a_death() -> Option<u64> {
    let region = Region::sim(SimOptions { len: 512 << 10, streams: false, ..SimOptions::default() });
    drop(format(region.clone(), 4));
    let (_, anchor) = recovered(&region).expect("a new pool");
    [10, 20].into_iter().for_each(|through| anchor.raise(&region, &certifier(), through));
    let (mut arena, mut lowest) = (SimArena::new(), Some(u64::MAX));
    for death in crashes_of_raise(&region, &anchor, 30) {
        let region = arena.boot_process_crash(&death, 1);
        let (_, anchor) = recovered(&region).expect("sound");
        for failure in crashes_of_raise(&region, &anchor, 40) {
            for image in failure.images(1, 32) {
                let found = recovered(&arena.boot(&failure, &image, 1));
                lowest = lowest.min(found.ok().map(|(_, anchor)| anchor.through()));
            }
        }
    }
    lowest
}

#[test]
fn recovery_makes_the_anchor_durable_that_it_acts_on() {
    assert_eq!(lowest_after_a_death(), Some(20));
    let _left_out = leave_out(Some(Twin::AnchorNotFlushed));
    assert!(lowest_after_a_death() < Some(20), "an older copy is left, or none");
}

/// An item is under way in a memtable that later ones fill, and another thread, whose own item is visible,
/// looks for memtables to end. Then the power fails, and nothing arrives that need not. Returns whether the
/// memtables that had ended were visible as a whole, and whether recovery finds the items that were.
fn ends_what_is_visible() -> (bool, bool) {
    let region = Region::sim(SimOptions { len: 512 << 10, ..SimOptions::default() });
    drop(format(region.clone(), 20));
    let (log, _) = recovered(&region).expect("a new pool");
    open_tables(&log, 1);
    let item = |number: u64, len: usize| {
        let mut item = Item::default();
        item.chunk(0).push(&Content::value(&number.to_le_bytes(), &vec![7; len]));
        item
    };
    let write = |mut item: Item| log.write(&mut item, Supply::default(), |_, _| (), |_| (), |_| ());
    let first = write(item(0, 8)).expect("room");
    log.wait(first).expect("nobody panicked");
    let mut outcome = None;
    let meanwhile = |_: &Place| {
        let before = log.memtables().len();
        (1..)
            .take_while(|number| write(item(*number, 900)).is_ok() && log.memtables().len() < before + 2)
            .count();
        log.wait(first).expect("nobody panicked");
        let has_ended = |memtable: &Arc<Memtable>| memtable.end().is_some();
        let ended: Vec<_> = log.memtables().into_iter().filter(has_ended).collect();
        let is_visible = ended.iter().all(|memtable| log.heap().last_of(memtable) <= log.visible());
        let failure = region.simulator().expect("simulated").snapshot();
        let found = recovered(&SimArena::new().boot(&failure, &failure.nothing(), 1));
        outcome = Some((is_visible, found.is_ok_and(|(log, _)| log.visible() == first)));
    };
    let last = log.write(&mut item(99, 8), Supply::default(), |_, _| (), meanwhile, |_| ()).expect("room");
    log.wait(last).expect("nobody panicked");
    assert!(log.memtables().iter().any(|memtable| memtable.end().is_some()), "one was full");
    outcome.expect("it was granted")
}

#[test]
fn a_full_memtable_ends_when_all_of_it_is_visible() {
    assert_eq!(ends_what_is_visible(), (true, true));
    let _left_out = leave_out(Some(Twin::EndedUnseen));
    assert_eq!(ends_what_is_visible(), (false, false));
}
