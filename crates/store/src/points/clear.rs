//! Deleting every key, a piece of the index at a time.

use super::Core;
use super::expiry::Successors;
use crate::types::error::{DamagedPlace, Error, damaged_at};
use quipu_parts::epoch::Guard;
use quipu_parts::index::Index;

impl<I: Index> Core<I> {
    /// Deletes every key that is present when this begins; as [`crate::Client::clear`]. Nothing is parked.
    ///
    /// Keys are copied before they are deleted, so that nothing is pinned while a delete waits for room.
    pub(crate) fn clear<S>(
        &self,
        successors: &dyn Successors<I>,
        session: &mut S,
        pin: impl Fn(&S) -> Guard<'_>,
        delete: impl Fn(&mut S, &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.common.admission.admit()?;
        let (mut cursor, mut keys, mut damage) = (I::Cursor::default(), Vec::new(), Vec::new());
        while self.next_keys((successors, &pin(session)), &mut cursor, &mut keys, &mut damage)? {
            for key in keys.drain(..) {
                delete(session, &key)?;
            }
        }
        damaged_at(damage)
    }

    /// Adds the keys of the next piece of the index, and its damaged records; `false`, with nothing added, at
    /// the end.
    fn next_keys(
        &self,
        (successors, guard): (&dyn Successors<I>, &Guard<'_>),
        cursor: &mut I::Cursor,
        keys: &mut Vec<Vec<u8>>,
        damage: &mut Vec<DamagedPlace>,
    ) -> Result<bool, Error> {
        let mut words = Vec::new();
        let has_more = self.index.next_batch(guard, cursor, &mut words)?;
        for word in words {
            match self.key_of(successors, guard, word) {
                Ok(key) => keys.extend(key.map(<[u8]>::to_vec)),
                Err(Error::Damaged(found)) => damage.extend(found.places),
                Err(error) => return Err(error),
            }
        }
        Ok(has_more)
    }
}
