//! Leaves: slots with the model that foretells places in them, and the counters of their writers.

use super::key::Step;
use super::memory::Memory;
use super::model::Model;
use super::slots::{Found, Slots};
use super::version::Version;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::twin;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Slots of the largest leaf: half a megabyte, as in the paper, less the notes of its allocator.
pub(super) const MOST_SLOTS: usize = (1 << 15) - 8;
/// Slots of the smallest.
pub(super) const LEAST_SLOTS: usize = if cfg!(loom) { 4 } else { 16 };
/// Of so many slots, this number may be in use, unless keys arrive in order.
const FULL: (usize, usize) = (9, 10);

/// Keys of a line of the model, where one line is too far from them: a doubling or more on average.
const KEYS_OF_A_LINE: usize = 4;
/// The cost of a doubling in the list of a model, most of which is in the cache.
const LIST_STEP: f64 = 5.0;
/// A list is chosen if lines cost so many times as much: they allow for larger leaves.
const BETTER: f64 = 1.5;
/// An insertion at an end of the leaf moves so many slots at most: beyond, the leaf is built anew with room.
const FAR: usize = if cfg!(loom) { 4 } else { 256 };

/// Where a new leaf has its room, as its keys have arrived so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// Between all slots.
    Evenly,
    /// Behind the last slot: keys rise.
    Right,
    /// Before the first slot: keys fall.
    Left,
}

/// The form of the model of a new leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The one that costs less.
    Cheapest,
    /// A list, so that gaps are everywhere alike: lines had them where no key arrives.
    Sorted,
}

/// The outcome of an insertion.
pub(super) enum Inserted {
    Done,
    /// The slice is there.
    Present,
    /// The leaf has to be built anew first.
    Full,
}

/// A slice and its word.
pub(super) type Entry = (u64, u64);

/// A leaf. Its range never changes.
pub(super) struct Leaf {
    pub(super) version: Version,
    pub(super) model: Model,
    pub(super) slots: Slots,
    /// The slices that lead here.
    pub(super) range: RangeInclusive<u64>,
    work: Work,
    /// The cost of a search when the leaf was built.
    built: f32,
}

/// The work of its writers, counted under its lock.
#[derive(Default)]
struct Work {
    /// Slots in use.
    used: AtomicU32,
    inserts: AtomicU32,
    /// Inserts behind the last key, and before the first one.
    right: AtomicU32,
    left: AtomicU32,
    /// Slots moved, and doublings of distances in searches.
    shifts: AtomicU64,
    steps: AtomicU64,
}

fn add_to(counter: &AtomicU32, more: i32) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add_signed(more), Ordering::Relaxed);
}

fn add_to_sum(counter: &AtomicU64, more: usize) {
    counter.store(counter.load(Ordering::Relaxed) + more as u64, Ordering::Relaxed);
}

/// The doublings of a search over this distance.
fn steps(distance: usize) -> usize {
    (distance + 1).ilog2() as usize
}

/// The cost of a search with so many steps in all, and of an insert with so many shifts (the paper's
/// constants are those of ALEX).
fn cost(steps: f64, shifts: f64, inserts: f64) -> f64 {
    (20.0 * steps + 0.5 * shifts) / inserts.max(1.0)
}

/// Where entries are to stand, and what that costs.
#[derive(Default)]
struct Places {
    /// The slot of each.
    at: Vec<u32>,
    /// The steps of searches for them all.
    steps: usize,
    /// Slots that an insertion beside each of them would move, for them all.
    shifts: usize,
}

impl Places {
    /// Places for entries in order, between two slots. With lines, they stand where the model has them, if
    /// that is free, or as near as the order allows. With a list, they stand at equal distances.
    fn of(entries: &[Entry], model: &Model, slots: usize, (begin, end): (usize, usize)) -> Places {
        let per = (end - begin) as f64 / entries.len().max(1) as f64;
        let mut places = Places { at: Vec::with_capacity(entries.len()), ..Places::default() };
        let (mut next, mut run) = (begin, 0);
        for (rank, (slice, _)) in entries.iter().enumerate() {
            let guess = model.predict_own(rank, *slice, slots);
            let wanted = if model.is_sorted() { begin + (rank as f64 * per) as usize } else { guess };
            let at = wanted.clamp(next, end - (entries.len() - rank));
            places.at.push(at as u32);
            places.steps += steps(at.abs_diff(guess));
            if at > next {
                places.shifts += run * run / 4;
                run = 0;
            }
            run += 1;
            next = at + 1;
        }
        places.shifts += run * run / 4;
        places
    }

