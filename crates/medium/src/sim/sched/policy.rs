//! The choice of the next task: the part of the scheduler that a seed decides.
//!
//! No single kind of schedule finds every race. Half of the seeds walk at random, with a chance of switching
//! between one half and one sixty-fourth. The other half run by priority and change one now and then. That
//! reaches races in which one task stands still for long while another goes far (after Burckhardt et al., "A
//! Randomized Scheduler with Probabilistic Guarantees of Finding Bugs", ASPLOS'10).
//!
//! A run may also follow [`Switch`]es that it is given one by one. A tool that looks for the shortest
//! schedule with some effect changes them from run to run.

use super::run::Access;
use crate::sim::random::Random;

/// An interruption of the running task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Switch points that the running task passes before, loads not counted.
    pub after: u64,
    /// The task that runs next, counted from the running one on among those that can; 0 is the first behind
    /// it.
    pub to: u64,
}

/// The interruptions of a run, in their order.
pub type Switches<'s> = Box<dyn Iterator<Item = Switch> + 's>;

/// Switch points after which a task is interrupted when no switches are left: it may wait for another one by
/// looking again and again.
const TURN: u64 = 1 << 12;

enum Kind {
    /// Switch with a chance of one in `mask + 1`, to any other task. Loads are many and rarely matter.
    Walk { store_mask: u64, load_mask: u64 },
    /// The ready task of highest priority runs; with a chance of one in `mask + 1` it falls behind all
    /// others.
    Priorities { mask: u64 },
    /// The next switch happens when the running task has passed so many more points.
    Given { switches: Switches<'static>, next: Switch },
}

/// Between two looks, one task in so many is interrupted, less one: there are few such places in a call.
const LOOK_MASK: u64 = 7;

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

    /// The schedule with these interruptions.
    pub(super) fn given(mut switches: Switches<'static>) -> Policy {
        let next = following(&mut switches);
        let kind = Kind::Given { switches, next };
        Policy { random: Random::new(0), kind, priorities: Vec::new(), lowest: 0 }
    }

    /// Notes a new task.
    pub(super) fn add(&mut self) {
        let priority = (self.random.next() >> 2) as i64;
        self.priorities.push(priority);
    }

    /// Whether the running task is to be interrupted here.
    #[inline]
    pub(super) fn interrupts(&mut self, running: usize, access: Access) -> bool {
        if let Kind::Given { next, .. } = &mut self.kind {
            let counts = access != Access::Load;
            next.after = next.after.saturating_sub(counts as u64);
            return counts && next.after == 0;
        }
        let drawn = self.random.next();
        match self.kind {
            Kind::Walk { store_mask, load_mask } => {
                let mask = match access {
                    Access::Load => load_mask,
                    Access::Store | Access::Sync => store_mask,
                    Access::Look => store_mask.min(LOOK_MASK),
                };
                drawn & mask == 0
            }
            Kind::Priorities { mask } => {
                let mask = if access == Access::Look { LOOK_MASK } else { mask };
                let falls = drawn & mask == 0;
                if falls {
                    self.demote(running);
                }
                falls
            }
            Kind::Given { .. } => unreachable!("answered above"),
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
        match &mut self.kind {
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
            Kind::Given { switches, next } => {
                // A task that ends or waits gives way to the next one, and is no switch.
                let is_due = but.is_some() && next.after == 0;
                let to = if is_due { next.to } else { 0 };
                if is_due {
                    *next = following(switches);
                }
                let behind = |task: usize| (but.is_some_and(|but| task <= but), task);
                let mut others: Vec<usize> =
                    ready.iter().copied().filter(|task| Some(*task) != but).collect();
                others.sort_unstable_by_key(|task| behind(*task));
                others[(to % others.len() as u64) as usize]
            }
        }
    }
}

/// The next of these switches; a task's turn ends also when there are none.
fn following(switches: &mut Switches<'static>) -> Switch {
    let Switch { after, to } = switches.next().unwrap_or(Switch { after: TURN, to: 0 });
    Switch { after: after.max(1), to }
}
