//! The checker against histories whose verdict is known, and against trying all orders.

use super::operation::{Caller, Operation};
use super::{BUDGET, History, Verdict, Violation, check};
use crate::action::{Action, NOBODYS, Outcome, State};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// An operation on key 7 from one stamp to another.
fn operation(action: Action, invoked: u64, returned: u64, outcome: Outcome) -> Operation {
    Operation { caller: Caller::Thread(0), key: 7, action, invoked, returned: Some((returned, outcome)) }
}

fn put(value: u64, invoked: u64, returned: u64) -> Operation {
    operation(Action::Put(value), invoked, returned, Outcome::Done)
}

fn get(saw: State, invoked: u64, returned: u64) -> Operation {
    operation(Action::Get, invoked, returned, Outcome::Saw(saw))
}

fn remove(did: bool, invoked: u64, returned: u64) -> Operation {
    operation(Action::Remove, invoked, returned, Outcome::Did(did))
}

fn update(saw: State, new: State, invoked: u64, returned: u64) -> Operation {
    operation(Action::Update(new), invoked, returned, Outcome::Saw(saw))
}

fn never_returns(operation: Operation) -> Operation {
    Operation { returned: None, ..operation }
}

fn verdict(operations: &[Operation]) -> Verdict {
    check(&History { operations: operations.to_vec(), ..History::default() }, BUDGET)
}

fn fine(operations: &[Operation]) {
    let verdict = verdict(operations);
    assert!(matches!(verdict, Verdict::Linearizable), "{verdict:?}");
}

#[track_caller]
fn violation(operations: &[Operation]) -> Violation {
    match verdict(operations) {
        Verdict::Violation(violation) => *violation,
        other => panic!("{other:?} of {operations:?}"),
    }
}

#[test]
fn calls_that_overlap_may_come_in_either_order() {
    fine(&[]);
    fine(&[put(1, 1, 4), get(None, 2, 3)]);
    fine(&[put(1, 1, 4), get(Some(1), 2, 3)]);
    fine(&[put(1, 1, 6), put(2, 2, 5), get(Some(1), 3, 4), get(Some(2), 7, 8)]);
    fine(&[put(1, 1, 2), remove(true, 3, 6), remove(false, 4, 5)]);
    fine(&[put(1, 1, 2), update(Some(1), Some(2), 3, 6), update(Some(2), None, 4, 5), get(None, 7, 8)]);
}

#[test]
fn a_stale_read_is_a_violation() {
    let violation = violation(&[put(1, 1, 2), put(2, 3, 4), get(Some(1), 5, 6)]);
    assert_eq!((violation.before, violation.window.len()), (None, 2), "{violation}");
    assert_eq!(
        violation.to_string(),
        "key 7: no order explains these 2 of its 3 calls; whatever it can have held before them:\n\
         \x20      3 to      4  thread 0: put value 2, done\n\
         \x20      5 to      6  thread 0: get, saw value 1"
    );
}

#[test]
fn a_lost_update_is_a_violation() {
    let both = [put(1, 1, 2), update(Some(1), Some(2), 3, 6), update(Some(1), Some(3), 4, 5)];
    assert_eq!(violation(&both).window.len(), 2);
}

#[test]
fn a_read_that_goes_back_in_time_is_a_violation() {
    let put_under_way = [put(1, 1, 2), put(2, 3, 20), get(Some(2), 4, 5), get(Some(1), 6, 7)];
    let violation = violation(&put_under_way);
    // The put of 1 is evidence no longer: its value might have been there all along.
    assert_eq!(violation.window.len(), 3, "{violation}");
    assert!(
        violation.to_string().contains("put value 2, if at all"),
        "what came later is cut off: {violation}"
    );
}

#[test]
fn a_phantom_delete_is_a_violation() {
    violation(&[remove(true, 1, 2)]);
    violation(&[put(1, 1, 2), remove(true, 3, 6), remove(true, 4, 5)]);
    violation(&[put(1, 1, 2), get(None, 3, 4)]);
    violation(&[put(1, 1, 2), operation(Action::Delete, 3, 4, Outcome::Done), get(Some(1), 5, 6)]);
}

