//! Layers: what follows a slice that several keys share.
//!
//! A few keys stand in an array, which is copied for each further one; more are a tree of their next slices,
//! beside the words of keys that end within the shared slice. Where few are left of these, they go into an
//! array again.
//!
//! A layer goes with its last key. An empty array is final: nothing is put into it any more. So the thread
//! that has emptied the array, and no other one, takes the word of the layer out of its slot. A thread that
//! would put a key there meanwhile finds its way anew, until the slot is free.

use super::key::{SLICE, Step, Target, of_layer, target};
use super::slots::Found;
use super::tree::{Size, Tree};
use crate::epoch::Guard;
use crate::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use crate::sync::{SpinLock, Waiter};
use crate::twin;

/// Keys of the longest array.
const FEW: usize = if cfg!(loom) { 3 } else { 8 };
/// Keys of a tree that becomes an array again, at most.
const FEW_LEFT: usize = FEW / 2;

/// A layer.
pub(super) struct Layer {
    body: AtomicPtr<Body>,
    /// Held by whoever changes the body.
    lock: SpinLock<()>,
}

/// The keys of a layer. A word moves to another body as it does between leaves: taken out first.
enum Body {
    /// In order. A word of 0 has been moved. Without keys, it is the layer's last body.
    Few(Box<[(Step, AtomicU64)]>),
    Many(Box<Many>),
}

struct Many {
    /// The words of keys that end after so many bytes of the shared slice; 0 for none.
    ends: [AtomicU64; SLICE + 1],
    tree: Tree,
}

/// The outcome of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removed {
    /// The step does not have that word, or moves.
    Nothing,
    /// The word has gone.
    Word,
    /// The last word of a layer has gone. The caller takes the layer out of its slot.
    Last,
}

/// A body on its way to the thread that drops it.
struct Left(*mut Body);

// SAFETY: nobody else can reach the body when it is dropped.
unsafe impl Send for Left {}

impl Left {
    /// Drops the body when all readers have left it.
    fn defer(self, guard: &Guard<'_>) {
        guard.defer(Box::new(move || {
            let Left(body) = { self };
            // SAFETY: a body of `Box::into_raw`, which all readers have left.
            drop(unsafe { Box::from_raw(body) });
        }));
    }
}

impl Layer {
    /// A layer of these steps, in order, each with its word.
    pub(super) fn of(steps: Vec<(Step, u64)>, size: &Size) -> Box<Layer> {
        let body = Box::new(Body::of(steps, size));
        size.bytes.fetch_add((size_of::<Layer>() + body.bytes()) as u64, Ordering::Relaxed);
        Box::new(Layer { body: AtomicPtr::new(Box::into_raw(body)), lock: SpinLock::new(()) })
    }

    /// The word that leads to it.
    pub(super) fn into_word(self: Box<Layer>) -> u64 {
        of_layer(Box::into_raw(self) as u64)
    }

    /// The layer at the address in a word.
    ///
    /// # Safety
    /// The word was found in an index under this guard.
    #[inline]
    pub(super) unsafe fn at<'g>(_guard: &'g Guard<'_>, address: u64) -> &'g Layer {
        // SAFETY: the address is of `into_word`. A layer whose word has left its slot is dropped when all
        // guards of that moment have gone, and this guard is older than the look at the slot.
        unsafe { &*(address as *const Layer) }
    }

    /// Drops a layer when all readers have left it. Its word has left its slot, and it is empty.
    pub(super) fn retire(guard: &Guard<'_>, address: u64, size: &Size) {
        // SAFETY: of this index, and still under the guard.
        let layer = unsafe { Layer::at(guard, address) };
        let bytes = size_of::<Layer>() + layer.body(guard).bytes();
        size.bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
        // SAFETY: no slot leads to it, and all guards of that moment have gone.
        guard.defer(Box::new(move || _ = unsafe { Layer::drop_at(address) }));
    }

