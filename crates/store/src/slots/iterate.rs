//! Walking over all records, in no order.

use super::{SlotSession, SlotSpine};
use crate::types::error::{Error, damaged_at};
use quipu_parts::epoch::Guard;
use quipu_parts::heap::slots::{Offset, SlotError};
use quipu_parts::index::Cursor;
use quipu_parts::index::cceh::NodeMemory;

/// How often a record is looked for whose place the index has changed meanwhile. One that is never where the index says is
/// damaged.
const ATTEMPTS: u32 = 64;

/// Copies of both.
type KeyAndValue = (Vec<u8>, Vec<u8>);

/// Records of one piece of the index, for iteration.
#[derive(Default)]
pub(crate) struct SlotBatch {
    cursor: Cursor,
    entries: Vec<(u64, u64)>,
}

impl<M: NodeMemory, const REDUCED: bool> SlotSpine<M, REDUCED> {
    /// The next key and value, or what is damaged in their place. Every key present throughout appears exactly once.
    pub(crate) fn next_record(
        &self,
        guard: &Guard<'_>,
        batch: &mut SlotBatch,
    ) -> Option<Result<KeyAndValue, Error>> {
        self.next(guard, batch, |hash, word| self.record_of(guard, hash, word))
    }

    /// The next key, or what is damaged in its place, as [`next_record`](SlotSpine::next_record) would tell it. Nobody looks at values.
    pub(crate) fn next_key(
        &self,
        guard: &Guard<'_>,
        batch: &mut SlotBatch,
    ) -> Option<Result<Vec<u8>, Error>> {
        self.next(guard, batch, |hash, word| self.key_of(guard, hash, word))
    }

    fn next<T>(
        &self,
        guard: &Guard<'_>,
        batch: &mut SlotBatch,
        of: impl Fn(u64, u64) -> Result<Option<T>, Error>,
    ) -> Option<Result<T, Error>> {
        loop {
            while let Some((hash, word)) = batch.entries.pop() {
                if let Some(found) = of(hash, word).transpose() {
                    return Some(found);
                }
            }
            if !self.index.next_batch(guard, &mut batch.cursor, &mut batch.entries) {
                return None;
            }
        }
    }

    /// Deletes every key that there is when this begins; as [`crate::Client::clear`].
    pub(crate) fn clear(&self, session: &mut SlotSession) -> Result<(), Error> {
        self.admit_write()?;
        let (mut batch, mut damage) = (SlotBatch::default(), Vec::new());
        self.settle_all(&session.pin())?;
        loop {
            // Copies, so that nothing is pinned while a delete waits for room; of the words none is left for another epoch.
            let mut keys = Vec::new();
            {
                let guard = session.pin();
                if !self.index.next_batch(&guard, &mut batch.cursor, &mut batch.entries) {
                    return damaged_at(damage);
                }
                for (hash, word) in batch.entries.drain(..) {
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

    /// The record that was named by this word, or the one that has come in its place.
    fn record_of(&self, guard: &Guard<'_>, hash: u64, word: u64) -> Result<Option<KeyAndValue>, Error> {
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
    fn key_of(&self, guard: &Guard<'_>, hash: u64, word: u64) -> Result<Option<Vec<u8>>, Error> {
        self.named(guard, hash, word, |offset| {
            let mut key = Vec::new();
            Ok((self.heap.read_key(offset, &mut key)? && self.hash(&key) == hash).then_some(key))
        })
    }

    /// What `read` finds at the place that this word names, or at the one that has come in its place.
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
            // Superseded, moved or deleted since: the index knows.
            match self.index.get(guard, hash, |_| true) {
                Some(named) => word = named,
                None => return Ok(None),
            }
        }
        let page = self.heap.page_start(Self::offset_of(word));
        Err(Error::damaged("a page without the record that the index names", page, 0))
    }
}
