//! Which memtable to rewrite: a pure function.

use std::ops::Range;

/// A memtable that has ended, and what it holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// Its place in the caller's list.
    pub(super) at: usize,
    pub(super) number: u64,
    /// Bytes of its zones.
    pub(super) capacity: u64,
    /// Bytes of these that rewriting it gives back: superseded records, the rest of its last zone, and
    /// tombstones that hide nothing.
    pub(super) gain: u64,
    /// How many of its tombstones hide nothing.
    pub(super) tombstones: u64,
    /// How many of its records would be copied.
    pub(super) copies: u64,
}

/// That which makes it worth to rewrite a memtable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Worth {
    /// One part in so many of it is gained.
    Part(u64),
    /// Two tombstones that hide nothing go for each copy. Scans pass over each of them until then.
    Tombstones,
}

impl Worth {
    fn suits(self, candidate: &Candidate) -> bool {
        match self {
            Worth::Part(least) => candidate.gain.saturating_mul(least) >= candidate.capacity,
            Worth::Tombstones => candidate.tombstones > 0 && candidate.tombstones / 2 >= candidate.copies,
        }
    }
}

/// The candidate with the largest share of gain among those that are worth it, and whose numbers are in this
/// range. Of equal ones the oldest.
pub(super) fn choose(candidates: &[Candidate], worth: Worth, numbers: Range<u64>) -> Option<Candidate> {
    let suits = |candidate: &&Candidate| numbers.contains(&candidate.number) && worth.suits(candidate);
    let better = |one: &&Candidate, other: &&Candidate| {
        let share = |of: &Candidate, by: &Candidate| u128::from(of.gain) * u128::from(by.capacity);
        share(one, other).cmp(&share(other, one)).then(other.number.cmp(&one.number))
    };
    candidates.iter().filter(suits).max_by(better).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(number: u64, capacity: u64, gain: u64) -> Candidate {
        Candidate { at: number as usize, number, capacity, gain, tombstones: 0, copies: 1 }
    }

    #[test]
    fn the_emptiest_comes_first_and_of_equal_ones_the_oldest() {
        let all =
            [candidate(1, 100, 10), candidate(2, 400, 200), candidate(3, 100, 50), candidate(4, 100, 0)];
        let number = |least, numbers| choose(&all, Worth::Part(least), numbers).map(|chosen| chosen.number);
        assert_eq!(number(16, 0..9), Some(2));
        assert_eq!(number(16, 3..9), Some(3));
        assert_eq!(number(16, 0..2), Some(1));
        assert_eq!(number(8, 0..2), None, "a tenth is not worth it");
        assert_eq!(number(u64::MAX, 4..9), None, "nothing to gain");
    }
    #[test]
    fn tombstones_that_hide_nothing_are_worth_half_as_many_copies() {
        let all = [(1, 0, 0), (2, 9, 5), (3, 10, 5), (4, 1, 0)];
        let all = all.map(|(number, tombstones, copies)| Candidate {
            tombstones,
            copies,
            ..candidate(number, 100, number)
        });
        let number = |numbers| choose(&all, Worth::Tombstones, numbers).map(|chosen| chosen.number);
        assert_eq!((number(0..3), number(0..4), number(0..5)), (None, Some(3), Some(4)));
    }
}
