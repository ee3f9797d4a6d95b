//! Reading: one lookup in the index, one in the record, no lock.

use super::expiry::Successors;
use super::{Core, Located, reference_of};
use crate::engine::AT_ONCE;
use crate::types::error::Error;
use crate::types::iter::Pair;
use quipu_parts::commit::Failed;
use quipu_parts::epoch::Guard;
use quipu_parts::index::{Index, Key};
use quipu_parts::record::RecordView;
use quipu_parts::sync::between_looks;
use std::borrow::Cow;

/// Lines of a record that a batched get prefetches; the hardware fetches the rest of a longer one.
const AHEAD: u64 = 4;

/// The result of a look at the record that most likely is a key's.
enum Glance<'g> {
    /// It is: this is the value.
    Value(&'g [u8]),
    /// There is no record of the key.
    Absent,
    /// Nothing.
    Other,
}

/// A key of a batched get, where it most likely stands, and the word that most likely is its own.
#[derive(Clone, Copy)]
struct Wanted<'k> {
    key: Key<'k>,
    near: Option<u64>,
    likely: Option<u64>,
}

/// A place that answers a batched get before the index does.
pub(crate) trait Front {
    /// Begins to load what a look for a key of this hash reads.
    fn prefetch(&self, hash: u64);

    /// Looks for the key at a position, and tells whether it is there.
    fn look(&mut self, position: usize, key: Key<'_>) -> bool;

    /// The value that the last look at a position has found.
    fn found(&self, position: usize) -> Option<&[u8]>;
}

/// No front.
pub(crate) struct Bare;

impl Front for Bare {
    #[inline(always)]
    fn prefetch(&self, _hash: u64) {}

    #[inline(always)]
    fn look(&mut self, _position: usize, _key: Key<'_>) -> bool {
        false
    }

    #[inline(always)]
    fn found(&self, _position: usize) -> Option<&[u8]> {
        None
    }
}

/// A walk whose reads are these.
pub(crate) trait Points: Sized {
    type Index: Index;

    fn core(&self) -> &Core<Self::Index>;

    /// Publishes the write that waits for this hash, if there is one: every read begins with this.
    #[inline(always)]
    fn settle(&self, _guard: &Guard<'_>, _hash: u64) -> Result<(), Failed> {
        Ok(())
    }

    /// Publishes every write that waited before the call, for a walk in order.
    fn settle_known(&self, _guard: &Guard<'_>) -> Result<(), Failed> {
        Ok(())
    }

    /// Publishes every write that waits.
    fn settle_all(&self, _guard: &Guard<'_>) -> Result<(), Failed> {
        Ok(())
    }

