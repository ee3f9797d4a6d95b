//! Decisions about keys: what a write makes of the value that it sees.

use crate::types::change::{Entry, Expiry};

/// A decision about a key, made while it is locked.
pub(crate) trait Decide {
    /// The name of the call that asks for it, for those who [hear](super::heard) of calls.
    fn name(&self) -> &'static str {
        "update"
    }

    /// Whether the decision reads the value; if not, the value may be shown empty.
    fn needs_value(&self) -> bool {
        false
    }

    /// Decides on a key with this value. It is called again, on the value of then, if room had to be made.
    fn decide(&mut self, old: Option<Entry<'_>>) -> Decision<'_>;
}

/// The result of a decision.
pub(crate) enum Decision<'d> {
    /// Leave the key as it is.
    Keep,
    /// Give it this value, until it expires.
    Put(&'d [u8], Expiry),
    /// Delete it.
    Delete,
}

/// Gives a key this value.
pub(super) struct Putting<'v>(pub(super) &'v [u8]);

impl Decide for Putting<'_> {
    fn decide(&mut self, _old: Option<Entry<'_>>) -> Decision<'_> {
        Decision::Put(self.0, Expiry::Never)
    }
}

/// Deletes a key, and tells whether it existed.
#[derive(Default)]
pub(crate) struct Removal {
    pub(crate) was_there: bool,
}

impl Decide for Removal {
    #[inline]
    fn decide(&mut self, old: Option<Entry<'_>>) -> Decision<'_> {
        self.was_there = old.is_some();
        Decision::Delete
    }
}
