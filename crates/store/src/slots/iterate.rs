//! Walking over all records, in no order.

use super::{SlotSession, SlotSpine};
use crate::types::error::{Error, damaged_at};
use quipu_parts::commit::Failed;
use quipu_parts::epoch::Guard;
use quipu_parts::heap::slots::{Offset, SlotError};
use quipu_parts::index::Cursor;
use quipu_parts::index::cceh::NodeMemory;

/// Looks for a record whose place in the index changes meanwhile. A record that is never at its place in the
/// index is damaged.
const ATTEMPTS: u32 = 64;

/// A key and its value, copied.
pub(super) type KeyAndValue = (Vec<u8>, Vec<u8>);

impl<M: NodeMemory, const REDUCED: bool> SlotSpine<M, REDUCED> {
    /// All results of `of`, by hash and word of the index, or the damage in their place. Every key present
    /// throughout is asked for exactly once.
    pub(super) fn each<'g, T: 'g>(
        &'g self,
        guard: &'g Guard<'g>,
        of: impl Fn(&Self, &Guard<'_>, u64, u64) -> Result<Option<T>, Error> + 'g,
    ) -> Result<impl Iterator<Item = Result<T, Error>> + 'g, Failed> {
        self.settle_all(guard)?;
        let (mut cursor, mut entries) = (Cursor::default(), Vec::new());
        Ok(std::iter::from_fn(move || {
            loop {
                while let Some((hash, word)) = entries.pop() {
                    if let Some(found) = of(self, guard, hash, word).transpose() {
                        return Some(found);
                    }
                }
                if !self.index.next_batch(guard, &mut cursor, &mut entries) {
                    return None;
                }
            }
        }))
    }

    /// Deletes every key that is present when this begins; as [`crate::Client::clear`].
    pub(crate) fn clear(&self, session: &mut SlotSession) -> Result<(), Error> {
        self.common.admission.admit()?;
        let (mut cursor, mut entries, mut damage) = (Cursor::default(), Vec::new(), Vec::new());
        self.settle_all(&session.pin())?;
        loop {
            // Keys are copied, so that nothing is pinned while a delete waits for room. No word outlives its
            // epoch.
            let mut keys = Vec::new();
            {
                let guard = session.pin();
                if !self.index.next_batch(&guard, &mut cursor, &mut entries) {
                    return damaged_at(damage);
                }
                for (hash, word) in entries.drain(..) {
                    match self.key_of(&guard, hash, word) {
                        Ok(key) => keys.extend(key),
                        Err(Error::Damaged(found)) => damage.extend(found.places),
                        Err(error) => return Err(error),
                    }
                }
            }
            for key in keys {
                self.remove(session, &key)?;
            }
        }
    }

    /// The record that was named by this word, or the one that has replaced it.
    pub(super) fn record_of(
        &self,
        guard: &Guard<'_>,
        hash: u64,
        word: u64,
    ) -> Result<Option<KeyAndValue>, Error> {
        self.named(guard, hash, word, |offset| {
            let mut buffer = Vec::new();
            let found = self.heap.read(offset, &mut buffer)?;
            let key_len = found.filter(|record| self.hash(record.key) == hash).map(|record| record.key.len());
            Ok(key_len.map(|len| {
                let value = buffer.split_off(len);
                (buffer, value)
            }))
        })
    }

    /// The key of that record.
    pub(super) fn key_of(&self, guard: &Guard<'_>, hash: u64, word: u64) -> Result<Option<Vec<u8>>, Error> {
        self.named(guard, hash, word, |offset| {
            let mut key = Vec::new();
            Ok((self.heap.read_key(offset, &mut key)? && self.hash(&key) == hash).then_some(key))
        })
    }

    /// The result of `read` at the place that this word names, or at the place that has replaced it.
    fn named<T>(
        &self,
        guard: &Guard<'_>,
        hash: u64,
        mut word: u64,
        read: impl Fn(Offset) -> Result<Option<T>, SlotError>,
    ) -> Result<Option<T>, Error> {
        for _ in 0..ATTEMPTS {
            if let Some(found) = read(Self::offset_of(word))? {
                return Ok(Some(found));
            }
            // The record was superseded, moved or deleted since: the index knows its successor.
            match self.index.get(guard, hash, |_| true) {
                Some(named) => word = named,
                None => return Ok(None),
            }
        }
        let page = self.heap.page_start(Self::offset_of(word));
        Err(Error::damaged("a page without the record that the index names", page, 0))
    }
}
