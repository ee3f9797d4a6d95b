//! The search for a shorter history with the same kind of failure.
//!
//! A failing history is tried again with a part of its tapes left out, or with smaller choices, and the
//! shorter one counts if it fails too. Each try is a whole history. The part behind the cut goes first.

use crate::judge::{Cut, Within};
use crate::program::Event;
use crate::report::{Failure, FailureKind, Summary};
use crate::search::{Found, Search};
use crate::tapes::Tapes;
use std::time::{Duration, Instant};

/// Tries, and their time: a history that takes long is shortened less.
const TRIES: u64 = 1_000;
const TIME: Duration = Duration::from_secs(12);

/// A history of so few calls is short enough, and other beginnings are not tried.
const SHORT: usize = 6;

/// Other beginnings that are tried, and histories that are drawn to find each.
const BEGINNINGS: u64 = 6;
const DRAWN: u64 = 60;

/// The length of a history: cuts before its last one, calls, tasks, switches, the sum and the number of its
/// choices, and calls in which others went on.
type Length = (u32, usize, usize, usize, u128, usize, usize);

fn length_of(found: &Found) -> Length {
    let tapes = &found.tapes;
    let choices = || tapes.tapes.iter().flat_map(|tape| &tape.choices);
    let tasks = tapes.runs.iter().filter(|runs| **runs).count();
    let sum = choices().map(|choice| u128::from(*choice)).sum();
    (found.depth, found.calls(), tasks, tapes.switches.len(), sum, choices().count(), found.interrupted())
}

/// See the module's documentation.
struct Shortening<'s, 't, P, E> {
    search: &'s mut Search<'t, P, E>,
    best: Found,
    length: Length,
    tries: u64,
    /// Tries at which the present beginning is given up.
    most: u64,
    begun: Instant,
}

/// The failure of a finding in the history of these tapes, by the shortest history that was found.
pub(crate) fn shorten<P: 'static, E: Event>(
    search: &mut Search<'_, P, E>,
    (tapes, found): (Tapes, Found),
    summary: Summary,
) -> Failure {
    let design = search.design;
    if found.kind == FailureKind::Refused {
        return Failure::found(found, design, summary, 0);
    }
    let again = search.history(tapes.clone()).1;
    if again.is_none_or(|again| (again.lines(), &again.what) != (found.lines(), &found.what)) {
        return Failure::found(Found { kind: FailureKind::NotRepeatable, ..found }, design, summary, 0);
    }
    let ahead = found.tapes.clone();
    let best = Found { tapes, ..found };
    let (length, begun) = (length_of(&best), Instant::now());
    let mut shortening = Shortening { search, best, length, tries: 0, most: TRIES, begun };
    shortening.look();
    shortening.attempt_tapes(ahead);
    shortening.simplify_cut();
    shortening.run();
    shortening.begin_elsewhere();
    // With all cuts, as in a replay. One that was not looked at may come first, of a longer history.
    if shortening.with_all_cuts() {
        shortening.run();
        shortening.with_all_cuts();
    }
    let Shortening { best, tries, .. } = shortening;
    Failure::found(best, design, summary, tries)
}

