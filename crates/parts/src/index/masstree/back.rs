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

use super::border::{Border, Entry, Found};
use super::key::{LONGER, Piece, SLICE, push_slice};
use super::nodes::Link;
use super::run::{Stop, Told};
use super::short::Shorts;
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

    /// Whether a slot of a node of the layer behind the first `offset` bytes of the key is still to come.
    #[inline]
    fn awaits(
        &self,
        guard: &Guard<'_>,
        offset: usize,
        border: &Border,
        shorts: Shorts<'_>,
        slot: usize,
    ) -> bool {
        let piece = Piece::at(&self.key, offset);
        match (border.order(slot).cmp(&piece.order()), self.position) {
            (cmp::Ordering::Equal, Position::At) => {
                border.suffix(shorts, guard, slot).bytes() <= piece.suffix
            }
            (cmp::Ordering::Equal, _) => border.suffix(shorts, guard, slot).bytes() < piece.suffix,
            (order, _) => order.is_lt(),
        }
    }

    /// Goes to an entry of the layer whose keys begin with these bytes, which is handed out now.
    fn go_to(&mut self, prefix: &[u8], entry: &Entry<'_>) {
        self.key.clear();
        self.key.extend_from_slice(prefix);
        push_slice(&mut self.key, entry.slice, entry.class);
        entry.suffix.push_to(&mut self.key);
        self.position = Position::Before;
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
        self.walk_back(guard, cursor, limit, |cursor: &mut BackCursor, prefix: &[u8], entry: &Entry<'_>| {
            cursor.go_to(prefix, entry);
            visit(&cursor.key, entry.word);
        })
    }

    /// Hands out the words that [`scan_back`](Masstree::scan_back) does, without the keys.
    pub(super) fn scan_words_back(
        &self,
        guard: &Guard<'_>,
        cursor: &mut BackCursor,
        limit: usize,
        mut visit: impl FnMut(u64),
    ) -> usize {
        self.walk_back(guard, cursor, limit, |_: &mut BackCursor, _: &[u8], word: &u64| visit(*word))
    }

    /// Tells of the keys of a walk, `limit` at most; `tell` is given the bytes of a key before its layer too.
    #[inline]
    fn walk_back<'g, T: Told<'g>>(
        &self,
        guard: &'g Guard<'_>,
        cursor: &mut BackCursor,
        limit: usize,
        mut tell: impl FnMut(&mut BackCursor, &[u8], &T),
    ) -> usize {
        let (mut left, mut waiter, mut layer) = (limit, Waiter::default(), Layer::default());
        while left > 0 && cursor.position != Position::End {
            let before = left;
            let mut place = self.resume_back(guard, cursor, &mut layer);
            while let Some(at) = place {
                place = self.pass_back(guard, cursor, &mut layer, at, &mut left, &mut tell);
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
        let (number, _, seen) = self.descend(layer, &Piece { slice: u64::MAX, rank: LONGER, suffix: &[] })?;
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

    /// Tells of the keys of a node that a walk awaits. Returns the next node; nothing if that is for the
    /// cursor to say, or if the walk is over.
    #[inline]
    fn pass_back<'g, T: Told<'g>>(
        &self,
        guard: &'g Guard<'_>,
        cursor: &mut BackCursor,
        layer: &mut Layer,
        Place { stop, right, is_all }: Place,
        left: &mut usize,
        tell: &mut impl FnMut(&mut BackCursor, &[u8], &T),
    ) -> Option<Place> {
        let border = self.nodes.border(stop.number);
        // Nothing is believed of this: at worst the lines are those of another node.
        self.prefetch_next(border, border.prev.load(Ordering::Acquire));
        let awaits = |border: &Border, shorts: Shorts<'_>, slot| {
            is_all || cursor.awaits(guard, stop.offset, border, shorts, slot)
        };
        let run = self.run::<T, true>(guard, &stop, *left, awaits)?;
        if right != 0 && run.next != right {
            return None;
        }
        let before = border.prev.load(Ordering::Acquire);
        run.told().iter().for_each(|told| tell(cursor, &layer.prefix, told));
        *left -= run.told().len();
        if let Some(last) = &run.last {
            cursor.go_to(&layer.prefix, last);
        }
        if *left == 0 {
            return None;
        }
        if let Some(link) = &run.layer {
            push_slice(&mut layer.prefix, link.slice, LONGER);
            layer.above.push(stop);
            return self.last_of(Link::from_bits(link.word as u32), layer.prefix.len());
        }
        if before == 0 {
            cursor.leave_layer(&layer.prefix);
            return self.leave_layer(layer);
        }
        Some(Place { stop: self.stop(before, stop.offset), right: stop.number, is_all })
    }
}
