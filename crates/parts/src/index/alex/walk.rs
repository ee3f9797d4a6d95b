//! The index, and the way of a key through its layers.

use super::build::Builder;
use super::key::{Path, Step, Target, own, target, with, with_end};
use super::layer::{Layer, Removed};
use super::leaf::{Entry, LEAST_SLOTS, MOST_SLOTS};
use super::memory::Memory;
use super::slots::Found;
use super::tree::{Size, Tree};
use crate::epoch::Guard;
use crate::index::count::Count;
use crate::index::seam::Records;
use crate::sync::Waiter;
use crate::sync::atomic::Ordering;

/// c-ALEX in DRAM. See the module's documentation.
pub struct Alex {
    pub(super) tree: Tree,
    pub(super) size: Size,
    pub(super) count: Count,
}

/// The place that has the words of the next steps: the tree of the root, or a layer.
#[derive(Clone, Copy)]
pub(super) enum Level<'g> {
    Root(&'g Tree),
    Layer(&'g Layer),
}

/// The slot of a key.
#[derive(Clone, Copy)]
struct Slot<'g, 'k> {
    level: Level<'g>,
    /// The way of the key from this level on.
    path: Path<'k>,
}

impl<'g> Level<'g> {
    #[inline]
    pub(super) fn find<const TO_CHANGE: bool>(self, guard: &'g Guard<'_>, step: Step) -> Option<Found<'g>> {
        match (self, step) {
            (Level::Root(tree), Step::Slice(slice)) => tree.find::<TO_CHANGE>(guard, slice),
            (Level::Root(_), Step::End(_)) => None,
            (Level::Layer(layer), step) => layer.find(guard, step),
        }
    }

    fn insert(self, guard: &Guard<'_>, step: Step, word: u64, size: &Size) -> bool {
        match (self, step) {
            (Level::Root(tree), Step::Slice(slice)) => tree.insert(guard, slice, word, size),
            (Level::Root(_), Step::End(_)) => unreachable!("no key ends before the root"),
            (Level::Layer(layer), step) => layer.insert(guard, step, word, size),
        }
    }

    fn remove(self, guard: &Guard<'_>, step: Step, word: u64, size: &Size) -> Removed {
        match (self, step) {
            (Level::Root(tree), Step::Slice(slice)) => match tree.remove(guard, slice, word, size) {
                true => Removed::Word,
                false => Removed::Nothing,
            },
            (Level::Root(_), Step::End(_)) => Removed::Nothing,
            (Level::Layer(layer), step) => layer.remove(guard, step, word, size),
        }
    }
}

impl Alex {
    /// An empty index.
    pub fn new() -> Alex {
        Alex::with_leaves(MOST_SLOTS, Memory::default())
    }

    /// An empty index with leaves so small that tests see them cut.
    pub fn tiny() -> Alex {
        Alex::with_leaves(2 * LEAST_SLOTS, Memory::default())
    }

    /// As [`tiny`](Alex::tiny), with its leaves where those of a large index are.
    pub fn tiny_in_chunks() -> Alex {
        Alex::with_leaves(2 * LEAST_SLOTS, Memory::eager())
    }

    fn with_leaves(most_slots: usize, memory: Memory) -> Alex {
        Alex::of_entries(Vec::new(), 0, Size::of(Builder::new(most_slots, memory)))
    }

    /// The size of an index without nodes.
    pub(super) fn size() -> Size {
        Size::of(Builder::new(MOST_SLOTS, Memory::default()))
    }

    /// An index of these slots, in order, with so many keys in all.
    pub(super) fn of_entries(entries: Vec<Entry>, keys: u64, size: Size) -> Alex {
        let (tree, count) = (Tree::new(&entries, &size), Count::new(true));
        count.add(0, keys as i64);
        Alex { tree, size, count }
    }

    /// The slot where a key stands, or the word of another one that shares its slice, or would be put; and
    /// the word. With `TO_CHANGE`, also prefetches the lines that a change needs.
    #[inline]
    fn slot<'g, 'k, const TO_CHANGE: bool>(
        &'g self,
        guard: &'g Guard<'_>,
        key: &'k [u8],
    ) -> (Slot<'g, 'k>, Option<Found<'g>>) {
        let mut slot = Slot { level: Level::Root(&self.tree), path: Path::of(key) };
        loop {
            let found = slot.level.find::<TO_CHANGE>(guard, slot.path.step());
            match found.map(|found| target(found.word)) {
                Some(Target::Layer(address)) => {
                    // SAFETY: the word was found in this index under the guard.
                    let layer = unsafe { Layer::at(guard, address) };
                    slot = Slot { level: Level::Layer(layer), path: slot.path.below() };
                }
                _ => return (slot, found),
            }
        }
    }

    /// Asks for the lines of a key's slot at the root, most likely.
    #[inline]
    pub(super) fn prefetch_slot<const TO_CHANGE: bool>(&self, guard: &Guard<'_>, key: &[u8]) {
        let slice = Path::of(key).slice();
        self.tree.leaf(guard, slice).1.prefetch::<TO_CHANGE>(slice);
    }

    /// The word of a key. `matches` says whether a word that shares its beginning is the key's.
    #[inline]
    pub(super) fn word_of(
        &self,
        guard: &Guard<'_>,
        key: &[u8],
        matches: impl FnMut(u64) -> bool,
    ) -> Option<u64> {
        let (slot, found) = self.slot::<false>(guard, key);
        found.map(|found| found.word).filter(|word| slot.path.is_of(*word, matches)).map(own)
    }

