//! Changing a node, so that it can be read at every instant and after a crash at any: failure-atomic shifts
//! (FAST'18, section 3.1), and the changes of a link on which splits and removals turn.
//!
//! # Why a crash at any instant leaves a node that can be read
//!
//! - *Within a line* stores arrive in their order, so a line is as it was after one of them. Each entry lies
//!   in one line, and is changed as: no value, key, value. So no key stands beside a value of another.
//! - *A shift* copies the entry beside the hole, then the one beside that, and so on, and at last fills the
//!   gap. Before the first entry that was copied to another line is overwritten, that line is flushed and
//!   fenced. So every entry is durable in its old position, in its new one, or in both; two equal neighbours
//!   are one entry. That is a flush and a fence for every line that is left, and one at the end.
//! - *A removal* is one word. The next insertion nearby fills the hole: it shifts to the nearer hole, on
//!   either side. The paper closes the gap with another shift, over all lines behind it; there removals cost
//!   as much as insertions.
//! - *A link* is two words, key and sibling, that must change together. There is room for two: the new one is
//!   written beside the old one and counts with its second word; then the old one is overwritten, and the new
//!   one taken back. All in one line.
//! - *A split* first writes the sibling whole, fence; then changes the link: from then on the upper keys are
//!   the sibling's. Their old entries in the node are above the link's key, and are ignored; they are made
//!   holes, durably, before the lock is given back.
//!
//! After a crash, [`settle`](Locked::settle) repairs a node under its lock, before it changes again.

use super::key::Stored;
use super::link::{END, HOLE, Link, VACANT, second_word};
use super::node::{ENTRY, Entry, LINK, NEXT_LINK, NODE, Node, SLOTS};
use crate::index::words::Words;
use quipu_medium::{LINE, WORD};
use std::ops::Deref;

/// A node whose lock is held.
pub(super) struct Locked<'a, W: Words> {
    node: Node<'a, W>,
}

impl<'a, W: Words> Deref for Locked<'a, W> {
    type Target = Node<'a, W>;

    fn deref(&self) -> &Node<'a, W> {
        &self.node
    }
}

impl<W: Words> Drop for Locked<'_, W> {
    fn drop(&mut self) {
        self.node.state.unlock();
    }
}

impl<'a, W: Words> Locked<'a, W> {
    /// The node, whose lock the caller has just taken.
    pub(super) fn new(node: Node<'a, W>) -> Locked<'a, W> {
        Locked { node }
    }

    #[inline]
    pub(super) fn store(&self, at: u64, word: u64) {
        self.arena.words.store(self.place + at, word);
    }

    pub(super) fn persist(&self, at: u64, len: u64) {
        self.arena.words.persist(self.place + at, len);
    }

    fn line(slot: usize) -> u64 {
        Node::<W>::at(slot) / LINE
    }

    pub(super) fn is_vacant(&self, slot: usize) -> bool {
        self.load(Node::<W>::at(slot) + WORD) & VACANT != 0
    }

    /// Whether an entry can be added.
    pub(super) fn has_room(&self) -> bool {
        (0..SLOTS).rev().any(|slot| self.is_vacant(slot))
    }

    fn write(&self, slot: usize, key: Stored, value: u64) {
        let at = Node::<W>::at(slot);
        if !self.is_vacant(slot) {
            self.store(at + WORD, HOLE);
        }
        self.store(at, key.word);
        self.store(at + WORD, second_word(key, value));
    }

    /// Copies an entry to the next position on one of the sides.
    fn copy(&self, from: usize, to: usize) {
        if let Some(entry) = self.entry(from) {
            self.write(to, entry.key, entry.value);
        }
        if Self::line(from) != Self::line(to) {
            self.arena.words.leave(self.place + Node::<W>::at(to), ENTRY);
        }
    }

    /// Adds an entry before the position `behind`, in which and behind which there are only higher keys, and
    /// before which only lower ones. Durable when this returns; says where it stands. There is
    /// [room](Locked::has_room).
    pub(super) fn add(&self, behind: usize, key: Stored, value: u64) -> usize {
        let right = (behind..SLOTS).find(|slot| self.is_vacant(*slot));
        let left = (0..behind).rev().find(|slot| self.is_vacant(*slot));
        let distance_right = right.map(|hole| (Self::line(hole) - Self::line(behind), hole - behind));
        let distance_left = left.map(|hole| (Self::line(behind - 1) - Self::line(hole), behind - 1 - hole));
        let slot = match (right, left) {
            (Some(hole), _) if distance_left.is_none() || distance_right <= distance_left => {
                (behind..hole).rev().for_each(|from| self.copy(from, from + 1));
                behind
            }
            (_, Some(hole)) => {
                if hole + 1 < behind {
                    self.state.turn_left();
                }
                (hole + 1..behind).for_each(|from| self.copy(from, from - 1));
                behind - 1
            }
            (Some(_), None) | (None, None) => unreachable!("the caller has looked for room"),
        };
        self.write(slot, key, value);
        self.persist(Node::<W>::at(slot), ENTRY);
        slot
    }

    /// Lets an entry have another value; not yet durable.
    pub(super) fn store_value(&self, entry: Entry, value: u64) {
        self.store(Node::<W>::at(entry.slot) + WORD, second_word(entry.key, value));
    }

    /// Lets an entry have another value, durably when this returns.
    pub(super) fn set_value(&self, entry: Entry, value: u64) {
        self.store_value(entry, value);
        self.persist(Node::<W>::at(entry.slot), ENTRY);
    }

    /// Removes an entry, durably when this returns.
    pub(super) fn vacate(&self, slot: usize) {
        self.store(Node::<W>::at(slot) + WORD, HOLE);
        self.persist(Node::<W>::at(slot), ENTRY);
    }

    /// Lets higher keys go elsewhere from now on, durably when this returns.
    pub(super) fn set_link(&self, link: Option<Link>) {
        let (word, second) = Link::words(link);
        self.store(NEXT_LINK, word);
        self.store(NEXT_LINK + WORD, second);
        self.finish_link(word, second);
        self.persist(0, LINE);
    }

    /// Copies the second link to the first one, and takes the second one back.
    pub(super) fn finish_link(&self, word: u64, second: u64) {
        self.store(LINK, word);
        self.store(LINK + WORD, second);
        self.store(NEXT_LINK + WORD, HOLE);
    }

    /// Lets the node end before this position, durably when this returns.
    pub(super) fn truncate(&self, slot: usize) {
        for slot in (slot..SLOTS).rev() {
            self.store(Node::<W>::at(slot) + WORD, END);
        }
        self.persist(Node::<W>::at(slot), NODE - Node::<W>::at(slot));
    }

    /// Takes the node out of use. Nothing leads to it any more; threads may still be on their way.
    pub(super) fn retire(self) {
        self.state.retire();
    }
}
