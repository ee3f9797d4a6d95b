//! Proved reads: with [`Options::verify_reads`](crate::Options::verify_reads) each record proves itself
//! before a read or an iteration returns it.
//!
//! A lookup without proof compares the key in the record with the key of the call. Damage to that key hides
//! the record, and the key seems absent; damage to the value goes unnoticed. Here a record is proved first. A
//! word of the index that may be the key's and names no proved record is damage, unless another word turns
//! out to be the key's.
//!
//! An index in DRAM was built from proved records, or copied from a proved checkpoint, so a key that it does
//! not name is absent. An index in the pool notices damage by its own checks, and reports it.

use super::{Core, Located, reference_of};
use crate::types::error::Error;
use quipu_parts::epoch::Guard;
use quipu_parts::index::{Index, Key};
use quipu_parts::record::{Kind, RecordView, shown_key};

impl<I: Index> Core<I> {
    /// The record that the index holds for a key, proved with its value.
    #[cold]
    pub(crate) fn find_proved<'g>(
        &'g self,
        guard: &'g Guard<'_>,
        key: Key<'_>,
    ) -> Result<Option<Located<'g>>, Error> {
        let (mut found, mut wrong) = (None, None);
        let word = self.index.get(guard, key, |word| {
            match self.proved(guard, word) {
                Some(record) => {
                    found = (record.key == key.bytes).then_some(Located { word, record });
                    if found.is_none() && (self.key(record.key).hash ^ key.hash) & I::FINGERPRINT != 0 {
                        wrong = Some(word);
                    }
                }
                None => wrong = Some(word),
            }
            found.is_some()
        })?;
        let Some(word) = word else {
            return wrong.map_or(Ok(None), |word| Err(self.unproved(word, key.bytes)));
        };
        // An index that stores keys has not called the test.
        let located = found.or_else(|| {
            let record = self.proved(guard, word).filter(|record| record.key == key.bytes)?;
            Some(Located { word, record })
        });
        match located {
            Some(located) if self.is_value_proved(guard, &located.record) => Ok(Some(located)),
            _ => Err(self.unproved(word, key.bytes)),
        }
    }

    /// The record that a word of the index names, if it proves itself. A large value is
    /// [proved](Core::is_value_proved) apart.
    pub(crate) fn proved<'g>(&'g self, _guard: &'g Guard<'_>, word: u64) -> Option<RecordView<'g>> {
        // SAFETY: the index names published records, which never change. The guard keeps them from reuse, or,
        // for a thread that copies for a scan (`near`), the guard of that scan does, which waits for it.
        let record = unsafe { self.heap.prove(reference_of(word)) };
        record.filter(|record| matches!(record.kind(), Kind::Value | Kind::Large))
    }

    /// Whether the zones of a large value prove that they hold it; any other value is proved with its record.
    pub(crate) fn is_value_proved(&self, _guard: &Guard<'_>, record: &RecordView<'_>) -> bool {
        let value = || self.heap.large_value(record.value);
        // SAFETY: the index named the head while the guard was pinned, which keeps the value's zones from
        // reuse.
        !record.is_large() || value().is_some_and(|value| unsafe { value.proved_zones() }.is_some())
    }

    /// The error for a word of this key whose record, or whose large value, does not prove itself.
    #[cold]
    pub(crate) fn unproved(&self, word: u64, key: &[u8]) -> Error {
        let what = match key {
            // Nothing of the record is legible.
            [] => "a record that the index names".to_owned(),
            _ => format!("the record that the index names for the key {}", shown_key(key)),
        };
        Error::damaged(what, self.place_of(word).unwrap_or_default(), 0)
    }
}
