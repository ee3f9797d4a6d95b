//! New nodes for entries in order: a leaf if they fit one and their slices are nearly on a line, or an inner
//! node over several.

use super::leaf::{Entry, Form, LEAST_SLOTS, Leaf, Room};
use super::memory::Memory;
use super::model::Division;
use super::node::{Inner, Node, Route};
use super::tree::drop_below;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Of so many slots of a new leaf, this number is in use: so a leaf is full twice before it has twice its
/// entries and is cut.
const DENSITY: (usize, usize) = (7, 11);
/// The most that a search may cost in a leaf that is larger: eight doublings. Behind a first miss of the
/// cache they cost less than a deeper tree.
const CHEAP: f32 = 160.0;
/// The cost of another level.
const LEVEL: f32 = 20.0;
/// Entries of a child of a new inner node, of which several may be one node.
const ENTRIES_OF_A_CHILD: usize = 64;
/// Children of a new inner node that divides by sorted slices.
const SORTED: usize = 16;

/// Nodes that are not in a tree yet, and what a search in them costs.
pub(super) struct Built {
    pub(super) node: Box<Node>,
    cost: f32,
}

/// How large leaves become, and where.
pub(super) struct Builder {
    /// Slots of the largest leaf.
    pub(super) most_slots: usize,
    pub(super) memory: Arc<Memory>,
}

/// Slots of a new leaf of so many entries.
pub(super) fn slots_for(entries: usize) -> usize {
    entries * DENSITY.1 / DENSITY.0 + 1
}

/// The part of entries that are below a slice.
pub(super) fn below(entries: &[Entry], slice: u64) -> usize {
    entries.partition_point(|(other, _)| *other < slice)
}

impl Builder {
    /// For leaves of so many slots at most.
    pub(super) fn new(most_slots: usize, memory: Memory) -> Builder {
        Builder { most_slots, memory: Arc::new(memory) }
    }

    /// Entries of the largest new leaf.
    pub(super) fn most(&self) -> usize {
        self.most_slots * DENSITY.0 / DENSITY.1
    }

    /// Slots of a new leaf of so many entries, if leaves can have as many. Where keys arrive in order, it has
    /// room for as many again.
    pub(super) fn slots_for(&self, entries: usize, room: Room) -> usize {
        if room == Room::Evenly { slots_for(entries) } else { (entries * 2).min(self.most_slots) }
    }

    /// A child of a new inner node has this number at least, unless there is nowhere to cut.
    fn few(&self) -> usize {
        self.most() / 4
    }

    /// Leaves of fewer entries are not divided for the sake of searches.
    pub(super) fn small(&self) -> usize {
        self.most_slots / 32
    }

    /// A leaf of these entries, in order, with about so many slots.
    pub(super) fn leaf(
        &self,
        entries: &[Entry],
        range: RangeInclusive<u64>,
        slots: usize,
        (room, form): (Room, Form),
    ) -> Leaf {
        Leaf::build(
            entries,
            range,
            slots.clamp(LEAST_SLOTS, self.most_slots).max(entries.len()),
            (room, form),
            &self.memory,
        )
    }

    /// Nodes for these entries, in order, and for all slices of the range.
    pub(super) fn build(&self, entries: &[Entry], range: RangeInclusive<u64>) -> Built {
        let n = entries.len();
        if n > self.most() {
            return self.build_inner(entries, range, false);
        }
        let leaf = self.leaf(entries, range.clone(), slots_for(n), (Room::Evenly, Form::Cheapest));
        let cost = leaf.built();
        if n >= self.small() && cost > CHEAP {
            let inner = self.build_inner(entries, range, false);
            if inner.cost < cost {
                return inner;
            }
            // SAFETY: nobody has seen these nodes.
            unsafe { drop_below(Box::into_raw(inner.node)) };
        }
        Built { node: Box::new(Node::Leaf(leaf)), cost }
    }

    /// An inner node for these entries, two at least, and for all slices of the range. Where keys rise or
    /// fall, more of them come to one end: it `is_sorted`, so that it can be given children there.
    pub(super) fn build_inner(
        &self,
        entries: &[Entry],
        range: RangeInclusive<u64>,
        is_sorted: bool,
    ) -> Built {
        let n = entries.len();
        let equal = if is_sorted { None } else { self.equal_division(entries) };
        let groups = equal.map(Route::Equal).and_then(|route| {
            let groups = groups_of(&route, entries, self.few())?;
            Some((route, groups))
        });
        let (route, groups) = groups.unwrap_or_else(|| {
            let firsts: Box<[u64]> =
                (1..SORTED.min(n)).map(|part| entries[part * n / SORTED.min(n)].0).collect();
            let route = Route::Sorted(firsts);
            let bounds = (1..route.children())
                .map(|child| route.first_of(child).map_or(n, |first| below(entries, first)));
            let groups = bounds.chain([n]).enumerate().map(|(child, end)| (child + 1, end)).collect();
            (route, groups)
        });
        let mut children = Vec::with_capacity(route.children());
        let (mut begin, mut first, mut cost) = (0, *range.start(), 0.0);
        for (child, end) in groups {
            let next = if child == route.children() { None } else { route.first_of(child) };
            let last = next.map_or(*range.end(), |next| next - 1);
            let built = self.build(&entries[begin..end], first..=last);
            cost += built.cost * (end - begin) as f32;
            let node = Box::into_raw(built.node);
            children.resize(child, node);
            (begin, first) = (end, next.unwrap_or(u64::MAX));
        }
        let node = Node::Inner(Inner::new(route, range, children.into_iter()));
        Built { node: Box::new(node), cost: cost / n as f32 + LEVEL }
    }

    /// A division of nearly all entries among as many children as they fill.
    fn equal_division(&self, entries: &[Entry]) -> Option<Division> {
        let n = entries.len();
        let (low, high) = (entries[n / 64].0, entries[n - 1 - n / 64].0);
        // Fine, so that groups of neighbours have as many entries as they are to have.
        let children = (n / ENTRIES_OF_A_CHILD).max(8) as u32;
        (u64::from(children) <= high - low).then(|| Division::of(low..=high, children))
    }
}

/// Neighbouring children of a route put together to groups with enough entries: for each group, the first
/// child and the first entry behind it. Nothing if nearly all entries are in one.
fn groups_of(route: &Route, entries: &[Entry], few: usize) -> Option<Vec<(usize, usize)>> {
    let (n, few) = (entries.len(), few.min(entries.len() / 4));
    let (mut groups, mut begin) = (Vec::new(), 0);
    for child in 1..=route.children() {
        let is_last = child == route.children();
        let first = if is_last { None } else { route.first_of(child) };
        if !is_last && first.is_none() {
            return None;
        }
        let end = first.map_or(n, |first| begin + below(&entries[begin..], first));
        if end - begin >= few || is_last {
            if end - begin > n / 8 * 7 {
                return None;
            }
            groups.push((child, end));
            begin = end;
        }
    }
    Some(groups)
}