impl<P: 'static, E: Event> Shortening<'_, '_, P, E> {
    fn run(&mut self) {
        while !self.is_over() {
            let before = self.length;
            self.leave_out_tasks();
            self.leave_out_switches();
            self.leave_out_choices();
            self.lower_choices();
            if self.length == before {
                self.move_switches();
            }
            if self.length == before {
                break;
            }
        }
    }

    /// Begins with other histories that fail, while the best is long: steps that each make it shorter may
    /// come to a place from which none leads on.
    fn begin_elsewhere(&mut self) {
        let (tasks, seed) = (self.best.tapes.runs.len(), self.best.tapes.seed);
        for beginning in 1..=BEGINNINGS {
            if self.best.calls() <= SHORT || self.begun.elapsed() >= TIME / 4 {
                return;
            }
            let drawn = (0..DRAWN).find_map(|draw| {
                let seed = seed ^ (beginning << 40) ^ (draw << 32);
                self.tries += 1;
                let (tapes, found) = self.search.history(Tapes::fresh(seed, tasks));
                let found = found.filter(|found| found.kind == self.best.kind)?;
                Some((found.tapes.clone(), Found { tapes, ..found }))
            });
            let Some((ahead, other)) = drawn else { return };
            let length = length_of(&other);
            let shortest = std::mem::replace(&mut self.best, other);
            let shortest = (shortest, std::mem::replace(&mut self.length, length));
            self.most = self.tries + TRIES;
            self.attempt_tapes(ahead);
            self.run();
            if self.length >= shortest.1 {
                (self.best, self.length) = shortest;
            }
        }
    }

    /// Judges cuts alone that are like that of the best history. One of a recovery comes behind any other.
    fn look(&mut self) {
        let is_nested = self.best.depth > 0;
        self.search.within = if is_nested { Within::All } else { Within::None };
        self.search.only = (!is_nested).then_some(self.best.left);
    }

    /// Looks at whole states alone, if one of them fails too.
    fn simplify_cut(&mut self) {
        if self.search.only != Some(Cut::Some) {
            return;
        }
        for only in [Cut::Everything, Cut::Nothing] {
            self.search.only = Some(only);
            let tapes = self.best.tapes.clone();
            if let Some(found) = self.search.history(tapes.clone()).1
                && found.kind == self.best.kind
            {
                self.best = Found { tapes, ..found };
                self.length = length_of(&self.best);
                return;
            }
        }
        self.search.only = Some(Cut::Some);
    }

    /// Judges all cuts of the history; whether the first failure is of a longer one.
    fn with_all_cuts(&mut self) -> bool {
        (self.search.only, self.search.within) = (None, Within::All);
        let tapes = self.best.tapes.clone();
        let Some(found) = self.search.history(tapes.clone()).1 else { return false };
        if found.kind != self.best.kind {
            return false;
        }
        self.best = Found { tapes, ..found };
        let before = std::mem::replace(&mut self.length, length_of(&self.best));
        self.look();
        self.length > before
    }

    fn is_over(&self) -> bool {
        self.tries >= self.most || self.begun.elapsed() >= TIME
    }

    /// Tries the history with a change of its tapes; whether it fails too and is shorter.
    fn attempt(&mut self, change: impl FnOnce(&mut Tapes)) -> bool {
        let mut tapes = self.best.tapes.clone();
        change(&mut tapes);
        let Some(ahead) = self.attempt_tapes(tapes) else { return false };
        // Without all that stands behind the cut, which may have been longer before.
        self.attempt_tapes(ahead);
        true
    }

    /// Tries these tapes. If that history fails too and is shorter, returns those of its part before the cut.
    fn attempt_tapes(&mut self, tapes: Tapes) -> Option<Tapes> {
        if self.is_over() {
            return None;
        }
        self.tries += 1;
        let found = self.search.history(tapes.clone()).1.filter(|found| found.kind == self.best.kind)?;
        let ahead = found.tapes.clone();
        let found = Found { tapes, ..found };
        let length = length_of(&found);
        if length >= self.length {
            return None;
        }
        (self.best, self.length) = (found, length);
        Some(ahead)
    }

    fn leave_out_tasks(&mut self) {
        for task in (0..self.best.tapes.runs.len()).rev() {
            let runs = &self.best.tapes.runs;
            if runs[task] && runs.iter().filter(|runs| **runs).count() > 1 {
                self.attempt(|tapes| tapes.runs[task] = false);
            }
        }
    }

    fn leave_out_switches(&mut self) {
        let mut size = self.best.tapes.switches.len();
        while size > 0 {
            let mut at = self.best.tapes.switches.len();
            while at > 0 {
                at = at.saturating_sub(size);
                let until = (at + size).min(self.best.tapes.switches.len());
                // The switches behind come at the same place, or as long after the ones before.
                let kept = |tapes: &mut Tapes| {
                    let gone: u64 = tapes.switches.drain(at..until).map(|switch| switch.after).sum();
                    if let Some(next) = tapes.switches.get_mut(at) {
                        next.after += gone;
                    }
                };
                if at < until && !self.attempt(kept) {
                    self.attempt(|tapes| drop(tapes.switches.drain(at..until)));
                }
                at = at.min(self.best.tapes.switches.len());
            }
            size /= 2;
        }
    }

    /// Lets switches come earlier or later, to where fewer calls are interrupted.
    fn move_switches(&mut self) {
        for at in (0..self.best.tapes.switches.len()).rev() {
            for by in [-1, 1, -2, 2, -4, 4, -8, 8, -16, 16] {
                let Some(switch) = self.best.tapes.switches.get(at) else { return };
                let Some(after) = switch.after.checked_add_signed(by).filter(|after| *after > 0) else {
                    continue;
                };
                self.attempt(|tapes| {
                    tapes.switches[at].after = after;
                    if let Some(next) = tapes.switches.get_mut(at + 1) {
                        next.after = next.after.saturating_add_signed(-by).max(1);
                    }
                });
            }
        }
    }

    fn leave_out_choices(&mut self) {
        for tape in 0..self.best.tapes.tapes.len() {
            for size in [16, 8, 4, 2, 1] {
                let mut at = self.best.tapes.tapes[tape].choices.len();
                while at > 0 {
                    at = at.saturating_sub(size);
                    let until = (at + size).min(self.best.tapes.tapes[tape].choices.len());
                    if at < until {
                        self.attempt(|tapes| drop(tapes.tapes[tape].choices.drain(at..until)));
                    }
                    at = at.min(self.best.tapes.tapes[tape].choices.len());
                }
            }
        }
    }

    fn lower_choices(&mut self) {
        for tape in 0..self.best.tapes.tapes.len() {
            for at in 0..self.best.tapes.tapes[tape].choices.len() {
                let choice = |this: &Self| this.best.tapes.tapes[tape].choices.get(at).copied().unwrap_or(0);
                let lower = |this: &mut Self, to: u64| {
                    to < choice(this) && this.attempt(|tapes| tapes.tapes[tape].choices[at] = to)
                };
                if lower(self, 0) {
                    continue;
                }
                let half = choice(self) / 2;
                lower(self, half);
                while choice(self) > 0 {
                    let less = choice(self) - 1;
                    if !lower(self, less) {
                        break;
                    }
                }
            }
        }
        for at in 0..self.best.tapes.switches.len() {
            let switch = |this: &Self| this.best.tapes.switches.get(at).copied();
            if switch(self).is_some_and(|switch| switch.to > 0) {
                self.attempt(|tapes| tapes.switches[at].to = 0);
            }
        }
    }
}
