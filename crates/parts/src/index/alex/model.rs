//! Models in integers: from a slice to the slot where it most likely stands, and to a child.
//!
//! The paper's models are of floating point, which has 53 bits: slices of 64 bits that differ late fall
//! together, and a child may get a key that its parent leads elsewhere. These are exact and never fall.

use super::leaf::Entry;
use std::ops::RangeInclusive;

/// Where keys stand in a leaf: a line from knot to knot, which divide the slices equally.
///
/// The paper has one line. Where keys lie on none, such as around the cities of a map, its leaves become
/// small and its tree deep. Many lines keep leaves large and searches short there.
///
/// Equal shares of slices cannot follow keys whose every part looks like the whole, such as decimal numbers
/// in letters. A byte of them has ten values of 256, so most lines have no key, and few have nearly all.
/// There, the model is a list of some of the keys, as in a node of a B+-tree.
#[derive(Debug, Default)]
pub(super) struct Model {
    /// The first slice.
    base: u64,
    /// A line takes `2^shift` slices.
    shift: u32,
    /// The slot where each line begins, and where the last one ends. No leaf has 2^16 slots.
    knots: Box<[u16]>,
    /// The lowest slice of each part but the first: a model with a list. Empty for lines.
    firsts: Box<[u64]>,
    /// The first of each group of them. A search begins with these, which are few enough for the cache.
    heads: Box<[u64]>,
    /// The middle of the first part, and the way from one part to the next, in shares of a slot.
    middle: u64,
    step: u64,
}

/// Keys of a part of a model with a list.
const KEYS_OF_A_PART: usize = 8;
/// Slices of a list that a search compares at once: those of two lines or three.
const GROUP: usize = 16;
/// A slot has `2^SHARES` shares.
const SHARES: u32 = 16;

impl Model {
    /// A model of about so many lines, or twice as many, for entries in order. They are to stand at equal
    /// distances of `per` slots from slot `begin` on.
    pub(super) fn fit(entries: &[Entry], lines: usize, begin: usize, per: f64) -> Model {
        let [(base, _), .., (last, _)] = *entries else {
            let base = entries.first().map_or(0, |(base, _)| *base);
            return Model { base, shift: 0, knots: [begin as u16; 2].into(), ..Model::default() };
        };
        let width = last - base;
        let shift = (width / lines as u64).checked_ilog2().unwrap_or(0);
        let count = (width >> shift) as usize + 1;
        let place = |rank: f64| (begin as f64 + rank * per).min(f64::from(u16::MAX)) as u16;
        let (mut knots, mut rank) = (Vec::with_capacity(count + 1), 0);
        for line in 0..count {
            let first = base + ((line as u64) << shift);
            rank += entries[rank..].iter().take_while(|(slice, _)| *slice < first).count();
            knots.push(place(rank as f64));
        }
        // The last line goes on as steeply as it rises up to the last slice.
        let share = ((width & ((1 << shift) - 1)) + 1) as f64 / (1u64 << shift) as f64;
        knots.push(place(rank as f64 + (entries.len() - rank) as f64 / share));
        Model { base, shift, knots: knots.into(), ..Model::default() }
    }

    /// A model with a list for entries in order, which stand at equal distances of `per` slots from slot
    /// `begin` on; nothing if they are too few for one.
    pub(super) fn sorted(entries: &[Entry], begin: usize, per: f64) -> Option<Model> {
        let firsts: Box<[u64]> = entries.chunks(KEYS_OF_A_PART).skip(1).map(|part| part[0].0).collect();
        let shares = |ranks: f64| (ranks * per * f64::from(1 << SHARES)) as u64;
        let middle = ((begin as u64) << SHARES) + shares((KEYS_OF_A_PART - 1) as f64 / 2.0);
        let step = shares(KEYS_OF_A_PART as f64);
        let heads = firsts.iter().step_by(GROUP).copied().collect();
        (!firsts.is_empty()).then_some(Model { firsts, heads, middle, step, ..Model::default() })
    }

    /// Whether it has a list.
    #[inline]
    pub(super) fn is_sorted(&self) -> bool {
        !self.firsts.is_empty()
    }

    /// The doublings of a search in its list.
    pub(super) fn list_steps(&self) -> u32 {
        (self.firsts.len() + 1).ilog2()
    }

    /// The slot of a slice, among so many.
    #[inline]
    pub(super) fn predict(&self, slice: u64, slots: usize) -> usize {
        if self.is_sorted() {
            return self.place_of(self.part_of(slice), slots);
        }
        let distance = slice.saturating_sub(self.base);
        let line = ((distance >> self.shift) as usize).min(self.knots.len().saturating_sub(2));
        let Some([begin, end]) = self.knots.get(line..line + 2) else { return 0 };
        let beyond = distance - ((line as u64) << self.shift);
        let right = (u128::from(beyond) * u128::from(end - begin)) >> self.shift;
        (u128::from(*begin) + right).min(slots as u128 - 1) as usize
    }

