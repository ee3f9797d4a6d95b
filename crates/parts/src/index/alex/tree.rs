//! The tree of one layer: from slices to words.

use super::build::Builder;
use super::key::{Step, Target, target};
use super::leaf::{Entry, Inserted, Leaf};
use super::node::Node;
use super::slots::Found;
use crate::epoch::Guard;
use crate::sync::SpinLock;
use crate::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use crate::twin;

/// Copies of a leaf that change meanwhile, before it is locked for the next one.
const PATIENCE: u32 = 3;

/// The size of an index, and its work so far.
pub(super) struct Size {
    pub(super) builder: Builder,
    pub(super) bytes: AtomicU64,
    /// Leaves that were built anew, and arrays of layers that became trees.
    pub(super) splits: AtomicU64,
    /// Records whose keys were asked for, and those of them whose keys were not those of their slots.
    pub(super) records_read: AtomicU64,
    pub(super) strays: AtomicU64,
}

impl Size {
    /// The size of nothing.
    pub(super) fn of(builder: Builder) -> Size {
        let [bytes, splits, records_read, strays] = [const { 0u64 }; 4].map(AtomicU64::new);
        Size { builder, bytes, splits, records_read, strays }
    }
}

/// A tree of slices with words other than 0, of which no two are the same.
pub(super) struct Tree {
    pub(super) root: AtomicPtr<Node>,
    /// Held by whoever changes the root.
    pub(super) root_lock: SpinLock<()>,
    /// Not 0 if its slices stand elsewhere by now. Its root is a leaf that has left.
    gone: AtomicU32,
}

impl Tree {
    /// A tree of these entries, in order.
    pub(super) fn new(entries: &[Entry], size: &Size) -> Tree {
        let root = counted(size.builder.build(entries, 0..=u64::MAX).node, size);
        Tree { root: AtomicPtr::new(root), root_lock: SpinLock::new(()), gone: AtomicU32::new(0) }
    }

