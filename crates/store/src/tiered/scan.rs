//! Keys in order, from both ends, as they were at a number.
//!
//! As long as a table has one layer and no levels, its keys are looked up here. Otherwise
//! [`merge`](super::merge) finds them.

use super::front;
use super::merge::{Merge, Sight};
use super::table::Table;
use super::view::View;
use super::{Session, Tiers};
use crate::engine::bounds::{first_of, is_above, is_below};
use crate::engine::moment::Moment;
use crate::engine::{Removal, Stretch, Wanted};
use crate::types::error::{Error, damaged_at};
use crate::types::iter::Pair;
use quipu_medium::LINE;
use quipu_parts::epoch::{Guard, What};
use quipu_parts::heap::chain::RecordFound;
use quipu_parts::index::InOrder;
use quipu_parts::sync::between_looks;
use quipu_parts::twin;
use quipu_parts::versions::{Look, Noted, Snapshot, Version};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Bound;

/// Keys that are looked up together.
const AT_ONCE: usize = 32;

/// A scan from both ends of the state at a snapshot. The last key told at an end bounds the other end, so
/// they meet where nothing is left between them.
pub(super) struct Scan<'g, I: InOrder> {
    tiers: &'g Tiers<I>,
    guard: &'g Guard<'g>,
    table: &'g Table<I>,
    /// Of a scan that has no snapshot of its caller's.
    _snapshot: Option<Snapshot>,
    at: u64,
    /// The time at which it began. A value that expires later may have been overwritten before that, behind
    /// the snapshot.
    now: u64,
    from: Bound<Cow<'g, [u8]>>,
    to: Bound<Cow<'g, [u8]>>,
    view: &'g View<I>,
    front: Option<I::Scan>,
    back: Option<I::ScanBack>,
    /// In place of these, if the table has more than one layer.
    merges: [Option<Merge<'g, I>>; 2],
    /// Found and not told yet, at the front and at the back.
    found: [VecDeque<Pair<'g>>; 2],
    /// The last keys that the front and the back have told.
    told: [Option<Cow<'g, [u8]>>; 2],
    ended: bool,
    /// Dead keys from the beginning of the table on, while it has found no live one there.
    dead: Option<Dead>,
    wanted: Wanted,
    /// For the keys that are looked up together.
    noted: Noted,
}

impl<'g, I: InOrder> Scan<'g, I> {
    /// The keys within these bounds with their values, as they were at a moment.
    pub(super) fn new(
        tiers: &'g Tiers<I>,
        (guard, at): (&'g Guard<'g>, Moment),
        table: &'g Table<I>,
        Stretch { from, to, wanted }: Stretch<'g>,
    ) -> Result<Scan<'g, I>, Error> {
        let early = twin!(ViewTakenEarly).then(|| table.view(guard));
        between_looks();
        let (now, snapshot) = match at.is_now() {
            true => {
                let (snapshot, Moment { time, .. }) = tiers.moment(What::Scan, u64::MAX);
                (time, Some(snapshot))
            }
            false => (tiers.time_at(at), None),
        };
        between_looks();
        let at = snapshot.as_ref().map_or(at.number, Snapshot::number);
        // Behind the number: all items up to it are in a layer of this view, or on its levels.
        let view = early.unwrap_or_else(|| table.view(guard));
        table.check()?;
        let is_whole = first_of(&from).is_empty();
        let dead = is_whole.then(Dead::default);
        let from = table.front.from(from, Moment { number: at, time: now });
        Ok(Scan {
            tiers,
            guard,
            table,
            _snapshot: snapshot,
            at,
            now,
            from,
            to,
            view,
            front: None,
            back: None,
            merges: [None, None],
            found: Default::default(),
            told: [None, None],
            ended: false,
            dead,
            wanted,
            noted: Noted::default(),
        })
    }

    /// The state that it shows.
    pub(super) fn moment(&self) -> Moment {
        Moment { number: self.at, time: self.now }
    }

    /// Lets the first live key be no [front](super::front).
    pub(super) fn remembers_none(&mut self) {
        self.dead = None;
    }

    /// The next pair from one of the ends.
    #[inline]
    fn advance<const BACK: bool>(&mut self) -> Option<Pair<'g>> {
        while !self.ended {
            let (key, value) = match self.found[usize::from(BACK)].pop_front() {
                Some(Ok(pair)) => pair,
                Some(Err(error)) => return Some(Err(error)),
                None => match self.look::<BACK>() {
                    Ok(true) => continue,
                    Ok(false) => break,
                    Err(error) => {
                        self.ended = true;
                        return Some(Err(error));
                    }
                },
            };
            let [front, back] = &self.told;
            let (is_above, is_below) = (is_above(&self.from, &key), is_below(&self.to, &key));
            let is_beyond = if BACK {
                !is_above || front.as_ref().is_some_and(|told| key <= *told)
            } else {
                !is_below || back.as_ref().is_some_and(|told| key >= *told)
            };
            if is_beyond {
                break;
            }
            if is_above && is_below {
                if !BACK && let Some(dead) = self.dead.take() {
                    self.pass(&dead, &key);
                }
                self.told[usize::from(BACK)] = Some(key.clone());
                return Some(Ok((key, value)));
            }
        }
        self.ended = true;
        if !BACK && let Some(mut dead) = self.dead.take() {
            // All that there are.
            let mut behind = std::mem::take(&mut dead.last);
            behind.push(0);
            self.pass(&dead, &behind);
        }
        None
    }

    /// Notes that there were these dead keys before the first live one, which is this.
    #[inline]
    fn pass(&self, dead: &Dead, first: &[u8]) {
        if dead.count >= front::MANY {
            self.tiers.remember_front(self.guard, self.table, first);
        }
    }

    /// Looks up the next keys of an end; `false` if there are none.
    fn look<const BACK: bool>(&mut self) -> Result<bool, Error> {
        if !self.view.is_one() {
            return self.look_in_all::<BACK>();
        }
        let limit = self.wanted.at_once(AT_ONCE);
        let Scan { tiers, guard, table, at, now, from, to, front, back, found, noted, view, dead, .. } = self;
        let (tiers, guard, versions) = (*tiers, *guard, &view.active.versions);
        let prefetch = |reference| {
            let place = tiers.log.heap().resolve(reference);
            tiers.region().prefetch(place);
            tiers.region().prefetch(place + LINE);
        };
        let number_of = |reference| tiers.number_of(guard, reference);
        let mut look = Look { limit, up_to: *at, prefetch, number_of, noted: std::mem::take(noted) };
        let found = &mut found[usize::from(BACK)];
        let is_deleted = |record: &RecordFound<'_>, number: u64| {
            between_looks();
            let list = table.ranges.get(guard);
            list.is_some_and(|list| list.deletes(record.key, number, *at))
        };
        let note = |key: &[u8], version: Version| match tiers.value_of(guard, key, &version, || *now) {
            Ok(Some(record)) if !is_deleted(&record, version.number) => {
                found.push_back(Ok((record.key.into(), record.value.into())));
            }
            Ok(_) if BACK || dead.is_none() || !found.is_empty() => {}
            Ok(_) => dead.iter_mut().for_each(|dead| dead.note(key)),
            Err(error) => found.push_back(Err(error)),
        };
        let has_more = if BACK {
            let scan = back.get_or_insert_with(|| versions.scan_back_from(to.as_ref().map(|key| &**key)));
            versions.prev_in_order(guard, scan, &mut look, note)?
        } else {
            let scan = front.get_or_insert_with(|| versions.scan_from(first_of(from)));
            versions.next_in_order(guard, scan, &mut look, note)?
        };
        *noted = look.noted;
        Ok(has_more)
    }
}

