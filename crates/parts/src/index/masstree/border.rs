//! Border nodes: slices and words, side by side, fifteen of each.
//!
//! The class of a slot says its content. It has the word of a key that ends in the slice, with its length
//! there. Or it has the word of a key that goes on, whose suffix is kept beside the node: a short one in its
//! place (`short`), a longer one in a block (`suffix`). Or it has a link to the layer in which all keys go on
//! that share the slice. A slot is written before the permutation names it.
//! So a key that is added to a slot which no reader can still take for that of another key takes effect with
//! the store of the permutation, and readers need not look again.

use super::arena::Node;
use super::key::{LONGER, Piece, Short, Suffix};
use super::nodes::{Link, Nodes};
use super::permutation::{Permutation, SLOTS};
use super::short::Shorts;
use super::suffix::Suffixes;
use super::version::Version;
use crate::epoch::Guard;
use crate::index::eight;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::sync::point;

/// The class of a slot with a link; those of words are the ranks of their keys, or [`SHORT`].
pub(super) const LAYER: u8 = LONGER + 1;
/// The class of a key that goes on by a short suffix. [`LONGER`] is the class of one with a longer suffix.
pub(super) const SHORT: u8 = LONGER + 2;
const CLASS_BITS: usize = 4;
/// In the classes: a slot was freed that readers may still take for that of the key that it had.
const STALE: u64 = 1 << 63;

/// A border node.
#[repr(C, align(32))]
pub(super) struct Border {
    pub(super) version: Version,
    permutation: AtomicU64,
    /// Four bits for each slot, and [`STALE`].
    classes: AtomicU64,
    /// The border nodes beside this one, by their numbers; zero at the ends of the layer. `next` is protected
    /// by the lock, `prev` by that of the node that it names.
    pub(super) next: AtomicU32,
    pub(super) prev: AtomicU32,
    /// The inner node above; none in a root. Protected by the lock of the parent, in a root by its own.
    pub(super) parent: AtomicU32,
    /// The address of a block, or zero.
    suffixes: AtomicU64,
    slices: [AtomicU64; SLOTS],
    words: [AtomicU64; SLOTS],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Border>() == 288);
#[cfg(not(loom))]
const _: () = assert!(align_of::<Border>() >= 16 && std::mem::offset_of!(Border, slices) == 48);

// SAFETY: atomics are valid if all their bytes are zero, and need no drop: suffixes are freed by `Nodes`.
unsafe impl Node for Border {
    #[cfg(loom)]
    fn new() -> Border {
        Border {
            version: Version::new(),
            permutation: AtomicU64::new(0),
            classes: AtomicU64::new(0),
            next: AtomicU32::new(0),
            prev: AtomicU32::new(0),
            parent: AtomicU32::new(0),
            suffixes: AtomicU64::new(0),
            slices: Default::default(),
            words: Default::default(),
        }
    }
}

/// The result of a search for a key in a border node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Its word.
    Word {
        /// Where it stands.
        slot: usize,
        /// The word.
        word: u64,
    },
    /// The layer in which the key goes on.
    Layer {
        /// Where the link stands.
        slot: usize,
        /// A node of the layer's left edge, perhaps its root.
        link: Link,
    },
    /// The word of another key that goes on after the same slice.
    Other {
        /// Where it stands.
        slot: usize,
    },
    /// Nothing.
    Nothing,
}

/// The content of a slot, read or to be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'s> {
    pub(super) slice: u64,
    pub(super) class: u8,
    pub(super) word: u64,
    pub(super) suffix: Suffix<'s>,
}

impl<'s> Entry<'s> {
    /// The entry of the empty key, without a word.
    pub(super) const NONE: Entry<'static> = Entry { slice: 0, class: 0, word: 0, suffix: Suffix::NONE };

    /// The entry of a key.
    pub(super) fn of(piece: &Piece<'s>, word: u64) -> Entry<'s> {
        let (class, suffix) = match Suffix::of(piece.suffix) {
            _ if piece.rank < LONGER => (piece.rank, Suffix::NONE),
            suffix @ Suffix::Short(_) => (SHORT, suffix),
            suffix @ Suffix::Long(_) => (LONGER, suffix),
        };
        Entry { slice: piece.slice, class, word, suffix }
    }

    /// The entry of a layer.
    pub(super) fn layer(slice: u64, link: Link) -> Entry<'s> {
        Entry { slice, class: LAYER, word: u64::from(link.bits()), suffix: Suffix::NONE }
    }