    /// The part of a list where a slice belongs.
    #[inline]
    fn part_of(&self, slice: u64) -> usize {
        let Some(group) = self.heads.partition_point(|head| *head <= slice).checked_sub(1) else { return 0 };
        let firsts = &self.firsts[group * GROUP..];
        // All of a group are compared, so their lines are fetched beside each other.
        let is_below = |first: &u64| usize::from(*first <= slice);
        group * GROUP + firsts.iter().take(GROUP).map(is_below).sum::<usize>()
    }

    /// The slot in the middle of a part of a list. Asks no memory for it.
    #[inline]
    fn place_of(&self, part: usize, slots: usize) -> usize {
        ((self.middle + part as u64 * self.step) >> SHARES).min(slots as u64 - 1) as usize
    }

    /// The slot of one of the entries that it was made for, by its rank among them.
    pub(super) fn predict_own(&self, rank: usize, slice: u64, slots: usize) -> usize {
        match self.is_sorted() {
            true => self.place_of(rank / KEYS_OF_A_PART, slots),
            false => self.predict(slice, slots),
        }
    }

    /// Bytes of DRAM beside its own.
    pub(super) fn bytes(&self) -> usize {
        size_of_val::<[u16]>(&self.knots)
            + size_of_val::<[u64]>(&self.firsts)
            + size_of_val::<[u64]>(&self.heads)
    }
}

/// Which child of an inner node a slice leads to: each takes the same power of two of slices. So a child
/// begins at the same slice after its parent has been given more children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Division {
    base: u64,
    /// A child has `2^shift` slices.
    shift: u32,
    children: u32,
}

impl Division {
    /// A division of this range among at least so many children, and less than twice as many more. There are
    /// not more of them than slices.
    pub(super) fn of(range: RangeInclusive<u64>, children: u32) -> Division {
        let most = range.end() - range.start();
        debug_assert!(children > 1 && u64::from(children) <= most);
        let shift = (most / u64::from(children)).ilog2();
        Division { base: *range.start(), shift, children: (most >> shift) as u32 + 1 }
    }

    /// Children.
    pub(super) fn children(&self) -> usize {
        self.children as usize
    }

    /// The child of a slice. Slices beyond the range lead to the outer children.
    #[inline]
    pub(super) fn child_of(&self, slice: u64) -> usize {
        let child = slice.saturating_sub(self.base) >> self.shift;
        child.min(u64::from(self.children - 1)) as usize
    }

    /// The lowest slice that leads to a child, not the first one; nothing if it would be too high for one.
    pub(super) fn first_of(&self, child: usize) -> Option<u64> {
        debug_assert!(child > 0);
        let distance = (child as u64).checked_mul(1 << self.shift)?;
        self.base.checked_add(distance)
    }

    /// The same with twice as many children: each becomes two.
    pub(super) fn doubled(&self) -> Option<Division> {
        let (shift, children) = (self.shift.checked_sub(1)?, self.children.checked_mul(2)?);
        Some(Division { shift, children, ..*self })
    }

    /// The same with twice as many children, the new ones behind the range.
    pub(super) fn extended(&self) -> Option<Division> {
        let longer = Division { children: self.children.checked_mul(2)?, ..*self };
        longer.first_of(longer.children() - 1).map(|_| longer)
    }

