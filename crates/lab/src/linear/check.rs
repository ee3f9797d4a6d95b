//! [`check`]: whether a history is linearizable, and what to show if it is not.

use super::operation::Operation;
use super::search::{Found, search};
use super::window::{Window, narrow};
use crate::action::{State, Value};
use std::collections::BTreeMap;
use std::fmt;

/// Operations that are tried for one key before it counts as undecided. Histories of a handful of threads
/// need about one for each of their operations; the bound is for what they remember, which is about a hundred
/// bytes each.
pub const BUDGET: u64 = 1_000_000;

/// The operations, on any number of keys.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Values of keys before anything happened; the others were absent.
    pub initial: BTreeMap<u64, Value>,
    /// All operations, in any order.
    pub operations: Vec<Operation>,
}

/// The checker's verdict on a history.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// An order explains all results.
    Linearizable,
    /// None does.
    Violation(Box<Violation>),
    /// The budget ended before an order was found, or all were excluded.
    Undecided {
        /// The first key for which it did.
        key: u64,
        /// Operations on it.
        operations: usize,
    },
}

/// A key whose operations no order explains.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The key.
    pub key: u64,
    /// Operations on it in the whole history.
    pub operations: usize,
    /// Its state before the window; `None` if the window is inexplicable from any state.
    pub before: Option<State>,
    /// The smallest part of them found that shows it, by beginning.
    pub window: Vec<Operation>,
}

/// Judges a history, each key with a budget of its own. A violation counts more than what is undecided.
pub fn check(history: &History, budget: u64) -> Verdict {
    let mut keys: BTreeMap<u64, Vec<Operation>> = BTreeMap::new();
    for operation in &history.operations {
        keys.entry(operation.key).or_default().push(*operation);
    }
    let mut verdict = Verdict::Linearizable;
    for (key, mut operations) in keys {
        operations.sort_by_key(|operation| (operation.invoked, operation.end()));
        let start = history.initial.get(&key).copied();
        match search(&operations, start, &mut budget.clone()) {
            Found::Order => {}
            Found::Undecided => {
                if matches!(verdict, Verdict::Linearizable) {
                    verdict = Verdict::Undecided { key, operations: operations.len() };
                }
            }
            Found::Nothing => {
                let Window { before, operations: window } = narrow(&operations, start, budget);
                let violation = Violation { key, operations: operations.len(), before, window };
                return Verdict::Violation(Box::new(violation));
            }
        }
    }
    verdict
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { key, operations, before, window } = self;
        write!(f, "key {key}: no order explains these {} of its {operations} calls; ", window.len())?;
        match before {
            None => f.write_str("whatever it can have held before them:")?,
            Some(None) => f.write_str("it was absent before them:")?,
            Some(Some(value)) => write!(f, "it held value {value} before them:")?,
        }
        window.iter().try_for_each(|operation| write!(f, "\n  {operation}"))
    }
}
