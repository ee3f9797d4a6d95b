//! The search for an order, on one key.
//!
//! After Wing & Gong (JPDC 1993): of the remaining operations, one may come next if it began before any of
//! them ended. The search tries each, continues from the state that it leaves, and goes back where nothing
//! fits. Lowe (CCPE 2017) adds the memory: after the same operations and with the same state the rest fails
//! in the same way, so no such pair is tried twice. An operation that never returned may be taken like any
//! other, or be left out.

use super::operation::{Operation, State};
use std::collections::HashSet;

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

/// Which operations are done, by their number.
#[derive(Clone, Default)]
struct Done {
    words: Vec<u64>,
}

impl Done {
    fn contains(&self, number: usize) -> bool {
        self.words.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    fn insert(&mut self, number: usize) {
        if self.words.len() <= number / 64 {
            self.words.resize(number / 64 + 1, 0);
        }
        self.words[number / 64] |= 1 << (number % 64);
    }

    fn remove(&mut self, number: usize) {
        self.words[number / 64] &= !(1 << (number % 64));
    }

    /// The set in the fewest words: those at the front that are full are only counted, empty ones at the end
    /// left out. Long histories move a small window over their operations, so this is small however long they
    /// are.
    fn key(&self) -> (usize, Box<[u64]>) {
        let full = self.words.iter().take_while(|word| **word == u64::MAX).count();
        let end = self.words.iter().rposition(|word| *word != 0).map_or(full, |last| last + 1);
        (full, self.words[full..end.max(full)].into())
    }
}

/// An operation that was taken, and how to go back behind it.
struct Step {
    taken: usize,
    before: State,
    first_left: usize,
}

/// Looks for an order of `operations`, which are sorted by their beginnings, from the state `start`. Every
/// operation tried takes one from `budget`.
pub(super) fn search(operations: &[Operation], start: State, budget: &mut u64) -> Found {
    let mut to_finish = operations.iter().filter(|operation| operation.returned.is_some()).count();
    let mut done = Done::default();
    let mut state = start;
    // All before this one are done.
    let mut first_left = 0;
    let mut tried = HashSet::new();
    let mut steps: Vec<Step> = Vec::new();
    // Where to go on looking for the next operation to take.
    let mut from = 0;
    while to_finish > 0 {
        if *budget == 0 {
            return Found::Undecided;
        }
        *budget -= 1;
        match next(operations, &done, state, first_left, from) {
            Some((number, after)) => {
                done.insert(number);
                if !tried.insert((done.key(), after)) {
                    done.remove(number);
                    from = number + 1;
                    continue;
                }
                steps.push(Step { taken: number, before: state, first_left });
                to_finish -= usize::from(operations[number].returned.is_some());
                state = after;
                while first_left < operations.len() && done.contains(first_left) {
                    first_left += 1;
                }
                from = first_left;
            }
            None => {
                let Some(step) = steps.pop() else { return Found::Nothing };
                done.remove(step.taken);
                to_finish += usize::from(operations[step.taken].returned.is_some());
                (state, first_left, from) = (step.before, step.first_left, step.taken + 1);
            }
        }
    }
    Found::Order
}

/// The first operation from number `from` on that may come next and returned what it then would, with the
/// state that it leaves.
fn next(
    operations: &[Operation],
    done: &Done,
    state: State,
    first_left: usize,
    from: usize,
) -> Option<(usize, State)> {
    // The earliest end of what is left bounds what may come next. Since beginnings are sorted, only
    // operations before one can have ended before it began, so a single pass knows the bound when it needs
    // it.
    let mut bound = u64::MAX;
    for (number, operation) in operations.iter().enumerate().skip(first_left) {
        if operation.invoked > bound {
            return None;
        }
        if done.contains(number) {
            continue;
        }
        bound = bound.min(operation.end());
        if number >= from {
            let (after, outcome) = operation.action.apply(state);
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
    fn the_key_of_a_set_forgets_its_length_and_nothing_else() {
        let set = |numbers: &mut dyn Iterator<Item = usize>| {
            let mut set = Done::default();
            numbers.for_each(|number| set.insert(number));
            set
        };
        let mut longer = set(&mut [3, 200].into_iter());
        longer.remove(200);
        assert_eq!(longer.key(), set(&mut [3].into_iter()).key());
        assert_ne!(set(&mut (0..128)).key(), set(&mut (0..64)).key());
        assert_ne!(set(&mut (0..65)).key(), set(&mut (64..65)).key());
        assert_eq!(set(&mut (0..640)).key().1.len(), 0);
    }
}
