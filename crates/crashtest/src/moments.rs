//! Moments of a history at which the power may be cut, spread over it.
//!
//! Each operation that changes memory is one. A *first* one comes after something was told: a call began or
//! ended, or an event was done. Where there are more than are wanted, one in so many first ones stays, and
//! one in so many of the others. A hash decides which: calls repeat themselves, and a stride would meet each
//! at the same operation.

use crate::tapes::mix;
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

impl Told {
    /// The same, at another time.
    pub(crate) fn again(&self, now: u64) -> Told {
        Told { marks: self.marks.clone(), now, ..*self }
    }
}

/// See the module's documentation.
pub(crate) struct Moment {
    pub(crate) snapshot: Snapshot,
    /// Operations before it.
    pub(crate) operation: u64,
    pub(crate) told: Rc<Told>,
    /// The number of the first operation after something was told, among such ones; none for any other.
    first: Option<u64>,
    /// The end of something, in words, if it is one.
    pub(crate) end: Option<&'static str>,
}

/// Collects moments.
pub(crate) struct Moments {
    pub(crate) list: Vec<Moment>,
    most: usize,
    operations: u64,
    /// First operations so far.
    firsts: u64,
    thin: Thin,
    told: Option<Rc<Told>>,
    /// Lines by then.
    lines: usize,
}

/// Which moments stay: one in two to these powers.
#[derive(Clone, Copy, Default)]
struct Thin {
    firsts: u32,
    others: u32,
}

impl Thin {
    fn stays(self, first: Option<u64>, operation: u64) -> bool {
        // Zero is mixed to itself.
        let one_in = |number: u64, power: u32| mix(number + 1).trailing_zeros() >= power;
        first.map_or_else(|| one_in(operation, self.others), |first| one_in(first, self.firsts))
    }
}

impl Default for Moments {
    fn default() -> Moments {
        Moments::of(MOST)
    }
}

impl Moments {
    /// A collection of so many.
    pub(crate) fn of(most: usize) -> Moments {
        let thin = Thin::default();
        Moments { list: Vec::new(), most, operations: 0, firsts: 0, thin, told: None, lines: 0 }
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
        let first = is_first.then_some(self.firsts);
        if is_first {
            self.firsts += 1;
            (self.told, self.lines) = (Some(Rc::new(told())), lines);
        }
        if !self.thin.stays(first, operation) {
            return;
        }
        let told = self.told.clone().expect("set above");
        self.list.push(Moment { snapshot: take(), operation, told, first, end: None });
        while self.list.len() > self.most {
            self.thin_out();
        }
    }

    /// Adds the end of something. Operations may follow.
    pub(crate) fn end(&mut self, end: &'static str, told: Told, snapshot: Snapshot) {
        let (told, operation) = (Rc::new(told), self.operations);
        self.list.push(Moment { snapshot, operation, told, first: None, end: Some(end) });
    }

    fn thin_out(&mut self) {
        let firsts = self.list.iter().filter(|moment| moment.first.is_some()).count();
        let power = if firsts > self.most / 2 { &mut self.thin.firsts } else { &mut self.thin.others };
        *power += 1;
        let thin = self.thin;
        self.list.retain(|moment| moment.end.is_some() || thin.stays(moment.first, moment.operation));
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
        let lines_at = |operation| told_before.partition_point(|before| *before <= operation);
        let mut moments = Moments::default();
        for operation in 0..operations {
            let lines = lines_at(operation);
            let told = || Told { lines, began: 0, done: 0, marks: Vec::new(), now: 0 };
            moments.pass(lines, told, snapshot);
        }
        assert!(moments.list.iter().all(|moment| moment.told.lines == lines_at(moment.operation)));
        moments.list.iter().map(|moment| moment.operation).collect()
    }

    #[test]
    fn few_operations_all_stay_and_many_are_thinned_out() {
        assert_eq!(stay(40, &[]), (0..40).collect::<Vec<_>>());
        let many = stay(10_000, &[77, 5_001]);
        assert!(many.len() > MOST / 3 && many.len() <= MOST, "{many:?}");
        assert!(many.contains(&77) && many.contains(&5_001), "{many:?}");
        assert!(many.windows(2).all(|pair| pair[1] - pair[0] <= 2_000), "{many:?}");
    }

    #[test]
    fn calls_that_repeat_themselves_are_cut_at_each_of_their_operations() {
        let told: Vec<u64> = (0..1_000).map(|at| at * 8).collect();
        let many = stay(8_000, &told);
        assert!((MOST / 3..=MOST).contains(&many.len()), "{many:?}");
        assert!((0..8).all(|place| many.iter().any(|operation| operation % 8 == place)), "{many:?}");
    }

    #[test]
    fn a_history_may_be_long_and_all_its_parts_are_cut() {
        let told: Vec<u64> = (0..20_000).map(|at| at * 2).collect();
        let many = stay(40_000, &told);
        assert!((MOST / 3..=MOST).contains(&many.len()), "{many:?}");
        assert!((0..8).all(|part| many.iter().any(|operation| operation / 5_000 == part)), "{many:?}");
    }
}
