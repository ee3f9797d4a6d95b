//! Telling the traces of a crash in a node from damage, and setting them right.
//!
//! A crash leaves four things. There may be a link on its way. There may be entries above the link's key that
//! a split had given to the sibling. An entry may stand twice, in neighbouring positions, on its way from one
//! to the other. Ends and holes may be unfinished. Nothing else counts as the work of a crash. An entry that
//! a split had given away is a key of the sibling. The sibling is reached through this node alone before this
//! node is settled, so no key has left it. And no entry of the node itself stands behind an end. Everything
//! else is damage, and stays as it is.

use super::key::Stored;
use super::link::{END, HOLE, Link, unmarked};
use super::node::{NEXT_LINK, NODE, Node, Position, SLOTS};
use super::settings::{Result, damaged};
use super::shift::Locked;
use crate::index::words::Words;
use quipu_medium::WORD;
use std::cmp::Ordering;

impl<W: Words> Node<'_, W> {
    /// The positions, one bit each, of entries that only a crash has left, of a node that nobody is changing.
    pub(super) fn left_by_crash(&self) -> Result<u32> {
        let link = self.link()?;
        let (mut left, mut last, mut is_ended) = (0, None, false);
        for slot in 0..SLOTS {
            let entry = match self.position(slot) {
                Position::Entry(entry) => entry,
                Position::Hole => continue,
                Position::End => {
                    is_ended = true;
                    continue;
                }
                Position::Broken => return self.damaged_at(slot, "an entry of a node of the index"),
            };
            let above = match link {
                Some(link) => {
                    // Not proved: a damaged key is its own affair, and excluded entries are looked at below.
                    let order = self.arena.order(entry.key, link.key)?;
                    (order != Ordering::Less).then_some((link, order))
                }
                None => None,
            };
            match above {
                Some((link, order)) if self.gave(link, order, entry.key, entry.value)? => left |= 1 << slot,
                Some(_) => {
                    return self.damaged_at(slot, "an entry of the index that its node's link excludes");
                }
                None if last == Some(entry.key) => left |= 1 << slot,
                None if is_ended => {
                    return self.damaged_at(slot, "an entry behind the end of a node of the index");
                }
                None => last = Some(entry.key),
            }
        }
        Ok(left)
    }

    /// Whether a split has given this entry, which is in this order to the link's key, to the sibling.
    fn gave(&self, link: Link, order: Ordering, key: Stored, value: u64) -> Result<bool> {
        let level = self.level()?;
        let sibling = self.arena.node(link.node, self.place)?.of_level(level)?;
        // The lowest separator of an inner node became the link's key, and its child the leftmost one.
        if level > 0 && order == Ordering::Equal {
            return Ok(sibling.leftmost()? == unmarked(value));
        }
        Ok(sibling.find(|entry| entry.key == key).is_some())
    }

    #[cold]
    fn damaged_at<T>(&self, slot: usize, what: &'static str) -> Result<T> {
        damaged(what, self.place + Self::at(slot))
    }
}

impl<W: Words> Locked<'_, W> {
    /// Makes the node durable as it is in this run, and sets the traces of a crash right, each by one store.
    /// The caller has come to it through the tree.
    ///
    /// # Errors
    /// [`IndexError::Space`](crate::index::IndexError::Space) for a damaged node; nothing is changed then.
    #[cold]
    pub(super) fn settle(&self) -> Result<()> {
        self.persist(0, NODE);
        let left = self.left_by_crash()?;
        let second = self.load(NEXT_LINK + WORD);
        let mut is_changed = second != HOLE;
        if is_changed {
            self.finish_link(self.load(NEXT_LINK), second);
        }
        let is_left = |slot: usize| left >> slot & 1 == 1;
        let end = (0..SLOTS)
            .rev()
            .find(|slot| !self.is_vacant(*slot) && !is_left(*slot))
            .map_or(0, |last| last + 1);
        for slot in 0..SLOTS {
            let second = if slot < end { HOLE } else { END };
            let at = Node::<W>::at(slot) + WORD;
            if (self.is_vacant(slot) || is_left(slot)) && self.load(at) != second {
                self.store(at, second);
                is_changed = true;
            }
        }
        if is_changed {
            self.persist(0, NODE);
        }
        self.state.settle();
        Ok(())
    }
}
