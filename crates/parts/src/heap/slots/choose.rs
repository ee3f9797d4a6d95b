//! Which blocks are reclaimed next: pure functions over numbers.
//!
//! Viper takes the blocks with the most free space, from a share on (section 4.6 of its paper). With PACMAN
//! that share still says which blocks are worth it. Among those cost and benefit decide, as in the systems
//! that PACMAN is made for (section 2.1): free space over the bytes to move, times the age. So blocks of hot
//! records are left to die by themselves.

/// A block that nobody writes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Candidate {
    /// Its number.
    pub(super) block: u64,
    /// Bytes of all records in it that are not dead, tombstones among them.
    pub(super) bytes: u64,
    /// Bytes of its tombstones that may go.
    pub(super) outlived: u64,
    /// Bytes of its tombstones that other blocks hold back.
    pub(super) held: u64,
    /// The number of the record that filled it.
    pub(super) filled: u64,
}

/// Parameters of a choice, beside the candidates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// Bytes that a block has for records.
    pub(super) capacity: u64,
    /// Percent of these that must be free.
    pub(super) percent: u8,
    /// Whether cost and benefit decide among those, at this number of a record; otherwise free space alone
    /// does.
    pub(super) now: Option<u64>,
}

impl Terms {
    /// Whether a block gives back enough.
    pub(super) fn gives(&self, candidate: &Candidate) -> bool {
        self.is_enough(self.free(candidate))
    }

    /// Whether a block would give back enough if none of its tombstones were held back.
    fn would_give(&self, candidate: &Candidate) -> bool {
        candidate.held > 0 && self.is_enough(self.free(candidate) + candidate.held)
    }

    fn is_enough(&self, free: u64) -> bool {
        free * 100 >= self.capacity * u64::from(self.percent)
    }

    fn free(&self, candidate: &Candidate) -> u64 {
        (self.capacity + candidate.outlived).saturating_sub(candidate.bytes)
    }

    /// A number that orders blocks by their worth.
    fn worth(&self, candidate: &Candidate) -> u64 {
        let free = self.free(candidate);
        let Some(now) = self.now else { return free };
        let live = self.capacity.saturating_sub(free);
        // Clients go on meanwhile, so a block may be filled later than now.
        let age = now.saturating_sub(candidate.filled).max(1);
        // Worth is not negative, and the bits of such a number have its order.
        (free as f64 / live as f64 * age as f64).to_bits()
    }
}

/// At most so many blocks, the best last.
pub(super) fn choose(candidates: &[Candidate], terms: &Terms, most: usize) -> Vec<u64> {
    let worth = |candidate: &Candidate| (terms.worth(candidate), candidate.block);
    let mut chosen: Vec<_> = candidates.iter().filter(|block| terms.gives(block)).map(worth).collect();
    let needless = chosen.len().saturating_sub(most);
    if needless > 0 {
        chosen.select_nth_unstable(needless);
        chosen.drain(..needless);
    }
    chosen.sort_unstable();
    chosen.into_iter().map(|(_, block)| block).collect()
}

/// Share of all room for records, as a divisor, that tombstones may take which are held back, before marks
/// are cleared for their sake.
const DEBT_SHARE: u64 = 16;

/// The state on which it depends whether marks are cleared, so that blocks hold fewer tombstones back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Debt {
    /// Bytes of tombstones that are held back, and of all room for records.
    pub(super) held: u64,
    pub(super) room: u64,
    /// All blocks that hold some back can be done at once.
    pub(super) is_soon_done: bool,
    /// Nothing has been cleared yet for this choice.
    pub(super) is_first: bool,
}

/// Whether marks are to be cleared before a victim is taken: tombstones that are held back are many, or
/// nothing else is worth it. Then it goes on as long as one of the candidates would be without them.
pub(super) fn is_clearing_due(candidates: &[Candidate], terms: &Terms, debt: Debt) -> bool {
    if candidates.iter().any(|candidate| terms.gives(candidate)) {
        return debt.is_first && debt.held * DEBT_SHARE > debt.room;
    }
    let is_cheap = debt.is_first && debt.is_soon_done && debt.held > 0;
    is_cheap || candidates.iter().any(|candidate| terms.would_give(candidate))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTIEST: Terms = Terms { capacity: 1000, percent: 33, now: None };
    const BEST: Terms = Terms { now: Some(1000), ..EMPTIEST };

    fn block(block: u64, bytes: u64, filled: u64) -> Candidate {
        Candidate { block, bytes, filled, ..Candidate::default() }
    }

    #[test]
    fn blocks_with_less_than_the_share_free_are_left() {
        let blocks = [block(1, 670, 0), block(2, 671, 0), block(3, 1000, 0)];
        assert_eq!(choose(&blocks, &EMPTIEST, 9), [1]);
        assert_eq!(choose(&blocks, &BEST, 9), [1]);
        assert!(choose(&[], &EMPTIEST, 9).is_empty());
        let empty = Terms { percent: 100, ..EMPTIEST };
        assert_eq!(choose(&[block(1, 1, 0), block(2, 0, 0)], &empty, 9), [2]);
    }

    #[test]
    fn the_emptiest_comes_last_and_the_fullest_are_left_where_there_are_too_many() {
        let blocks = [block(1, 300, 0), block(2, 100, 0), block(3, 200, 0), block(4, 600, 0)];
        assert_eq!(choose(&blocks, &EMPTIEST, 9), [4, 1, 3, 2]);
        assert_eq!(choose(&blocks, &EMPTIEST, 2), [3, 2]);
    }

    #[test]
    fn an_old_block_goes_before_an_emptier_one_whose_records_still_die() {
        let (old, young) = (block(1, 600, 100), block(2, 500, 900));
        assert_eq!(choose(&[old, young], &EMPTIEST, 9), [1, 2]);
        assert_eq!(choose(&[old, young], &BEST, 9), [2, 1]);
        let (empty, ahead) = (block(3, 0, 999), block(4, 500, 2000));
        assert_eq!(choose(&[old, empty, ahead], &BEST, 9), [4, 1, 3], "one without records costs nothing");
    }

    #[test]
    fn tombstones_are_free_once_nothing_holds_them_back() {
        let held = Candidate { held: 400, ..block(1, 1000, 0) };
        let outlived = Candidate { outlived: 400, ..block(2, 1000, 0) };
        assert_eq!(choose(&[held, outlived], &BEST, 9), [2]);
    }

    #[test]
    fn marks_are_cleared_if_that_gives_a_victim_or_tombstones_are_many() {
        let debt = Debt { held: 62, room: 1000, is_soon_done: false, is_first: true };
        let (good, full) = (block(1, 0, 0), block(2, 1000, 0));
        let due = |blocks: &[Candidate], debt| is_clearing_due(blocks, &BEST, debt);
        assert!(!due(&[good], debt), "a sixteenth may stay");
        assert!(due(&[good], Debt { held: 63, ..debt }));
        assert!(!due(&[good], Debt { held: 63, is_first: false, ..debt }), "once is enough");
        assert!(!due(&[full], Debt { held: 999, ..debt }), "no block would become one");
        assert!(due(&[full], Debt { is_soon_done: true, ..debt }));
        assert!(!due(&[full], Debt { is_soon_done: true, is_first: false, ..debt }));
        assert!(!due(&[full], Debt { is_soon_done: true, held: 0, ..debt }));
        let hoped = Candidate { held: 330, ..full };
        assert!(due(&[hoped], Debt { is_first: false, ..debt }), "as long as there is hope");
        assert!(!due(&[Candidate { held: 329, ..full }], debt));
    }
}