#[test]
fn conditional_writes_must_match_what_was_there() {
    let absent =
        |did, invoked, returned| operation(Action::PutIfAbsent(9), invoked, returned, Outcome::Did(did));
    let swap = |did, invoked, returned| {
        operation(Action::Swap(Some(1), Some(2)), invoked, returned, Outcome::Did(did))
    };
    violation(&[absent(true, 1, 4), absent(true, 2, 3)]);
    violation(&[absent(false, 1, 2)]);
    violation(&[put(1, 1, 2), swap(true, 3, 6), swap(true, 4, 5)]);
    violation(&[put(1, 1, 2), swap(false, 3, 4)]);
    fine(&[put(1, 1, 2), swap(false, 3, 6), swap(true, 4, 5), absent(false, 7, 8), get(Some(2), 9, 10)]);
}

#[test]
fn bytes_that_nobody_wrote_are_a_violation() {
    let violation = violation(&[put(1, 1, 2), get(Some(1), 3, 4), get(Some(NOBODYS), 5, 6)]);
    assert_eq!(violation.window.len(), 1);
    assert!(violation.to_string().contains("bytes that nobody wrote"), "{violation}");
}

#[test]
fn a_call_that_never_returned_may_have_happened_at_any_time_or_never() {
    let under_way = never_returns(put(2, 3, 0));
    for saw in [1, 2] {
        fine(&[put(1, 1, 2), under_way, get(Some(saw), 50, 51)]);
    }
    fine(&[put(1, 1, 2), under_way, get(Some(1), 4, 5), get(Some(2), 6, 7)]);
    violation(&[put(1, 1, 2), under_way, get(Some(2), 4, 5), get(Some(1), 6, 7)]);
    violation(&[never_returns(put(2, 3, 0)), get(Some(2), 1, 2)]);
}

#[test]
fn keys_are_judged_apart_and_begin_as_they_are_said_to() {
    let elsewhere = Operation { key: 8, ..put(1, 1, 2) };
    let operations = vec![elsewhere, get(None, 3, 4), Operation { key: 8, ..get(Some(1), 5, 6) }];
    fine(&operations);
    let history = History { initial: [(7, 5)].into(), operations };
    let Verdict::Violation(violation) = check(&history, BUDGET) else { panic!("key 7 holds value 5") };
    assert_eq!((violation.key, violation.before), (7, Some(Some(5))));
}

#[test]
fn a_small_budget_is_admitted() {
    let operations: Vec<_> = (1..20).map(|value| put(value, value, 1000 + value)).collect();
    let mut operations = operations;
    operations.push(get(None, 2000, 2001));
    let history = History { operations, ..History::default() };
    assert!(matches!(check(&history, 50), Verdict::Undecided { key: 7, operations: 20 }));
}

#[test]
fn long_histories_of_a_few_threads_are_judged_within_the_budget() {
    let mut operations = Vec::new();
    for round in 0..2_000u64 {
        let (value, start) = (round + 1, round * 10);
        operations.extend([put(value, start + 1, start + 6), get(Some(value), start + 2, start + 12)]);
    }
    fine(&operations);
    let last = 2_000 * 10 + 20;
    operations.push(get(Some(1_900), last, last + 1));
    assert!(violation(&operations).window.len() <= 3);
}

/// Whether some order explains the operations: all that there are, one after another, with no memory.
fn any_order(left: &[Operation], state: State) -> bool {
    left.iter().all(|operation| operation.returned.is_none())
        || left.iter().enumerate().any(|(number, next)| {
            let in_time = left.iter().all(|other| other.end() >= next.invoked);
            let (after, outcome) = next.action.apply(state, 0);
            let fits = next.returned.is_none_or(|(_, returned)| returned == outcome);
            in_time && fits && any_order(&[&left[..number], &left[number + 1..]].concat(), after)
        })
}

