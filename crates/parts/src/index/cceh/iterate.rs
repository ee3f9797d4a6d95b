//! Walking over all references: segment by segment while the index changes (see [`Cursor`]), and for a
//! recovery that compares an index in PM with the records.

use super::entry::{BUCKET, EMPTY, ENTRY};
use super::memory::NodeMemory;
use super::table::CcehIndex;
use crate::epoch::Guard;
use crate::index::Cursor;
use crate::index::directory::following;
use std::sync::atomic::Ordering;

impl<M: NodeMemory> CcehIndex<M> {
    /// Appends hash and reference of all entries of the next part of the index to `out`; false, with nothing
    /// appended, at the end. The memory's mark is no part of the hash.
    ///
    /// A part is copied at one moment, under its lock. A key that is present from the first call to the last
    /// is seen exactly once, whatever splits happen in between.
    pub fn next_batch(&self, _guard: &Guard<'_>, cursor: &mut Cursor, out: &mut Vec<(u64, u64)>) -> bool {
        self.next_part(cursor, |hash, value| out.push((hash, value)))
    }

    /// Tells hash and reference of all entries of the next part, of which
    /// [`next_batch`](CcehIndex::next_batch) speaks.
    pub(super) fn next_part(&self, cursor: &mut Cursor, mut each: impl FnMut(u64, u64)) -> bool {
        let Some(next) = cursor.next() else { return false };
        let segment = self.lock(next);
        let entry = segment.entry;
        self.settle(entry.place());
        self.entries(entry, next).for_each(|(_, _, word, value)| each(word & !M::MARK, value));
        cursor.pass(next, entry.number());
        true
    }

    /// Whether an entry of this hash holds this reference, durably or not. Changes nothing, makes nothing
    /// durable, and waits for nobody.
    pub fn names(&self, hash: u64, reference: u64) -> bool {
        let mut entry = self.directory.entry(hash);
        loop {
            if self.values_of_hash(entry.place(), hash).any(|value| value == reference) {
                return true;
            }
            // As for a lookup: moved entries are overwritten only behind a change of the directory.
            let current = self.directory.entry(hash);
            if current == entry {
                return false;
            }
            entry = current;
        }
    }

    /// Ends a recovery of a store that does not believe the index. Makes the entries of another run durable,
    /// makes free entries of zeros, and removes the entries, given by hash and reference, for which `keep`
    /// says no. Returns how many are left. From then on [`len`](CcehIndex::len) costs nothing. Nobody else
    /// uses the index, or has changed it since it was opened; `keep` must not call it.
    pub fn retain(&self, mut keep: impl FnMut(u64, u64) -> bool) -> u64 {
        let is_counted = self.counts_all.load(Ordering::Relaxed);
        let (mut left, mut next) = (0, Some(0));
        while let Some(start) = next {
            let mut segment = self.lock(start);
            let entry = segment.entry;
            self.settle(entry.place());
            self.renew(entry.place());
            let (mut kept, mut removed) = (0, 0);
            for (bucket, slot, word, value) in self.entries(entry, start) {
                if keep(word & !M::MARK, value) {
                    kept += 1;
                } else {
                    self.set_value(entry.place() + bucket * BUCKET + slot * ENTRY, word, EMPTY);
                    removed += 1;
                }
            }
            *segment.keys += if is_counted { -removed } else { kept };
            left += kept.unsigned_abs();
            next = following(start, entry.number());
        }
        self.counts_all.store(true, Ordering::Relaxed);
        left
    }
}
