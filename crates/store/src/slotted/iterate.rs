//! Walking over all records, in no order.

use super::SlotSpine;
use crate::error::Error;
use quipu_parts::epoch::Guard;
use quipu_parts::index::Cursor;
use quipu_parts::index::cceh::NodeMemory;

/// How often a record is looked for whose place the index has changed meanwhile. One that is never where the index says is
/// damaged.
const ATTEMPTS: u32 = 64;

/// A key and its value, copied out.
type Owned = (Vec<u8>, Vec<u8>);

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
    ) -> Option<Result<Owned, Error>> {
        loop {
            while let Some((hash, word)) = batch.entries.pop() {
                if let Some(record) = self.record_of(guard, hash, word).transpose() {
                    return Some(record);
                }
            }
            if !self.index.next_batch(guard, &mut batch.cursor, &mut batch.entries) {
                return None;
            }
        }
    }

    /// The record that was named by this word, or the one that has come in its place.
    fn record_of(&self, guard: &Guard<'_>, hash: u64, mut word: u64) -> Result<Option<Owned>, Error> {
        let mut buffer = Vec::new();
        for _ in 0..ATTEMPTS {
            let found = self.heap.read(Self::offset_of(word), &mut buffer)?;
            let key_len = found.filter(|record| self.hash(record.key) == hash).map(|record| record.key.len());
            if let Some(len) = key_len {
                let value = buffer.split_off(len);
                return Ok(Some((buffer, value)));
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
