//! Decisions about a key whose stripe is held.

use super::{Core, Located};
use crate::engine::{Decide, Decision};
use crate::types::change::{Entry, Expiry};
use crate::types::error::Error;
use quipu_parts::epoch::Guard;
use quipu_parts::index::{Index, Key};
use quipu_parts::record::Content;

impl<I: Index> Core<I> {
    /// Shows the record of a key to `decide`, and returns the new content, unless nothing changes.
    #[inline(always)]
    pub(crate) fn ask<'c, const WHOLE: bool, D: Decide + ?Sized>(
        &self,
        guard: &Guard<'_>,
        key: Key<'c>,
        old: Option<&Located<'_>>,
        decide: &'c mut D,
    ) -> Result<Option<Content<'c>>, Error> {
        let seen = old.map(|located| &located.record).filter(|record| !self.has_expired(record));
        let entry = seen.map(|record| Entry {
            value: record.value,
            expiry: Expiry::of_field(record.expires),
            version: Some(record.header.sequence.get()),
        });
        let decision = match (seen, entry) {
            (Some(record), Some(entry)) if WHOLE && record.is_large() => {
                decide.decide(Some(Entry { value: &self.assemble(guard, record)?, ..entry }))
            }
            _ => decide.decide(entry),
        };
        Ok(match decision {
            Decision::Put(value, expiry) => {
                Some(Content { expires: expiry.field(), ..Content::value(key.bytes, value) })
            }
            Decision::Delete if seen.is_some() => Some(Content::tombstone(key.bytes)),
            Decision::Delete | Decision::Keep => None,
        })
    }
}