    /// Whether its slices stand elsewhere by now, or will at once. Nobody finds, adds or removes any here.
    pub(super) fn has_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire) != 0
    }

    /// Says that its slices will stand elsewhere. The caller has locked its only leaf, which will leave.
    pub(super) fn go(&self, size: &Size) {
        self.gone.store(1, Ordering::Release);
        // SAFETY: the root, which its lock keeps in the tree.
        let root = unsafe { &*self.root.load(Ordering::Acquire) };
        size.bytes.fetch_sub(root.bytes() as u64, Ordering::Relaxed);
    }

    /// Its only leaf, locked, if it has no other node.
    pub(super) fn lock_only_leaf<'g>(&'g self, _guard: &'g Guard<'_>) -> Option<&'g Leaf> {
        loop {
            // SAFETY: the root is a node of `Box::into_raw`. One that leaves the tree is dropped when all
            // guards of that moment have gone.
            let Node::Leaf(leaf) = (unsafe { &*self.root.load(Ordering::Acquire) }) else { return None };
            if leaf.version.lock() {
                return Some(leaf);
            }
        }
    }

    /// Whether it has so few slices that they fit an array, as far as can be seen without a lock.
    pub(super) fn has_few(&self, _guard: &Guard<'_>, few: usize) -> bool {
        // SAFETY: as for `lock_only_leaf`.
        let root = unsafe { &*self.root.load(Ordering::Acquire) };
        matches!(root, Node::Leaf(leaf) if leaf.len() <= few)
    }

    /// The leaf for a slice.
    #[inline]
    pub(super) fn leaf<'g>(&'g self, _guard: &'g Guard<'_>, slice: u64) -> (*mut Node, &'g Leaf) {
        let mut node = self.root.load(Ordering::Acquire);
        loop {
            // SAFETY: the root and all children are nodes of `Box::into_raw`. One that leaves the tree is
            // dropped when all guards of that moment have gone, and this guard is older than the load.
            match unsafe { &*node } {
                Node::Inner(inner) => node = inner.child_of(slice),
                Node::Leaf(leaf) => return (node, leaf),
            }
        }
    }

    /// The word of a slice, as it was at one moment. With `TO_CHANGE`, also prefetches the lines that a
    /// change needs.
    #[inline]
    pub(super) fn find<'g, const TO_CHANGE: bool>(
        &'g self,
        guard: &'g Guard<'_>,
        slice: u64,
    ) -> Option<Found<'g>> {
        loop {
            let (_, leaf) = self.leaf(guard, slice);
            let seen = leaf.version.stable();
            // A slot that another key has taken meanwhile has that key's slice, and this one's was absent.
            let both = leaf.find::<TO_CHANGE>(slice).and_then(|at| leaf.slots.both(at));
            let found = both.filter(|(stands, _)| *stands == slice);
            if !leaf.version.has_changed(seen) && !seen.is_obsolete() {
                return found.map(|(_, found)| found);
            }
            if self.has_gone() {
                return None;
            }
        }
    }

    /// Adds a slice; `false` if it is there, or the tree has gone.
    pub(super) fn insert(&self, guard: &Guard<'_>, slice: u64, word: u64, size: &Size) -> bool {
        loop {
            let (node, leaf) = self.leaf(guard, slice);
            if !leaf.version.lock() {
                if self.has_gone() {
                    return false;
                }
                continue;
            }
            match leaf.insert(slice, word) {
                Inserted::Present => {
                    leaf.version.unlock();
                    return false;
                }
                Inserted::Full => self.grow(guard, node, leaf, size),
                Inserted::Done => {
                    let is_costly = leaf.is_costly();
                    leaf.version.unlock();
                    // Readers do not wait for the locks that this needs.
                    if is_costly && leaf.version.lock() {
                        self.grow(guard, node, leaf, size);
                    }
                    return true;
                }
            }
        }
    }

    /// Removes a slice if it still has this word.
    pub(super) fn remove(&self, guard: &Guard<'_>, slice: u64, word: u64, size: &Size) -> bool {
        while !self.has_gone() {
            let (node, leaf) = self.leaf(guard, slice);
            if leaf.version.lock() {
                let is_it = |at: &usize| {
                    let found = leaf.slots.found(*at);
                    (found.word == word || twin!(AnyWordRemoved)) && found.exchange(0)
                };
                let at = leaf.find::<false>(slice).filter(is_it);
                at.into_iter().for_each(|at| leaf.remove(at));
                let is_sparse = at.is_some() && leaf.is_sparse();
                leaf.version.unlock();
                let is_root = || std::ptr::eq(self.root.load(Ordering::Relaxed), node);
                if is_sparse && (leaf.can_shrink() || !is_root()) {
                    self.contract(guard, slice, size);
                }
                return at.is_some();
            }
        }
        false
    }

    /// Adds up to `limit` slices behind `from`, or before it, each with its word; the first or last ones, if
    /// there is no `from`. Nothing is added at the end alone, and if the tree has gone.
    pub(super) fn copy<const BACK: bool>(
        &self,
        guard: &Guard<'_>,
        from: Option<(u64, bool)>,
        limit: usize,
        out: &mut Vec<(Step, u64)>,
    ) {
        let edge = if BACK { u64::MAX } else { 0 };
        let (mut next, begin, mut failures) = (Some(from.unwrap_or((edge, true))), out.len(), 0);
        while let Some((slice, is_included)) = next {
            let (_, leaf) = self.leaf(guard, slice);
            if failures == PATIENCE {
                if !leaf.version.lock() {
                    if self.has_gone() {
                        return;
                    }
                    continue;
                }
                leaf.copy::<BACK>(slice, is_included, limit, out);
                leaf.version.unlock();
            } else {
                let seen = leaf.version.stable();
                leaf.copy::<BACK>(slice, is_included, limit, out);
                let is_proved = !leaf.version.has_changed(seen) && !seen.is_obsolete();
                if !is_proved && !twin!(CopyNotProved) {
                    out.truncate(begin);
                    if self.has_gone() {
                        return;
                    }
                    failures += 1;
                    continue;
                }
            }
            if out.len() > begin {
                return;
            }
            failures = 0;
            let beyond = match BACK {
                true => leaf.range.start().checked_sub(1),
                false => leaf.range.end().checked_add(1),
            };
            next = beyond.map(|slice| (slice, true));
        }
    }

    /// Adds the addresses of layers that words lead to. Nobody else has the tree.
    pub(super) fn layers(&self, out: &mut Vec<u64>) {
        each_below(self.root.load(Ordering::Acquire), &mut |node| {
            let Node::Leaf(leaf) = node else { return };
            out.extend(leaf.words().filter_map(|word| match target(word) {
                Target::Layer(address) => Some(address),
                _ => None,
            }));
        });
    }
}

/// New nodes on their way into a tree, whose bytes count from now on.
pub(super) fn counted(node: Box<Node>, size: &Size) -> *mut Node {
    let (node, mut bytes) = (Box::into_raw(node), 0);
    each_below(node, &mut |node| bytes += node.bytes() as u64);
    size.bytes.fetch_add(bytes, Ordering::Relaxed);
    node
}

fn each_below(node: *mut Node, each: &mut dyn FnMut(&Node)) {
    // SAFETY: a node of the tree, which nobody changes.
    let node = unsafe { &*node };
    each(node);
    if let Node::Inner(inner) = node {
        inner.nodes().for_each(|child| each_below(child, each));
    }
}

/// Its nodes, and not the layers that they lead to.
impl Drop for Tree {
    fn drop(&mut self) {
        // SAFETY: nodes that leave the tree are no children any more, and nobody else has the tree.
        unsafe { drop_below(self.root.load(Ordering::Relaxed)) };
    }
}

/// Drops a node, and not its children.
///
/// # Safety
/// It is of `Box::into_raw`, and nobody else can reach it.
pub(super) unsafe fn drop_node(node: *mut Node) {
    // SAFETY: the caller's word.
    drop(unsafe { Box::from_raw(node) });
}

/// Drops all nodes from here on.
///
/// # Safety
/// As for [`drop_node`], for all of them.
pub(super) unsafe fn drop_below(node: *mut Node) {
    // SAFETY: the caller's word.
    if let Node::Inner(inner) = unsafe { &*node } {
        // SAFETY: the caller's word.
        inner.nodes().for_each(|child| unsafe { drop_below(child) });
    }
    // SAFETY: the caller's word.
    unsafe { drop_node(node) };
}
