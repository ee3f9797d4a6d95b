//! Proving an index: for `check`, and for tests.

use super::arena::Kind;
use super::key::{Key, KeyBuf, Stored};
use super::node::Node;
use super::settings::{Result, damaged};
use super::tree::{FastFairIndex, Hops};
use crate::epoch::Guard;
use crate::index::words::Words;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The result of a walk over all of an index.
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

/// The nodes that parents name, and where their keys begin; `None` at the lowest of a level.
type Named = BTreeMap<u64, Option<KeyBuf>>;

impl<W: Words> FastFairIndex<W> {
    /// Walks over all nodes. It proves that keys are in order, each in its node, and that parents name nodes
    /// of the tree by the keys with which they begin. Every word must be one that a run or a crash leaves.
    /// Nobody writes meanwhile, and nothing is changed. When all units are [known](FastFairIndex::sweep) and
    /// nothing waits for readers, those not in the tree are [free](super::FastFairStats).
    ///
    /// # Errors
    /// [`IndexError::Space`](crate::index::IndexError::Space) where it is not so.
    pub fn audit(&self, _guard: &Guard<'_>) -> Result<FastFairAudit> {
        let mut audit = FastFairAudit {
            nodes_all: self.arena.capacity(Kind::Nodes),
            chunks_all: self.arena.capacity(Kind::Chunks),
            ..FastFairAudit::default()
        };
        let mut named = Named::new();
        for level in (0..=self.top_level()?).rev() {
            let mut node = self.descend(&Key::MIN, level)?;
            let (mut last, mut start, mut hops) = (None, None, Hops::default());
            let mut unseen = std::mem::take(&mut named);
            loop {
                if let Some(separator) = unseen.remove(&node.number)
                    && separator != start
                {
                    return damaged("the separator before a node of the index", node.place);
                }
                self.audit_node(node, level, &start, &mut last, &mut audit, &mut named)?;
                let Some(link) = node.link()? else { break };
                start = Some(self.arena.key(link.key)?);
                node = hops.follow(node, link, level)?;
            }
            if let Some((child, _)) = unseen.pop_first() {
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
        start: &Option<KeyBuf>,
        last: &mut Option<KeyBuf>,
        audit: &mut FastFairAudit,
        named: &mut Named,
    ) -> Result<()> {
        audit.nodes += 1;
        let (left, link) = (node.left_by_crash()?, node.link()?);
        let mut entries = node.entries()?;
        entries.retain(|entry| left >> entry.slot & 1 == 0);
        if level == 0 {
            audit.keys += entries.len() as u64;
        } else {
            let leftmost = (start.clone(), node.leftmost()?);
            let mut children = vec![leftmost];
            for entry in &entries {
                children.push((Some(self.arena.key(entry.key)?), node.child_of(*entry)?));
            }
            for (start, child) in children {
                self.arena.node(child, node.place)?.of_level(level - 1)?;
                if named.insert(child, start).is_some() {
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
