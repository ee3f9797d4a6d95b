//! How far the order of all items is whole: a pure function of the chunks that a walk found.
//!
//! Up to a number F all is known to have been durable once: F is the greatest of the anchor's numbers, of
//! the last numbers of ended memtables, and of all `floor`s. It is always the end of an item. From there on,
//! the items are followed by `before`, as long as each has all its pieces. Where that ends is the *cut*.
//!
//! *Damage below F.* Chunks that are missing there must not be taken for the end. The chain of a memtable
//! shows a hole, but not the loss of its newest chunks. So all numbers up to F are added up: those of the
//! chunks, and the gaps that the clock has left between two items, which the first piece of the later one
//! tells. The sum must be that of all numbers behind `through`.

use crate::twin;

/// A chunk, as the cut sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Number of the item's first record.
    pub first: u64,
    /// Last number of the item before.
    pub before: u64,
    /// Records of the item.
    pub count: u32,
    /// Records of this chunk.
    pub here: u32,
    /// Chunks of the item.
    pub pieces: u16,
    /// Which of them it is.
    pub piece: u16,
}

impl Fact {
    /// The last number of the item.
    pub fn last(&self) -> u64 {
        self.first + u64::from(self.count) - 1
    }

    /// Whether an item may have such a chunk, behind so many records of other pieces.
    pub(super) fn is_possible(&self, ahead: u32) -> bool {
        self.first > self.before
            && self.here > 0
            && self.piece < self.pieces
            && u64::from(ahead) + u64::from(self.here) <= u64::from(self.count)
            && self.first.checked_add(u64::from(self.count)).is_some()
    }

    /// The numbers that this chunk accounts for.
    pub fn numbers(&self) -> u64 {
        let gap = if self.piece == 0 { self.first - self.before - 1 } else { 0 };
        u64::from(self.here) + gap
    }
}

/// The numbers up to F do not add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("of {expected} numbers up to {up_to}, which all were durable, {found} are accounted for")]
pub struct Missing {
    /// Numbers that there should be.
    pub expected: u64,
    /// Numbers that chunks account for. They are more if some that an earlier crash cut off came back.
    pub found: u64,
    /// F.
    pub up_to: u64,
}

/// The findings of a walk over memtables. It keeps only chunks above the highest floor so far, since nobody
/// asks for the others once they are added up.
#[derive(Debug, Default)]
pub struct Evidence {
    /// All was durable up to here.
    floor: u64,
    /// Numbers of chunks that are not kept.
    sum: u64,
    /// The others, in any order.
    kept: Vec<Fact>,
}

impl Evidence {
    /// Adds a number up to which all was durable, as is known without a chunk: that of the anchor, or of an
    /// ended memtable.
    pub fn known(&mut self, number: u64) {
        self.floor = self.floor.max(number);
    }

    /// Adds a chunk, and the floor in its header. Numbers up to `through` are not added up.
    pub fn add(&mut self, fact: Fact, floor: u64, through: u64) {
        self.floor = self.floor.max(floor);
        if fact.first <= through {
            return;
        }
        if self.kept.len() >= self.kept.capacity().max(64) {
            self.forget();
        }
        self.kept.push(fact);
    }

    /// Adds up the chunks that are no more above the floor.
    fn forget(&mut self) {
        let (floor, sum) = (self.floor, &mut self.sum);
        self.kept.retain(|fact| {
            let stays = fact.last() > floor;
            *sum += if stays { 0 } else { fact.numbers() };
            stays
        });
    }

    /// The greatest number up to which all was known to be durable.
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// The cut.
    ///
    /// # Errors
    /// If something is missing below F.
    pub fn cut(mut self, through: u64) -> Result<u64, Missing> {
        self.forget();
        let floor = self.floor;
        let (expected, found) = (floor.saturating_sub(through), self.sum);
        if expected != found {
            return Err(Missing { expected, found, up_to: floor });
        }
        let mut cut = floor;
        self.kept.sort_unstable_by_key(|fact| (fact.first, fact.piece));
        for item in self.kept.chunk_by(|one, next| one.first == next.first) {
            let head = item[0];
            let is_next = head.before == cut || twin!(OrderNotFollowed);
            let is_whole = twin!(PiecesNotCounted)
                || item.len() == usize::from(head.pieces)
                    && item.iter().zip(0..).all(|(fact, piece)| fact.piece == piece)
                    && item.iter().map(|fact| u64::from(fact.here)).sum::<u64>() == u64::from(head.count);
            if !is_next || !is_whole {
                break;
            }
            cut = head.last();
        }
        Ok(cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(before: u64, first: u64, heres: &[u32]) -> Vec<Fact> {
        let (count, pieces) = (heres.iter().sum(), heres.len() as u16);
        let piece = |(here, piece)| Fact { first, before, count, here, pieces, piece };
        heres.iter().copied().zip(0..).map(piece).collect()
    }

    fn evidence(facts: &[Fact], floor: u64) -> Evidence {
        let mut evidence = Evidence::default();
        facts.iter().for_each(|fact| evidence.add(*fact, floor, 0));
        evidence
    }

    /// Two items of two pieces each with a gap between them, and one of one piece.
    fn three() -> Vec<Fact> {
        [item(0, 1, &[2, 1]), item(3, 10, &[1, 1]), item(11, 12, &[1])].concat()
    }

    #[test]
    fn all_pieces_count_and_none_behind_a_hole() {
        assert_eq!(evidence(&three(), 0).cut(0), Ok(12));
        for (missing, cut) in [(0, 0), (1, 0), (2, 3), (3, 3), (4, 11)] {
            let mut facts = three();
            facts.remove(missing);
            assert_eq!(evidence(&facts, 0).cut(0), Ok(cut), "without {missing}");
        }
    }

    #[test]
    fn what_is_missing_below_a_floor_is_damage() {
        assert_eq!(evidence(&three(), 11).cut(0), Ok(12));
        for (missing, numbers) in [(0, 2), (1, 1), (2, 7), (3, 1)] {
            let mut facts = three();
            facts.remove(missing);
            let expected = Missing { expected: 11, found: 11 - numbers, up_to: 11 };
            assert_eq!(evidence(&facts, 11).cut(0), Err(expected), "without {missing}");
        }
    }

    #[test]
    fn what_has_left_is_not_missing() {
        let mut evidence = Evidence::default();
        evidence.known(3);
        three()[1..].iter().for_each(|fact| evidence.add(*fact, 11, 3));
        assert_eq!(evidence.cut(3), Ok(12));
    }

    #[test]
    fn chunks_are_forgotten_below_the_floor_alone() {
        let mut evidence = Evidence::default();
        for number in 1..=100_000 {
            let fact = item(number - 1, number, &[1])[0];
            evidence.add(fact, number.saturating_sub(8), 0);
        }
        assert!(evidence.kept.capacity() < 1000, "{}", evidence.kept.capacity());
        assert_eq!(evidence.cut(0), Ok(100_000));
    }
}
