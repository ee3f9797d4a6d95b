//! A leaf without room for another key is built anew: larger, or as several.
//!
//! Its writer holds the lock of the leaf, takes that of its parent, and where that is to have more children,
//! that of the grandparent: always upwards. Then it takes the words out, which makes readers wait, and
//! builds new leaves of them. Children lead to these before the old leaf says that it has left.

use super::build::{Builder, below};
use super::leaf::{Entry, Form, Leaf, Room};
use super::model::Division;
use super::node::{Inner, Node, Route};
use super::tree::{Size, Tree, counted, drop_node};
use crate::epoch::Guard;
use crate::sync::atomic::Ordering;
use crate::sync::{SpinGuard, Waiter};
use crate::twin;
use std::ops::{Range, RangeInclusive};

/// Children of the largest inner node.
const MOST_CHILDREN: usize = 1 << 21;

/// Children of the largest inner node that divides by sorted slices.
const MOST_SORTED: usize = 2048;
/// So many children may be one node, on average: otherwise one key far from all others would double them up
/// to the end.
const CHILDREN_OF_A_NODE: usize = 32;

/// The place that names a node, locked.
pub(super) enum Parent<'p> {
    Root(SpinGuard<'p, ()>),
    Inner(*mut Node, &'p Inner),
}

impl Parent<'_> {
    pub(super) fn unlock(self) {
        match self {
            Parent::Root(lock) => drop(lock),
            Parent::Inner(_, inner) => inner.version.unlock(),
        }
    }
}

/// An inner node with more children, in place of another one.
struct Longer {
    route: Route,
    children: Vec<*mut Node>,
    /// The children that a leaf is now.
    numbers: Range<usize>,
    /// Where to cut the leaf.
    cut: usize,
}

/// A node on its way to the thread that drops it.
pub(super) struct Left(pub(super) *mut Node);

// SAFETY: nobody else can reach the node when it is dropped.
unsafe impl Send for Left {}

impl Tree {
    /// Builds a leaf anew, whose lock the caller holds. It leaves the tree.
    #[cold]
    pub(super) fn grow(&self, guard: &Guard<'_>, node: *mut Node, leaf: &Leaf, size: &Size) {
        size.splits.fetch_add(1, Ordering::Relaxed);
        let (n, room, first) = (leaf.len(), leaf.room(), *leaf.range.start());
        let most = size.builder.most_slots;
        let slots = size.builder.slots_for(n, room);
        let has_room = slots <= most && n < most * 3 / 4;
        let (parent, mut left) = (self.parent_of(guard, node, first), Vec::new());
        // A leaf that costs more than it was to cost is not built again as it was. It gets a list; with a
        // list, it is cut. So is one that costs what it was to cost, and that is too much. But gaps of many
        // keys that have gone are room enough.
        let (is_as_built, is_sorted) = (leaf.is_as_built(), leaf.is_sorted());
        let form = if is_as_built && !is_sorted { Form::Cheapest } else { Form::Sorted };
        let can_stay = leaf.is_thin() || if is_as_built { !leaf.is_costly() } else { !is_sorted };
        let parent = if has_room && (n < size.builder.small() || can_stay) {
            let larger = size.builder.leaf(&leaf.take_all(), leaf.range.clone(), slots, (room, form));
            self.put_in_place(&parent, node, first, counted(Box::new(Node::Leaf(larger)), size));
            parent
        } else {
            self.split(guard, (node, leaf), parent, (room, size, &mut left))
        };
        leaf.version.unlock_obsolete();
        parent.unlock();
        left.push(Left(node));
        leave(guard, left, size);
    }