/// Keys of which none is live.
#[derive(Default)]
struct Dead {
    count: usize,
    last: Vec<u8>,
}

impl Dead {
    #[cold]
    fn note(&mut self, key: &[u8]) {
        self.count += 1;
        self.last.clear();
        self.last.extend_from_slice(key);
    }
}

impl<'g, I: InOrder> Scan<'g, I> {
    /// As [`look`](Scan::look), in all layers and on the levels.
    #[inline(never)]
    fn look_in_all<const BACK: bool>(&mut self) -> Result<bool, Error> {
        let limit = self.wanted.at_once(AT_ONCE);
        let Scan { tiers, guard, table, view, at, now, .. } = *self;
        let (merge, found) = (&mut self.merges[usize::from(BACK)], &mut self.found[usize::from(BACK)]);
        let is_mixed = twin!(LevelsOfAnotherView);
        let places = (if is_mixed { table.view(guard) } else { view }, &view.levels);
        let merge = merge.get_or_insert_with(|| match BACK {
            true => Merge::back_from(places, self.to.as_ref().map(|key| &**key), at),
            false => Merge::from(places, first_of(&self.from), at),
        });
        merge.find::<BACK>(&Sight { tiers, guard, table, at, now }, limit, found)?;
        Ok(!found.is_empty())
    }
}

impl<I: InOrder> Tiers<I> {
    /// Deletes every key that is present when this begins; as [`crate::Client::clear`].
    pub(super) fn clear(&self, session: &mut Session<I>) -> Result<(), Error> {
        self.common.admission.admit()?;
        let (mut from, mut damage) = (Vec::new(), Vec::new());
        loop {
            // Keys are copied, so that nothing is pinned while a delete waits for room.
            let mut keys = Vec::with_capacity(AT_ONCE);
            {
                let guard = session.participant.pin_to_read();
                let start =
                    if from.is_empty() { Bound::Unbounded } else { Bound::Excluded((&from[..]).into()) };
                let stretch = Stretch { from: start, ..Stretch::ALL };
                let scan = Scan::new(self, (&guard, Moment::NOW), &session.table, stretch)?;
                for pair in scan.take(AT_ONCE) {
                    match pair {
                        Ok((key, _)) => keys.push(key.into_owned()),
                        Err(Error::Damaged(found)) => damage.extend(found.places),
                        Err(error) => return Err(error),
                    }
                }
            }
            let Some(last) = keys.last() else { return damaged_at(damage) };
            from.clone_from(last);
            for key in &keys {
                self.modify(session, key, &mut Removal::default())?;
            }
        }
    }
}

impl<'g, I: InOrder> Iterator for Scan<'g, I> {
    type Item = Pair<'g>;

    fn next(&mut self) -> Option<Pair<'g>> {
        self.advance::<false>()
    }
}

impl<I: InOrder> DoubleEndedIterator for Scan<'_, I> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.advance::<true>()
    }
}
