//! The index as its users see it.

use super::nodes::{Link, Nodes};
use crate::index::count::Count;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

/// Statistics of a Masstree: its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MasstreeStats {
    /// Bytes of DRAM: nodes, those in reserve included, suffixes, and the index itself.
    pub bytes: u64,
    /// Bytes of these that are blocks of suffixes of more than eight bytes.
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

/// A Masstree: byte strings in their order, each with a word.
///
/// All methods may be called by many threads at once, except that two must not upsert or take the same key at
/// the same time. Guards keep nodes and suffixes while a method looks at them, and must all be of one
/// [`Collector`](crate::epoch::Collector).
pub struct Masstree {
    pub(super) nodes: Arc<Nodes>,
    /// The root of the first layer, by its link.
    pub(super) root: AtomicU32,
    pub(super) layers: AtomicU64,
    pub(super) splits: AtomicU64,
    pub(super) count: Count,
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
        root.version.set_in_first_layer();
        root.version.unlock();
        Masstree::of(nodes, Link::border(number), 0, 0)
    }

    /// An index of these nodes, with so many layers below the first and so many keys.
    pub(super) fn of(nodes: Nodes, root: Link, layers: u64, keys: u64) -> Masstree {
        let count = Count::new(true);
        count.add(0, keys as i64);
        Masstree {
            nodes: Arc::new(nodes),
            root: AtomicU32::new(root.bits()),
            layers: AtomicU64::new(layers),
            splits: AtomicU64::new(0),
            count,
        }
    }

    /// All that the index has allocated, without the allocator's overhead. Exact when nobody writes.
    pub fn stats(&self) -> MasstreeStats {
        let (borders, inners) = self.nodes.in_use();
        MasstreeStats {
            bytes: self.nodes.bytes() + size_of::<Masstree>() as u64 + self.count.bytes(),
            suffix_bytes: self.nodes.suffix_bytes(),
            borders,
            inners,
            layers: self.layers.load(Ordering::Relaxed),
            splits: self.splits.load(Ordering::Relaxed),
        }
    }
}

pub(super) fn check_word(word: u64) {
    assert!(word != 0, "zero is no word");
}
