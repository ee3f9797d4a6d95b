//! Walking over all references, segment by segment, while the index changes.
//!
//! The cursor is a point in the space of hashes, and each step takes the whole range of the segment that covers it.
//! Splits only cut ranges into halves, so a point at which some segment began stays the beginning of a segment: what was
//! visited is never visited again, and what was not visited lies ahead.

use super::segment::Segment;
use super::slot::{EMPTY, prefix, reference_of};
use super::table::HashIndex;
use crate::epoch::Guard;

/// How far an iteration has come; starts at the beginning.
#[derive(Clone, Debug, Default)]
pub struct Cursor {
    /// The lowest hash that was not visited.
    next: u64,
    finished: bool,
}

impl HashIndex {
    /// Appends all references of the next part of the index to `out`; false, with nothing appended, at the end.
    ///
    /// A part is copied at one moment, under its lock. A key that is present from the first call to the last is
    /// seen exactly once, whatever splits happen in between.
    pub fn next_batch(&self, _guard: &Guard<'_>, cursor: &mut Cursor, out: &mut Vec<u64>) -> bool {
        if cursor.finished {
            return false;
        }
        let (entry, state) = self.lock(cursor.next);
        let segment = self.slabs.segment(entry);
        out.extend(segment.references_in_buckets());
        out.extend(
            segment.meta.overflow_entries().filter_map(|entry| entry.load()).map(|(_, reference)| reference),
        );
        let following = prefix(cursor.next, state.depth) + 1;
        cursor.next = if state.depth == 0 { 0 } else { following << (64 - state.depth) };
        cursor.finished = cursor.next == 0;
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
