//! Walking over all references: bucket by bucket, in an order that splits do not disturb.

use super::lock::Locking;
use super::table::BucketIndex;
use super::write::Held;
use crate::index::words::Words;
use crate::space::SpaceError;

/// How far a walk has come; starts at the beginning.
#[derive(Clone, Debug, Default)]
pub struct BucketCursor {
    /// The point (in `numbers`) before which everything was visited.
    pub(super) point: u64,
}

/// A chain, locked, and the point at which the next one begins.
pub(super) struct Part<'i, W: Words, L: Locking> {
    pub(super) held: Held<'i, W, L>,
    pub(super) next: u64,
}

impl<W: Words, L: Locking> BucketIndex<W, L> {
    /// Locks the chain of the bucket that begins at this point; `None` at the end.
    pub(super) fn lock_at(&self, point: u64) -> Result<Option<Part<'_, W, L>>, SpaceError> {
        loop {
            let Some((bucket, next)) = self.size().at(point) else { return Ok(None) };
            let held = self.lock_bucket(bucket)?;
            // A split that ended before the lock was ours makes the bucket smaller.
            if self.size().at(point) == Some((bucket, next)) {
                return Ok(Some(Part { held, next }));
            }
        }
    }
}
