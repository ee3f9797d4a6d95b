//! Reading (section 4.3 of the paper): the index, then the page, its version before and after, no lock. A
//! reader that finds another key's record there looks again, under the lock of the index's segment.

use super::{Misses, SlotSpine};
use crate::engine::AT_ONCE;
use crate::types::error::Error;
use quipu_parts::epoch::Guard;
use quipu_parts::heap::slots::Offset;
use quipu_parts::index::cceh::NodeMemory;
use quipu_parts::sync::between_looks;

impl<M: NodeMemory, const REDUCED: bool> SlotSpine<M, REDUCED> {
    /// The hash of a key, with a prefetch of its lines in the index. A call for one key begins with this,
    /// since the call before may still be waiting.
    #[inline(always)]
    pub(crate) fn ask(&self, key: &[u8]) -> u64 {
        let hash = self.hash(key);
        self.index.prefetch(hash);
        hash
    }

    /// Copies the value of `key`, whose hash was [asked](SlotSpine::ask) for, into `out`, in place of its
    /// contents, and tells whether there is one.
    #[inline(always)]
    pub(crate) fn get_into(
        &self,
        guard: &Guard<'_>,
        hash: u64,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        self.settle(guard, hash)?;
        if self.reads_at_once
            && let Some(offset) = self.likely(guard, hash)
            && self.heap.read_at_once(offset, key, out)
        {
            return Ok(true);
        }
        self.look_up::<true>(guard, hash, key, out)
    }

    /// Where the record of a hash most likely is.
    #[inline(always)]
    fn likely(&self, guard: &Guard<'_>, hash: u64) -> Option<Offset> {
        let word = self.index.candidate(guard, hash);
        between_looks();
        word.map(Self::offset_of)
    }

    /// Whether there is a value of `key`, which is not read.
    pub(crate) fn contains(&self, guard: &Guard<'_>, key: &[u8]) -> Result<bool, Error> {
        let hash = self.hash(key);
        self.settle(guard, hash)?;
        self.look_up::<false>(guard, hash, key, &mut Vec::new())
    }

    /// Whether there is a record of `key`, for which nothing is parked. Its value, if that is asked for, is
    /// copied into `out`, which is empty if there is none.
    #[inline(never)]
    pub(super) fn look_up<const VALUE: bool>(
        &self,
        guard: &Guard<'_>,
        hash: u64,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        // A whole hash is hardly ever that of another key. So the record is read first, and the index asked
        // again only for another key.
        let (mut compares, mut misses) = (false, Misses::default());
        loop {
            let named = match compares {
                false => self.index.get(guard, hash, |_| true).map(Self::offset_of),
                true => self.find(guard, hash, key),
            };
            let Some(offset) = named else {
                out.clear();
                if compares && let Some(offset) = self.foreign(guard, hash) {
                    misses.note(&self.heap, offset)?;
                    continue;
                }
                return Ok(false);
            };
            between_looks();
            let found = match VALUE {
                true => self.heap.read_value(offset, key, out),
                false => self.heap.is_record_of(offset, key),
            };
            match found? {
                Some(true) => return Ok(true),
                Some(false) if !compares => compares = true,
                // The record was superseded, deleted or moved since; or it is damaged, if this continues.
                Some(false) | None => misses.note(&self.heap, offset)?,
            }
        }
    }

    /// The place that the index names for a hash, if no record of that hash is there: the record has moved,
    /// or its key is damaged.
    #[cold]
    fn foreign(&self, guard: &Guard<'_>, hash: u64) -> Option<Offset> {
        let offset = self.index.get(guard, hash, |_| true).map(Self::offset_of)?;
        let mut buffer = Vec::new();
        let record = self.heap.read(offset, &mut buffer).ok().flatten();
        record.is_none_or(|record| self.hash(record.key) != hash).then_some(offset)
    }

    /// Values of up to [`AT_ONCE`] keys, whose cache misses overlap; `each` sees them in order.
    pub(crate) fn get_many(
        &self,
        guard: &Guard<'_>,
        keys: &[&[u8]],
        copy: &mut Vec<u8>,
        each: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        let mut wanted = [(0, None); AT_ONCE];
        let wanted = &mut wanted[..keys.len()];
        for ((hash, _), key) in wanted.iter_mut().zip(keys) {
            *hash = self.ask(key);
        }
        // Keys whose places are known.
        let mut known = 0;
        for (hash, likely) in &mut *wanted {
            if self.settle(guard, *hash).is_err() {
                break; // told in its turn
            }
            *likely = self.likely(guard, *hash);
            if let Some(offset) = *likely {
                self.heap.prefetch(offset);
            }
            known += 1;
        }
        if !self.reads_at_once {
            known = 0;
        }
        for (position, (&(hash, likely), key)) in wanted.iter().zip(keys).enumerate() {
            let likely = likely.filter(|_| position < known);
            let mut is_there = likely.is_some_and(|offset| self.heap.read_at_once(offset, key, copy));
            if !is_there {
                // No later key is to be shown as it was before this one is read.
                known = 0;
                self.settle(guard, hash)?;
                is_there = self.look_up::<true>(guard, hash, key, copy)?;
            }
            each(position, is_there.then_some(&copy[..]));
        }
        Ok(())
    }
}