    /// Puts several leaves in place of one: beside each other, if the parent can tell them apart, or below
    /// an inner node of their own.
    fn split<'g>(
        &'g self,
        guard: &'g Guard<'_>,
        (node, leaf): (*mut Node, &Leaf),
        parent: Parent<'g>,
        (room, size, left): (Room, &Size, &mut Vec<Left>),
    ) -> Parent<'g> {
        let (first, last) = (*leaf.range.start(), *leaf.range.end());
        if let Parent::Inner(own, inner) = parent {
            let (numbers, keys) = (inner.numbers_of(node, first), leaf.keys());
            let found = match cut_between(&inner.route, &numbers, &keys, room) {
                Some(cut) => Some((own, inner, numbers, cut)),
                None => longer(inner, &numbers, &keys, room).map(|longer| {
                    let (numbers, cut) = (longer.numbers.clone(), longer.cut);
                    let (own, inner) = self.lengthen(guard, (own, inner), longer, (size, left));
                    (own, inner, numbers, cut)
                }),
            };
            if let Some((own, inner, numbers, cut)) = found {
                let entries = leaf.take_all();
                let middle = inner.route.first_of(cut).expect("where a leaf is cut");
                let (left, right) = entries.split_at(below(&entries, middle));
                let left = half(&size.builder, left, first..=middle - 1, room, Room::Right);
                let right = half(&size.builder, right, middle..=last, room, Room::Left);
                inner.set(numbers.start..cut, counted(left, size));
                inner.set(cut..numbers.end, counted(right, size));
                return Parent::Inner(own, inner);
            }
            let is_sorted = room != Room::Evenly || leaf.is_sorted();
            let new = counted(size.builder.build_inner(&leaf.take_all(), first..=last, is_sorted).node, size);
            self.put_in_place(&Parent::Inner(own, inner), node, first, new);
            return Parent::Inner(own, inner);
        }
        let is_sorted = room == Room::Left || leaf.is_sorted();
        self.put_in_place(
            &parent,
            node,
            first,
            counted(size.builder.build_inner(&leaf.take_all(), first..=last, is_sorted).node, size),
        );
        parent
    }

    /// The parent of a node that its caller has locked; it is locked too.
    pub(super) fn parent_of<'g>(&'g self, _guard: &'g Guard<'_>, node: *mut Node, first: u64) -> Parent<'g> {
        let mut waiter = Waiter::default();
        loop {
            let mut above = self.root.load(Ordering::Acquire);
            if std::ptr::eq(above, node) {
                let lock = self.root_lock.lock();
                if std::ptr::eq(self.root.load(Ordering::Acquire), node) {
                    return Parent::Root(lock);
                }
                continue;
            }
            // SAFETY: nodes that were reached from the root under the guard.
            while let Node::Inner(inner) = unsafe { &*above } {
                let child = inner.child_of(first);
                if std::ptr::eq(child, node) {
                    if inner.version.lock() {
                        if std::ptr::eq(inner.child_of(first), node) {
                            return Parent::Inner(above, inner);
                        }
                        inner.version.unlock();
                    }
                    break;
                }
                above = child;
            }
            waiter.wait();
        }
    }

    /// Puts a node in the place of another one, whose parent is locked.
    pub(super) fn put_in_place(&self, parent: &Parent<'_>, old: *mut Node, first: u64, new: *mut Node) {
        match parent {
            Parent::Root(_) => self.root.store(new, Ordering::Release),
            Parent::Inner(_, inner) => inner.set(inner.numbers_of(old, first), new),
        }
    }

    /// Puts an inner node with more children in the place of a locked one, which leaves the tree. The new
    /// one is locked.
    fn lengthen<'g>(
        &'g self,
        guard: &'g Guard<'_>,
        (own, inner): (*mut Node, &'g Inner),
        longer: Longer,
        (size, left): (&Size, &mut Vec<Left>),
    ) -> (*mut Node, &'g Inner) {
        let first = *inner.range.start();
        let grandparent = self.parent_of(guard, own, first);
        let new = Inner::new(longer.route, inner.range.clone(), longer.children.into_iter());
        let is_locked = new.version.lock();
        debug_assert!(is_locked);
        let new = Box::new(Node::Inner(new));
        size.bytes.fetch_add(new.bytes() as u64, Ordering::Relaxed);
        let new = Box::into_raw(new);
        self.put_in_place(&grandparent, own, first, new);
        match twin!(ReplacedUntold) {
            false => inner.version.unlock_obsolete(),
            true => inner.version.unlock(),
        }
        grandparent.unlock();
        left.push(Left(own));
        // SAFETY: the node that has just been put into the tree, under the guard.
        match unsafe { &*new } {
            Node::Inner(inner) => (new, inner),
            Node::Leaf(_) => unreachable!("an inner node was made"),
        }
    }
}

/// Drops nodes that have left the tree, when their readers have left them. The caller holds no lock of the
/// tree.
pub(super) fn leave(guard: &Guard<'_>, left: Vec<Left>, size: &Size) {
    let mut any_is_large = false;
    for node in left {
        // SAFETY: the guard keeps the node.
        let leaving = unsafe { &*node.0 };
        size.bytes.fetch_sub(leaving.bytes() as u64, Ordering::Relaxed);
        any_is_large |= leaving.is_large();
        guard.defer(Box::new(move || {
            let Left(node) = { node };
            // SAFETY: it has left the tree, and all guards of then have gone.
            unsafe { drop_node(node) };
        }));
    }
    if any_is_large {
        // Those that left before; these wait for this guard at least.
        guard.participant().collect();
    }
}

