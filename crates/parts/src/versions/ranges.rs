//! Range tombstones: deletions of all keys from one on and below another.
//!
//! One deletes every version of such a key with a lower number. Readers look at an immutable list of them,
//! which is mostly empty.

/// A range tombstone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeTombstone {
    /// The first key.
    pub from: Box<[u8]>,
    /// The first key behind; empty for none.
    pub to: Box<[u8]>,
    /// Its number.
    pub number: u64,
}

impl RangeTombstone {
    /// Whether a key is in the range.
    #[inline]
    pub fn holds(&self, key: &[u8]) -> bool {
        *self.from <= *key && is_below(key, &self.to)
    }
}

/// Whether a key is below the end of a range.
#[inline]
fn is_below(key: &[u8], end: &[u8]) -> bool {
    end.is_empty() || key < end
}

/// Range tombstones.
#[derive(Clone, Debug, Default)]
pub struct RangeList {
    /// By their first keys.
    ranges: Vec<RangeTombstone>,
    /// For each, which of those up to it reaches furthest.
    furthest: Vec<usize>,
}

impl RangeList {
    /// All of these, in any order.
    pub fn new(mut ranges: Vec<RangeTombstone>) -> RangeList {
        ranges.sort_unstable_by(|one, next| one.from.cmp(&next.from));
        RangeList::of(ranges)
    }

    fn of(ranges: Vec<RangeTombstone>) -> RangeList {
        let mut furthest: Vec<usize> = Vec::with_capacity(ranges.len());
        for (at, range) in ranges.iter().enumerate() {
            let before = furthest.last().copied().filter(|before| {
                let end = &ranges[*before].to;
                end.is_empty() || !range.to.is_empty() && range.to <= *end
            });
            furthest.push(before.unwrap_or(at));
        }
        RangeList { ranges, furthest }
    }

    /// These and another one.
    pub fn with(&self, new: RangeTombstone) -> RangeList {
        let mut ranges = self.ranges.clone();
        let at = ranges.partition_point(|range| range.from <= new.from);
        ranges.insert(at, new);
        RangeList::of(ranges)
    }

    /// These without the one of this number; `None` if nothing is left.
    pub fn without(&self, number: u64) -> Option<RangeList> {
        let ranges: Vec<_> = self.ranges.iter().filter(|range| range.number != number).cloned().collect();
        (!ranges.is_empty()).then(|| RangeList::of(ranges))
    }

    /// Whether one with a number above `version` and up to `up_to` holds a key.
    pub fn deletes(&self, key: &[u8], version: u64, up_to: u64) -> bool {
        self.over(key).any(|range| version < range.number && range.number <= up_to)
    }

    /// The lowest number above `version` of one that holds a key.
    pub fn lowest_above(&self, key: &[u8], version: u64) -> Option<u64> {
        self.over(key).map(|range| range.number).filter(|number| version < *number).min()
    }

    /// Those that hold a key.
    fn over(&self, key: &[u8]) -> impl Iterator<Item = &RangeTombstone> {
        let behind = self.ranges.partition_point(|range| *range.from <= *key);
        let before = (0..behind).rev();
        let near = before.take_while(|at| is_below(key, &self.ranges[self.furthest[*at]].to));
        near.map(|at| &self.ranges[at]).filter(|range| range.holds(key))
    }

    /// All of them, by their first keys.
    pub fn iter(&self) -> impl Iterator<Item = &RangeTombstone> {
        self.ranges.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_key_is_deleted_by_whichever_range_holds_it(
            ranges in proptest::collection::vec((0..12u8, 0..12u8), 0..10),
            gone in proptest::collection::vec(0..10u64, 0..3),
        ) {
            let mut list = RangeList::default();
            let mut all = Vec::new();
            for ((from, to), number) in ranges.into_iter().zip(1..) {
                let to: Box<[u8]> = if to == 0 { Box::default() } else { Box::new([to]) };
                let range = RangeTombstone { from: Box::new([from]), to, number };
                list = list.with(range.clone());
                all.push(range);
            }
            for number in gone {
                list = list.without(number).unwrap_or_default();
                all.retain(|range| range.number != number);
            }
            for key in 0..14u8 {
                for (version, up_to) in [(0, 9), (2, 9), (0, 4), (3, 6), (5, 5)] {
                    let expected = all.iter().any(|range| {
                        range.number > version && range.number <= up_to && range.holds(&[key])
                    });
                    prop_assert_eq!(list.deletes(&[key], version, up_to), expected);
                    let above = all.iter().filter(|range| range.number > version && range.holds(&[key]));
                    let lowest = above.map(|range| range.number).min();
                    prop_assert_eq!(list.lowest_above(&[key], version), lowest);
                }
            }
            prop_assert_eq!(list.iter().count(), all.len());
        }
    }
}
