//! The choice of versions to keep: a pure function.
//!
//! A version is needed by the readers between its number and that of the next newer one. So it goes if no
//! snapshot is there, and if readers without a snapshot look at the newer one, or above. The newest version
//! of a key always stays, a deletion too: it hides versions on the levels below.
//!
//! The paper purges stale versions and says nothing of snapshots. The oldest snapshot alone does not decide
//! either: between two snapshots there may be versions that nobody reads.

use super::array::Version;
use super::snapshots::Horizon;

/// Keeps those of a key's versions, the newest first, that somebody may read.
pub fn purge(versions: &mut Vec<Version>, horizon: &Horizon) {
    let mut newer = None;
    versions.retain(|version| {
        let stays = newer.is_none_or(|newer| is_read_between(version.number, newer, horizon));
        newer = Some(version.number);
        stays
    });
}

/// Whether somebody may read at a number from `number` on and below `newer`.
pub(crate) fn is_read_between(number: u64, newer: u64, horizon: &Horizon) -> bool {
    let below = horizon.snapshots.partition_point(|snapshot| *snapshot < newer);
    newer > horizon.visible || below > 0 && horizon.snapshots[below - 1] >= number
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::Reference;
    use proptest::prelude::*;

    fn newest(versions: &[Version], up_to: u64) -> Option<u64> {
        versions.iter().map(|version| version.number).find(|number| *number <= up_to)
    }

    proptest! {
        /// All readers find what they found before, and nothing is kept that none of them finds.
        #[test]
        fn readers_miss_nothing_and_nothing_else_is_kept(
            numbers in proptest::collection::btree_set(1..40u64, 1..12),
            snapshots in proptest::collection::btree_set(0..40u64, 0..5),
            visible in 0..40u64,
        ) {
            let version = |number| Version { number, reference: Reference::from_word(number) };
            let before: Vec<Version> = numbers.into_iter().rev().map(version).collect();
            let snapshots: Vec<u64> = snapshots.into_iter().filter(|number| *number <= visible).collect();
            let horizon = Horizon::new(visible, snapshots);
            let mut after = before.clone();
            purge(&mut after, &horizon);
            let readers = || horizon.snapshots.iter().copied().chain(visible..41);
            for up_to in readers() {
                prop_assert_eq!(newest(&before, up_to), newest(&after, up_to), "at {}", up_to);
            }
            prop_assert_eq!(before[0], after[0]);
            for version in &after[1..] {
                let is_read = readers().any(|up_to| newest(&before, up_to) == Some(version.number));
                prop_assert!(is_read, "{} is kept for nobody", version.number);
            }
        }
    }
}
