//! The search for an order, on one key.
//!
//! After Wing & Gong (JPDC 1993): of the remaining operations, one may come next if it began before any of
//! them ended. The search tries each, continues from the state that it leaves, and goes back where nothing
//! fits. Lowe (CCPE 2017) adds the memory: after the same operations and with the same state the rest fails
//! in the same way, so no such pair is tried twice. An operation that never returned may be taken like any
//! other, or be left out.

use super::operation::Operation;
use crate::action::State;
use std::collections::{BTreeSet, HashSet};

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// An order explains everything.
    Order,
    /// None does.
    Nothing,
    /// The budget ended first.
    Undecided,
}

/// Which operations are done: all before number `first_left`, and those of `beyond`. Long histories move a
/// small window over their operations, so this is small however long they are.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
struct Done {
    first_left: usize,
    beyond: BTreeSet<usize>,
}

impl Done {
    fn and(&self, number: usize) -> Done {
        let mut done = self.clone();
        done.beyond.insert(number);
        while done.beyond.remove(&done.first_left) {
            done.first_left += 1;
        }
        done
    }
}

/// An operation that was taken, and how to go back behind it.
struct Step {
    taken: usize,
    before: (State, Done),
}

/// Looks for an order of `operations`, which are sorted by their beginnings, from the state `start`. Every
/// operation tried takes one from `budget`.
pub(super) fn search(operations: &[Operation], start: State, budget: &mut u64) -> Found {
    let mut to_finish = operations.iter().filter(|operation| operation.returned.is_some()).count();
    let mut done = Done::default();
    let mut state = start;
    let mut tried = HashSet::new();
    let mut steps: Vec<Step> = Vec::new();
    // Where to go on looking for the next operation to take.
    let mut from = 0;
    while to_finish > 0 {
        if *budget == 0 {
            return Found::Undecided;
        }
        *budget -= 1;
        match next(operations, &done, state, from) {
            Some((number, after)) => {
                let with = done.and(number);
                if !tried.insert((with.clone(), after)) {
                    from = number + 1;
                    continue;
                }
                to_finish -= usize::from(operations[number].returned.is_some());
                from = with.first_left;
                let before = (std::mem::replace(&mut state, after), std::mem::replace(&mut done, with));
                steps.push(Step { taken: number, before });
            }
            None => {
                let Some(step) = steps.pop() else { return Found::Nothing };
                to_finish += usize::from(operations[step.taken].returned.is_some());
                from = step.taken + 1;
                (state, done) = step.before;
            }
        }
    }
    Found::Order
}

/// The first operation from number `from` on that may come next and returned what it then would, with the
/// state that it leaves.
fn next(operations: &[Operation], done: &Done, state: State, from: usize) -> Option<(usize, State)> {
    // The earliest end of what is left bounds what may come next. Since beginnings are sorted, only
    // operations before one can have ended before it began, so a single pass knows the bound when it needs
    // it.
    let mut bound = u64::MAX;
    for (number, operation) in operations.iter().enumerate().skip(done.first_left) {
        if operation.invoked > bound {
            return None;
        }
        if done.beyond.contains(&number) {
            continue;
        }
        bound = bound.min(operation.end());
        if number >= from {
            let (after, outcome) = operation.action.apply(state, 0);
            if operation.returned.is_none_or(|(_, returned)| returned == outcome) {
                return Some((number, after));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_the_same_in_whatever_order_it_came_about() {
        let set = |numbers: &[usize]| numbers.iter().fold(Done::default(), |done, number| done.and(*number));
        assert!(set(&[0, 1, 3, 200]) == set(&[200, 3, 1, 0]));
        assert!(set(&[0, 1, 3]) != set(&[0, 1]) && set(&[64]) != set(&[0, 1]));
        let all = set(&Vec::from_iter((0..640).rev()));
        assert!(all.first_left == 640 && all.beyond.is_empty());
    }
}
