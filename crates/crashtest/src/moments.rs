//! Moments of a history at which the power may be cut, spread over it.
//!
//! Each operation that changes memory is one. Where there are more than are wanted, those stay that come
//! first after something was told (a call began or ended, an event was done), and every so many of the
//! others.

use quipu_medium::sim::Snapshot;
use std::rc::Rc;

/// Moments of a history that are judged, at most.
const MOST: usize = 56;

/// The history at a moment.
pub(crate) struct Told {
    /// Lines.
    pub(crate) lines: usize,
    /// Events that had begun, and that were done.
    pub(crate) began: usize,
    pub(crate) done: usize,
    /// How far the tapes had been used.
    pub(crate) marks: Vec<usize>,
    /// The time of the clock.
    pub(crate) now: u64,
}

/// See the module's documentation.
pub(crate) struct Moment {
    pub(crate) snapshot: Snapshot,
    /// Operations before it.
    pub(crate) operation: u64,
    pub(crate) told: Rc<Told>,
    /// The first operation after something was told.
    is_first: bool,
    /// The history has ended.
    pub(crate) is_end: bool,
}

/// Collects moments.
pub(crate) struct Moments {
    pub(crate) list: Vec<Moment>,
    most: usize,
    operations: u64,
    /// Of the moments that are not first ones, one in so many stays.
    stride: u64,
    told: Option<Rc<Told>>,
    /// Lines by then.
    lines: usize,
}

impl Default for Moments {
    fn default() -> Moments {
        Moments::of(MOST)
    }
}

impl Moments {
    /// A collection of so many.
    pub(crate) fn of(most: usize) -> Moments {
        Moments { list: Vec::new(), most, operations: 0, stride: 1, told: None, lines: 0 }
    }

    /// An operation is about to happen, and so many lines have been told before.
    pub(crate) fn pass(
        &mut self,
        lines: usize,
        told: impl FnOnce() -> Told,
        take: impl FnOnce() -> Snapshot,
    ) {
        let operation = self.operations;
        self.operations += 1;
        let is_first = self.told.is_none() || self.lines != lines;
        if is_first {
            (self.told, self.lines) = (Some(Rc::new(told())), lines);
        }
        if !is_first && !operation.is_multiple_of(self.stride) {
            return;
        }
        let told = self.told.clone().expect("set above");
        self.list.push(Moment { snapshot: take(), operation, told, is_first, is_end: false });
        while self.list.len() > self.most {
            self.thin_out();
        }
    }

    /// Adds the end of the history, which stays.
    pub(crate) fn end(&mut self, told: Told, snapshot: Snapshot) {
        let (told, operation) = (Rc::new(told), self.operations);
        self.list.push(Moment { snapshot, operation, told, is_first: true, is_end: true });
    }

    fn thin_out(&mut self) {
        self.stride *= 2;
        let (before, stride) = (self.list.len(), self.stride);
        self.list.retain(|moment| moment.is_first || moment.operation.is_multiple_of(stride));
        if self.list.len() == before {
            let mut stays = false;
            self.list.retain(|_| {
                stays = !stays;
                stays
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_medium::Region;
    use quipu_medium::sim::SimOptions;

    /// The operations of the moments that stay, if something is told before each of these.
    fn stay(operations: u64, told_before: &[u64]) -> Vec<u64> {
        let region = Region::sim(SimOptions { len: 4096, ..SimOptions::default() });
        let snapshot = || region.simulator().expect("a simulated region").snapshot();
        let mut moments = Moments::default();
        for operation in 0..operations {
            let lines = told_before.iter().filter(|before| **before <= operation).count();
            let told = || Told { lines, began: 0, done: 0, marks: Vec::new(), now: 0 };
            moments.pass(lines, told, snapshot);
        }
        let lines =
            |moment: &Moment| told_before.iter().filter(|before| **before <= moment.operation).count();
        assert!(moments.list.iter().all(|moment| moment.told.lines == lines(moment)));
        moments.list.iter().map(|moment| moment.operation).collect()
    }

    #[test]
    fn few_operations_all_stay_and_many_are_thinned_out_evenly() {
        assert_eq!(stay(40, &[]), (0..40).collect::<Vec<_>>());
        let many = stay(10_000, &[77, 5_001]);
        assert!(many.len() > MOST / 3 && many.len() <= MOST, "{many:?}");
        assert!(many.contains(&77) && many.contains(&5_001), "{many:?}");
        assert!(many.windows(2).all(|pair| pair[1] - pair[0] <= 512), "{many:?}");
    }

    #[test]
    fn moments_at_which_much_was_told_are_thinned_out_too() {
        let told: Vec<u64> = (0..1_000).map(|at| at * 2).collect();
        let many = stay(2_000, &told);
        assert!((MOST / 3..=MOST).contains(&many.len()), "{many:?}");
    }
}