    #[inline]
    fn body<'g>(&'g self, _guard: &'g Guard<'_>) -> &'g Body {
        // SAFETY: a body of `Box::into_raw`. One that is replaced is dropped when all guards of that moment
        // have gone.
        unsafe { &*self.body.load(Ordering::Acquire) }
    }

    /// The word of a step.
    pub(super) fn find<'g>(&'g self, guard: &'g Guard<'_>, step: Step) -> Option<Found<'g>> {
        let mut waiter = Waiter::default();
        loop {
            match (self.body(guard), step) {
                (Body::Few(few), _) => match Found::at(place_of(few, step)?) {
                    Found { word: 0, .. } => waiter.wait(),
                    found => return Some(found),
                },
                (Body::Many(many), step) => {
                    let found = match step {
                        Step::End(len) => Some(Found::at(&many.ends[usize::from(len)])),
                        Step::Slice(slice) => many.tree.find::<false>(guard, slice),
                    };
                    let found = found.filter(|found| found.word != 0);
                    // A tree says that it goes before its words are taken out.
                    if found.is_some() || !many.tree.has_gone() {
                        return found;
                    }
                    waiter.wait();
                }
            }
        }
    }

    /// Adds a step; `false` if it is there, or the layer goes, or its keys move.
    pub(super) fn insert(&self, guard: &Guard<'_>, step: Step, word: u64, size: &Size) -> bool {
        let alone = self.lock.lock();
        let few = match (self.body(guard), step) {
            (Body::Few(few), _) => few,
            (Body::Many(many), Step::End(len)) => {
                let place = &many.ends[usize::from(len)];
                return place.compare_exchange(0, word, Ordering::AcqRel, Ordering::Relaxed).is_ok();
            }
            (Body::Many(many), Step::Slice(slice)) => {
                drop(alone);
                return many.tree.insert(guard, slice, word, size);
            }
        };
        if place_of(few, step).is_some() || few.is_empty() && !twin!(EmptiedLayerFilled) {
            return false;
        }
        let at = few.partition_point(|(other, _)| *other < step);
        let mut words: Vec<(Step, u64)> = taken(few).collect();
        words.insert(at, (step, word));
        let left = self.set(guard, Body::of(words, size), size);
        drop(alone);
        left.defer(guard);
        true
    }

    /// Removes a step if it still has this word.
    pub(super) fn remove(&self, guard: &Guard<'_>, step: Step, word: u64, size: &Size) -> Removed {
        let alone = self.lock.lock();
        let change =
            |place: &AtomicU64| place.compare_exchange(word, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        match (self.body(guard), step) {
            (Body::Few(few), _) => {
                if !place_of(few, step).is_some_and(change) {
                    return Removed::Nothing;
                }
                let words: Vec<_> = taken(few).filter(|(_, word)| *word != 0).collect();
                let is_last = words.is_empty();
                let left = self.set(guard, Body::of(words, size), size);
                drop(alone);
                left.defer(guard);
                if is_last { Removed::Last } else { Removed::Word }
            }
            (Body::Many(many), step) => {
                let is_removed = match step {
                    Step::End(len) => {
                        let is_removed = change(&many.ends[usize::from(len)]);
                        drop(alone);
                        is_removed
                    }
                    Step::Slice(slice) => {
                        drop(alone);
                        many.tree.remove(guard, slice, word, size)
                    }
                };
                match is_removed {
                    false => Removed::Nothing,
                    true if many.tree.has_few(guard, FEW_LEFT) => self.become_few(guard, size),
                    true => Removed::Word,
                }
            }
        }
    }

    /// Puts the words of a tree into an array, if few are left. Says whether none is.
    ///
    /// The lock of the layer keeps ends from coming and going, and that of the only leaf slices. Both keep
    /// their words meanwhile, or are given others, until these are taken out. A thread that finds none there
    /// finds that the tree goes, and waits for the array.
    #[cold]
    fn become_few(&self, guard: &Guard<'_>, size: &Size) -> Removed {
        let alone = self.lock.lock();
        let Body::Many(many) = self.body(guard) else { return Removed::Word };
        let Some(leaf) = many.tree.lock_only_leaf(guard) else { return Removed::Word };
        let ends = many.ends.iter().filter(|word| word.load(Ordering::Relaxed) != 0).count();
        if leaf.len() + ends > FEW_LEFT {
            leaf.version.unlock();
            return Removed::Word;
        }
        many.tree.go(size);
        let ends =
            many.ends.iter().zip(0..).map(|(word, len)| (Step::End(len), word.swap(0, Ordering::AcqRel)));
        let slices = leaf.take_all().into_iter().map(|(slice, word)| (Step::Slice(slice), word));
        let words: Vec<_> = ends.filter(|(_, word)| *word != 0).chain(slices).collect();
        let is_last = words.is_empty();
        let left = self.set(guard, Body::of(words, size), size);
        leaf.version.unlock_obsolete();
        drop(alone);
        left.defer(guard);
        if is_last { Removed::Last } else { Removed::Word }
    }

    /// Puts a body in the place of the present one. The caller holds the lock.
    fn set(&self, guard: &Guard<'_>, new: Body, size: &Size) -> Left {
        let new = Box::new(new);
        size.bytes.fetch_add(new.bytes() as u64, Ordering::Relaxed);
        size.bytes.fetch_sub(self.body(guard).bytes() as u64, Ordering::Relaxed);
        Left(self.body.swap(Box::into_raw(new), Ordering::AcqRel))
    }

    /// Adds up to `limit` steps behind `from`, or before it, each with its word; all, if there is no `from`.
    /// Says whether it may have more.
    pub(super) fn copy<const BACK: bool>(
        &self,
        guard: &Guard<'_>,
        from: Option<(Step, bool)>,
        limit: usize,
        out: &mut Vec<(Step, u64)>,
    ) -> bool {
        let mut waiter = Waiter::default();
        loop {
            match self.body(guard) {
                Body::Many(many) => {
                    let has_more = many.copy::<BACK>(guard, from, limit, out);
                    // A tree says that it goes before its words are taken out.
                    if !many.tree.has_gone() {
                        return has_more;
                    }
                }
                Body::Few(few) => {
                    let loaded = few.iter().map(|(step, word)| (*step, word.load(Ordering::Acquire)));
                    out.extend(loaded.filter(|(step, _)| is_due::<BACK>(*step, from)));
                    if out.iter().all(|(_, word)| *word != 0) {
                        if BACK {
                            out.reverse();
                        }
                        return false;
                    }
                }
            }
            out.clear();
            waiter.wait();
        }
    }

    /// All steps, in order, each with its word.
    pub(super) fn all(&self, guard: &Guard<'_>) -> Vec<(Step, u64)> {
        let mut all: Vec<(Step, u64)> = Vec::new();
        loop {
            let (from, mut some) = (all.last().map(|(step, _)| (*step, false)), Vec::new());
            let has_more = self.copy::<false>(guard, from, usize::MAX, &mut some);
            all.append(&mut some);
            if !has_more {
                return all;
            }
        }
    }

    /// Drops a layer that nobody has seen, and all below it.
    pub(super) fn drop_unseen(word: u64, size: &Size) {
        if let Target::Layer(address) = target(word) {
            // SAFETY: only the caller has it.
            let bytes = unsafe { Layer::drop_at(address) };
            size.bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
        }
    }

    /// Drops a layer, and all below it. A long key has thousands of layers, one below the other. Tells their
    /// bytes without those of trees.
    ///
    /// # Safety
    /// The address is of [`into_word`](Layer::into_word), and nobody else can reach the layer.
    pub(super) unsafe fn drop_at(address: u64) -> usize {
        let (mut left, mut bytes) = (vec![address], 0);
        while let Some(address) = left.pop() {
            // SAFETY: the caller's word.
            let layer = unsafe { Box::from_raw(address as *mut Layer) };
            // SAFETY: a body of `Box::into_raw`, which only the layer has.
            let body = unsafe { Box::from_raw(layer.body.load(Ordering::Relaxed)) };
            bytes += size_of::<Layer>() + body.bytes();
            match *body {
                Body::Few(few) => left.extend(few.iter().filter_map(|(step, word)| {
                    match (step, target(word.load(Ordering::Relaxed))) {
                        (Step::Slice(_), Target::Layer(address)) => Some(address),
                        _ => None,
                    }
                })),
                Body::Many(many) => many.tree.layers(&mut left),
            }
        }
        bytes
    }
}

