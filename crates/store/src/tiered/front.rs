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
//! A front holds for states from the number of the look on, and from its time on, since keys expire. Older
//! ones are scanned from the beginning.
//!
//! Puts compare eight bytes. So where all keys of a table begin with the same eight, each put locks the front
//! for a moment.

use super::Tiers;
use super::scan::Scan;
use super::table::Table;
use crate::engine::Stretch;
use crate::engine::bounds::first_of;
use crate::engine::moment::Moment;
use quipu_parts::epoch::Guard;
use quipu_parts::index::InOrder;
use quipu_parts::sync::{SpinLock, between_looks};
use quipu_parts::twin;
use std::borrow::Cow;
use std::hint;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};

/// Dead keys before the first live one that are worth to remember it.
pub(super) const MANY: usize = 16;

/// Looks at puts that are under way before it is not remembered.
const PATIENCE: usize = 64;

/// The front of a table.
#[derive(Default)]
pub(super) struct Front {
    /// Puts of keys tell whose first eight bytes are below this; 0 if none has to.
    told_below: AtomicU64,
    state: SpinLock<State>,
}

#[derive(Default)]
struct State {
    /// No key below this one is live, in states from one on.
    known: Option<(Vec<u8>, Moment)>,
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
        let below = self.told_below.load(Ordering::Acquire);
        if below > 0 && first_bytes(key) < below && !twin!(PutNotTold) {
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

    /// Remembers the key of an announcement, below which no key was live in this state; unless a higher one
    /// is known, since the scan was one of an older state.
    fn remember(&self, announcement: u64, since: Moment) {
        let state = &mut *self.state.lock();
        if state.number == announcement
            && let Some(key) = state.announced.take()
            && state.known.as_ref().is_none_or(|(known, _)| *known < key)
        {
            state.known = Some((key, since));
        }
    }

    /// Where a scan of a state from this bound on may begin.
    #[inline]
    pub(super) fn from<'b>(&self, from: Bound<Cow<'b, [u8]>>, moment: Moment) -> Bound<Cow<'b, [u8]>> {
        let first = first_bytes(first_of(&from));
        if first < self.told_below.load(Ordering::Acquire) { self.behind(from, moment) } else { from }
    }

    #[cold]
    fn behind<'b>(&self, from: Bound<Cow<'b, [u8]>>, moment: Moment) -> Bound<Cow<'b, [u8]>> {
        let state = self.state.lock();
        match (&state.known, &from) {
            (Some((_, since)), _) if since.number > moment.number || since.time > moment.time => from,
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
        // A put that has a number may have found no announcement.
        let Ok(granted) = self.log.granted() else { return };
        let is_behind_all = || {
            between_looks();
            hint::spin_loop();
            granted <= self.log.visible()
        };
        if !(0..PATIENCE).any(|_| is_behind_all()) && !twin!(FrontBeforePuts) {
            return;
        }
        let below = Stretch { to: Bound::Excluded(Cow::Owned(first.to_vec())), ..Stretch::ALL };
        let Ok(mut scan) = Scan::new(self, (guard, Moment::NOW), table, below) else { return };
        scan.remembers_none();
        if scan.next().is_none() {
            table.front.remember(announcement, scan.moment());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Client, Design, Levels, Options, Store};
    use quipu_medium::Region;
    use quipu_medium::sim::SimOptions;
    use quipu_parts::twin::{Twin, leave_out};

    fn begin(front: &Front, number: u64, time: u64) -> Option<Vec<u8>> {
        match front.from(Bound::Unbounded, Moment { number, time }) {
            Bound::Included(key) => Some(key.into_owned()),
            _ => None,
        }
    }

    #[test]
    fn a_front_holds_for_later_states_until_a_put_below_it() {
        let front = Front::default();
        let since = Moment { number: 7, time: 50 };
        let first = front.announce(b"key 5").expect("puts can tell");
        assert_eq!(begin(&front, 9, 90), None, "announced, and not known");
        front.remember(first, since);
        assert_eq!(begin(&front, 7, 50).as_deref(), Some(&b"key 5"[..]));
        assert_eq!((begin(&front, 6, 50), begin(&front, 7, 49)), (None, None), "older states");
        let behind = Bound::Excluded(Cow::Borrowed(&b"key 6"[..]));
        assert_eq!(front.from(behind.clone(), since), behind);
        front.note_put(b"key 5");
        front.note_put(b"key 51");
        assert!(begin(&front, 9, 90).is_some(), "they are not below it");
        let lower = front.announce(b"key 3").expect("puts can tell");
        front.remember(lower, Moment { number: 9, time: 90 });
        assert_eq!(begin(&front, 9, 90).as_deref(), Some(&b"key 5"[..]), "the higher one stays");
        front.note_put(b"key 4");
        assert_eq!(begin(&front, 9, 90), None);
        assert_eq!(front.told_below.load(Ordering::Relaxed), 0, "nobody has to tell");
    }

    #[test]
    fn a_put_below_it_or_another_announcement_ends_an_announcement() {
        let front = Front::default();
        let since = Moment { number: 7, time: 50 };
        let first = front.announce(b"key 5").expect("puts can tell");
        front.note_put(b"key");
        front.remember(first, since);
        let second = front.announce(b"key 5").expect("puts can tell");
        let third = front.announce(b"key 6").expect("puts can tell");
        front.remember(second, since);
        assert_eq!(begin(&front, 9, 90), None);
        front.remember(third, since);
        assert_eq!(begin(&front, 9, 90).as_deref(), Some(&b"key 6"[..]));
        assert_eq!(front.announce(&[u8::MAX; 9]), None, "no number is above its first bytes");
    }

    /// The first key of a store after looks at it and a put below it.
    fn first_after_a_put(twin: Option<Twin>) -> Vec<u8> {
        let _left_out = leave_out(twin);
        let region = Region::sim(SimOptions { len: 4 << 20, ..SimOptions::default() });
        let options =
            Options::new().design(Design::XP).zone_size(64 << 10).cleaner(false).levels(Levels::Off);
        let store = Store::create_on(region, &options).expect("a new pool");
        let mut client = store.client();
        (0..50u8).for_each(|key| client.put(&[key], b"value").expect("room"));
        (0..40u8).for_each(|key| client.delete(&[key]).expect("room"));
        let first =
            |client: &Client| client.pin().first().expect("sound").expect("there is one").0.into_owned();
        assert_eq!(first(&client), [40]);
        client.put(&[5], b"value").expect("room");
        first(&client)
    }

    #[test]
    fn a_put_tells() {
        assert_eq!(first_after_a_put(None), [5]);
        assert_eq!(first_after_a_put(Some(Twin::PutNotTold)), [40]);
    }
}
