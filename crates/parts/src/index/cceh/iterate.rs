//! Walking over all references, segment by segment, while the index changes; see [`Cursor`].

use super::memory::NodeMemory;
use super::table::CcehIndex;
use crate::epoch::Guard;
use crate::index::Cursor;

impl<M: NodeMemory> CcehIndex<M> {
    /// Appends hash and reference of all entries of the next part of the index to `out`; false, with nothing appended, at the
    /// end. The memory's mark is no part of the hash.
    ///
    /// A part is copied at one moment, under its lock. A key that is present from the first call to the last is
    /// seen exactly once, whatever splits happen in between.
    pub fn next_batch(&self, _guard: &Guard<'_>, cursor: &mut Cursor, out: &mut Vec<(u64, u64)>) -> bool {
        let Some(next) = cursor.next() else { return false };
        let (entry, _lock) = self.lock(next);
        self.settle(entry.place());
        out.extend(self.entries(entry, next).map(|(_, _, word, value)| (word & !M::MARK, value)));
        cursor.pass(next, entry.depth());
        true
    }
}