    /// The cost of a search, by the model alone.
    fn search(&self, model: &Model) -> f64 {
        let list = if model.is_sorted() { LIST_STEP * f64::from(model.list_steps()) } else { 0.0 };
        cost(self.steps as f64, 0.0, self.at.len() as f64) + list
    }

    /// The cost of a search and an insertion.
    fn all(&self, model: &Model) -> f64 {
        self.search(model) + cost(0.0, self.shifts as f64, self.at.len() as f64)
    }
}

impl Leaf {
    /// A leaf of these entries, in order, with so many slots, or a few more.
    pub(super) fn build(
        entries: &[Entry],
        range: RangeInclusive<u64>,
        slots: usize,
        (room, form): (Room, Form),
        memory: &Arc<Memory>,
    ) -> Leaf {
        let slots = Slots::new(slots, memory);
        let n = entries.len();
        let spread = match room {
            Room::Evenly => slots.len(),
            Room::Right | Room::Left => (n * 20 / 19).min(slots.len()),
        };
        let begin = if room == Room::Left { slots.len() - spread } else { 0 };
        let (end, per) = (begin + spread, spread as f64 / n.max(1) as f64);
        let placed = |model: Model| {
            let places = Places::of(entries, &model, slots.len(), (begin, end));
            (model, places)
        };
        let sorted = || Some(placed(Model::sorted(entries, begin, per)?));
        let with_list = if form == Form::Sorted { sorted() } else { None };
        let (model, places) = with_list.unwrap_or_else(|| {
            let (mut model, mut places) = placed(Model::fit(entries, 1, begin, per));
            if places.steps > n {
                (model, places) = placed(Model::fit(entries, (n / KEYS_OF_A_LINE).max(1), begin, per));
            }
            // Lines that bring keys together to a clump would do so again when the clump has moved too much.
            let with_list = if places.steps > n { sorted() } else { None };
            let is_better = |(list, beside): &(Model, Places)| BETTER * beside.all(list) < places.all(&model);
            match with_list.filter(is_better) {
                Some(with_list) => with_list,
                None => (model, places),
            }
        });
        let (work, built) = (Work::default(), places.search(&model) as f32);
        slots.load(begin, entries.iter().zip(places.at));
        work.used.store(n as u32, Ordering::Relaxed);
        Leaf { version: Version::new(), model, slots, range, work, built }
    }

    /// The slot where a slice stands. With `TO_CHANGE`, also prefetches the lines that a change needs.
    #[inline]
    pub(super) fn find<const TO_CHANGE: bool>(&self, slice: u64) -> Option<usize> {
        let guess = self.model.predict(slice, self.slots.len());
        if self.is_sorted() {
            // A list tells a place only to within a part.
            self.slots.prefetch_beside(guess);
        }
        if TO_CHANGE {
            self.slots.prefetch_to_change(guess);
        }
        self.slots.equal(slice, self.slots.above(slice, guess))
    }

    /// Asks for the lines where a slice most likely stands, and for those that an insertion needs besides.
    #[inline]
    pub(super) fn prefetch<const TO_CHANGE: bool>(&self, slice: u64) {
        let guess = self.model.predict(slice, self.slots.len());
        self.slots.prefetch(guess);
        if TO_CHANGE {
            self.slots.prefetch_to_change(guess);
        }
    }

    /// Slots in use.
    pub(super) fn len(&self) -> usize {
        self.work.used.load(Ordering::Relaxed) as usize
    }

    /// Bytes of DRAM that are its own.
    pub(super) fn bytes(&self) -> usize {
        self.slots.bytes() + self.model.bytes()
    }

