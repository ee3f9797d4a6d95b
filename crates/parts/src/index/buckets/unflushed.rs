//! Replacing many references with one fence, for compaction by the batch (PACMAN, section 3.3).
//!
//! Compaction keeps the old records until the new references are durable, so these may be flushed later, all
//! at once. Until then their words stand without a mark, so that a thread that acts on one makes it durable
//! first.
//!
//! Why it is sound to flush a slot where the word stood when it was stored, without a lock:
//! - *Another thread has changed it since.* The present word is later, and the line is flushed with any word.
//! - *It moved behind a link, or to another chain.* Its copy was durable before the link was stored, or
//!   before the size of the table was. As long as these are not durable, the word counts where it was; the
//!   link took its place, and a slot that a split has left is emptied only after the size is durable.
//!
//! The mark is swapped in, so that it is given to the very word that was stored here. The guard keeps a word
//! that was replaced from coming back meanwhile.

use super::lock::Locking;
use super::slot::{PERSIST, is_unsettled};
use super::table::BucketIndex;
use crate::index::words::Words;
use crate::space::SpaceError;
use quipu_medium::WORD;

/// A reference that has been replaced and not flushed. If it is never
/// [persisted](crate::index::Index::persist), the next reader of its slot makes it durable.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the reference is not durable yet"]
pub struct Unflushed {
    pub(super) slot: u64,
    pub(super) word: u64,
}

impl<W: Words, L: Locking> BucketIndex<W, L> {
    /// Makes words durable with one fence, and gives those their marks that have not changed since.
    pub(super) fn flush_together(&self, unflushed: &[Unflushed]) {
        if unflushed.is_empty() {
            return;
        }
        unflushed.iter().for_each(|Unflushed { slot, .. }| self.words().flush(*slot, WORD));
        self.words().fence();
        for Unflushed { slot, word } in unflushed {
            self.words().swap(*slot, *word, word | PERSIST);
        }
    }

    /// Makes durable the words of a chain without a mark. The caller holds the chain.
    pub(super) fn settle(&self, head: u64) -> Result<(), SpaceError> {
        let mut unsettled = Vec::new();
        self.each_slot::<true>(head, |slot, word| {
            unsettled.extend(is_unsettled(word).then_some(Unflushed { slot, word }));
        })?;
        self.flush_together(&unsettled);
        Ok(())
    }
}
