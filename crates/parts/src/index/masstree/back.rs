//! Walking over the keys against their order, while the index changes.
//!
//! A walk copies a border node at one moment, hands out its keys before the last key that it has handed out,
//! the highest first, and goes to the node on the left. That one may split or leave the tree meanwhile, so
//! the walk believes a node only if it led to the one on the right when it was copied. Then each key before
//! the handed out ones stands in that node or further to the left. Keys move only to the right, by splits,
//! and never beyond the node that was there before the split. A node to which this does not apply any more is
//! looked for again from above, by the last key that was handed out. So a key that is there all the time is
//! seen exactly once.
//!
//! The first border node of a layer stays as long as the layer does. Behind it the walk goes on below the
//! link to the layer: with the key that ends where the layer begins, and lower keys.
//!
//! How far a walk has come is said by a key and not by a node, as in `scan`.

use super::border::{Entry, Found, LAYER};
use super::key::{LONGER, Piece, SLICE, push_slice};
use super::nodes::Link;
use super::scan::Stop;
use super::tree::Masstree;
use crate::epoch::Guard;
use crate::sync::Waiter;
use crate::sync::atomic::Ordering;
use std::cmp;

/// Where a walk goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Position {
    /// With the highest key of all.
    #[default]
    Last,
    /// At the key.
    At,
    /// Before the key.
    Before,
    /// Nowhere.
    End,
}

/// How far a walk against the order has come; starts at the highest key.
#[derive(Clone, Debug, Default)]
pub struct BackCursor {
    key: Vec<u8>,
    position: Position,
}

impl BackCursor {
    /// A walk that begins at this key, if it is there, and else before it.
    pub fn at(key: &[u8]) -> BackCursor {
        BackCursor { key: key.to_vec(), position: Position::At }
    }

    /// A walk that begins before this key.
    pub fn before(key: &[u8]) -> BackCursor {
        BackCursor { key: key.to_vec(), position: Position::Before }
    }

    /// Whether an entry of the layer behind the first `offset` bytes of the key is still to come.
    fn awaits(&self, offset: usize, entry: &Entry<'_>) -> bool {
        let piece = Piece::at(&self.key, offset);
        match (entry.order().cmp(&piece.order()), self.position) {
            (cmp::Ordering::Equal, Position::At) => entry.suffix <= piece.suffix,
            (cmp::Ordering::Equal, _) => entry.suffix < piece.suffix,
            (order, _) => order.is_lt(),
        }
    }

    /// Goes to the key before that layer, whose keys begin with these bytes and go on.
    fn leave_layer(&mut self, prefix: &[u8]) {
        self.key.clear();
        self.key.extend_from_slice(prefix);
        self.position = if prefix.is_empty() { Position::End } else { Position::At };
    }
}

/// The layer in which a walk is during a call.
#[derive(Default)]
struct Layer {
    /// The bytes with which its keys begin.
    prefix: Vec<u8>,
    /// The nodes with the links to it and to those above, the first layer's first.
    above: Vec<Stop>,
}

/// A border node at which a walk is.
struct Place {
    stop: Stop,
    /// The node on its right, to which it has to lead; zero for any.
    right: u32,
    /// Whether all its keys are to come, and not those alone that the cursor awaits.
    is_all: bool,
}

impl Masstree {
    /// Hands out keys and words against their order, the highest first, `limit` at most, and moves the cursor
    /// before them. Returns how many they were; fewer than `limit` only at the end. No lock is held
    /// meanwhile.
    ///
    /// A key that is in the index from the first call to the last is handed out exactly once, whatever
    /// happens in between; its word is one that it had during the call.
    pub(super) fn scan_back(
        &self,
        guard: &Guard<'_>,
        cursor: &mut BackCursor,
        limit: usize,
        mut visit: impl FnMut(&[u8], u64),
    ) -> usize {
        let (mut left, mut waiter, mut layer) = (limit, Waiter::default(), Layer::default());
        while left > 0 && cursor.position != Position::End {
            let before = left;
            let mut place = self.resume_back(guard, cursor, &mut layer);
            while let Some(at) = place {
                place = self.pass_back(guard, cursor, &mut layer, at, &mut left, &mut visit);
            }
            if left == before {
                waiter.wait();
            }
        }
        limit - left
    }

