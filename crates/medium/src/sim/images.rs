//! The sequence of crash images of a snapshot: fixed ones, then all others or a sample.

use super::image::Image;
use super::line::WORDS;
use super::outcomes::{self, Values};
use super::plan::{Plan, Plans};
use super::random::Random;
use super::snapshot::Snapshot;
use std::collections::HashSet;

/// Up to so many images, all are formed.
const FEW: usize = 1 << 10;
/// Samples in a row that bring nothing new before the sample counts as exhausted.
const PATIENCE: usize = 64;

pub(super) struct Images<'a> {
    snapshot: &'a Snapshot,
    random: Random,
    /// Images still wanted; `usize::MAX` without a budget.
    left: usize,
    sampled: bool,
    plans: Plans,
    chosen: std::vec::IntoIter<Plan>,
    rest: Rest,
    seen: HashSet<u64>,
}

enum Rest {
    /// Not begun.
    Ahead,
    /// All outcomes of each line, and the combination that comes next.
    All {
        outcomes: Vec<Vec<Values>>,
        digits: Vec<usize>,
    },
    Sample,
    Over,
}

impl<'a> Images<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, seed: u64, budget: usize) -> Images<'a> {
        let mut random = Random::new(seed);
        let mut plans = Plans::new(snapshot);
        let mut chosen = std::mem::take(&mut plans.list);
        if budget != 0 && budget < chosen.len() {
            chosen = thin(chosen, budget - budget / 4, &mut random);
        }
        Images {
            snapshot,
            random,
            left: if budget == 0 { usize::MAX } else { budget },
            sampled: budget != 0,
            plans,
            chosen: chosen.into_iter(),
            rest: Rest::Ahead,
            seen: HashSet::new(),
        }
    }

    /// All images that are possible, if they are few.
    fn enumerate_all(&self) -> Option<Rest> {
        let events = |range: &std::ops::Range<usize>| &self.snapshot.events[range.clone()];
        let mut total = 1usize;
        for (_, range) in &self.snapshot.lines {
            total = total.saturating_mul(outcomes::count(events(range)));
            if total > FEW {
                return None;
            }
        }
        let outcomes: Vec<_> =
            self.snapshot.lines.iter().map(|(_, range)| outcomes::all(events(range))).collect();
        Some(Rest::All { digits: vec![0; outcomes.len()], outcomes })
    }

    fn combine(&self, mut values: impl FnMut(usize) -> Values) -> Vec<(u64, u64)> {
        let mut changes = Vec::new();
        for (index, (line, _)) in self.snapshot.lines.iter().enumerate() {
            let values: [Option<u64>; WORDS] = values(index);
            self.snapshot.append(&mut changes, *line, &values);
        }
        changes
    }

    /// The image if it is a new one.
    fn fresh(&mut self, changes: Vec<(u64, u64)>) -> Option<Image> {
        let image = Image::new(self.snapshot, changes);
        self.seen.insert(image.hash()).then_some(image)
    }

    fn sample(&mut self) -> Option<Image> {
        const DENSITIES: [u64; 5] = [16, 64, 128, 192, 240];
        for _ in 0..PATIENCE {
            let density = DENSITIES[self.random.below(DENSITIES.len() as u64) as usize];
            let mut random = self.random.clone();
            let changes = self.combine(|index| {
                let events = &self.snapshot.events[self.snapshot.lines[index].1.clone()];
                outcomes::sample(events, &mut random, density)
            });
            self.random = random;
            if let Some(image) = self.fresh(changes) {
                return Some(image);
            }
        }
        None
    }

    fn advance(&mut self) -> Option<Image> {
        while let Some(plan) = self.chosen.next() {
            let changes = self.plans.carry_out(plan, self.snapshot);
            if let Some(image) = self.fresh(changes) {
                return Some(image);
            }
        }
        if matches!(self.rest, Rest::Ahead) {
            self.rest = match self.enumerate_all() {
                Some(all) => all,
                None if self.sampled => Rest::Sample,
                None => Rest::Over,
            };
        }
        loop {
            match std::mem::replace(&mut self.rest, Rest::Over) {
                Rest::All { outcomes, mut digits } => {
                    let changes = self.combine(|index| outcomes[index][digits[index]]);
                    if outcomes::advance(&mut digits, |line| outcomes[line].len()) {
                        self.rest = Rest::All { outcomes, digits };
                    }
                    if let Some(image) = self.fresh(changes) {
                        return Some(image);
                    }
                }
                Rest::Sample => {
                    let image = self.sample()?;
                    self.rest = Rest::Sample;
                    return Some(image);
                }
                Rest::Ahead | Rest::Over => return None,
            }
        }
    }
}

/// The first two plans and a random choice of the others, in their order.
fn thin(plans: Vec<Plan>, wanted: usize, random: &mut Random) -> Vec<Plan> {
    let mut open = wanted.saturating_sub(2);
    let mut candidates = plans.len() - 2;
    let mut kept = plans[..2.min(wanted.max(1))].to_vec();
    for plan in &plans[2..] {
        if random.below(candidates as u64) < open as u64 {
            kept.push(*plan);
            open -= 1;
        }
        candidates -= 1;
    }
    kept
}

impl Iterator for Images<'_> {
    type Item = Image;

    fn next(&mut self) -> Option<Image> {
        if self.left == 0 {
            return None;
        }
        let image = self.advance()?;
        self.left -= 1;
        Some(image)
    }
}