impl Many {
    /// As [`Layer::copy`], if the tree stays meanwhile.
    fn copy<const BACK: bool>(
        &self,
        guard: &Guard<'_>,
        from: Option<(Step, bool)>,
        limit: usize,
        out: &mut Vec<(Step, u64)>,
    ) -> bool {
        let ends = |out: &mut Vec<(Step, u64)>| {
            let begin = out.len();
            let ends =
                self.ends.iter().zip(0..).map(|(word, len)| (Step::End(len), word.load(Ordering::Acquire)));
            out.extend(ends.filter(|(step, word)| *word != 0 && is_due::<BACK>(*step, from)));
            if BACK {
                out[begin..].reverse();
            }
        };
        let slice = match from {
            Some((Step::Slice(slice), is_included)) => Some((slice, is_included)),
            _ => None,
        };
        let is_in_tree = slice.is_some();
        if BACK {
            if is_in_tree || from.is_none() {
                self.tree.copy::<BACK>(guard, slice, limit, out);
            }
            let is_over = out.is_empty();
            if is_over {
                ends(out);
            }
            return !is_over;
        }
        if !is_in_tree {
            ends(out);
            if !out.is_empty() {
                return true;
            }
        }
        self.tree.copy::<BACK>(guard, slice, limit, out);
        !out.is_empty()
    }
}

