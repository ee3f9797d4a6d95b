//! The bucket of a hash, while the table grows by one bucket at a time (linear hashing: Litwin, VLDB 1980).
//!
//! The high 48 bits of a hash choose (MPKV, section 2). The paper takes the remainder by the number of
//! buckets. Here a product does the same without a division: a hash, as a fraction, times the buckets at
//! first is its *base*. Once the table has grown to `2^l` times that, `l` more bits tell the buckets of a
//! base apart, and one bit further those whose split is done:
//!
//! ```text
//! bucket = base + buckets at first * (the lowest l or l + 1 of bits 16..=47 of the hash)
//! ```
//!
//! So a hash stays, or moves on by as many buckets as there were at the beginning of the round.

/// Most buckets of a table.
pub const BUCKETS_MAX: u64 = 1 << 31;
/// The bits of a hash that are the fingerprint.
pub(super) const FINGERPRINT_BITS: u32 = 16;

/// Buckets of a table, and the rounds that its growth has behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    /// Buckets at first.
    pub(super) initial: u64,
    /// Buckets now.
    pub(super) buckets: u64,
    /// Rounds that are over.
    rounds: u32,
}

impl Size {
    /// A table of so many buckets, not fewer than there were at first.
    pub(super) fn new(initial: u64, buckets: u64) -> Size {
        Size { initial, buckets, rounds: (buckets / initial).ilog2() }
    }

    /// Buckets and rounds as a word, for [`unpack`](Size::unpack).
    #[inline]
    pub(super) fn pack(self) -> u64 {
        self.buckets | u64::from(self.rounds) << 32
    }

    /// The size of this word.
    #[inline]
    pub(super) fn unpack(initial: u64, word: u64) -> Size {
        Size { initial, buckets: word & u64::from(u32::MAX), rounds: (word >> 32) as u32 }
    }

    /// The bucket of a hash.
    #[inline]
    pub(super) fn bucket(self, hash: u64) -> u64 {
        let chosen = hash >> FINGERPRINT_BITS << FINGERPRINT_BITS;
        let base = (u128::from(chosen) * u128::from(self.initial)) >> 64;
        self.of(base as u64, (hash >> FINGERPRINT_BITS) as u32)
    }

    /// The bucket of a base and these further bits.
    #[inline]
    fn of(self, base: u64, bits: u32) -> u64 {
        let bucket = base + self.initial * (u64::from(bits) & ((2 << self.rounds) - 1));
        if bucket < self.buckets { bucket } else { bucket - (self.initial << self.rounds) }
    }

    /// The next bucket, and the one that is split to fill it; `None` if there are as many as there can be.
    pub(super) fn next(self) -> Option<(Size, u64)> {
        let next = Size::new(self.initial, self.buckets + 1);
        (self.buckets < BUCKETS_MAX).then_some((next, self.buckets - (self.initial << self.rounds)))
    }

    /// The last split: the bucket that was filled, and its parent; `None` if there was none.
    pub(super) fn last_split(self) -> Option<(u64, u64)> {
        let last = self.buckets - 1;
        let before = (last >= self.initial).then(|| Size::new(self.initial, last))?;
        before.next().map(|(_, parent)| (last, parent))
    }

    /// Bits that the bucket looks at, besides those of the base.
    fn depth(self, bucket: u64) -> u32 {
        let is_split =
            bucket >= self.initial << self.rounds || bucket + (self.initial << self.rounds) < self.buckets;
        self.rounds + u32::from(is_split)
    }

    /// The bucket that begins at a point of a walk, and the point of the next one; `None` at the end.
    ///
    /// A point is a base and, below it, the further bits turned round. So the two halves of a split lie
    /// together, and the beginning of a bucket stays one.
    pub(super) fn at(self, point: u64) -> Option<(u64, u64)> {
        let (base, bits) = (point >> 32, (point as u32).reverse_bits());
        if base >= self.initial {
            return None;
        }
        let bucket = self.of(base, bits);
        Some((bucket, point + (1 << (u32::BITS - self.depth(bucket)))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mix(number: u64) -> u64 {
        let mixed = (number ^ number >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
    }

    #[test]
    fn a_growing_table_moves_hashes_from_the_bucket_that_splits_to_the_new_one() {
        for initial in [1, 2, 3, 7, 64] {
            let mut size = Size::new(initial, initial);
            for _ in 0..200 {
                let (grown, parent) = size.next().expect("room");
                assert_eq!(grown.last_split(), Some((size.buckets, parent)));
                assert_eq!(Size::unpack(initial, grown.pack()), grown);
                for hash in (0..500).map(mix) {
                    let (before, after) = (size.bucket(hash), grown.bucket(hash));
                    assert!(before < size.buckets);
                    assert!(before == after || (before, after) == (parent, size.buckets));
                }
                size = grown;
            }
        }
        assert_eq!(Size::new(5, 5).last_split(), None);
        assert!(Size::new(1, BUCKETS_MAX).next().is_none());
    }

    #[test]
    fn hashes_spread_evenly_over_a_table_of_any_size() {
        for initial in [3, 100, 1000] {
            let size = Size::new(initial, initial);
            let mut counts = vec![0u64; initial as usize];
            (0..initial * 200).for_each(|number| counts[size.bucket(mix(number)) as usize] += 1);
            assert!(counts.iter().all(|count| (110..290).contains(count)), "{counts:?}");
        }
    }

    #[test]
    fn the_fingerprint_does_not_choose() {
        let size = Size::new(1000, 1700);
        for hash in (0..1000).map(mix) {
            assert_eq!(size.bucket(hash), size.bucket(hash ^ 0xFFFF));
        }
    }

    #[test]
    fn a_walk_comes_by_every_bucket_once_and_its_points_outlive_splits() {
        for (initial, buckets) in [(1, 1), (1, 5), (3, 3), (3, 17), (8, 16), (10, 39)] {
            let mut size = Size::new(initial, buckets);
            let (mut point, mut seen) = (0, Vec::new());
            while let Some((bucket, next)) = size.at(point) {
                assert!(next > point);
                (point, _) = (next, seen.push(bucket));
            }
            seen.sort_unstable();
            assert_eq!(seen, (0..buckets).collect::<Vec<_>>());
            // Every hash is visited once, though a bucket splits behind each step.
            let (mut point, mut visits) = (0, vec![0; 400]);
            while let Some((bucket, next)) = size.at(point) {
                for (number, count) in visits.iter_mut().enumerate() {
                    *count += u64::from(size.bucket(mix(number as u64)) == bucket);
                }
                point = next;
                if size.buckets < buckets * 6 {
                    size = size.next().expect("room").0;
                }
            }
            assert!(visits.iter().all(|count| *count == 1), "{visits:?}");
        }
    }
}
