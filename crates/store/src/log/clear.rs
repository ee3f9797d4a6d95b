//! Deleting every key, a piece of the index at a time.

use super::{Session, Spine};
use crate::types::error::{DamagedPlace, Error, damaged_at};
use quipu_parts::epoch::Guard;
use quipu_parts::index::Index;
use quipu_parts::record::Content;

impl<I: Index> Spine<I> {
    /// Deletes every key that is present when this begins; as [`crate::Client::clear`].
    ///
    /// Keys are copied before they are deleted, so that nothing is pinned while a delete waits for room.
    pub(crate) fn clear(&self, session: &mut Session) -> Result<(), Error> {
        self.admit_write()?;
        let (mut cursor, mut keys, mut damage) = (I::Cursor::default(), Vec::new(), Vec::new());
        self.settle_all(&session.pin())?;
        while self.next_keys(&session.pin(), &mut cursor, &mut keys, &mut damage)? {
            for key in keys.drain(..) {
                self.write_blind(session, &Content::tombstone(&key))?;
            }
        }
        damaged_at(damage)
    }

    /// Adds the keys of the next piece of the index, and its damaged records; `false`, with nothing added, at
    /// the end.
    fn next_keys(
        &self,
        guard: &Guard<'_>,
        cursor: &mut I::Cursor,
        keys: &mut Vec<Vec<u8>>,
        damage: &mut Vec<DamagedPlace>,
    ) -> Result<bool, Error> {
        let mut words = Vec::new();
        let has_more = self.index.next_batch(guard, cursor, &mut words)?;
        for word in words {
            match self.key_of(guard, word) {
                Ok(key) => keys.extend(key.map(<[u8]>::to_vec)),
                Err(Error::Damaged(found)) => damage.extend(found.places),
                Err(error) => return Err(error),
            }
        }
        Ok(has_more)
    }
}
