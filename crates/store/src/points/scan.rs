//! Keys in order and in reverse, where the index keeps an order.

use super::Core;
use super::expiry::Successors;
use super::near::{self, Copied};
use crate::engine::bounds::{first_of, is_above, is_below};
use crate::engine::{Stretch, Wanted};
use crate::types::error::Error;
use crate::types::iter::{KeyValue, Pair};
use quipu_parts::epoch::Guard;
use quipu_parts::index::{BothWays, Index, IndexError};
use std::borrow::Cow;
use std::ops::{Bound, ControlFlow};

/// Keys whose records are prefetched together.
const AT_ONCE: usize = 32;

/// A scan from both ends. The last key returned at an end bounds the other end, so they meet where nothing is
/// left between them. It does not bound its own end: the walk of the index continues in order, whatever a
/// damaged key says.
pub(super) struct Ordered<'g, I: BothWays> {
    core: &'g Core<I>,
    successors: &'g dyn Successors<I>,
    guard: &'g Guard<'g>,
    from: Bound<Cow<'g, [u8]>>,
    to: Bound<Cow<'g, [u8]>>,
    front: Option<Walk<I::Scan>>,
    back: Option<Walk<I::ScanBack>>,
    /// The last keys that the front and the back have returned.
    told: [Option<&'g [u8]>; 2],
    /// Those of copies.
    told_copies: [Option<Vec<u8>>; 2],
    /// Words of records that were reported as damaged, so that the other end does not report them again:
    /// their keys prove nothing.
    damaged: Vec<u64>,
    ended: bool,
    wanted: Wanted,
    /// Whether records are neither proved nor copied from afar.
    is_straight: bool,
}

impl<'g, I: BothWays> Ordered<'g, I> {
    /// The keys within these bounds with their values, in the order of their bytes; as
    /// [`crate::Guard::range`].
    pub(super) fn new(
        (core, successors): (&'g Core<I>, &'g dyn Successors<I>),
        guard: &'g Guard<'g>,
        Stretch { from, to, wanted }: Stretch<'g>,
    ) -> Ordered<'g, I> {
        Ordered {
            core,
            successors,
            guard,
            from,
            to,
            front: None,
            back: None,
            told: [None; 2],
            told_copies: [None, None],
            damaged: Vec::new(),
            ended: false,
            wanted,
            is_straight: !core.verifies && core.readers.is_none(),
        }
    }

    /// The next pair from one of the ends.
    #[inline]
    fn advance<const BACK: bool>(&mut self) -> Option<Pair<'g>> {
        while !self.ended {
            let word = match if BACK { self.back_word() } else { self.front_word() } {
                Ok(Some(word)) => word,
                Ok(None) => break,
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            };
            if !BACK && let Some(pair) = self.plain_pair(word) {
                return Some(Ok(pair));
            }
            if let Some(copied) = self.copied::<BACK>() {
                match self.show_copy::<BACK>(word, copied) {
                    ControlFlow::Continue(()) => continue,
                    ControlFlow::Break(None) => break,
                    ControlFlow::Break(shown) => return shown,
                }
            }
            let record = match self.core.record_for_pair(self.guard, word) {
                Ok(record) => record,
                // It may lie behind the end, since its key proves nothing.
                Err(error) if self.is_news(word) => return Some(Err(error)),
                Err(_) => continue,
            };
            // The bounds are tested before the value: a large value outside of them is neither copied nor
            // proved.
            match self.holds::<BACK>(record.key) {
                None => break,
                Some(false) => continue,
                Some(true) => {}
            }
            match self.core.pair_of_record(self.successors, self.guard, word, &record) {
                Ok(None) => {}
                Ok(pair) => {
                    self.told[usize::from(BACK)] = Some(record.key);
                    return pair.map(Ok);
                }
                Err(error) if self.is_news(word) => return Some(Err(error)),
                Err(_) => {}
            }
        }
        self.ended = true;
        None
    }

    /// The straight way of nearly all scans: the pair of a [plain](RecordView::plain_value) record within the
    /// bounds, while nobody scans from the back.
    #[inline(always)]
    fn plain_pair(&mut self, word: u64) -> Option<KeyValue<'g>> {
        if !self.is_straight || self.back.is_some() {
            return None;
        }
        let (key, value) = self.core.plain_pair(self.guard, word)?;
        if !(is_above(&self.from, key) && is_below(&self.to, key)) {
            return None;
        }
        self.told[0] = Some(key);
        Some((key.into(), value.into()))
    }

    /// Whether a key is within the bounds; `None` if it is beyond the end of this walk.
    #[inline]
    fn holds<const BACK: bool>(&self, key: &[u8]) -> Option<bool> {
        let (is_above, is_below) = (is_above(&self.from, key), is_below(&self.to, key));
        let ([front, back], [front_copy, back_copy]) = (self.told, &self.told_copies);
        let is_beyond = if BACK {
            let is_at = |told: &[u8]| key <= told;
            !is_above || front.is_some_and(is_at) || front_copy.as_deref().is_some_and(is_at)
        } else {
            let is_at = |told: &[u8]| key >= told;
            !is_below || back.is_some_and(is_at) || back_copy.as_deref().is_some_and(is_at)
        };
        (!is_beyond).then_some(is_above && is_below)
    }

    /// Shows a copy of the record of a word, or goes on, or ends the walk with nothing.
    #[cold]
    fn show_copy<const BACK: bool>(&mut self, word: u64, copied: Copied) -> ControlFlow<Option<Pair<'g>>> {
        let Copied { key, value, expires } = copied;
        let (core, guard) = (self.core, self.guard);
        let pair = match self.holds::<BACK>(&key) {
            None => return ControlFlow::Break(None),
            Some(false) => return ControlFlow::Continue(()),
            Some(true) if !core.has_passed(expires) => Ok(Some((Cow::from(key.clone()), value.into()))),
            Some(true) => {
                let located = self.successors.successor(guard, core.key(&key), word);
                located
                    .and_then(|located| located.map(|located| core.pair(guard, &located.record)).transpose())
            }
        };
        match pair {
            Ok(None) => ControlFlow::Continue(()),
            Ok(Some(pair)) => {
                self.told_copies[usize::from(BACK)] = Some(key);
                ControlFlow::Break(Some(Ok(pair)))
            }
            Err(error) if self.is_news(word) => ControlFlow::Break(Some(Err(error))),
            Err(_) => ControlFlow::Continue(()),
        }
    }

    /// Whether the damaged record of a word was not reported before. Only the other end could meet it again.
    #[cold]
    fn is_news(&mut self, word: u64) -> bool {
        let is_news = self.front.is_none() || self.back.is_none() || !self.damaged.contains(&word);
        self.damaged.push(word);
        is_news
    }

    /// The copy of the record that the last word of an end names, if there is one.
    #[inline]
    fn copied<const BACK: bool>(&mut self) -> Option<Copied> {
        self.core.readers.as_ref()?;
        if BACK { self.back.as_mut()?.take_copy() } else { self.front.as_mut()?.take_copy() }
    }

    #[inline]
    fn front_word(&mut self) -> Result<Option<u64>, Error> {
        let Ordered { core, guard, from, wanted, .. } = self;
        let walk = self.front.get_or_insert_with(|| Walk::new(core.index.scan_from(first_of(from))));
        walk.next(core, wanted, |scan, count, words| {
            core.index.next_words(guard, scan, count, |word| words.push(word))
        })
    }

    #[inline]
    fn back_word(&mut self) -> Result<Option<u64>, Error> {
        let Ordered { core, guard, to, wanted, .. } = self;
        let walk = self
            .back
            .get_or_insert_with(|| Walk::new(core.index.scan_back_from(to.as_ref().map(|key| &**key))));
        walk.next(core, wanted, |scan, count, words| {
            core.index.prev_words(guard, scan, count, |word| words.push(word))
        })
    }
}

