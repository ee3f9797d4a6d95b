//! The judge of prefixes convicts what it must, and nothing else.

use super::*;

const fn at(table: usize, key: usize) -> Place {
    Place { table, key }
}

fn found(tables: usize, states: &[Write]) -> Found {
    let mut found: Found = (0..tables).map(|table| (table, BTreeMap::from([(0, None), (1, None)]))).collect();
    for (place, state) in states {
        found.get_mut(&place.table).expect("a table of the test").insert(place.key, *state);
    }
    found
}

/// Two tables. Item 1 puts to the first, item 3 to both, item 7 deletes what item 1 has put, item 9 puts to
/// the second. Items up to 3 are acknowledged.
fn order() -> Order {
    let mut order = Order::new(&found(2, &[]));
    order.grant(1, Rc::new([(at(0, 0), Some(1))]));
    order.grant(3, Rc::new([(at(0, 1), Some(2)), (at(1, 1), Some(3))]));
    order.grant(7, Rc::new([(at(0, 0), None)]));
    order.grant(9, Rc::new([(at(1, 0), Some(4)), (at(1, 1), Some(5))]));
    order.acknowledge(3);
    order
}

const THREE: [Write; 3] = [(at(0, 0), Some(1)), (at(0, 1), Some(2)), (at(1, 1), Some(3))];

#[track_caller]
fn convicted(order: &Order, tables: usize, states: &[Write], words: &str) {
    let fault = order.judge(&found(tables, states), 0).expect_err("a fault");
    assert!(fault.contains(words), "{fault}");
}

#[test]
fn every_prefix_from_the_acknowledged_on_is_left_alone() {
    let order = order();
    assert_eq!(order.judge(&found(2, &THREE), 0), Ok(3));
    assert_eq!(order.judge(&found(2, &THREE[1..]), 0), Ok(7));
    let all = [(at(0, 1), Some(2)), (at(1, 0), Some(4)), (at(1, 1), Some(5))];
    assert_eq!(order.judge(&found(2, &all), 0), Ok(9));
}

#[test]
fn a_hole_is_convicted() {
    let states = [(at(0, 0), Some(1)), (at(0, 1), Some(2)), (at(1, 0), Some(4)), (at(1, 1), Some(5))];
    convicted(&order(), 2, &states, "a hole at number 7");
}

#[test]
fn a_lost_write_is_convicted_if_it_was_acknowledged_or_seen() {
    let mut order = order();
    convicted(&order, 2, &[(at(0, 0), Some(1))], "acknowledged or seen");
    order.acknowledge(7);
    convicted(&order, 2, &THREE, "acknowledged or seen");
}

#[test]
fn half_a_batch_is_convicted() {
    let states = [(at(0, 1), Some(2)), (at(1, 0), Some(4)), (at(1, 1), Some(3))];
    convicted(&order(), 2, &states, "number 9 is there in part");
}

#[test]
fn a_write_that_came_back_or_never_was_is_convicted() {
    let mut order = order();
    order.acknowledge(9);
    let states = [(at(0, 0), Some(1)), (at(0, 1), Some(2)), (at(1, 0), Some(4)), (at(1, 1), Some(5))];
    convicted(&order, 2, &states, "as it was before");
    convicted(&order, 2, &[(at(0, 0), Some(77))], "which it has not had");
}

#[test]
fn a_write_in_a_wrong_table_is_convicted() {
    convicted(&order(), 2, &[&THREE[..], &[(at(1, 0), Some(1))]].concat(), "a write to another table");
}

#[test]
fn tables_are_there_from_their_creation_to_their_drop() {
    let mut order = order();
    convicted(&order, 1, &THREE[..2], "which was created, is gone");
    order.set_fate(1, Fate::Dropping);
    // Gone, and so all that was written to it had happened.
    let gone = [(at(0, 1), Some(2))];
    assert_eq!(order.judge(&found(1, &gone), 0), Ok(9));
    convicted(&order, 1, &THREE[..2], "acknowledged or seen");
    assert_eq!(order.judge(&found(2, &THREE), 0), Ok(3));
    // Not by halves.
    convicted(&order, 2, &THREE[..2], "acknowledged or seen");
    order.set_fate(1, Fate::Gone);
    convicted(&order, 2, &THREE, "which was dropped, is there");
    let next = order.create();
    assert_eq!((next, order.judge(&found(1, &gone), 0)), (2, Ok(9)));
    order.set_fate(next, Fate::There);
    convicted(&order, 1, &gone, "which was created, is gone");
}

#[test]
fn readers_have_seen_cuts_that_show_what_they_saw() {
    let order = order();
    let cuts = |since, seen: &[Write]| -> Vec<u64> {
        order.cuts(since).into_iter().filter(|cut| order.shows(*cut, seen, 0..=0)).collect()
    };
    assert_eq!(cuts(0, &[(at(0, 0), Some(1))]), [1, 3]);
    assert_eq!(cuts(3, &[(at(0, 0), None)]), [7, 9]);
    assert_eq!(cuts(0, &[(at(0, 0), Some(1)), (at(1, 0), Some(4))]), [0; 0]);
    let swap = (at(0, 0), Action::Swap(Some(1), None));
    assert!(order.explains(6, swap, Outcome::Did(true), true, 0..=0));
    assert!(!order.explains(6, swap, Outcome::Did(true), false, 0..=0));
    assert!(!order.explains(7, swap, Outcome::Did(true), true, 0..=0));
    assert!(order.explains(7, swap, Outcome::Did(false), false, 0..=0));
}

/// One call puts one key three times, as one item.
#[test]
fn a_reader_may_see_a_key_between_two_puts_of_an_item_and_a_crash_may_not() {
    let mut order = Order::new(&found(1, &[]));
    let put = |value| (at(0, 0), Some(value));
    order.grant_parts(4..=6, Rc::new([put(1), put(2), put(3)]));
    order.grant(7, Rc::new([(at(0, 1), Some(4))]));
    assert_eq!(order.looks(0), BTreeSet::from([0, 4, 5, 6, 7]));
    assert_eq!(order.cuts(0), BTreeSet::from([0, 6, 7]));
    assert_eq!(
        [3, 4, 5, 6, 7].map(|number| order.state(at(0, 0), number)),
        [None, Some(1), Some(2), Some(3), Some(3)]
    );
    convicted(&order, 1, &[put(2)], "found Some(2)");
    order.acknowledge(4);
    assert_eq!(order.least(), 6);
    convicted(&order, 1, &[], "acknowledged or seen");
    assert_eq!(order.judge(&found(1, &[put(3)]), 0), Ok(6));
}
