//! FAST&FAIR.

use super::{format, moments, rebooted};
use crate::shared::keyed::ByKey;
use quipu_medium::sim::SimArena;
use quipu_parts::epoch::Collector;
use quipu_parts::index::InPool;
use quipu_parts::index::fastfair::FastFairIndex;

const LEN: u64 = 256 << 10;

/// A hint that stands in a record may lead to a node that a crash has left out of the tree. Nobody finds a
/// value that is changed there.
#[test]
fn a_hint_to_a_node_that_a_crash_left_out_of_the_tree_finds_nothing() {
    const KEYS: u64 = 30;
    // Not in order, so that the leaf is shared evenly.
    let key = |number: u64| (number * 7 % KEYS).to_be_bytes();
    let participant = Collector::new().register();
    let guard = participant.pin();
    let space = format(LEN, 3);
    let mut root = None;
    let index = FastFairIndex::create(space.clone(), (), 0, |made| root = Some(made)).expect("room");
    let root = root.expect("the root is given before the index is");
    let insert = |number| {
        index.insert(&guard, &key(number), number + 1).expect("room");
    };
    (0..KEYS - 1).for_each(insert);
    let moments = moments(space.region(), || (), || insert(KEYS - 1));
    assert_eq!(index.stats().splits, 1);
    let hint_of = |number| index.locate(&guard, &key(number)).expect("sound");
    let hints: Vec<_> = (0..KEYS - 1).map(hint_of).collect();
    let (mut arena, mut refused) = (SimArena::new(), 0);
    for (now, ()) in moments {
        let space = rebooted(&mut arena, &now, &now.nothing(), 1);
        let index = FastFairIndex::open(space, root, 0).expect("the index");
        for (number, hint) in (0..).zip(&hints) {
            let [old, new] = [number + 1, number + 100];
            let is_replaced = index.replace_at(&guard, *hint, old, new);
            let found = index.get(&guard, &key(number)).expect("sound");
            assert_eq!(found, Some(if is_replaced { new } else { old }), "key {number}");
            refused += u32::from(!is_replaced);
        }
    }
    assert!(refused > 0, "no hint led out of the tree");
}
