//! The hot keys as a set of fingerprints in lines.
//!
//! A hash selects one line and a fingerprint of sixteen bits in it. So a question costs one line, and the
//! whole set stays in the second-level cache beside the store's own data. There is no probing: a key that
//! does not fit its line is left out, and since keys come hottest first, that is the coldest one. One key in
//! 2,000 that are not in the set is taken for a member.

const SLOTS: usize = 32;
/// Keys that a line gets on average. With 28 about one key in forty is left out, with 32 one in fourteen.
const KEYS_PER_LINE: usize = 28;
/// The fingerprint that no key has.
const EMPTY: u16 = 0;

#[derive(Clone)]
#[repr(C, align(64))]
struct Line([u16; SLOTS]);

/// A read-only, inexact set of keys, known by their hashes.
pub(super) struct KeySet {
    lines: Box<[Line]>,
    keys: usize,
}

/// The line of a hash: its upper half, as a fraction of all lines.
#[inline]
fn line_of(hash: u64, lines: usize) -> usize {
    (((hash >> 32) * lines as u64) >> 32) as usize
}

#[inline]
fn fingerprint(hash: u64) -> u16 {
    (hash as u16).max(EMPTY + 1)
}

impl KeySet {
    /// The set of these hashes. Those that find no room are left out, the last ones first.
    ///
    /// All 64 bits of a hash must look random. Takes time and memory in proportion to their number, which
    /// must be below 2^32.
    pub(super) fn new(hashes: &[u64]) -> KeySet {
        let mut lines = vec![Line([EMPTY; SLOTS]); hashes.len().div_ceil(KEYS_PER_LINE).max(1)];
        let mut keys = 0;
        for &hash in hashes {
            let line = line_of(hash, lines.len());
            let fingerprint = fingerprint(hash);
            // A key whose fingerprint is there already needs no room.
            let slot = lines[line].0.iter_mut().find(|slot| **slot == EMPTY || **slot == fingerprint);
            if let Some(slot) = slot {
                *slot = fingerprint;
                keys += 1;
            }
        }
        KeySet { lines: lines.into(), keys }
    }

    /// Whether the key with this hash is hot.
    #[inline]
    pub(super) fn contains(&self, hash: u64) -> bool {
        let line = &self.lines[line_of(hash, self.lines.len())];
        let fingerprint = fingerprint(hash);
        // Without an early exit: all comparisons together take fewer instructions than a loop, and none is
        // mispredicted.
        line.0.iter().fold(0u16, |found, &slot| found | u16::from(slot == fingerprint).wrapping_neg()) != 0
    }

    pub(super) fn keys(&self) -> usize {
        self.keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes that look random.
    fn hashes(count: u64) -> Vec<u64> {
        let mix = |x: u64| (x ^ (x >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (1..=count).map(|i| mix(mix(i.wrapping_mul(0x9E37_79B9_7F4A_7C15)))).collect()
    }

    #[test]
    fn nearly_all_keys_are_in_and_nearly_no_others() {
        let hashes = hashes(1 << 18);
        let (hot, cold) = hashes.split_at(1 << 17);
        let set = KeySet::new(hot);
        let found = hot.iter().filter(|hash| set.contains(**hash)).count();
        assert!(found >= set.keys() && found * 1000 > hot.len() * 970, "{found} of {}", hot.len());
        let wrong = cold.iter().filter(|hash| set.contains(**hash)).count();
        assert!(wrong * 1000 < cold.len(), "{wrong} of {}", cold.len());
        assert!(size_of_val(&*set.lines) <= 310 << 10, "{} bytes", size_of_val(&*set.lines));
        // The last hashes found no room.
        assert!(hot[..hot.len() / 2].iter().all(|hash| set.contains(*hash)));
    }

    #[test]
    fn every_fingerprint_can_be_found_in_every_slot() {
        // One line, as long as there are no more keys than it gets.
        for first in (0..=u16::MAX).step_by(23) {
            let hashes: Vec<u64> = (0..KEYS_PER_LINE as u64)
                .map(|i| u64::from(first) + i * 251)
                .map(|tag| tag & 0xFFFF)
                .collect();
            let set = KeySet::new(&hashes);
            assert_eq!(set.lines.len(), 1);
            assert!(hashes.iter().all(|hash| set.contains(*hash)));
            let others = (0..=u64::from(u16::MAX)).step_by(97);
            let wrong = others.filter(|tag| set.contains(*tag) && !hashes.contains(tag)).count();
            // Zero and one share a fingerprint.
            assert!(wrong <= 1);
        }
    }

    #[test]
    fn the_smallest_sets_work() {
        let empty = KeySet::new(&[]);
        assert_eq!((empty.keys(), size_of_val(&*empty.lines)), (0, 64));
        assert!(!hashes(100_000).into_iter().chain([0, u64::MAX]).any(|hash| empty.contains(hash)));
        let set = KeySet::new(&[0, u64::MAX, 0]);
        assert!(set.contains(0) && set.contains(u64::MAX));
    }
}
