//! Walking over the keys in their order, while the index changes.
//!
//! A walk copies a border node at one moment, hands out its keys behind the last key that it has handed out,
//! and goes to the next node. Keys move only to the right of where they were, by splits: into nodes that the
//! walk has not reached, or between the one that it has copied and the one that followed that then. So a key
//! that is there all the time is seen exactly once. A node that has been taken out of the tree is empty, and
//! still leads on to the right; if its whole layer has gone, to the end of that.
//!
//! A key and not a node says how far a walk has come. So it can rest for any time, unpinned.

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
    /// At the key.
    #[default]
    At,
    /// Behind the key.
    Behind,
    /// Behind all keys that begin with this one, which is whole slices.
    BehindPrefix,
    /// Nowhere.
    End,
}

/// How far a walk has come; starts at the lowest key.
#[derive(Clone, Debug, Default)]
pub struct Cursor {
    key: Vec<u8>,
    position: Position,
    /// During a call: the nodes with the links to the layers on the way, the first layer's first.
    above: Vec<Stop>,
}

impl Cursor {
    /// A walk that begins at this key, if it is there, and else behind it.
    pub fn at(key: &[u8]) -> Cursor {
        Cursor { key: key.to_vec(), position: Position::At, above: Vec::new() }
    }

    /// Whether a slot of a node of the layer behind the first `offset` bytes is still to come.
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
        let rank = if self.position == Position::BehindPrefix { LONGER } else { piece.rank };
        match (border.order(slot).cmp(&(piece.slice, rank)), self.position) {
            (cmp::Ordering::Equal, Position::At) => {
                border.suffix(shorts, guard, slot).bytes() >= piece.suffix
            }
            (cmp::Ordering::Equal, Position::Behind) => {
                border.suffix(shorts, guard, slot).bytes() > piece.suffix
            }
            (order, _) => order.is_gt(),
        }
    }

    /// Goes to an entry of that layer, which is handed out now; to a link as to the key that ends with its
    /// slice, before all keys that the link leads to.
    fn go_to(&mut self, offset: usize, entry: &Entry<'_>) {
        self.key.truncate(offset);
        push_slice(&mut self.key, entry.slice, entry.class);
        entry.suffix.push_to(&mut self.key);
        self.position = Position::Behind;
    }

    /// Goes to the keys behind that layer.
    fn leave_layer(&mut self, offset: usize) {
        self.key.truncate(offset);
        self.position = if offset == 0 { Position::End } else { Position::BehindPrefix };
    }
}

impl Masstree {
    /// Hands out keys and words in order, `limit` at most, and moves the cursor behind them. Returns how many
    /// they were; fewer than `limit` only at the end. No lock is held meanwhile.
    ///
    /// A key that is in the index from the first call to the last is handed out exactly once, whatever
    /// happens in between; its word is one that it had during the call.
    pub(super) fn scan(
        &self,
        guard: &Guard<'_>,
        cursor: &mut Cursor,
        limit: usize,
        mut visit: impl FnMut(&[u8], u64),
    ) -> usize {
        self.walk_on(guard, cursor, limit, |cursor: &mut Cursor, offset, entry: &Entry<'_>| {
            cursor.go_to(offset, entry);
            visit(&cursor.key, entry.word);
        })
    }

    /// Hands out the words that [`scan`](Masstree::scan) does, without the keys.
    pub(super) fn scan_words(
        &self,
        guard: &Guard<'_>,
        cursor: &mut Cursor,
        limit: usize,
        mut visit: impl FnMut(u64),
    ) -> usize {
        self.walk_on(guard, cursor, limit, |_: &mut Cursor, _, word: &u64| visit(*word))
    }

    /// Tells of the keys of a walk, `limit` at most; `tell` is given the bytes of a key before its layer too.
    #[inline]
    fn walk_on<'g, T: Told<'g>>(
        &self,
        guard: &'g Guard<'_>,
        cursor: &mut Cursor,
        limit: usize,
        mut tell: impl FnMut(&mut Cursor, usize, &T),
    ) -> usize {
        let (mut left, mut waiter) = (limit, Waiter::default());
        // Since the last call nodes may have become others.
        cursor.above.clear();
        while left > 0 && cursor.position != Position::End {
            let mut stop = self.resume(guard, cursor);
            while let Some(at) = stop {
                stop = self.pass(guard, cursor, at, &mut left, &mut tell);
            }
            if matches!(cursor.position, Position::At | Position::Behind) {
                waiter.wait();
            }
        }
        limit - left
    }

    /// The node in which a walk goes on, as its cursor says; nothing if a layer goes at this moment.
    fn resume(&self, guard: &Guard<'_>, cursor: &mut Cursor) -> Option<Stop> {
        if cursor.position == Position::BehindPrefix
            && let Some(stop) = cursor.above.pop()
            && stop.offset + SLICE == cursor.key.len()
        {
            // The keys that were to come then are there still, or to the right of it.
            return Some(self.stop(stop.number, stop.offset));
        }
        cursor.above.clear();
        let mut layer = Link::from_bits(self.root.load(Ordering::Acquire));
        loop {
            let offset = cursor.above.len() * SLICE;
            let (number, seen, found) = self.find_in_layer(guard, layer, &Piece::at(&cursor.key, offset))?;
            let stop = Stop { number, seen, offset };
            let Found::Layer { link, .. } = found else { return Some(stop) };
            cursor.above.push(stop);
            layer = link;
        }
    }

    /// Tells of the keys of a node that a walk awaits. Returns the next node; nothing if that is for the
    /// cursor to say, or if the walk is over.
    #[inline]
    fn pass<'g, T: Told<'g>>(
        &self,
        guard: &'g Guard<'_>,
        cursor: &mut Cursor,
        stop: Stop,
        left: &mut usize,
        tell: &mut impl FnMut(&mut Cursor, usize, &T),
    ) -> Option<Stop> {
        let border = self.nodes.border(stop.number);
        // Nothing is believed of this: at worst the lines are those of another node.
        self.prefetch_next(border, border.next.load(Ordering::Acquire));
        let awaits = |border: &Border, shorts: Shorts<'_>, slot| {
            cursor.awaits(guard, stop.offset, border, shorts, slot)
        };
        let run = self.run::<T, false>(guard, &stop, *left, awaits)?;
        run.told().iter().for_each(|told| tell(cursor, stop.offset, told));
        *left -= run.told().len();
        if let Some(last) = &run.last {
            cursor.go_to(stop.offset, last);
        }
        if *left == 0 {
            return None;
        }
        if let Some(layer) = &run.layer {
            cursor.go_to(stop.offset, layer);
            let first = self.leftmost(Link::from_bits(layer.word as u32));
            cursor.above.push(stop);
            return Some(self.stop(first, stop.offset + SLICE));
        }
        if run.next == 0 {
            cursor.leave_layer(stop.offset);
            return None;
        }
        Some(self.stop(run.next, stop.offset))
    }
}
