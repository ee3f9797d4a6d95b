//! Replacing many references with one fence: for compaction, which moves records by the batch (PACMAN, section 3.3).
//!
//! Compaction keeps the old records until the new references are durable, so these may be flushed later, all at once. Until
//! then their entries stand without a mark, so that a reader who acts on one makes it durable first, as after a crash.
//!
//! Why it is sound to flush an entry where it stood when it was changed, without a lock:
//! - *Somebody else has changed it since.* A writer has made its own word durable by now, or is about to before it returns. Another
//!   cleaner has not; so the line is flushed whatever stands there, and what is durable then is no older than our word.
//! - *A split has moved it since.* The copy was durable, with our word, before the split took effect. If it has not taken
//!   effect, durably, the entry counts where it was, and there our word still stands: a place is used again only
//!   behind the split.
//!
//! Marks are given under the lock of the segment, where nobody is changing an entry, to those that have our word still. They
//! had it before the flush too, and so at the flush: the word of a record does not become that of another one
//! while the caller is pinned. A word that has been replaced gets no mark from us; whoever replaced it gives one.

use super::entry::{ENTRY, VALUE};
use super::memory::NodeMemory;
use super::table::CcehIndex;
use super::write::check_reference;
use crate::epoch::Guard;

/// A reference that has been replaced and not flushed: to be given to [`persist_all`](CcehIndex::persist_all). If it is not, the
/// next who looks at the entry makes it durable.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the reference is not durable yet"]
pub struct Unflushed {
    segment: u64,
    /// The entry.
    place: u64,
    hash: u64,
    reference: u64,
}

impl<M: NodeMemory> CcehIndex<M> {
    /// [`replace`](CcehIndex::replace), not yet durable.
    ///
    /// # Panics
    /// If `new` is zero.
    #[inline]
    pub fn replace_unflushed(&self, _guard: &Guard<'_>, hash: u64, old: u64, new: u64) -> Option<Unflushed> {
        check_reference(new);
        let segment = self.lock(hash);
        let (place, _) = segment.find(|reference| reference == old)?;
        self.store_value(place, hash, new);
        Some(Unflushed { segment: segment.entry.place(), place, hash, reference: new })
    }

    /// Makes references durable that have been replaced, with one fence for all of them, and empties the list.
    pub fn persist_all(&self, _guard: &Guard<'_>, replaced: &mut Vec<Unflushed>) {
        if M::MARK != 0 && !replaced.is_empty() {
            replaced.retain(|entry| {
                let is_there = self.memory.load(entry.place + VALUE) == entry.reference;
                self.memory.flush(entry.place, ENTRY);
                is_there
            });
            self.memory.fence();
            for Unflushed { segment, place, hash, reference } in &*replaced {
                let _lock = self.locks.lock(*segment);
                let is_there = self.memory.load(*place + VALUE) == *reference;
                if is_there && Self::is_of(self.memory.load(*place), *hash) {
                    self.memory.store(*place, hash | M::MARK);
                }
            }
        }
        replaced.clear();
    }
}
