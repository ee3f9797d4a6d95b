//! The choice of the next task: the part of the scheduler that a seed decides.
//!
//! No single kind of schedule finds every race. Half of the seeds walk at random, with a chance of switching
//! between one half and one sixty-fourth. The other half run by priority and change one now and then. That
//! reaches races in which one task stands still for long while another goes far (after Burckhardt et al., "A
//! Randomized Scheduler with Probabilistic Guarantees of Finding Bugs", ASPLOS'10).

use super::run::Access;
use crate::sim::random::Random;

enum Kind {
    /// Switch with a chance of one in `mask + 1`, to any other task. Loads are many and rarely matter.
    Walk { store_mask: u64, load_mask: u64 },
    /// The ready task of highest priority runs; with a chance of one in `mask + 1` it falls behind all
    /// others.
    Priorities { mask: u64 },
}

/// Draws the schedule of one run.
pub(super) struct Policy {
    random: Random,
    kind: Kind,
    /// Priority by task, higher first; unused in a walk.
    priorities: Vec<i64>,
    lowest: i64,
}

impl Policy {
    pub(super) fn new(seed: u64) -> Policy {
        let mut random = Random::new(seed);
        let kind = match random.below(8) {
            0 => Kind::Walk { store_mask: 1, load_mask: 1 },
            1 | 2 => Kind::Walk { store_mask: 3, load_mask: 15 },
            3 => Kind::Walk { store_mask: 63, load_mask: 255 },
            4 | 5 => Kind::Priorities { mask: 63 },
            6 => Kind::Priorities { mask: 255 },
            _ => Kind::Priorities { mask: 2047 },
        };
        Policy { random, kind, priorities: Vec::new(), lowest: 0 }
    }

    /// Notes a new task.
    pub(super) fn add(&mut self) {
        let priority = (self.random.next() >> 2) as i64;
        self.priorities.push(priority);
    }

    /// Whether the running task is to be interrupted here.
    #[inline]
    pub(super) fn interrupts(&mut self, running: usize, access: Access) -> bool {
        let drawn = self.random.next();
        match self.kind {
            Kind::Walk { store_mask, load_mask } => {
                drawn & (if access == Access::Load { load_mask } else { store_mask }) == 0
            }
            Kind::Priorities { mask } => {
                let falls = drawn & mask == 0;
                if falls {
                    self.demote(running);
                }
                falls
            }
        }
    }

    /// Puts a task behind all others: it waits for one of them, or its turn is over.
    pub(super) fn demote(&mut self, task: usize) {
        self.lowest -= 1;
        self.priorities[task] = self.lowest;
    }

    /// Chooses among the ready tasks, avoiding `but` if there is another one.
    #[inline]
    pub(super) fn choose(&mut self, ready: &[usize], but: Option<usize>) -> usize {
        if let [only] = ready {
            return *only;
        }
        match self.kind {
            Kind::Walk { .. } => loop {
                let chosen = ready[self.random.below(ready.len() as u64) as usize];
                if Some(chosen) != but {
                    return chosen;
                }
            },
            Kind::Priorities { .. } => *ready
                .iter()
                .max_by_key(|task| self.priorities[**task])
                .expect("a run without a ready task is over"),
        }
    }
}