impl<'g, I: BothWays> Iterator for Ordered<'g, I> {
    type Item = Pair<'g>;

    fn next(&mut self) -> Option<Pair<'g>> {
        self.advance::<false>()
    }
}

impl<I: BothWays> DoubleEndedIterator for Ordered<'_, I> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.advance::<true>()
    }
}

/// The position of a walk in the index, and the words that the scan looks at next.
struct Walk<S> {
    scan: S,
    words: Vec<u64>,
    /// Copies of records of other nodes, at the positions of their words.
    copies: Vec<Option<Copied>>,
    next: usize,
    /// Where the words end whose records the scan has before it.
    end: usize,
}

impl<S> Walk<S> {
    fn new(scan: S) -> Walk<S> {
        Walk { scan, words: Vec::with_capacity(AT_ONCE + AT_ONCE / 2), copies: Vec::new(), next: 0, end: 0 }
    }

    /// The word of the next key; `more` adds so many words, or reports that there are none.
    #[inline]
    fn next<I: Index>(
        &mut self,
        core: &Core<I>,
        wanted: &mut Wanted,
        more: impl Fn(&mut S, usize, &mut Vec<u64>) -> Result<bool, IndexError>,
    ) -> Result<Option<u64>, Error> {
        while self.next == self.end {
            let hands_over = core.readers.is_some();
            let many = if hands_over { near::after(self.words.len()) } else { AT_ONCE };
            self.words.drain(..self.end);
            (self.next, self.end) = (0, 0);
            if self.words.is_empty() && !more(&mut self.scan, wanted.at_once(many), &mut self.words)? {
                return Ok(None);
            }
            self.end = self.words.len();
            if hands_over {
                self.end = near::ahead(&self.words);
                self.copies = core.copies_from_afar(&self.words[..self.end]);
            }
            for (position, word) in self.words[..self.end].iter().enumerate() {
                if self.copies.get(position).is_some_and(Option::is_some) {
                    continue;
                }
                core.prefetch_record(*word);
            }
        }
        let word = self.words[self.next];
        self.next += 1;
        Ok(Some(word))
    }

    /// The copy of the record of the word that was returned last.
    fn take_copy(&mut self) -> Option<Copied> {
        self.copies.get_mut(self.next - 1)?.take()
    }
}
