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
    /// Its table, and whether it is the oldest memtable there, so that its tombstones hide nothing.
    pub(super) table: u64,
    pub(super) is_oldest: bool,
    pub(super) tombstones: u64,
}

/// That which makes it worth to rewrite a memtable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Worth {
    /// One part in so many of it is gained.
    Part(u64),
    /// Two thirds of it are gained, and tombstones of its table hide nothing, or will once it has gone. Scans
    /// pass over them until then.
    Tombstones,
}

impl Worth {
    fn suits(self, candidate: &Candidate, all: &[Candidate]) -> bool {
        let has_tombstones = |other: &Candidate| other.table == candidate.table && other.tombstones > 0;
        match self {
            Worth::Part(least) => candidate.gain.saturating_mul(least) >= candidate.capacity,
            Worth::Tombstones => {
                let is_gained = candidate.gain.saturating_mul(3) >= candidate.capacity.saturating_mul(2);
                candidate.is_oldest && is_gained && all.iter().any(has_tombstones)
            }
        }
    }
}

/// The memtables that a step may look for.
pub(super) struct Demand {
    pub(super) worth: Worth,
    /// The numbers of memtables.
    pub(super) numbers: Range<u64>,
}

impl Demand {
    /// For memtables of these numbers that give back one part in so many.
    pub(super) fn part(least: u64, numbers: Range<u64>) -> Demand {
        Demand { worth: Worth::Part(least), numbers }
    }
}

/// The candidate with the largest share of gain among those that a step may look for. Of equal ones the
/// oldest.
pub(super) fn choose(candidates: &[Candidate], Demand { worth, numbers }: &Demand) -> Option<Candidate> {
    let suits =
        |candidate: &&Candidate| numbers.contains(&candidate.number) && worth.suits(candidate, candidates);
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
        let (at, table, tombstones) = (number as usize, 1, 0);
        Candidate { at, number, capacity, gain, table, is_oldest: false, tombstones }
    }

    #[test]
    fn the_emptiest_comes_first_and_of_equal_ones_the_oldest() {
        let all =
            [candidate(1, 100, 10), candidate(2, 400, 200), candidate(3, 100, 50), candidate(4, 100, 0)];
        let number = |least, numbers| choose(&all, &Demand::part(least, numbers)).map(|chosen| chosen.number);
        assert_eq!(number(16, 0..9), Some(2));
        assert_eq!(number(16, 3..9), Some(3));
        assert_eq!(number(16, 0..2), Some(1));
        assert_eq!(number(8, 0..2), None, "a tenth is not worth it");
        assert_eq!(number(u64::MAX, 4..9), None, "nothing to gain");
    }

    #[test]
    fn the_oldest_goes_where_a_younger_one_has_tombstones() {
        let oldest = Candidate { is_oldest: true, ..candidate(1, 99, 66) };
        let younger = Candidate { tombstones: 1, ..candidate(2, 99, 99) };
        let demand = Demand { worth: Worth::Tombstones, numbers: 0..9 };
        let number = |all: &[Candidate]| choose(all, &demand).map(|chosen| chosen.number);
        assert_eq!(number(&[oldest, younger]), Some(1));
        assert_eq!(number(&[Candidate { tombstones: 1, ..oldest }]), Some(1));
        assert_eq!(number(&[oldest, Candidate { table: 2, ..younger }]), None);
        assert_eq!(number(&[oldest, Candidate { tombstones: 0, ..younger }]), None);
        assert_eq!(number(&[Candidate { gain: 65, ..oldest }, younger]), None, "too much is copied");
    }
}
