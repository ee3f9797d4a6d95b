//! Growth: failure-atomic in-place rebalance (FAST'18, section 3.3), and completing interrupted splits.
//!
//! A node that is full gives its upper half to a sibling. The sibling is written whole before any thread can
//! find it; then the link of the node changes, which is the split; then the parent is told. Between these the
//! sibling is found through the link, and if a crash or a full pool keeps the parent from being told, the
//! first writer that comes through the link tells it.
//!
//! A separator is where its child's keys begin, exactly and for ever; so a parent that does not have it does
//! not have the child, and telling it twice is noticed.

use super::blob::chunks_for;
use super::key::{Key, KeyBuf, Stored};
use super::kit::Kit;
use super::link::{END, HOLE, Link, marked, second_word};
use super::node::{Entry, LEFTMOST, LINK, NEXT_LINK, NODE_WORDS, SLOTS, entry_word, meta};
use super::settings::Result;
use super::shift::Locked;
use super::tree::FastFairIndex;
use crate::epoch::Guard;
use crate::index::IndexError;
use crate::index::chain::HEAD;
use crate::index::words::Words;
use crate::sync::point;
use quipu_medium::WORD;
use std::cmp;
use std::sync::atomic::Ordering;

/// How a split went.
pub(super) enum Split {
    /// Keys from the separator on are the sibling's.
    Done { separator: KeyBuf, right: u64 },
    /// It needs a node, and so many chunks.
    Needs { chunks: usize },
}

/// The words of a node that nobody knows yet.
pub(super) struct Draft([u64; NODE_WORDS]);

impl Draft {
    /// A leaf, or an inner node with this leftmost child.
    pub(super) fn new(level: u32, leftmost: Option<u64>, link: Option<Link>) -> Draft {
        let mut words = [0; NODE_WORDS];
        words[0] = meta(level);
        words[(LEFTMOST / WORD) as usize] = leftmost.map_or(0, marked);
        let (word, second) = Link::words(link);
        words[(LINK / WORD) as usize] = word;
        words[(LINK / WORD) as usize + 1] = second;
        words[(NEXT_LINK / WORD) as usize + 1] = HOLE;
        (0..SLOTS).for_each(|slot| words[entry_word(slot) + 1] = END);
        Draft(words)
    }

