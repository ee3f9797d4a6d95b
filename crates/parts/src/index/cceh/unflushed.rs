//! Replacing many references with one fence, for compaction by the batch (PACMAN, section 3.3).
//!
//! Compaction keeps the old records until the new references are durable, so these may be flushed later, all
//! at once. Until then their entries stand without a mark, so that a reader of one makes it durable first, as
//! after a crash.
//!
//! A slot may be flushed where its word stood when it was changed, without a lock:
//! - *Another thread has changed it since.* A writer makes its own word durable before it returns. Another
//!   cleaner has not, so the line is flushed in any case, and the word that is durable then is no older than
//!   ours.
//! - *A split has moved it since.* The copy was durable, with our word, before the split took effect. If the
//!   split has not taken effect durably, the entry counts where it was, and there our word still stands.
//!
//! Marks are given under the lock of the segment to the entries that still have our word. They had it at the
//! flush too: the word of a record does not become that of another one while the caller is pinned. A word
//! that was replaced gets its mark from its own writer.

use super::entry::{ENTRY, VALUE};
use super::memory::NodeMemory;
use super::table::CcehIndex;

/// A reference that has been replaced and not flushed. If it is never
/// [persisted](crate::index::Index::persist), the next reader of the entry makes it durable.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the reference is not durable yet"]
pub struct Unflushed {
    pub(super) segment: u64,
    /// The entry.
    pub(super) place: u64,
    pub(super) hash: u64,
    pub(super) reference: u64,
}

impl<M: NodeMemory> CcehIndex<M> {
    /// Makes replaced references durable, with one fence for all of them, and empties the list.
    pub(super) fn persist_all(&self, replaced: &mut Vec<Unflushed>) {
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
