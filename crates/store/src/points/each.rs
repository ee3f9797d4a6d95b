//! Iteration: the records that the index names, with what they tell of keys and pairs. A record that has
//! expired since the index named it is [looked up again](Successors).

use super::Core;
use super::expiry::Successors;
use crate::types::error::Error;
use crate::types::iter::KeyValue;
use quipu_medium::LINE;
use quipu_parts::epoch::Guard;
use quipu_parts::heap::SizedReference;
use quipu_parts::index::Index;
use quipu_parts::record::RecordView;
use std::borrow::Cow;

/// Bytes of a record that a scan asks for ahead of its turn, at most.
const AHEAD: u64 = 512;

/// References of one piece of the index, for iteration.
pub(crate) struct Batch<I: Index> {
    cursor: I::Cursor,
    words: Vec<u64>,
    next: usize,
}

impl<I: Index> Batch<I> {
    /// The word that named the last record of the iteration.
    pub(crate) fn word(&self) -> Option<u64> {
        self.next.checked_sub(1).and_then(|last| self.words.get(last)).copied()
    }
}

impl<I: Index> Default for Batch<I> {
    fn default() -> Batch<I> {
        Batch { cursor: I::Cursor::default(), words: Vec::new(), next: 0 }
    }
}

impl<I: Index> Core<I> {
    /// The results of `of` for every word of the index. A damaged record is an error in its place. If the
    /// index does not tell how to continue, that error is the last item.
    pub(super) fn each<'g, T>(
        &'g self,
        guard: &'g Guard<'g>,
        of: impl Fn(u64) -> Result<Option<T>, Error>,
    ) -> impl Iterator<Item = Result<T, Error>> {
        let (mut batch, mut ended) = (Batch::default(), false);
        std::iter::from_fn(move || {
            while !ended {
                match self.next_word(guard, &mut batch) {
                    Ok(Some(word)) => match of(word) {
                        Ok(None) => {}
                        item => return item.transpose(),
                    },
                    Ok(None) => break,
                    Err(error) => {
                        ended = true;
                        return Some(Err(error));
                    }
                }
            }
            None
        })
    }

    /// The key of a record that a word of the index names, unless it has expired. Where reads are proved, the
    /// record is proved with its value, except the zones of a large one.
    pub(crate) fn key_of<'g>(
        &'g self,
        successors: &'g dyn Successors<I>,
        guard: &'g Guard<'_>,
        word: u64,
    ) -> Result<Option<&'g [u8]>, Error> {
        let record = match self.verifies {
            true => self.record_for_pair(guard, word)?,
            false => self.record_of(guard, word).ok_or_else(|| self.unproved(word, b""))?,
        };
        if self.has_expired(&record) {
            let located = successors.successor(guard, self.key(record.key), word)?;
            return Ok(located.map(|located| located.record.key));
        }
        Ok(Some(record.key))
    }

    /// The record of a pair that a word of the index names, proved if reads are. The zones of a large value
    /// are not looked at.
    #[inline]
    pub(crate) fn record_for_pair<'g>(
        &'g self,
        guard: &'g Guard<'_>,
        word: u64,
    ) -> Result<RecordView<'g>, Error> {
        let record = if self.verifies { self.proved(guard, word) } else { self.published(guard, word) };
        match record {
            Some(record) => Ok(record),
            None => Err(self.no_pair(guard, word)),
        }
    }

    /// Asks for the lines of a record, as far as its word tells how many these are.
    #[inline]
    pub(super) fn prefetch_record(&self, word: u64) {
        let Some(offset) = self.place_of(word) else { return };
        let len = SizedReference::from_word(word).record_len().unwrap_or(2 * LINE).min(AHEAD);
        let first = offset / LINE * LINE;
        (first..offset + len).step_by(LINE as usize).for_each(|line| self.region().prefetch(line));
    }

    #[cold]
    fn no_pair(&self, guard: &Guard<'_>, word: u64) -> Error {
        let legible = self.record_of(guard, word);
        self.unproved(word, legible.map_or(b"", |record| record.key))
    }

    /// The pair that a word of the index names, unless it has expired.
    #[inline]
    pub(super) fn pair_of<'g>(
        &'g self,
        successors: &'g dyn Successors<I>,
        guard: &'g Guard<'_>,
        word: u64,
    ) -> Result<Option<KeyValue<'g>>, Error> {
        let record = self.record_for_pair(guard, word)?;
        self.pair_of_record(successors, guard, word, &record)
    }

    /// The pair of a [record](Core::record_for_pair), unless it has expired.
    #[inline]
    pub(super) fn pair_of_record<'g>(
        &'g self,
        successors: &'g dyn Successors<I>,
        guard: &'g Guard<'_>,
        word: u64,
        record: &RecordView<'g>,
    ) -> Result<Option<KeyValue<'g>>, Error> {
        if self.has_expired(record) {
            let located = successors.successor(guard, self.key(record.key), word)?;
            return located.map(|located| self.pair(guard, &located.record)).transpose();
        }
        if self.verifies && !self.is_value_proved(guard, record) {
            return Err(self.unproved(word, record.key));
        }
        self.pair(guard, record).map(Some)
    }

    #[inline]
    pub(super) fn pair<'g>(
        &'g self,
        guard: &'g Guard<'_>,
        record: &RecordView<'g>,
    ) -> Result<KeyValue<'g>, Error> {
        Ok((Cow::Borrowed(record.key), self.value(guard, record)?))
    }

    /// The next record of an iteration in no order, expired or not; one that leaves the pool is left out.
    /// Every key present throughout appears exactly once.
    pub(crate) fn next_record<'g>(
        &'g self,
        guard: &'g Guard<'_>,
        batch: &mut Batch<I>,
    ) -> Result<Option<RecordView<'g>>, Error> {
        while let Some(word) = self.next_word(guard, batch)? {
            if let Some(record) = self.published(guard, word) {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// The next word of an iteration.
    fn next_word(&self, guard: &Guard<'_>, batch: &mut Batch<I>) -> Result<Option<u64>, Error> {
        loop {
            if let Some(word) = batch.words.get(batch.next) {
                batch.next += 1;
                return Ok(Some(*word));
            }
            batch.words.clear();
            batch.next = 0;
            if !self.index.next_batch(guard, &mut batch.cursor, &mut batch.words)? {
                return Ok(None);
            }
        }
    }
}
