//! Splits: of a border node for which there is one key too many, and of the inner nodes above, as far up as
//! they are full (EuroSys'12, section 4.6.4).
//!
//! A node that splits keeps its lower part, and the new node to its right is known to nobody until the parent
//! names it. Locks are taken upwards and given back when the next higher one is held, so a reader that comes
//! by the parent waits there, and a reader that came by before begins again.

use super::border::Entry;
use super::inner::KEYS;
use super::nodes::Link;
use super::permutation::{Permutation, SLOTS};
use super::tree::Masstree;
use crate::epoch::Guard;
use crate::sync::atomic::Ordering;

/// Where a full node is divided: so many of its keys and the new one stay, which is `added` in their order.
///
/// Keys of one slice stay together, since the nodes above tell slices apart and no more. A node has at most
/// ten of those, one for each length and one that goes on, so there is a place. It is the one nearest to the
/// middle, except for keys that come in ascending order, which leave full nodes behind.
fn division(slices: &[u64; SLOTS + 1], added: usize, is_last: bool) -> usize {
    let divides = |at: &usize| slices[*at - 1] != slices[*at];
    if is_last && added == SLOTS && divides(&SLOTS) {
        return SLOTS;
    }
    let middle = slices.len() / 2;
    (1..slices.len()).filter(divides).min_by_key(|at| at.abs_diff(middle)).unwrap_or(middle)
}

impl Masstree {
    /// Splits a full and locked border node and adds an entry to one of the halves. Unlocks the node.
    #[cold]
    pub(super) fn split(&self, guard: &Guard<'_>, number: u32, added: &Entry<'_>) {
        self.splits.fetch_add(1, Ordering::Relaxed);
        let border = self.nodes.border(number);
        let slots = border.permutation();
        let rank = border.rank(slots, added.order());
        let shorts = self.nodes.shorts(number);
        // The entries in their order, the new one among them.
        let entry = |at: usize| match at.cmp(&rank) {
            std::cmp::Ordering::Less => border.entry(shorts, guard, slots.slot(at)),
            std::cmp::Ordering::Equal => *added,
            std::cmp::Ordering::Greater => border.entry(shorts, guard, slots.slot(at - 1)),
        };
        let entries: [Entry<'_>; SLOTS + 1] = std::array::from_fn(entry);
        let next = border.next.load(Ordering::Relaxed);
        let at = division(&entries.map(|entry| entry.slice), rank, next == 0);

        let (right_number, right) = self.nodes.new_border();
        right.version.mark_splitting();
        if border.version.is_in_first_layer() {
            right.version.set_in_first_layer();
        }
        right.fill(&self.nodes, right_number, &entries[at..]);
        right.next.store(next, Ordering::Relaxed);
        right.prev.store(number, Ordering::Relaxed);

        border.mark_splitting();
        let staying = if rank < at { at - 1 } else { at };
        border.publish(Permutation::of((0..staying).map(|rank| slots.slot(rank))));
        let replaced = if rank < at { border.insert(&self.nodes, number, guard, added) } else { None };
        let unused = border.drop_suffixes(guard);
        if next != 0 {
            self.nodes.border(next).prev.store(right_number, Ordering::Release);
        }
        border.next.store(right_number, Ordering::Release);

        self.add_child(Link::border(number), entries[at].slice, Link::border(right_number), at == SLOTS);
        self.nodes.retire_suffixes(guard, replaced);
        self.nodes.retire_suffixes(guard, unused);
    }

    /// Tells the nodes above `left` that its slices from `slice` on are now those of `right`. Both are
    /// locked, marked and then unlocked. With `ascending`, inner nodes that split stay full too.
    fn add_child(&self, left: Link, slice: u64, right: Link, ascending: bool) {
        let (mut left, mut slice, mut right) = (left, slice, right);
        loop {
            let (left_version, right_version) = (self.nodes.version(left), self.nodes.version(right));
            let Some(parent) = self.lock_parent(left) else {
                self.add_root(left, slice, right);
                return;
            };
            let inner = self.nodes.inner(parent);
            let rank = inner.rank_of(left).unwrap_or_default();
            if inner.len() < KEYS {
                inner.version.mark_inserting();
                inner.insert(rank, slice, right);
                self.nodes.parent(right).store(parent.bits(), Ordering::Release);
                right_version.unlock();
                left_version.unlock();
                inner.version.unlock();
                return;
            }
            inner.version.mark_splitting();
            let (raised, sibling) = self.split_inner(parent, rank, slice, right, ascending);
            right_version.unlock();
            left_version.unlock();
            (left, slice, right) = (parent, raised, sibling);
        }
    }

    /// Splits a full inner node, locked and marked, to which `right` is added behind the child at `rank`;
    /// returns the key between the halves and the new one, locked and marked.
    fn split_inner(&self, node: Link, rank: usize, slice: u64, right: Link, ascending: bool) -> (u64, Link) {
        self.splits.fetch_add(1, Ordering::Relaxed);
        let inner = self.nodes.inner(node);
        let keys: [u64; KEYS + 1] = std::array::from_fn(|at| match at.cmp(&rank) {
            std::cmp::Ordering::Less => inner.key(at),
            std::cmp::Ordering::Equal => slice,
            std::cmp::Ordering::Greater => inner.key(at - 1),
        });
        let children: [Link; KEYS + 2] = std::array::from_fn(|at| match at.cmp(&(rank + 1)) {
            std::cmp::Ordering::Less => inner.child(at),
            std::cmp::Ordering::Equal => right,
            std::cmp::Ordering::Greater => inner.child(at - 1),
        });
        let middle = if ascending && rank == KEYS { KEYS - 1 } else { keys.len() / 2 };
        let parent = Link::from_bits(inner.parent.load(Ordering::Relaxed));
        let (sibling, new) = self.nodes.new_inner(parent, &keys[middle + 1..], &children[middle + 1..]);
        new.version.mark_splitting();
        for child in &children[middle + 1..] {
            self.nodes.parent(*child).store(sibling.bits(), Ordering::Release);
        }
        if rank < middle {
            self.nodes.parent(right).store(node.bits(), Ordering::Release);
        }
        inner.set(&keys[..middle], &children[..=middle]);
        (keys[middle], sibling)
    }

    /// Puts a root above two halves of one, which are locked, marked and then unlocked.
    fn add_root(&self, left: Link, slice: u64, right: Link) {
        let (root, inner) = self.nodes.new_inner(Link::NONE, &[slice], &[left, right]);
        inner.version.set_root(true);
        for half in [left, right] {
            self.nodes.parent(half).store(root.bits(), Ordering::Release);
            self.nodes.version(half).set_root(false);
        }
        // The index names the first layer's root; links name others, which the next writer that passes sets
        // right.
        if self.root.load(Ordering::Relaxed) == left.bits() {
            self.root.store(root.bits(), Ordering::Release);
        }
        self.nodes.version(right).unlock();
        self.nodes.version(left).unlock();
        // Last: until then nobody puts another root above this one.
        inner.version.unlock();
    }
}