/// Whether a step comes behind another one, or before it.
fn is_due<const BACK: bool>(step: Step, from: Option<(Step, bool)>) -> bool {
    from.is_none_or(|(from, is_included)| match step.cmp(&from) {
        std::cmp::Ordering::Equal => is_included,
        order => order.is_gt() != BACK,
    })
}

#[inline]
fn place_of(few: &[(Step, AtomicU64)], step: Step) -> Option<&AtomicU64> {
    few.iter().find(|(other, _)| *other == step).map(|(_, word)| word)
}

/// The steps of an array with their words, which are taken out.
fn taken(few: &[(Step, AtomicU64)]) -> impl Iterator<Item = (Step, u64)> {
    few.iter().map(|(step, word)| (*step, word.swap(0, Ordering::AcqRel)))
}

impl Body {
    /// The body of these words, in order.
    fn of(words: Vec<(Step, u64)>, size: &Size) -> Body {
        if words.len() <= FEW {
            return Body::Few(words.into_iter().map(|(step, word)| (step, AtomicU64::new(word))).collect());
        }
        let (ends, mut slices) = ([const { 0u64 }; SLICE + 1], Vec::with_capacity(words.len()));
        let ends = ends.map(AtomicU64::new);
        for (step, word) in words {
            match step {
                Step::End(len) => ends[usize::from(len)].store(word, Ordering::Relaxed),
                Step::Slice(slice) => slices.push((slice, word)),
            }
        }
        size.splits.fetch_add(1, Ordering::Relaxed);
        Body::Many(Box::new(Many { ends, tree: Tree::new(&slices, size) }))
    }

    /// Bytes of DRAM, without those of a tree.
    fn bytes(&self) -> usize {
        size_of::<Body>()
            + match self {
                Body::Few(few) => size_of_val::<[(Step, AtomicU64)]>(few),
                Body::Many(_) => size_of::<Many>(),
            }
    }
}
