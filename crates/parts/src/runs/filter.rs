//! The choice of records that a compaction keeps: a pure function of the records and a [`Purge`].
//!
//! A record goes in three cases.
//!
//! - It stands there twice: a dump is repeated after a crash.
//! - Nobody reads it, by the same rule as in persistent memory. Readers pass it by from the number of the
//!   next newer record of its key on, or from that of a range tombstone over the key, if that is lower.
//! - It is a deletion in the last level, and all readers are at its number or above. They find nothing as
//!   well without it: its older records go in the same pass, by the rule before.
//!
//! Above the last level a deletion stays, since it hides records below. For the same reason a value that has
//! expired does not go there, but becomes a tombstone. This is sound under snapshots, too, because expiry
//! counts by the time of the read, at whichever number it looks.

use super::{Head, Purge};
use crate::record::Kind;
use crate::versions::purge::is_read_between;

/// The fate of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It stays.
    Keep,
    /// It goes.
    Drop,
    /// A tombstone of the same numbers takes its place.
    Bury,
}

/// Judges the records of one compaction.
pub struct Filter {
    purge: Purge,
    is_last: bool,
    /// The numbers of the range tombstones that may delete something, ascending.
    needed: Vec<u64>,
    /// The key of the record before, and the number of that record.
    before: Option<u64>,
    key: Vec<u8>,
    /// The number of the range tombstone before.
    range_before: Option<u64>,
}

impl Filter {
    /// For a compaction into the last level, or into one above it. Of each key that it meets, a compaction
    /// into the last level has all records from some number down.
    pub fn new(purge: Purge, is_last: bool) -> Filter {
        let mut needed: Vec<u64> = purge.ranges.iter().map(|range| range.number).collect();
        needed.sort_unstable();
        Filter { purge, is_last, needed, before: None, key: Vec::new(), range_before: None }
    }

    /// Judges a record. Keys rise, and of each key the numbers fall; two may be equal.
    ///
    /// # Panics
    /// If they do not.
    pub fn record(&mut self, key: &[u8], head: &Head) -> Verdict {
        let newer = self.before.filter(|_| *self.key == *key);
        match newer {
            Some(newer) => assert!(head.number <= newer, "the numbers of a key fall"),
            None => {
                assert!(self.before.is_none() || *self.key < *key, "keys rise");
                self.key.clear();
                self.key.extend_from_slice(key);
            }
        }
        self.before = Some(head.number);
        if newer == Some(head.number) {
            return Verdict::Drop;
        }
        let horizon = &self.purge.horizon;
        let range = self.purge.ranges.lowest_above(key, head.number);
        let hidden_from = newer.into_iter().chain(range).min();
        if hidden_from.is_some_and(|hidden| !is_read_between(head.number, hidden, horizon)) {
            return Verdict::Drop;
        }
        let has_expired = head.expires != 0 && head.expires <= self.purge.now;
        let is_deletion = head.kind == Kind::Tombstone || has_expired;
        let all_are_above = head.number <= horizon.visible
            && horizon.snapshots.first().is_none_or(|oldest| head.number <= *oldest);
        if self.is_last && is_deletion && all_are_above {
            return Verdict::Drop;
        }
        if head.kind == Kind::Value && has_expired { Verdict::Bury } else { Verdict::Keep }
    }

