//! A run: the keys that a walk takes from a border node at once, copied at one moment.
//!
//! The words of the run, the permutation, and the entry of the last key are copied, and then the version
//! proves all of them. The last key says how far the walk has come. So a walk that tells words reads the
//! suffix of one key a node, and builds no other key. A walk that tells keys copies each entry.

use super::border::{Border, Entry, LAYER};
use super::permutation::SLOTS;
use super::short::Shorts;
use super::tree::Masstree;
use super::version::Seen;
use crate::epoch::Guard;
use crate::sync::atomic::Ordering;

/// A border node at which a walk is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    pub(super) number: u32,
    pub(super) seen: Seen,
    pub(super) offset: usize,
}

/// That which a walk tells of a key: its word, or its whole entry.
pub(super) trait Told<'g>: Copy {
    /// Of no key.
    const NONE: Self;

    /// That of a slot, if its key is still there.
    fn read(border: &Border, shorts: Shorts<'_>, guard: &'g Guard<'_>, slot: usize) -> Option<Self>;

    /// The whole entry of that slot, if its key is still there.
    fn entry(
        self,
        border: &Border,
        shorts: Shorts<'_>,
        guard: &'g Guard<'_>,
        slot: usize,
    ) -> Option<Entry<'g>>;
}

impl<'g> Told<'g> for u64 {
    const NONE: u64 = 0;

    #[inline(always)]
    fn read(border: &Border, _: Shorts<'_>, _: &'g Guard<'_>, slot: usize) -> Option<u64> {
        Some(border.word(slot))
    }

    #[inline(always)]
    fn entry(
        self,
        border: &Border,
        shorts: Shorts<'_>,
        guard: &'g Guard<'_>,
        slot: usize,
    ) -> Option<Entry<'g>> {
        Some(border.entry(shorts, guard, slot)).filter(Entry::is_whole)
    }
}

impl<'g> Told<'g> for Entry<'g> {
    const NONE: Entry<'g> = Entry::NONE;

    #[inline(always)]
    fn read(border: &Border, shorts: Shorts<'_>, guard: &'g Guard<'_>, slot: usize) -> Option<Entry<'g>> {
        Some(border.entry(shorts, guard, slot)).filter(Entry::is_whole)
    }

    #[inline(always)]
    fn entry(self, _: &Border, _: Shorts<'_>, _: &'g Guard<'_>, _: usize) -> Option<Entry<'g>> {
        Some(self)
    }
}

/// A run of the keys of a border node, in the order of the walk, up to a link or to the most that the walk
/// takes.
pub(super) struct Run<'g, T> {
    told: [T; SLOTS],
    keys: usize,
    /// The entry of the last key.
    pub(super) last: Option<Entry<'g>>,
    /// The link at which it ends.
    pub(super) layer: Option<Entry<'g>>,
    /// The node on the right.
    pub(super) next: u32,
}

impl<T: Copy> Run<'_, T> {
    /// The words or entries to be told.
    #[inline]
    pub(super) fn told(&self) -> &[T] {
        self.told.get(..self.keys).unwrap_or(&self.told)
    }
}

impl Masstree {
    /// The keys of a node from the first one on whose slot the walk awaits, `most` at most; with `BACK`,
    /// against their order. Nothing if the node is no longer as it was seen, or if the last key is being
    /// removed: then the walk looks for its place again.
    #[inline(always)]
    pub(super) fn run<'g, T: Told<'g>, const BACK: bool>(
        &self,
        guard: &'g Guard<'_>,
        stop: &Stop,
        most: usize,
        awaits: impl Fn(&Border, Shorts<'_>, usize) -> bool,
    ) -> Option<Run<'g, T>> {
        let (border, shorts) = (self.nodes.border(stop.number), self.nodes.shorts(stop.number));
        let slots = border.permutation();
        let len = slots.len();
        let slot_at = |at: usize| slots.slot(if BACK { len - 1 - at } else { at });
        let first = (0..len).find(|at| awaits(border, shorts, slot_at(*at))).unwrap_or(len);
        let (mut told, mut keys, mut at, mut last) = ([T::NONE; SLOTS], 0, first, None);
        let mut layer = None;
        while at < len && keys < most {
            let slot = slot_at(at);
            if border.class(slot) == LAYER {
                layer = Some(border.entry(shorts, guard, slot));
                break;
            }
            if let Some(read) = T::read(border, shorts, guard, slot) {
                (told[keys], last) = (read, Some((read, slot)));
                keys += 1;
            }
            at += 1;
        }
        let last = match last {
            Some((read, slot)) => Some(read.entry(border, shorts, guard, slot)?),
            None => None,
        };
        let next = border.next.load(Ordering::Acquire);
        if border.version.has_changed(stop.seen) {
            return None;
        }
        Some(Run { told, keys, last, layer, next })
    }

    /// Asks for the lines of the next node of a walk, and for those of its short suffixes if this node has
    /// some.
    #[inline]
    pub(super) fn prefetch_next(&self, border: &Border, next: u32) {
        self.nodes.prefetch_border(self.nodes.border(next), next, border.has_shorts());
    }

    /// A stop at this node as it is now.
    #[inline]
    pub(super) fn stop(&self, number: u32, offset: usize) -> Stop {
        Stop { number, seen: self.nodes.border(number).version.stable(), offset }
    }
}
