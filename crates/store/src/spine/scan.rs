//! Keys in their order, where the index keeps them so.

use super::Spine;
use crate::error::Error;
use quipu_medium::LINE;
use quipu_parts::epoch::Guard;
use quipu_parts::index::OrderedIndex;
use std::borrow::Cow;
use std::ops::Bound;

/// Keys whose records are asked for together.
const AT_ONCE: usize = 32;

/// A pair of a scan.
pub(crate) type Pair<'g> = Result<KeyAndValue<'g>, Error>;

/// Both where they lie, or copies.
pub(super) type KeyAndValue<'g> = (Cow<'g, [u8]>, Cow<'g, [u8]>);

impl<I: OrderedIndex> Spine<I> {
    /// The keys within these bounds with their values, in the order of their bytes; as [`crate::Guard::range`].
    pub(crate) fn range<'g>(
        &'g self,
        guard: &'g Guard<'g>,
        from: Bound<&'g [u8]>,
        to: Bound<&'g [u8]>,
    ) -> impl Iterator<Item = Pair<'g>> {
        let start = match from {
            Bound::Included(key) | Bound::Excluded(key) => key,
            Bound::Unbounded => &[],
        };
        let mut walk =
            Walk { scan: self.index.scan_from(start), words: Vec::with_capacity(AT_ONCE), next: 0 };
        let mut ended = false;
        std::iter::from_fn(move || {
            while !ended {
                let word = match self.next_in_order(guard, &mut walk) {
                    Ok(Some(word)) => word,
                    Ok(None) => break,
                    Err(error) => {
                        ended = true;
                        return Some(Err(error));
                    }
                };
                let record = match self.record_for_pair(guard, word) {
                    Ok(record) => record,
                    // It may lie behind the end, since its key proves nothing.
                    Err(error) => return Some(Err(error)),
                };
                // The bounds come before the value: a large one that is not asked for is neither copied nor proved.
                if from == Bound::Excluded(record.key) {
                    continue;
                }
                let is_behind = match to {
                    Bound::Included(last) => record.key > last,
                    Bound::Excluded(end) => record.key >= end,
                    Bound::Unbounded => false,
                };
                if is_behind {
                    break;
                }
                match self.pair_of(guard, word, &record) {
                    Ok(None) => {}
                    pair => return pair.transpose(),
                }
            }
            ended = true;
            None
        })
    }

    /// The word of the next key in their order.
    #[inline]
    fn next_in_order(&self, guard: &Guard<'_>, walk: &mut Walk<I>) -> Result<Option<u64>, Error> {
        loop {
            if let Some(word) = walk.words.get(walk.next) {
                walk.next += 1;
                return Ok(Some(*word));
            }
            if !self.next_words(guard, walk)? {
                return Ok(None);
            }
        }
    }

    /// The words of the next keys, with their records on the way; false at the end.
    #[inline(never)]
    fn next_words(&self, guard: &Guard<'_>, walk: &mut Walk<I>) -> Result<bool, Error> {
        let Walk { scan, words, next } = walk;
        words.clear();
        *next = 0;
        let more = self.index.next_in_order(guard, scan, AT_ONCE, |_, word| words.push(word))?;
        for word in words {
            if let Some(offset) = self.place_of(*word) {
                self.region().prefetch(offset);
                self.region().prefetch(offset + LINE);
            }
        }
        Ok(more)
    }
}

/// How far a walk in order has come, and the words that it is about to look at.
struct Walk<I: OrderedIndex> {
    scan: I::Scan,
    words: Vec<u64>,
    next: usize,
}
