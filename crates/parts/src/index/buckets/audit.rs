//! Proving an index: for `check`, and for tests.

use super::lock::Locking;
use super::slot::{PERSIST, is_key, is_sound, linked};
use super::table::BucketIndex;
use crate::index::chain::damaged;
use crate::index::words::Words;
use crate::space::SpaceError;
use quipu_medium::{LINE, WORD};
use std::collections::BTreeSet;

/// The result of a walk over all of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BucketAudit {
    /// Keys.
    pub keys: u64,
    /// Buckets that stand behind others: all that have been handed out, if nothing is lost.
    pub linked: u64,
}

impl<W: Words, L: Locking> BucketIndex<W, L> {
    /// Walks over all chains. It proves that every slot has a word that a run or a crash leaves. It proves
    /// that each bucket handed out stands in exactly one chain, that chains have no other ones, and that no
    /// word stands twice in a chain that a hash leads to. `may_name` tells possible references. Nobody writes
    /// meanwhile.
    ///
    /// # Errors
    /// [`SpaceError::Damaged`] where it is not so.
    pub fn audit(&self, may_name: impl Fn(u64) -> bool) -> Result<BucketAudit, SpaceError> {
        let (mut audit, mut links) = (BucketAudit::default(), BTreeSet::new());
        let buckets = self.size().buckets;
        // The next bucket may have been begun, and keeps the buckets linked to it. Its words count for
        // nothing: two splits that were cut off may have left some of them twice.
        for bucket in 0..self.zones.capacity().min(buckets + 1) {
            let (mut words, mut broken, mut foreign) = (BTreeSet::new(), None, None);
            self.each_slot::<false>(self.zones.place(bucket)?, |slot, word| {
                let is_last = (slot + WORD).is_multiple_of(LINE);
                broken = broken.or((!is_sound(word, is_last, &may_name)).then_some(slot));
                let is_new = match linked(word) {
                    Some(link) => self.zones.is_in_use(link) && links.insert(link),
                    None => bucket == buckets || !is_key(word) || words.insert(word | PERSIST),
                };
                foreign = foreign.or((!is_new).then_some(slot));
            })?;
            if let Some(slot) = broken {
                return damaged("a slot of the index", slot);
            }
            if let Some(slot) = foreign {
                return damaged("a chain of buckets of the index, which has what is not its own,", slot);
            }
            audit.keys += words.len() as u64;
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
