//! The keys of a range as a transaction sees them: those of its state, and its own writes over them.
//!
//! Pairs are copied some at a time, under a pin that ends before they are shown.

use super::{Transaction, writes::Write};
use crate::engine::bounds::first_of;
use crate::engine::checks::ReadRange;
use crate::engine::{Stretch, Wanted};
use crate::types::error::Error;
use crate::types::isolation::Isolation;
use crate::types::iter::Pair;
use crate::types::table::TableId;
use quipu_parts::twin;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Bound;

/// Pairs that are copied together: at first, since many walks end soon, and at most.
const AT_FIRST: usize = 8;
const AT_ONCE: usize = 256;

/// A key and its value.
type Copied = (Vec<u8>, Vec<u8>);

/// The pairs within two bounds, from both ends.
pub(super) struct Merged<'t, 'c> {
    transaction: &'t Transaction<'c>,
    /// The part that neither end has told.
    left: ReadRange,
    ends: [End; 2],
    has_ended: bool,
    /// All of it, and its place among what the transaction relies on.
    read: Option<(ReadRange, usize)>,
}

/// One of the ends.
struct End {
    /// Behind the pairs that were looked up; `None` if those were the last.
    next: Option<Bound<Vec<u8>>>,
    found: VecDeque<Copied>,
    at_once: usize,
    has_told: bool,
}

impl End {
    fn at(bound: &Bound<Vec<u8>>) -> End {
        End { next: Some(bound.clone()), found: VecDeque::new(), at_once: AT_FIRST, has_told: false }
    }
}

impl<'t, 'c> Merged<'t, 'c> {
    pub(super) fn new(transaction: &'t Transaction<'c>, range: ReadRange) -> Merged<'t, 'c> {
        let read = (transaction.isolation == Isolation::Serializable).then(|| {
            // All of it, until it is known how much of it is told.
            let ranges = &mut transaction.reads.borrow_mut().ranges;
            ranges.push(range.clone());
            (range.clone(), ranges.len() - 1)
        });
        let ends = [End::at(&range.from), End::at(&range.to)];
        Merged { transaction, left: range, ends, has_ended: false, read }
    }

    fn advance<const BACK: bool>(&mut self) -> Option<Pair<'t>> {
        while !self.has_ended {
            if let Some((key, value)) = self.ends[usize::from(BACK)].found.pop_front() {
                if !self.left.holds(&key) {
                    // The other end has told it.
                    break;
                }
                let told = if BACK { &mut self.left.to } else { &mut self.left.from };
                *told = Bound::Excluded(key.clone());
                self.ends[usize::from(BACK)].has_told = true;
                return Some(Ok((key.into(), value.into())));
            }
            match self.look::<BACK>() {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    self.has_ended = true;
                    return Some(Err(error));
                }
            }
        }
        self.has_ended = true;
        None
    }

    /// Looks up the next pairs of an end; `false` if there are none.
    fn look<const BACK: bool>(&mut self) -> Result<bool, Error> {
        let Merged { transaction, left, ends, .. } = self;
        let End { next, found, at_once, .. } = &mut ends[usize::from(BACK)];
        let Some(begin) = next.take() else { return Ok(false) };
        let (from, to) = if BACK { (&left.from, &begin) } else { (&begin, &left.to) };
        let stored = transaction.stored::<BACK>(left.table, (from, to), *at_once)?;
        // Its own writes as far as the last of these.
        let end = (stored.len() == *at_once).then(|| stored.last().map(|(key, _)| key.clone())).flatten();
        let far = end.as_ref().map(|key| Bound::Included(key.clone()));
        let (from, to) = match (&far, BACK) {
            (Some(far), true) => (far, to),
            (Some(far), false) => (from, far),
            (None, _) => (from, to),
        };
        let bounds = (from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice));
        let own = transaction.writes.range(left.table, bounds.0, bounds.1);
        match BACK {
            true => transaction.lay_over(stored, own.rev(), |own, stored| own > stored, found),
            false => transaction.lay_over(stored, own, |own, stored| own < stored, found),
        }
        *at_once = (*at_once * 2).min(AT_ONCE);
        *next = end.map(Bound::Excluded);
        Ok(true)
    }
}

impl Transaction<'_> {
    /// Copies of up to so many pairs of the state that it reads.
    fn stored<const BACK: bool>(
        &self,
        table: TableId,
        (from, to): (&Bound<Vec<u8>>, &Bound<Vec<u8>>),
        count: usize,
    ) -> Result<Vec<Copied>, Error> {
        let session = self.client.session_of(table);
        let pinned = self.pin(session)?;
        let lent = |bound: &'_ Bound<Vec<u8>>| bound.clone().map(Cow::Owned);
        let stretch = Stretch { from: lent(from), to: lent(to), wanted: Wanted(count) };
        let mut pairs = session.range(&pinned, stretch)?;
        let mut stored = Vec::with_capacity(count);
        while stored.len() < count {
            let Some(pair) = (if BACK { pairs.next_back() } else { pairs.next() }) else { break };
            let (key, value) = pair?;
            stored.push((key.into_owned(), value.into_owned()));
        }
        drop(pairs);
        self.check_age()?;
        Ok(stored)
    }

    /// Its own writes over pairs of its state, both in the order of `is_before`.
    fn lay_over<'w>(
        &self,
        stored: Vec<Copied>,
        own: impl Iterator<Item = (&'w [u8], &'w Write)>,
        is_before: impl Fn(&[u8], &[u8]) -> bool,
        found: &mut VecDeque<Copied>,
    ) {
        let mut own = own.filter(|_| !twin!(OwnWritesNotMerged)).peekable();
        let show = |found: &mut VecDeque<_>, (key, write): (&[u8], &Write)| {
            found.extend(self.shown(write).map(|value| (key.to_vec(), value.to_vec())));
        };
        for (key, value) in stored {
            while let Some(write) = own.next_if(|(own, _)| is_before(own, &key)) {
                show(found, write);
            }
            match own.next_if(|(own, _)| *own == key) {
                Some(write) => show(found, write),
                None => found.push_back((key, value)),
            }
        }
        own.for_each(|write| show(found, write));
    }
}

impl<'t> Iterator for Merged<'t, '_> {
    type Item = Pair<'t>;

    fn next(&mut self) -> Option<Pair<'t>> {
        self.advance::<false>()
    }
}

impl DoubleEndedIterator for Merged<'_, '_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.advance::<true>()
    }
}

impl Drop for Merged<'_, '_> {
    /// Keys that were not told do not count as read.
    fn drop(&mut self) {
        let Some((whole, at)) = self.read.take().filter(|_| !self.has_ended) else { return };
        let [front, back] = [&self.ends[0], &self.ends[1]].map(|end| end.has_told);
        let told = |bound: &Bound<Vec<u8>>| first_of(bound).to_vec();
        let nothing = (Bound::Included(Vec::new()), Bound::Excluded(Vec::new()));
        let before = match front {
            true => (whole.from.clone(), Bound::Included(told(&self.left.from))),
            false => nothing,
        };
        let table = whole.table;
        let ranges = &mut self.transaction.reads.borrow_mut().ranges;
        ranges[at] = ReadRange { table, from: before.0, to: before.1 };
        if back {
            ranges.push(ReadRange { table, from: Bound::Included(told(&self.left.to)), to: whole.to });
        }
    }
}