    /// Slice and rank.
    #[inline]
    pub(super) fn order(&self) -> (u64, u8) {
        (self.slice, self.class.min(LONGER))
    }

    /// Whether it has the suffix that its class says. Without one, its key was removed while the entry was
    /// read, which does not change the version.
    #[inline]
    pub(super) fn is_whole(&self) -> bool {
        self.class != LONGER && self.class != SHORT || !self.suffix.bytes().is_empty()
    }
}

impl Border {
    /// Makes an empty node of one that nobody else knows.
    pub(super) fn clear(&self) {
        self.permutation.store(Permutation::EMPTY.word(), Ordering::Relaxed);
        self.classes.store(0, Ordering::Relaxed);
        self.next.store(0, Ordering::Relaxed);
        self.prev.store(0, Ordering::Relaxed);
        self.parent.store(0, Ordering::Relaxed);
        self.suffixes.store(0, Ordering::Relaxed);
    }

    /// Which slots have keys, in which order.
    #[inline]
    pub(super) fn permutation(&self) -> Permutation {
        Permutation::from_word(self.permutation.load(Ordering::Acquire))
    }

    /// Lets keys come or go. The caller holds the lock.
    #[inline]
    pub(super) fn publish(&self, permutation: Permutation) {
        point();
        self.permutation.store(permutation.word(), Ordering::Release);
    }