    /// The record of `key`, in place: whole, or without its value.
    #[inline(always)]
    fn get<'g, const WHOLE: bool>(
        &'g self,
        guard: &'g Guard<'_>,
        key: &[u8],
    ) -> Result<Option<RecordView<'g>>, Error> {
        let key = self.core().key(key);
        self.settle(guard, key.hash)?;
        self.find::<WHOLE>(guard, key)
    }

    /// The record of a key whose stripe is settled, unless it has expired: whole, or the header and the key
    /// alone.
    #[inline(always)]
    fn find<'g, const WHOLE: bool>(
        &'g self,
        guard: &'g Guard<'_>,
        key: Key<'_>,
    ) -> Result<Option<RecordView<'g>>, Error> {
        let located = self.core().found::<WHOLE>(guard, key)?;
        between_looks();
        let located = match located {
            Some(located) if self.core().has_expired(&located.record) => {
                self.successor(guard, key, located.word)?
            }
            located => located,
        };
        Ok(located.map(|located| located.record))
    }

    /// Copies the value of `key` into `out` in place of its contents; returns whether there is one.
    #[inline(always)]
    fn get_into(&self, guard: &Guard<'_>, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Error> {
        let key = self.core().key(key);
        self.settle(guard, key.hash)?;
        match self.core().glance(guard, key) {
            Glance::Value(value) => {
                out.clear();
                out.extend_from_slice(value);
                Ok(true)
            }
            Glance::Absent => {
                out.clear();
                Ok(false)
            }
            Glance::Other => self.get_any_into(guard, key.bytes, key.hash, out),
        }
    }

    /// As [`get_into`](Points::get_into), for a key whose stripe is settled, whatever its record is.
    #[cold]
    fn get_any_into(
        &self,
        guard: &Guard<'_>,
        bytes: &[u8],
        hash: u64,
        out: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        out.clear();
        match self.find::<true>(guard, Key { bytes, hash })? {
            Some(record) if record.is_large() => self.core().append_large(guard, &record, out)?,
            Some(record) => out.extend_from_slice(record.value),
            None => return Ok(false),
        }
        Ok(true)
    }

    /// Shows the value of a key whose stripe is settled, whatever its record is.
    #[cold]
    fn show_any(
        &self,
        guard: &Guard<'_>,
        key: Key<'_>,
        position: usize,
        each: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        match self.find::<true>(guard, key)? {
            Some(record) if record.is_large() => {
                each(position, Some(&self.core().assemble(guard, &record)?));
            }
            found => each(position, found.map(|record| record.value)),
        }
        Ok(())
    }

    /// Values of up to [`AT_ONCE`] keys, whose cache misses overlap; `each` sees them in order. No value is
    /// of an earlier moment than that of a key before it. So the `front` is asked in that order too, and
    /// again where the first answer has become too old.
    #[inline(always)]
    fn get_many(
        &self,
        guard: &Guard<'_>,
        keys: &[&[u8]],
        front: &mut impl Front,
        each: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        let core = self.core();
        let mut wanted = [Wanted { key: Key { bytes: &[], hash: 0 }, near: None, likely: None }; AT_ONCE];
        let wanted = &mut wanted[..keys.len()];
        for (place, key) in wanted.iter_mut().zip(keys) {
            place.key = core.key(key);
            front.prefetch(place.key.hash);
            place.near = core.index.prefetch(guard.participant(), place.key);
        }
        // Keys whose words are known, or their values in the front.
        let mut known = 0;
        let keeps = !(Self::Index::DURABLE || core.verifies);
        for (position, Wanted { key, near, likely }) in wanted.iter_mut().enumerate() {
            if keeps && front.look(position, *key) {
                known += 1;
                continue;
            }
            if self.settle(guard, key.hash).is_err() {
                break; // told in its turn
            }
            *likely = core.index.candidate(guard, *key, *near);
            if let Some(offset) = likely.and_then(|word| core.place_of(word)) {
                for line in 0..AHEAD {
                    core.region().prefetch(offset + line * quipu_medium::LINE);
                }
            }
            known += 1;
        }
        if !keeps {
            known = 0;
        }
        for (position, Wanted { key, likely, .. }) in wanted.iter().enumerate() {
            if position >= known {
                front.look(position, *key);
            }
            if let Some(value) = front.found(position) {
                each(position, Some(value));
                continue;
            }
            let glance = if position < known {
                core.glance_of(guard, *likely, *key)
            } else {
                self.settle(guard, key.hash)?;
                core.glance(guard, *key)
            };
            match glance {
                Glance::Value(value) => each(position, Some(value)),
                Glance::Absent => each(position, None),
                Glance::Other => {
                    // No later key is to be shown as it was before this one is read.
                    known = 0;
                    self.settle(guard, key.hash)?;
                    self.show_any(guard, *key, position, each)?;
                }
            }
        }
        Ok(())
    }

    /// All keys with their values, in no order; as [`crate::Guard::iter`].
    fn pairs<'g>(&'g self, guard: &'g Guard<'g>) -> impl Iterator<Item = Pair<'g>> {
        self.core().each(guard, move |word| self.core().pair_of(self, guard, word))
    }

    /// All keys, in no order; as [`crate::Guard::keys`].
    fn keys<'g>(&'g self, guard: &'g Guard<'g>) -> impl Iterator<Item = Result<Cow<'g, [u8]>, Error>> {
        self.core().each(guard, move |word| Ok(self.core().key_of(self, guard, word)?.map(Cow::Borrowed)))
    }
}

