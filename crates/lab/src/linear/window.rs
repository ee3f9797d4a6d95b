//! Making a violation small enough to be read.
//!
//! Three cuts, each of which leaves a history that is inexplicable by itself. First, operations after the
//! first inexplicable result go: a history without an order has none later either. Second, operations that
//! had ended before some moment go, if the rest is inexplicable from every state that the key can have had
//! then. Of calls under way at that moment only the possible effect stays, since the result may be due to a
//! removed operation. Third, calls that changed nothing go, one by one, if the rest does not need them as
//! evidence. Calls that did change something stay: without them any later read could be made to look wrong.

use super::operation::Operation;
use super::search::{Found, search};
use crate::action::{Action, Outcome, State};
use std::collections::BTreeSet;

/// A part of a key's history that no order explains.
pub(super) struct Window {
    /// The state of the key before; `None` for any possible one.
    pub before: Option<State>,
    /// Sorted by beginnings.
    pub operations: Vec<Operation>,
}

/// Narrows `operations`, which are sorted by their beginnings and have no order from `start`. `budget` bounds
/// the work: where it ends, the window stays wider.
pub(super) fn narrow(operations: &[Operation], start: State, mut budget: u64) -> Window {
    let budget = &mut budget;
    let mut window = shortest_prefix(operations, start, budget);
    let mut starts = vec![start];
    let mut before = Some(start);
    for cut in (1..window.len()).rev() {
        let (past, rest) = divide(&window, cut);
        let possible = possible_states(&past, &rest, start);
        if fails(&rest, &possible, budget) {
            (starts, before, window) = (possible, None, rest);
            break;
        }
    }
    let mut number = window.len();
    while number > 0 {
        number -= 1;
        if window[number].is_observer() {
            let mut fewer = window.clone();
            fewer.remove(number);
            if fails(&fewer, &starts, budget) {
                window = fewer;
            }
        }
    }
    Window { before, operations: window }
}

fn fails(operations: &[Operation], starts: &[State], budget: &mut u64) -> bool {
    starts.iter().all(|start| search(operations, *start, budget) == Found::Nothing)
}

/// The operations before the first result that nothing explains.
fn shortest_prefix(operations: &[Operation], start: State, budget: &mut u64) -> Vec<Operation> {
    let mut ends: Vec<u64> = operations.iter().filter_map(|operation| Some(operation.returned?.0)).collect();
    ends.sort_unstable();
    let until = |end: u64| -> Vec<Operation> {
        let begun = operations.iter().filter(|operation| operation.invoked < end);
        begun
            .map(|operation| Operation {
                returned: operation.returned.filter(|(stamp, _)| *stamp <= end),
                ..*operation
            })
            .collect()
    };
    let first = ends.partition_point(|end| search(&until(*end), start, budget) != Found::Nothing);
    ends.get(first).map_or_else(|| operations.to_vec(), |end| until(*end))
}

/// Operations that began before number `cut`, and those that may have taken effect since then.
///
/// If the whole has an order, so has the second part: all that had ended comes before all that then began.
/// The first part ends at some place of that order; calls under way took effect before that place, as if they
/// were never made, or behind it.
fn divide(operations: &[Operation], cut: usize) -> (Vec<Operation>, Vec<Operation>) {
    let (past, future) = operations.split_at(cut);
    let moment = future.first().map_or(u64::MAX, |first| first.invoked);
    let under_way = past.iter().filter(|operation| operation.end() >= moment);
    let under_way = under_way.map(|operation| Operation { returned: None, ..*operation });
    (past.to_vec(), under_way.chain(future.iter().copied()).collect())
}

/// States that the key may have had after `past`, so far as `rest` could tell: values that it never mentions
/// are all alike, so one of them stands for all.
fn possible_states(past: &[Operation], rest: &[Operation], start: State) -> Vec<State> {
    let mut mentioned = BTreeSet::new();
    for operation in rest {
        if let Some((_, Outcome::Saw(state))) = operation.returned {
            mentioned.insert(state);
        }
        if let Action::Swap(expected, _) = operation.action {
            mentioned.insert(expected);
        }
    }
    let written = past.iter().filter_map(|operation| operation.action.written());
    let all: BTreeSet<State> = written.chain([start, None]).collect();
    let stranger = all.iter().find(|state| state.is_some() && !mentioned.contains(state)).copied();
    let mut possible: Vec<State> = all.iter().filter(|state| mentioned.contains(state)).copied().collect();
    possible.extend(stranger);
    if !possible.contains(&None) {
        possible.push(None);
    }
    possible
}