    /// Whether a range tombstone of this number stays. The numbers rise; two may be equal.
    ///
    /// # Panics
    /// If they do not.
    pub fn keeps_range(&mut self, number: u64) -> bool {
        let before = self.range_before.replace(number);
        assert!(before.is_none_or(|before| before <= number), "the numbers of range tombstones rise");
        let is_needed = number > self.purge.horizon.visible || self.needed.binary_search(&number).is_ok();
        is_needed && before != Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::versions::{Horizon, RangeList, RangeTombstone};
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    const NOW: u64 = 100;

    /// Records of one key by their numbers.
    type Records = BTreeMap<u64, Head>;

    fn head(number: u64, kind: u8) -> Head {
        let (kind, expires) = match kind {
            0 => (Kind::Tombstone, 0),
            1 => (Kind::Value, NOW - 1),
            2 => (Kind::Value, NOW + 1),
            _ => (Kind::Value, 0),
        };
        Head { number, version: number, kind, expires }
    }

    fn is_deletion(head: &Head) -> bool {
        head.kind == Kind::Tombstone || head.expires != 0 && head.expires <= NOW
    }

    /// The number of the value that a reader finds.
    fn answer(records: &Records, key: &[u8], ranges: &[RangeTombstone], up_to: u64) -> Option<u64> {
        let (number, head) = records.range(..=up_to).next_back()?;
        let covers =
            |range: &RangeTombstone| range.holds(key) && *number < range.number && range.number <= up_to;
        (!is_deletion(head) && !ranges.iter().any(covers)).then_some(*number)
    }

    proptest! {
        /// All readers find what they found before, and nothing is kept that none of them needs.
        #[test]
        fn readers_miss_nothing_and_nothing_else_is_kept(
            records in proptest::collection::btree_map((0..3u8, 1..30u64), (0..5u8, any::<bool>()), 0..24),
            // Of each key, those below this number are in a level below.
            below in proptest::collection::vec(0..15u64, 3),
            ranges in proptest::collection::btree_map(1..30u64, (0..3u8, 0..4u8), 0..4),
            snapshots in proptest::collection::btree_set(0..30u64, 0..5),
            visible in 0..30u64,
            is_last in any::<bool>(),
        ) {
            let below: Vec<u64> = if is_last { vec![0; 3] } else { below };
            let snapshots: Vec<u64> = snapshots.into_iter().filter(|number| *number <= visible).collect();
            let range = |(number, (from, len)): (u64, (u8, u8))| RangeTombstone {
                from: Box::new([from]),
                to: if len == 3 { Box::default() } else { Box::new([from + len]) },
                number,
            };
            let ranges: Vec<RangeTombstone> = ranges.into_iter().map(range).collect();
            let horizon = Horizon::new(visible, snapshots);
            let purge = Purge { horizon: horizon.clone(), ranges: RangeList::new(ranges.clone()), now: NOW };
            let mut filter = Filter::new(purge, is_last);
            for key in 0..3u8 {
                let of_key = records.iter().filter(|((of, _), _)| *of == key);
                let all: Records = of_key.clone().map(|((_, at), (kind, _))| (*at, head(*at, *kind))).collect();
                let low = below[usize::from(key)];
                let mut after: Records = all.range(..low).map(|(at, head)| (*at, *head)).collect();
                let mut kept = BTreeSet::new();
                for ((_, number), (kind, twice)) in of_key.rev().filter(|((_, number), _)| *number >= low) {
                    let before = head(*number, *kind);
                    match filter.record(&[key], &before) {
                        Verdict::Drop => {}
                        Verdict::Keep => {
                            kept.insert(*number);
                            prop_assert!(!is_deletion(&before) || before.kind == Kind::Tombstone);
                            after.insert(*number, before);
                        }
                        Verdict::Bury => {
                            kept.insert(*number);
                            prop_assert!(is_deletion(&before) && before.kind == Kind::Value);
                            after.insert(*number, Head { kind: Kind::Tombstone, expires: 0, ..before });
                        }
                    }
                    if *twice {
                        prop_assert_eq!(filter.record(&[key], &before), Verdict::Drop);
                    }
                }
                let readers = || horizon.snapshots.iter().copied().chain(visible..32);
                for up_to in readers() {
                    let before = answer(&all, &[key], &ranges, up_to);
                    prop_assert_eq!(before, answer(&after, &[key], &ranges, up_to), "{} at {}", key, up_to);
                }
                for number in kept {
                    let is_read = readers().any(|up_to| {
                        let newest = all.range(..=up_to).next_back().map(|(number, _)| *number);
                        let is_hidden = |range: &RangeTombstone| {
                            range.holds(&[key]) && number < range.number && range.number <= up_to
                        };
                        newest == Some(number) && !ranges.iter().any(is_hidden)
                    });
                    prop_assert!(is_read, "{key}: {number} is kept for nobody");
                    let hides = !is_last || readers().any(|up_to| up_to < number);
                    prop_assert!(hides || !is_deletion(&all[&number]), "{key}: {number} hides nothing");
                }
            }
        }

        #[test]
        fn range_tombstones_stay_while_they_may_delete_something(
            numbers in proptest::collection::vec(1..20u64, 0..8),
            needed in proptest::collection::btree_set(1..20u64, 0..8),
            visible in 0..20u64,
        ) {
            let range = |number: &u64| RangeTombstone { from: Box::default(), to: Box::default(), number: *number };
            let ranges = RangeList::new(needed.iter().map(range).collect());
            let purge = Purge { horizon: Horizon::new(visible, []), ranges, now: 0 };
            let mut filter = Filter::new(purge, false);
            let mut sorted = numbers.clone();
            sorted.sort_unstable();
            let kept: Vec<u64> = sorted.into_iter().filter(|number| filter.keeps_range(*number)).collect();
            let expected: BTreeSet<u64> =
                numbers.into_iter().filter(|number| *number > visible || needed.contains(number)).collect();
            prop_assert_eq!(kept, expected.into_iter().collect::<Vec<_>>());
        }
    }
}