    /// Lets a key have this word, and returns the one that it had.
    pub(super) fn put(
        &self,
        guard: &Guard<'_>,
        (key, hash): (&[u8], u64),
        new: u64,
        mut matches: impl FnMut(u64) -> bool,
        records: &dyn Records,
    ) -> Option<u64> {
        let (mut other, mut waiter) = (Vec::new(), Waiter::default());
        loop {
            let (Slot { level, path }, found) = self.slot::<true>(guard, key);
            let Some(found) = found else {
                if level.insert(guard, path.step(), path.word(new), &self.size) {
                    self.count.add(hash, 1);
                    return None;
                }
                // The key has come, or its layer goes, which another thread takes out of its slot.
                waiter.wait();
                continue;
            };
            let old = found.word;
            if path.is_of(old, &mut matches) {
                if found.exchange(path.word(new)) {
                    return Some(own(old));
                }
                continue;
            }
            // Another key shares the slice: it goes into a layer, and this one follows.
            let layer = self.layer_of(path, old, records, &mut other);
            if !found.exchange(layer) {
                Layer::drop_unseen(layer, &self.size);
            }
        }
    }

    /// The word of a layer for the key whose word is `old`, which shares the next slice with that of a path.
    /// Below it are layers down to the first step that tells the two apart.
    fn layer_of(&self, path: Path<'_>, old: u64, records: &dyn Records, other: &mut Vec<u8>) -> u64 {
        other.clear();
        match target(old) {
            Target::Long(word) => {
                self.size.records_read.fetch_add(1, Ordering::Relaxed);
                records.key_of(word, other);
            }
            _ => path.key_of_slice(other),
        }
        if !path.shares_slice(other) {
            // A damaged record tells any key. No key of a store ends before its first byte.
            self.size.strays.fetch_add(1, Ordering::Relaxed);
            return Layer::of(vec![(Step::End(0), with_end(own(old)))], &self.size).into_word();
        }
        let (mut below, mut sought, mut shared) = (path.below_in(other), path.below(), Vec::new());
        while let (Step::Slice(one), Step::Slice(two)) = (below.step(), sought.step())
            && one == two
            && !below.is_exact()
            && !sought.is_exact()
        {
            shared.push(one);
            (below, sought) = (below.below(), sought.below());
        }
        let inner = Layer::of(vec![(below.step(), below.word(own(old)))], &self.size).into_word();
        let around = |layer, slice| Layer::of(vec![(Step::Slice(slice), layer)], &self.size).into_word();
        shared.into_iter().rev().fold(inner, around)
    }

    /// Lets a key have `new` if it still has `old`.
    pub(super) fn replace_word(&self, guard: &Guard<'_>, key: &[u8], old: u64, new: u64) -> bool {
        loop {
            let (_, found) = self.slot::<true>(guard, key);
            let Some(found) = found.filter(|found| own(found.word) == old) else { return false };
            if found.exchange(with(found.word, new)) {
                return true;
            }
        }
    }

    /// Removes a key, and returns its word.
    pub(super) fn remove(
        &self,
        guard: &Guard<'_>,
        (key, hash): (&[u8], u64),
        mut matches: impl FnMut(u64) -> bool,
    ) -> Option<u64> {
        loop {
            let (Slot { level, path }, found) = self.slot::<true>(guard, key);
            let word = found.map(|found| found.word).filter(|word| path.is_of(*word, &mut matches))?;
            let removed = level.remove(guard, path.step(), word, &self.size);
            if removed == Removed::Last {
                self.unlink(guard, key);
            }
            if removed != Removed::Nothing {
                self.count.add(hash, -1);
                return Some(own(word));
            }
        }
    }

    /// Takes the layer on the way of a key that this thread has emptied out of its slot, and each one above
    /// that has no other key.
    ///
    /// Nobody else takes a layer's word out of its slot, or gives the slot another one. So all layers above
    /// stay until this thread has come to them.
    #[cold]
    fn unlink(&self, guard: &Guard<'_>, key: &[u8]) {
        let (mut level, mut path) = (Level::Root(&self.tree), Path::of(key));
        let mut above = Vec::new();
        while let Some(word) = level.find::<false>(guard, path.step()).map(|found| found.word)
            && let Target::Layer(address) = target(word)
        {
            above.push((level, path.step(), word));
            // SAFETY: the word was found in this index under the guard.
            level = Level::Layer(unsafe { Layer::at(guard, address) });
            path = path.below();
        }
        let mut waiter = Waiter::default();
        while let Some((level, step, word)) = above.pop() {
            let removed = loop {
                match level.remove(guard, step, word, &self.size) {
                    // The words of its level move to another body.
                    Removed::Nothing => waiter.wait(),
                    removed => break removed,
                }
            };
            Layer::retire(guard, own(word), &self.size);
            if removed == Removed::Word {
                return;
            }
        }
    }
}

impl Drop for Alex {
    fn drop(&mut self) {
        let mut layers = Vec::new();
        self.tree.layers(&mut layers);
        // SAFETY: of this index, which nobody else has.
        layers.into_iter().for_each(|address| _ = unsafe { Layer::drop_at(address) });
    }
}

impl Default for Alex {
    fn default() -> Alex {
        Alex::new()
    }
}

impl Path<'_> {
    /// Whether a word in the slot of this path is the key's.
    #[inline]
    fn is_of(&self, word: u64, mut matches: impl FnMut(u64) -> bool) -> bool {
        match target(word) {
            Target::Exact(_) => self.is_exact(),
            Target::Long(word) => !self.is_exact() && matches(word),
            Target::Layer(_) => false,
        }
    }
}
