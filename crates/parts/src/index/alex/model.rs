//! Linear models in integers: from a slice to the slot where it most likely stands, and to a child.
//!
//! The paper's models are of floating point, which has 53 bits: slices of 64 bits that differ late fall
//! together, and a child may get a key that its parent leads elsewhere. These are exact and never fall.

use std::ops::RangeInclusive;

/// Where keys stand in a leaf: `offset + (slice - base) * factor`, the factor a binary fraction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Model {
    base: u64,
    /// The factor is `mantissa / 2^shift`.
    mantissa: u64,
    shift: u32,
    offset: i64,
}

impl Model {
    /// The model that fits these slices best, by least squares, if they are to stand in so many slots, the
    /// `i`th of `n` in about slot `i * slots / n`.
    pub(super) fn fit(slices: impl Iterator<Item = u64> + Clone, n: usize, slots: f64) -> Model {
        let Some(base) = slices.clone().next() else { return Model::default() };
        let (count, scale) = (n as f64, slots / n as f64);
        let distance = |slice: u64| (slice - base) as f64;
        let mean = slices.clone().map(distance).sum::<f64>() / count;
        let middle = (count - 1.0) / 2.0;
        let (mut with_ranks, mut with_itself) = (0.0, 0.0);
        for (rank, slice) in slices.enumerate() {
            let from_mean = distance(slice) - mean;
            with_ranks += from_mean * (rank as f64 - middle);
            with_itself += from_mean * from_mean;
        }
        if with_itself == 0.0 {
            return Model { base, ..Model::default() };
        }
        let factor = with_ranks / with_itself * scale;
        let offset = (middle * scale - mean * factor).round() as i64;
        let (mantissa, shift) = fraction(factor);
        Model { base, mantissa, shift, offset }
    }

    /// The same, so many slots further.
    pub(super) fn moved(self, slots: usize) -> Model {
        Model { offset: self.offset + slots as i64, ..self }
    }

    /// The slot of a slice, among so many.
    #[inline]
    pub(super) fn predict(&self, slice: u64, slots: usize) -> usize {
        let distance = slice.saturating_sub(self.base);
        let right = (u128::from(distance) * u128::from(self.mantissa)) >> self.shift;
        // No leaf has 2^32 slots.
        let right = right.min(u128::from(u32::MAX)) as i64;
        (self.offset + right).clamp(0, slots as i64 - 1) as usize
    }
}

/// A positive number as `mantissa / 2^shift`, with 53 bits.
fn fraction(number: f64) -> (u64, u32) {
    let bits = number.to_bits();
    let exponent = (bits >> 52) as i64 & 0x7FF;
    let mantissa = (bits & ((1 << 52) - 1) | 1 << 52) << 11;
    // The number is mantissa * 2^(exponent - 1075 - 11).
    match 1086 - exponent {
        shift @ 0..128 => (mantissa, shift as u32),
        shift if shift >= 128 => (0, 0),
        // Steeper than any leaf is wide.
        _ => (u64::MAX, 0),
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

    #[test]
    fn equal_distances_are_met_exactly_wherever_they_begin() {
        for (first, step) in [(0u64, 1u64), (5, 3), (1 << 63, 1 << 40), (u64::MAX - 99, 1), (7, 1 << 56)] {
            let slices = (0..100).map(|i| first + i * step);
            let model = Model::fit(slices.clone(), 100, 200.0);
            for (rank, slice) in slices.enumerate() {
                let at = model.predict(slice, 200);
                assert!(at.abs_diff(rank * 2) <= 1, "{first} by {step}: {rank} at {at}");
            }
        }
        let flat = Model::fit([9, 9].into_iter(), 2, 4.0);
        assert_eq!((flat.predict(9, 4), flat.predict(u64::MAX, 4)), (0, 0));
        assert_eq!(Model::fit(std::iter::empty(), 0, 16.0).predict(5, 16), 0);
    }

    #[test]
    fn a_model_never_falls() {
        let slices = [3u64, 4, 5, 1000, 1 << 40, (1 << 40) + 1, 1 << 62, u64::MAX];
        let model = Model::fit(slices.iter().copied(), slices.len(), 16.0);
        let places: Vec<usize> = slices.iter().map(|slice| model.predict(*slice, 16)).collect();
        assert!(places.is_sorted(), "{places:?}");
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