    #[inline]
    pub(super) fn slice(&self, slot: usize) -> u64 {
        self.slices[slot].load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn class(&self, slot: usize) -> u8 {
        (self.classes.load(Ordering::Relaxed) >> (CLASS_BITS * slot)) as u8 & 15
    }

    #[inline]
    pub(super) fn word(&self, slot: usize) -> u64 {
        self.words[slot].load(Ordering::Acquire)
    }

    /// Lets a slot have another word of the same class. The caller holds the lock.
    #[inline]
    pub(super) fn set_word(&self, slot: usize, word: u64) {
        self.words[slot].store(word, Ordering::Release);
    }

    /// The block's address.
    pub(super) fn suffix_address(&self) -> u64 {
        self.suffixes.load(Ordering::Acquire)
    }

    /// The block of suffixes, which the guard keeps.
    #[inline]
    fn suffixes<'g>(&self, _guard: &'g Guard<'_>) -> Option<Suffixes<'g>> {
        // SAFETY: a block is retired after its node stopped naming it, and not freed while the guard is
        // there.
        unsafe { Suffixes::from_address(self.suffix_address()) }
    }

    /// The suffix of a slot in the block.
    #[inline]
    fn long_suffix<'g>(&self, guard: &'g Guard<'_>, slot: usize) -> &'g [u8] {
        self.suffixes(guard).map_or(&[], |block| block.get(slot))
    }

    /// The content of a slot.
    #[inline]
    pub(super) fn entry<'g>(&self, shorts: Shorts<'_>, guard: &'g Guard<'_>, slot: usize) -> Entry<'g> {
        let (class, suffix) = (self.class(slot), self.suffix(shorts, guard, slot));
        point();
        Entry { slice: self.slice(slot), class, word: self.word(slot), suffix }
    }

    /// The suffix of a slot.
    #[inline]
    pub(super) fn suffix<'g>(&self, shorts: Shorts<'_>, guard: &'g Guard<'_>, slot: usize) -> Suffix<'g> {
        match self.class(slot) {
            SHORT => Suffix::Short(shorts.get(slot)),
            LONGER => Suffix::Long(self.long_suffix(guard, slot)),
            _ => Suffix::NONE,
        }
    }

    /// Slice and rank of a slot.
    #[inline]
    pub(super) fn order(&self, slot: usize) -> (u64, u8) {
        (self.slice(slot), self.class(slot).min(LONGER))
    }

    /// Whether the key of the first slot has a short suffix: most likely those of others have some too.
    #[inline]
    pub(super) fn has_shorts(&self) -> bool {
        self.class(0) == SHORT
    }

    /// Searches for a key. Without the lock, the result counts only if the version has not changed.
    #[inline(always)]
    pub(super) fn search(&self, shorts: Shorts<'_>, guard: &Guard<'_>, piece: &Piece<'_>) -> Found {
        let permutation = self.permutation();
        let classes = self.classes.load(Ordering::Relaxed);
        if piece.rank == LONGER && !piece.has_short_suffix() {
            Suffixes::prefetch(self.suffixes.load(Ordering::Relaxed));
        }
        point();
        let mut hits = self.slots_of_slice(piece.slice);
        while hits != 0 {
            let slot = (hits.trailing_zeros() / eight::BITS_PER_WORD) as usize;
            hits &= hits - 1;
            let class = (classes >> (CLASS_BITS * slot)) as u8 & 15;
            if class.min(LONGER) != piece.rank || !permutation.contains(slot) {
                continue;
            }
            point();
            let word = self.word(slot);
            if class == LAYER {
                return Found::Layer { slot, link: Link::from_bits(word as u32) };
            }
            let is_other = match class {
                SHORT => Short::of(piece.suffix) != Some(shorts.get(slot)),
                LONGER => self.long_suffix(guard, slot) != piece.suffix,
                _ => false,
            };
            if is_other {
                return Found::Other { slot };
            }
            return Found::Word { slot, word };
        }
        Found::Nothing
    }

    /// The slots with this slice, those without a key among them, as a mask of [`eight::equal`]. All are
    /// compared before the first hit is looked at: no branch depends on where it stands.
    #[inline(always)]
    fn slots_of_slice(&self, slice: u64) -> u32 {
        #[cfg(all(target_arch = "x86_64", not(loom)))]
        {
            const ALL: u32 = (1 << (eight::BITS_PER_WORD * SLOTS as u32)) - 1;
            // Of the node, not of the slices: behind the last one a word is loaded that is none of them.
            let node = std::ptr::from_ref(self);
            let first = node.wrapping_byte_add(std::mem::offset_of!(Border, slices)).cast();
            // SAFETY: sixteen words of the node, aligned as asserted above.
            let [low, high] = unsafe { [eight::load(first), eight::load(first.add(8))] };
            (eight::equal(low, slice) | eight::equal(high, slice) << 16) & ALL
        }
        #[cfg(any(loom, not(target_arch = "x86_64")))]
        eight::equal_by_word((0..SLOTS).map(|slot| self.slice(slot)), slice)
    }

    /// Whether it has keys on both sides of a slice, or of the slice itself: then the slice is the node's,
    /// whatever the nodes above say. As [`search`](Border::search), the result counts with the lock or the
    /// version.
    pub(super) fn spans(&self, slice: u64) -> bool {
        let permutation = self.permutation();
        let Some(last) = permutation.len().checked_sub(1) else { return false };
        (self.slice(permutation.slot(0))..=self.slice(permutation.slot(last))).contains(&slice)
    }

    /// Where a slot is whose word is this one, and no link: the likely one, or another.
    pub(super) fn slot_of_word(&self, likely: usize, word: u64) -> Option<usize> {
        let permutation = self.permutation();
        let holds = |slot: &usize| {
            self.word(*slot) == word && self.class(*slot) != LAYER && permutation.contains(*slot)
        };
        Some(likely).filter(holds).or_else(|| (0..SLOTS).find(holds))
    }

    /// How many keys come before this slice and rank. The caller holds the lock.
    pub(super) fn rank(&self, permutation: Permutation, order: (u64, u8)) -> usize {
        permutation.slots().map(|slot| usize::from(self.order(slot) < order)).sum()
    }

    /// Adds an entry to this node, whose number is given and which has a slot for it; returns the block of
    /// suffixes that this replaces, to be retired. The caller holds the lock.
    pub(super) fn insert<'g>(
        &self,
        nodes: &Nodes,
        number: u32,
        guard: &'g Guard<'_>,
        entry: &Entry<'_>,
    ) -> Option<Suffixes<'g>> {
        let permutation = self.permutation();
        let (after, slot) = permutation.insert(self.rank(permutation, entry.order()));
        if self.classes.load(Ordering::Relaxed) & STALE != 0 {
            self.mark_inserting();
        }
        let replaced = match entry.suffix {
            Suffix::Long(suffix) => self.keep(nodes, guard, slot, suffix),
            Suffix::Short(_) => None,
        };
        self.set(nodes.shorts(number), slot, entry);
        self.publish(after);
        replaced
    }

    /// Announces that slots will change their meaning. Stale slots are stale no more, for readers that have
    /// looked before this will look again. The caller holds the lock.
    pub(super) fn mark_inserting(&self) {
        self.version.mark_inserting();
        self.forget_stale();
    }

    /// Announces that the node will be for fewer keys. The caller holds the lock.
    pub(super) fn mark_splitting(&self) {
        self.version.mark_splitting();
        self.forget_stale();
    }

    fn forget_stale(&self) {
        self.classes.store(self.classes.load(Ordering::Relaxed) & !STALE, Ordering::Relaxed);
    }

    /// Writes all of a slot except a long suffix.
    fn set(&self, shorts: Shorts<'_>, slot: usize, entry: &Entry<'_>) {
        self.slices[slot].store(entry.slice, Ordering::Relaxed);
        if let (SHORT, Suffix::Short(short)) = (entry.class, entry.suffix) {
            shorts.set(slot, short);
        }
        point();
        self.set_class(slot, entry.class);
        self.set_word(slot, entry.word);
    }

    /// Lets a node that nobody else knows, and whose number is given, have these entries, in their order and
    /// in the first slots.
    pub(super) fn fill(&self, nodes: &Nodes, number: u32, entries: &[Entry<'_>]) {
        let shorts = nodes.shorts(number);
        entries.iter().enumerate().for_each(|(slot, entry)| self.set(shorts, slot, entry));
        let suffixes = entries.iter().enumerate().filter_map(|(slot, entry)| match entry.suffix {
            Suffix::Long(suffix) => Some((slot, suffix)),
            Suffix::Short(_) => None,
        });
        if suffixes.clone().next().is_some() {
            self.suffixes.store(nodes.new_suffixes(suffixes), Ordering::Release);
        }
        self.publish(Permutation::of(0..entries.len()));
    }

    /// Lets a slot that has a word have a link, after a mark. The caller holds the lock.
    pub(super) fn set_layer(&self, slot: usize, link: Link) {
        self.set_class(slot, LAYER);
        self.set_word(slot, u64::from(link.bits()));
    }

    /// Where a slot's word lies, to be asked for.
    pub(super) fn word_place(&self, slot: usize) -> *const AtomicU64 {
        self.words.as_ptr().wrapping_add(slot)
    }

    fn set_class(&self, slot: usize, class: u8) {
        let others = self.classes.load(Ordering::Relaxed) & !(15 << (CLASS_BITS * slot));
        self.classes.store(others | u64::from(class) << (CLASS_BITS * slot), Ordering::Relaxed);
    }

    /// Gives a slot its suffix; returns the block that was too small for it.
    fn keep<'g>(
        &self,
        nodes: &Nodes,
        guard: &'g Guard<'_>,
        slot: usize,
        suffix: &[u8],
    ) -> Option<Suffixes<'g>> {
        let block = self.suffixes(guard);
        if block.is_some_and(|block| block.push(slot, suffix)) {
            return None;
        }
        let kept = self.permutation().slots().filter(|kept| *kept != slot && self.class(*kept) == LONGER);
        let kept: Vec<(usize, &[u8])> = kept.map(|slot| (slot, self.long_suffix(guard, slot))).collect();
        let all = kept.iter().copied().chain(std::iter::once((slot, suffix)));
        self.suffixes.store(nodes.new_suffixes(all), Ordering::Release);
        block
    }

    /// The block, no longer the node's, if none of its keys has a suffix. The caller holds the lock.
    pub(super) fn drop_suffixes<'g>(&self, guard: &'g Guard<'_>) -> Option<Suffixes<'g>> {
        let block = self.suffixes(guard)?;
        if self.permutation().slots().any(|slot| self.class(slot) == LONGER) {
            return None;
        }
        self.suffixes.store(0, Ordering::Release);
        Some(block)
    }

    /// Takes a key out; returns how many are left. The caller holds the lock.
    pub(super) fn remove(&self, slot: usize) -> usize {
        let after = self.permutation().remove(slot);
        self.classes.store(self.classes.load(Ordering::Relaxed) | STALE, Ordering::Relaxed);
        self.publish(after);
        after.len()
    }
}
