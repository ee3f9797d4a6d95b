//! [`Checks`]: what must be so when a batch is written, or it is not.

use super::bounds::{first_of, is_above, is_below};
use crate::types::conditions::Conditions;
use crate::types::table::TableId;
use quipu_parts::versions::Snapshot;
use std::ops::Bound;

/// Checks that a batch must pass to be written.
#[derive(Clone, Copy)]
pub(crate) struct Checks<'c> {
    /// Of keys.
    pub(crate) keys: &'c Conditions,
    /// Nobody has written the keys of the batch since then, if it is given.
    pub(crate) snapshot: Option<&'c Snapshot>,
    /// Nor anything in these ranges.
    pub(crate) ranges: &'c [ReadRange],
}

/// The keys between two bounds.
#[derive(Clone, Debug)]
pub(crate) struct ReadRange {
    pub(crate) table: TableId,
    pub(crate) from: Bound<Vec<u8>>,
    pub(crate) to: Bound<Vec<u8>>,
}

impl ReadRange {
    /// The key at which a walk over it begins.
    pub(crate) fn first(&self) -> &[u8] {
        first_of(&self.from)
    }

    /// Whether a key is before the end.
    pub(crate) fn reaches(&self, key: &[u8]) -> bool {
        is_below(&self.to, key)
    }

    /// Whether a key is in it.
    pub(crate) fn holds(&self, key: &[u8]) -> bool {
        is_above(&self.from, key) && self.reaches(key)
    }
}
