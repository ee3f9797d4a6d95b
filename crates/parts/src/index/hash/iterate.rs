//! Walking over all references, segment by segment, while the index changes; see [`Cursor`].

use super::segment::Segment;
use super::slot::{EMPTY, reference_of};
use super::table::HashIndex;
use crate::epoch::Guard;
use crate::index::Cursor;

impl HashIndex {
    /// Appends all references of the next part of the index to `out`; false, with nothing appended, at the end.
    ///
    /// A part is copied at one moment, under its lock. A key that is present from the first call to the last is
    /// seen exactly once, whatever splits happen in between.
    pub fn next_batch(&self, _guard: &Guard<'_>, cursor: &mut Cursor, out: &mut Vec<u64>) -> bool {
        let Some(next) = cursor.next() else { return false };
        let (entry, state) = self.lock(next);
        let segment = self.slabs.segment(entry);
        out.extend(segment.references_in_buckets());
        out.extend(
            segment.meta.overflow_entries().filter_map(|entry| entry.load()).map(|(_, reference)| reference),
        );
        cursor.pass(next, state.depth);
        true
    }
}

impl Segment<'_> {
    /// The references in the buckets. The caller holds the lock.
    pub(super) fn references_in_buckets(&self) -> Vec<u64> {
        let words =
            self.buckets.iter().flat_map(|bucket| (0..bucket.slots.len()).map(|slot| bucket.load(slot)));
        words.filter(|&word| word != EMPTY).map(reference_of).collect()
    }
}
