//! Proving that an index is what it should be: for `check`, and for tests.

use super::arena::Kind;
use super::key::{Key, KeyBuf, Stored};
use super::node::Node;
use super::settings::{Result, damaged};
use super::tree::{FastFairIndex, Hops};
use crate::epoch::Guard;
use crate::index::words::Words;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// What a walk over all of an index has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FastFairAudit {
    /// Keys.
    pub keys: u64,
    /// Nodes in the tree.
    pub nodes: u64,
    /// Nodes for which the zones have room.
    pub nodes_all: u64,
    /// Chunks of keys in the tree.
    pub chunks: u64,
    /// Chunks for which the zones have room.
    pub chunks_all: u64,
}

impl<W: Words> FastFairIndex<W> {
    /// Walks over all nodes, and proves that keys are in order, each in the node that has it, and that parents name nodes of
    /// the tree. Nobody writes meanwhile. When all units are [known](FastFairIndex::sweep) and nothing waits for readers, those
    /// not in the tree are [free](super::FastFairStats).
    ///
    /// # Errors
    /// [`FastFairError::Space`](super::FastFairError::Space) where it is not so.
    pub fn audit(&self, _guard: &Guard<'_>) -> Result<FastFairAudit> {
        let mut audit = FastFairAudit {
            nodes_all: self.arena.capacity(Kind::Nodes),
            chunks_all: self.arena.capacity(Kind::Chunks),
            ..FastFairAudit::default()
        };
        let mut named = BTreeSet::new();
        for level in (0..=self.top_level()?).rev() {
            let mut node = self.descend(&Key::MIN, level)?;
            let (mut last, mut hops) = (None, Hops::default());
            let mut unseen = std::mem::take(&mut named);
            loop {
                unseen.remove(&node.number);
                self.audit_node(node, level, &mut last, &mut audit, &mut named)?;
                let Some(link) = node.link() else { break };
                node = hops.follow(node, link, level)?;
            }
            if let Some(child) = unseen.pop_first() {
                return damaged(
                    "a parent of a node that is not in the tree",
                    self.arena.node(child, node.place)?.place,
                );
            }
        }
        Ok(audit)
    }

    fn audit_node(
        &self,
        node: Node<'_, W>,
        level: u32,
        last: &mut Option<KeyBuf>,
        audit: &mut FastFairAudit,
        named: &mut BTreeSet<u64>,
    ) -> Result<()> {
        audit.nodes += 1;
        let (entries, link) = (node.entries(), node.link());
        if level == 0 {
            audit.keys += entries.len() as u64;
        } else {
            let children = std::iter::once(node.leftmost()).chain(entries.iter().map(|entry| entry.value));
            for child in children {
                self.arena.node(child, node.place)?.of_level(level - 1)?;
                if !named.insert(child) {
                    return damaged("a second parent of a node", node.place);
                }
            }
        }
        for entry in &entries {
            self.audit_key(node, entry.key, true, last, audit)?;
        }
        // The first key of the sibling may be where it begins.
        link.map_or(Ok(()), |link| self.audit_key(node, link.key, false, last, audit))
    }

    fn audit_key(
        &self,
        node: Node<'_, W>,
        stored: Stored,
        is_entry: bool,
        last: &mut Option<KeyBuf>,
        audit: &mut FastFairAudit,
    ) -> Result<()> {
        audit.chunks += self.arena.chunks_of(stored)?.len() as u64;
        let order = match last {
            Some(last) => self.arena.compare(&last.as_key(), stored)?,
            None => Ordering::Less,
        };
        if order == Ordering::Greater || order == Ordering::Equal && !is_entry {
            return damaged("the order of the keys of the index", node.place);
        }
        *last = Some(self.arena.key(stored)?);
        Ok(())
    }
}