/// One of the two leaves that another one is cut into. `outer` is where keys arrive if they do not come to
/// this one.
fn half(
    builder: &Builder,
    entries: &[Entry],
    range: RangeInclusive<u64>,
    room: Room,
    outer: Room,
) -> Box<Node> {
    let n = entries.len();
    // The larger half may be more than a new leaf has. An inner node for it would be at one end of the keys,
    // and the next run of keys there would make another one below.
    if room == Room::Evenly && n <= builder.most() {
        return builder.build(entries, range).node;
    }
    // Behind the keys that rise, and before those that fall, nothing comes any more.
    let slots = if room == outer { n * 20 / 19 } else { builder.slots_for(n, room) };
    Box::new(Node::Leaf(builder.leaf(entries, range, slots, (room, Form::Cheapest))))
}

/// The child at which to cut a leaf that is several children: the two leaves have as many keys, or all keys
/// are in the one, where they rise or fall.
fn cut_between(route: &Route, numbers: &Range<usize>, keys: &[u64], room: Room) -> Option<usize> {
    let (n, below) = (keys.len(), |cut: usize| {
        let first = route.first_of(cut)?;
        Some(keys.partition_point(|key| *key < first))
    });
    let is_inside = |cut: &usize| numbers.start < *cut && *cut < numbers.end;
    let middle = match room {
        Room::Evenly => route.child_of(keys[n / 2]),
        Room::Right => route.child_of(keys[n - 1]),
        Room::Left => route.child_of(keys[0]) + 1,
    };
    let is_fair = |cut: &usize| match (room, below(*cut)) {
        (_, None) => false,
        (Room::Evenly, Some(left)) => n / 8 <= left && left <= n - n / 8,
        (_, Some(left)) => 0 < left && left < n,
    };
    [middle, middle + 1].into_iter().filter(is_inside).find(is_fair)
}

/// One more child for an inner node, and sorted slices for all: the child with this number is cut at
/// `middle`. Neighbours that are the same child become one, so that a queue, whose leaves go at one end and
/// come at the other, needs no more of them.
fn longer_list(inner: &Inner, cut_child: usize, middle: u64) -> Option<Longer> {
    let (mut firsts, mut children, mut cut) = (Vec::new(), Vec::<*mut Node>::new(), 0);
    for child in 0..inner.route.children() {
        let node = inner.child(child);
        if children.last() == Some(&node) {
            continue;
        }
        firsts.extend(child.checked_sub(1).and_then(|_| inner.route.first_of(child)));
        children.push(node);
        if std::ptr::eq(node, inner.child(cut_child)) {
            firsts.push(middle);
            children.push(node);
            cut = children.len() - 1;
        }
    }
    let is_short = children.len() <= MOST_SORTED;
    is_short.then(|| Longer { route: Route::Sorted(firsts.into()), children, numbers: cut - 1..cut + 1, cut })
}

/// More children for an inner node, so that a leaf can be cut.
///
/// The outer leaves of equal shares have all keys beyond these. A run of keys far beyond would make one an
/// inner node, a run beyond that run the outer leaf of it, and so on. So the shares become a list there, if
/// that has room for many more. Otherwise the inner node does, to which the leaf turns.
fn longer(inner: &Inner, numbers: &Range<usize>, keys: &[u64], room: Room) -> Option<Longer> {
    if let Route::Equal(division) = &inner.route {
        let is_outer = numbers.start == 0 || numbers.end == inner.route.children();
        let becomes_list = is_outer && inner.nodes().count() <= MOST_SORTED / 4;
        let longer = more_shares(inner, division, numbers, keys, room);
        if longer.is_some() || !becomes_list {
            return longer;
        }
    }
    let middle = match room {
        Room::Evenly => keys.len() / 2,
        Room::Right => keys.len() - 1,
        Room::Left => 1,
    };
    longer_list(inner, numbers.start, keys[middle])
}

/// Twice the equal shares, behind the others, before them, or between.
fn more_shares(
    inner: &Inner,
    division: &Division,
    numbers: &Range<usize>,
    keys: &[u64],
    room: Room,
) -> Option<Longer> {
    let (start, end, children) = (numbers.start, numbers.end, inner.route.children());
    if 2 * children > MOST_CHILDREN.min(inner.nodes().count() * CHILDREN_OF_A_NODE) {
        return None;
    }
    let behind =
        division.extended().filter(|_| end == children).map(|longer| (longer, 0, start..2 * children));
    let before = division
        .extended_to_left()
        .filter(|_| start == 0)
        .map(|longer| (longer, children, 0..end + children));
    let between = division.doubled().map(|longer| (longer, 0, 2 * start..2 * end));
    [behind, before, between].into_iter().flatten().find_map(|(longer, shift, numbers)| {
        let route = Route::Equal(longer);
        let cut = cut_between(&route, &numbers, keys, room)?;
        let is_doubled = Some(longer) == division.doubled();
        let old = |child: usize| match is_doubled {
            true => child / 2,
            false => child.saturating_sub(shift).min(children - 1),
        };
        let children = (0..2 * children).map(|child| inner.child(old(child))).collect();
        Some(Longer { route, children, numbers, cut })
    })
}
