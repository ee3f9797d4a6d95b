//! In which order the slots of a border node stand: one word, so that a key comes or goes with one store.
//!
//! ```text
//! bits | 0..4 keys | 4..8 slot of the lowest key | 8..12 slot of the next | ... | 60..64 |
//! ```
//!
//! The slots behind those of the keys are free, in the order of their use (EuroSys'12, section 4.6.2).

/// Slots of a border node.
pub(super) const SLOTS: usize = 15;

/// Which slots have keys, in the order of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Permutation(u64);

/// One in each nibble that names a slot, once the number of keys is shifted out.
const ONES: u64 = 0x0111_1111_1111_1111;

impl Permutation {
    /// No key; the slots will be used from the first.
    pub(super) const EMPTY: Permutation = Permutation(0xEDCB_A987_6543_2100);

    /// The permutation that a word says.
    #[inline]
    pub(super) fn from_word(word: u64) -> Permutation {
        Permutation(word)
    }

    /// The word that says this permutation.
    #[inline]
    pub(super) fn word(self) -> u64 {
        self.0
    }

    /// Keys.
    #[inline]
    pub(super) fn len(self) -> usize {
        (self.0 & 15) as usize
    }

    /// Whether every slot has a key.
    #[inline]
    pub(super) fn is_full(self) -> bool {
        self.len() == SLOTS
    }

    /// The slot at this rank; beyond the keys, a free one.
    #[inline]
    pub(super) fn slot(self, rank: usize) -> usize {
        (self.0 >> (4 + 4 * rank) & 15) as usize
    }

    /// The slots of the keys, in their order.
    #[inline]
    pub(super) fn slots(self) -> impl ExactSizeIterator<Item = usize> {
        (0..self.len()).map(move |rank| self.slot(rank))
    }

    /// Whether the slot has a key.
    #[inline]
    pub(super) fn contains(self, slot: usize) -> bool {
        self.rank_of(slot) < self.len()
    }

    /// Where the slot stands among all.
    #[inline]
    fn rank_of(self, slot: usize) -> usize {
        let different = (self.0 >> 4) ^ (slot as u64 * ONES);
        let any_bit = different | different >> 1 | different >> 2 | different >> 3;
        (!any_bit & ONES).trailing_zeros() as usize / 4
    }

    /// With one key more, at this rank; the slot that it gets. There is a free one.
    #[inline]
    pub(super) fn insert(self, rank: usize) -> (Permutation, usize) {
        let len = self.len();
        let slot = self.slot(len);
        let without = self.close(len);
        (Permutation(without.open(rank, slot).0 + 1), slot)
    }

    /// With one key less, whose slot is then the last to be used again.
    #[inline]
    pub(super) fn remove(self, slot: usize) -> Permutation {
        let without = self.close(self.rank_of(slot));
        Permutation(without.open(SLOTS - 1, slot).0 - 1)
    }

    /// These slots have keys, in this order, and no others.
    pub(super) fn of(slots: impl ExactSizeIterator<Item = usize>) -> Permutation {
        let keys = slots.len() as u64;
        let mut used = 0u32;
        let mut all = Permutation(0);
        let mut rank = 0;
        for slot in slots {
            used |= 1 << slot;
            all.0 |= (slot as u64) << (4 + 4 * rank);
            rank += 1;
        }
        for slot in (0..SLOTS).filter(|slot| used & 1 << slot == 0) {
            all.0 |= (slot as u64) << (4 + 4 * rank);
            rank += 1;
        }
        Permutation(all.0 | keys)
    }

    /// Takes the nibble at this rank out and lets the others move down.
    #[inline]
    fn close(self, rank: usize) -> Permutation {
        let below = (1u64 << (4 + 4 * rank)) - 1;
        Permutation(self.0 & below | self.0 >> 4 & !below)
    }

    /// Lets the nibbles from this rank move up and puts one in.
    #[inline]
    fn open(self, rank: usize, slot: usize) -> Permutation {
        let below = (1u64 << (4 + 4 * rank)) - 1;
        Permutation(self.0 & below | (self.0 & !below) << 4 | (slot as u64) << (4 + 4 * rank))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_a_list_of_slots() {
        let (mut permutation, mut list, mut turn) = (Permutation::EMPTY, Vec::new(), 12345u64);
        for step in 0..10_000 {
            turn = turn.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(step);
            let random = (turn >> 33) as usize;
            if random & 1 == 0 && list.len() < SLOTS || list.is_empty() {
                let rank = random / 2 % (list.len() + 1);
                let (after, slot) = permutation.insert(rank);
                assert!(!permutation.contains(slot));
                list.insert(rank, slot);
                permutation = after;
            } else {
                let slot = list.remove(random / 2 % list.len());
                permutation = permutation.remove(slot);
                assert_eq!(permutation.slot(SLOTS - 1), slot);
            }
            assert_eq!(permutation.slots().collect::<Vec<_>>(), list);
            assert_eq!(permutation.is_full(), list.len() == SLOTS);
            assert!((0..SLOTS).all(|slot| permutation.contains(slot) == list.contains(&slot)));
            let mut all: Vec<usize> = (0..SLOTS).map(|rank| permutation.slot(rank)).collect();
            assert_eq!(Permutation::of(list.iter().copied()).slots().collect::<Vec<_>>(), list);
            all.sort_unstable();
            assert_eq!(all, (0..SLOTS).collect::<Vec<_>>());
        }
    }
}