    /// The node in which a walk goes on, by its cursor, and its layer; nothing if a layer goes at this
    /// moment.
    fn resume_back(&self, guard: &Guard<'_>, cursor: &BackCursor, layer: &mut Layer) -> Option<Place> {
        layer.prefix.clear();
        layer.above.clear();
        let mut link = Link::from_bits(self.root.load(Ordering::Acquire));
        if cursor.position == Position::Last {
            return self.last_of(link, 0);
        }
        loop {
            let offset = layer.prefix.len();
            let (number, seen, found) = self.find_in_layer(guard, link, &Piece::at(&cursor.key, offset))?;
            let stop = Stop { number, seen, offset };
            let Found::Layer { link: below, .. } = found else {
                return Some(Place { stop, right: 0, is_all: false });
            };
            layer.prefix.extend_from_slice(cursor.key.get(offset..offset + SLICE)?);
            layer.above.push(stop);
            link = below;
        }
    }

    /// The last node of a layer; nothing if the layer has gone.
    fn last_of(&self, layer: Link, offset: usize) -> Option<Place> {
        let (number, _, seen) = self.descend(layer, u64::MAX)?;
        Some(Place { stop: Stop { number, seen, offset }, right: 0, is_all: true })
    }

    /// The node with the link to a layer that has been passed, if it is still the one for it; nothing if that
    /// is for the cursor to say.
    fn leave_layer(&self, layer: &mut Layer) -> Option<Place> {
        let Stop { number, seen, offset } = layer.above.pop()?;
        layer.prefix.truncate(offset);
        let now = self.nodes.border(number).version.stable();
        // After a split, keys before the link may stand to the right of the node.
        let is_its_own = !now.has_left(seen);
        is_its_own.then_some(Place { stop: Stop { number, seen: now, offset }, right: 0, is_all: false })
    }

    /// Hands out the keys of a node that a walk awaits. Returns the next node; nothing if that is for the
    /// cursor to say, or if the walk is over.
    fn pass_back(
        &self,
        guard: &Guard<'_>,
        cursor: &mut BackCursor,
        layer: &mut Layer,
        Place { stop, right, is_all }: Place,
        left: &mut usize,
        visit: &mut impl FnMut(&[u8], u64),
    ) -> Option<Place> {
        let snapshot = self.snapshot(guard, &stop)?;
        if right != 0 && snapshot.next != right {
            return None;
        }
        let before = self.nodes.border(stop.number).prev.load(Ordering::Acquire);
        self.nodes.get(Link::border(before)).prefetch();
        let all = snapshot.entries.iter().rev().flatten();
        let passed = all.clone().take_while(|entry| !is_all && !cursor.awaits(stop.offset, entry)).count();
        for entry in all.skip(passed) {
            if entry.class == LAYER {
                push_slice(&mut layer.prefix, entry.slice, LONGER);
                layer.above.push(stop);
                return self.last_of(Link::from_bits(entry.word as u32), layer.prefix.len());
            }
            let key = &mut cursor.key;
            key.clear();
            key.extend_from_slice(&layer.prefix);
            push_slice(key, entry.slice, entry.class);
            key.extend_from_slice(entry.suffix);
            cursor.position = Position::Before;
            visit(&cursor.key, entry.word);
            *left -= 1;
            if *left == 0 {
                return None;
            }
        }
        if before == 0 {
            cursor.leave_layer(&layer.prefix);
            return self.leave_layer(layer);
        }
        let seen = self.nodes.border(before).version.stable();
        let on_the_left = Stop { number: before, seen, offset: stop.offset };
        Some(Place { stop: on_the_left, right: stop.number, is_all })
    }
}
