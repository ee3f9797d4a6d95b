//! Proving that an index is what it should be: for `check`, and for tests.

use super::lock::Locking;
use super::slot::{PERSIST, is_key, is_sound, linked};
use super::table::BucketIndex;
use crate::index::chain::damaged;
use crate::index::words::Words;
use crate::space::SpaceError;
use quipu_medium::{LINE, WORD};
use std::collections::BTreeSet;

/// What a walk over all of an index has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BucketAudit {
    /// Keys.
    pub keys: u64,
    /// Buckets that stand behind others: all that have been handed out, if nothing is lost.
    pub linked: u64,
}

impl<W: Words, L: Locking> BucketIndex<W, L> {
    /// Walks over all chains, and proves that no slot has a word that neither a run nor a crash leaves, that
    /// all their buckets have been handed out, and all that have been handed out stand in one, that none
    /// stands in two of them, and no word twice in one. `may_name` says what references there may be. Nobody
    /// writes meanwhile.
    ///
    /// # Errors
    /// [`SpaceError::Damaged`] where it is not so.
    pub fn audit(&self, may_name: impl Fn(u64) -> bool) -> Result<BucketAudit, SpaceError> {
        let (mut audit, mut links) = (BucketAudit::default(), BTreeSet::new());
        let buckets = self.size().buckets;
        // The next bucket may have been begun, and keeps what has been linked to it.
        for bucket in 0..self.zones.capacity().min(buckets + 1) {
            let (mut words, mut broken, mut foreign) = (BTreeSet::new(), None, None);
            self.each_slot::<false>(self.zones.place(bucket)?, |slot, word| {
                let is_last = (slot + WORD).is_multiple_of(LINE);
                broken = broken.or((!is_sound(word, is_last, &may_name)).then_some(slot));
                let is_new = match linked(word) {
                    Some(link) => self.zones.is_in_use(link) && links.insert(link),
                    None => !is_key(word) || words.insert(word | PERSIST),
                };
                foreign = foreign.or((!is_new).then_some(slot));
            })?;
            if let Some(slot) = broken {
                return damaged("a slot of the index", slot);
            }
            if let Some(slot) = foreign {
                return damaged("a chain of buckets of the index, which has what is not its own,", slot);
            }
            audit.keys += if bucket < buckets { words.len() as u64 } else { 0 };
        }
        audit.linked = links.len() as u64;
        if audit.linked != self.zones.overflow_in_use() {
            return damaged(
                "a bucket of the index to which nothing leads, somewhere,",
                self.zones.state_place(),
            );
        }
        Ok(audit)
    }
}
