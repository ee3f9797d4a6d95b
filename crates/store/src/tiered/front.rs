//! The front of a table: a key below which no key is live.
//!
//! A queue leaves its tombstones where the next look for the first key begins, until their memtable is
//! rewritten. So a scan that has passed many dead keys before its first live one remembers that key, and
//! scans of later states begin there.
//!
//! *A put below the front is never passed over.* A scan that wants to remember a key announces it first: from
//! then on each put of a lower key tells, when it has its number and before it is visible. Then the scan sees
//! that all puts with numbers so far are visible, and looks once more for a live key below. One that was put
//! before the announcement is seen by that look. A later one tells, and what the scan has found is not
//! remembered, or no longer. A scan of a state asks for the front when it knows the state's number. By then
//! each put up to that number has told.
//!
//! A front holds for states from the number of the look on. Older snapshots scan from the beginning.

use super::Tiers;
use super::scan::Scan;
use super::table::Table;
use crate::engine::NOW;
use quipu_parts::epoch::Guard;
use quipu_parts::index::InOrder;
use quipu_parts::sync::{SpinLock, between_looks};
use quipu_parts::twin;
use std::borrow::Cow;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};

/// Dead keys before the first live one that are worth to remember it.
pub(super) const MANY: usize = 16;

/// The front of a table.
#[derive(Default)]
pub(super) struct Front {
    /// Puts of keys tell whose first eight bytes are below this; 0 if none has to.
    told_below: AtomicU64,
    state: SpinLock<State>,
}

#[derive(Default)]
struct State {
    /// No key below this one is live, in states from a number on.
    known: Option<(Vec<u8>, u64)>,
    /// The key that is about to become known, if there is one.
    announced: Option<Vec<u8>>,
    /// Of the announcement.
    number: u64,
}

/// The first eight bytes of a key, as a number of their order.
fn first_bytes(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let len = key.len().min(8);
    bytes[..len].copy_from_slice(&key[..len]);
    u64::from_be_bytes(bytes)
}

impl Front {
    /// A put of this key, which has its number, is about to become visible.
    #[inline(always)]
    pub(super) fn note_put(&self, key: &[u8]) {
        if first_bytes(key) < self.told_below.load(Ordering::Acquire) && !twin!(PutNotTold) {
            self.tell(key);
        }
    }

    #[cold]
    fn tell(&self, key: &[u8]) {
        let mut state = self.state.lock();
        state.announced.take_if(|announced| key < announced.as_slice());
        state.known.take_if(|(known, _)| key < known.as_slice());
        if state.announced.is_none() && state.known.is_none() {
            self.told_below.store(0, Ordering::Release);
        }
    }

    /// Announces a key; returns the number of the announcement. `None` if puts could not tell of keys below.
    fn announce(&self, key: &[u8]) -> Option<u64> {
        let below = first_bytes(key).checked_add(1)?;
        let mut state = self.state.lock();
        state.announced = Some(key.to_vec());
        state.number += 1;
        self.told_below.fetch_max(below, Ordering::AcqRel);
        Some(state.number)
    }

    /// Remembers the key of an announcement, below which no key was live in the state of a number.
    fn remember(&self, announcement: u64, number: u64) {
        let state = &mut *self.state.lock();
        if state.number == announcement
            && let Some(key) = state.announced.take()
        {
            state.known = Some((key, number));
        }
    }

    /// Where a scan from this bound on of the state of a number may begin.
    #[inline]
    pub(super) fn from<'b>(&self, from: Bound<Cow<'b, [u8]>>, number: u64) -> Bound<Cow<'b, [u8]>> {
        let first = match &from {
            Bound::Included(key) | Bound::Excluded(key) => first_bytes(key),
            Bound::Unbounded => 0,
        };
        if first < self.told_below.load(Ordering::Acquire) { self.behind(from, number) } else { from }
    }

    #[cold]
    fn behind<'b>(&self, from: Bound<Cow<'b, [u8]>>, number: u64) -> Bound<Cow<'b, [u8]>> {
        let state = self.state.lock();
        match (&state.known, &from) {
            (Some((_, since)), _) if *since > number => from,
            (Some((known, _)), Bound::Included(key) | Bound::Excluded(key)) if **key >= **known => from,
            (Some((known, _)), _) => Bound::Included(known.clone().into()),
            (None, _) => from,
        }
    }
}

impl<I: InOrder> Tiers<I> {
    /// Remembers the first live key of a table, as a scan from its beginning has found it behind many dead
    /// ones. In vain if a put is under way, or one of a lower key comes.
    #[cold]
    pub(super) fn remember_front<'g>(&'g self, guard: &'g Guard<'g>, table: &'g Table<I>, first: &[u8]) {
        let Some(announcement) = table.front.announce(first) else { return };
        between_looks();
        // One with a number may have found no announcement.
        let is_behind_all = self.log.granted().is_ok_and(|granted| granted <= self.log.visible());
        if !is_behind_all && !twin!(FrontBeforePuts) {
            return;
        }
        let below = Bound::Excluded(Cow::Owned(first.to_vec()));
        let Ok(mut scan) = Scan::new(self, (guard, NOW), table, Bound::Unbounded, below) else { return };
        scan.remembers_none();
        if scan.next().is_none() {
            table.front.remember(announcement, scan.number());
        }
    }
}
