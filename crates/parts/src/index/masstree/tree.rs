//! The index as its users see it.

use super::border::Found;
use super::descend::Leaf;
use super::hint::Hint;
use super::nodes::{Link, Nodes};
use crate::epoch::Guard;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

/// Places where keys are counted, so that writers of different nodes do not share a line.
const COUNTERS: usize = 32;

/// Keys added less keys removed, on a line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Counter(AtomicU64);

/// What a Masstree occupies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MasstreeStats {
    /// Bytes of DRAM: nodes, those in reserve included, suffixes, and the index itself.
    pub bytes: u64,
    /// Bytes of these that are suffixes.
    pub suffix_bytes: u64,
    /// Border nodes in use, and those that wait for their readers.
    pub borders: u64,
    /// Inner nodes in use, and those that wait for their readers.
    pub inners: u64,
    /// Layers below the first.
    pub layers: u64,
    /// Nodes split since the index was made.
    pub splits: u64,
}

/// Why a Masstree cannot take a key. Nothing has been changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MasstreeError {
    /// The key is longer than the index can hold.
    #[error("a key of {len} bytes; the index takes keys of up to {max}", max = Masstree::MAX_KEY)]
    KeyTooLong {
        /// Bytes of the key.
        len: usize,
    },
    /// All numbers of nodes are in use.
    #[error("the index has no number left for another node; remove keys, or divide them among several pools")]
    Full,
}

/// A Masstree: byte strings in their order, each with a word.
///
/// All methods may be called by many threads at once, except that two must not [`upsert`](Masstree::upsert),
/// [`take`](Masstree::take) or [`remove`](Masstree::remove) the same key at the same time. Guards keep nodes and
/// suffixes while a method looks at them, and must all be of one [`Collector`](crate::epoch::Collector).
pub struct Masstree {
    pub(super) nodes: Arc<Nodes>,
    /// The root of the first layer, by its link.
    pub(super) root: AtomicU32,
    pub(super) layers: AtomicU64,
    pub(super) splits: AtomicU64,
    counters: Box<[Counter; COUNTERS]>,
}

impl Default for Masstree {
    fn default() -> Masstree {
        Masstree::new()
    }
}

impl Masstree {
    /// Bytes of the longest key.
    pub const MAX_KEY: usize = u16::MAX as usize;

    /// An empty index.
    pub fn new() -> Masstree {
        let nodes = Nodes::new();
        let (number, root) = nodes.new_border();
        root.version.set_root(true);
        root.version.unlock();
        Masstree::of(nodes, Link::border(number), 0, 0)
    }

    /// An index of these nodes, with so many layers below the first and so many keys.
    pub(super) fn of(nodes: Nodes, root: Link, layers: u64, keys: u64) -> Masstree {
        let counters: Box<[Counter; COUNTERS]> = Default::default();
        counters[0].0.store(keys, Ordering::Relaxed);
        Masstree {
            nodes: Arc::new(nodes),
            root: AtomicU32::new(root.bits()),
            layers: AtomicU64::new(layers),
            splits: AtomicU64::new(0),
            counters,
        }
    }

    /// The word of a key; without locks.
    #[inline]
    pub fn get(&self, guard: &Guard<'_>, key: &[u8]) -> Option<u64> {
        match self.find(guard, key).found {
            Found::Word { word, .. } => Some(word),
            _ => None,
        }
    }

    /// The word of a key, if it is there, and where that stands or most likely would; without locks. What a writer asks before
    /// it writes the record that is to carry the hint.
    #[inline]
    pub fn locate(&self, guard: &Guard<'_>, key: &[u8]) -> (Option<u64>, Hint) {
        let Leaf { number, found, .. } = self.find(guard, key);
        match found {
            Found::Word { slot, word } => (Some(word), Hint::new(number, slot)),
            Found::Layer { slot, .. } | Found::Other { slot } => (None, Hint::new(number, slot)),
            Found::Nothing => {
                let permutation = self.nodes.border(number).permutation();
                // The slot to be used next; of a full node, any.
                (
                    None,
                    Hint::new(number, permutation.slot(permutation.len().min(super::permutation::SLOTS - 1))),
                )
            }
        }
    }

    /// Keys in the index: exact when nobody writes.
    pub fn len(&self) -> u64 {
        let counters = self.counters.iter().map(|counter| counter.0.load(Ordering::Relaxed));
        counters.fold(0, u64::wrapping_add)
    }

    /// Whether there is no key; exact when nobody writes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the index occupies. Exact when nobody writes.
    pub fn stats(&self) -> MasstreeStats {
        let (borders, inners) = self.nodes.in_use();
        MasstreeStats {
            bytes: self.dram_bytes(),
            suffix_bytes: self.nodes.suffix_bytes(),
            borders,
            inners,
            layers: self.layers.load(Ordering::Relaxed),
            splits: self.splits.load(Ordering::Relaxed),
        }
    }

    /// Bytes of DRAM that the index has allocated, but for what the allocator adds.
    pub fn dram_bytes(&self) -> u64 {
        self.nodes.bytes() + (size_of::<Masstree>() + size_of_val(&*self.counters)) as u64
    }

    /// Counts keys that have come (or gone, as a negative number) at this border node.
    #[inline]
    pub(super) fn count(&self, number: u32, keys: i64) {
        self.counters[number as usize % COUNTERS].0.fetch_add(keys as u64, Ordering::Relaxed);
    }
}

pub(super) fn check_word(word: u64) {
    assert!(word != 0, "zero is no word");
}