/// A history in which operations overlap and their outcomes are right by chance, or nearly.
fn any_history(random: &mut SmallRng) -> Vec<Operation> {
    let count = random.random_range(1..8);
    let mut stamps: Vec<u64> = (0..2 * count).collect();
    for at in (1..stamps.len()).rev() {
        stamps.swap(at, random.random_range(0..=at));
    }
    let mut operations: Vec<Operation> = stamps
        .chunks(2)
        .map(|stamps| {
            let state = |random: &mut SmallRng| random.random_ratio(2, 3).then(|| random.random_range(1..4));
            let action = match random.random_range(0..7) {
                0 => Action::Get,
                1 => Action::Put(random.random_range(1..4)),
                2 => Action::Remove,
                3 => Action::Delete,
                4 => Action::PutIfAbsent(random.random_range(1..4)),
                5 => Action::Swap(state(random), state(random)),
                _ => Action::Update(state(random)),
            };
            let (invoked, returned) = (stamps[0].min(stamps[1]), stamps[0].max(stamps[1]));
            operation(action, invoked, returned, Outcome::Done)
        })
        .collect();
    // Let each take effect at some moment that it spans, and then tell a lie now and then.
    let mut moments: Vec<(u64, usize)> = (0..operations.len())
        .map(|number| {
            let (invoked, end) = (operations[number].invoked, operations[number].end());
            (random.random_range(invoked..=end), number)
        })
        .collect();
    moments.sort_unstable();
    let mut state = None;
    for (_, number) in moments {
        let (after, outcome) = operations[number].action.apply(state, 0);
        let end = operations[number].end();
        let outcome = match outcome {
            Outcome::Did(did) if random.random_ratio(1, 6) => Outcome::Did(!did),
            Outcome::Saw(_) if random.random_ratio(1, 6) => {
                Outcome::Saw(random.random_ratio(2, 3).then(|| random.random_range(1..4)))
            }
            honest => honest,
        };
        operations[number].returned = random.random_ratio(9, 10).then_some((end, outcome));
        state = after;
    }
    operations
}

/// Some states that the key can have had when the window began: those written by earlier calls that are not
/// in it.
fn possible_starts(violation: &Violation, operations: &[Operation]) -> Vec<State> {
    if let Some(start) = violation.before {
        return vec![start];
    }
    let window = &violation.window;
    let last = window.iter().map(|operation| operation.invoked).max();
    let inside = |operation: &Operation| window.iter().any(|other| other.invoked == operation.invoked);
    let earlier = operations.iter().filter(|operation| {
        Some(operation.invoked) <= last && !operation.is_observer() && !inside(operation)
    });
    let written = earlier.filter_map(|operation| operation.action.written());
    written.chain([None]).collect()
}

#[test]
fn the_checker_agrees_with_trying_all_orders() {
    let mut random = SmallRng::seed_from_u64(1);
    let (mut explained, mut inexplicable) = (0, 0);
    for round in 0..30_000 {
        let operations = any_history(&mut random);
        let expected = any_order(&operations, None);
        match verdict(&operations) {
            Verdict::Linearizable => assert!(expected, "round {round}: {operations:#?}"),
            Verdict::Violation(violation) => {
                assert!(!expected, "round {round}: {violation}");
                // The window must be evidence by itself.
                for start in possible_starts(&violation, &operations) {
                    assert!(
                        !any_order(&violation.window, start),
                        "round {round}, from {start:?}: {violation}"
                    );
                }
                assert!(violation.window.len() <= operations.len());
                inexplicable += 1;
                continue;
            }
            Verdict::Undecided { .. } => panic!("round {round}: {operations:#?}"),
        }
        explained += 1;
    }
    assert!(
        explained > 5_000 && inexplicable > 5_000,
        "{explained} and {inexplicable}: one side is not tested"
    );
}