    /// Entries, packed.
    pub(super) fn with(mut self, entries: impl IntoIterator<Item = (Stored, u64)>) -> Draft {
        for (slot, (key, value)) in entries.into_iter().enumerate() {
            let at = entry_word(slot);
            self.0[at] = key.word;
            self.0[at + 1] = second_word(key, value);
        }
        self
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

impl<W: Words> FastFairIndex<W> {
    /// Splits a full node, in which `key` has found no room.
    pub(super) fn split(
        &self,
        node: &Locked<'_, W>,
        kit: &mut Kit<'_, W>,
        key: &Key<'_>,
        level: u32,
    ) -> Result<Split> {
        self.splitting.fetch_add(1, Ordering::Relaxed);
        let split = self.try_split(node, kit, key, level);
        self.splitting.fetch_sub(1, Ordering::Relaxed);
        split
    }

    fn try_split(
        &self,
        node: &Locked<'_, W>,
        kit: &mut Kit<'_, W>,
        key: &Key<'_>,
        level: u32,
    ) -> Result<Split> {
        let (entries, link) = (node.entries()?, node.link()?);
        let last = entries[entries.len() - 1];
        // Keys that come in order fill nodes for good, and leave nothing to share.
        let is_last = link.is_none() && self.arena.compare(key, last.key)? == cmp::Ordering::Greater;
        let middle = if is_last { entries.len() - 1 } else { entries.len() / 2 };
        let first: Entry = entries[middle];
        let separator = self.arena.key(first.key)?;
        // A leaf's separator needs a copy of the key; an inner node's moves up to the link.
        let chunks = match &separator {
            KeyBuf::Bytes(bytes) if level == 0 => chunks_for(bytes.len()),
            _ => 0,
        };
        if !kit.has(1, chunks) {
            return Ok(Split::Needs { chunks });
        }
        let link_key = match &separator {
            KeyBuf::Bytes(bytes) if level == 0 => kit.keep_copy(bytes)?,
            _ => first.key,
        };
        // All that can fail is done before the node is taken.
        let (leftmost, moving) = match level {
            0 => (None, &entries[middle..]),
            _ => (Some(node.child_of(first)?), &entries[middle + 1..]),
        };
        let Some(right) = kit.take_node() else { return Ok(Split::Needs { chunks }) };
        let moving = moving.iter().map(|entry| (entry.key, entry.value));
        self.place(right, Draft::new(level, leftmost, link).with(moving))?;
        point();
        node.set_link(Some(Link { key: link_key, node: right }));
        // Not before: a hint must not lead to a node that a crash could still take out of the tree.
        self.arena.node(right, node.place)?.state.settle();
        point();
        node.truncate(first.slot);
        self.splits.fetch_add(1, Ordering::Relaxed);
        Ok(Split::Done { separator, right })
    }

    /// Writes a node, durably, to which nothing leads yet.
    fn place(&self, number: u64, draft: Draft) -> Result<()> {
        let node = self.arena.node(number, self.arena.first_zone())?;
        self.arena.words.write(node.place, &draft.to_bytes());
        self.arena.words.fence();
        Ok(())
    }

    /// [`complete`](FastFairIndex::complete), unless there is no room for it: then a later writer will.
    pub(super) fn complete_if_room(
        &self,
        guard: &Guard<'_>,
        level: u32,
        separator: &Key<'_>,
        child: u64,
    ) -> Result<()> {
        match self.complete(guard, level, separator, child) {
            Err(IndexError::Full(_)) => Ok(()),
            result => result,
        }
    }

    /// Tells the parent, on this level, of a child whose keys begin with the separator. Nothing is locked.
    pub(super) fn complete(
        &self,
        guard: &Guard<'_>,
        level: u32,
        separator: &Key<'_>,
        child: u64,
    ) -> Result<()> {
        let mut kit = Kit::new(self, guard);
        while self.top_level()? < level {
            kit.fill(1, 0)?;
            if kit.key(separator).is_none() {
                kit.keep_key(separator)?;
            }
            if self.grow(&mut kit, level, separator, child)? {
                return Ok(());
            }
        }
        let known = |parent: &Locked<'_, W>| {
            // A node that leaves the tree has its parent locked until it is retired.
            let is_gone = self.arena.node(child, parent.place)?.state.before().is_retired();
            let entries = parent.entries()?;
            let is_known = match parent.rank(&entries, separator)?.checked_sub(1) {
                Some(last) => self.arena.compare(separator, entries[last].key)? == cmp::Ordering::Equal,
                None => parent.leftmost()? == child,
            };
            Ok((is_gone || is_known).then_some(()))
        };
        let number = |key| Link { key, node: child }.number();
        self.add(guard, &mut kit, separator, level, number, known).map(|_| ())
    }

    /// Gives the tree another level, above the root and its sibling; false if another thread has.
    fn grow(&self, kit: &mut Kit<'_, W>, level: u32, separator: &Key<'_>, child: u64) -> Result<bool> {
        let _rising = self.rising.lock();
        if self.top_level()? >= level {
            return Ok(false);
        }
        let (Some(stored), Some(root)) = (kit.key(separator), kit.take_node()) else { return Ok(false) };
        let old = self.top.load(Ordering::Relaxed);
        let separator = Link { key: stored, node: child };
        self.place(root, Draft::new(level, Some(old), None).with([(stored, separator.number())]))?;
        let head = self.arena.first_zone() + HEAD;
        self.arena.words.store(head, marked(root));
        self.arena.words.persist(head, WORD);
        self.arena.node(root, head)?.state.settle();
        self.top.store(root, Ordering::Release);
        kit.use_key();
        Ok(true)
    }
}