    /// The same with twice as many children, the new ones before the range.
    pub(super) fn extended_to_left(&self) -> Option<Division> {
        let distance = u64::from(self.children).checked_mul(1 << self.shift)?;
        let (base, children) = (self.base.checked_sub(distance)?, self.children.checked_mul(2)?);
        Some(Division { base, children, ..*self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(slices: impl IntoIterator<Item = u64>) -> Vec<Entry> {
        slices.into_iter().map(|slice| (slice, 1)).collect()
    }

    #[test]
    fn equal_distances_are_met_wherever_they_begin() {
        for (first, step) in [(0u64, 1u64), (5, 3), (1 << 63, 1 << 40), (u64::MAX - 199, 1), (7, 1 << 56)] {
            for lines in [1, 3, 25] {
                let model = Model::fit(&entries((0..100).map(|i| first + i * step)), lines, 7, 2.0);
                let place = |rank: usize| model.predict(first.saturating_add(rank as u64 * step), 300);
                for rank in 0..100 {
                    assert!(
                        place(rank).abs_diff(7 + rank * 2) <= 4,
                        "{first} by {step}: {rank} at {}",
                        place(rank)
                    );
                }
                assert!(place(110) >= place(99), "{first} by {step}");
            }
        }
        let one = Model::fit(&entries([9]), 1, 3, 4.0);
        assert_eq!((one.predict(0, 8), one.predict(9, 8), one.predict(u64::MAX, 8)), (3, 3, 3));
        assert_eq!(Model::default().predict(5, 16), 0);
        assert_eq!(Model::fit(&[], 1, 0, 0.0).predict(5, 16), 0);
    }

    #[test]
    fn a_model_never_falls_and_never_leaves_the_slots() {
        let slices = [3u64, 4, 5, 1000, 1 << 40, (1 << 40) + 1, 1 << 62, u64::MAX - 1, u64::MAX];
        for lines in [1, 2, 9, 1000] {
            let model = Model::fit(&entries(slices), lines, 0, 1.7);
            let places: Vec<usize> = slices.iter().map(|slice| model.predict(*slice, 16)).collect();
            assert!(places.is_sorted() && places[8] < 16, "{places:?}");
        }
    }

    /// Half of the keys in a thousandth of the range: lines follow them, and one cannot.
    #[test]
    fn many_lines_follow_keys_that_lie_on_none() {
        let slices: Vec<u64> = (0..500).map(|i| i * 2).chain((0..500).map(|i| 1000 + i * 2000)).collect();
        let error = |lines: usize| {
            let model = Model::fit(&entries(slices.iter().copied()), lines, 0, 1.0);
            let far = |(rank, slice): (usize, &u64)| model.predict(*slice, 1000).abs_diff(rank);
            slices.iter().enumerate().map(far).max().unwrap()
        };
        assert!(error(1) > 400 && error(1000) < 20, "{} {}", error(1), error(1000));
    }

    #[test]
    fn a_list_follows_any_keys() {
        let slices: Vec<u64> =
            (0..1000u64).map(|i| (i % 10) + ((i / 10 % 10) << 20) + ((i / 100) << 60)).collect();
        let mut sorted = slices.clone();
        sorted.sort_unstable();
        let model = Model::sorted(&entries(sorted.iter().copied()), 5, 1.5).expect("enough for a list");
        for (rank, slice) in sorted.iter().enumerate() {
            let far = model.predict(*slice, 2000).abs_diff(5 + rank * 3 / 2);
            assert!(far <= KEYS_OF_A_PART, "{slice} is {far} slots away");
        }
        assert!(model.predict(0, 2000) < 20 && model.predict(u64::MAX, 100) == 99);
        assert!(Model::sorted(&entries(0..8), 0, 1.0).is_none() && Model::sorted(&[], 0, 1.0).is_none());
    }

    /// Proves for all slices of 16 bits that children begin where it is said.
    fn check(division: &Division) {
        let children = 1..division.children();
        let firsts: Vec<u64> = children.map_while(|child| division.first_of(child)).collect();
        for slice in 0..=65_535u64 {
            let child = firsts.partition_point(|first| *first <= slice);
            assert_eq!(division.child_of(slice), child, "{division:?}: {slice}");
        }
    }

    #[test]
    fn children_begin_where_slices_lead_to_them() {
        for range in [0..=65_535, 7..=1000, 65_000..=65_535, 3..=10u64] {
            for children in
                [2, 3, 5, 8, 100, 511].map(|children: u32| children.min((range.end() - range.start()) as u32))
            {
                let division = Division::of(range.clone(), children);
                assert!((children as usize..=2 * children as usize + 1).contains(&division.children()));
                check(&division);
                if let Some(doubled) = division.doubled() {
                    check(&doubled);
                    (0..=65_535).for_each(|slice| {
                        let most = doubled.children() - 1;
                        assert_eq!(doubled.child_of(slice).min(most) / 2, division.child_of(slice));
                    });
                }
                if let Some(longer) = division.extended() {
                    check(&longer);
                    (1..division.children())
                        .for_each(|child| assert_eq!(longer.first_of(child), division.first_of(child)));
                }
                if let Some(longer) = division.extended_to_left() {
                    check(&longer);
                    let old = |child| division.first_of(child);
                    (1..division.children()).for_each(|child| {
                        assert_eq!(longer.first_of(child + division.children()), old(child))
                    });
                }
            }
        }
    }

    #[test]
    fn a_range_of_all_slices_is_divided_too() {
        let division = Division::of(0..=u64::MAX, 1 << 10);
        let last = division.children() - 1;
        assert_eq!(division.child_of(u64::MAX), last);
        assert!(
            division.first_of(last).is_some()
                && division.first_of(1).is_some_and(|first| first.is_power_of_two())
        );
        assert!(division.extended().is_none() && division.extended_to_left().is_none(), "nothing is beyond");
        assert!(Division::of(0..=u64::MAX / 4, 2).extended().is_some());
    }
}