impl<I: Index> Core<I> {
    /// The record that the index holds for `key`: whole, or the header and the key alone.
    #[inline]
    pub(crate) fn locate<'g, const WHOLE: bool>(
        &'g self,
        guard: &'g Guard<'_>,
        key: Key<'_>,
    ) -> Result<Option<Located<'g>>, Error> {
        self.locate_near::<WHOLE>(guard, key, None)
    }

    /// The same, with the answer of a prefetch.
    #[inline]
    pub(crate) fn locate_near<'g, const WHOLE: bool>(
        &'g self,
        guard: &'g Guard<'_>,
        key: Key<'_>,
        near: Option<u64>,
    ) -> Result<Option<Located<'g>>, Error> {
        let (mut found, mut wrong) = (None, None);
        let word = self.index.get_near(guard, key, near, |word| {
            found = self.named::<WHOLE>(guard, word, key.bytes);
            if I::FINGERPRINT != 0 && found.is_none() && !self.has_fingerprint(guard, word, key.hash) {
                wrong = Some(word);
            }
            found.is_some()
        })?;
        between_looks();
        let Some(word) = word else {
            // The key's own word may be the one that is wrong.
            return wrong.map_or(Ok(None), |word| Err(self.names_no_record(word)));
        };
        // An index that stores keys has not called the test, so any other record is a damaged one.
        let located = found.or_else(|| self.named::<WHOLE>(guard, word, key.bytes));
        located.map_or_else(|| Err(self.names_no_record(word)), |located| Ok(Some(located)))
    }

    /// The place of the record that a word of the index names. `None` for a word of no zone, which is damage
    /// in an index in the pool.
    #[inline]
    pub(crate) fn place_of(&self, word: u64) -> Option<u64> {
        let reference = reference_of(word);
        if I::DURABLE { self.heap.resolve_checked(reference) } else { Some(self.heap.resolve(reference)) }
    }

    /// Whether a word of this fingerprint names a record of it.
    #[cold]
    fn has_fingerprint(&self, guard: &Guard<'_>, word: u64, hash: u64) -> bool {
        let record = self.record_of(guard, word);
        record.is_some_and(|record| (self.key(record.key).hash ^ hash) & I::FINGERPRINT == 0)
    }

    #[cold]
    fn names_no_record(&self, word: u64) -> Error {
        let offset = self.place_of(word).unwrap_or_default();
        Error::damaged("no record of its key where the index names one", offset, 0)
    }

    /// The record that a word of the index names, if it is the key's.
    #[inline]
    pub(crate) fn named<'g, const WHOLE: bool>(
        &'g self,
        _guard: &'g Guard<'_>,
        word: u64,
        key: &[u8],
    ) -> Option<Located<'g>> {
        let offset = self.place_of(word)?;
        // SAFETY: the index names published records, which never change, and the guard keeps them from reuse.
        let record = unsafe {
            if WHOLE {
                RecordView::published(self.region(), offset)
            } else {
                RecordView::published_key(self.region(), offset)
            }
        }?;
        (record.key == key).then_some(Located { word, record })
    }

    /// The record that a word of the index names, without its value.
    pub(crate) fn record_of<'g>(&'g self, _guard: &'g Guard<'_>, word: u64) -> Option<RecordView<'g>> {
        let offset = self.place_of(word)?;
        // SAFETY: as in `named`.
        unsafe { RecordView::published_key(self.region(), offset) }
    }

    /// The straight way of nearly all reads: what the index most likely names for a key, whose stripe is
    /// settled, if that is a [plain](RecordView::plain_value) record of the key.
    #[inline(always)]
    fn glance<'g>(&'g self, guard: &'g Guard<'_>, key: Key<'_>) -> Glance<'g> {
        if self.verifies {
            return Glance::Other;
        }
        if !I::DURABLE {
            return self.glance_of(guard, self.index.candidate(guard, key, None), key);
        }
        // Only `get` knows which words are durable.
        let (mut glance, mut is_shown) = (Glance::Other, false);
        let word = self.index.get(guard, key, |word| {
            is_shown = true;
            glance = self.glance_at(guard, word, key.bytes);
            matches!(glance, Glance::Value(_))
        });
        match word {
            Ok(Some(word)) if !is_shown => self.glance_at(guard, word, key.bytes),
            Ok(None) if !is_shown => Glance::Absent,
            Ok(Some(_)) => glance,
            _ => Glance::Other,
        }
    }

    /// A glance at the record of a key for which an index that is not durable has this candidate.
    #[inline(always)]
    fn glance_of<'g>(&'g self, guard: &'g Guard<'_>, likely: Option<u64>, key: Key<'_>) -> Glance<'g> {
        between_looks();
        match likely {
            Some(word) => self.glance_at(guard, word, key.bytes),
            None if I::HAS_KEYS => Glance::Absent,
            None => Glance::Other,
        }
    }

    /// A glance at the record that a word of the index names.
    #[inline(always)]
    fn glance_at<'g>(&'g self, _guard: &'g Guard<'_>, word: u64, key: &[u8]) -> Glance<'g> {
        let Some(offset) = self.place_of(word) else { return Glance::Other };
        // SAFETY: as in `named`.
        match unsafe { RecordView::plain_value(self.region(), offset, key) } {
            Some(value) => Glance::Value(value),
            None => Glance::Other,
        }
    }

    /// The record that the index holds for a key whose stripe is settled, expired or not: whole, or the
    /// header and the key alone.
    #[inline(always)]
    pub(super) fn found<'g, const WHOLE: bool>(
        &'g self,
        guard: &'g Guard<'_>,
        key: Key<'_>,
    ) -> Result<Option<Located<'g>>, Error> {
        if self.verifies { self.find_proved(guard, key) } else { self.locate::<WHOLE>(guard, key) }
    }

    /// The whole record that a word of the index names, without proof. `None` if it leaves the pool.
    #[inline]
    pub(super) fn published<'g>(&'g self, _guard: &'g Guard<'_>, word: u64) -> Option<RecordView<'g>> {
        let offset = self.place_of(word)?;
        // SAFETY: as in `named`. The guard has been pinned since before the index was asked; or a scan with
        // such a guard waits until this thread has copied the record (`near`).
        unsafe { RecordView::published(self.region(), offset) }
    }

    /// The pair that a word of the index names, if its record is [plain](RecordView::plain_value).
    #[inline(always)]
    pub(super) fn plain_pair<'g>(&'g self, _guard: &'g Guard<'_>, word: u64) -> Option<(&'g [u8], &'g [u8])> {
        let offset = self.place_of(word)?;
        // SAFETY: as in `published`.
        unsafe { RecordView::plain_pair(self.region(), offset) }
    }
}
