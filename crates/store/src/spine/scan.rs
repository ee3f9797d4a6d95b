//! Keys in their order, where the index keeps them so.

use super::Spine;
use crate::error::Error;
use quipu_medium::LINE;
use quipu_parts::epoch::Guard;
use quipu_parts::index::OrderedIndex;
use quipu_parts::record::RecordView;
use std::borrow::Cow;
use std::ops::Bound;

/// Keys whose records are asked for together.
const AT_ONCE: usize = 32;

/// A pair of a scan.
pub(crate) type Pair<'g> = Result<(Cow<'g, [u8]>, Cow<'g, [u8]>), Error>;

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
                let record = match self.next_in_order(guard, &mut walk) {
                    Ok(Some(record)) => record,
                    Ok(None) => break,
                    Err(error) => {
                        ended = true;
                        return Some(Err(error));
                    }
                };
                if from == Bound::Excluded(record.key) || self.has_expired(&record) {
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
                return Some(self.value(guard, &record).map(|value| (record.key.into(), value)));
            }
            ended = true;
            None
        })
    }

    /// The next record in the order of the keys.
    fn next_in_order<'g>(
        &'g self,
        guard: &'g Guard<'g>,
        walk: &mut Walk<I>,
    ) -> Result<Option<RecordView<'g>>, Error> {
        loop {
            while let Some(word) = walk.words.get(walk.next) {
                walk.next += 1;
                let Some(offset) = self.place_of(*word) else { continue };
                // SAFETY: the index named a published record, and the guard has been pinned since before it was asked.
                if let Some(record) = unsafe { RecordView::published(self.region(), offset) } {
                    return Ok(Some(record));
                }
            }
            walk.words.clear();
            walk.next = 0;
            let words = &mut walk.words;
            if !self.index.next_in_order(guard, &mut walk.scan, AT_ONCE, |_, word| words.push(word))? {
                return Ok(None);
            }
            for word in words {
                if let Some(offset) = self.place_of(*word) {
                    self.region().prefetch(offset);
                    self.region().prefetch(offset + LINE);
                }
            }
        }
    }
}

/// How far a walk in order has come, and the words that it is about to look at.
struct Walk<I: OrderedIndex> {
    scan: I::Scan,
    words: Vec<u64>,
    next: usize,
}
