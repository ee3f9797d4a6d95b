//! Nodes and chunks for a change, taken before any lock. So no lock is held while a zone is added, and a
//! change that is refused has changed nothing.

use super::arena::{Arena, Kind};
use super::blob::chunks_for;
use super::key::{Key, Stored};
use super::settings::Result;
use super::tree::FastFairIndex;
use crate::epoch::Guard;
use crate::index::words::Words;

/// Nodes and chunks in hand. Those left over are given back.
pub(super) struct Kit<'a, W: Words> {
    guard: &'a Guard<'a>,
    index: &'a FastFairIndex<W>,
    nodes: Vec<u64>,
    chunks: Vec<u64>,
    /// The key of the change, kept in chunks, durably.
    key: Option<(Stored, Vec<u64>)>,
}

impl<'a, W: Words> Kit<'a, W> {
    pub(super) fn new(index: &'a FastFairIndex<W>, guard: &'a Guard<'a>) -> Kit<'a, W> {
        Kit { guard, index, nodes: Vec::new(), chunks: Vec::new(), key: None }
    }

    fn arena(&self) -> &'a Arena<W> {
        &self.index.arena
    }

    /// Makes sure that so many are in hand. The caller holds no lock.
    pub(super) fn fill(&mut self, nodes: usize, chunks: usize) -> Result<()> {
        while self.nodes.len() < nodes {
            self.nodes.push(self.index.allocate(self.guard, Kind::Nodes)?);
        }
        while self.chunks.len() < chunks {
            self.chunks.push(self.index.allocate(self.guard, Kind::Chunks)?);
        }
        Ok(())
    }

    /// Writes the key of the change to chunks, durably, if it has to be kept there. The caller holds no lock.
    pub(super) fn keep_key(&mut self, key: &Key<'_>) -> Result<()> {
        let Key::Bytes(bytes, _) = key else { return Ok(()) };
        let count = chunks_for(bytes.len());
        self.fill(0, count)?;
        let chunks = self.chunks.split_off(self.chunks.len() - count);
        let written = self.arena().write_kept(bytes, &chunks);
        match written {
            Ok(stored) => {
                self.arena().words.fence();
                self.key = Some((stored, chunks));
                Ok(())
            }
            Err(error) => {
                self.chunks.extend(chunks);
                Err(error)
            }
        }
    }

    /// The key of the change as it stands in a node, if it can.
    pub(super) fn key(&self, key: &Key<'_>) -> Option<Stored> {
        key.stored().or(self.key.as_ref().map(|(stored, _)| *stored))
    }

    /// The key of the change stands in a node now.
    pub(super) fn use_key(&mut self) {
        self.key = None;
    }

    pub(super) fn has(&self, nodes: usize, chunks: usize) -> bool {
        self.nodes.len() >= nodes && self.chunks.len() >= chunks
    }

    /// A node; there is one.
    pub(super) fn take_node(&mut self) -> Option<u64> {
        self.nodes.pop()
    }

    /// Another copy of a key, not yet durable; there are chunks for it.
    pub(super) fn keep_copy(&mut self, bytes: &[u8]) -> Result<Stored> {
        let count = chunks_for(bytes.len()).min(self.chunks.len());
        let chunks = self.chunks.split_off(self.chunks.len() - count);
        self.arena().write_kept(bytes, &chunks)
    }
}

impl<W: Words> FastFairIndex<W> {
    /// Makes sure, as far as other callers leave it so, that so many keys of so many bytes each can be added.
    pub(super) fn keep_room(&self, guard: &Guard<'_>, keys: usize, len: usize) -> Result<()> {
        let chunks = if len == size_of::<u64>() { 0 } else { 2 * chunks_for(len) };
        // Each may have to split a leaf, and have a copy of its key made for the link.
        Kit::new(self, guard).fill(keys, keys * chunks)
    }
}

impl<W: Words> Drop for Kit<'_, W> {
    fn drop(&mut self) {
        let key = self.key.take().map(|(_, chunks)| chunks).unwrap_or_default();
        let (nodes, chunks) = (std::mem::take(&mut self.nodes), std::mem::take(&mut self.chunks));
        if !nodes.is_empty() {
            self.arena().give(Kind::Nodes, nodes);
        }
        if !key.is_empty() || !chunks.is_empty() {
            self.arena().give(Kind::Chunks, key.into_iter().chain(chunks));
        }
    }
}
