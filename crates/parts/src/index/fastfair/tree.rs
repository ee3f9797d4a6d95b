//! The index as its readers see it.

use super::arena::{Arena, Kind};
use super::key::Key;
use super::link::Link;
use super::node::{Entry, Node};
use super::settings::{FastFairStats, Result, damaged};
use super::shift::Locked;
use super::state::Seen;
use super::sweep::Sweep;
use crate::epoch::Guard;
use crate::index::count::Count;
use crate::index::hint::Hint;
use crate::index::words::{PmWords, Words};
use crate::sync::SpinLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A FAST&FAIR index: key to value, in order of the keys.
///
/// All methods may be called by many threads at once, except that two must not write the same key at the same
/// time. [Replacing](crate::index::Index::replace) may run beside the writer of the key. Guards keep nodes
/// and chunks from being used again while a thread is on the way to them.
pub struct FastFairIndex<W: Words = PmWords> {
    pub(super) arena: Arc<Arena<W>>,
    /// Number of the root, as it stands in PM.
    pub(super) top: AtomicU64,
    /// Held while the tree gets another level.
    pub(super) rising: SpinLock<()>,
    pub(super) count: Count,
    pub(super) sweep: SpinLock<Sweep>,
    pub(super) splits: AtomicU64,
    pub(super) splitting: AtomicU32,
    pub(super) removals: AtomicU64,
}

impl<W: Words> FastFairIndex<W> {
    /// An index over nodes that are there, the root of which has this number.
    pub(super) fn over(arena: Arena<W>, top: u64, sweep: Sweep) -> FastFairIndex<W> {
        FastFairIndex {
            arena: Arc::new(arena),
            top: AtomicU64::new(top),
            rising: SpinLock::default(),
            count: Count::new(sweep.is_done()),
            sweep: SpinLock::new(sweep),
            splits: AtomicU64::new(0),
            splitting: AtomicU32::new(0),
            removals: AtomicU64::new(0),
        }
    }

    /// The value of a key, durable if that is wanted. Else this changes nothing, makes nothing durable, and
    /// does not wait.
    #[inline]
    pub(super) fn value_of<const DURABLE: bool>(&self, guard: &Guard<'_>, key: &[u8]) -> Result<Option<u64>> {
        Ok(self.find::<DURABLE>(guard, &Key::new(key)?)?.1.map(|entry| entry.value))
    }

    /// Asks for the first lines of the leaf of a key, and tells which leaf that is. Waits for the inner nodes
    /// above, which are in the cache if the index is in use.
    pub(super) fn prefetch_leaf(&self, key: &[u8]) -> Option<Hint> {
        let leaf = || -> Result<Node<'_, W>> {
            let key = Key::new(key)?;
            if self.top_level()? == 0 {
                return self.top_node();
            }
            let parent = self.descend(&key, 1)?;
            self.arena.node(parent.route(&key)?.0, parent.place)
        };
        // Damage is told to a caller that looks for the key.
        let leaf = leaf().ok()?;
        leaf.prefetch_first();
        Some(Hint::new(leaf.number, 0))
    }

    /// The size of the index, and its work so far.
    pub fn stats(&self) -> FastFairStats {
        FastFairStats {
            bytes: self.arena.dram_bytes() + self.count.bytes(),
            pm_bytes: self.arena.chain.pm_bytes(),
            levels: self.top_level().map_or(0, |level| level + 1),
            splits: self.splits.load(Ordering::Relaxed),
            removals: self.removals.load(Ordering::Relaxed),
            free_nodes: self.arena.free(Kind::Nodes),
            free_chunks: self.arena.free(Kind::Chunks),
        }
    }

    /// The level of the root.
    pub(super) fn top_level(&self) -> Result<u32> {
        self.top_node()?.level()
    }

    pub(super) fn top_node(&self) -> Result<Node<'_, W>> {
        self.arena.node(self.top.load(Ordering::Acquire), self.arena.first_zone())
    }

    /// The node on this level to which a key leads: its own, or one further left. There is such a level.
    ///
    /// Inner nodes are read as they are, also while they change. A separator and its child always belong
    /// together, and a child whose separator is not above the key is never to the right of the key's own
    /// node.
    #[inline]
    pub(super) fn descend(&self, key: &Key<'_>, level: u32) -> Result<Node<'_, W>> {
        let mut node = self.top_node()?;
        let mut at = node.level()?;
        let mut hops = Hops::default();
        while at > level {
            let (child, is_bounded) = node.route(key)?;
            let link = if is_bounded { None } else { node.sibling_for(key)? };
            if let Some(link) = link {
                node = hops.follow(node, link, at)?;
                continue;
            }
            at -= 1;
            node = self.arena.node(child, node.place)?.of_level(at)?;
        }
        if at == level { Ok(node) } else { damaged("the root of the index", node.place) }
    }

    /// The leaf of a key and its entry there, if it has one, both durable if that is wanted.
    #[inline(always)]
    pub(super) fn find<const DURABLE: bool>(
        &self,
        guard: &Guard<'_>,
        key: &Key<'_>,
    ) -> Result<(Node<'_, W>, Option<Entry>)> {
        self.read::<DURABLE, _>(guard, key, |node, seen| {
            let entry = node.search(key, seen)?;
            let is_own = seen.is_quiet() && entry.is_some();
            // The link is read last: a split takes entries away only after the link has changed.
            let link = if is_own { None } else { node.sibling_for(key)? };
            Ok((link, entry))
        })
    }

    /// Reads the leaf of a key without a lock: `look` gets nodes until one says that no sibling has the key.
    /// All that it reads of one node was there at one moment, and is durable if that is wanted.
    #[inline]
    pub(super) fn read<const DURABLE: bool, T>(
        &self,
        _guard: &Guard<'_>,
        key: &Key<'_>,
        mut look: impl FnMut(&Node<'_, W>, Seen) -> Result<(Option<Link>, T)>,
    ) -> Result<(Node<'_, W>, T)> {
        'root: loop {
            let mut node = self.descend(key, 0)?;
            let mut hops = Hops::default();
            loop {
                let seen = node.state.before();
                if seen.is_retired() {
                    // The word that led here was changed before the node was retired.
                    continue 'root;
                }
                let (link, found) = look(&node, seen)?;
                if node.state.after() != seen {
                    continue;
                }
                if DURABLE && !seen.is_quiet() {
                    let idle = if seen.is_settled() { None } else { node.try_lock() };
                    if let Some(locked) = idle {
                        self.settle(&locked)?;
                        continue;
                    }
                    node.help();
                }
                match link {
                    Some(link) => node = hops.follow(node, link, 0)?,
                    None => return Ok((node, found)),
                }
            }
        }
    }

    /// Settles a node, unless another thread has done it, or taken it out of the tree.
    pub(super) fn settle(&self, locked: &Locked<'_, W>) -> Result<()> {
        let seen = locked.state.before();
        if seen.is_settled() || seen.is_retired() { Ok(()) } else { locked.settle() }
    }
}

/// Steps from sibling to sibling: no more than there are nodes, or damaged links go round in a circle.
#[derive(Default)]
pub(super) struct Hops(u64);

impl Hops {
    /// The sibling of `node`, of its level.
    pub(super) fn follow<'a, W: Words>(
        &mut self,
        node: Node<'a, W>,
        link: Link,
        level: u32,
    ) -> Result<Node<'a, W>> {
        self.0 += 1;
        if self.0 > node.arena.nodes_max() {
            return damaged("the links of a level of the index", node.place);
        }
        node.arena.node(link.node, node.place)?.of_level(level)
    }
}
