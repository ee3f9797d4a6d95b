//! Walking over all references: bucket by bucket, in an order that splits do not disturb.

use super::lock::Locking;
use super::settings::damaged;
use super::slot::{is_key, reference};
use super::table::BucketIndex;
use super::write::Held;
use crate::epoch::Guard;
use crate::index::words::Words;
use crate::space::SpaceError;

/// Buckets of a batch.
const BATCH: usize = 16;

/// How far a walk has come; starts at the beginning.
#[derive(Clone, Debug, Default)]
pub struct BucketCursor {
    /// The point (in `numbers`) before which everything was visited.
    point: u64,
}

/// A chain, locked, and the point at which the next one begins.
struct Part<'i, W: Words, L: Locking> {
    held: Held<'i, W, L>,
    next: u64,
}

impl<W: Words, L: Locking> BucketIndex<W, L> {
    /// Locks the chain of the bucket that begins at this point; `None` at the end.
    fn lock_at(&self, point: u64) -> Result<Option<Part<'_, W, L>>, SpaceError> {
        loop {
            let Some((bucket, next)) = self.size().at(point) else { return Ok(None) };
            let held = self.lock_bucket(bucket)?;
            // A split that ended before the lock was ours makes the bucket smaller.
            if self.size().at(point) == Some((bucket, next)) {
                return Ok(Some(Part { held, next }));
            }
        }
    }

    /// Appends the references of the next buckets to `out`; false, with nothing appended, at the end.
    ///
    /// A chain is copied at one moment, under its lock. A key that is present from the first call to the last is seen exactly once,
    /// whatever splits happen in between. What is told is durable.
    ///
    /// # Errors
    /// As for [`get`](BucketIndex::get).
    pub fn next_batch(
        &self,
        _guard: &Guard<'_>,
        cursor: &mut BucketCursor,
        out: &mut Vec<u64>,
    ) -> Result<bool, SpaceError> {
        let begun = cursor.point;
        for _ in 0..BATCH {
            let Some(Part { held, next }) = self.lock_at(cursor.point)? else { break };
            self.settle(held.head)?;
            let mut blank = None;
            self.each_slot::<true>(held.head, |slot, word| {
                out.extend(is_key(word).then(|| reference(word)));
                blank = blank.or((word == 0).then_some(slot));
            })?;
            if let Some(slot) = blank {
                return damaged("a slot of the index", slot);
            }
            cursor.point = next;
        }
        Ok(cursor.point != begun)
    }

    /// Keys: exact when nobody writes. Of an index that has been opened, and not made, this looks at all of it.
    ///
    /// # Errors
    /// As for [`get`](BucketIndex::get).
    pub fn len(&self) -> Result<u64, SpaceError> {
        if let Some(keys) = self.count.get() {
            return Ok(keys);
        }
        let (mut keys, mut point) = (0, 0);
        while let Some(Part { held, next }) = self.lock_at(point)? {
            self.each_slot::<true>(held.head, |_, word| keys += u64::from(is_key(word)))?;
            point = next;
        }
        Ok(keys)
    }

    /// Whether there is no key; exact when nobody writes.
    ///
    /// # Errors
    /// As for [`get`](BucketIndex::get).
    pub fn is_empty(&self) -> Result<bool, SpaceError> {
        Ok(self.len()? == 0)
    }
}
