//! Reading: one lookup in the index, one in the record, no lock.

use super::{Located, Spine};
use crate::error::Error;
use quipu_parts::epoch::Guard;
use quipu_parts::heap::Reference;
use quipu_parts::index::hash::Cursor;
use quipu_parts::record::RecordView;

/// Keys whose misses overlap in `get_many`.
const BATCH: usize = 32;

/// Lines of a record that a batched get asks for ahead; the hardware fetches the rest of a longer one by itself.
const AHEAD: u64 = 4;

/// References of one piece of the index, for iteration.
#[derive(Default)]
pub(crate) struct Batch {
    cursor: Cursor,
    words: Vec<u64>,
    next: usize,
}

impl Spine {
    /// The record that the index holds for `key`: whole, or the header and the key alone.
    #[inline]
    pub(crate) fn locate<'g, const WHOLE: bool>(
        &'g self,
        guard: &'g Guard<'_>,
        hash: u64,
        key: &[u8],
    ) -> Option<Located<'g>> {
        let mut found = None;
        self.index.get(guard, hash, |word| {
            found = self.named::<WHOLE>(guard, word, key);
            found.is_some()
        });
        found
    }

    /// The record that a word of the index names, if it is the key's.
    #[inline]
    pub(super) fn named<'g, const WHOLE: bool>(
        &'g self,
        _guard: &'g Guard<'_>,
        word: u64,
        key: &[u8],
    ) -> Option<Located<'g>> {
        let reference = Reference::from_word(word);
        let offset = self.heap.resolve(reference);
        // SAFETY: the index names published records, which never change, and the guard keeps them from reuse.
        let record = unsafe {
            if WHOLE {
                RecordView::published(self.region(), offset)
            } else {
                RecordView::published_key(self.region(), offset)
            }
        }?;
        (record.key == key).then_some(Located { reference, record })
    }

    /// The record of `key`, in place.
    #[inline(always)]
    pub(crate) fn get<'g>(&'g self, guard: &'g Guard<'_>, key: &[u8]) -> Option<RecordView<'g>> {
        let hash = self.hash(key);
        self.settle(guard, hash);
        self.find(guard, hash, key)
    }

    /// The record of a key whose stripe is settled, unless it has expired.
    #[inline(always)]
    fn find<'g>(&'g self, guard: &'g Guard<'_>, hash: u64, key: &[u8]) -> Option<RecordView<'g>> {
        let located = self.locate::<true>(guard, hash, key)?;
        (!self.has_expired(&located.record)).then_some(located.record)
    }

    /// Whether the time of a record has passed: it is as good as a tombstone then.
    #[inline]
    pub(crate) fn has_expired(&self, record: &RecordView<'_>) -> bool {
        record.expires != 0 && self.has_passed(record.expires)
    }

    #[cold]
    fn has_passed(&self, time: u64) -> bool {
        time <= self.region().now()
    }

    /// When the value of `key` expires, in milliseconds since 1970, or 0 for never; `None` if there is no value.
    pub(crate) fn expiry(&self, guard: &Guard<'_>, key: &[u8]) -> Option<u64> {
        let hash = self.hash(key);
        self.settle(guard, hash);
        let located = self.locate::<false>(guard, hash, key)?;
        (!self.has_expired(&located.record)).then_some(located.record.expires)
    }

    /// Values of many keys, whose cache misses overlap; `each` sees them in order.
    pub(crate) fn get_many<K: AsRef<[u8]>>(
        &self,
        guard: &Guard<'_>,
        keys: &[K],
        mut each: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        let mut hashes = [0; BATCH];
        for (batch, keys) in keys.chunks(BATCH).enumerate() {
            for (hash, key) in hashes.iter_mut().zip(keys) {
                *hash = self.hash(key.as_ref());
                self.index.prefetch(*hash);
            }
            for hash in &hashes[..keys.len()] {
                if let Some(word) = self.index.candidate(guard, *hash) {
                    let offset = self.heap.resolve(Reference::from_word(word));
                    for line in 0..AHEAD {
                        self.region().prefetch(offset + line * quipu_medium::LINE);
                    }
                }
            }
            for (i, (hash, key)) in hashes.iter().zip(keys).enumerate() {
                self.settle(guard, *hash);
                let position = batch * BATCH + i;
                match self.find(guard, *hash, key.as_ref()) {
                    Some(record) if record.is_large() => {
                        each(position, Some(&self.assemble(guard, &record)?));
                    }
                    found => each(position, found.map(|record| record.value)),
                }
            }
        }
        Ok(())
    }

    /// The next record of an iteration in no order, expired or not. Every key present throughout appears exactly once.
    pub(crate) fn next_record<'g>(
        &'g self,
        guard: &'g Guard<'_>,
        batch: &mut Batch,
    ) -> Option<RecordView<'g>> {
        loop {
            while let Some(word) = batch.words.get(batch.next) {
                batch.next += 1;
                let offset = self.heap.resolve(Reference::from_word(*word));
                // SAFETY: as in `locate`; the guard has been pinned since before the words were copied.
                if let Some(record) = unsafe { RecordView::published(self.region(), offset) } {
                    return Some(record);
                }
            }
            batch.words.clear();
            batch.next = 0;
            if !self.index.next_batch(guard, &mut batch.cursor, &mut batch.words) {
                return None;
            }
        }
    }
}