    /// Adds a slice. The caller holds the lock.
    pub(super) fn insert(&self, slice: u64, word: u64) -> Inserted {
        let (slots, used) = (&self.slots, self.len());
        let guess = self.model.predict(slice, slots.len());
        let above = match slice {
            u64::MAX => slots.used_up_to(slots.len() - 1).map_or(0, |last| last + 1),
            _ => slots.above(slice, guess),
        };
        if above.checked_sub(1).is_some_and(|at| slots.slice(at) == slice && slots.is_used(at)) {
            return Inserted::Present;
        }
        let next = slots.used_from(above.min(slots.len() - 1)).filter(|at| *at >= above);
        let is_last = next.is_none();
        let is_first = !is_last && (above == 0 || slots.used_up_to(above - 1).is_none());
        let has_outer_gap = is_last && above < slots.len() || is_first && above > 0;
        let is_full = used >= slots.len() * FULL.0 / FULL.1;
        if used == slots.len() || is_full && !has_outer_gap {
            return Inserted::Full;
        }
        let end = next.unwrap_or(slots.len());
        if end > above {
            // Gaps of its own: the one where it will be looked for.
            let at = guess.clamp(above, end - 1);
            if slice == u64::MAX && !twin!(GapsKeepSlice) {
                // Nothing may be lower behind it.
                self.version.mark();
                slots.set_gaps(above..end, slice);
            } else if at > above {
                self.version.mark();
                slots.set_gaps(above..at, slice);
            }
            slots.fill(at, slice, word);
        } else if above > 0 && !slots.is_used(above - 1) {
            slots.fill(above - 1, slice, word);
        } else {
            let (left, right) = (
                above.checked_sub(1).and_then(|at| slots.gap_up_to(at)),
                slots.gap_from(above.min(slots.len() - 1)),
            );
            // The gaps are where keys have gone, as behind those of a queue.
            let is_far = |gap: Option<usize>| gap.is_none_or(|gap| gap.abs_diff(above) > FAR);
            if (is_last || is_first) && self.is_thin() && is_far(left) && is_far(right) {
                return Inserted::Full;
            }
            self.version.mark();
            let to_right = match (left, right) {
                (Some(left), Some(right)) => right - above < above - left,
                (left, _) => left.is_none(),
            };
            let (from, gap) = match to_right {
                true => (above, right.expect("a gap is left")),
                false => (above - 1, left.expect("a gap is left")),
            };
            slots.shift(from, gap);
            slots.fill(from, slice, word);
            add_to_sum(&self.work.shifts, from.abs_diff(gap));
        }
        let Work { used, inserts, right, left, steps: all_steps, .. } = &self.work;
        add_to(used, 1);
        add_to(inserts, 1);
        add_to(right, is_last.into());
        add_to(left, is_first.into());
        // No model foretells a key outside of all others.
        if !has_outer_gap {
            add_to_sum(all_steps, steps(above.abs_diff(guess)));
        }
        Inserted::Done
    }

    /// Makes a slot a gap, whose word has been taken out. The caller holds the lock.
    pub(super) fn remove(&self, at: usize) {
        add_to(&self.work.used, -1);
        self.slots.clear(at);
    }

    /// Whether so much was moved since it was built that another shape is due.
    pub(super) fn is_costly(&self) -> bool {
        let (inserts, shifts) = (self.inserts(), self.work.shifts.load(Ordering::Relaxed));
        inserts > 0 && inserts % 64 == 0 && shifts > 100 * inserts
    }

    fn inserts(&self) -> u64 {
        self.work.inserts.load(Ordering::Relaxed).into()
    }

    /// Whether searches and inserts cost what they were to cost.
    pub(super) fn is_as_built(&self) -> bool {
        let (steps, shifts) =
            (self.work.steps.load(Ordering::Relaxed), self.work.shifts.load(Ordering::Relaxed));
        let measured = cost(steps as f64, shifts as f64, self.inserts() as f64);
        measured <= 1.5 * f64::from(self.built) + 40.0
    }

    /// The cost of a search when it was built.
    pub(super) fn built(&self) -> f32 {
        self.built
    }

    /// Whether so many keys have gone from it that it has fewer slots when it is built anew, if keys do not
    /// arrive in order.
    pub(super) fn is_thin(&self) -> bool {
        5 * self.len() <= 3 * self.slots.len()
    }

    /// Whether its model has a list.
    pub(super) fn is_sorted(&self) -> bool {
        self.model.is_sorted()
    }

    /// Where keys have arrived.
    pub(super) fn room(&self) -> Room {
        let is_most = |some: &AtomicU32| u64::from(some.load(Ordering::Relaxed)) > self.inserts() * 9 / 10;
        match (is_most(&self.work.right), is_most(&self.work.left)) {
            (true, _) => Room::Right,
            (_, true) => Room::Left,
            _ => Room::Evenly,
        }
    }

