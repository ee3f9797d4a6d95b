//! Walks over the words of all keys, in order and against it.
//!
//! A walk knows the steps to the key that it told last, and nothing else for longer than a guard. Later they
//! lead to the same place. If a layer on the way has gone meanwhile, the walk goes on behind its slice: a key
//! with that slice has come since then.

use super::key::{Path, Step, Target, own, target};
use super::layer::Layer;
use super::walk::{Alex, Level};
use crate::epoch::Guard;

/// Slots that are copied at a time.
const AT_ONCE: usize = 32;

/// How far a walk has come.
#[derive(Clone, Debug)]
pub struct Walk {
    /// The steps to the key that was told last, or to the one to begin with.
    steps: Vec<Step>,
    /// Whether it is to be told.
    is_included: bool,
    is_over: bool,
}

impl Walk {
    /// A walk over everything.
    fn all() -> Walk {
        Walk { steps: Vec::new(), is_included: true, is_over: false }
    }

    /// A walk from a key on, which is told too. A key that shares a slice with it may come before, from its
    /// other side.
    pub(super) fn from(key: &[u8]) -> Walk {
        let (mut path, mut steps) = (Path::of(key), vec![Path::of(key).step()]);
        while !matches!(steps.last(), Some(Step::End(_))) {
            path = path.below();
            steps.push(path.step());
        }
        Walk { steps, is_included: true, is_over: false }
    }
}

impl Default for Walk {
    fn default() -> Walk {
        Walk::all()
    }
}

/// A level on the way, and its next slots.
struct Stage<'g> {
    level: Level<'g>,
    slots: std::vec::IntoIter<(Step, u64)>,
    /// Where to copy on from.
    from: Option<(Step, bool)>,
    has_more: bool,
}

impl<'g> Stage<'g> {
    fn new(level: Level<'g>, from: Option<(Step, bool)>) -> Stage<'g> {
        Stage { level, slots: Vec::new().into_iter(), from, has_more: true }
    }

    fn next<const BACK: bool>(&mut self, guard: &Guard<'_>, limit: usize) -> Option<(Step, u64)> {
        loop {
            if let Some((step, word)) = self.slots.next() {
                self.from = Some((step, false));
                return Some((step, word));
            }
            if !self.has_more {
                return None;
            }
            let mut slots = Vec::with_capacity(limit.min(AT_ONCE));
            self.has_more = match self.level {
                Level::Layer(layer) => layer.copy::<BACK>(guard, self.from, limit.min(AT_ONCE), &mut slots),
                Level::Root(tree) => {
                    let from = self.from.and_then(|(step, is_included)| match step {
                        Step::Slice(slice) => Some((slice, is_included)),
                        Step::End(_) => None,
                    });
                    tree.copy::<BACK>(guard, from, limit.min(AT_ONCE), &mut slots);
                    !slots.is_empty()
                }
            };
            self.slots = slots.into_iter();
        }
    }
}

impl Alex {
    /// Tells the next words, at most `limit`. Says whether there was one.
    pub(super) fn walk<'g, const BACK: bool>(
        &'g self,
        guard: &'g Guard<'_>,
        walk: &mut Walk,
        limit: usize,
        mut each: impl FnMut(u64),
    ) -> bool {
        if walk.is_over {
            return false;
        }
        let mut stages = self.stages(guard, walk);
        let mut told = 0;
        while told < limit {
            let Some(stage) = stages.last_mut() else { break };
            let Some((step, word)) = stage.next::<BACK>(guard, limit - told) else {
                stages.pop();
                continue;
            };
            match target(word) {
                // The end of a key in a layer has a word of its own kind.
                Target::Layer(address) if matches!(step, Step::Slice(_)) => {
                    // SAFETY: the word was found in this index under the guard.
                    let layer = unsafe { Layer::at(guard, address) };
                    stages.push(Stage::new(Level::Layer(layer), None));
                }
                _ => {
                    each(own(word));
                    told += 1;
                }
            }
        }
        walk.is_over = told < limit;
        walk.steps.clear();
        walk.steps.extend(stages.iter().filter_map(|stage| Some(stage.from?.0)));
        walk.is_included = false;
        told > 0
    }

    /// The levels on the way to where a walk goes on.
    fn stages<'g>(&'g self, guard: &'g Guard<'_>, walk: &Walk) -> Vec<Stage<'g>> {
        let mut stages = vec![];
        let mut level = Level::Root(&self.tree);
        for (at, step) in walk.steps.iter().enumerate() {
            let is_last = at + 1 == walk.steps.len();
            let found = if is_last { None } else { level.find::<false>(guard, *step) };
            let below = match (found.map(|found| target(found.word)), step) {
                (Some(Target::Layer(address)), Step::Slice(_)) => Some(address),
                _ => None,
            };
            // A key that shares the beginning of the first one may be on either side.
            let is_included = walk.is_included && below.is_none();
            stages.push(Stage::new(level, Some((*step, is_included))));
            let Some(address) = below else { return stages };
            // SAFETY: the word was found in this index under the guard.
            level = Level::Layer(unsafe { Layer::at(guard, address) });
        }
        if walk.steps.is_empty() {
            stages.push(Stage::new(level, None));
        }
        stages
    }
}