    /// The slots in use, in order, for the holder of the lock.
    fn used(&self) -> impl Iterator<Item = usize> {
        let mut next = 0;
        std::iter::from_fn(move || {
            let used = self.slots.used_from(next)?;
            next = used + 1;
            Some(used)
        })
    }

    /// The slices, in order. The caller holds the lock.
    pub(super) fn keys(&self) -> Vec<u64> {
        self.used().map(|at| self.slots.slice(at)).collect()
    }

    /// The words, in order. The caller has the leaf alone.
    pub(super) fn words(&self) -> impl Iterator<Item = u64> {
        self.used().map(|at| self.slots.word(at))
    }

    /// Adds up to `limit` slices from this one on, or down from it, each with its word. All that it adds
    /// belongs together if the leaf has not changed meanwhile.
    pub(super) fn copy<const BACK: bool>(
        &self,
        from: u64,
        is_included: bool,
        limit: usize,
        out: &mut Vec<(Step, u64)>,
    ) {
        let slots = &self.slots;
        let above = slots.above(from, self.model.predict(from, slots.len()));
        let is_due = |slice| if slice == from { is_included } else { (slice > from) != BACK };
        let mut next = match (BACK, from) {
            (true, _) => above.checked_sub(1),
            // The last slot with this slice has its word; the highest slice stands before gaps that have it
            // too.
            (_, u64::MAX) => Some(0),
            _ => Some(above.saturating_sub(1)),
        };
        while let Some(at) = next {
            let both = slots.both(at);
            let is_gap = both.is_none();
            if let Some((slice, Found { word, .. })) = both
                && is_due(slice)
            {
                note::<BACK>(out, slice, word);
                if out.len() >= limit {
                    return;
                }
            }
            // A leaf whose keys have gone has many gaps side by side. A word that was seen before is not
            // passed: its slot was in use before it had the word.
            next = match BACK {
                true => at.checked_sub(1),
                false => Some(at + 1).filter(|at| *at < slots.len()),
            };
            if is_gap {
                let beyond = |at| if BACK { slots.used_up_to(at) } else { slots.used_from(at) };
                next = next.and_then(beyond);
            }
        }
    }

    /// Takes all entries out, in order. The caller holds the lock; the leaf will leave the tree.
    pub(super) fn take_all(&self) -> Vec<Entry> {
        self.version.mark();
        let mut entries = Vec::with_capacity(self.len());
        entries.extend(self.used().map(|at| (self.slots.slice(at), self.slots.take(at))));
        entries
    }
}

/// Adds a slot that a walk meets to what it has met, each slice once.
fn note<const BACK: bool>(met: &mut Vec<(Step, u64)>, slice: u64, word: u64) {
    match met.last_mut() {
        // A key that went and came back, to a slot behind its old one, was met already: neither change is of
        // more than one slot, and so neither is marked.
        Some((Step::Slice(last), met)) if *last == slice => *met = word,
        // The same, and the one that was met in between has gone.
        Some((Step::Slice(last), _)) if (slice < *last) != BACK => {}
        _ => met.push((Step::Slice(slice), word)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met<const BACK: bool>(slots: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let mut met = Vec::new();
        slots.iter().for_each(|(slice, word)| note::<BACK>(&mut met, *slice, *word));
        let slice = |step: &Step| match step {
            Step::Slice(slice) => *slice,
            _ => unreachable!("slices alone were met"),
        };
        met.iter().map(|(step, word)| (slice(step), *word)).collect()
    }

    #[test]
    fn a_key_that_comes_back_behind_its_old_slot_is_met_once() {
        assert_eq!(met::<false>(&[(5, 1), (5, 2), (7, 3)]), [(5, 2), (7, 3)]);
        assert_eq!(met::<true>(&[(7, 3), (5, 1), (5, 2)]), [(7, 3), (5, 2)]);
    }

    #[test]
    fn it_is_met_once_where_another_was_met_in_between() {
        assert_eq!(met::<false>(&[(5, 1), (7, 3), (5, 2), (9, 4)]), [(5, 1), (7, 3), (9, 4)]);
        assert_eq!(met::<true>(&[(7, 3), (5, 1), (7, 2), (2, 4)]), [(7, 3), (5, 1), (2, 4)]);
    }
}
